"""Compiled loops of the margin room: one row at a time, so that a row's result never depends on its batch.

Reference and support rows come transposed, shape (columns, rows): the inner loop runs along neighbouring rows and uses
the vector unit without reordering any sum.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["linear_scores", "neighbour_sums", "neighbour_sums_observed", "radial_scores", "smallest_sums"]

Array = NDArray[Any]
NO_ROW = -1


@njit(nogil=True, cache=True)
def _pivot(values: Array, low: int, high: int, rank: int) -> float:
    """A value of values[low..high] whose rank is close to `rank`: the matching order statistic of 15 spread entries."""
    sample = np.empty(15)
    size = high - low + 1
    for i in range(15):
        value = values[low + i * (size - 1) // 14]
        j = i
        while j > 0 and sample[j - 1] > value:
            sample[j] = sample[j - 1]
            j -= 1
        sample[j] = value
    return sample[min(14, (rank - low) * 15 // size)]


@njit(nogil=True, cache=True)
def _sum_of_smallest_roots(values: Array, k: int) -> float:
    """Sum of the square roots of the k smallest entries; reorders `values` (quickselect without branches)."""
    low, high = 0, values.size - 1
    while low < high:
        pivot = _pivot(values, low, high, k - 1)
        below = low
        for i in range(low, high + 1):
            value = values[i]
            values[i] = values[below]
            values[below] = value
            below += value < pivot
        if k <= below:
            high = below - 1
            continue
        level = below
        for i in range(below, high + 1):
            value = values[i]
            values[i] = values[level]
            values[level] = value
            level += value == pivot
        if k <= level:
            break
        low = level
    total = 0.0
    for i in range(k):
        total += np.sqrt(values[i])
    return total


@njit(nogil=True, cache=True)
def _exclude(squares: Array, own: int, group: int, reference_groups: Array) -> None:
    """Take the row itself and the rows of its group out of the competition."""
    if own >= 0:
        squares[own] = np.inf
    if group >= 0:
        for r in range(squares.size):
            if reference_groups[r] == group:
                squares[r] = np.inf


@njit(nogil=True, cache=True)
def _squared_distances(row: Array, columns: Array, squares: Array) -> None:
    """squares[r] = |row - columns[:, r]|^2."""
    squares[:] = 0.0
    for c in range(columns.shape[0]):
        x = row[c]
        for r in range(columns.shape[1]):
            step = x - columns[c, r]
            squares[r] += step * step


@njit(nogil=True, cache=True)
def neighbour_sums(
    rows: Array, reference: Array, k: int, own: Array, groups: Array, reference_groups: Array, sums: Array
) -> None:
    """R of (G-14): for each row the sum of its k smallest distances to the reference (columns, rows)."""
    squares = np.empty(reference.shape[1])
    for i in range(rows.shape[0]):
        _squared_distances(rows[i], reference, squares)
        _exclude(squares, own[i], groups[i], reference_groups)
        sums[i] = _sum_of_smallest_roots(squares, k)


@njit(nogil=True, cache=True)
def neighbour_sums_observed(
    rows: Array, reference: Array, k: int, own: Array, groups: Array, reference_groups: Array, sums: Array
) -> None:
    """As `neighbour_sums` where NaN is "not observed": squares over shared columns, times p / their number (G5.7)."""
    p, m = reference.shape
    squares = np.empty(m)
    shared = np.empty(m, dtype=np.int64)
    for i in range(rows.shape[0]):
        squares[:] = 0.0
        shared[:] = 0
        for c in range(p):
            x = rows[i, c]
            if np.isnan(x):
                continue
            for r in range(m):
                step = x - reference[c, r]
                if step == step:
                    squares[r] += step * step
                    shared[r] += 1
        for r in range(m):
            squares[r] = squares[r] * p / shared[r] if shared[r] > 0 else np.inf
        _exclude(squares, own[i], groups[i], reference_groups)
        sums[i] = _sum_of_smallest_roots(squares, k)


@njit(nogil=True, cache=True)
def smallest_sums(
    squared_distances: Array, k: int, own: Array, groups: Array, reference_groups: Array, sums: Array
) -> None:
    """As `neighbour_sums` from ready squared distances (rows, reference rows), left untouched."""
    for i in range(squared_distances.shape[0]):
        squares = squared_distances[i].copy()
        _exclude(squares, own[i], groups[i], reference_groups)
        sums[i] = _sum_of_smallest_roots(squares, k)


@njit(nogil=True, cache=True)
def linear_scores(rows: Array, coefficients: Array, intercepts: Array, scores: Array) -> None:
    """scores[i, c] = rows[i] . coefficients[c] + intercepts[c], summed left to right."""
    for i in range(rows.shape[0]):
        for c in range(coefficients.shape[0]):
            total = 0.0
            for j in range(rows.shape[1]):
                total += rows[i, j] * coefficients[c, j]
            scores[i, c] = total + intercepts[c]


@njit(nogil=True, cache=True)
def radial_scores(
    rows: Array, support: Array, gamma: float, coefficients: Array, intercepts: Array, scores: Array
) -> None:
    """scores[i, c] = sum_s coefficients[c, s] exp(-gamma |rows[i] - support_s|^2) + intercepts[c]."""
    m = support.shape[1]
    kernel = np.empty(m)
    for i in range(rows.shape[0]):
        _squared_distances(rows[i], support, kernel)
        for s in range(m):
            kernel[s] = np.exp(-gamma * kernel[s])
        for c in range(coefficients.shape[0]):
            total = 0.0
            for s in range(m):
                total += coefficients[c, s] * kernel[s]
            scores[i, c] = total + intercepts[c]
