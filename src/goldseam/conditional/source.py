"""What every expert answers: each cell given the believed others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from goldseam.conditional.marginals import Floats, Ints, Scores
from goldseam.schema import Blocks

__all__ = ["CellPrediction", "CellSource"]


@dataclass(frozen=True)
class CellPrediction:
    """Numbers (n, m): mean and width of the normal score. Levels (n, all levels): probabilities, side by side."""

    mean: Floats
    width: Floats
    levels: Floats

    def take(self, rows: Any) -> CellPrediction:
        return CellPrediction(self.mean[rows], self.width[rows], self.levels[rows])


@runtime_checkable
class CellSource(Protocol):
    """An expert for the clean value of a cell.

    `prepare` is called once per table and may return anything; `predict` is called once per round of beliefs with the
    cells `withheld` (r, p) of the rows `row_of` (r,) of that table, and answers for every cell, withheld or not, from
    the cells of its row that are neither withheld nor missing, nor the cell itself. It must work row by row: a row's
    answer may not depend on the others.
    """

    def prepare(self, blocks: Blocks, scores: Scores) -> Any: ...

    def predict(self, prepared: Any, withheld: NDArray[np.bool_], row_of: Ints) -> CellPrediction: ...
