"""Compiled loops of the imputers (S8.2, S-28, S-29): what a row's donors say about cells, one row at a time."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["fill_cells", "regress_cells"]


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
                    if n_levels[j] > 0:
                        votes[int(reference[donor, j])] += trust[donor]
            if mass <= 0.0:
                values[i, j] = typical[j]
            else:
                values[i, j] = total / mass if n_levels[j] == 0 else np.argmax(votes[: n_levels[j]])


@njit(nogil=True, cache=True, boundscheck=False)
def _solve(matrix, right):  # type: ignore[no-untyped-def]
    """Solve matrix · x = right by Cholesky (upper factor, row by row); both are overwritten, `right` by x."""
    m = right.shape[0]
    for i in range(m):
        row, k = matrix[i], 0
        while k + 4 <= i:  # four rows of the factor at a time
            u0, u1, u2, u3 = matrix[k], matrix[k + 1], matrix[k + 2], matrix[k + 3]
            f0, f1, f2, f3 = u0[i], u1[i], u2[i], u3[i]
            for j in range(i, m):
                row[j] -= (f0 * u0[j] + f1 * u1[j]) + (f2 * u2[j] + f3 * u3[j])
            right[i] -= (f0 * right[k] + f1 * right[k + 1]) + (f2 * right[k + 2] + f3 * right[k + 3])
            k += 4
        while k < i:
            u0, f0 = matrix[k], matrix[k, i]
            for j in range(i, m):
                row[j] -= f0 * u0[j]
            right[i] -= f0 * right[k]
            k += 1
        root = np.sqrt(row[i])
        for j in range(i, m):
            row[j] /= root
        right[i] /= root
    for k in range(m - 1, -1, -1):
        right[k] /= matrix[k, k]
        for i in range(k):
            right[i] -= matrix[i, k] * right[k]


@njit(nogil=True, cache=True, boundscheck=False)
def regress_cells(rows, hidden, donors, numbers, trust, precision, shift):  # type: ignore[no-untyped-def]
    """(S-28) P_mm^(-1) P_mo (x_o - mean of the donors' s_o) of every row into the hidden cells of `shift`.

    `rows` and `numbers` (the reference) are scaled and without gaps; rows without donors or hidden cells are left out.
    """
    n, p = rows.shape
    gap, pull = np.empty(p), np.empty(p)
    inside, matrix, right = np.empty(p, np.int64), np.empty(p * p), np.empty(p)
    for i in range(n):
        m, mass = 0, 0.0
        gap[:] = 0.0
        for donor in donors[i]:
            if donor >= 0:
                mass += trust[donor]
                for j in range(p):
                    gap[j] += trust[donor] * numbers[donor, j]
        for j in range(p):
            if hidden[i, j]:
                inside[m] = j
                m += 1
        if m == 0 or mass <= 0.0:
            continue
        pull[:] = 0.0
        for o in range(p):
            if not hidden[i, o]:
                distance = rows[i, o] - gap[o] / mass
                for j in range(p):
                    pull[j] += distance * precision[o, j]
        square = matrix[: m * m].reshape(m, m)
        for a in range(m):
            right[a] = pull[inside[a]]
            for b in range(a, m):
                square[a, b] = precision[inside[a], inside[b]]
        _solve(square, right[:m])
        for a in range(m):
            shift[i, inside[a]] = right[a]
