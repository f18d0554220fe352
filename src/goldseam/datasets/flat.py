"""One table per file: how such a set is written, and one loader for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from goldseam.datasets.dataset import Dataset
from goldseam.datasets.locate import find_folder, missing_dataset
from goldseam.datasets.openml import OpenML, fetch
from goldseam.datasets.reading import as_table, read_fields
from goldseam.datasets.sources import describe
from goldseam.errors import ParameterError
from goldseam.schema import Kind

__all__ = ["Flat", "check_choice", "continuous", "load_flat"]


@dataclass(frozen=True)
class Flat:
    """How a flat file is written.

    `target` is the position of the class in the file, None without one; `label_type` what its text is turned into;
    `missing` the text of an empty cell; `levels` the order of ordinal text; `n_rows` what OpenML must have.
    """

    name: str
    kinds: Mapping[str, Kind]
    files: Mapping[str, str]
    target: int | None = -1
    label_type: type[int] | type[str] = str
    separator: str | None = ","
    skip: int = 0
    quote: str = '"'
    missing: str | None = None
    levels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    openml: OpenML | None = None
    n_rows: int = 0


def load_flat(flat: Flat, subset: str = "all") -> Dataset:
    """The set from its files, else from OpenML."""
    parts = tuple(flat.files) if subset == "all" else (check_choice("subset", subset, (*flat.files, "all")),)
    folder = find_folder(flat.name)
    if folder is None:
        return _dataset(flat, _fetch(flat, subset), target=-1, missing=None)
    rows = [row for part in parts for row in _read(flat, folder / flat.files[part], part)]
    return _dataset(flat, rows, target=flat.target, missing=flat.missing)


def _read(flat: Flat, path: Path, part: str) -> list[list[str]]:
    skip = flat.skip + (flat.name == "adult" and part == "test")  # adult.test starts with a line of its own
    return read_fields(path, flat.separator, skip, flat.quote)


def _fetch(flat: Flat, subset: str) -> list[list[str | None]]:
    if flat.openml is None:
        missing_dataset(flat.name, "OpenML does not have it.")
    if subset != "all":
        missing_dataset(flat.name, f"OpenML has no subset {subset!r} of it, only subset='all'.")
    return fetch(flat.openml, flat.name, flat.n_rows, len(flat.kinds))


def _dataset(flat: Flat, rows: Sequence[Sequence[str | None]], target: int | None, missing: str | None) -> Dataset:
    labels = None
    if target is not None:
        position = target % (len(flat.kinds) + 1)
        labels = np.array([flat.label_type(str(row[position]).rstrip(".")) for row in rows])
        rows = [[*row[:position], *row[position + 1 :]] for row in rows]
    table = as_table(rows, flat.kinds, flat.levels, missing)
    return Dataset(flat.name, table, labels, dict(flat.kinds), describe(flat.name))


def continuous(names: Sequence[str]) -> dict[str, Kind]:
    """All columns continuous."""
    return dict.fromkeys(names, Kind.CONTINUOUS)


def check_choice(parameter: str, value: str, choices: Sequence[str]) -> str:
    """One of the choices, or an error that lists them."""
    if value not in choices:
        raise ParameterError(f"{parameter} must be one of {', '.join(map(repr, choices))}; got {value!r}.")
    return value
