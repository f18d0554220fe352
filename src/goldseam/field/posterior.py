"""What the field says about every cell of a table (F9).

| spec | where |
|---|---|
| F9.1 soft output | `FieldPosterior.features` |
| F9.2 intervals, sets of states | `FieldPosterior.intervals`, `FieldPosterior.credible_states` |
| (F-39) pooling over draws | `pool` |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from goldseam.errors import ParameterError
from goldseam.field.emission import Atoms, atom_quantiles, atom_weights

__all__ = ["FieldPosterior", "Pooled", "pool"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class FieldPosterior:
    """The posterior of every cell.

    `mean` and `variance` (rows, numbers) are in the table's own units; `category_probabilities` maps a category's name
    to (rows, states); `corruption_probability` maps every modelled column to (rows,): the probability that the observed
    value is wrong, NaN where it is undefined (blank cells; numbers without gross-error mode). `settled` is False for
    rows whose beliefs were still moving when the sweeps ended, `change` says by how much; `unseen` marks categories the
    reference never had. `level_means` has, for every category whose levels are ordered, the mean over its levels (of
    their values, or of their places where they are words).
    """

    numbers: tuple[str, ...]
    mean: Array
    variance: Array
    category_probabilities: dict[str, Array]
    corruption_probability: dict[str, Array]
    settled: NDArray[np.bool_]
    change: Array
    unseen: NDArray[np.bool_]
    level_means: dict[str, Array]
    _shape: Any = None

    def __len__(self) -> int:
        return len(self.mean)

    def features(self) -> Array:
        """Means and category probabilities side by side: the soft output (F9.1)."""
        return np.column_stack([self.mean, *self.category_probabilities.values()])

    def intervals(self, level: float = 0.9) -> tuple[Array, Array]:
        """Low and high ends for every number, in the table's units; equal ends where the cell is taken as it is.

        With empirical marginals these are quantiles of the weighted training values, and x -+ z sigma where the
        background holds most of the weight (F9.2).
        """
        if not 0 < level < 1:
            raise ParameterError(f"level must lie between 0 and 1; got {level}. Hint: .9 for 90 % intervals.")
        from scipy.stats import norm

        half = float(norm.ppf(0.5 + level / 2)) * np.sqrt(self.variance)
        low, high = self.mean - half, self.mean + half
        if self._shape is None:
            return low, high
        return self._shape.intervals(low, high, level)

    def credible_states(self, column: str, level: float = 0.9) -> NDArray[np.bool_]:
        """The smallest set of states of a category that reaches the level, per row."""
        p = self.category_probabilities[column]
        order = np.argsort(-p, axis=1, kind="stable")
        ranked = np.take_along_axis(p, order, axis=1)
        inside = np.cumsum(ranked, axis=1) - ranked < level
        out = np.zeros(p.shape, dtype=bool)
        np.put_along_axis(out, order, inside, axis=1)
        return out


@dataclass(frozen=True)
class AtomShape:
    """What is needed to turn beliefs about numbers into quantiles of their atoms."""

    atoms: Atoms
    centre: Array
    spread: Array
    x: Array
    precision: Array
    genuine: Array
    offset: Array
    scale: Array

    def intervals(self, low: Array, high: Array, level: float) -> tuple[Array, Array]:
        """Ends by the atoms where they hold most of the weight, as given elsewhere."""
        low, high = low.copy(), high.copy()
        tail = (1.0 - level) / 2.0
        for s in range(low.shape[1]):
            by_atoms = ~np.isinf(self.precision[:, s]) & (self.genuine[:, s] > 0.5)
            if not by_atoms.any():
                continue
            w = atom_weights(
                self.atoms, s, self.centre[by_atoms, s], self.spread[by_atoms, s], self.x[by_atoms, s],
                self.precision[by_atoms, s],
            )  # fmt: skip
            for ends, probability in ((low, tail), (high, 1.0 - tail)):
                ends[by_atoms, s] = self.offset[s] + self.scale[s] * atom_quantiles(self.atoms, s, w, probability)
        return low, high


@dataclass(frozen=True)
class Pooled:
    """An estimate over several draws: its mean, total variance, and the share that is due to the missing
    information."""

    estimate: Array
    variance: Array
    missing_share: Array


def pool(estimates: ArrayLike, variances: ArrayLike) -> Pooled:
    """(F-39), Rubin's rules: pool estimates (draws, ...) with their own variances.

    >>> pooled = pool([1.0, 2.0, 3.0], [0.1, 0.1, 0.1])
    >>> float(pooled.estimate), round(float(pooled.variance), 3)
    (2.0, 1.433)
    """
    theta, within = np.asarray(estimates, dtype=float), np.asarray(variances, dtype=float)
    if theta.shape != within.shape or theta.ndim == 0 or len(theta) < 2:
        raise ParameterError(
            f"pool needs estimates and variances of the same shape with at least 2 draws; got shapes {theta.shape} and "
            f"{within.shape}. Hint: one entry per table that `sample` returned."
        )
    between = (1 + 1 / len(theta)) * theta.var(axis=0, ddof=1)
    total = within.mean(axis=0) + between
    share = np.divide(between, total, out=np.zeros_like(np.asarray(total)), where=np.asarray(total) > 0)
    return Pooled(theta.mean(axis=0), np.asarray(total), np.asarray(share))
