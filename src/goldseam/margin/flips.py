"""How many labels are wrong, judged where the classifier is sure: the choice of `loss_strength='auto'`.

Wrong labels are as frequent far from the boundary as near it, classes that merely overlap are not. So the share of rows on
the wrong side, among the half of the trusted rows (g > 0) with the largest margins |f|, is about the flip rate where
labels are wrong, and small where classes overlap. Above `MANY_FLIPS` the loss counts four times as much: a row on the
wrong side then loses its trust whatever its surroundings say. 0.1 and 4 were chosen on breast cancer and digits data.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from goldseam.margin.machines import best_class

__all__ = ["MANY_FLIPS", "STRONGER", "flip_rate"]

Floats = NDArray[np.float64]

MANY_FLIPS = 0.1
STRONGER = 4.0


def flip_rate(scores: Floats, codes: NDArray[np.int64], field: Floats, weights: Floats) -> float:
    """Weighted share of wrong sides among the surer half of the trusted rows; scores as in `margin_loss`.

    >>> scores = np.array([[-3.0], [-2.0], [-0.1], [0.1], [2.0], [3.0]])
    >>> flip_rate(scores, np.array([0, 0, 1, 0, 1, 0]), np.ones(6), np.ones(6))
    0.3333333333333333
    """
    ranked = np.sort(scores, axis=1)
    sure = np.abs(scores[:, 0]) if scores.shape[1] == 1 else ranked[:, -1] - ranked[:, -2]
    chosen = best_class(scores)
    trusted = np.flatnonzero(field > 0)
    if trusted.size == 0:
        return 0.0
    half = trusted[np.argsort(-sure[trusted], kind="stable")[: (trusted.size + 1) // 2]]
    return float(np.sum(weights[half] * (chosen[half] != codes[half])) / np.sum(weights[half]))
