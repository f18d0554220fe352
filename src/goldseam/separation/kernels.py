"""Compiled loops of the separation (S11): distances to all reference rows at all nodes, and nearest rows.

Layout: the reference is stored in tree order, in blocks of 16 rows side by side (`pack_lanes`), so that one vector
instruction serves 16 pairs; GROUP blocks are worked on together, and a few rows take turns on a tile of the reference
that fits into the cache. Sums are taken in a fixed order (columns of a leaf from left to right, then children from left
to right), whatever the batch. Missing cells of a row are nil deviations (`cap` 0) and a factor at the end; where the
reference has gaps, a second array of the same layout says which of its cells were seen.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from goldseam.separation.lane_kernels import (
    PAIR,
    lanes_add,
    lanes_add_column,
    lanes_add_group,
    lanes_add_seen_deviation,
    lanes_below,
    lanes_category_distances,
    lanes_leaf_sums,
    lanes_number_distances,
    lanes_offer,
    lanes_plain_sums,
    lanes_scale,
)
from goldseam.separation.network_kernels import lanes_joins
from goldseam.separation.vector_kernels import GROUP, LANES

__all__ = [
    "forget_lanes",
    "kth_smallest",
    "list_size",
    "nearest_rows",
    "pack_lanes",
    "scale_rows",
    "sum_radii",
    "tile_size",
]

_leaf1, _leaf2, _leaf3, _leaf4 = lanes_leaf_sums
_plain3, _plain4 = lanes_plain_sums
_join1, _join2, _join4, _join8, _join16 = lanes_joins

TEAM = 8  # rows that share a tile of the reference
TILE_BYTES = 1 << 19


def pack_lanes(rows: NDArray[Any], fill: float) -> NDArray[Any]:
    """Rows as one flat array block -> column -> lane; the last group of blocks is filled up."""
    n, d = rows.shape
    blocks = -(-n // (LANES * GROUP)) * GROUP
    padded = np.full((blocks * LANES, d), fill, dtype=rows.dtype)
    padded[:n] = rows
    return np.ascontiguousarray(padded.reshape(blocks, LANES, d).transpose(0, 2, 1)).ravel()


@njit(nogil=True, cache=True, boundscheck=False)
def scale_rows(values, order, center, scale, farthest, out):  # type: ignore[no-untyped-def]
    """Scaled cells in tree order, within ±farthest; NaN stays."""
    for i in range(values.shape[0]):
        for j in range(order.shape[0]):
            column = order[j]
            scaled = (values[i, column] - center[column]) / scale[column]
            out[i, j] = scaled if np.isnan(scaled) else min(max(scaled, -farthest), farthest)


@njit(nogil=True, cache=True, boundscheck=False)
def tile_size(d, itemsize):  # type: ignore[no-untyped-def]
    """Blocks of a tile: whole groups within TILE_BYTES."""
    return max(1, TILE_BYTES // (d * LANES * itemsize * GROUP)) * GROUP


@njit(nogil=True, cache=True, boundscheck=False)
def _group_sums(x, cap, capped, flat, base, stride, start, stop, first, count, values):  # type: ignore[no-untyped-def]
    """Squared distances to the rows of a group of blocks at every node, α = 1; `capped` if not all caps are infinite."""
    wide = GROUP * LANES
    for n in range(start.shape[0] - 1, -1, -1):
        at = n * wide
        if count[n] == 0:
            j, end = start[n], stop[n]
            place = base + j * LANES
            if end - j == 4 and not capped:
                _plain4(values, at, flat, place, stride, x, cap, j)
                j += 4
            elif end - j == 3 and not capped:
                _plain3(values, at, flat, place, stride, x, cap, j)
                j += 3
            elif end - j >= 4:
                _leaf4(values, at, flat, place, stride, x, cap, j)
                j += 4
            elif end - j == 3:
                _leaf3(values, at, flat, place, stride, x, cap, j)
                j += 3
            elif end - j == 2:
                _leaf2(values, at, flat, place, stride, x, cap, j)
                j += 2
            else:
                _leaf1(values, at, flat, place, stride, x, cap, j)
                j += 1
            while j < end:
                lanes_add_column(values, at, flat, base + j * LANES, stride, x, cap, j)
                j += 1
        else:
            child = first[n] * wide
            lanes_add_group(values, at, child, child + wide)
            for c in range(2, count[n]):
                lanes_add_group(values, at, at, child + c * wide)


@njit(nogil=True, cache=True, boundscheck=False)
def _block_seen_sums(x, cap, observed, flat, seen, base, start, stop, first, count, sums, counts, values, g):  # type: ignore[no-untyped-def]
    """The same for block g of a group, with gaps in the reference.

    Sums are over cells observed in both rows, times size / number of them.
    """
    for n in range(start.shape[0] - 1, -1, -1):
        at = n * LANES
        if count[n] == 0:
            for lane in range(LANES):
                sums[at + lane] = 0
                counts[at + lane] = 0
            for j in range(start[n], stop[n]):
                lanes_add_seen_deviation(sums, at, counts, flat, seen, base + j * LANES, x[j], cap[j], observed[j])
        else:
            child = first[n] * LANES
            lanes_add(sums, at, child, child + LANES)
            lanes_add(counts, at, child, child + LANES)
            for c in range(2, count[n]):
                lanes_add(sums, at, at, child + c * LANES)
                lanes_add(counts, at, at, child + c * LANES)
        lanes_scale(values, (n * GROUP + g) * LANES, at, sums, counts, x.dtype.type(stop[n] - start[n]))


@njit(nogil=True, cache=True, boundscheck=False)
def forget_lanes(values, nodes, begin, n_rows, skip):  # type: ignore[no-untyped-def]
    """Take the row itself, and the lanes that fill up the last group, out of the running; `begin` is its first row."""
    wide = GROUP * LANES
    if begin <= skip < begin + wide:
        for n in range(nodes):
            values[n * wide + skip - begin] = np.inf
    if begin + wide > n_rows:
        for n in range(nodes):
            for lane in range(max(0, n_rows - begin), wide):
                values[n * wide + lane] = np.inf


@njit(nogil=True, cache=True, boundscheck=False)
def list_size(k):  # type: ignore[no-untyped-def]
    """Slots of a list of k values: a power of two up to 16."""
    size = 1
    while size < min(k, 16):
        size *= 2
    return max(size, k)


@njit(nogil=True, cache=True, boundscheck=False)
def kth_smallest(lists, at, k, size):  # type: ignore[no-untyped-def]
    """The k-th smallest of 16 ascending lists, one per lane, of which the slots from k on are infinite."""
    if size == 1:
        _join1(lists, at)
    elif size == 2:
        _join2(lists, at)
    elif size == 4:
        _join4(lists, at)
    elif size == 8:
        _join8(lists, at)
    elif size == 16:
        _join16(lists, at)
    else:
        for lane in range(1, LANES):  # into the list of the first lane
            for i in range(k):
                value, place = lists[at + i * LANES + lane], k - 1
                if not value < lists[at + place * LANES]:
                    break
                while place > 0 and value < lists[at + (place - 1) * LANES]:
                    lists[at + place * LANES] = lists[at + (place - 1) * LANES]
                    place -= 1
                lists[at + place * LANES] = value
    return lists[at + (k - 1) * LANES]


@njit(nogil=True, cache=True, boundscheck=False)
def _read_row(row, caps, x, cap, observed):  # type: ignore[no-untyped-def]
    """Copy a row; cells not observed become nil deviations."""
    for j in range(row.shape[0]):
        seen = not np.isnan(row[j])
        x[j] = row[j] if seen else 0
        cap[j] = caps[j] if seen else 0
        observed[j] = 1 if seen else 0


@njit(nogil=True, cache=True, boundscheck=False)
def _rescale(radii, observed, start, stop, gaps):  # type: ignore[no-untyped-def]
    """Missing cells of the row: times size / observed (S9.1), unless the sums did that; NaN where nothing was observed."""
    if observed.min() > 0:
        return
    for n in range(start.shape[0]):
        seen = 0
        for j in range(start[n], stop[n]):
            seen += observed[j] > 0
        if seen == 0:
            radii[n] = np.nan
        elif not gaps and seen < stop[n] - start[n]:
            radii[n] *= radii.dtype.type(stop[n] - start[n]) / seen


@njit(nogil=True, cache=True, boundscheck=False)
def sum_radii(rows, skips, caps, flat, seen, n_rows, start, stop, first, count, k, out):  # type: ignore[no-untyped-def]
    """K-th smallest squared distance (S-2 with α = 1) of every row at every node; NaN where nothing was observed.

    `skips[i]` is the reference row that row i is, or -1. `seen` is empty when the reference has no gaps.
    """
    nodes, d, size = start.shape[0], rows.shape[1], list_size(k)
    x, cap, observed = np.empty((TEAM, d), rows.dtype), np.empty((TEAM, d), rows.dtype), np.empty((TEAM, d), rows.dtype)
    values = np.empty(nodes * GROUP * LANES, rows.dtype)
    lists = np.empty((TEAM, nodes * size * LANES), rows.dtype)
    sums, counts = np.empty(nodes * LANES, rows.dtype), np.empty(nodes * LANES, rows.dtype)
    blocks, gaps = flat.shape[0] // (d * LANES), seen.shape[0] > 0
    tile, stride, capped = tile_size(d, rows.itemsize), d * LANES, np.empty(TEAM, np.bool_)
    for begin in range(0, rows.shape[0], TEAM):
        team = min(TEAM, rows.shape[0] - begin)
        for t in range(team):
            _read_row(rows[begin + t], caps, x[t], cap[t], observed[t])
            capped[t] = cap[t].min() < np.inf
        lists[:] = np.inf
        for top in range(0, blocks, tile):
            for t in range(team):
                for group in range(top, min(top + tile, blocks), GROUP):
                    base = group * stride
                    if gaps:
                        for g in range(GROUP):
                            _block_seen_sums(
                                x[t], cap[t], observed[t], flat, seen, base + g * stride, start, stop, first, count,
                                sums, counts, values, g,
                            )  # fmt: skip
                    else:
                        _group_sums(x[t], cap[t], capped[t], flat, base, stride, start, stop, first, count, values)
                    forget_lanes(values, nodes, group * LANES, n_rows, skips[begin + t])
                    for n in range(nodes):
                        lanes_offer(values, n * GROUP * LANES, lists[t], n * size * LANES, k)
        for t in range(team):
            for n in range(nodes):
                out[begin + t, n] = kth_smallest(lists[t], n * size * LANES, k, size)
            _rescale(out[begin + t], observed[t], start, stop, gaps)


@njit(nogil=True, cache=True, boundscheck=False)
def _believed_cells(row, ignored, caps, offsets, x):  # type: ignore[no-untyped-def]
    """Cells that count, numbers before categories: their places and values; returns how many of both, and of numbers."""
    n = 0
    for j in range(row.shape[0]):
        if not (ignored[j] or np.isnan(row[j]) or caps[j] == 1):
            offsets[n], x[n] = j * LANES, row[j]
            n += 1
    numbers = n
    for j in range(row.shape[0]):
        if not (ignored[j] or np.isnan(row[j])) and caps[j] == 1:
            offsets[n], x[n] = j * LANES, row[j]
            n += 1
    return n, numbers


@njit(nogil=True, cache=True, boundscheck=False)
def _pair_distances(x, offsets, n, numbers, flat, seen, base, stride, sums, counts, values):  # type: ignore[no-untyped-def]
    """Squared distances over the cells that count to the rows of a pair of blocks, per observed pair of cells."""
    one, dtype = x.dtype.type(1), x.dtype.type
    if seen.shape[0] > 0:
        for g in range(PAIR):
            sums[:] = 0
            counts[:] = 0
            for i in range(n):
                cap = dtype(np.inf) if i < numbers else one
                place = base + g * stride + offsets[i]
                lanes_add_seen_deviation(sums, 0, counts, flat, seen, place, x[i], cap, one)
            lanes_scale(values, g * LANES, 0, sums, counts, dtype(stride // LANES))
        return
    values[:] = 0 if n else np.inf
    lanes_number_distances(values, flat, base, stride, offsets, x, 0, numbers)
    lanes_category_distances(values, flat, base, stride, offsets, x, numbers, n)


@njit(nogil=True, cache=True, boundscheck=False)
def _insert(values, begin, n_rows, skip, k, index, distance):  # type: ignore[no-untyped-def]
    """Take the rows of a pair of blocks into the lists of the k nearest; ties: the lower index first."""
    for lane in range(min(PAIR * LANES, n_rows - begin)):
        value, row = values[lane], begin + lane
        if value < distance[k - 1] and row != skip:
            at = k - 1
            while at > 0 and value < distance[at - 1]:
                distance[at] = distance[at - 1]
                index[at] = index[at - 1]
                at -= 1
            distance[at] = value
            index[at] = row


@njit(nogil=True, cache=True, boundscheck=False)
def nearest_rows(rows, ignored, skips, caps, flat, seen, n_rows, k, index, distance):  # type: ignore[no-untyped-def]
    """The k nearest reference rows of every row over the cells that are observed and not `ignored`.

    `index` holds -1 where fewer than k rows share a cell with the row.
    """
    d = rows.shape[1]
    x, offsets = np.empty((TEAM, d), rows.dtype), np.empty((TEAM, d), np.int64)
    n, numbers = np.empty(TEAM, np.int64), np.empty(TEAM, np.int64)
    values, sums, counts = np.empty(PAIR * LANES, rows.dtype), np.empty(LANES, rows.dtype), np.empty(LANES, rows.dtype)
    blocks, stride = flat.shape[0] // (d * LANES), d * LANES
    for begin in range(0, rows.shape[0], TEAM):
        team = min(TEAM, rows.shape[0] - begin)
        for t in range(team):
            i = begin + t
            n[t], numbers[t] = _believed_cells(rows[i], ignored[i], caps, offsets[t], x[t])
            distance[i] = np.inf
            index[i] = -1
        for block in range(0, blocks, PAIR):
            for t in range(team):
                i = begin + t
                _pair_distances(
                    x[t], offsets[t], n[t], numbers[t], flat, seen, block * stride, stride, sums, counts, values
                )
                if lanes_below(values, 0, distance[i, k - 1]):
                    _insert(values, block * LANES, n_rows, skips[i], k, index[i], distance[i])
