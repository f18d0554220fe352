"""Columnar outputs: one part per batch in a working folder, joined into one file when all are there."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl

from goldseam.atomic import atomic_path
from goldseam.cli.batches import Batch, Changes
from goldseam.cli.delimited import Limits
from goldseam.errors import InputError
from goldseam.seam import defused

__all__ = ["PartsSink", "joined"]

FEWEST_ROWS: Final = 1 << 10
MOST_ROWS: Final = 1 << 17


class PartsSink:
    """Takes batches, or whole frames (`add`); a part that is there need not be written again."""

    def __init__(
        self, path: Path, kind: str, folder: Path, types: Mapping[str, Any], markers: Sequence[str] = (),
        *, limits: Limits | None = None, formula_safe: bool = False,
    ) -> None:  # fmt: skip
        self.path, self.kind, self.folder, self.types, self.markers = path, kind, folder, dict(types), markers
        self.limits, self.formula_safe = limits or Limits(), formula_safe
        self.size = 0
        folder.mkdir(parents=True, exist_ok=True)

    def resume(self, size: int) -> None:
        self.size = size

    def write(self, batch: Batch, changes: Changes, texts: Mapping[str, pl.Series]) -> None:
        base = typed(batch.frame, self.types, batch.decimal, changes, self.markers)
        self.add(changes.applied(base))

    def add(self, frame: pl.DataFrame) -> None:
        """Write one part."""
        with atomic_path(self.part(self.size)) as temporary:
            frame.write_ipc(temporary, compression="lz4")
        self.size += 1

    def part(self, number: int) -> Path:
        """The file of a part."""
        return self.folder / f"{number:08d}.arrow"

    def close(self) -> None:
        self.copy(self.path, self.kind, formula_safe=self.formula_safe)

    def copy(self, path: Path, kind: str, *, formula_safe: bool) -> None:
        """All parts so far as one file of some kind; it appears when it is complete."""
        parts = [self.part(number) for number in range(self.size)]
        with atomic_path(path) as temporary:
            joined(parts, temporary, kind, self.types, self.limits.group_bytes, formula_safe=formula_safe)

    def release(self) -> None:
        """Nothing is open between two parts."""

    def discard(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def joined(
    parts: list[Path],
    target: Path,
    kind: str,
    types: Mapping[str, Any],
    group_bytes: int,
    *,
    formula_safe: bool = False,
) -> None:
    """Write the parts, one after the other, as one file; on request with text that no spreadsheet runs as a formula."""
    frames = pl.scan_ipc(parts, glob=False) if parts else pl.LazyFrame(schema=dict(types))
    rows = _rows_per_group(parts[0], group_bytes) if parts else MOST_ROWS
    if formula_safe:
        frames = frames.with_columns(defused([name for name, dtype in types.items() if dtype == pl.String]))
    if kind == "parquet":
        frames.sink_parquet(target, row_group_size=rows, compression="zstd", compression_level=1, engine="streaming")
    elif kind == "arrow":
        frames.sink_ipc(target, record_batch_size=rows, compression="lz4", engine="streaming")
    elif kind == "csv":
        lists = [name for name, dtype in types.items() if dtype == pl.List]
        flat = frames.with_columns(pl.col(name).cast(pl.List(pl.String)).list.join(" ") for name in lists)
        flat.sink_csv(target, engine="streaming", check_extension=False)
    else:
        frames.sink_ndjson(target, engine="streaming")


def _rows_per_group(part: Path, group_bytes: int) -> int:
    """Rows per row group of the joined file: long rows make short groups, since several are in memory at once."""
    head = pl.read_ipc(part)
    return int(max(FEWEST_ROWS, min(MOST_ROWS, group_bytes * head.height // max(1, head.estimated_size()))))


def typed(
    frame: pl.DataFrame, types: Mapping[str, Any], decimal: str, changes: Changes, markers: Sequence[str]
) -> pl.DataFrame:
    """A batch with the column types of the output; a cell that does not fit must be among the changed ones."""
    have = frame.schema
    casts = [_cast(name, have[name], dtype, decimal) for name, dtype in types.items() if have[name] != dtype]
    if not casts:
        return frame
    new = frame.with_columns(casts)
    for name in types:
        lost = new[name].is_null() & frame[name].is_not_null()
        if lost.any():
            _check_nothing_lost(name, frame[name], lost, changes, markers)
    return new


def _cast(name: str, have: Any, want: Any, decimal: str) -> pl.Expr:
    cell = pl.col(name)
    if have == pl.String and want.is_numeric():
        cell = cell.str.strip_chars()
        cell = cell.str.replace(",", ".", literal=True) if decimal == "," else cell
    if have == pl.String and want == pl.Boolean:
        word = cell.str.to_lowercase()
        return pl.when(word.is_in(["true", "false", "1", "0"])).then(word.is_in(["true", "1"])).alias(name)
    return cell.cast(want, strict=False)


def _check_nothing_lost(name: str, cells: pl.Series, lost: pl.Series, changes: Changes, markers: Sequence[str]) -> None:
    at = lost.arg_true().to_numpy()
    kept = ~np.isin(at, changes.rows.get(name, np.empty(0, np.int64)))
    texts = cells.gather(at[kept]).cast(pl.String)
    odd = texts.filter((texts.str.strip_chars() != "") & ~texts.is_in(list(markers))) if len(texts) else texts
    if len(odd):
        raise InputError(
            f"Column {name!r} is written as numbers, but it holds {odd[0]!r}, which was not replaced. "
            f"Hint: --missing {odd[0]!r} if it means an empty cell, or write to .csv, which keeps it as it is."
        )
