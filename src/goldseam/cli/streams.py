"""Bytes of a file as UTF-8, whatever it is on disk: plain, gzipped, or in another encoding.

`skip` continues where an earlier run stopped: a seek for a plain UTF-8 file, reading on for the others.
"""

from __future__ import annotations

import codecs
import gzip
import zlib
from pathlib import Path
from typing import IO, Any

from goldseam.cli.dialect import HEAD_BYTES, Dialect
from goldseam.errors import InputError

__all__ = ["Utf8Stream", "open_bytes", "read_head"]

CHUNK = 1 << 20


def open_bytes(path: Path) -> IO[bytes]:
    """The file, unzipped when its name ends in .gz."""
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")  # type: ignore[return-value]


def read_head(path: Path) -> bytes:
    """The first bytes of the (unzipped) file."""
    with open_bytes(path) as file:
        return _guarded_read(file, HEAD_BYTES, path.name)


def _guarded_read(file: IO[bytes], size: int, name: str) -> bytes:
    try:
        return file.read(size)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"File {name!r} is not a whole gzip file: {error}. Hint: copy it again.") from error


class Utf8Stream:
    """Reads a text file as UTF-8 bytes without its byte-order mark; `position` counts those bytes."""

    def __init__(self, path: Path, dialect: Dialect) -> None:
        self.name = path.name
        self.position = 0
        self._file = open_bytes(path)
        self._dialect = dialect
        self._is_plain = dialect.is_plain_utf8
        self._can_seek = self._is_plain and path.suffix != ".gz"
        self._decoder: Any = None if self._is_plain else codecs.getincrementaldecoder(dialect.encoding)()
        self._ready = b""
        self._ended = False
        self._lines = 1
        if self._is_plain:
            self._file.read(len(dialect.mark))

    def read(self, size: int) -> bytes:
        """Up to `size` bytes; fewer only at the end."""
        data = _guarded_read(self._file, size, self.name) if self._is_plain else self._decoded(size)
        self.position += len(data)
        return data

    def _decoded(self, size: int) -> bytes:
        parts, have = [self._ready], len(self._ready)
        while have < size and not self._ended:
            raw = _guarded_read(self._file, CHUNK, self.name)
            self._ended = not raw
            text = self._decode(raw)
            parts.append(text.encode())
            have += len(parts[-1])
        whole = b"".join(parts)
        self._ready = whole[size:]
        return whole[:size]

    def _decode(self, raw: bytes) -> str:
        try:
            text: str = self._decoder.decode(raw, final=self._ended)
        except UnicodeDecodeError as error:
            line = self._lines + error.object[: error.start].decode(self._dialect.encoding, "ignore").count("\n")
            raise InputError(not_text(self.name, line, error)) from error
        self._lines += text.count("\n")
        return text.removeprefix("﻿") if self.position == 0 and not self._ready else text

    def skip(self, position: int) -> None:
        """Go on to a position counted from the beginning of the text."""
        if self._can_seek:
            self._file.seek(len(self._dialect.mark) + position)
            self.position = position
        while self.position < position and self.read(min(CHUNK, position - self.position)):
            pass

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def not_text(name: str, line: int, error: UnicodeDecodeError) -> str:
    """The message for bytes that are not in the encoding."""
    bad = error.object[error.start]
    return (
        f"File {name!r} is not {error.encoding} text: line {line} holds the byte 0x{bad:02X}. "
        "Hint: say how it is written, for example --encoding latin-1 or --encoding cp1252."
    )
