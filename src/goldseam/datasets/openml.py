"""The way round a missing file: OpenML through scikit-learn's fetcher.

OpenML's copies hold the same rows, but some name categories in words where the original file has symbols (german). They
have no original train/test split. Column names and target labels are brought to those of the local files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldseam.datasets.locate import missing_dataset

__all__ = ["OpenML", "fetch"]


@dataclass(frozen=True)
class OpenML:
    """One set on OpenML: its number, columns to leave out, its labels -> ours (none: as they are)."""

    data_id: int
    leave_out: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)


def fetch(source: OpenML, name: str, n_rows: int, n_columns: int) -> list[list[str | None]]:
    """Text rows, the target last; an error when the set is not there or not the one that is meant."""
    from sklearn.datasets import fetch_openml

    try:
        bunch = fetch_openml(data_id=source.data_id, as_frame=False, parser="liac-arff", n_retries=1)
    except OSError as error:  # no network, or OpenML is down
        missing_dataset(name, f"OpenML (set {source.data_id}) did not answer: {error}.", error)
    columns = [_column(bunch, i) for i, column in enumerate(bunch.feature_names) if column not in source.leave_out]
    if len(columns) != n_columns or len(bunch.target) != n_rows:
        got = f"{len(bunch.target)} x {len(columns)}"
        missing_dataset(name, f"OpenML's set {source.data_id} is {got} instead of {n_rows} x {n_columns}.")
    columns.append([source.labels.get(str(label), str(label)) for label in bunch.target])
    return [list(row) for row in zip(*columns, strict=True)]


def _column(bunch: Any, i: int) -> list[str | None]:
    values: NDArray[np.float64] = np.asarray(bunch.data[:, i], dtype=np.float64)
    levels = (bunch.categories or {}).get(bunch.feature_names[i])
    if levels is None:
        return [None if np.isnan(value) else f"{value:.17g}" for value in values]
    return [None if np.isnan(value) else str(levels[int(value)]).strip("'") for value in values]
