"""Compiled search for the nearest reference rows over some of the cells (S8.2), in the layout of `kernels`."""

from __future__ import annotations

import numpy as np
from numba import njit

from goldseam.compiled import lean
from goldseam.separation.kernels import TEAM, aligned, forget
from goldseam.separation.lane_kernels import (
    PAIR,
    lanes_add_seen_deviation,
    lanes_category_distances,
    lanes_least,
    lanes_number_distances,
    lanes_scale,
    lanes_upto,
    lowest_bit,
)
from goldseam.separation.vector_kernels import LANES

__all__ = ["nearest_rows"]

TILE = 64  # blocks whose distances are kept before the nearest of them are taken


@lean(boundscheck=False)
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


@lean(boundscheck=False)
def _seen_distances(x, offsets, begin, numbers, end, flat, seen, base, stride, sums, counts, values, at):  # type: ignore[no-untyped-def]
    """Squared distances over the cells that count to the rows of a pair of blocks with gaps, per observed pair of cells."""
    one, dtype = x.dtype.type(1), x.dtype.type
    for g in range(PAIR):
        sums[:] = 0
        counts[:] = 0
        for i in range(begin, end):
            cap = dtype(np.inf) if i < numbers else one
            place = base + g * stride + offsets[i]
            lanes_add_seen_deviation(sums, 0, counts, flat, seen, place, x[i], cap, one)
        lanes_scale(values, at + g * LANES, 0, sums, counts, dtype(stride // LANES))


@lean(boundscheck=False)
def _take_nearest(values, at, begin, size, n_rows, skip, least, index, distance):  # type: ignore[no-untyped-def]
    """Of the distances values[at : at + size] of the rows from `begin` on, take those among the nearest so far.

    The k-th smallest of the smallest of each lane bounds the k-th smallest of all: few rows have to be looked at one by one.
    """
    k = len(distance)
    forget(values, at, begin, size, n_rows, skip)
    lanes_least(values, at, size // LANES, least)
    bound = distance[k - 1]
    for a in range(LANES):
        as_near = 0
        for b in range(LANES):
            as_near += least[b] <= least[a]
        if as_near >= k:
            bound = min(bound, least[a])
    for lane in range(0, size, PAIR * LANES):
        nearer = lanes_upto(values, at + lane, bound)
        while nearer != 0:
            row = lane + lowest_bit(nearer)
            nearer &= nearer - 1
            value, place = values[at + row], k - 1
            if value < distance[place]:
                while place > 0 and value < distance[place - 1]:
                    distance[place], index[place] = distance[place - 1], index[place - 1]
                    place -= 1
                distance[place], index[place] = value, begin + row


@njit(nogil=True, cache=True, boundscheck=False)
def nearest_rows(rows, ignored, skips, caps, flat, seen, n_rows, k, index, distance):  # type: ignore[no-untyped-def]
    """The k nearest reference rows of every row over the cells that are observed and not `ignored`.

    `index` holds -1 where fewer than k rows share a cell with the row; of ties the lower index comes first.
    """
    d, blocks = rows.shape[1], flat.shape[0] // (rows.shape[1] * LANES)
    tile = min(TILE, blocks)
    believed = (
        np.empty(TEAM * d, rows.dtype),
        np.empty(TEAM * d, np.int64),
        np.empty(TEAM, np.int64),
        np.empty(TEAM, np.int64),
    )
    values, least = aligned(TEAM * tile * LANES, rows), aligned(LANES, rows)
    sums, counts = aligned(LANES, rows), aligned(LANES, rows)
    index[:] = -1
    distance[:] = np.inf
    for begin in range(0, rows.shape[0], TEAM):
        end = min(begin + TEAM, rows.shape[0])
        _nearest_of_team(
            rows[begin:end], ignored[begin:end], skips[begin:end], caps, flat, seen, n_rows, tile, believed,
            (values, least, sums, counts), index[begin:end], distance[begin:end],
        )  # fmt: skip


@lean(boundscheck=False)
def _nearest_of_team(rows, ignored, skips, caps, flat, seen, n_rows, tile, believed, work, index, distance):  # type: ignore[no-untyped-def]
    """The same for up to TEAM rows, which take turns on every pair of blocks."""
    team, d = rows.shape
    blocks, stride, gaps = flat.shape[0] // (d * LANES), d * LANES, seen.shape[0] > 0
    (x, offsets, numbers, ends), (values, least, sums, counts) = believed, work
    nothing, far = rows.dtype.type(0), rows.dtype.type(np.inf)
    for t in range(team):
        ends[t], numbers[t] = _believed_cells(rows, ignored, t, caps, offsets, x, t * d)
    for top in range(0, blocks, tile):
        used = min(tile, blocks - top)
        for block in range(0, used, PAIR):
            for t in range(team):
                at, base = (t * tile + block) * LANES, (top + block) * stride
                if gaps:
                    _seen_distances(
                        x, offsets, t * d, numbers[t], ends[t], flat, seen, base, stride, sums, counts, values, at
                    )
                else:
                    start = nothing if ends[t] > t * d else far
                    for lane in range(at, at + PAIR * LANES):
                        values[lane] = start
                    lanes_number_distances(values, at, flat, base, stride, offsets, x, t * d, numbers[t])
                    lanes_category_distances(values, at, flat, base, stride, offsets, x, numbers[t], ends[t])
        for t in range(team):
            at, first = t * tile * LANES, top * LANES
            _take_nearest(values, at, first, used * LANES, n_rows, skips[t], least, index[t], distance[t])
