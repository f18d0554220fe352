"""What inference takes and gives: the noise of columns and cells, beliefs about rows (F2, F5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "Beliefs", "Codes", "Noise", "cell_precision", "groups_of"]

Array = NDArray[np.float64]
Codes = NDArray[np.int32]


@dataclass(frozen=True)
class Noise:
    """Noise of every column: sigma (m,) in standardised units, flip rate (n,); 0 is nil, such cells are taken as they
    are."""

    sigma: Array
    flip: Array

    @classmethod
    def nil(cls, n_numbers: int, n_categories: int) -> Noise:
        return cls(np.zeros(n_numbers), np.zeros(n_categories))

    @property
    def precision(self) -> Array:
        """1/sigma², infinite where the noise is nil."""
        with np.errstate(divide="ignore"):
            return np.where(self.sigma > 0, 1.0 / np.square(self.sigma), np.inf)

    def log_odds(self, sizes: NDArray[np.int64]) -> Array:
        """log P(y = l | v = l) / P(y = l | v = other) of (F-6); infinite where the flip rate is nil."""
        flip = np.clip(self.flip, 1e-4, 1 - 1e-4)
        odds = np.log1p(-flip) - np.log(flip / np.maximum(sizes - 1, 1))
        return np.where(self.flip > 0, odds, np.inf)


@dataclass(frozen=True)
class Beliefs:
    """What is believed of every row: category probabilities Q (N, T), mean and variance of the numbers (N, m).

    `cavity_mean` and `cavity_variance` are the number's distribution without its own observation (F-30); `sweeps` is
    negative where the beliefs had not settled, and `change` is the largest change of a belief in the last sweep.
    """

    Q: Array
    mean: Array
    variance: Array
    cavity_mean: Array
    cavity_variance: Array
    sweeps: NDArray[np.int64]
    change: Array

    @classmethod
    def empty(cls, n_rows: int, n_states: int, n_numbers: int) -> Beliefs:
        a, b, c, d = (np.empty((n_rows, n_numbers)) for _ in range(4))
        return cls(np.empty((n_rows, n_states)), a, b, c, d, np.zeros(n_rows, dtype=np.int64), np.zeros(n_rows))

    def rows(self, rows: slice) -> Beliefs:
        """A view of some rows."""
        return Beliefs(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))


def groups_of(precision: Array) -> tuple[NDArray[np.int64], NDArray[np.int64], Array]:
    """Rows with equal precisions: an order that keeps them together, the group of every row, the precisions of each
    group.

    Rows are sorted by a hash of their bits and compared with the row before: two patterns that share a hash are told
    apart, at worst a pattern is met more than once.

    >>> groups_of(np.array([[1.0, np.inf], [0.0, 2.0], [1.0, np.inf]]))[1].tolist() in ([0, 1, 0], [1, 0, 1])
    True
    """
    n_rows = len(precision)
    if n_rows == 0 or precision.shape[1] == 0 or (precision == precision[0]).all():
        return np.arange(n_rows), np.zeros(n_rows, dtype=np.int64), precision[:1]
    order = np.argsort(_row_hash(precision), kind="stable")
    sorted_rows = precision[order]
    first = np.concatenate([[True], (sorted_rows[1:] != sorted_rows[:-1]).any(axis=1)])
    group = np.empty(n_rows, dtype=np.int64)
    group[order] = np.cumsum(first) - 1
    return order, group, sorted_rows[first]


def _row_hash(rows: Array) -> NDArray[np.uint64]:
    words = np.ascontiguousarray(rows).view(np.uint64)
    state = np.zeros(len(words), dtype=np.uint64)
    for column in words.T:
        state = (state ^ column) * np.uint64(0x9E3779B97F4A7C15)
        state ^= state >> np.uint64(32)
    return state


def cell_precision(numbers: Array, noise: Noise) -> Array:
    """Precision of every number: 0 where blank."""
    return np.where(np.isnan(numbers), 0.0, noise.precision)
