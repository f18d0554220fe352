"""Compiled loops of the separation (S11): distances to all reference rows at all nodes, and nearest rows.

Layout: the reference is stored in tree order, in blocks of 16 rows side by side (`pack_lanes`), so that one vector
instruction serves 16 pairs. Sums are taken in a fixed order (columns of a leaf from left to right, then children from
left to right), whatever the batch. Missing cells of a row are nil deviations (`cap` 0) and a factor at the end; where
the reference has gaps, a second array of the same layout says which of its cells were seen.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from goldseam.separation.lane_kernels import (
    GROUP,
    LANES,
    lanes_add,
    lanes_add_deviation,
    lanes_add_seen_deviation,
    lanes_below,
    lanes_compare_swap,
    lanes_copy,
    lanes_deviation_sums,
    lanes_distance,
    lanes_joins,
    lanes_merge_quad,
    lanes_merges,
    lanes_offer,
    lanes_scale,
    lanes_sorts,
    lanes_sum,
)

__all__ = ["LANES", "nearest_rows", "pack_lanes", "ranked_radii", "sum_radii"]

_sum1, _sum2, _sum3, _sum4 = lanes_deviation_sums
_join1, _join2, _join4, _join8, _join16 = lanes_joins
_sort1, _sort2, _sort4, _sort8, _sort16 = lanes_sorts
_merge2, _merge4, _merge8, _merge16, _bitonic16 = lanes_merges

LEAF, MERGE_EQUAL, MERGE_ANY, SUM = 0, 1, 2, 3  # what a step of a ranked plan does (`network.py`)


def pack_lanes(rows: NDArray[Any], fill: float) -> NDArray[Any]:
    """Rows as one flat array block -> column -> lane; the last block is filled up."""
    n, d = rows.shape
    blocks = -(-n // LANES)
    padded = np.full((blocks * LANES, d), fill, dtype=rows.dtype)
    padded[:n] = rows
    return np.ascontiguousarray(padded.reshape(blocks, LANES, d).transpose(0, 2, 1)).ravel()


@njit(nogil=True, cache=True, boundscheck=False)
def _block_sums(x, cap, flat, base, start, stop, first, count, values, shift):  # type: ignore[no-untyped-def]
    """Squared distances to the 16 rows of a block at every node, α = 1."""
    for n in range(start.shape[0] - 1, -1, -1):
        at = shift + n * LANES
        if count[n] == 0:
            j = start[n]
            end = stop[n]
            width = end - j
            place = base + j * LANES
            if width >= 4:
                _sum4(values, at, flat, place, x, cap, j)
                j += 4
            elif width == 3:
                _sum3(values, at, flat, place, x, cap, j)
                j += 3
            elif width == 2:
                _sum2(values, at, flat, place, x, cap, j)
                j += 2
            else:
                _sum1(values, at, flat, place, x, cap, j)
                j += 1
            while j < end:
                lanes_add_deviation(values, at, flat, base + j * LANES, x[j], cap[j])
                j += 1
        else:
            child = shift + first[n] * LANES
            lanes_add(values, at, child, child + LANES)
            for c in range(2, count[n]):
                lanes_add(values, at, at, child + c * LANES)


@njit(nogil=True, cache=True, boundscheck=False)
def _block_seen_sums(x, cap, observed, flat, seen, base, start, stop, first, count, sums, counts, values, shift):  # type: ignore[no-untyped-def]
    """The same with gaps in the reference: sums over cells observed in both rows, times size / number of them."""
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
        lanes_scale(values, shift + at, at, sums, counts, x.dtype.type(stop[n] - start[n]))


@njit(nogil=True, cache=True, boundscheck=False)
def _forget_lanes(values, shift, nodes, block, n_rows, skip):  # type: ignore[no-untyped-def]
    """Take the row itself, and the lanes that fill up the last block, out of the running."""
    begin = block * LANES
    if begin <= skip < begin + LANES:
        for n in range(nodes):
            values[shift + n * LANES + skip - begin] = np.inf
    for lane in range(min(LANES, max(0, n_rows - begin)), LANES):
        for n in range(nodes):
            values[shift + n * LANES + lane] = np.inf


@njit(nogil=True, cache=True, boundscheck=False)
def _list_size(k):  # type: ignore[no-untyped-def]
    """Slots of a list of k values: a power of two up to 16."""
    size = 1
    while size < min(k, 16):
        size *= 2
    return max(size, k)


@njit(nogil=True, cache=True, boundscheck=False)
def _kth_smallest(lists, at, k, size):  # type: ignore[no-untyped-def]
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
    """Copy a row; cells not observed become nil deviations. Returns whether all are observed."""
    complete = True
    for j in range(row.shape[0]):
        seen = not np.isnan(row[j])
        x[j] = row[j] if seen else 0
        cap[j] = caps[j] if seen else 0
        observed[j] = 1 if seen else 0
        complete &= seen
    return complete


@njit(nogil=True, cache=True, boundscheck=False)
def _rescale(radii, observed, start, stop, kept, fraction):  # type: ignore[no-untyped-def]
    """Missing cells of the row: times h / h_observed (S9.1); infinite where nothing was observed."""
    for n in range(start.shape[0]):
        seen = 0
        for j in range(start[n], stop[n]):
            seen += observed[j] > 0
        if seen == 0:
            radii[n] = np.nan
        elif seen < stop[n] - start[n]:
            radii[n] *= radii.dtype.type(kept[n]) / max(1, int(np.floor(fraction * seen + 1e-9)))


@njit(nogil=True, cache=True, boundscheck=False)
def sum_radii(rows, skips, caps, flat, seen, n_rows, start, stop, first, count, k, out):  # type: ignore[no-untyped-def]
    """K-th smallest squared distance (S-2 with α = 1) of every row at every node; NaN where nothing was observed.

    `skips[i]` is the reference row that row i is, or -1. `seen` is empty when the reference has no gaps.
    """
    nodes, d = start.shape[0], rows.shape[1]
    x, cap, observed = np.empty(d, rows.dtype), np.empty(d, rows.dtype), np.empty(d, rows.dtype)
    width = nodes * LANES
    size = _list_size(k)
    values, best = np.empty(GROUP * width, rows.dtype), np.empty(width * size, rows.dtype)
    sums, counts = np.empty(width, rows.dtype), np.empty(width, rows.dtype)
    blocks = (n_rows + LANES - 1) // LANES
    gaps = seen.shape[0] > 0
    for i in range(rows.shape[0]):
        complete = _read_row(rows[i], caps, x, cap, observed)
        best[:] = np.inf
        for group in range(0, blocks, GROUP):
            for g in range(GROUP):
                base, shift = (group + g) * d * LANES, g * width
                if group + g < blocks and gaps:
                    _block_seen_sums(
                        x, cap, observed, flat, seen, base, start, stop, first, count, sums, counts, values, shift
                    )
                elif group + g < blocks:
                    _block_sums(x, cap, flat, base, start, stop, first, count, values, shift)
                _forget_lanes(values, shift, nodes, group + g, n_rows, skips[i])
            for n in range(nodes):
                lanes_offer(values, n * LANES, width, best, n * size * LANES, k)
        for n in range(nodes):
            out[i, n] = _kth_smallest(best, n * size * LANES, k, size)
        if not complete and not gaps:
            _rescale(out[i], observed, start, stop, stop - start, 1.0)
        elif not complete:
            _blank(out[i], observed, start, stop)


@njit(nogil=True, cache=True, boundscheck=False)
def _blank(radii, observed, start, stop):  # type: ignore[no-untyped-def]
    for n in range(start.shape[0]):
        seen = 0
        for j in range(start[n], stop[n]):
            seen += observed[j] > 0
        if seen == 0:
            radii[n] = np.nan


@njit(nogil=True, cache=True, boundscheck=False)
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


@njit(nogil=True, cache=True, boundscheck=False)
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


@njit(nogil=True, cache=True, boundscheck=False)
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


@njit(nogil=True, cache=True, boundscheck=False)
def _run_plan(x, cap, flat, base, plan, buffer, spare, values, shift):  # type: ignore[no-untyped-def]
    """Sums of the h smallest squared deviations at every node for the 16 rows of a block (S-2)."""
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
            lanes_sum(values, shift + plan[s, 3] * LANES, buffer, at, size)


@njit(nogil=True, cache=True, boundscheck=False)
def ranked_radii(rows, skips, caps, flat, n_rows, plan, slots, nodes, k, out):  # type: ignore[no-untyped-def]
    """K-th smallest ranked distance of every row at every node, any α; rows and reference in the plan's layout."""
    d, width = rows.shape[1], nodes * LANES
    buffer, spare = np.empty(slots * LANES, rows.dtype), np.empty(slots * LANES, rows.dtype)
    size = _list_size(k)
    values, best = np.empty(GROUP * width, rows.dtype), np.empty(width * size, rows.dtype)
    x = np.empty(d, rows.dtype)  # vector code needs neighbouring cells
    blocks = (n_rows + LANES - 1) // LANES
    for i in range(rows.shape[0]):
        x[:] = rows[i]
        best[:] = np.inf
        for group in range(0, blocks, GROUP):
            for g in range(GROUP):
                if group + g < blocks:
                    _run_plan(x, caps, flat, (group + g) * d * LANES, plan, buffer, spare, values, g * width)
                _forget_lanes(values, g * width, nodes, group + g, n_rows, skips[i])
            for n in range(nodes):
                lanes_offer(values, n * LANES, width, best, n * size * LANES, k)
        for n in range(nodes):
            out[i, n] = _kth_smallest(best, n * size * LANES, k, size)


@njit(nogil=True, cache=True, boundscheck=False)
def _row_distances(x, cap, observed, flat, seen, base, sums, counts, values):  # type: ignore[no-untyped-def]
    """Squared distances over all columns to the 16 rows of a block, per observed pair of cells."""
    d = x.shape[0]
    if seen.shape[0] > 0:
        for lane in range(LANES):
            sums[lane] = 0
            counts[lane] = 0
        for j in range(d):
            lanes_add_seen_deviation(sums, 0, counts, flat, seen, base + j * LANES, x[j], cap[j], observed[j])
        lanes_scale(values, 0, 0, sums, counts, x.dtype.type(d))
        return
    whole = d // 4 * 4
    lanes_distance(values, flat, base, x, cap, whole)
    for j in range(whole, d):
        lanes_add_deviation(values, 0, flat, base + j * LANES, x[j], cap[j])


@njit(nogil=True, cache=True, boundscheck=False)
def nearest_rows(rows, ignored, skips, caps, flat, seen, n_rows, k, index, distance):  # type: ignore[no-untyped-def]
    """The k nearest reference rows of every row over the cells that are observed and not `ignored`.

    Ties: the lower index first. `index` holds -1 where fewer than k rows share a cell with the row.
    """
    d = rows.shape[1]
    x, cap, observed = np.empty(d, rows.dtype), np.empty(d, rows.dtype), np.empty(d, rows.dtype)
    values, sums, counts = np.empty(LANES, rows.dtype), np.empty(LANES, rows.dtype), np.empty(LANES, rows.dtype)
    for i in range(rows.shape[0]):
        _read_row(rows[i], caps, x, cap, observed)
        for j in range(d):
            if ignored[i, j]:
                cap[j] = 0
                observed[j] = 0
        for r in range(k):
            distance[i, r] = np.inf
            index[i, r] = -1
        for b in range((n_rows + LANES - 1) // LANES):
            _row_distances(x, cap, observed, flat, seen, b * d * LANES, sums, counts, values)
            if not lanes_below(values, 0, distance[i, k - 1]):
                continue
            for lane in range(min(LANES, n_rows - b * LANES)):
                value, row = values[lane], b * LANES + lane
                if value < distance[i, k - 1] and row != skips[i]:
                    at = k - 1
                    while at > 0 and value < distance[i, at - 1]:
                        distance[i, at] = distance[i, at - 1]
                        index[i, at] = index[i, at - 1]
                        at -= 1
                    distance[i, at] = value
                    index[i, at] = row
