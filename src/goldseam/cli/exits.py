"""How a command ends: four exit codes, and every failure as one sentence with a hint.

====  =============================================================
code  meaning
====  =============================================================
0     done; for `check`: clean
1     `check` found more damage than allowed
2     wrong usage, unusable input, or a failure
3     interrupted (Ctrl-C, SIGTERM); `restore --resume` goes on
====  =============================================================
"""

from __future__ import annotations

import errno
import json
import os
import signal
import sys
import traceback
from types import FrameType, TracebackType
from typing import Any, Final

import click

from goldseam.errors import GoldseamError, ModelFileError

__all__ = ["BAD", "DONE", "FINDINGS", "INTERRUPTED", "Guard", "Interrupted", "problem"]

DONE: Final = 0
FINDINGS: Final = 1
BAD: Final = 2
INTERRUPTED: Final = 3

OS_HINTS: Final = {
    errno.ENOSPC: "free some space, or write to another disk; the input is untouched.",
    errno.EDQUOT: "free some space, or write to another disk; the input is untouched.",
    errno.EFBIG: "the file size limit is reached (ulimit -f); the input is untouched.",
    errno.EACCES: "check who owns the file and its folder (ls -l).",
    errno.EPERM: "check who owns the file and its folder (ls -l).",
    errno.EROFS: "the disk is read-only; write somewhere else.",
    errno.ENOENT: "check the spelling and the folder.",
    errno.ENOTDIR: "part of the path is a file, not a folder.",
    errno.EISDIR: "name a file, not a folder.",
    errno.ENAMETOOLONG: "use a shorter name.",
}


HINTS: Final[dict[type[GoldseamError], str]] = {
    ModelFileError: "a model file comes from goldseam fit or goldseam train."
}


class Interrupted(BaseException):
    """The user or the system asked the program to stop."""


def problem(error: BaseException) -> tuple[str, str]:
    """An error as one sentence and a hint ("" when there is none)."""
    if isinstance(error, click.UsageError):
        return _usage(error)
    if isinstance(error, click.ClickException):
        return error.format_message(), ""
    if isinstance(error, GoldseamError):
        message, hint = _split(str(error))
        return message, hint or HINTS.get(type(error), "")
    if isinstance(error, OSError) and error.errno is not None:
        where = f"{os.fspath(error.filename)!r}: " if error.filename else ""
        return f"{where}{error.strerror}.", OS_HINTS.get(error.errno, "see the message of the system.")
    if isinstance(error, MemoryError):
        return "Out of memory.", "lower --memory, or close other programs."
    if isinstance(error, OSError) or type(error).__module__.startswith("polars"):
        return _polars(error)
    text = str(error).splitlines()[0] if str(error) else "no message"
    return f"Unexpected {type(error).__name__}: {text}.", "run again with --debug and report what it shows."


def _split(text: str) -> tuple[str, str]:
    message, _, hint = " ".join(text.split("\n")).partition(" Hint: ")
    return message, hint


def _usage(error: click.UsageError) -> tuple[str, str]:
    command = error.ctx.command_path if error.ctx else "goldseam"
    message, hint = _split(error.format_message())
    return message, hint or f"{command} --help"


def _polars(error: BaseException) -> tuple[str, str]:
    """What a file library says, cut to its first line; a full disk is told as such."""
    text = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
    for name, code in (
        ("No space left", errno.ENOSPC),
        ("File too large", errno.EFBIG),
        ("Permission denied", errno.EACCES),
    ):
        if name in str(error):
            return f"{text}.", OS_HINTS[code]
    return f"{text}.", "is the file whole, and of the format its suffix says?"


class Guard:
    """Turns whatever ends a command into a message and an exit code."""

    def __init__(self, *, debug: bool = False, as_json: bool = False) -> None:
        self.debug, self.as_json = debug, as_json
        self.code = DONE

    def __enter__(self) -> Guard:
        signal.signal(signal.SIGTERM, _stop)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if error is not None:
            self.code = self._judged(error)
        return True

    def _judged(self, error: BaseException) -> int:
        if isinstance(error, (click.exceptions.Exit, SystemExit)):
            code = error.exit_code if isinstance(error, click.exceptions.Exit) else error.code
            return code if isinstance(code, int) else DONE
        if isinstance(error, BrokenPipeError):
            _forget_stdout()
            return DONE
        if self.debug:
            traceback.print_exception(error)
        if isinstance(error, SystemError) and error.__cause__ is not None:  # a signal while compiled code was running
            error = error.__cause__
        if isinstance(error, (KeyboardInterrupt, Interrupted, click.Abort)):
            self._tell("interrupted", str(error) or "Interrupted.", "", type(error).__name__)
            return INTERRUPTED
        message, hint = problem(error)
        self._tell("error", message, hint, type(error).__name__)
        return BAD

    def _tell(self, word: str, message: str, hint: str, kind: str) -> None:
        message = message if message.endswith((".", "!", "?")) else message + "."
        print(f"goldseam: {word}: {message}" + (f"\nHint: {hint}" if hint else ""), file=sys.stderr, flush=True)
        if self.as_json:
            result: dict[str, Any] = {"error": {"type": kind, "message": message, "hint": hint or None}}
            print(json.dumps(result), flush=True)


def _stop(number: int, frame: FrameType | None) -> None:
    raise Interrupted(f"Stopped by {signal.Signals(number).name}.")


def _forget_stdout() -> None:
    """The reader of a pipe has gone (`| head`): nothing more to say, also not while Python shuts down."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
