"""Compiled loops that find records and fields in a block of delimited text.

A quote opens a quoted field only where the field begins; inside it a doubled quote is a quote and a newline is text
(RFC 4180). Anything else with a quote in it is kept as it is and reported as *stray*. Text without any quote has a
fast path, `find_marks`, tested to give the same fields.
"""

from __future__ import annotations

from typing import Any

from numba import njit

__all__ = ["find_fields", "find_marks"]

NEWLINE = 10
RETURN = 13


@njit(nogil=True, cache=True)
def find_marks(data: Any, separator: Any, newline: Any, marks: Any) -> int:
    """Fill `marks` with the positions of separators and newlines; returns how many there are."""
    n = 0
    for i in range(data.size):
        marks[n] = i  # written always, counted when it is one: no branch to mispredict
        n += (data[i] == separator) | (data[i] == newline)
    return n


@njit(nogil=True, cache=True)
def _end_of_quoted(data: Any, i: int, quote: int) -> int:
    """Position after the closing quote of the field that opens at `i`; -1 when it is not closed in this block."""
    i += 1
    while i < data.size:
        if data[i] == quote:
            if i + 1 < data.size and data[i + 1] == quote:
                i += 2
                continue
            return i + 1
        i += 1
    return -1


@njit(nogil=True, cache=True)
def find_fields(
    data: Any, separator: int, quote: int, final: bool, max_records: int, starts: Any, ends: Any, firsts: Any
) -> tuple[int, int, int, bool, bool]:
    """Fill `starts` and `ends` of all fields and `firsts` (index of each record's first field).

    Returns the number of whole records, of their fields, the bytes they take, whether a stray quote was seen, and
    whether the scan ended inside an open quote. A record that runs into the end of the block counts only when the
    block is `final`.
    """
    i = n_records = n_fields = consumed = field = 0
    stray = unclosed = False
    size = data.size
    while i < size and n_records < max_records:
        start = i
        if data[i] == quote:
            i = _end_of_quoted(data, i, quote)
            if i < 0:
                unclosed = True
                break
            if i == size and not final:  # a doubled quote may follow in the next block
                break
        while i < size and data[i] != separator and data[i] != NEWLINE:
            stray |= data[i] == quote or (data[start] == quote and data[i] != RETURN)
            i += 1
        if i == size and not final:
            break
        starts[field] = start
        at_end = i == size or data[i] == NEWLINE
        ends[field] = i - 1 if at_end and i > start and data[i - 1] == RETURN else i
        field += 1
        i += 1
        if at_end:
            n_records, n_fields, consumed = n_records + 1, field, min(i, size)
            firsts[n_records] = n_fields
        elif i == size and final:  # the text ends with a separator: one more, empty field
            starts[field] = ends[field] = size
            n_records, n_fields, consumed = n_records + 1, field + 1, size
            firsts[n_records] = n_fields
    return n_records, n_fields, consumed, stray, unclosed
