"""scikit-learn's contract for tables: what every estimator of mixed tables does first and last.

An estimator's methods read like this::

    def fit(self, X, y=None):
        blocks, self.schema_ = fit_blocks(self, X)          # n_features_in_, feature_names_in_
        ...
    def transform(self, X):
        check_is_fitted(self)
        table, blocks = new_blocks(self, X, self.schema_)    # the same columns, in the same order
        ...
        return restored(self, table, self.schema_, blocks, changed)

Here columns must match those of `fit` in number, names and order, as scikit-learn demands. `tables.Table` is more
lenient (any order, extra columns): `Restorer` uses it directly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from goldseam import model_file
from goldseam.errors import InputError
from goldseam.schema import Blocks, Schema
from goldseam.tables import Constant, Table, learn_schema, refuse_masked

__all__ = ["Saved", "fit_blocks", "new_blocks", "restored"]


class Saved:
    """An estimator that a model file can hold."""

    def save(self, path: str | Path) -> None:
        """Write the model to a `.seam` file; `goldseam.load` reads it."""
        check_is_fitted(self)
        model_file.save(self, path)


def fit_blocks(
    estimator: Any,
    X: Any,
    *,
    kinds: Mapping[str, str] | None = None,
    max_levels: int = 50,
    small_integers: int = 10,
    declared_numbers: bool = False,
    constant: Constant = "passthrough",
    missing_values: Sequence[str] = (),
    sample_weight: ArrayLike | None = None,
) -> tuple[Blocks, Schema]:
    """Learn the columns of the reference and encode it; sets `n_features_in_` and `feature_names_in_`.

    The settings are those of `tables.learn_schema`.

    >>> from sklearn.base import BaseEstimator
    >>> blocks, schema = fit_blocks(BaseEstimator(), [[1.5, "a"], [2.5, "b"], [0.5, "a"]])
    >>> [column.kind.value for column in schema.columns], blocks.codes.ravel().tolist()
    (['continuous', 'categorical'], [0, 1, 0])
    """
    X = _checked(estimator, X, reset=True, least_rows=1)
    table = Table.read(X, missing_values)
    schema = learn_schema(
        table,
        kinds=kinds,
        max_levels=max_levels,
        small_integers=small_integers,
        declared_numbers=declared_numbers,
        constant=constant,
        missing_values=missing_values,
        sample_weight=sample_weight,
    )
    return table.encode(schema), schema


def new_blocks(estimator: Any, X: Any, schema: Schema) -> tuple[Table, Blocks]:
    """Encode an incoming table, after checking that its columns are those of `fit`."""
    X = _checked(estimator, X, reset=False, least_rows=0)
    table = Table.read(X, schema.missing_values)
    if table.names != schema.names:  # an array where fit had a frame, or the other way round: by position
        table = table.named(schema.names)
    return table, table.encode(schema)


def restored(estimator: Any, table: Table, schema: Schema, blocks: Blocks, changed: NDArray[np.bool_]) -> Any:
    """The native table with its changed cells taken from the blocks; scikit-learn's `set_output` may wrap it."""
    return table.decode(schema, blocks, changed)


def _checked(estimator: Any, X: Any, *, reset: bool, least_rows: int) -> Any:
    """Names and number of columns by scikit-learn's rules; what is no frame becomes a numpy array."""
    refuse_masked(X)
    is_frame = nw.dependencies.is_into_dataframe(X)
    if is_frame or nw.dependencies.is_polars_lazyframe(X):
        Table.read(X)  # refuses equal names and lazy frames
    if is_frame and len(X) < least_rows:
        raise InputError(
            f"The reference has {len(X)} rows, but a minimum of {least_rows} is required. Hint: check the filter."
        )
    if is_frame:
        return validate_data(estimator, X, reset=reset, skip_check_array=True)
    array = check_array(
        _plain(X),
        dtype=None,
        ensure_all_finite=False,
        ensure_min_samples=least_rows,
        estimator=estimator,
        input_name="X",
    )
    validate_data(estimator, array, reset=reset, skip_check_array=True)
    return array


def _plain(X: Any) -> Any:
    """Rows of mixed cells given as lists stay mixed: numpy alone would turn them all into text."""
    if isinstance(X, (list, tuple)) and any(isinstance(cell, str) or cell is None for row in X for cell in _cells(row)):
        return np.array(X, dtype=object)
    return X


def _cells(row: Any) -> Any:
    return row if isinstance(row, (list, tuple)) else ()
