"""Readings that repeat: dead, stuck and clipped channels make rows alike, which sparse-region tests cannot see.

A channel that fails at a constant gives the same readings in many rows, in several columns at once. For value v of column
j, seen m times in n distinct rows where the column's values are typically seen e times (median over distinct values):

- (R-1) evidence w = log+(m / e) log(n / m): a value that repeats more than its like, and is not simply the common one;
- (R-2) T of a row: the sum of its evidence over the columns without the largest, so that no single column (many clean
  columns are full of zeros) can condemn a row;
- (R-3) per class z = (T - median) / max(1.4826 MAD, log 4 log(n / 4)) with median and MAD of the core of (G-16 a); the cut
  is in the middle of the first gap of at least 1.5 that ends above z = 2. A failure parts the class in two: without such
  a gap, with more than 40 % of the class above it, or with more than 0.6 times as many rows in between (z > 1.5, below the
  gap) as above it, repeating is the nature of the class. Then no training row is suspicious and the cut for new rows is
  1.5 scales above the largest T of the class. A negative score (cut - T) / scale lowers the field.

=====  ===============================================
(R-1)  `learn_repetition`
(R-2)  `Repetition.evidence`
(R-3)  `_class_cut`, `Repetition.scores`
=====  ===============================================
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from goldseam.errors import ModelFileError
from goldseam.margin.thresholds import FEWEST_ROWS, MAD_TO_SD, core_size

__all__ = ["LARGEST_SHARE", "Repetition", "learn_repetition"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FIRST_SUSPECT = 2.0
CLEAR_GAP = 1.5
LARGEST_SHARE = 0.4
"""Where more rows of a class are suspicious than this, what makes them so is its nature."""
IN_BETWEEN = 1.5
MOST_IN_BETWEEN = 0.6


@dataclass(frozen=True)
class Repetition:
    """Per column the values that repeat (ascending) and their evidence; per class the cut and the scale of T."""

    values: tuple[Floats, ...]
    weights: tuple[Floats, ...]
    cuts: Floats
    scales: Floats

    def check_for(self, n_columns: int, n_classes: int) -> None:
        """A model file whose values are of other columns or classes is refused."""
        sizes = [values.shape for values in self.values]
        fits = len(sizes) == n_columns and sizes == [weights.shape for weights in self.weights]
        if not fits or (self.cuts.shape, self.scales.shape) != ((n_classes,), (n_classes,)):
            raise ModelFileError(f"The model file's repetition must be of {n_columns} columns and {n_classes} classes.")

    def evidence(self, rows: Floats) -> Floats:
        """T of (R-2); a missing cell or a value that does not repeat adds nothing."""
        total, largest = np.zeros(len(rows)), np.zeros(len(rows))
        for column, values, weights in zip(rows.T, self.values, self.weights, strict=True):
            if values.size:
                at = np.minimum(np.searchsorted(values, column), values.size - 1)
                found = np.where(values[at] == column, weights[at], 0.0)
                total += found
                np.maximum(largest, found, out=largest)
        return total - largest

    def scores(self, rows: Floats) -> Floats:
        """Score of each row against the cut of each class, shape (classes, rows): negative means suspicious."""
        evidence = self.evidence(rows)
        return (self.cuts[:, None] - evidence) / self.scales[:, None]


def learn_repetition(rows: Floats, codes: Ints, n_classes: int) -> Repetition:
    """Which values repeat, and where suspicion begins in each class; `rows` are distinct.

    >>> rng = np.random.default_rng(0)
    >>> rows = rng.normal(size=(200, 5))
    >>> rows[:20, 2:] = 0.0
    >>> found = learn_repetition(rows, np.zeros(200, dtype=np.int64), 1)
    >>> int(np.sum(found.scores(rows)[0] < 0))
    20
    """
    tables = [_column_table(column) for column in rows.T]
    values, weights = tuple(t[0] for t in tables), tuple(t[1] for t in tables)
    found = Repetition(values, weights, np.full(n_classes, np.inf), np.ones(n_classes))
    evidence = found.evidence(rows)
    cuts = [_class_cut(evidence[codes == code], len(rows)) for code in range(n_classes)]
    return Repetition(values, weights, np.array([c[0] for c in cuts]), np.array([c[1] for c in cuts]))


def _column_table(column: Floats) -> tuple[Floats, Floats]:
    seen = column[~np.isnan(column)]
    values, counts = np.unique(seen, return_counts=True)
    if values.size in (0, seen.size):
        return np.empty(0), np.empty(0)
    weights = np.log(np.maximum(counts / np.median(counts), 1.0)) * np.log(seen.size / counts)
    kept = weights > 0
    return values[kept], weights[kept]


def _class_cut(evidence: Floats, n_rows: int) -> tuple[float, float]:
    """The cut on T and its scale for one class; infinite for a class with few rows."""
    ordered = np.sort(evidence)
    if len(ordered) < FEWEST_ROWS:
        return math.inf, 1.0
    core = ordered[: core_size(ordered)]
    center = float(np.median(core))
    scale = max(MAD_TO_SD * float(np.median(np.abs(core - center))), math.log(4.0) * math.log(max(n_rows, 16) / 4.0))
    z = (ordered - center) / scale
    wide = np.flatnonzero((z[1:] >= FIRST_SUSPECT) & (np.diff(z) >= CLEAR_GAP))
    if wide.size == 0 or not _parts(z, int(wide[0]) + 1):
        return float(ordered[-1]) + CLEAR_GAP * scale, scale
    return float(ordered[wide[0]] + ordered[wide[0] + 1]) / 2, scale


def _parts(z: Floats, below: int) -> bool:
    """Whether the gap after the `below` lowest rows parts a minority from the class, with few rows on the way to it."""
    above = len(z) - below
    between = int(np.sum(z[:below] > IN_BETWEEN))
    return above <= LARGEST_SHARE * len(z) and between <= MOST_IN_BETWEEN * above
