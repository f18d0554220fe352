"""Dirty tables with their clean twins."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from goldseam.datasets.dataset import DirtyDataset
from goldseam.datasets.locate import require_folder
from goldseam.datasets.reading import read_fields
from goldseam.datasets.sources import describe
from goldseam.schema import Kind

__all__ = ["load_raha_beers", "load_raha_flights", "load_raha_hospital"]


def load_raha_hospital() -> DirtyDataset:
    """Hospital quality, 1,000 rows, 20 text columns, 509 dirty cells (typos)."""
    return _load_pair("raha-hospital", ("index",))


def load_raha_flights() -> DirtyDataset:
    """Flight times from several sources, 2,376 rows, 7 text columns, 4,920 dirty cells."""
    return _load_pair("raha-flights", ("tuple_id",))


def load_raha_beers() -> DirtyDataset:
    """Craft beers, 2,410 rows, 11 text columns (ounces, abv and ibu hold numbers), 4,362 dirty cells."""
    return _load_pair("raha-beers", ("index", "id", "beer_name"))


def _load_pair(name: str, identifiers: Sequence[str]) -> DirtyDataset:
    """Both files by position: their column names differ, the dirty file's are kept. All cells are text."""
    folder = require_folder(name)
    names, *dirty = read_fields(folder / "dirty.csv.gz", strip=False)
    _, *clean = read_fields(folder / "clean.csv.gz", strip=False)
    schema = dict.fromkeys(names, pl.String)
    kinds = {column: Kind.PASSTHROUGH if column in identifiers else Kind.CATEGORICAL for column in names}
    return DirtyDataset(
        name,
        pl.DataFrame(dirty, schema=schema, orient="row"),
        None,
        kinds,
        describe(name),
        clean=pl.DataFrame(clean, schema=schema, orient="row"),
    )
