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
    place = {position: i for i, position in enumerate(schema.modelled_positions)}
    values = np.empty((len(blocks), len(place)))
    for j, position in enumerate(schema.number_positions):
        values[:, place[position]] = blocks.numbers[:, j]
    for j, position in enumerate(schema.category_positions):
        codes = blocks.codes[:, j]
        values[:, place[position]] = np.where(codes == MISSING, np.nan, codes)
    return values


def to_blocks(values: FloatArray, schema: Schema) -> Blocks:
    """The inverse of `to_values`."""
    place = {position: i for i, position in enumerate(schema.modelled_positions)}
    numbers = np.empty((len(values), len(schema.number_positions)))
    codes = np.empty((len(values), len(schema.category_positions)), dtype=np.int32)
    for j, position in enumerate(schema.number_positions):
        numbers[:, j] = values[:, place[position]]
    for j, position in enumerate(schema.category_positions):
        column = values[:, place[position]]
        codes[:, j] = np.where(np.isnan(column), MISSING, np.nan_to_num(column, nan=UNSEEN)).astype(np.int32)
    return Blocks(numbers, codes)


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
