"""What the compiled loops of the mixed field share. One row at a time, or rows in fixed lanes: a row's result never
depends on its neighbours.

Legend: `offsets` as in `Layout`; `codes` int32 with values below 0 for cells that say nothing; letters as in the spec.

| loops | module |
|---|---|
| fit and gradient | `learning_kernels` |
| belief propagation | `message_kernels` |
| the published loop | `published_kernels` |
| each cell given the others | `leave_one_out_kernels` |
| training values of numbers | `atom_kernels` |
| Gibbs sampling | `gibbs_kernels` |
"""

from __future__ import annotations

import numpy as np
from numba import njit

from goldseam.compiled import lean

__all__ = ["exp_all", "integrate_numbers", "invert_definite"]

LOG2E = 1.4426950408889634
LN2_HIGH = 6.93147180369123816490e-01
LN2_LOW = 1.90821492927058770002e-10


@njit(nogil=True, cache=True, inline="always")
def exp_all(x, bits, n):  # type: ignore[no-untyped-def]
    """exp of x[:n] in place for -700 < x < 700, to 1e-15 relative; `bits` is int64 scratch. Written so that it vectorises."""
    as_float = bits.view(np.float64)
    for i in range(n):
        k = np.floor(x[i] * LOG2E + 0.5)
        r = (x[i] - k * LN2_HIGH) - k * LN2_LOW
        p = 1.0 / 6227020800.0
        p = p * r + 1.0 / 479001600.0
        p = p * r + 1.0 / 39916800.0
        p = p * r + 1.0 / 3628800.0
        p = p * r + 1.0 / 362880.0
        p = p * r + 1.0 / 40320.0
        p = p * r + 1.0 / 5040.0
        p = p * r + 1.0 / 720.0
        p = p * r + 1.0 / 120.0
        p = p * r + 1.0 / 24.0
        p = p * r + 1.0 / 6.0
        p = p * r + 0.5
        p = p * r + 1.0
        x[i] = p * r + 1.0
        bits[i] = (np.int64(k) + 1023) << 52
    for i in range(n):
        x[i] = x[i] * as_float[i]


@lean()
def invert_definite(A, n):  # type: ignore[no-untyped-def]
    """Replace the leading n x n part of a positive definite A by its inverse (Cholesky, in place)."""
    for i in range(n):
        for j in range(i):
            total = A[i, j]
            for k in range(j):
                total -= A[i, k] * A[j, k]
            A[i, j] = total / A[j, j]
        total = A[i, i]
        for k in range(i):
            total -= A[i, k] * A[i, k]
        A[i, i] = np.sqrt(max(total, 1e-300))
    for i in range(n):  # inverse of the lower factor, below the diagonal
        A[i, i] = 1.0 / A[i, i]
        for j in range(i):
            total = 0.0
            for k in range(j, i):
                total -= A[i, k] * A[k, j]
            A[i, j] = total * A[i, i]
    for i in range(n):
        for j in range(i, n):
            total = 0.0
            for k in range(j, n):
                total += A[k, i] * A[k, j]
            A[i, j] = total
    for i in range(n):
        for j in range(i):
            A[i, j] = A[j, i]


@njit(nogil=True, cache=True)
def integrate_numbers(B, R, precision, clamped, V, VR, half):  # type: ignore[no-untyped-def]
    """The numbers that are not clamped, integrated out: V = (B + diag precision)⁻¹ over them (F-19), V R, and ½ diag R'VR.

    Gives the positions of those numbers.
    """
    m, T = R.shape
    free = np.empty(m, dtype=np.int64)
    n_free = 0
    for s in range(m):
        if not clamped[s]:
            free[n_free] = s
            n_free += 1
    small = np.empty((n_free, n_free))
    for i in range(n_free):
        for j in range(n_free):
            small[i, j] = B[free[i], free[j]]
        small[i, i] += precision[free[i]]
    invert_definite(small, n_free)
    V[:] = 0.0
    VR[:] = 0.0
    half[:] = 0.0
    for i in range(n_free):
        for j in range(n_free):
            V[free[i], free[j]] = small[i, j]
            v = small[i, j]
            row, target = R[free[j]], VR[free[i]]
            for q in range(T):
                target[q] += v * row[q]
        row, target = R[free[i]], VR[free[i]]
        for q in range(T):
            half[q] += 0.5 * row[q] * target[q]
    return free[:n_free]
