"""Experts as one density: a mixture over experts and widths, weighted per column by what held on calibration rows.

| equation | function |
|---|---|
| kappa_j = log sum_e,s w_jes N(z; m_e, (s w_e)^2) / N(z; 0, 1) | `Pool.log_ratio` |
| w: EM on calibration rows under drawn masks, shrunk towards the weights of all columns | `fit_weights` |
| besides the experts: their average weighted by 1 / width^2, and the column's marginal | `stack` |

The scales let a column's tails be as heavy as they are; the marginal keeps a cell that no expert foresaw from being
damning by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from goldseam.conditional.layout import check_lengths, check_offsets
from goldseam.conditional.marginals import Floats, Ints, Marginals, Scores
from goldseam.conditional.source import CellPrediction
from goldseam.evidence import kernels

__all__ = ["Pool", "fit_pool", "fit_weights", "stack"]

SCALES = (0.35, 0.7, 1.0, 1.5, 2.5, 5.0)
SHRINK = 20.0  # weights of all columns count as so many rows
LEAST_WEIGHT = 0.02  # of the weight, spread evenly over the components
ROUNDS = 50


@dataclass(frozen=True)
class Pool:
    """Weights of the components per column; `frequency` of the levels with their offsets."""

    number_weights: Floats
    level_weights: Floats
    frequency: Floats
    offsets: Ints

    def check_state(self) -> None:
        """Levels lie within their array, and every category has weights."""
        check_offsets("levels of the pool", self.offsets, len(self.level_weights), self.frequency.size)

    def check_for(self, columns: int, experts: int) -> None:
        """As many weights as columns and experts need."""
        stacked = experts + (experts > 1)
        check_lengths("weights of numbers", (columns, stacked * len(SCALES) + 1), self.number_weights)
        check_lengths("weights of levels", (len(self.level_weights), experts + 1), self.level_weights)

    def log_ratio(self, scores: Scores, row_of: Ints, predictions: Sequence[CellPrediction]) -> tuple[Floats, Floats]:
        """kappa of numbers and of categories."""
        mean, width = stack(predictions)
        scales = np.array(SCALES)
        numbers = kernels.pool_log_ratio(
            scores.z, scores.low, scores.high, row_of, mean, width, scales, self.number_weights
        )
        shares = self.levels(predictions)
        return numbers, kernels.level_log_ratio(scores.codes, row_of, shares, self.frequency, self.offsets)

    def levels(self, predictions: Sequence[CellPrediction]) -> Floats:
        """Pooled probabilities of all levels."""
        per_level = np.repeat(self.level_weights, np.diff(self.offsets), axis=0)
        out = np.tile(per_level[:, -1] * self.frequency, (len(predictions[0].levels), 1))
        for expert, prediction in enumerate(predictions):
            out += per_level[:, expert] * prediction.levels
        return out

    def moments(self, predictions: Sequence[CellPrediction]) -> tuple[Floats, Floats]:
        """Mean and width of the pooled scores of numbers."""
        mean, width = stack(predictions)
        return kernels.pool_moments(mean, width, np.array(SCALES), self.number_weights)


def stack(predictions: Sequence[CellPrediction]) -> tuple[Floats, Floats]:
    """Means and widths of all experts, and of their average if there are several: (E, n, m)."""
    means = [prediction.mean for prediction in predictions]
    widths = [prediction.width for prediction in predictions]
    if len(predictions) > 1:
        precision = np.sum([1.0 / width**2 for width in widths], axis=0)
        means.append(np.sum([mean / width**2 for mean, width in zip(means, widths, strict=True)], axis=0) / precision)
        widths.append(np.sqrt(len(predictions) / precision))
    return np.stack(means), np.stack(widths)


def fit_pool(scores: Scores, row_of: Ints, predictions: Sequence[CellPrediction], marginals: Marginals) -> Pool:
    """Learn the weights from rows the experts have not seen."""
    mean, width = stack(predictions)
    parts = kernels.pool_components(scores.z, scores.low, scores.high, row_of, mean, width, np.array(SCALES))
    offsets = marginals.level_offsets
    levels = [_level_parts(scores.codes[row_of, j], j, predictions, marginals) for j in range(len(offsets) - 1)]
    level_parts = np.stack(levels, axis=1) if levels else np.ones((len(row_of), 0, len(predictions) + 1))
    return Pool(fit_weights(parts), fit_weights(level_parts), marginals.frequency, offsets)


def _level_parts(codes: np.ndarray, j: int, predictions: Sequence[CellPrediction], marginals: Marginals) -> Floats:
    """Probability of the observed level under each expert and the marginal, over its frequency; ones where unobserved."""
    first = marginals.level_offsets[j]
    at = first + np.maximum(codes, 0)
    rows = np.arange(len(codes))
    ratios = [prediction.levels[rows, at] / marginals.frequency[at] for prediction in predictions]
    out = np.stack([*ratios, np.ones(len(codes))], axis=1)
    out[codes < 0] = 1.0
    return out


def fit_weights(parts: Floats) -> Floats:
    """Weights (columns, components) that make parts (rows, columns, components) likely: EM, shrunk to the common ones.

    >>> int(fit_weights(np.array([[[4.0, 1.0]], [[3.0, 1.0]]])).argmax())
    0
    """
    rows, columns, size = parts.shape
    common = np.full(size, 1.0 / size)
    if parts.size == 0:
        return np.tile(common, (columns, 1))
    parts = np.maximum(parts, 1e-300)
    flat = parts.reshape(-1, size)
    for _ in range(ROUNDS):
        mixed = flat * common
        common = (mixed / mixed.sum(1, keepdims=True)).mean(0)
    common = (1.0 - LEAST_WEIGHT) * common + LEAST_WEIGHT / size
    weights = np.tile(common, (columns, 1))
    for _ in range(ROUNDS):
        mixed = parts * weights
        weights = ((mixed / mixed.sum(2, keepdims=True)).sum(0) + SHRINK * common) / (rows + SHRINK)
    return weights
