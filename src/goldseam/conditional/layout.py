"""Where the cells of a row are: numbers and categories in table order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldseam.errors import InputError, ModelFileError
from goldseam.model_file import check_indices
from goldseam.schema import UNSEEN, Blocks, Kind, Schema

__all__ = ["Layout", "check_lengths", "check_offsets", "layout_of"]


@dataclass(frozen=True)
class Layout:
    """Cell positions (0 .. p - 1, table order) of the columns of the two blocks, and which numbers are whole (earlier
    files do not say)."""

    number_cells: NDArray[np.int64]
    category_cells: NDArray[np.int64]
    whole: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, dtype=bool))

    def check_state(self) -> None:
        """Every cell is named once."""
        cells = np.concatenate([self.number_cells, self.category_cells])
        check_indices("cells", cells, 0, cells.size)
        if np.unique(cells).size != cells.size:
            raise ModelFileError(f"The model file's cells must each be named once; {cells.size} are named.")
        if self.whole.size:
            check_lengths("whole numbers", self.number_cells.shape, self.whole)

    def check_blocks(self, blocks: Blocks, n_levels: NDArray[np.int64]) -> None:
        """Rows must have the columns and levels that were learnt: compiled loops follow the codes."""
        expected = (len(self.number_cells), len(self.category_cells))
        got = (blocks.numbers.shape[1], blocks.codes.shape[1])
        if got != expected:
            raise InputError(
                f"Rows must have {expected[0]} numbers and {expected[1]} categories; got {got[0]} and {got[1]}. "
                "Hint: encode them with the schema of the reference."
            )
        if (blocks.codes >= n_levels).any():
            at = int(np.flatnonzero((blocks.codes >= n_levels).any(0))[0])
            raise InputError(
                f"Codes of category column {at} must lie below its {n_levels[at]} levels; got {blocks.codes[:, at].max()}. "
                "Hint: encode them with the schema of the reference."
            )

    @property
    def n_cells(self) -> int:
        return len(self.number_cells) + len(self.category_cells)

    def join(self, numbers: NDArray[Any], categories: NDArray[Any]) -> NDArray[Any]:
        """Two (n, .) arrays as one (n, p) array in table order."""
        out = np.empty((len(numbers), self.n_cells), dtype=np.result_type(numbers, categories))
        out[:, self.number_cells] = numbers
        out[:, self.category_cells] = categories
        return out

    def numbers_only(self, flags: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Flags (n, m) of number cells as (n, p) in table order, false for categories."""
        out = np.zeros((len(flags), self.n_cells), dtype=bool)
        out[:, self.number_cells] = flags
        return out

    def unusable(self, blocks: Blocks) -> NDArray[np.bool_]:
        """Cells that cannot be believed whatever the rest says: missing or unseen."""
        return self.join(np.isnan(blocks.numbers), blocks.codes < 0)

    def unseen(self, blocks: Blocks) -> NDArray[np.bool_]:
        """Cells that hold a value the reference never had."""
        return self.join(np.zeros(blocks.numbers.shape, dtype=bool), blocks.codes == UNSEEN)


def check_offsets(what: str, offsets: NDArray[Any], n_parts: int, total: int, least: int = 1) -> None:
    """Offsets of a model file cut `total` values into `n_parts` stretches of at least `least`.

    >>> check_offsets("levels", np.array([0, 2, 5]), 2, 5)
    >>> check_offsets("levels", np.array([0, 2, 9]), 2, 5)
    Traceback (most recent call last):
    goldseam.errors.ModelFileError: The model file's levels must cut 5 values into 2 parts; got offsets from 0 to 9.
    """
    check_indices(what, offsets, 0, np.iinfo(np.int64).max)
    good = offsets.shape == (n_parts + 1,) and offsets[0] == 0 and offsets[-1] == total
    if not good or (np.diff(offsets) < least).any():
        ends = f"offsets from {offsets[0]} to {offsets[-1]}" if offsets.size else "none"
        raise ModelFileError(f"The model file's {what} must cut {total} values into {n_parts} parts; got {ends}.")


def check_lengths(what: str, expected: tuple[int, ...], *arrays: NDArray[Any]) -> None:
    """Arrays of a model file must have one shape.

    >>> check_lengths("tails", (2,), np.zeros(3))
    Traceback (most recent call last):
    goldseam.errors.ModelFileError: The model file's tails must have shape (2,); got (3,).
    """
    for array in arrays:
        if array.shape != expected:
            raise ModelFileError(f"The model file's {what} must have shape {expected}; got {array.shape}.")


def layout_of(schema: Schema) -> Layout:
    """The layout of a schema's modelled columns.

    >>> from goldseam.schema import Column, Kind
    >>> layout_of(Schema((Column("c", Kind.BOOLEAN, (False, True)), Column("x", Kind.CONTINUOUS)))).number_cells
    array([1])
    """
    rank = {position: cell for cell, position in enumerate(schema.modelled_positions)}
    numbers = np.array([rank[i] for i in schema.number_positions], dtype=np.int64)
    categories = np.array([rank[i] for i in schema.category_positions], dtype=np.int64)
    return Layout(numbers, categories, np.array([column.kind is Kind.INTEGER for column in schema.numbers], dtype=bool))
