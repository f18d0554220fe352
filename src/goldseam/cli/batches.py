"""What readers hand over and writers take: some rows of a file, in order, with the way back to its bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from goldseam.cli.delimited import BadLine, Records

__all__ = ["Batch", "Lines", "Mark"]


@dataclass(frozen=True)
class Mark:
    """A place between two batches: file, position in it (bytes of text or rows), its line, and rows so far."""

    file: int = 0
    position: int = 0
    line: int = 1
    row: int = 0


@dataclass(frozen=True)
class Lines:
    """The lines of a JSON Lines block, as they are in the file."""

    data: tuple[bytes, ...]
    bad: tuple[BadLine, ...] = ()
    n_blank: int = 0


class Raw(Protocol):
    """What is kept of the file besides the cells."""

    @property
    def bad(self) -> tuple[BadLine, ...]: ...
    @property
    def n_blank(self) -> int: ...


@dataclass(frozen=True)
class Batch:
    """Consecutive rows: the cells as the file holds them (`frame`), where they begin and where the next ones do."""

    frame: pl.DataFrame
    first_row: int
    after: Mark
    raw: Records | Lines | None = None
    decimal: str = "."

    def __len__(self) -> int:
        return self.frame.height

    @property
    def bad(self) -> tuple[BadLine, ...]:
        """Lines that were left out because they do not fit."""
        return self.raw.bad if self.raw is not None else ()

    def line_of(self, row: int) -> int | None:
        """Number of the line of the file on which a row of this batch begins, for text files without broken lines."""
        if not isinstance(self.raw, Records):
            return None
        begin = int(self.raw.row_spans[0][row])
        return self.after.line - self.raw.data[begin:].count(b"\n")


@dataclass(frozen=True)
class Changes:
    """New values for some cells of a batch: one entry per column that changes, its rows rising."""

    rows: dict[str, NDArray[np.int64]]
    values: dict[str, pl.Series]

    def __len__(self) -> int:
        return sum(len(rows) for rows in self.rows.values())

    def applied(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The frame with the new values; columns without any are the same."""
        have = set(frame.columns)
        new = [_scattered(frame[name], rows, self.values[name]) for name, rows in self.rows.items() if name in have]
        return frame.with_columns(new) if new else frame


def _scattered(column: pl.Series, rows: NDArray[np.int64], values: pl.Series) -> pl.Series:
    cast: Any = column.dtype if column.dtype != pl.Null else values.dtype
    return column.cast(cast).scatter(rows, values.cast(cast)).alias(column.name)
