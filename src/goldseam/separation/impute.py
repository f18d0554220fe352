"""Fill cells that are not believed or not observed (S8).

| S8 | function |
|---|---|
| context-mean, context-medoid (S8.2) | `fill_from_context` |
| sibling-map, sibling-nearest (S-22) | `fill_from_siblings` |
| any fitted imputer | `fill_with` |
| refusal (S-23) | `enough_context` |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldseam.separation.reference import Reference
from goldseam.separation.scores import kept_deviations

__all__ = ["Filled", "enough_context", "fill_from_context", "fill_from_siblings", "fill_with"]

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Filled:
    """Rows after filling; `donors[i]` are the reference rows that row i was filled from (-1: none)."""

    values: FloatArray
    donors: IntArray
    refused: BoolArray


def enough_context(values: FloatArray, mask: BoolArray) -> BoolArray:
    """(S-23) Rows with at least max(2, d / 20) cells that are observed and believed.

    >>> enough_context(np.zeros((2, 3)), np.array([[True, False, False], [True, True, False]])).tolist()
    [True, False]
    """
    context = (~mask & ~np.isnan(values)).sum(axis=1)
    return np.asarray(context >= max(2.0, 0.05 * values.shape[1]))


def fill_from_context(
    reference: Reference,
    values: FloatArray,
    mask: BoolArray,
    n_donors: int,
    *,
    medoid: bool = False,
    members: IntArray | None = None,
    trust: FloatArray | None = None,
    context: IntArray | None = None,
    n_jobs: int | None = None,
) -> Filled:
    """Fill masked and missing cells from the nearest reference rows over the context: their mean, or their medoid.

    `context` holds nearest rows that are known already, -1 where they are not.
    """
    todo = mask | np.isnan(values)
    refused = todo.any(axis=1) & ~enough_context(values, mask)
    rows = np.flatnonzero(todo.any(axis=1) & ~refused)
    result, donors = values.copy(), np.full((len(values), n_donors), -1, dtype=np.int64)
    k = min(n_donors, len(reference) - 1)
    index = np.full((len(values), k), -1, dtype=np.int64)
    if context is not None and context.shape[1] >= k:
        index = context[:, :k].copy()
    new = rows[index[rows, 0] < 0]
    skips = None if members is None else members[new]
    index[new], _ = reference.nearest(values[new], mask[new], k, members=skips, n_jobs=n_jobs)
    if medoid:
        for row in rows:
            near = index[row][index[row] >= 0]
            index[row] = np.r_[near[_medoid(reference, near, np.flatnonzero(todo[row]))], np.full(k - 1, -1)]
    result[rows] = reference.completed(values[rows], todo[rows], index[rows], trust, n_jobs)
    donors[rows, :k] = index[rows]
    return Filled(result, donors, refused)


def _medoid(reference: Reference, donors: IntArray, cells: IntArray) -> int:
    """Which donor has the least summed squared distance to the others over the cells."""
    block = reference.values[np.ix_(donors, cells)] / reference.scale[cells]
    gaps = np.nan_to_num((block[:, None, :] - block[None, :, :]) ** 2)
    gaps = np.where(reference.is_category[cells], np.minimum(gaps, 1.0), gaps)
    return int(np.argmin(gaps.sum(axis=2).sum(axis=1)))


def fill_from_siblings(
    reference: Reference,
    member_radii: NDArray[np.floating[Any]],
    values: FloatArray,
    nodes: BoolArray,
    n_candidates: int,
    *,
    nearest: bool = False,
    members: IntArray | None = None,
) -> Filled:
    """(S-22) Fill every declared node from a row that is near on its sibling.

    Of the K rows nearest on the sibling's cells, the one with the smallest radius at the parent gives the values;
    with `nearest` it is the nearest one itself. All nodes are filled independently from the observed row.
    """
    result, refused = values.copy(), np.zeros(len(values), dtype=bool)
    donors = np.full((len(values), max(1, int(nodes.sum(axis=1).max(initial=0)))), -1, dtype=np.int64)
    scaled, own = reference.scaled(values), reference.scaled(reference.values)
    for row in np.flatnonzero(nodes.any(axis=1)):
        skip = -1 if members is None else int(members[row])
        for i, node in enumerate(np.flatnonzero(nodes[row])):
            near = _near_sibling(reference, own, scaled[row], int(node), 1 if nearest else n_candidates, skip)
            if not len(near):
                refused[row] = True
                continue
            donor = near[np.argmin(member_radii[near, reference.tree.parent[node]])]
            columns = reference.tree.columns(int(node))
            result[row, columns] = reference.values[donor, columns]
            donors[row, i] = donor
    return Filled(result, donors, refused)


def _near_sibling(
    reference: Reference, own: NDArray[np.float32], x: NDArray[np.float32], node: int, k: int, skip: int
) -> IntArray:
    """The k reference rows nearest on the cells of a node's sibling, nearest first, ties by index."""
    tree, sibling = reference.tree, reference.tree.sibling(node)
    part = slice(int(tree.start[sibling]), int(tree.stop[sibling]))
    gaps = np.minimum((own[:, part] - x[part]) ** 2, reference.caps[part])
    seen = (~np.isnan(gaps)).sum(axis=1)
    kept = kept_deviations(seen, reference.ranked_fraction)
    sums = np.cumsum(np.sort(gaps, axis=1), axis=1, dtype=np.float32)  # NaN sorts last
    with np.errstate(invalid="ignore"):
        distance = sums[np.arange(len(sums)), kept - 1] * (reference.kept[sibling] / kept)
    distance[seen == 0] = np.nan
    if skip >= 0:
        distance[skip] = np.nan
    order = np.argsort(distance, kind="stable")[:k]
    return np.asarray(order[~np.isnan(distance[order])], dtype=np.int64)


def fill_with(imputer: Any, values: FloatArray, mask: BoolArray) -> Filled:
    """Hide masked cells from a fitted imputer and take what it puts there, one row at a time.

    One row at a time, because imputers that multiply matrices give last-bit different answers for other batches.
    """
    todo = mask | np.isnan(values)
    refused = todo.any(axis=1) & ~enough_context(values, mask)
    result = values.copy()
    for row in np.flatnonzero(todo.any(axis=1) & ~refused):
        hidden = np.where(todo[row], np.nan, values[row])[None, :]
        filled = np.asarray(imputer.transform(hidden), dtype=np.float64)[0]
        result[row] = np.where(todo[row], filled, values[row])
    return Filled(result, np.full((len(values), 1), -1, dtype=np.int64), refused)
