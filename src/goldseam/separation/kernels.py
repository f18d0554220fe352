"""Compiled loops of the separation (S11): squared distances to all reference rows at all nodes, α = 1.

Layout: the reference is stored in tree order, in blocks of 16 rows side by side (`pack_lanes`), so that one vector
instruction serves 16 pairs; GROUP blocks are worked on together, and a few rows take turns on a tile of the reference
that fits into the cache. Nodes are visited children first; a tile's distances at a node are summed, taken into the lists
of the k smallest, and added to the parent's. Sums are taken in a fixed order (columns of a leaf from left to right, then
children from left to right), whatever the batch. Missing cells of a row are nil deviations (`cap` 0) and a factor at the
end; where the reference has gaps, a second array of the same layout says which of its cells were seen.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from goldseam.compiled import lean
from goldseam.separation.lane_kernels import (
    lanes_add_column,
    lanes_add_group,
    lanes_add_seen_deviation,
    lanes_leaf_sums,
    lanes_offer,
    lanes_plain_sums,
    lanes_scale,
)
from goldseam.separation.network_kernels import LONGEST, lanes_join, lanes_take
from goldseam.separation.vector_kernels import GROUP, LANES

__all__ = [
    "MOST_ROWS",
    "TEAM",
    "aligned",
    "kth_smallest",
    "offer",
    "pack_lanes",
    "scale_rows",
    "sum_radii",
    "tile_size",
]

_leaf1, _leaf2, _leaf3, _leaf4 = lanes_leaf_sums
_plain3, _plain4 = lanes_plain_sums

TEAM = 8  # rows that share a tile of the reference
TILE_BYTES, MOST_ROWS = 1 << 19, 1024  # of a tile
CACHE_LINE = 64


def pack_lanes(rows: NDArray[Any], fill: float) -> NDArray[Any]:
    """Rows as one flat array block -> column -> lane; the last group of blocks is filled up."""
    n, d = rows.shape
    blocks = -(-n // (LANES * GROUP)) * GROUP
    padded = np.full((blocks * LANES, d), fill, dtype=rows.dtype)
    padded[:n] = rows
    result = aligned.py_func(padded.size, padded)  # type: ignore[no-untyped-call]
    result.reshape(blocks, d, LANES)[:] = padded.reshape(blocks, LANES, d).transpose(0, 2, 1)
    return result


@njit(nogil=True, cache=True, boundscheck=False)
def aligned(size, like):  # type: ignore[no-untyped-def]
    """An empty array of the type of `like` that begins with a cache line: vectors that cross lines are read twice."""
    raw = np.empty(size + LANES, like.dtype)
    shift = -raw.ctypes.data % CACHE_LINE // raw.itemsize
    return raw[shift : shift + size]


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
    """Blocks of a tile: whole groups within TILE_BYTES and MOST_ROWS."""
    return max(1, min(TILE_BYTES // (d * itemsize), MOST_ROWS) // (LANES * GROUP)) * GROUP


@lean(boundscheck=False)
def _leaf_sums(x, cap, capped, flat, base, stride, groups, j, end, values, at):  # type: ignore[no-untyped-def]
    """Squared distances over the columns [j, end) to the rows of some groups of blocks; `capped` if a cap is finite."""
    wide, begin = GROUP * LANES, j
    for g in range(groups):
        to, place, j = at + g * wide, base + g * GROUP * stride + begin * LANES, begin
        if end - j == 4 and not capped:
            _plain4(values, to, flat, place, stride, x, cap, j)
            j += 4
        elif end - j == 3 and not capped:
            _plain3(values, to, flat, place, stride, x, cap, j)
            j += 3
        elif end - j >= 4:
            _leaf4(values, to, flat, place, stride, x, cap, j)
            j += 4
        elif end - j == 3:
            _leaf3(values, to, flat, place, stride, x, cap, j)
            j += 3
        elif end - j == 2:
            _leaf2(values, to, flat, place, stride, x, cap, j)
            j += 2
        else:
            _leaf1(values, to, flat, place, stride, x, cap, j)
            j += 1
        while j < end:
            lanes_add_column(values, to, flat, place + (j - begin) * LANES, stride, x, cap, j)
            j += 1


@lean(boundscheck=False)
def _seen_leaf_sums(x, cap, observed, flat, seen, base, stride, blocks, j, end, values, counts, at):  # type: ignore[no-untyped-def]
    """The same over cells observed in both rows, and their number."""
    for b in range(blocks):
        to = at + b * LANES
        for lane in range(LANES):
            values[to + lane] = 0
            counts[to + lane] = 0
        for i in range(j, end):
            place = base + b * stride + i * LANES
            lanes_add_seen_deviation(values, to, counts, flat, seen, place, x[i], cap[i], observed[i])


@njit(nogil=True, boundscheck=False)
def _visits(first, count):  # type: ignore[no-untyped-def]
    """Nodes with children before parents, left before right; the buffer of each; whether it is a later sibling.

    A first child uses the buffer of its parent, later ones the next, which is then added to it.
    """
    nodes = count.shape[0]
    order, slot, todo = np.empty(nodes, np.int64), np.zeros(nodes, np.int64), np.empty(nodes, np.int64)
    later = np.zeros(nodes, np.bool_)
    left, n_todo, todo[0] = nodes, 1, 0
    while n_todo:
        n_todo -= 1
        left -= 1
        node = order[left] = todo[n_todo]
        for c in range(count[node]):
            todo[n_todo] = child = first[node] + c
            later[child] = c > 0
            slot[child] = slot[node] + later[child]
            n_todo += 1
    return order, slot, later


@lean(boundscheck=False)
def offer(values, at, groups, lists, place, k):  # type: ignore[no-untyped-def]
    """Take the values of some groups of blocks into 16 ascending lists of the k smallest, one per lane."""
    if k <= LONGEST:
        lanes_take(values, at, groups, lists, place, k)
    else:
        for g in range(groups):
            lanes_offer(values, at + g * GROUP * LANES, lists, place, k)


@lean(boundscheck=False)
def kth_smallest(lists, at, k):  # type: ignore[no-untyped-def]
    """The k-th smallest of 16 ascending lists, one per lane."""
    if k <= LONGEST:
        lanes_join(lists, at, k)
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


@lean(boundscheck=False)
def _read_row(row, caps, x, cap, observed):  # type: ignore[no-untyped-def]
    """Copy a row; cells not observed become nil deviations."""
    for j in range(row.shape[0]):
        seen = not np.isnan(row[j])
        x[j] = row[j] if seen else 0
        cap[j] = caps[j] if seen else 0
        observed[j] = 1 if seen else 0


@lean(boundscheck=False)
def _rescale(radii, observed, start, stop, gaps):  # type: ignore[no-untyped-def]
    """Missing cells of the row: times size / observed (S9.1), unless the sums did that; NaN where nothing was observed."""
    complete = True
    for j in range(observed.shape[0]):
        complete &= observed[j] > 0
    for n in range(0 if complete else start.shape[0]):
        seen = 0
        for j in range(start[n], stop[n]):
            seen += observed[j] > 0
        if seen == 0:
            radii[n] = np.nan
        elif not gaps and seen < stop[n] - start[n]:
            radii[n] *= radii.dtype.type(stop[n] - start[n]) / seen


@lean(boundscheck=False)
def forget(values, at, begin, size, n_rows, skip):  # type: ignore[no-untyped-def]
    """Take the row itself, and the lanes that fill up the last group, out of the running; `begin` is the first row."""
    if begin <= skip < begin + size:
        values[at + skip - begin] = np.inf
    for lane in range(n_rows - begin, size):
        values[at + lane] = np.inf


@lean(boundscheck=False)
def _scan_tile(row, lanes, tree, visits, begin, used, n_rows, k, work, lists, at):  # type: ignore[no-untyped-def]
    """Take the distances of one row to a tile of the reference into its lists of the k smallest, node after node.

    `begin` is the first of the `used` blocks. Buffers hold a node on the way up each, so that they stay in the nearest
    cache; a node is added to its parent's buffer as soon as it has been looked at.
    """
    (x, cap, observed, capped, skip), (flat, seen, stride) = row, lanes
    (start, stop, count), (order, slot, later), (values, counts, scaled, size) = tree, visits, work
    groups, base, gaps, wide = used // GROUP, begin * stride, seen.shape[0] > 0, GROUP * LANES
    for n in order:
        here, j, end = slot[n] * size, start[n], stop[n]
        if count[n] == 0:
            if gaps:
                _seen_leaf_sums(x, cap, observed, flat, seen, base, stride, used, j, end, values, counts, here)
            else:
                _leaf_sums(x, cap, capped, flat, base, stride, groups, j, end, values, here)
            forget(values, here, begin * LANES, used * LANES, n_rows, skip)
        if gaps:
            for b in range(0, used * LANES, LANES):
                lanes_scale(scaled, b, here + b, values, counts, x.dtype.type(end - j))
            offer(scaled, 0, groups, lists, at + n * k * LANES, k)
        else:
            offer(values, here, groups, lists, at + n * k * LANES, k)
        if later[n]:
            for g in range(0, groups * wide, wide):
                lanes_add_group(values, here - size + g, here - size + g, here + g)
                if gaps:
                    lanes_add_group(counts, here - size + g, here - size + g, here + g)


@njit(nogil=True, cache=True, boundscheck=False)
def sum_radii(rows, skips, caps, flat, seen, n_rows, start, stop, first, count, k, out):  # type: ignore[no-untyped-def]
    """K-th smallest squared distance (S-2 with α = 1) of every row at every node; NaN where nothing was observed.

    `skips[i]` is the reference row that row i is, or -1. `seen` is empty when the reference has no gaps.
    """
    nodes, d, gaps = start.shape[0], rows.shape[1], seen.shape[0] > 0
    x, cap, observed = np.empty((TEAM, d), rows.dtype), np.empty((TEAM, d), rows.dtype), np.empty((TEAM, d), rows.dtype)
    visits, blocks = _visits(first, count), flat.shape[0] // (d * LANES)
    tile, length = min(tile_size(d, rows.itemsize), blocks), nodes * k * LANES
    values = aligned((visits[1].max() + 1) * tile * LANES, rows)
    counts, scaled = aligned(values.shape[0] if gaps else 0, rows), aligned(tile * LANES if gaps else 0, rows)
    lists = aligned(TEAM * length, rows)
    work, lanes, tree = (values, counts, scaled, tile * LANES), (flat, seen, d * LANES), (start, stop, count)
    for begin in range(0, rows.shape[0], TEAM):
        team = min(TEAM, rows.shape[0] - begin)
        for t in range(team):
            _read_row(rows[begin + t], caps, x[t], cap[t], observed[t])
        lists[:] = np.inf
        for top in range(0, blocks, tile):
            used = min(tile, blocks - top)
            for t in range(team):
                row = (x[t], cap[t], observed[t], cap[t].min() < np.inf, skips[begin + t])
                _scan_tile(row, lanes, tree, visits, top, used, n_rows, k, work, lists, t * length)
        for t in range(team):
            for n in range(nodes):
                out[begin + t, n] = kth_smallest(lists, t * length + n * k * LANES, k)
            _rescale(out[begin + t], observed[t], start, stop, gaps)
