"""Ctrl-C and SIGTERM: asked once, a stream stops after the batch it is at; asked twice, at once."""

from __future__ import annotations

import os
import signal
from types import FrameType, TracebackType
from typing import Any, Final

from goldseam.cli.exits import Interrupted

__all__ = ["StopRequest"]

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class StopRequest:
    """Remembers that somebody wants the work to stop."""

    def __init__(self) -> None:
        self.name = ""
        self._old: dict[int, Any] = {}

    def __enter__(self) -> StopRequest:
        for number in SIGNALS:
            self._old[number] = signal.signal(number, self._take)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._old.items():
            signal.signal(number, handler)

    def _take(self, number: int, frame: FrameType | None) -> None:
        if self.name:
            raise Interrupted("Stopped at once; what the last whole batch left is safe.")
        self.name = signal.Signals(number).name
        os.write(2, b"\nstopping after this batch; once more to stop at once\n" if os.isatty(2) else b"")

    def __bool__(self) -> bool:
        return bool(self.name)
