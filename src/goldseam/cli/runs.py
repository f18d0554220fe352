"""The run directory: what a restore did, enough to audit or repeat it; and the journal that lets it go on.

::

    restored.run/
      run.json         command, options, inputs, model hash, versions, times, outputs with their hashes
      restored.csv     the restored table (the same file as the output, by a hard link)
      seam.parquet     the ledger of changed cells
      summary.json     the run in figures
      report.html      the same to look at
      bad-lines.jsonl  lines that did not fit, when they were quarantined
      work/            only while the run is not finished: journal, parts

A batch counts when its line is in the journal; the line is written after the batch's data are on disk.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
import platform
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any, Final

from goldseam import __version__
from goldseam.atomic import atomic_path
from goldseam.cli.batches import Mark
from goldseam.cli.locks import is_locked_by_us
from goldseam.errors import InputError

__all__ = ["Entry", "Journal", "file_hash", "fingerprint", "read_run", "run_folder", "versions"]

LIBRARIES: Final = ("numpy", "scipy", "scikit-learn", "numba", "polars")


@dataclass(frozen=True)
class Entry:
    """A batch that is safely on disk: where the next one begins and how long every output is."""

    mark: Mark
    sizes: dict[str, int]
    counts: dict[str, int]

    @classmethod
    def from_line(cls, line: str) -> Entry:
        """The entry of one line of the journal."""
        data = json.loads(line)
        return cls(Mark(**data["mark"]), data["sizes"], data["counts"])


class Journal:
    """The working folder of an unfinished run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.entries = 0
        self.last: Entry | None = None
        self._file: IO[str] | None = None
        self._lock: IO[str] | None = None

    def open(self, print_of_run: Mapping[str, Any], *, resume: bool) -> bool:
        """Begin, or go on when `resume` is set and there is something to go on with; says whether it goes on."""
        going_on = resume and (self.folder / "journal.jsonl").exists()
        if going_on:
            self._check_same(print_of_run)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._take_lock()
        if going_on:
            self._read()
        else:
            self._clear()
            write_json(self.folder / "fingerprint.json", dict(print_of_run))
        self._file = (self.folder / "journal.jsonl").open("a", encoding="utf-8")
        return going_on and self.last is not None

    def _check_same(self, wanted: Mapping[str, Any]) -> None:
        had = json.loads((self.folder / "fingerprint.json").read_text(encoding="utf-8"))
        now = json.loads(json.dumps(wanted))
        for key in {**had, **now}:
            if had.get(key) != now.get(key):
                raise InputError(
                    f"The run in {self.folder.parent.name!r} cannot be resumed: its {key} was {_short(had.get(key))}, now it is "
                    f"{_short(now.get(key))}. Hint: call it as before, or leave out --resume to start again."
                )

    def _take_lock(self) -> None:
        self._lock = (self.folder / "lock").open("w")
        if not is_locked_by_us(self._lock):
            raise InputError(
                f"Another process is writing the run {self.folder.parent.name!r}. Hint: wait for it, or choose another -o."
            )

    def _read(self) -> None:
        """Take over the finished batches; a line cut off by a crash is forgotten."""
        path = self.folder / "journal.jsonl"
        text = path.read_text(encoding="utf-8")
        whole = text[: text.rfind("\n") + 1]
        if whole != text:
            os.truncate(path, len(whole.encode()))
        lines = whole.splitlines()
        self.entries = len(lines)
        self.last = Entry.from_line(lines[-1]) if lines else None

    def _clear(self) -> None:
        for path in self.folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name != "lock":
                path.unlink()

    def append(self, entry: Entry) -> None:
        """Note a finished batch."""
        assert self._file is not None
        self._file.write(json.dumps(asdict(entry)) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        self.entries += 1
        self.last = entry

    def release(self) -> None:
        """Let go of the open files; the working folder stays."""
        for file in (self._file, self._lock):
            if file is not None:
                file.close()

    def finish(self) -> None:
        """The run is complete: the working folder goes."""
        self.release()
        shutil.rmtree(self.folder)


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else text[:77] + "..."


# ---------------------------------------------------------------------------------------------------- what it was


def run_folder(output: str, given: str | None, first_input: Path) -> Path | None:
    """Where the run goes: as told, or beside the output; none when the table goes to stdout."""
    if given:
        return Path(given)
    if output == "-":
        return None
    path = Path(output)
    return path.with_name(stem(path) + ".run")


def stem(path: Path) -> str:
    """The name without its suffix, and without .gz.

    >>> stem(Path("a/restored.csv.gz"))
    'restored'
    """
    return Path(path.name.removesuffix(".gz")).stem


def fingerprint(paths: Sequence[Path], model: Path, output: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """What must be the same for a run to go on."""
    return {
        "inputs": [[path.name, path.stat().st_size, path.stat().st_mtime_ns] for path in paths],
        "model": file_hash(model),
        "output": output,
        "version": __version__,
        **dict(options),
    }


def file_hash(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def versions() -> dict[str, str]:
    """The versions that took part."""
    return {"goldseam": __version__, "python": platform.python_version(), **{name: version(name) for name in LIBRARIES}}


def command_line() -> list[str]:
    """How the program was called."""
    return ["goldseam", *sys.argv[1:]]


def now() -> str:
    """The time, for the record."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def write_json(path: Path, data: Any) -> None:
    """Write JSON; the file appears when it is complete."""
    with atomic_path(path) as temporary:
        temporary.write_text(json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")


def describe(path: Path, folder: Path) -> dict[str, Any]:
    """An output for the record: its path seen from the run directory, its size and hash."""
    return {
        "path": os.path.relpath(path, folder),
        "bytes": path.stat().st_size,
        "sha256": file_hash(path),
    }


def read_run(folder: Path) -> dict[str, Any]:
    """The record of a finished run."""
    path = folder / "run.json"
    if not path.exists():
        state = (
            "is not finished: restore --resume goes on with it" if (folder / "work").exists() else "holds no run.json"
        )
        raise InputError(
            f"{str(folder)!r} is not the directory of a finished run: it {state}. Hint: goldseam restore makes one."
        )
    data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return data


def remove_old(folder: Path) -> None:
    """Take away what an earlier run left in the directory, so that it tells of one run only."""
    path = folder / "run.json"
    if not path.exists():
        return
    for about in json.loads(path.read_text(encoding="utf-8"))["outputs"].values():
        old = folder / about["path"]
        if old.parent == folder:
            old.unlink(missing_ok=True)
    path.unlink()


def remove_torn(path: Path) -> None:
    """Take away parts of a file that a killed run left beside it; the lock of the run says that nobody writes them."""
    for part in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
        part.unlink(missing_ok=True)


def linked(output: Path, folder: Path) -> Path:
    """The output inside the run directory, as a hard link; where links are impossible it stays outside."""
    place = folder / output.name
    if place.resolve() == output.resolve():
        return output
    place.unlink(missing_ok=True)
    try:
        os.link(output, place)
    except OSError:  # another disk, or a disk without links: run.json names the output's own path
        return output
    return place
