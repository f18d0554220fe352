"""Where the sparse rows of a class begin: thresholds on the sorted log neighbour sums.

=======  ==================================================================
(G-4)    `literal_kept`: the widest gap anywhere, as printed
(G-15)   `gap_kept`: the widest gap above 40 % of the rows
(G-16)   `auto_kept`: a robust core, its nearest gap, guarded by (G-15), `_is_significant` and `_has_second_hump`
(G-17)   `cut`: tau between the last row kept and the first one not kept
(G-18)   `core_scale`: robust scale of the rows kept
G5.5     `quantile_cut`: the widest quantile step, for very many rows
beyond   `hangs_together`: whether any row lies beyond the reach of the core
=======  ==================================================================
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "FEWEST_ROWS",
    "HUMP",
    "MAD_TO_SD",
    "MANY_ROWS",
    "Cut",
    "auto_kept",
    "concave_drop",
    "core_scale",
    "core_size",
    "cut",
    "find_cut",
    "gap_kept",
    "hangs_together",
    "hump_statistic",
    "literal_kept",
    "parts",
    "quantile_cut",
]

Floats = NDArray[np.float64]

FEWEST_ROWS = 20
"""Below this many distinct rows a class has no field (G9)."""
MAD_TO_SD = 1.4826
MANY_ROWS = 10_000
LOWEST_KEPT = 0.4
MOST_KEPT = 0.95
GAP_PER_SHARE = 1.4
SHORT_TAIL = 2.0
HUMP = 0.95
"""`hump_statistic` of the upper 60 % of normal samples exceeds this in one of twenty, whatever their number."""
FAR = 1.5
SMALLEST_HUMP = 0.1
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
    """(G-16): a core grown by median and MAD, moved to a near gap; the gap rule where that is no clear gap.

    Beyond (G-16): what is kept must look like one population. Several failures at different distances leave several
    gaps, of which the widest is seldom the first; where rows of a second hump would be kept, the cut falls to the core.
    """
    n = len(ordered)
    if n < 6:
        return n
    core = _core_at_gap(ordered)
    kept = _clearest_gap(ordered, core)
    return core if _has_second_hump(ordered, core, kept) else kept


def _core_at_gap(ordered: Floats) -> int:
    """(G-16 a, b)."""
    n, core = len(ordered), core_size(ordered)
    reach = max(2, math.floor(0.1 * n))
    low, high = max(n // 2, core - reach), min(n - 1, core + reach)
    return _widest_gap(ordered, low, high) if core < n and high > low else core


def _clearest_gap(ordered: Floats, core: int) -> int:
    """(G-16 c); where no gap is significant, at most the sparsest 5 % are cut off, and none where the tail is short.

    Short is a tail that ends 2 robust scales above the median, where a hundred normal values reach 2.5: nothing sticks out.
    """
    n, fallback = len(ordered), gap_kept(ordered)
    clear = core < fallback and core >= math.ceil(LOWEST_KEPT * n)
    clear = clear and ordered[core] - ordered[core - 1] >= 0.5 * MAD_TO_SD * _mad(ordered[:core])
    for kept in (core, fallback) if clear else (fallback,):
        if _is_significant(ordered, kept):
            return kept
    if ordered[-1] - np.median(ordered) <= SHORT_TAIL * core_scale(ordered, n):
        return n
    return _widest_gap(ordered, min(math.ceil(MOST_KEPT * n), n - 1), n - 1)


def _has_second_hump(ordered: Floats, core: int, kept: int) -> bool:
    """Whether the rows between core and cut are many, far from the core, and more than the tail of one population."""
    n = len(ordered)
    lowest = math.ceil(LOWEST_KEPT * n)
    if core < lowest or kept - core < SMALLEST_HUMP * n:
        return False
    distance = float(np.median(ordered[core:kept]) - ordered[core - 1])
    return distance >= FAR * core_scale(ordered, core) and hump_statistic(ordered[lowest:kept]) >= HUMP


def hump_statistic(ordered: Floats) -> float:
    """sqrt(m) times the largest drop of the distribution function below its least concave majorant.

    Beyond its mode a single population has a falling density, so a concave distribution function, and this stays small.

    >>> hump_statistic(np.array([0.0, 1.0, 2.0, 4.0])), round(hump_statistic(np.array([0.0, 5.0, 6.0, 7.0])), 3)
    (0.0, 0.762)
    """
    share = np.arange(len(ordered)) / max(len(ordered) - 1, 1)
    return math.sqrt(len(ordered)) * float(np.max(concave_drop(ordered, share)))


def concave_drop(values: Floats, share: Floats) -> Floats:
    """How far a distribution function (`share` at ascending `values`) lies below its least concave majorant."""
    corners = [0]
    for i in range(1, len(values)):
        while len(corners) > 1 and not _turns_down(values, share, corners[-2], corners[-1], i):
            corners.pop()
        corners.append(i)
    return np.interp(values, values[corners], share[corners]) - share


def _turns_down(x: Floats, y: Floats, a: int, b: int, c: int) -> bool:
    return bool((y[b] - y[a]) * (x[c] - x[a]) > (y[c] - y[a]) * (x[b] - x[a]))


def _is_significant(ordered: Floats, kept: int) -> bool:
    """A gap that costs a share q of the class, more than a twentieth, and is 1.4 q robust scales wide, and log(n) / (n q).

    Beyond (G-16): without the first a class of several clusters loses its sparser ones at a gap of no meaning; the second
    is how wide the widest gap of an exponential tail is by chance.
    """
    n = len(ordered)
    if not parts(n, kept):
        return False
    share = 1 - kept / n
    width = max(GAP_PER_SHARE * share, math.log(n) / (n * share))
    return bool(ordered[kept] - ordered[kept - 1] >= width * core_scale(ordered, kept))


def parts(n_rows: int, kept: int) -> bool:
    """Whether a cut takes more than the sparsest twentieth of a class."""
    return kept < math.ceil(MOST_KEPT * n_rows)


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


def hangs_together(ordered: Floats) -> bool:
    """Whether the core of (G-16 a) takes in all rows.

    >>> hangs_together(np.arange(9.0)), hangs_together(np.append(np.arange(9.0), 90.0))
    (True, False)
    """
    return core_size(ordered) == len(ordered)


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
