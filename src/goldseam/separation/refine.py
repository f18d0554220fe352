"""Refinement by context residuals, as specified in S7: correct the mask of rows that already have one.

The residual of a cell is its distance from the median of the row's nearest reference rows over the believed cells.
Smoothed over neighbouring cells and compared with what clean rows show, it drops cells from the mask and adds
neighbours to it. It never adds rows. The default outline (`segments`) goes further; this one is kept as specified.

| S7 | function |
|---|---|
| steps 1-3 | `learn_residuals` |
| step 4, (S-21) | `refined_mask` |
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import binary_dilation, uniform_filter

from goldseam.separation.reference import Reference
from goldseam.separation.tree import AttributeTree

__all__ = ["ResidualProfile", "context_residuals", "learn_residuals", "refined_mask"]

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]

N_CONTEXT = 10
PASSES = 2


@dataclass(frozen=True, eq=False)
class ResidualProfile:
    """What residuals of clean rows look like: their scale per cell and the two thresholds of (S-21)."""

    scale: FloatArray
    low: FloatArray
    high: FloatArray


def learn_residuals(reference: Reference, clean: FloatArray, members: IntArray | None = None) -> ResidualProfile:
    """Steps 1-3 of S7 on clean rows outside the reference (or members, which then do not count as neighbours)."""
    grid = reference.tree.shape is not None
    limit = 300 if grid else 150
    rows, skips = clean[:limit], None if members is None else members[:limit]
    residuals = context_residuals(reference, rows, np.zeros(rows.shape, dtype=bool), skips)
    scale = residuals.mean(axis=0) + _resolution(reference)
    ratio = _smooth(reference.tree, residuals / scale)
    low, high = np.quantile(ratio, (0.60, 0.95), axis=0)
    if grid:
        low, high = np.maximum(low, np.quantile(ratio, 0.60)), np.maximum(high, np.quantile(ratio, 0.90))
    return ResidualProfile(scale, low, high)


def refined_mask(
    reference: Reference,
    profile: ResidualProfile,
    values: FloatArray,
    mask: BoolArray,
    members: IntArray | None = None,
    n_jobs: int | None = None,
) -> BoolArray:
    """(S-21) applied twice to every row with a mask."""
    result = mask.copy()
    grid = reference.tree.shape is not None
    for _ in range(PASSES):
        context = (~result & ~np.isnan(values)).sum(axis=1)
        rows = np.flatnonzero(result.any(axis=1) & (grid | (context >= 2)))
        if not len(rows):
            break
        hidden = result[rows] & (context[rows] >= 8)[:, None] if grid else result[rows]
        skips = None if members is None else members[rows]
        ratio = _smooth(
            reference.tree, context_residuals(reference, values[rows], hidden, skips, n_jobs) / profile.scale
        )
        kept = result[rows] & (ratio > profile.low)
        added = _dilate(reference.tree, result[rows]) & (ratio > profile.high)
        result[rows] = (kept | added) & ~np.isnan(values[rows])
    return result


def context_residuals(
    reference: Reference,
    values: FloatArray,
    ignored: BoolArray,
    members: IntArray | None = None,
    n_jobs: int | None = None,
) -> FloatArray:
    """Scaled distance of every cell from the median of the context neighbours; 0 or 1 for categories."""
    index, _ = reference.nearest(values, ignored, min(N_CONTEXT, len(reference) - 1), members=members, n_jobs=n_jobs)
    result = np.zeros(values.shape)
    for row, (cells, donors) in enumerate(zip(values, index, strict=True)):
        block = reference.values[donors[donors >= 0]]
        result[row] = _residual(reference, cells, block)
    return np.nan_to_num(result, nan=0.0)


def _residual(reference: Reference, cells: FloatArray, block: FloatArray) -> FloatArray:
    """Residuals of one row given its neighbours' rows."""
    if reference.has_gaps:
        block = np.where(np.isnan(block), reference.typical, block)
    residual = np.abs(cells - np.median(block, axis=0)) / reference.scale
    for j in np.flatnonzero(reference.is_category):
        levels, counts = np.unique(block[:, j], return_counts=True)
        residual[j] = float(cells[j] != levels[np.argmax(counts)]) if not np.isnan(cells[j]) else 0.0
    return residual


def _resolution(reference: Reference) -> FloatArray:
    """ε of S7 in scaled units: 5 % of the common range of a grid, .1 % of each column's range on a line."""
    low, high = reference.range
    if reference.tree.shape is not None:
        return 0.05 * float(high.max() - low.min()) / reference.scale
    return np.where(high > low, 0.001 * (high - low), 0.001) / reference.scale


def _on_grid(tree: AttributeTree, cells: NDArray[np.generic]) -> NDArray[np.generic]:
    """Rows of cells as they lie: on the grid, or on the line of the tree order."""
    return cells.reshape(len(cells), *tree.shape) if tree.shape is not None else cells[:, tree.order]


def _off_grid(tree: AttributeTree, cells: NDArray[np.generic]) -> NDArray[np.generic]:
    if tree.shape is not None:
        return cells.reshape(len(cells), -1)
    result = np.empty_like(cells)
    result[:, tree.order] = cells
    return result


def _smooth(tree: AttributeTree, ratio: FloatArray) -> FloatArray:
    """Mean over 3 neighbours along each axis, edges repeated."""
    laid = _on_grid(tree, ratio)
    size = (1, *[3] * (laid.ndim - 1))
    return np.asarray(_off_grid(tree, uniform_filter(laid, size=size, mode="reflect")), dtype=np.float64)


def _dilate(tree: AttributeTree, mask: BoolArray) -> BoolArray:
    """Two steps to edge-connected neighbours on a grid, d // 16 positions each way on a line."""
    laid = _on_grid(tree, mask)
    steps = 2 if tree.shape is not None else max(1, tree.n_columns // 16)
    structure = np.zeros((1, *[3] * (laid.ndim - 1)), dtype=bool)
    centre = (0, *[1] * (laid.ndim - 1))
    structure[centre] = True
    for axis in range(1, laid.ndim):
        for side in (0, 2):
            structure[(*centre[:axis], side, *centre[axis + 1 :])] = True
    return np.asarray(_off_grid(tree, binary_dilation(laid, structure, iterations=steps)), dtype=bool)
