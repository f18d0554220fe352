"""Which experts pay for their cost: what each adds to the others on calibration rows that none of them has seen.

A pool is learnt on one half of the masked calibration rows with all experts and with each left out, and scored on the
other half: the gain is the mean log density per cell that is lost without the expert. Experts that gain less than
`LEAST_GAIN` are dropped, the poorest first, until every one that is left pays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from goldseam.conditional.marginals import Marginals, Scores
from goldseam.conditional.source import CellPrediction
from goldseam.evidence.pool import fit_pool

__all__ = ["choose_experts", "mean_log_density"]

LEAST_GAIN: Final = 0.01


def mean_log_density(
    scores: Scores, row_of: np.ndarray, answers: Sequence[CellPrediction], marginals: Marginals
) -> float:
    """Mean log ratio per cell of a pool of experts to the columns' marginals, learnt on every second row, on the others."""
    learn = np.arange(len(row_of)) % 2 == 0
    pool = fit_pool(scores, row_of[learn], [answer.take(learn) for answer in answers], marginals)
    parts = pool.log_ratio(scores, row_of[~learn], [answer.take(~learn) for answer in answers])
    return float(np.concatenate([part.ravel() for part in parts]).mean())


def choose_experts(
    scores: Scores, row_of: np.ndarray, answers: Sequence[CellPrediction], marginals: Marginals, keep: int
) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """The experts that pay, and the gain of each when it was last weighed. The first `keep` stay whatever they gain."""
    chosen = list(range(len(answers)))
    gains = [float("nan")] * len(answers)
    while len(chosen) > 1:
        everyone = mean_log_density(scores, row_of, [answers[i] for i in chosen], marginals)
        for i in chosen:
            rest = [answers[k] for k in chosen if k != i]
            gains[i] = everyone - mean_log_density(scores, row_of, rest, marginals)
        poorest = min((i for i in chosen if i >= keep), key=lambda i: gains[i], default=None)
        if poorest is None or gains[poorest] >= LEAST_GAIN:
            break
        chosen.remove(poorest)
    return tuple(chosen), tuple(gains)
