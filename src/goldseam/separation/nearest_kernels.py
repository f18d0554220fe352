"""Compiled search for the nearest reference rows over some of the cells (S8.2), in the layout of `kernels`."""

from __future__ import annotations

import numpy as np
from numba import njit

from goldseam.separation.kernels import TEAM, aligned
from goldseam.separation.lane_kernels import (
    PAIR,
    lanes_add_seen_deviation,
    lanes_below,
    lanes_category_distances,
    lanes_number_distances,
    lanes_scale,
    lowest_bit,
)
from goldseam.separation.vector_kernels import LANES

__all__ = ["nearest_rows"]


@njit(nogil=True, boundscheck=False)
def _believed_cells(rows, ignored, i, caps, offsets, x, begin):  # type: ignore[no-untyped-def]
    """Cells of row i that count, numbers before categories: their places and values from `begin` on; where both end."""
    n = begin
    for j in range(rows.shape[1]):
        if not (ignored[i, j] or np.isnan(rows[i, j]) or caps[j] == 1):
            offsets[n], x[n] = j * LANES, rows[i, j]
            n += 1
    numbers = n
    for j in range(rows.shape[1]):
        if not (ignored[i, j] or np.isnan(rows[i, j])) and caps[j] == 1:
            offsets[n], x[n] = j * LANES, rows[i, j]
            n += 1
    return n, numbers


@njit(nogil=True, boundscheck=False)
def _seen_distances(x, offsets, begin, numbers, end, flat, seen, base, stride, sums, counts, values):  # type: ignore[no-untyped-def]
    """Squared distances over the cells that count to the rows of a pair of blocks with gaps, per observed pair of cells."""
    one, dtype = x.dtype.type(1), x.dtype.type
    for g in range(PAIR):
        sums[:] = 0
        counts[:] = 0
        for i in range(begin, end):
            cap = dtype(np.inf) if i < numbers else one
            place = base + g * stride + offsets[i]
            lanes_add_seen_deviation(sums, 0, counts, flat, seen, place, x[i], cap, one)
        lanes_scale(values, g * LANES, 0, sums, counts, dtype(stride // LANES))


@njit(nogil=True, cache=True, boundscheck=False)
def nearest_rows(rows, ignored, skips, caps, flat, seen, n_rows, k, index, distance):  # type: ignore[no-untyped-def]
    """The k nearest reference rows of every row over the cells that are observed and not `ignored`.

    `index` holds -1 where fewer than k rows share a cell with the row; of ties the lower index comes first. The innermost
    loops call no function of ours: counting the references to its arrays would take longer than the distances.
    """
    d = rows.shape[1]
    x, offsets = np.empty(TEAM * d, rows.dtype), np.empty(TEAM * d, np.int64)
    ends, numbers = np.empty(TEAM, np.int64), np.empty(TEAM, np.int64)
    values, sums, counts = aligned(PAIR * LANES, rows), aligned(LANES, rows), aligned(LANES, rows)
    blocks, stride, gaps = flat.shape[0] // (d * LANES), d * LANES, seen.shape[0] > 0
    nothing, far = rows.dtype.type(0), rows.dtype.type(np.inf)
    index[:] = -1
    distance[:] = np.inf
    for begin in range(0, rows.shape[0], TEAM):
        team = min(TEAM, rows.shape[0] - begin)
        for t in range(team):
            ends[t], numbers[t] = _believed_cells(rows, ignored, begin + t, caps, offsets, x, t * d)
        for block in range(0, blocks, PAIR):
            for t in range(team):
                i, base = begin + t, block * stride
                if gaps:
                    _seen_distances(
                        x, offsets, t * d, numbers[t], ends[t], flat, seen, base, stride, sums, counts, values
                    )
                else:
                    start = nothing if ends[t] > t * d else far
                    for lane in range(PAIR * LANES):
                        values[lane] = start
                    lanes_number_distances(values, flat, base, stride, offsets, x, t * d, numbers[t])
                    lanes_category_distances(values, flat, base, stride, offsets, x, numbers[t], ends[t])
                nearer = lanes_below(values, 0, distance[i, k - 1])
                while nearer != 0:
                    lane = lowest_bit(nearer)
                    nearer &= nearer - 1
                    value, row = values[lane], block * LANES + lane
                    if value < distance[i, k - 1] and row != skips[i] and row < n_rows:
                        at = k - 1
                        while at > 0 and value < distance[i, at - 1]:
                            distance[i, at], index[i, at] = distance[i, at - 1], index[i, at - 1]
                            at -= 1
                        distance[i, at], index[i, at] = value, row
