"""Tables in files, by suffix, in batches of rows: CSV, TSV, JSON Lines (also .gz), Parquet, Arrow/Feather, stdin.

Every reader gives batches that are a pure function of where they begin, so that a run can be resumed; rows keep their
order; nothing is dropped without a word (`Batch.bad`).
"""

from __future__ import annotations

import glob
import io
import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Protocol

import polars as pl

from goldseam.cli.batches import Batch, Lines, Mark
from goldseam.cli.delimited import BadLine, Limits, blocks, read_header
from goldseam.cli.dialect import Dialect, sniff
from goldseam.cli.streams import Utf8Stream, read_head
from goldseam.errors import InputError, ParameterError

__all__ = ["FORMATS", "Inputs", "Reading", "format_of", "open_inputs"]

FORMATS: Final = {
    ".csv": "csv", ".tsv": "csv", ".txt": "csv", ".tab": "csv", ".psv": "csv",
    ".jsonl": "jsonl", ".ndjson": "jsonl",
    ".parquet": "parquet", ".pq": "parquet",
    ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow",
}  # fmt: skip
TEXT_FORMATS: Final = ("csv", "jsonl")


@dataclass(frozen=True)
class Reading:
    """What the user says about how the files are written."""

    format: str = "auto"
    encoding: str = "auto"
    delimiter: str = "auto"
    decimal: str = "auto"
    has_header: bool = True


def format_of(path: Path, wanted: str = "auto") -> str:
    """csv, jsonl, parquet or arrow.

    >>> format_of(Path("a.csv.gz")), format_of(Path("b.feather")), format_of(Path("-"), "jsonl")
    ('csv', 'arrow', 'jsonl')
    """
    if wanted != "auto":
        return wanted
    suffix = Path(path.name.removesuffix(".gz")).suffix.lower()
    if suffix not in FORMATS or (path.suffix == ".gz" and FORMATS[suffix] not in TEXT_FORMATS):
        raise InputError(
            f"File {path.name!r} has a suffix that names no table format; known are {', '.join(FORMATS)} "
            "(and .gz after a text format). Hint: give it such a suffix; an input may be told by --format csv."
        )
    return FORMATS[suffix]


class File(Protocol):
    """One table file."""

    path: Path
    names: list[str]

    def batches(self, limits: Limits, start: Mark, every: int = 1) -> Iterator[Batch]:
        """The rows from a mark on; of every so many batches the first."""

    def done(self, mark: Mark) -> float:
        """The share of the file that lies before a mark."""


# ------------------------------------------------------------------------------------------------------ delimited


class DelimitedFile:
    """CSV and its kin: cells are text, empty ones null."""

    def __init__(self, path: Path, reading: Reading) -> None:
        self.path = path
        self.dialect: Dialect = sniff(
            read_head(path), name=path.name, encoding=reading.encoding, delimiter=reading.delimiter,
            decimal=reading.decimal, has_header=reading.has_header,
        )  # fmt: skip
        self.names, self.header, self.header_size = read_header(path, self.dialect)

    def batches(self, limits: Limits, start: Mark, every: int = 1) -> Iterator[Batch]:
        position = max(start.position, self.header_size)
        line = max(start.line, 1 + self.header.count(b"\n"))
        row = start.row
        parts = blocks(self.path, self.dialect, len(self.names), limits, position, line)
        for number, (records, after, next_line) in enumerate(parts):
            if number % every:
                row += len(records)
                continue
            frame = records.frame(self.names)
            mark = Mark(start.file, after, next_line, row + frame.height)
            yield Batch(frame, row, mark, records, self.dialect.decimal)
            row = mark.row

    @cached_property
    def _size(self) -> int:
        return max(1, self.path.stat().st_size)

    def done(self, mark: Mark) -> float:
        known = self.path.suffix != ".gz" and self.dialect.is_plain_utf8
        return min(1.0, mark.position / self._size) if known else float("nan")


# ------------------------------------------------------------------------------------------------------ JSON Lines


class JsonLinesFile:
    """One JSON object per line; columns are the keys of the first block of lines."""

    def __init__(self, path: Path, reading: Reading) -> None:
        self.path = path
        encoding = "utf-8" if reading.encoding == "auto" else reading.encoding
        mark = b"\xef\xbb\xbf" if read_head(path)[:3] == b"\xef\xbb\xbf" else b""
        self.dialect = Dialect(encoding, mark)
        self.names: list[str] = []
        first = next(self._blocks(Limits(rows=10_000), Mark()), None)
        if first is None or not first[0].data:
            raise InputError(f"File {path.name!r} holds no JSON object. Hint: JSON Lines has one object per line.")
        self.names = list(dict.fromkeys(key for line in first[0].data for key in json.loads(line)))

    def batches(self, limits: Limits, start: Mark, every: int = 1) -> Iterator[Batch]:
        row = start.row
        for number, (lines, mark) in enumerate(self._blocks(limits, start)):
            if number % every:
                row += len(lines.data)
                continue
            frame = self._frame(lines)
            after = replace(mark, row=row + frame.height)
            yield Batch(frame, row, after, lines)
            row = after.row

    def _frame(self, lines: Lines) -> pl.DataFrame:
        if not lines.data:
            return pl.DataFrame(schema=dict.fromkeys(self.names, pl.Null))
        frame = pl.read_ndjson(io.BytesIO(b"\n".join(lines.data)), infer_schema_length=None)
        known, have = set(self.names), set(frame.columns)
        new = [name for name in frame.columns if name not in known]
        if new:
            raise InputError(
                f"File {self.path.name!r} has the key {new[0]!r} only after its first 10,000 lines, but a column must "
                "occur among them. Hint: put a line that has every key first."
            )
        absent = [pl.lit(None).alias(name) for name in self.names if name not in have]
        return frame.with_columns(absent).select(self.names)

    def _blocks(self, limits: Limits, start: Mark) -> Iterator[tuple[Lines, Mark]]:
        stream = Utf8Stream(self.path, self.dialect)
        try:
            stream.skip(start.position)
            position, number, rest, ended = start.position, start.line, b"", False
            while rest or not ended:
                read = stream.read(max(0, limits.text_bytes - len(rest)))
                ended = len(read) + len(rest) < limits.text_bytes
                rest += read
                taken = self._whole_lines(rest, limits.rows, ended)
                if not taken and not ended:
                    taken = rest + stream.read(1 << 20)
                if not taken:
                    return
                rest = rest[len(taken) :]
                lines, count = self._split(taken, number)
                position, number = position + len(taken), number + count
                yield lines, Mark(start.file, position, number, 0)
        finally:
            stream.close()

    def _whole_lines(self, text: bytes, rows: int, ended: bool) -> bytes:
        stop = -1
        for _ in range(rows):
            found = text.find(b"\n", stop + 1)
            if found < 0:
                return text if ended else text[: stop + 1]
            stop = found
        return text[: stop + 1]

    def _split(self, text: bytes, number: int) -> tuple[Lines, int]:
        good, bad, blank = [], [], 0
        parts = text.removesuffix(b"\n").split(b"\n")
        for i, part in enumerate(parts):
            problem = _json_problem(part)
            if not part.strip():
                blank += 1
            elif problem:
                bad.append(BadLine(self.path.name, number + i, problem, part.decode("utf-8", "replace")))
            else:
                good.append(part)
        return Lines(tuple(good), tuple(bad), blank), len(parts)

    def done(self, mark: Mark) -> float:
        return min(1.0, mark.position / max(1, self.path.stat().st_size)) if self.path.suffix != ".gz" else float("nan")


def _json_problem(line: bytes) -> str:
    try:
        return "" if isinstance(json.loads(line), dict) else "not a JSON object"
    except ValueError as error:
        return f"not JSON ({error})"


# ------------------------------------------------------------------------------------------------------ columnar


class ColumnarFile:
    """Parquet and Arrow: typed columns, read by row groups."""

    def __init__(self, path: Path, kind: str) -> None:
        self.path = path
        self.kind = kind
        if path.stat().st_size == 0:
            raise InputError(f"File {path.name!r} is empty. Hint: a {kind} file is never 0 bytes long.")
        self._scan = pl.scan_parquet if kind == "parquet" else pl.scan_ipc
        self.names = self._guarded(lambda: self._lazy().collect_schema().names())

    def _lazy(self) -> pl.LazyFrame:
        return self._scan(self.path, glob=False)

    def _guarded(self, call: Any) -> Any:
        try:
            return call()
        except (pl.exceptions.PolarsError, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            reason = str(error).splitlines()[0]
            raise InputError(
                f"File {self.path.name!r} is not a whole {self.kind} file: {reason}. Hint: copy it again."
            ) from error

    @cached_property
    def n_rows(self) -> int:
        """Number of rows, from the file's own index."""
        return int(self._guarded(lambda: self._lazy().select(pl.len()).collect().item()))

    def batches(self, limits: Limits, start: Mark, every: int = 1) -> Iterator[Batch]:
        if every > 1:
            yield from self._some(limits, every)
            return
        frames = self._guarded(lambda: self._lazy().slice(start.position).collect_batches(chunk_size=limits.rows))
        position, row = start.position, start.row
        while (frame := self._guarded(lambda: next(frames, None))) is not None:
            position, row = position + frame.height, row + frame.height
            yield Batch(frame, row - frame.height, Mark(start.file, position, 1, row))

    def _some(self, limits: Limits, every: int) -> Iterator[Batch]:
        for row in range(0, self.n_rows, limits.rows * every):
            frame = self._guarded(lambda row=row: self._lazy().slice(row, limits.rows).collect())
            yield Batch(frame, row, Mark(0, row + frame.height, 1, row + frame.height))

    def done(self, mark: Mark) -> float:
        return mark.position / max(1, self.n_rows)


# ------------------------------------------------------------------------------------------------------ several


@dataclass(frozen=True)
class Inputs:
    """Files that are one table: same columns, rows one file after the other."""

    files: tuple[Any, ...]

    @property
    def names(self) -> list[str]:
        """The columns."""
        return list(self.files[0].names)

    @property
    def paths(self) -> list[Path]:
        """The files."""
        return [file.path for file in self.files]

    @property
    def are_text(self) -> bool:
        """Whether cells come as text and have to be parsed."""
        return isinstance(self.files[0], DelimitedFile)

    def sample(self, limits: Limits, most: int) -> Iterator[Batch]:
        """At most about so many batches, spread evenly over the files; row numbers do not count."""
        for file in self.files:
            columnar = isinstance(file, ColumnarFile)
            n_batches = file.n_rows // limits.rows if columnar else file.path.stat().st_size // limits.text_bytes
            yield from file.batches(limits, Mark(), every=max(1, -(-n_batches * len(self.files) // most)))

    def batches(self, limits: Limits, start: Mark | None = None) -> Iterator[Batch]:
        """All rows from a mark on."""
        mark = start or Mark()
        for number in range(mark.file, len(self.files)):
            here = mark if number == mark.file else Mark(number, 0, 1, mark.row)
            for batch in self.files[number].batches(limits, here):
                mark = batch.after
                yield batch
            mark = replace(mark, file=number)

    def done(self, mark: Mark) -> float:
        """The share of all files that lies before a mark; nan when it cannot be known."""
        sizes = [max(1, file.path.stat().st_size) for file in self.files]
        before = sum(sizes[: mark.file])
        return (before + sizes[mark.file] * self.files[mark.file].done(mark)) / sum(sizes)


def open_inputs(names: Sequence[str], reading: Reading, spool: Path) -> Inputs:
    """The files behind the arguments of a command; stdin (`-`) is first copied to a file in the folder `spool`."""
    paths = [path for name in names for path in _expanded(name, reading, spool)]
    files = tuple(_open(path, reading) for path in paths)
    for file in files[1:]:
        if file.names != files[0].names:
            raise InputError(_other_columns(files[0], file))
    return Inputs(files)


def _other_columns(first: File, other: File) -> str:
    odd = next((b for a, b in zip(first.names, other.names, strict=False) if a != b), None)
    detail = (
        f"column {odd!r} is not in the same place"
        if odd
        else f"{len(other.names)} columns instead of {len(first.names)}"
    )
    return (
        f"File {other.path.name!r} does not have the columns of {first.path.name!r}: {detail}. "
        "Hint: files of one call are one table; run the command once per layout."
    )


def _expanded(name: str, reading: Reading, spool: Path) -> list[Path]:
    if name == "-":
        return [_spooled(reading, spool)]
    path = Path(name)
    if path.is_dir():
        raise InputError(f"{name!r} is a folder, but a file is needed. Hint: {name.rstrip('/')}/*.csv")
    if not path.exists() and any(mark in name for mark in "*?["):
        found = [Path(match) for match in sorted(glob.glob(name, recursive=True))]
        if not found:
            raise InputError(f"No file matches {name!r}. Hint: ls {Path(name).parent}")
        return found
    if not path.exists():
        raise InputError(f"File {name!r} does not exist. Hint: check the spelling and the folder.")
    return [path]


def _spooled(reading: Reading, spool: Path) -> Path:
    suffix = {"auto": ".csv", "csv": ".csv", "jsonl": ".jsonl", "parquet": ".parquet", "arrow": ".arrow"}[
        reading.format
    ]
    path = spool / f"stdin{suffix}"
    if path.exists():
        raise ParameterError("'-' is named twice, but stdin can be read once. Hint: name it once.")
    with path.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file, 1 << 20)
    return path


def _open(path: Path, reading: Reading) -> Any:
    kind = format_of(path, reading.format)
    if kind == "csv":
        return DelimitedFile(path, reading)
    return JsonLinesFile(path, reading) if kind == "jsonl" else ColumnarFile(path, kind)
