"""Files appear whole or not at all, on every system."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from goldseam.atomic import atomic_path


def write(path: Path, text: str = "new") -> None:
    with atomic_path(path) as temporary:
        temporary.write_text(text)


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "out.txt"
    target.write_text("old")

    def fail() -> None:
        with atomic_path(target) as temporary:
            temporary.write_text("half")
            raise KeyError("in the middle")

    with pytest.raises(KeyError):
        fail()
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["out.txt"]


def as_on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """`os.open` refuses folders, and `os.fsync` what is open for reading only."""
    real_open, real_sync = os.open, os.fsync
    modes: dict[int, int] = {}

    def open_file(path: Any, mode: int, *more: Any, **options: Any) -> int:
        if os.path.isdir(path):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        handle = real_open(path, mode, *more, **options)
        modes[handle] = mode
        return handle

    def sync(handle: int) -> None:
        if not modes[handle] & (os.O_RDWR | os.O_WRONLY):
            raise OSError(errno.EBADF, "Bad file descriptor")
        real_sync(handle)

    monkeypatch.setattr(os, "open", open_file)
    monkeypatch.setattr(os, "fsync", sync)


def test_a_system_that_opens_no_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        as_on_windows(patch)
        write(tmp_path / "out.txt")
    assert (tmp_path / "out.txt").read_text() == "new"


@pytest.mark.parametrize(("number", "is_told"), [(errno.EINVAL, False), (errno.EIO, True)])
def test_a_disk_that_syncs_no_folders_is_not_a_broken_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, is_told: bool
) -> None:
    real_sync, calls = os.fsync, []

    def sync(handle: int) -> None:
        calls.append(handle)
        if len(calls) == 2:  # the folder comes after the file
            raise OSError(number, os.strerror(number))
        real_sync(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", sync)
        if is_told:
            with pytest.raises(OSError, match=os.strerror(number)):
                write(tmp_path / "out.txt")
        else:
            write(tmp_path / "out.txt")
    assert len(calls) == 2
    assert (tmp_path / "out.txt").read_text() == "new"
