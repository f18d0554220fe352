"""Where the sparse rows of a class begin: thresholds on the sorted log neighbour sums.

=======  ==================================================================
(G-4)    `literal_kept`: the widest gap anywhere, as printed
(G-15)   `gap_kept`: the widest gap above 40 % of the rows
(G-16)   `auto_kept`: a robust core, its nearest gap, guarded by (G-15) and `_is_significant`
(G-17)   `cut`: tau between the last row kept and the first one not kept
(G-18)   `core_scale`: robust scale of the rows kept
G5.5     `quantile_cut`: the widest quantile step, for very many rows
=======  ==================================================================
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "MAD_TO_SD",
    "MANY_ROWS",
    "Cut",
    "auto_kept",
    "core_scale",
    "core_size",
    "cut",
    "find_cut",
    "gap_kept",
    "literal_kept",
    "quantile_cut",
]

Floats = NDArray[np.float64]

MAD_TO_SD = 1.4826
MANY_ROWS = 10_000
LOWEST_KEPT = 0.4
MOST_KEPT = 0.9
GAP_PER_SHARE = 1.4
SMALLEST_SCALE = 1e-3


@dataclass(frozen=True)
class Cut:
    """tau, the scale of ell below it, and the number of rows below it."""

    threshold: float
    scale: float
    n_kept: int


def find_cut(ell: Floats, rule: str) -> Cut:
    """The cut of one class by the rule `'auto'`, `'gap'` or `'literal'`; `ell` in any order."""
    ordered = np.sort(ell)
    if rule != "literal" and len(ordered) > MANY_ROWS:
        return quantile_cut(ordered)
    kept = {"auto": auto_kept, "gap": gap_kept, "literal": literal_kept}[rule](ordered)
    return cut(ordered, kept)


def literal_kept(ordered: Floats, lowest: int = 1) -> int:
    """(G-4): rows below the widest gap, searched from `lowest` upwards.

    >>> literal_kept(np.array([0.0, 5.0, 6.0, 7.0, 9.0]))
    1
    """
    return _widest_gap(ordered, max(1, lowest), len(ordered) - 1)


def gap_kept(ordered: Floats) -> int:
    """(G-15): rows below the widest gap at or above 40 %.

    >>> gap_kept(np.array([0.0, 5.0, 6.0, 7.0, 9.0]))
    4
    """
    n = len(ordered)
    return _widest_gap(ordered, math.ceil(LOWEST_KEPT * n), n - 1) if n > 1 else n


def auto_kept(ordered: Floats) -> int:
    """(G-16): a core grown by median and MAD, moved to a near gap; the gap rule where that is no clear gap."""
    n = len(ordered)
    if n < 6:
        return n
    core = core_size(ordered)
    if core < n:
        reach = max(2, math.floor(0.1 * n))
        low, high = max(n // 2, core - reach), min(n - 1, core + reach)
        core = _widest_gap(ordered, low, high) if high > low else core
    fallback = gap_kept(ordered)
    clear = core < fallback and core >= math.ceil(LOWEST_KEPT * n)
    clear = clear and ordered[core] - ordered[core - 1] >= 0.5 * MAD_TO_SD * _mad(ordered[:core])
    for kept in (core, fallback) if clear else (fallback,):
        if _is_significant(ordered, kept):
            return kept
    return _widest_gap(ordered, math.ceil(MOST_KEPT * n), n - 1)


def _is_significant(ordered: Floats, kept: int) -> bool:
    """A gap that costs a share q of the class, above a tenth, must be 1.4 q robust scales wide.

    Beyond (G-16): without it a class of several clusters loses its sparser ones at a gap of no meaning.
    """
    share = 1 - kept / len(ordered)
    if kept >= math.ceil(MOST_KEPT * len(ordered)):
        return True
    return bool(ordered[kept] - ordered[kept - 1] >= GAP_PER_SHARE * share * core_scale(ordered, kept))


def core_size(ordered: Floats) -> int:
    """(G-16 a): how many of the lowest values hang together, by median and MAD."""
    size = max(4, len(ordered) // 2)
    for _ in range(20):
        core = ordered[:size]
        grown = int(np.searchsorted(ordered, np.median(core) + 3 * MAD_TO_SD * _mad(core), side="right"))
        if grown == size or grown < 4:
            break
        size = grown
    return size


def _widest_gap(ordered: Floats, low: int, high: int) -> int:
    """The s in {low..high} with the largest ordered[s] - ordered[s - 1] (counting rows from one)."""
    return low + int(np.argmax(ordered[low : high + 1] - ordered[low - 1 : high]))


def _mad(values: Floats) -> float:
    return float(np.median(np.abs(values - np.median(values))))


def core_scale(ordered: Floats, kept: int) -> float:
    """(G-18)."""
    return max(MAD_TO_SD * _mad(ordered[:kept]), SMALLEST_SCALE)


def cut(ordered: Floats, kept: int) -> Cut:
    """(G-17) and (G-18) for the `kept` lowest rows."""
    scale = core_scale(ordered, kept)
    if kept < len(ordered):
        return Cut(float(ordered[kept - 1] + ordered[kept]) / 2, scale, kept)
    return Cut(max(float(np.median(ordered)) + 3 * scale, float(ordered[-1]) + 1e-9), scale, kept)


def quantile_cut(ordered: Floats) -> Cut:
    """G5.5: the middle of the widest step between 121 quantiles from 40 % up, the last step left out."""
    steps = np.quantile(ordered, np.linspace(LOWEST_KEPT, 1.0, 121))
    widest = int(np.argmax(np.diff(steps)[:-1]))
    threshold = float(steps[widest] + steps[widest + 1]) / 2
    kept = int(np.searchsorted(ordered, threshold, side="right"))
    return Cut(threshold, core_scale(ordered, kept), kept)
