"""Delimited text in blocks of whole records: what the fields are, where they lie, and which lines are broken.

A block is a pure function of the position where it begins (and of the batch limits), so a run that is resumed cuts
the file exactly as an uninterrupted one. The bytes are kept: a cell that is not replaced is written back as it was.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from goldseam.cli.dialect import Dialect
from goldseam.cli.kernels import NEWLINE, RETURN, find_fields, find_marks
from goldseam.cli.streams import Utf8Stream, not_text
from goldseam.errors import InputError

__all__ = ["BadLine", "Limits", "Records", "blocks", "read_header"]

QUOTE: Final = 34
MAX_RECORD: Final = 1 << 24


@dataclass(frozen=True)
class Limits:
    """How much is in memory at once: rows and bytes of text of an input, bytes of a row group of an output."""

    rows: int = 65_536
    text_bytes: int = 1 << 24
    group_bytes: int = 1 << 24


@dataclass(frozen=True)
class BadLine:
    """A line that does not fit the header."""

    file: str
    line: int
    problem: str
    text: str


@dataclass(frozen=True)
class Records:
    """Whole records of one file: their bytes, and the first field of every row that fits the header."""

    data: bytes
    n_columns: int
    dialect: Dialect
    starts: NDArray[np.int32]
    ends: NDArray[np.int32]
    first_fields: NDArray[np.int64]
    bad: tuple[BadLine, ...] = ()
    n_blank: int = 0
    n_records: int = 0
    n_newlines: int = 0
    has_stray_quotes: bool = False

    def __len__(self) -> int:
        return len(self.first_fields)

    @property
    def is_regular(self) -> bool:
        """Whether the bytes are exactly the rows: nothing blank, broken or stray among them."""
        return len(self) == self.n_records and not self.has_stray_quotes

    def frame(self, names: Sequence[str]) -> pl.DataFrame:
        """The cells as text; null where a cell is empty."""
        text = dict.fromkeys(names, pl.String)
        if not len(self):
            return pl.DataFrame(schema=text)
        frame = pl.read_csv(
            self.data if self.is_regular else self._rewritten(),
            has_header=False, schema=text, separator=self.dialect.delimiter, quote_char='"', glob=False,
        )  # fmt: skip
        if frame.height != len(self):
            raise InputError(
                f"{len(self)} records were read as {frame.height} rows. Hint: please report this file as a defect of Goldseam."
            )
        return frame

    def _rewritten(self) -> bytes:
        """The rows that fit, one after the other; quoted by the book where quotes are astray."""
        if not self.has_stray_quotes:
            lows, highs = (span.tolist() for span in self.row_spans)
            return b"".join(self.data[low:high] + b"\n" for low, high in zip(lows, highs, strict=True))
        text = io.StringIO()
        csv.writer(text, delimiter=self.dialect.delimiter, lineterminator="\n").writerows(
            map(self.row, range(len(self)))
        )
        return text.getvalue().encode()

    def row(self, row: int) -> list[str]:
        """The cells of one row as text."""
        first = self.first_fields[row]
        return [self._cell(first + column) for column in range(self.n_columns)]

    def _cell(self, field: int) -> str:
        raw = self.data[self.starts[field] : self.ends[field]].decode()
        is_quoted = len(raw) > 1 and raw[0] == raw[-1] == '"'
        return raw[1:-1].replace('""', '"') if is_quoted else raw

    @cached_property
    def row_spans(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where every row begins and ends, its line end left out."""
        last = self.first_fields + self.n_columns - 1
        return self.starts[self.first_fields].astype(np.int64), self.ends[last].astype(np.int64)

    def patched(self, rows: NDArray[np.int64], columns: NDArray[np.int64], texts: Sequence[str]) -> bytes:
        """The rows as bytes with some cells replaced; `rows` must not fall, and `columns` rise within a row."""
        body = self.data if self.is_regular else None
        fields = self.first_fields[rows] + columns
        begins, stops = self.starts[fields].tolist(), self.ends[fields].tolist()
        if body is None:
            return self._patched_rows(rows, begins, stops, texts)
        return _patch(body, 0, len(body), begins, stops, [self._quoted(t) for t in texts]) + self._line_end(body)

    def _line_end(self, body: bytes) -> bytes:
        if not body or body.endswith(b"\n"):
            return b""
        return b"\r\n" if b"\r\n" in body else b"\n"

    def _patched_rows(
        self, rows: NDArray[np.int64], begins: list[int], stops: list[int], texts: Sequence[str]
    ) -> bytes:
        """As `patched`, when broken or blank lines lie between the rows and must be left out."""
        cuts = np.searchsorted(rows, np.arange(len(self) + 1)).tolist()
        lows, highs = (span.tolist() for span in self.row_spans)
        quoted = [self._quoted(text) for text in texts]
        line_end = b"\r\n" if b"\r\n" in self.data[:65536] else b"\n"
        parts = [
            _patch(self.data, low, high, begins[a:b], stops[a:b], quoted[a:b])
            for low, high, a, b in zip(lows, highs, cuts, cuts[1:], strict=False)
        ]
        return line_end.join([*parts, b""])

    def _quoted(self, text: str) -> bytes:
        """A cell as it is written: in quotes where it must be."""
        needs_quotes = any(mark in text for mark in (self.dialect.delimiter, '"', "\n", "\r"))
        return ('"' + text.replace('"', '""') + '"' if needs_quotes else text).encode()


def _patch(data: bytes, low: int, high: int, begins: list[int], stops: list[int], texts: list[bytes]) -> bytes:
    """`data[low:high]` with the spans replaced, in order."""
    parts: list[bytes] = []
    for begin, stop, text in zip(begins, stops, texts, strict=True):
        parts += (data[low:begin], text)
        low = stop
    parts.append(data[low:high])
    return b"".join(parts)


def blocks(
    path: Path, dialect: Dialect, n_columns: int, limits: Limits, start: int, line: int
) -> Iterator[tuple[Records, int, int]]:
    """Blocks of records from a position on; with each, the position and the line number where the next one begins."""
    stream = Utf8Stream(path, dialect)
    try:
        stream.skip(start)
        rest = b""
        while True:
            records, n_bytes, rest = _next_block(stream, rest, path.name, dialect, n_columns, limits, line)
            if n_bytes == 0:
                return
            start += n_bytes
            line += records.n_newlines
            yield records, start, line
    finally:
        stream.close()


def _next_block(
    stream: Utf8Stream, rest: bytes, name: str, dialect: Dialect, n_columns: int, limits: Limits, line: int
) -> tuple[Records, int, bytes]:
    size = limits.text_bytes
    while True:
        rest += stream.read(max(0, size - len(rest)))
        final = len(rest) < size
        found = _scan(rest, dialect, final, limits.rows)
        if found.n_records or (final and not found.unclosed):
            break
        if final or size > MAX_RECORD:
            return _unclosed_line(rest, name, dialect, n_columns, line)
        size *= 2
    data = rest[: found.consumed]
    _check_utf8(data, name, line)
    return _records(data, found, name, dialect, n_columns, line), len(data), rest[len(data) :]


@dataclass(frozen=True)
class _Scan:
    n_records: int
    consumed: int
    n_newlines: int
    stray: bool
    unclosed: bool
    starts: NDArray[np.int32]
    ends: NDArray[np.int32]
    firsts: NDArray[np.int64]


def _scan(text: bytes, dialect: Dialect, final: bool, max_records: int) -> _Scan:
    is_open = final and not text.endswith(b"\n")  # the last record has no line end
    fast = b'"' not in text and not is_open
    return scan_unquoted(text, dialect, max_records) if fast else scan_any(text, dialect, final, max_records)


def scan_unquoted(text: bytes, dialect: Dialect, max_records: int) -> _Scan:
    """The fields of text without quotes: whatever lies between two marks."""
    data = np.frombuffer(text, dtype=np.uint8)
    room = np.empty(data.size + 1, np.int32)  # what is not written to takes no memory
    marks = room[: find_marks(data, np.uint8(ord(dialect.delimiter)), np.uint8(NEWLINE), room)].copy()
    at_end = data[marks] == NEWLINE
    last = np.flatnonzero(at_end)[:max_records]
    n_fields = int(last[-1]) + 1 if last.size else 0
    marks, at_end = marks[:n_fields], at_end[:n_fields]
    starts = np.concatenate([np.zeros(min(1, n_fields), np.int32), marks[:-1] + np.int32(1)])
    ends = marks - (at_end & (marks > starts) & (data[marks - 1] == RETURN))
    firsts = np.concatenate([np.zeros(1, np.int64), last + 1])
    return _Scan(last.size, int(marks[-1]) + 1 if n_fields else 0, last.size, False, False, starts, ends, firsts)


def scan_any(text: bytes, dialect: Dialect, final: bool, max_records: int) -> _Scan:
    """The fields of any text, quotes understood."""
    data = np.frombuffer(text, dtype=np.uint8)
    separator = ord(dialect.delimiter)
    starts, ends = np.empty(data.size + 2, np.int32), np.empty(data.size + 2, np.int32)
    firsts = np.zeros(min(data.size + 1, max_records) + 1, np.int64)
    n_records, n_fields, consumed, stray, unclosed = find_fields(
        data, separator, QUOTE, final, max_records, starts, ends, firsts
    )
    newlines = text.count(b"\n", 0, consumed)
    fields = starts[:n_fields].copy(), ends[:n_fields].copy(), firsts[: n_records + 1].copy()
    return _Scan(n_records, consumed, newlines, stray, unclosed, *fields)


def _records(data: bytes, found: _Scan, name: str, dialect: Dialect, n_columns: int, line: int) -> Records:
    counts = np.diff(found.firsts)
    fits = counts == n_columns
    blank = np.zeros(len(counts), dtype=bool)
    if not fits.all():
        first = found.firsts[:-1]
        blank = (counts == 1) & (found.starts[first] == found.ends[first]) & ~fits
    bad = tuple(_bad_line(data, found, r, name, n_columns, line) for r in np.flatnonzero(~fits & ~blank).tolist())
    return Records(
        data, n_columns, dialect, found.starts, found.ends, found.firsts[:-1][fits],
        bad, int(blank.sum()), found.n_records, found.n_newlines, found.stray,
    )  # fmt: skip


def _bad_line(data: bytes, found: _Scan, record: int, name: str, n_columns: int, line: int) -> BadLine:
    begin = int(found.starts[found.firsts[record]])
    stop = int(found.ends[found.firsts[record + 1] - 1])
    count = int(found.firsts[record + 1] - found.firsts[record])
    problem = f"{count} field{'s' if count != 1 else ''} where the header has {n_columns}"
    return BadLine(name, line + data[:begin].count(b"\n"), problem, data[begin:stop].decode())


def _unclosed_line(rest: bytes, name: str, dialect: Dialect, n_columns: int, line: int) -> tuple[Records, int, bytes]:
    """A quote that is opened and never closed spoils its line only, not the rest of the file."""
    stop = rest.find(b"\n") + 1 or len(rest)
    data = rest[:stop]
    _check_utf8(data, name, line)
    bad = BadLine(name, line, "a quote is opened and not closed", data.decode().rstrip("\r\n"))
    none = np.empty(0, np.int32)
    broken = Records(data, n_columns, dialect, none, none, np.empty(0, np.int64), (bad,), 0, 1, data.count(b"\n"))
    return broken, stop, rest[stop:]


def _check_utf8(data: bytes, name: str, line: int) -> None:
    if data.isascii():
        return
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise InputError(not_text(name, line + data[: error.start].count(b"\n"), error)) from error


def read_header(path: Path, dialect: Dialect) -> tuple[list[str], bytes, int]:
    """Column names, the bytes of the header line, and its length; without a header the columns are numbered."""
    stream = Utf8Stream(path, dialect)
    try:
        text, size = b"", 1 << 16
        while True:
            text += stream.read(size - len(text))
            final = len(text) < size
            found = _scan(text, dialect, final, 1)
            if found.n_records or final or size > MAX_RECORD:
                break
            size *= 2
    finally:
        stream.close()
    return _header(path.name, text[: found.consumed], found, dialect)


def _header(name: str, text: bytes, found: _Scan, dialect: Dialect) -> tuple[list[str], bytes, int]:
    if not found.n_records or not text.strip():
        raise InputError(f"File {name!r} is empty. Hint: a table has at least a header line.")
    _check_utf8(text, name, 1)
    n = int(found.firsts[1])
    if not dialect.has_header:
        return [f"column_{i + 1}" for i in range(n)], b"", 0
    line = Records(text, n, dialect, found.starts, found.ends, found.firsts[:1], n_records=1)
    names = line.row(0)
    twice = sorted({column for column in names if names.count(column) > 1}) if len(set(names)) < n else []
    if twice:
        raise InputError(
            f"File {name!r} has the column name {twice[0]!r} {names.count(twice[0])} times, but names must be unique. "
            "Hint: rename it, or pass --no-header if the first line holds data."
        )
    return names, text, len(text)
