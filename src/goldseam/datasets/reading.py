"""Text files into typed columns."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from goldseam.schema import Kind

__all__ = ["as_table", "read_fields", "read_numbers", "read_text"]

_DTYPES = {Kind.CONTINUOUS: pl.Float64, Kind.INTEGER: pl.Int64}


def read_text(path: Path) -> str:
    """The whole text of a file, compressed or not."""
    if path.suffix == ".gz":
        with gzip.open(path, "rt", encoding="utf-8", newline="") as stream:
            return stream.read()
    return path.read_text(encoding="utf-8")


def read_fields(
    path: Path, separator: str | None = ",", skip: int = 0, quote: str = '"', *, strip: bool = True
) -> list[list[str]]:
    """The fields of every line that is not empty; `separator=None` is any white space."""
    lines = read_text(path).splitlines()[skip:]
    if separator is None:
        return [line.split() for line in lines if line.strip()]
    rows = csv.reader(lines, delimiter=separator, quotechar=quote, skipinitialspace=strip)
    return [[cell.strip() if strip else cell for cell in row] for row in rows if row]


def read_numbers(path: Path, n_columns: int) -> NDArray[np.float64]:
    """A table of blank- or line-separated numbers."""
    return np.array(read_text(path).split(), dtype=np.float64).reshape(-1, n_columns)


def as_table(
    rows: Iterable[Sequence[str | None]],
    kinds: Mapping[str, Kind],
    levels: Mapping[str, Sequence[str]],
    missing: str | None,
) -> pl.DataFrame | NDArray[np.float64]:
    """Text fields as columns of their kinds; an array when all of them are continuous."""
    text = pl.DataFrame(list(rows), schema=dict.fromkeys(kinds, pl.String), orient="row")
    if missing is not None:
        text = text.with_columns(pl.when(pl.all() != missing).then(pl.all()))
    table = text.cast({name: _dtype(kind, levels.get(name)) for name, kind in kinds.items()})
    return np.ascontiguousarray(table.to_numpy()) if set(kinds.values()) == {Kind.CONTINUOUS} else table


def _dtype(kind: Kind, levels: Sequence[str] | None) -> Any:
    return pl.Enum(levels) if levels else _DTYPES.get(kind, pl.String)
