"""What damage looks like before a row is seen (E-6): how often, how many cells, in runs or scattered, with what values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from goldseam.conditional.layout import Layout
from goldseam.conditional.marginals import Floats, Ints, Scores
from goldseam.errors import ParameterError

__all__ = ["Prior", "slab_ratios"]


@dataclass(frozen=True)
class Prior:
    """The row prior. Weights need not be those of any one table: they say what is thought possible.

    A row is clean, or has scattered damage at one of `rates`, or damage in runs along the columns. The damaged cells of
    a row hold values of one kind: `kinds` are the mixes (uniform, marginal, wide) a kind may be, and `scatter_kinds`,
    `segment_kinds` how likely each is. Mean runs are the shares `runs` of the columns. On a `grid` rehearsals hurt boxes.

    >>> Prior().clean
    0.5
    """

    clean: float = 0.5
    segment: float = 0.2
    rates: tuple[float, ...] = (0.03, 0.1, 0.3)
    rate_weights: tuple[float, ...] = (0.3, 0.5, 0.2)
    kinds: tuple[tuple[float, float, float], ...] = ((0.1, 0.85, 0.05), (0.8, 0.1, 0.1), (0.1, 0.1, 0.8))
    scatter_kinds: tuple[float, ...] = (0.4, 0.4, 0.2)
    segment_kinds: tuple[float, ...] = (0.2, 0.6, 0.2)
    runs: tuple[float, float] = (0.1, 0.3)
    first: float = 0.1
    starts: float = 1.0
    order: tuple[int, ...] | None = None
    grid: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if not (self.clean > 0.0 and self.segment > 0.0 and self.clean + self.segment < 1.0):
            raise ParameterError(
                f"clean and segment must be positive and sum to less than 1; got {self.clean} and {self.segment}. "
                "Hint: what is left of 1 is scattered damage."
            )
        pairs = {
            "rate_weights": (self.rate_weights, self.rates),
            "scatter_kinds": (self.scatter_kinds, self.kinds),
            "segment_kinds": (self.segment_kinds, self.kinds),
        }
        for name, (weights, parts) in pairs.items():
            if len(weights) != len(parts) or not parts:
                raise ParameterError(f"{name} must hold {max(len(parts), 1)} weights, one each; got {len(weights)}.")

    def arrays(self, n_cells: int) -> tuple[float, Floats, Floats, Floats, Floats, Ints]:
        """The prior as the kernels take it: clean, scatter (rates, kinds), rates, segment, runs, order."""
        scatter = (1.0 - self.clean - self.segment) * np.outer(self.rate_weights, self.scatter_kinds)
        runs = np.array(
            [max(1.5, self.runs[0] * n_cells), max(2.0, self.runs[1] * n_cells), self.first, self.starts / n_cells]
        )
        order = np.arange(n_cells) if self.order is None else np.asarray(self.order, dtype=np.int64)
        if sorted(order.tolist()) != list(range(n_cells)):
            raise ParameterError(
                f"order must name each of the {n_cells} modelled columns once; got {len(order)} entries. "
                "Hint: positions count the modelled columns only, from 0."
            )
        segment = self.segment * np.asarray(self.segment_kinds)
        return self.clean, scatter, np.asarray(self.rates), segment, np.minimum(runs, [np.inf, np.inf, 1.0, 0.5]), order


def slab_ratios(scores: Scores, layout: Layout, prior: Prior) -> Floats:
    """Damaged / marginal likelihood of every cell under each kind of damage, (kinds, n, p) (E8.2)."""
    even = layout.join(scores.even, scores.code_even)
    far = layout.join(scores.far, scores.code_even)
    return np.stack([uniform * even + marginal + wide * far for uniform, marginal, wide in prior.kinds])
