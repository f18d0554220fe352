"""Compiled loops of the imputers (S8.2, S-28, S-29): what a row's donors say about cells, one row at a time."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["fill_cells", "regress_cells"]

FUSED = {"contract", "reassoc"}  # sums of products in vectors; the same for the same row, whatever its batch


@njit(nogil=True, cache=True)
def fill_cells(values, cells, donors, reference, trust, n_levels, typical):  # type: ignore[no-untyped-def]
    """Put the donors' mean, or their most frequent category, into the `cells` of every row.

    Donors count by their trust; -1 is no donor. `n_levels` is 0 for numbers. Where no donor was observed, the
    column's typical value is taken; of equally frequent categories the lowest code.
    """
    votes = np.empty(n_levels.max() + 1)
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            if not cells[i, j]:
                continue
            total, mass = 0.0, 0.0
            votes[: n_levels[j]] = 0.0
            for donor in donors[i]:
                if donor >= 0 and not np.isnan(reference[donor, j]):
                    total += reference[donor, j] * trust[donor]
                    mass += trust[donor]
                    if 0 <= reference[donor, j] < n_levels[j]:
                        votes[int(reference[donor, j])] += trust[donor]
            if mass <= 0.0:
                values[i, j] = typical[j]
            else:
                values[i, j] = total / mass if n_levels[j] == 0 else np.argmax(votes[: n_levels[j]])


@njit(nogil=True, boundscheck=False, fastmath=FUSED)
def _dot(a, b):  # type: ignore[no-untyped-def]
    total = 0.0
    for j in range(a.shape[0]):
        total += a[j] * b[j]
    return total


@njit(nogil=True, boundscheck=False, fastmath=FUSED)
def _eliminate(matrix, i):  # type: ignore[no-untyped-def]
    """Take the rows of the factor above out of row i, eight at a time."""
    row, k = matrix[i, i:], 0
    while k + 8 <= i:
        a, b, c, d = matrix[k, i:], matrix[k + 1, i:], matrix[k + 2, i:], matrix[k + 3, i:]
        e, f, g, h = matrix[k + 4, i:], matrix[k + 5, i:], matrix[k + 6, i:], matrix[k + 7, i:]
        a0, b0, c0, d0, e0, f0, g0, h0 = a[0], b[0], c[0], d[0], e[0], f[0], g[0], h[0]
        for j in range(row.shape[0]):
            row[j] -= (a0 * a[j] + b0 * b[j] + c0 * c[j] + d0 * d[j]) + (e0 * e[j] + f0 * f[j] + g0 * g[j] + h0 * h[j])
        k += 8
    while k < i:
        a = matrix[k, i:]
        a0 = a[0]
        for j in range(row.shape[0]):
            row[j] -= a0 * a[j]
        k += 1


@njit(nogil=True, boundscheck=False)
def _solve(matrix, right):  # type: ignore[no-untyped-def]
    """Solve matrix · x = right by Cholesky (upper factor, row by row); both are overwritten, `right` by x."""
    m = right.shape[0]
    for i in range(m):
        _eliminate(matrix, i)
        root = np.sqrt(matrix[i, i])
        for j in range(i, m):
            matrix[i, j] /= root
    for k in range(m):
        right[k] /= matrix[k, k]
        for i in range(k + 1, m):
            right[i] -= matrix[k, i] * right[k]
    for k in range(m - 1, -1, -1):
        right[k] = (right[k] - _dot(matrix[k, k + 1 :], right[k + 1 :])) / matrix[k, k]


@njit(nogil=True, cache=True, boundscheck=False)
def regress_cells(values, hidden, donors, columns, units, numbers, trust, precision, weight):  # type: ignore[no-untyped-def]
    """(S-28) Move the hidden cells of every row, which hold the mean of its donors, by the regression.

    `columns` are the columns of numbers, `units` their centre, scale, lowest and highest value; `numbers` is the
    reference in those columns, scaled and without gaps. Rows without donors or hidden cells stay as they are.
    """
    center, scale, low, high = units
    p = columns.shape[0]
    gap, inside, matrix, right = np.empty(p), np.empty(p, np.int64), np.empty(p * p), np.empty(p)
    for i in range(values.shape[0]):
        m, mass = 0, 0.0
        for j in range(p):
            if hidden[i, columns[j]]:
                inside[m] = j
                m += 1
        if m == 0:
            continue
        gap[:] = 0.0
        for donor in donors[i]:
            if donor >= 0:
                mass += trust[donor]
                for j in range(p):
                    gap[j] += trust[donor] * numbers[donor, j]
        if mass <= 0.0:
            continue
        for o in range(p):
            gap[o] = (values[i, columns[o]] - center[o]) / scale[o] - gap[o] / mass
        for a in range(m):
            gap[inside[a]] = 0.0
        square = matrix[: m * m].reshape(m, m)
        for a in range(m):
            right[a] = _dot(precision[inside[a]], gap)
            for b in range(a, m):
                square[a, b] = precision[inside[a], inside[b]]
        _solve(square, right[:m])
        for a in range(m):
            j = inside[a]
            moved = values[i, columns[j]] - weight * right[a] * scale[j]
            values[i, columns[j]] = min(max(moved, low[j]), high[j])
