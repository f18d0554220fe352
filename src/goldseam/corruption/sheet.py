"""What a simulator sees of a table: one matrix, one column per modelled column, and the reference beside it.

Numbers are in their own units, categories are codes; NaN is a missing cell in both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from goldseam.errors import ParameterError
from goldseam.schema import MISSING, Blocks, Kind, Schema

__all__ = ["Sheet", "from_blocks", "to_blocks"]

Matrix = NDArray[np.float64]
FEW_LEVELS = 20  # a numeric column with no more distinct values is a lattice (P1)


@dataclass(frozen=True)
class Sheet:
    """Cells to damage (n, d) and the reference (r, d) that says what is usual.

    `n_levels` is the number of states of a category, 0 for a number; `whole` is True for integer columns.
    """

    names: tuple[str, ...]
    values: Matrix
    reference: Matrix
    n_levels: NDArray[np.int64]
    whole: NDArray[np.bool_]

    @property
    def is_number(self) -> NDArray[np.bool_]:
        """True for columns of numbers."""
        return self.n_levels == 0

    @cached_property
    def low(self) -> Matrix:
        """Smallest reference value of each column."""
        return np.fmin.reduce(self.reference, axis=0)

    @cached_property
    def high(self) -> Matrix:
        """Largest reference value of each column."""
        return np.fmax.reduce(self.reference, axis=0)

    @cached_property
    def sd(self) -> Matrix:
        """Standard deviation of each column of the reference, 0 where nothing was observed."""
        seen = ~np.isnan(self.reference)
        n = np.maximum(seen.sum(axis=0), 1)
        centred = np.where(seen, self.reference - np.where(seen, self.reference, 0).sum(axis=0) / n, 0)
        return np.sqrt((centred**2).sum(axis=0) / n)

    def observed(self, column: int) -> Matrix:
        """Reference values of a column without the gaps, in row order."""
        values = self.reference[:, column]
        return values[~np.isnan(values)]

    def lattice(self, column: int) -> Matrix:
        """Distinct reference values of a column."""
        return np.unique(self.observed(column))

    def columns(self, positions: Sequence[int] | NDArray[np.int64]) -> Sheet:
        """Some of the columns, in the order given."""
        chosen = np.asarray(positions, dtype=np.int64)
        return replace(
            self,
            names=tuple(self.names[i] for i in chosen),
            values=self.values[:, chosen],
            reference=self.reference[:, chosen],
            n_levels=self.n_levels[chosen],
            whole=self.whole[chosen],
        )

    def position(self, name: str | int) -> int:
        """Where a column is, by name or number."""
        if isinstance(name, (int, np.integer)) and 0 <= name < len(self.names):
            return int(name)
        if name in self.names:
            return self.names.index(str(name))
        shown = ", ".join(map(repr, self.names[:8])) + (", ..." if len(self.names) > 8 else "")
        raise ParameterError(f"There is no column {name!r} to damage. Hint: the table has {shown}.")


def from_blocks(blocks: Blocks, schema: Schema, reference: Blocks | None = None) -> Sheet:
    """The modelled columns in table order; the reference is the table itself unless given."""
    columns = [schema.columns[i] for i in schema.modelled_positions]
    values = _matrix(blocks, schema)
    return Sheet(
        names=tuple(column.name for column in columns),
        values=values,
        reference=values if reference is None else _matrix(reference, schema),
        n_levels=np.array([len(column.levels) for column in columns], dtype=np.int64),
        whole=np.array([column.kind is Kind.INTEGER and not column.levels for column in columns], dtype=bool),
    )


def to_blocks(values: Matrix, schema: Schema) -> Blocks:
    """Back to numbers and codes."""
    place = {position: j for j, position in enumerate(schema.modelled_positions)}
    numbers = values[:, [place[i] for i in schema.number_positions]]
    codes = values[:, [place[i] for i in schema.category_positions]]
    return Blocks(np.ascontiguousarray(numbers), np.where(np.isnan(codes), MISSING, codes).astype(np.int32))


def _matrix(blocks: Blocks, schema: Schema) -> Matrix:
    values = np.empty((len(blocks), len(schema.modelled_positions)))
    place = {position: j for j, position in enumerate(schema.modelled_positions)}
    values[:, [place[i] for i in schema.number_positions]] = blocks.numbers
    codes = np.where(blocks.codes == MISSING, np.nan, blocks.codes.astype(np.float64))
    values[:, [place[i] for i in schema.category_positions]] = codes
    return values
