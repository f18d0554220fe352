"""What every loader and generator returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from goldseam.schema import Kind

__all__ = ["Dataset", "DirtyDataset"]

Table = pl.DataFrame | NDArray[np.float64]
Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table, its target and what is known of both.

    `data` is a float64 array when every column is continuous, else a polars frame: strings for categories (an ordered
    `Enum` for ordinal text), integers for counts, null for missing cells. `kinds` names every column of `data` in
    order and can be passed on as it is wherever Goldseam takes `kinds`. `details` holds further arrays with one entry
    per row, `splits` arrays of row numbers.

    >>> flowers = Dataset("two", np.array([[1.0], [np.nan]]), np.array(["a", "b"]), {"width": Kind.CONTINUOUS})
    >>> flowers.n_rows, flowers.complete().target.tolist(), flowers.frame().columns
    (2, ['a'], ['width'])
    """

    name: str
    data: Table
    target: NDArray[Any] | None
    kinds: Mapping[str, Kind]
    description: str = ""
    details: Arrays = field(default_factory=dict)
    splits: Arrays = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.n_rows} rows, {len(self.kinds)} columns)"

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.data)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the columns of `data`, in order."""
        return tuple(self.kinds)

    def frame(self) -> pl.DataFrame:
        """The data as a polars frame, whatever `data` is; NaN becomes null."""
        if isinstance(self.data, pl.DataFrame):
            return self.data
        return pl.DataFrame(self.data, schema=list(self.kinds), orient="row", nan_to_null=True)

    def take(self, rows: NDArray[Any]) -> Dataset:
        """The same columns for some of the rows (numbers or a boolean mask), without the splits."""
        rows = np.flatnonzero(rows) if rows.dtype == bool else rows
        return replace(
            self,
            data=self.data[rows],
            target=None if self.target is None else self.target[rows],
            details={key: values[rows] for key, values in self.details.items()},
            splits={},
        )

    def complete(self) -> Dataset:
        """The rows without a missing cell."""
        if isinstance(self.data, pl.DataFrame):
            gaps = self.data.select(pl.any_horizontal(pl.all().is_null())).to_series().to_numpy()
        else:
            gaps = np.asarray(np.isnan(self.data).any(axis=1))
        return self.take(~gaps)


@dataclass(frozen=True, eq=False, repr=False)
class DirtyDataset(Dataset):
    """A dirty table (`data`) with its clean twin: same rows, same columns, all text."""

    clean: pl.DataFrame = field(default_factory=pl.DataFrame)

    @property
    def errors(self) -> NDArray[np.bool_]:
        """True where the dirty cell differs from the clean one, (n_rows, n_columns)."""
        return np.asarray(self.frame().to_numpy() != self.clean.to_numpy(), dtype=bool)

    def take(self, rows: NDArray[Any]) -> DirtyDataset:
        """The same rows of both tables."""
        rows = np.flatnonzero(rows) if rows.dtype == bool else rows
        taken = super().take(rows)
        assert isinstance(taken, DirtyDataset)
        return replace(taken, clean=self.clean[rows])
