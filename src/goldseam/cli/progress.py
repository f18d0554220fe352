"""How far a stream is: a bar on a terminal, a plain line now and then elsewhere; and that something is being worked on."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Final

__all__ = ["Progress", "progress_line", "working"]

SECONDS_BETWEEN_LINES: Final = 10.0


def progress_line(verb: str, rows: int, share: float, elapsed: float) -> str:
    """One line on how far the work is.

    >>> progress_line("restored", 50_000, 0.25, 2.0)
    'restored 50,000 rows (25 %), 25,000 rows/s, 0:06 left'
    >>> progress_line("checked", 10, float("nan"), 1.0)
    'checked 10 rows, 10 rows/s'
    """
    rate = rows / elapsed if elapsed > 0 else 0.0
    text = f"{verb} {rows:,} rows"
    if math.isnan(share):
        return f"{text}, {rate:,.0f} rows/s"
    left = elapsed * (1 - share) / share if share > 0 else 0.0
    return f"{text} ({share:.0%}), {rate:,.0f} rows/s, {clock(left)} left".replace("%)", " %)")


def clock(seconds: float) -> str:
    """Seconds as minutes and seconds, with hours when there are any.

    >>> clock(75), clock(3661)
    ('1:15', '1:01:01')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


class Progress:
    """Tells how a stream of rows gets on."""

    def __init__(self, verb: str, *, quiet: bool = False, say: Callable[[str], None] | None = None) -> None:
        self.verb, self.quiet = verb, quiet
        self._say = say or (lambda text: print(text, file=sys.stderr, flush=True))
        self._is_terminal = sys.stderr.isatty() and not quiet
        self._bar: Any = None
        self._start = self._last = time.monotonic()

    def __enter__(self) -> Progress:
        if self._is_terminal:
            self._bar = _bar()
            self._bar.start()
            self._task = self._bar.add_task(self.verb, total=1.0, rows="")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self, rows: int, share: float) -> None:
        """So many rows are done, and that share of the input."""
        now = time.monotonic()
        line = progress_line(self.verb, rows, share, now - self._start)
        if self._bar is not None:
            total = None if math.isnan(share) else 1.0
            self._bar.update(self._task, completed=0.0 if math.isnan(share) else share, total=total, rows=line)
        elif not self.quiet and now - self._last >= SECONDS_BETWEEN_LINES:
            self._last = now
            self._say(line)


def _bar() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (BarColumn(bar_width=30), TextColumn("{task.fields[rows]}"))
    return Bar(*columns, console=Console(stderr=True), transient=True)


@contextmanager
def working(text: str, *, quiet: bool = False, say: Callable[[str], None] | None = None) -> Iterator[None]:
    """Something of unknown length: a spinner with the time so far on a terminal, one plain line elsewhere."""
    if quiet or not sys.stderr.isatty():
        if say is not None:
            say(f"{text} ...")
        yield
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress as Bar
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn(escape(text)), TimeElapsedColumn())
    with Bar(*columns, console=Console(file=sys.stderr), transient=True) as bar:
        bar.add_task("", total=None)
        yield
