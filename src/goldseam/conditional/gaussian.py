"""The Gaussian expert G: normal scores and one-hot levels, one shrunk covariance, exact conditioning for any mask (E1, E8.1).

| equation | function |
|---|---|
| S = (1 - a) cov + a mean(diag) I, a of Ledoit and Wolf (2004) | `shrunk_covariance` |
| x_j given the believed: mean x_j - q_j / P_jj, variance 1 / P_jj, q = P x, P theirs | `kernels.gaussian_cells` |
| a level's probability: from its ties (`ties`); in earlier files its conditional mean, clipped | `Gaussian.predict` |

The one-hot levels stay among the dimensions: numbers are predicted from them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from goldseam.conditional import kernels
from goldseam.conditional.layout import Layout, check_lengths, check_offsets
from goldseam.conditional.marginals import Floats, Ints, Marginals, Scores
from goldseam.conditional.source import CellPrediction
from goldseam.conditional.ties import Ties
from goldseam.errors import InputError
from goldseam.schema import Blocks

__all__ = ["Gaussian", "fit_gaussian", "shrunk_covariance"]

MOST_DIMENSIONS = 2000  # 1,000 take half a minute to fit and 22 ms a row; cost grows with the third power
CLIP = 4.0  # scores beyond this say "outside", not how far
LEAST = 0.01  # least probability of a level (E8.1)


@dataclass(frozen=True)
class Gaussian:
    """A mean and a precision over the dimensions of all cells, in table order."""

    layout: Layout
    mean: Floats
    precision: Floats
    starts: Ints
    height: Floats  # of the ones in one-hot blocks, per category column
    ties: Ties | None = None  # earlier files and tables without categories have none

    def check_state(self) -> None:
        """Every cell owns its dimensions, every number one."""
        check_offsets("dimensions", self.starts, self.layout.n_cells, self.mean.size)
        check_lengths("dimensions of numbers", (len(self.layout.number_cells),), np.flatnonzero(self._one_wide()))
        check_lengths("precision", (self.mean.size, self.mean.size), self.precision)
        check_lengths("heights", (len(self.layout.category_cells),), self.height)
        if self.ties is not None:
            self.ties.check_for(self.layout, self.n_levels)

    @property
    def n_levels(self) -> Ints:
        return np.diff(self.starts)[self.layout.category_cells]

    def _one_wide(self) -> NDArray[np.bool_]:
        return np.asarray(np.diff(self.starts)[self.layout.number_cells] == 1)

    def prepare(self, blocks: Blocks, scores: Scores) -> tuple[Floats, Ints]:
        """Centred dimensions of some rows, and what the ties read of them."""
        read = np.empty((len(scores), 0), dtype=np.int64) if self.ties is None else self.ties.values(scores)
        return self._centred(scores), read

    def _centred(self, scores: Scores) -> Floats:
        """Dimensions of some rows; zero where nothing was observed."""
        x = np.tile(self.mean, (len(scores), 1))
        for j, cell in enumerate(self.layout.number_cells):
            z = np.clip(scores.z[:, j], -CLIP, CLIP)
            x[:, self.starts[cell]] = np.where(np.isnan(z), self.mean[self.starts[cell]], z)
        for j, cell in enumerate(self.layout.category_cells):
            first, last = self.starts[cell], self.starts[cell + 1]
            hot = scores.codes[:, j, None] == np.arange(last - first)
            x[:, first:last] = np.where(scores.codes[:, j, None] >= 0, hot * self.height[j], self.mean[first:last])
        return x - self.mean

    def predict(self, prepared: tuple[Floats, Ints], withheld: NDArray[np.bool_], row_of: Ints) -> CellPrediction:
        """Every cell given the believed others, exactly."""
        x, values = prepared
        asked = np.ones(self.layout.n_cells, dtype=bool)
        if self.ties is not None:
            asked[self.layout.category_cells] = False
        mean, variance = kernels.gaussian_cells(x, self.precision, self.starts, withheld, row_of, asked)
        mean += self.mean
        at = self.starts[self.layout.number_cells]
        levels = self._levels(mean) if self.ties is None else self.ties.levels(values, withheld, row_of)
        return CellPrediction(mean[:, at], np.sqrt(variance[:, at]), levels)

    def _levels(self, mean: Floats) -> Floats:
        parts = [np.empty((len(mean), 0))]
        for j, cell in enumerate(self.layout.category_cells):
            share = np.clip(mean[:, self.starts[cell] : self.starts[cell + 1]] / self.height[j], LEAST, None)
            parts.append(share / share.sum(1, keepdims=True))
        return np.concatenate(parts, axis=1)


def fit_gaussian(scores: Scores, marginals: Marginals, layout: Layout) -> Gaussian:
    """Learn G from reference rows. Missing cells stand at their column's mean, which shrinks their correlations."""
    sizes = np.ones(layout.n_cells, dtype=np.int64)
    sizes[layout.category_cells] = marginals.n_levels
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    if starts[-1] > MOST_DIMENSIONS:
        raise InputError(
            f"The Gaussian expert takes at most {MOST_DIMENSIONS:,} dimensions, one per number and one per level of a "
            f"category; got {int(starts[-1]):,}. Hint: restore groups of columns that belong together one by one, or leave "
            "columns out."
        )
    height = np.ones(len(layout.category_cells))
    mean = np.zeros(int(starts[-1]))
    for j, cell in enumerate(layout.category_cells):
        frequency = marginals.frequency[marginals.level_offsets[j] : marginals.level_offsets[j + 1]]
        height[j] = 1.0 / np.sqrt(max(np.sum(frequency * (1.0 - frequency)), 1e-3))
        mean[starts[cell] : starts[cell + 1]] = frequency * height[j]
    blank = Gaussian(layout, mean, np.empty((0, 0)), starts, height)
    x = blank._centred(scores)
    offset = x.mean(0)
    precision = np.linalg.inv(shrunk_covariance(x - offset))
    return Gaussian(layout, mean + offset, np.ascontiguousarray((precision + precision.T) / 2.0), starts, height)


def shrunk_covariance(x: Floats) -> Floats:
    """Ledoit and Wolf's covariance of centred rows: towards the mean variance, as far as the sampling error says."""
    n, dims = x.shape
    cov = x.T @ x / n
    level = np.trace(cov) / dims
    square = x * x
    noise = (np.sum(square.T @ square) / n - np.sum(cov * cov)) / n
    distance = np.sum(cov * cov) - dims * level * level
    share = 1.0 if distance <= 0.0 else float(np.clip(noise / distance, 0.0, 1.0))
    share = max(share, 1e-4)
    return np.asarray((1.0 - share) * cov + share * level * np.eye(dims))
