"""Where the cells of a row are: numbers and categories in table order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldseam.schema import UNSEEN, Blocks, Schema

__all__ = ["Layout", "layout_of"]


@dataclass(frozen=True)
class Layout:
    """Cell positions (0 .. p - 1, table order) of the columns of the two blocks."""

    number_cells: NDArray[np.int64]
    category_cells: NDArray[np.int64]

    @property
    def n_cells(self) -> int:
        return len(self.number_cells) + len(self.category_cells)

    def join(self, numbers: NDArray[Any], categories: NDArray[Any]) -> NDArray[Any]:
        """Two (n, .) arrays as one (n, p) array in table order."""
        out = np.empty((len(numbers), self.n_cells), dtype=np.result_type(numbers, categories))
        out[:, self.number_cells] = numbers
        out[:, self.category_cells] = categories
        return out

    def unusable(self, blocks: Blocks) -> NDArray[np.bool_]:
        """Cells that cannot be believed whatever the rest says: missing or unseen."""
        return self.join(np.isnan(blocks.numbers), blocks.codes < 0)

    def unseen(self, blocks: Blocks) -> NDArray[np.bool_]:
        """Cells that hold a value the reference never had."""
        return self.join(np.zeros(blocks.numbers.shape, dtype=bool), blocks.codes == UNSEEN)


def layout_of(schema: Schema) -> Layout:
    """The layout of a schema's modelled columns.

    >>> from goldseam.schema import Column, Kind
    >>> layout_of(Schema((Column("c", Kind.BOOLEAN, (False, True)), Column("x", Kind.CONTINUOUS)))).number_cells
    array([1])
    """
    rank = {position: cell for cell, position in enumerate(schema.modelled_positions)}
    numbers = np.array([rank[i] for i in schema.number_positions], dtype=np.int64)
    categories = np.array([rank[i] for i in schema.category_positions], dtype=np.int64)
    return Layout(numbers, categories)
