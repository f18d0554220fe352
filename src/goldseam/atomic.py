"""Files that appear under their name only when they are complete."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

__all__ = ["atomic_path"]

# Windows opens no folders, nor does a folder one may write to but not read; some network disks sync none.
FOLDERS_ARE_NOT_SYNCED: Final = (errno.EACCES, errno.EPERM, errno.EINVAL, errno.ENOTSUP)


@contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """A temporary path beside `path`; renamed to it when the block ends well, removed when it does not.

    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "out.txt"
    >>> with atomic_path(target) as temporary:
    ...     _ = temporary.write_text("done")
    ...     target.exists()
    False
    >>> target.read_text()
    'done'
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield temporary
        _sync(temporary, os.O_RDWR)  # Windows syncs only what is open for writing
        os.replace(temporary, path)
        _sync_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Let the new name outlast a power cut, where the system can promise that."""
    try:
        _sync(folder, os.O_RDONLY)
    except OSError as error:
        if error.errno not in FOLDERS_ARE_NOT_SYNCED:
            raise


def _sync(path: Path, mode: int) -> None:
    handle = os.open(path, mode)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
