"""Where the data lie.

Looked for in this order: the folder named by the environment variable `GOLDSEAM_DATA`; without it, the `data` folder of
a `shared` directory beside the source checkout, or beside the current directory or one above it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from goldseam.errors import DatasetNotFoundError

__all__ = ["data_folders", "find_folder", "missing_dataset", "require_folder"]

VARIABLE = "GOLDSEAM_DATA"


def data_folders() -> Iterator[Path]:
    """Folders that may hold one folder per data set."""
    chosen = os.environ.get(VARIABLE)
    if chosen:
        yield Path(chosen)
        return
    here = Path.cwd()
    for repository in (Path(__file__).resolve().parents[3], here, *here.parents):
        yield repository.parent / "shared" / "data"


def find_folder(name: str) -> Path | None:
    """The folder of one data set, None if it is nowhere."""
    return next((folder / name for folder in data_folders() if (folder / name).is_dir()), None)


def require_folder(name: str) -> Path:
    """The folder of a data set that can only be had locally."""
    folder = find_folder(name)
    if folder is None:
        missing_dataset(name, "it cannot be downloaded from here.")
    return folder


def missing_dataset(name: str, reason: str, cause: Exception | None = None) -> NoReturn:
    """Say that a data set is not there, why not, and how to get it."""
    chosen = os.environ.get(VARIABLE)
    looked = f"{VARIABLE}={chosen}" if chosen else f"a sibling folder shared/data ({VARIABLE} is not set)"
    raise DatasetNotFoundError(
        f"Data set {name!r} was not found in {looked}, and {reason} "
        f"Hint: put its files, under their original names, into a folder {name!r} "
        f"and set {VARIABLE} to the folder above it."
    ) from cause
