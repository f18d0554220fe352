"""One writer at a time: an exclusive lock on a file, on POSIX and on Windows, let go when the file is closed."""

from __future__ import annotations

import sys
from typing import IO, Any

__all__ = ["is_locked_by_us"]

if sys.platform == "win32":
    import msvcrt

    def _lock(file: IO[Any]) -> None:
        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _lock(file: IO[Any]) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def is_locked_by_us(file: IO[Any]) -> bool:
    """Take the lock; False when another process has it.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file, open(file.name) as again:
    ...     is_locked_by_us(file), is_locked_by_us(again)
    (True, False)
    """
    try:
        _lock(file)
    except (BlockingIOError, PermissionError):  # Windows says "permission denied"
        return False
    return True
