"""What a command says: notes on stderr, one result on stdout (text, or JSON with --json), a log file on request."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import IO, Any

from goldseam.errors import GoldseamWarning

__all__ = ["Console"]


@dataclass
class Console:
    """The voice of one command."""

    as_json: bool = False
    quiet: bool = False
    log_file: str | None = None
    _log: IO[str] | None = field(default=None, repr=False)

    def note(self, text: str) -> None:
        """Something worth knowing that is not the result."""
        self.log(text)
        if not self.quiet:
            print(text, file=sys.stderr, flush=True)

    def warn(self, text: str) -> None:
        """Something that must be seen, also when quiet."""
        self.log(f"warning: {text}")
        print(f"goldseam: warning: {text}", file=sys.stderr, flush=True)

    def log(self, text: str) -> None:
        """A line in the log file only."""
        if self.log_file is None:
            return
        if self._log is None:
            self._log = open(self.log_file, "a", encoding="utf-8")  # noqa: SIM115 - lives as long as the command
        self._log.write(f"{datetime.now(UTC).isoformat(timespec='seconds')} {text}\n")
        self._log.flush()

    @contextmanager
    def telling_warnings(self) -> Iterator[None]:
        """Say what the library warns of, each thing once, in place of Python's two lines with a file name."""
        told: set[str] = set()
        with warnings.catch_warnings():
            warnings.simplefilter("always", GoldseamWarning)
            otherwise = warnings.showwarning

            def show(message: Any, category: type[Warning], *where: Any, **more: Any) -> None:
                if not issubclass(category, GoldseamWarning):
                    otherwise(message, category, *where, **more)
                elif str(message) not in told:
                    told.add(str(message))
                    self.warn(str(message))

            warnings.showwarning = show
            yield

    def release(self) -> None:
        """Let go of the log file."""
        if self._log is not None:
            self._log.close()
            self._log = None

    def result(self, data: dict[str, Any], text: str, *, stdout_is_taken: bool = False) -> None:
        """What the command was asked for; it goes to stderr when stdout already carries a table."""
        self.log(text)
        if self.as_json:
            print(
                json.dumps(data, ensure_ascii=False, allow_nan=False),
                file=sys.stderr if stdout_is_taken else sys.stdout,
            )
        elif not stdout_is_taken:
            print(text)
        elif not self.quiet:
            print(text, file=sys.stderr)


def table(headings: Sequence[str], rows: Sequence[Sequence[Any]], *, right: Sequence[int] = ()) -> str:
    """A plain table with aligned columns; the columns in `right` are set flush right.

    >>> print(table(["column", "cells"], [["age", 12], ["income", 3]], right=[1]))
    column  cells
    age        12
    income      3
    """
    cells = [list(headings), *[[str(cell) for cell in row] for row in rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(headings))]
    lines = [
        "  ".join(c.rjust(w) if i in right else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True)))
        for row in cells
    ]
    return "\n".join(line.rstrip() for line in lines)


def place(output: str) -> str:
    """An output's name for people."""
    return "stdout" if output == "-" else output


def count(n: int, noun: str) -> str:
    """A number with its noun.

    >>> count(1, "row"), count(12000, "cell")
    ('1 row', '12,000 cells')
    """
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
