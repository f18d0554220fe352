"""From radii to scores: how rare is a row at a node (S3).

All functions take squared radii. `members` holds the radii of the reference rows, one column per node, sorted upward;
`weights` (trust of the rows, sorted alike) may stand beside it.

| equation | function |
|---|---|
| (S-1) number of deviations kept | `kept_deviations` |
| (S-3) paper form | `paper_p_values` |
| (S-4) product form | `counted_p_values` |
| (S-6) translation between the two | `product_level` |
| (S-7) tail beyond the largest radius | `MemberRadii.tail` |
| (S-24) continuous form | `continuous_p_values` |
| (S-30) ties parted | `score_kernels.part_ties` |
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldseam.separation.score_kernels import continuous_scores

__all__ = [
    "MemberRadii",
    "continuous_p_values",
    "counted_p_values",
    "kept_deviations",
    "p_values",
    "paper_p_values",
    "product_level",
]

FloatArray = NDArray[np.float64]

RELATIVE_SLACK = 1e-6  # (S-4): last-bit differences between radii do not count
ABSOLUTE_SLACK = 1e-12


def kept_deviations(size: NDArray[np.int64], fraction: float) -> NDArray[np.int64]:
    """(S-1) How many of `size` squared deviations a ranked distance keeps.

    >>> kept_deviations(np.array([1, 4, 10]), 0.3).tolist()
    [1, 1, 3]
    """
    return np.maximum(1, np.floor(fraction * size + 1e-9).astype(np.int64))


@dataclass(frozen=True, eq=False)
class MemberRadii:
    """Radii of the reference rows at every node, sorted upward, and how much of the trust lies above each.

    `above[i, n]` is the summed trust of the members i, i+1, ... in the order of node n (one row more than members).
    """

    radii: FloatArray
    above: FloatArray

    @classmethod
    def sort(cls, radii: NDArray[np.floating[Any]], trust: FloatArray | None = None) -> MemberRadii:
        """Sort unsorted radii (rows x nodes).

        >>> MemberRadii.sort(np.array([[2.0], [1.0]])).above[:, 0].tolist()
        [2.0, 1.0, 0.0]
        """
        order = np.argsort(radii, axis=0, kind="stable")
        trusts = np.ones(len(radii)) if trust is None else trust
        above = np.zeros((len(radii) + 1, radii.shape[1]))
        above[:-1] = np.cumsum(trusts[order][::-1], axis=0)[::-1]
        return cls(np.take_along_axis(radii, order, axis=0).astype(np.float64), above)

    @property
    def n_tail(self) -> int:
        """Number k of the largest radii that the tail is laid through."""
        return min(len(self.radii) - 1, max(5, len(self.radii) // 20))

    @cached_property
    def tail(self) -> tuple[FloatArray, FloatArray]:
        """(S-7) Where the Pareto tail of every node begins (u), and its shape (ξ)."""
        base = self.radii[-self.n_tail - 1]
        largest = np.maximum(self.radii[len(self.radii) - self.n_tail :], 1e-12)
        return base.copy(), np.log(largest / np.maximum(base, 1e-12)).mean(axis=0) + 1e-6

    @property
    def total(self) -> float:
        """Summed trust of the members: their number when all are trusted alike."""
        return float(self.above[0, 0])


def paper_p_values(radii: NDArray[np.floating[Any]], members: MemberRadii) -> FloatArray:
    """(S-3) Share of members whose radius is at least the row's; 0 is possible.

    >>> paper_p_values(np.array([[3.0], [5.0]]), MemberRadii.sort(np.array([[1.0], [2.0], [3.0], [4.0]])))[:, 0]
    array([0.5, 0. ])
    """
    return _above(radii, members, slack=False) / members.total


def counted_p_values(radii: NDArray[np.floating[Any]], members: MemberRadii) -> FloatArray:
    """(S-4) The same count with the row itself among the members; at least 1 / (N + 1).

    >>> counted_p_values(np.array([[3.0], [5.0]]), MemberRadii.sort(np.array([[1.0], [2.0], [3.0], [4.0]])))[:, 0]
    array([0.6, 0.2])
    """
    return (1.0 + _above(radii, members, slack=True)) / (members.total + 1.0)


def continuous_p_values(radii: NDArray[np.floating[Any]], members: MemberRadii) -> FloatArray:
    """(S-24) Interpolated between member radii, with the tail (S-7) beyond the largest.

    >>> continuous_p_values(np.array([[1.5], [2.0]]), MemberRadii.sort(np.array([[1.0], [2.0], [3.0], [4.0]])))[:, 0]
    array([0.7, 0.6])
    """
    result = np.empty(radii.shape)
    base, shape = members.tail
    continuous_scores(radii, members.radii, members.above, base, shape, members.n_tail + 1, result)
    return result


def p_values(form: str, radii: NDArray[np.floating[Any]], members: MemberRadii) -> FloatArray:
    """Scores in one of the three forms: 'continuous', 'counted' or 'paper'."""
    forms = {"continuous": continuous_p_values, "counted": counted_p_values, "paper": paper_p_values}
    return forms[form](radii, members)


def product_level(paper_level: float, n_members: int) -> float:
    """(S-6) The level of the product form that labels the same nodes as `paper_level` in the paper form.

    >>> product_level(0.5, 4)
    0.6
    """
    return float((np.floor(paper_level * n_members) + 1) / (n_members + 1))


def _above(radii: NDArray[np.floating[Any]], members: MemberRadii, *, slack: bool) -> FloatArray:
    """Summed trust of the members whose radius is at least the row's, up to the slack of (S-4)."""
    ranks = members.radii * (1 + RELATIVE_SLACK) + ABSOLUTE_SLACK if slack else members.radii
    result = np.empty(radii.shape)
    for node in range(radii.shape[1]):
        below = np.searchsorted(ranks[:, node], radii[:, node].astype(np.float64), side="left")
        result[:, node] = members.above[below, node]
    return result
