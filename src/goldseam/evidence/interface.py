"""How further sources take part: experts that predict cells, and witnesses that only find them odd.

| source | protocol | enters as |
|---|---|---|
| G, B, anything in scores | `CellSource` (`prepare`, `predict`) | a component of the pool |
| the field, anything in own units | `UnitExpert` (`given_others`) | the same, through `UnitSource` |
| the tree, anything without predictions | `Witness` (`suspicion`) | a likelihood ratio of its own, through `Statement` |

A witness's suspicion is ranked per column among clean calibration rows. The rank's p-value becomes a likelihood ratio
(1 - a) p^-a, which averages to at most one over clean cells whatever a is; a is learnt per column from rehearsed
damage and halved, because witnesses and experts see the same rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from goldseam.conditional.layout import Layout
from goldseam.conditional.marginals import Floats, Ints, Marginals, Scores
from goldseam.conditional.source import CellPrediction, CellSource
from goldseam.evidence.calibration import conformal_p_values
from goldseam.schema import Blocks

__all__ = ["CellPrediction", "CellSource", "Statement", "UnitExpert", "UnitSource", "Witness", "fit_statement"]

WIDTHS = (0.02, 3.0)  # limits of a width in scores
SHARED = 0.5  # what is left of a witness's exponents
MOST = 0.9
DOUBT = 5.0  # so many damaged cells at which a witness saw nothing are added to those it was shown


@runtime_checkable
class UnitExpert(Protocol):
    """An expert that answers in own units, row by row: the random mixed field does. Mean and variance of every number, and
    the probabilities of all levels side by side, given the other cells of its row that are observed and not withheld."""

    def given_others(
        self, blocks: Blocks, withheld_numbers: Any, withheld_codes: Any
    ) -> tuple[Floats, Floats, Floats]: ...


@dataclass(frozen=True)
class UnitSource:
    """A `UnitExpert` as a `CellSource`: means and standard deviations become scores."""

    expert: UnitExpert
    marginals: Marginals
    layout: Layout

    def prepare(self, blocks: Blocks, scores: Scores) -> Blocks:
        return blocks

    def predict(self, prepared: Blocks, withheld: NDArray[np.bool_], row_of: Ints) -> CellPrediction:
        rows = prepared.take(row_of)
        mean, variance, levels = self.expert.given_others(
            rows, withheld[:, self.layout.number_cells], withheld[:, self.layout.category_cells]
        )
        center, width = self.marginals.scores_around(mean, np.sqrt(variance))
        return CellPrediction(center, np.clip(width, *WIDTHS), levels)


@runtime_checkable
class Witness(Protocol):
    """Anything that finds cells odd, row by row: (n, p) in table order, higher is odder, on any scale."""

    def suspicion(self, blocks: Blocks) -> Floats: ...


@dataclass(frozen=True)
class Statement:
    """A witness with its ranks on clean calibration rows (columns of sorted suspicions) and its exponents a."""

    witness: Witness
    ranks: Floats
    exponents: Floats

    def p_values(self, suspicion: Floats) -> Floats:
        """Per column, the share of clean cells at least as odd."""
        columns = [conformal_p_values(suspicion[:, j], self.ranks[:, j]) for j in range(suspicion.shape[1])]
        return np.stack(columns, axis=1)

    def log_ratio(self, blocks: Blocks) -> Floats:
        """log likelihood ratio damaged : clean of every cell, (1 - a) p^-a."""
        p = self.p_values(self.witness.suspicion(blocks))
        return np.asarray(np.log1p(-self.exponents) - self.exponents * np.log(p))

    def without(self, rows: NDArray[np.bool_], suspicion: Floats) -> Statement:
        """The same witness ranked among other rows: for cross-fitting."""
        return Statement(self.witness, np.sort(suspicion[~rows], axis=0), self.exponents)


def fit_statement(witness: Witness, clean: Floats, hurt: Blocks, changed: NDArray[np.bool_]) -> Statement:
    """Rank a witness on its suspicion of clean rows and learn its exponents, one per column, from hurt ones.

    Under damage p has the density (1 - a) p^-a, so -log p is exponential with mean 1 / (1 - a).
    """
    blank = Statement(witness, np.sort(clean, axis=0), np.zeros(clean.shape[1]))
    strength = np.where(changed, -np.log(blank.p_values(witness.suspicion(hurt))), 0.0).sum(0)
    mean = (strength + DOUBT) / (changed.sum(0) + DOUBT)
    return Statement(witness, blank.ranks, SHARED * np.clip(1.0 - 1.0 / np.maximum(mean, 1.0), 0.0, MOST))
