"""Tables' blocks as one matrix, and the scaling of its columns (S9.2, S9.3, S9.4).

| S9 | function |
|---|---|
| S9.2 categories as codes | `to_values`, `to_blocks` |
| S9.3, S9.4 scaling | `learn_scaling` |
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from goldseam.schema import MISSING, UNSEEN, Blocks, Schema

__all__ = ["category_columns", "learn_scaling", "to_blocks", "to_values"]

FloatArray = NDArray[np.float64]

IQR_OF_NORMAL = 1.3489795003921634


def to_values(blocks: Blocks, schema: Schema) -> FloatArray:
    """Modelled columns side by side in table order: numbers in their units, categories as codes, NaN for missing."""
    if not len(schema.category_positions):
        return np.ascontiguousarray(blocks.numbers, dtype=np.float64)
    is_category = category_columns(schema)
    values = np.empty((len(blocks), len(is_category)))
    values[:, ~is_category] = blocks.numbers
    values[:, is_category] = np.where(blocks.codes == MISSING, np.nan, blocks.codes)
    return values


def to_blocks(values: FloatArray, schema: Schema) -> Blocks:
    """The inverse of `to_values`."""
    is_category = category_columns(schema)
    if not is_category.any():
        return Blocks(values, np.empty((len(values), 0), dtype=np.int32))
    labels = values[:, is_category]
    codes = np.where(np.isnan(labels), MISSING, np.nan_to_num(labels, nan=UNSEEN)).astype(np.int32)
    return Blocks(values[:, ~is_category], codes)


def category_columns(schema: Schema) -> NDArray[np.bool_]:
    """True at the columns of `to_values` that hold codes."""
    return np.isin(schema.modelled_positions, schema.category_positions)


def learn_scaling(values: FloatArray, is_category: NDArray[np.bool_], method: str) -> tuple[FloatArray, FloatArray]:
    """Centre and scale of every column from the reference rows: 'robust', 'range', 'quantiles', 'common' or 'none'.

    Robust: IQR as a standard deviation, else the standard deviation, else 1. Quantiles: from 1 % to 99 %, else the
    range. 'common' is one range for all columns.

    >>> learn_scaling(np.array([[0.0], [1.0], [4.0]]), np.array([False]), "range")
    (array([0.]), array([4.]))
    """
    d = values.shape[1]
    center, scale = np.zeros(d), np.ones(d)
    numbers = np.flatnonzero(~is_category)
    if method == "none" or not len(numbers):
        return center, scale
    block = values[:, numbers]
    low, high = np.nanmin(block, axis=0), np.nanmax(block, axis=0)
    if method == "common":
        center[numbers], spread = low.min(), np.full(len(numbers), high.max() - low.min())
    elif method == "range":
        center[numbers], spread = low, high - low
    elif method == "quantiles":
        inner = np.subtract(*np.nanquantile(block, (0.99, 0.01), axis=0))
        center[numbers], spread = np.nanmedian(block, axis=0), np.where(inner > 0, inner, high - low)
    else:
        center[numbers], spread = np.nanmedian(block, axis=0), _robust_spread(block)
    scale[numbers] = np.where(np.isfinite(spread) & (spread > 0), spread, 1.0)
    return center, scale


def _robust_spread(block: FloatArray) -> FloatArray:
    low, high = np.nanquantile(block, (0.25, 0.75), axis=0)
    iqr = (high - low) / IQR_OF_NORMAL
    return np.where(iqr > 0, iqr, np.nanstd(block, axis=0))
