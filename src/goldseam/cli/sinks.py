"""Tables into files, by suffix, batch by batch; a file appears under its name only when it is complete.

Text formats are appended to a hidden partial file, whose length after every batch goes into the journal: what a kill
left behind is cut off and the run goes on. Columnar formats are in `parts`.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
import polars as pl

from goldseam.atomic import atomic_path
from goldseam.cli.batches import Batch, Changes, Lines
from goldseam.cli.delimited import Limits, Records
from goldseam.cli.dialect import Dialect
from goldseam.cli.parts import PartsSink
from goldseam.cli.sources import DelimitedFile, Inputs, JsonLinesFile, format_of
from goldseam.errors import InputError

__all__ = ["Sink", "all_or_nothing", "open_frames_sink", "open_sink", "save_frame"]


class Sink(Protocol):
    """Takes batches; `size` after each one is what `resume` needs to go on from there."""

    size: int

    def resume(self, size: int) -> None:
        """Forget what was written after a batch that ended with this size."""

    def write(self, batch: Batch, changes: Changes, texts: Mapping[str, pl.Series]) -> None:
        """Write a batch with its changes; `texts` spells the changed cells for text formats."""

    def close(self) -> None:
        """Make the file appear under its name."""

    def release(self) -> None:
        """Let go of the open file; what is unfinished stays for `resume`."""

    def discard(self) -> None:
        """Leave nothing behind."""


# ------------------------------------------------------------------------------------------------------ text


class TextSink:
    """CSV and JSON Lines: bytes appended to a partial file beside the final one."""

    def __init__(self, path: Path, kind: str, dialect: Dialect, header: bytes, names: list[str]) -> None:
        self.path, self.kind, self.dialect, self.names = path, kind, dialect, names
        self.partial = path.with_name(f".{path.name}.partial")
        self.size = 0
        self._header = header
        self._is_done = False
        self._file: IO[bytes] | None = None

    def resume(self, size: int) -> None:
        if not self.partial.exists() and self.path.exists() and self.path.stat().st_size == size:
            self._is_done, self.size = True, size  # the run was stopped after the output got its name
            return
        if not self.partial.exists() or self.partial.stat().st_size < size:
            raise InputError(
                f"The unfinished output {self.partial.name!r} is gone or cut short, so the run cannot be resumed. "
                "Hint: leave out --resume to start again."
            )
        file = self.partial.open("r+b")
        file.truncate(size)
        file.seek(size)
        self._file, self.size = file, size

    def write(self, batch: Batch, changes: Changes, texts: Mapping[str, pl.Series]) -> None:
        if self._file is None:
            self._file = self.partial.open("wb")
        if self.size == 0:
            self._append(self._encoded(self._header), self.dialect.mark)
        self._append(self._encoded(self._body(batch, changes, texts)))
        self._file.flush()
        os.fsync(self._file.fileno())

    def _body(self, batch: Batch, changes: Changes, texts: Mapping[str, pl.Series]) -> bytes:
        if self.kind == "jsonl":
            return json_lines(batch, changes)
        raw = batch.raw
        if isinstance(raw, Records) and raw.dialect.delimiter == self.dialect.delimiter:
            return raw.patched(*_in_order(changes, texts, self.names))
        return as_text(batch, changes, texts, self.dialect)

    def _encoded(self, text: bytes) -> bytes:
        if self.dialect.is_plain_utf8:
            return text
        try:
            return text.decode().encode(self.dialect.encoding)
        except UnicodeEncodeError as error:
            raise InputError(
                f"A restored value holds {error.object[error.start]!r}, which {self.dialect.encoding} cannot write. "
                "Hint: write to .parquet, or convert the input to UTF-8 first."
            ) from error

    def _append(self, text: bytes, mark: bytes = b"") -> None:
        data = gzip.compress(mark + text, 6, mtime=0) if self.path.suffix == ".gz" else mark + text
        assert self._file is not None
        self._file.write(data)
        self.size += len(data)

    def close(self) -> None:
        if self._is_done:
            return
        if self._file is None:
            self._file = self.partial.open("wb")
        if self.size == 0:
            self._append(self._encoded(self._header), self.dialect.mark)
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        os.replace(self.partial, self.path)

    def release(self) -> None:
        if self._file is not None:
            self._file.close()

    def discard(self) -> None:
        self.release()
        self.partial.unlink(missing_ok=True)


class StandardOutput(TextSink):
    """Text to stdout: no partial file, nothing to resume."""

    def __init__(self, kind: str, dialect: Dialect, header: bytes, names: list[str]) -> None:
        super().__init__(Path("stdout"), kind, dialect, header, names)
        self._file = sys.stdout.buffer

    def write(self, batch: Batch, changes: Changes, texts: Mapping[str, pl.Series]) -> None:
        if self.size == 0:
            self._append(self._encoded(self._header), self.dialect.mark)
        self._append(self._encoded(self._body(batch, changes, texts)))
        sys.stdout.buffer.flush()

    def close(self) -> None:
        if self.size == 0:
            self._append(self._encoded(self._header), self.dialect.mark)
        sys.stdout.buffer.flush()

    def release(self) -> None:
        """stdout is not ours to close."""

    def discard(self) -> None:
        """What went down a pipe cannot be called back."""


def _in_order(changes: Changes, texts: Mapping[str, pl.Series], names: list[str]) -> tuple[Any, Any, list[str]]:
    """All changed cells row by row, and by column within a row."""
    columns = [name for name in changes.rows if len(changes.rows[name])]
    if not columns:
        return np.empty(0, np.int64), np.empty(0, np.int64), []
    rows = np.concatenate([changes.rows[name] for name in columns])
    place_of = {name: i for i, name in enumerate(names)}
    places = np.concatenate([np.full(len(changes.rows[name]), place_of[name], np.int64) for name in columns])
    cells = pl.concat([texts[name].fill_null("").rename("text") for name in columns])
    order = np.lexsort((places, rows))
    return rows[order], places[order], cells.gather(order).to_list()


def as_text(batch: Batch, changes: Changes, texts: Mapping[str, pl.Series], dialect: Dialect) -> bytes:
    """A batch as delimited text, without a header."""
    nested = [name for name, dtype in batch.frame.schema.items() if dtype.is_nested() or dtype == pl.Binary]
    if nested:
        raise InputError(f"Column {nested[0]!r} is nested, which CSV cannot hold. Hint: write to .parquet or .jsonl.")
    types = batch.frame.schema
    is_text = {name for name in changes.rows if types[name] == pl.String}
    values = {name: texts[name] if name in is_text else changes.values[name] for name in changes.rows}
    frame = Changes(changes.rows, values).applied(batch.frame)
    out = io.BytesIO()
    frame.write_csv(out, include_header=False, separator=dialect.delimiter, decimal_comma=dialect.decimal == ",")
    return out.getvalue()


def json_lines(batch: Batch, changes: Changes) -> bytes:
    """A batch as JSON Lines; lines without a change are the file's own."""
    if not isinstance(batch.raw, Lines):
        out = io.BytesIO()
        changes.applied(batch.frame).write_ndjson(out)
        return out.getvalue()
    lines = list(batch.raw.data)
    for row, new in _by_row(changes, batch.frame).items():
        lines[row] = json.dumps({**json.loads(lines[row]), **new}, ensure_ascii=False, separators=(",", ":")).encode()
    return b"".join(line + b"\n" for line in lines)


def _by_row(changes: Changes, frame: pl.DataFrame) -> dict[int, dict[str, Any]]:
    found: dict[int, dict[str, Any]] = {}
    types = frame.schema
    for name, rows in changes.rows.items():
        dtype = types[name]
        values = changes.values[name] if dtype == pl.Null else changes.values[name].cast(dtype)
        for row, value in zip(rows.tolist(), values.to_list(), strict=True):
            found.setdefault(row, {})[name] = value
    return found


@contextmanager
def all_or_nothing(sink: Any) -> Iterator[Any]:
    """The sink is closed when the block ends well, and leaves nothing behind when it does not."""
    try:
        yield sink
        sink.close()
    except BaseException:
        sink.discard()
        raise


# ------------------------------------------------------------------------------------------------------ opening


def open_sink(
    output: str, inputs: Inputs, work: Path, types: Mapping[str, Any], markers: Sequence[str] = (),
    limits: Limits | None = None,
) -> Any:  # fmt: skip
    """The sink for a file name; `-` is stdout. `types` are the column types of a columnar output."""
    first = inputs.files[0]
    if output == "-":
        kind = "jsonl" if isinstance(first, JsonLinesFile) else "csv"
        dialect, header = _dialect(Path("-"), kind, first, inputs.names)
        return StandardOutput(kind, dialect, header, inputs.names)
    path = Path(output)
    kind = format_of(path)
    if kind in ("csv", "jsonl"):
        dialect, header = _dialect(path, kind, first, inputs.names)
        return TextSink(path, kind, dialect, header, inputs.names)
    return PartsSink(path, kind, work / "data", types, markers, limits=limits)


class FramesSink(TextSink):
    """Text from whole frames: CSV and JSON Lines with columns of their own."""

    def add(self, frame: pl.DataFrame) -> None:
        """Write the rows of a frame; the first one brings the header."""
        if self._file is None:
            self._file = self.partial.open("wb")
        out = io.BytesIO()
        if self.kind == "jsonl":
            frame.write_ndjson(out)
        else:
            frame.write_csv(out, include_header=self.size == 0, separator=self.dialect.delimiter)
        self._append(self._encoded(out.getvalue()), self.dialect.mark if self.size == 0 else b"")


class StandardFrames(StandardOutput):
    """As `FramesSink`, to stdout."""

    add = FramesSink.add


def open_frames_sink(output: str, inputs: Inputs, work: Path, limits: Limits) -> Any:
    """A sink that takes frames (`add`) in place of batches with changes."""
    first = inputs.files[0]
    if output == "-":
        kind = "jsonl" if isinstance(first, JsonLinesFile) else "csv"
        return StandardFrames(kind, _dialect(Path("-"), kind, first, inputs.names)[0], b"", inputs.names)
    path = Path(output)
    kind = format_of(path)
    if kind in ("csv", "jsonl"):
        return FramesSink(path, kind, _dialect(path, kind, first, inputs.names)[0], b"", inputs.names)
    return PartsSink(path, kind, work / "data", {}, limits=limits)


def save_frame(frame: pl.DataFrame, path: Path) -> None:
    """A whole frame into a file, by suffix; it appears when it is complete."""
    kind = format_of(path)
    with atomic_path(path) as temporary:
        if kind == "parquet":
            frame.write_parquet(temporary)
        elif kind == "arrow":
            frame.write_ipc(temporary)
        elif kind == "csv":
            frame.write_csv(temporary, check_extension=False)
        else:
            frame.write_ndjson(temporary)


def _dialect(path: Path, kind: str, first: Any, names: list[str]) -> tuple[Dialect, bytes]:
    """How the output is written: as the input where it is text too, else UTF-8 with commas."""
    if kind == "jsonl":
        return Dialect(), b""
    base = path.name.removesuffix(".gz")
    delimiter = "\t" if base.endswith((".tsv", ".tab")) else "|" if base.endswith(".psv") else ""
    if isinstance(first, DelimitedFile) and delimiter in ("", first.dialect.delimiter):
        header = first.header if not first.header or first.header.endswith(b"\n") else first.header + b"\n"
        return first.dialect, header
    dialect = Dialect(delimiter=delimiter or ",")
    line = io.BytesIO()
    pl.DataFrame(schema=dict.fromkeys(names, pl.String)).write_csv(line, separator=dialect.delimiter)
    return dialect, line.getvalue()
