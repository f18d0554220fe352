"""How a delimited text file is written: encoding, byte-order mark, delimiter, quote, decimal mark.

What the user does not say is sniffed from the head of the file, and the guess is a pure function of that head.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from dataclasses import dataclass
from typing import Final

from goldseam.errors import InputError, ParameterError

__all__ = ["HEAD_BYTES", "Dialect", "sniff"]

HEAD_BYTES: Final = 1 << 18
DELIMITERS: Final = (",", ";", "\t", "|", ":")
BYTE_ORDER_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
COMMA_NUMBER: Final = re.compile(r"[+-]?\d+,\d+(?:[eE][+-]?\d+)?")
POINT_NUMBER: Final = re.compile(r"[+-]?\d+\.\d+(?:[eE][+-]?\d+)?")


@dataclass(frozen=True)
class Dialect:
    """How one delimited text file is written.

    >>> sniff(b"a;b\\n1,5;x\\n2,5;y\\n", name="t.csv")
    Dialect(encoding='utf-8', mark=b'', delimiter=';', decimal=',', has_header=True)
    """

    encoding: str = "utf-8"
    mark: bytes = b""
    delimiter: str = ","
    decimal: str = "."
    has_header: bool = True

    @property
    def is_plain_utf8(self) -> bool:
        """Whether positions in the text are positions in the file (after the mark)."""
        return self.encoding == "utf-8"


def sniff(
    head: bytes,
    *,
    name: str,
    encoding: str = "auto",
    delimiter: str = "auto",
    decimal: str = "auto",
    has_header: bool = True,
) -> Dialect:
    """The dialect of a file from its first bytes and from what the user said."""
    mark, by_mark = next(((m, e) for m, e in BYTE_ORDER_MARKS if head.startswith(m)), (b"", "utf-8"))
    codec = by_mark if encoding == "auto" else _known_codec(encoding)
    if mark and by_mark.startswith(codec):  # "utf-16" and a mark: the mark says which half comes first
        codec = by_mark
    text = codecs.getincrementaldecoder(codec)(errors="replace").decode(head).removeprefix("﻿")
    if "\n" not in text and "\r" in text:
        raise InputError(
            f"File {name!r} ends its lines with carriage returns only, but lines must end with a newline. "
            f"Hint: tr '\\r' '\\n' < {name} > fixed.csv"
        )
    separator = _delimiter(text, name) if delimiter == "auto" else _one_character(delimiter)
    comma = _decimal(text, separator) if decimal == "auto" else decimal
    if comma == separator:
        raise ParameterError(f"Delimiter and decimal mark are both {comma!r} for {name!r}. Hint: --delimiter ';'")
    return Dialect(codec, mark, separator, comma, has_header)


def _known_codec(encoding: str) -> str:
    try:
        return codecs.lookup(encoding).name.replace("utf-8-sig", "utf-8")
    except LookupError as error:
        raise ParameterError(
            f"Encoding {encoding!r} is unknown. Hint: try utf-8, latin-1, cp1252 or utf-16."
        ) from error


def _one_character(delimiter: str) -> str:
    found = {"tab": "\t", "\\t": "\t"}.get(delimiter, delimiter)
    if len(found) != 1 or not found.isascii() or found in '"\n\r':
        raise ParameterError(
            f"A delimiter is one ASCII character, but got {delimiter!r}. Hint: --delimiter tab for a tab."
        )
    return found


def _records(text: str, delimiter: str) -> list[list[str]]:
    """The first records of the head as the csv module reads them; the last one may be cut off and is left out."""
    whole = text[: text.rfind("\n") + 1] or text
    try:
        return [row for row in csv.reader(io.StringIO(whole[:65536], newline=""), delimiter=delimiter) if row][:200]
    except csv.Error:
        return []


def _delimiter(text: str, name: str) -> str:
    """The delimiter that cuts the header, and most records into as many fields; a comma when none does."""
    if name.removesuffix(".gz").endswith(".tsv"):
        return "\t"
    scores = {}
    for candidate in DELIMITERS:
        counts = [len(row) for row in _records(text, candidate)] or [1]
        agree = sum(count == counts[0] for count in counts) / len(counts)
        scores[candidate] = (counts[0] > 1, agree >= 0.9, agree >= 0.5, counts[0])
    return max(scores, key=lambda candidate: scores[candidate])


def _decimal(text: str, delimiter: str) -> str:
    """A comma when numbers with a comma occur, none with a point do, and the comma is not the delimiter."""
    cells = [cell.strip() for row in _records(text, delimiter)[1:] for cell in row]
    commas = sum(COMMA_NUMBER.fullmatch(cell) is not None for cell in cells)
    points = sum(POINT_NUMBER.fullmatch(cell) is not None for cell in cells)
    return "," if commas and not points and delimiter != "," else "."
