"""From scores to promises: conformal p-values of rows and cells, and the cell threshold.

| promise | how |
|---|---|
| at most `alarm_rate` of clean rows are flagged | rank among calibration rows, scored by a pool that has not seen them |
| a cell's p-value | rank among all clean calibration cells |
| which cells of a flagged row are suspect | the threshold with the best F1 in rehearsal |
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from goldseam.conditional import kernels
from goldseam.conditional.marginals import Floats

__all__ = ["Calibration", "best_threshold", "conformal_p_values"]


@dataclass(frozen=True)
class Calibration:
    """Sorted scores of clean calibration rows and cells, and the score from which a cell of a flagged row is suspect."""

    row_scores: Floats
    cell_scores: Floats
    cell_threshold: float

    def row_p_values(self, scores: Floats) -> Floats:
        """Share of clean rows at least as odd."""
        return conformal_p_values(scores, self.row_scores)

    def cell_p_values(self, scores: Floats) -> Floats:
        """Share of clean cells at least as odd; 1 where nothing was observed."""
        return conformal_p_values(scores, self.cell_scores)


def conformal_p_values(scores: Floats, calibration: Floats) -> Floats:
    """(1 + how many of the sorted calibration scores are at least as high) / (1 + how many there are).

    >>> conformal_p_values(np.array([0.0, 2.5, 9.0]), np.array([1.0, 2.0, 3.0]))
    array([1.  , 0.5 , 0.25])
    """
    place = np.empty(scores.size, dtype=np.int64)
    kernels.places(-calibration[::-1], -scores.ravel(), place)
    return np.asarray((2.0 + place.reshape(scores.shape)) / (1.0 + calibration.size))


def best_threshold(scores: Floats, truth: NDArray[np.bool_]) -> float:
    """The score above which calling a cell damaged gives the best F1; 0 (even odds) when nothing was damaged.

    >>> best_threshold(np.array([3.0, 2.0, 1.0, 0.0]), np.array([True, True, False, False]))
    1.5
    """
    if not truth.any():
        return 0.0
    order = np.argsort(-scores, kind="stable")
    hits = np.cumsum(truth[order])
    f1 = 2.0 * hits / (np.arange(1, truth.size + 1) + truth.sum())
    at = int(f1.argmax())
    following = scores[order[min(at + 1, truth.size - 1)]]
    return float((scores[order[at]] + following) / 2.0)
