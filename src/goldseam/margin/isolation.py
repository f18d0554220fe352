"""Readings that lie apart from all others of their column: many of them in one row are a failure, however mild each is.

A failed sensor moves all of its columns at once. Where its severity varies, the failed rows form no group of their own and
their neighbour sums no gap; yet column by column their readings lie beyond where all others end.

- (I-1) Isolated values of a column: from the middle half outwards, those beyond the first gap that is at least half the
  quartile range wide and log(n) / r times the scale of the tail, where r of n values lie beyond it. The scale is that of an
  exponential tail whose w = max(r, sqrt n) values before the gap span as much: span / log(1 + w / r). A column without
  quartile range has no isolated values.
- (I-2) T of a row: the number of its isolated values less one, so that no single column can condemn a row.
- (I-3) The cut on T: in one population the more isolated values, the fewer rows, so the distribution function of T is
  concave. Where it falls 0.6 / sqrt(n) or more below its least concave majorant, a second population begins at the largest
  fall. This is asked within each class and, for classes too small to tell, of all rows together. It is asked only of
  classes that no gap of the neighbour sums has parted, and where more than 40 % of a class lie beyond the cut, lying
  apart is its nature.

=====  =================================
(I-1)  `_upper_limit`
(I-2)  `Isolation.evidence`
(I-3)  `_second_population`, `_class_cut`
=====  =================================
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from goldseam.errors import ModelFileError
from goldseam.margin.repetition import LARGEST_SHARE
from goldseam.margin.thresholds import concave_drop

__all__ = ["Isolation", "learn_isolation"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TAIL = 0.25
WIDE = 0.5
SECOND = 0.6
"""Geometric counts, each 0.85 times as frequent as the one before, reach this in one of twenty samples (n = 60)."""
PER_READING = 4.0
"""Scales of the field that one reading more or less is worth: T parts two populations, it does not grade them."""


@dataclass(frozen=True)
class Isolation:
    """Per column the limits beyond which values are isolated; per class the cut on T (infinite: none)."""

    low: Floats
    high: Floats
    cuts: Floats

    def check_for(self, n_columns: int, n_classes: int) -> None:
        """A model file whose limits are of other columns or classes is refused."""
        if (self.low.shape, self.high.shape, self.cuts.shape) != ((n_columns,), (n_columns,), (n_classes,)):
            raise ModelFileError(f"The model file's isolation must be of {n_columns} columns and {n_classes} classes.")

    def evidence(self, rows: Floats) -> Floats:
        """T of (I-2); a missing cell adds nothing."""
        isolated = np.sum((rows < self.low) | (rows > self.high), axis=1)
        return np.maximum(isolated - 1.0, 0.0)

    def scores(self, rows: Floats) -> Floats:
        """Score of each row against the cut of each class, shape (classes, rows): negative means suspicious."""
        return PER_READING * (self.cuts[:, None] - self.evidence(rows))


def learn_isolation(rows: Floats, codes: Ints, unparted: NDArray[np.bool_]) -> Isolation:
    """The limits of all columns, and the cuts of the `unparted` classes; `rows` are distinct.

    >>> rng = np.random.default_rng(0)
    >>> rows = rng.uniform(size=(200, 12))
    >>> rows[:30, 4:] = rng.uniform(1.5, 4.0, size=(30, 1))
    >>> found = learn_isolation(rows, np.zeros(200, dtype=np.int64), np.array([True]))
    >>> np.flatnonzero(found.scores(rows)[0] < 0).tolist() == list(range(30))
    True
    """
    high = np.array([_upper_limit(column) for column in rows.T])
    low = -np.array([_upper_limit(-column) for column in rows.T])
    found = Isolation(low, high, np.full(len(unparted), math.inf))
    evidence = found.evidence(rows)
    for code in np.flatnonzero(unparted):
        found.cuts[code] = _class_cut(evidence[codes == code], evidence)
    return found


def _upper_limit(column: Floats) -> float:
    """(I-1), upper side: the middle of the gap, infinite where there is none."""
    ordered = np.sort(column[~np.isnan(column)])
    n = len(ordered)
    if n < 4:
        return math.inf
    low, high = np.quantile(ordered, (TAIL, 1 - TAIL))
    kept = np.arange(math.ceil((1 - TAIL) * n), n)
    beyond = n - kept
    before = np.minimum(np.maximum(beyond, math.ceil(math.sqrt(n))), kept - 1)
    tail = (ordered[kept - 1] - ordered[kept - 1 - before]) / np.log1p(before / beyond)
    wide = ordered[kept] - ordered[kept - 1] >= np.maximum(WIDE * (high - low), math.log(n) / beyond * tail)
    if low == high or not wide.any():
        return math.inf
    first = kept[np.argmax(wide)]
    return float(ordered[first - 1] + ordered[first]) / 2


def _class_cut(evidence: Floats, everywhere: Floats) -> float:
    """The cut of a class, from its own rows or, failing that, from all rows."""
    cut = _second_population(evidence)
    if math.isinf(cut):
        cut = _second_population(everywhere)
    return cut if np.mean(evidence > cut) <= LARGEST_SHARE else math.inf


def _second_population(evidence: Floats) -> float:
    """(I-3): where a second population begins, infinite where there is one only."""
    share = np.cumsum(np.bincount(evidence.astype(np.int64))) / len(evidence)
    drop = concave_drop(np.arange(len(share), dtype=np.float64), share)
    last = int(np.argmax(drop))
    return last + 0.5 if math.sqrt(len(evidence)) * drop[last] >= SECOND else math.inf
