"""Compiled loops of the ranked scan, α < 1 (S11.1, S11.2): merge sort up the tree, 16 reference rows at a time.

The plan of the merges is made by `network.py`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from goldseam.separation.kernels import TEAM, kth_smallest, offer, tile_size
from goldseam.separation.network_kernels import (
    lanes_compare_swap,
    lanes_copy,
    lanes_merge_quad,
    lanes_merges,
    lanes_sorts,
    lanes_sum,
)
from goldseam.separation.vector_kernels import GROUP, LANES

__all__ = ["LEAF", "MERGE_ANY", "MERGE_EQUAL", "SUM", "ranked_radii"]

_sort1, _sort2, _sort4, _sort8, _sort16 = lanes_sorts
_merge2, _merge4, _merge8, _merge16, _bitonic16 = lanes_merges

LEAF, MERGE_EQUAL, MERGE_ANY, SUM = 0, 1, 2, 3  # what a step of a ranked plan does


@njit(nogil=True, boundscheck=False)
def _bitonic(buffer, at, size):  # type: ignore[no-untyped-def]
    """Sort a bitonic list of `size` vectors (a power of two, at least 16)."""
    k = size // 2
    while k >= 32:  # two stages in one pass
        half = k // 2
        for begin in range(0, size, 2 * k):
            for i in range(begin, begin + half):
                lanes_merge_quad(buffer, at + i * LANES, half * LANES)
        k //= 4
    while k >= 16:
        for begin in range(0, size, 2 * k):
            for i in range(begin, begin + k):
                lanes_compare_swap(buffer, at + i * LANES, at + (i + k) * LANES)
        k //= 2
    for begin in range(0, size, 16):
        _bitonic16(buffer, at + begin * LANES)


@njit(nogil=True, boundscheck=False)
def _merge_equal(buffer, at, size):  # type: ignore[no-untyped-def]
    """Merge two ascending neighbours of size / 2 vectors each."""
    if size == 2:
        _merge2(buffer, at)
    elif size == 4:
        _merge4(buffer, at)
    elif size == 8:
        _merge8(buffer, at)
    elif size == 16:
        _merge16(buffer, at)
    else:
        for i in range(size // 2):
            lanes_compare_swap(buffer, at + i * LANES, at + (size - 1 - i) * LANES)
        _bitonic(buffer, at, size // 2)
        _bitonic(buffer, at + size // 2 * LANES, size // 2)


@njit(nogil=True, boundscheck=False)
def _merge_any(buffer, at, size, left, other, right, spare):  # type: ignore[no-untyped-def]
    """Merge lists of `left` and `right` vectors: upward, infinite in the middle, downward is bitonic."""
    for i in range(right):
        lanes_copy(spare, i * LANES, buffer, other + i * LANES)
    for i in range(left * LANES, (size - right) * LANES):
        buffer[at + i] = np.inf
    for i in range(right):
        lanes_copy(buffer, at + (size - 1 - i) * LANES, spare, i * LANES)
    if size >= 16:
        _bitonic(buffer, at, size)
        return
    k = size // 2
    while k:
        for i in range(size):
            if not i & k:
                lanes_compare_swap(buffer, at + i * LANES, at + (i + k) * LANES)
        k //= 2


@njit(nogil=True, boundscheck=False)
def _run_plan(x, cap, flat, base, plan, buffer, spare, values, g):  # type: ignore[no-untyped-def]
    """Sums of the h smallest squared deviations at every node for the 16 rows of block g of a group (S-2)."""
    for s in range(plan.shape[0]):
        step, at, size = plan[s, 0], plan[s, 1] * LANES, plan[s, 2]
        if step == LEAF:
            j = plan[s, 3]
            place = base + j * LANES
            if size == 4:
                _sort4(buffer, at, flat, place, x, cap, j)
            elif size == 2:
                _sort2(buffer, at, flat, place, x, cap, j)
            elif size == 1:
                _sort1(buffer, at, flat, place, x, cap, j)
            elif size == 8:
                _sort8(buffer, at, flat, place, x, cap, j)
            else:
                _sort16(buffer, at, flat, place, x, cap, j)
        elif step == MERGE_EQUAL:
            _merge_equal(buffer, at, size)
        elif step == MERGE_ANY:
            _merge_any(buffer, at, size, plan[s, 3], plan[s, 4] * LANES, plan[s, 5], spare)
        else:
            lanes_sum(values, (plan[s, 3] * GROUP + g) * LANES, buffer, at, size)


@njit(nogil=True, boundscheck=False)
def _forget_lanes(values, nodes, begin, n_rows, skip):  # type: ignore[no-untyped-def]
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
def ranked_radii(rows, skips, caps, flat, n_rows, plan, slots, nodes, k, out):  # type: ignore[no-untyped-def]
    """K-th smallest ranked distance of every row at every node, any α; rows and reference in the plan's layout."""
    d = rows.shape[1]
    buffer, spare = np.empty(slots * LANES, rows.dtype), np.empty(slots * LANES, rows.dtype)
    values = np.empty(nodes * GROUP * LANES, rows.dtype)
    lists = np.empty((TEAM, nodes * k * LANES), rows.dtype)
    x = np.empty((TEAM, d), rows.dtype)  # vector code needs neighbouring cells
    blocks = flat.shape[0] // (d * LANES)
    tile = tile_size(d, rows.itemsize)
    for first in range(0, rows.shape[0], TEAM):
        team = min(TEAM, rows.shape[0] - first)
        x[:team] = rows[first : first + team]
        lists[:] = np.inf
        for top in range(0, blocks, tile):
            for t in range(team):
                for group in range(top, min(top + tile, blocks), GROUP):
                    for g in range(GROUP):
                        _run_plan(x[t], caps, flat, (group + g) * d * LANES, plan, buffer, spare, values, g)
                    _forget_lanes(values, nodes, group * LANES, n_rows, skips[first + t])
                    for n in range(nodes):
                        offer(values, n * GROUP * LANES, 1, lists[t], n * k * LANES, k)
        for t in range(team):
            for n in range(nodes):
                out[first + t, n] = kth_smallest(lists[t], n * k * LANES, k)
