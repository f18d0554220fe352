"""Compiled loops of learning: fit and gradient of the categories given the rest, row by row.

Letters as in `kernels`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from goldseam.field.kernels import exp_all

__all__ = ["conditional_fit", "conditional_probabilities"]


@njit(nogil=True, cache=True)
def conditional_fit(U, codes, weights, offsets, h, R, Phi, g_h, g_R, g_Phi, want):  # type: ignore[no-untyped-def]
    """(F-11) and (F-14): sum over rows of the weighted f_D.

    want 1: its gradient is added to g_h, g_R (m, T), and K = D'(P - D) to g_Phi. want 2: the diagonal of its Hessian
    instead, with P(1 - P) for P - D and u squared for u. want 0: the value alone.
    """
    n_rows, n = codes.shape
    m = U.shape[1]
    T = h.shape[0]
    z = np.empty(T)
    bits = np.empty(T, dtype=np.int64)
    total = 0.0
    for i in range(n_rows):
        w = weights[i]
        for q in range(T):
            z[q] = h[q]
        for s in range(m):
            u = U[i, s]
            for q in range(T):
                z[q] += u * R[s, q]
        for k in range(n):
            row = offsets[k] + codes[i, k]
            for q in range(T):
                z[q] += Phi[row, q]
        value = 0.0
        for j in range(n):
            low, high = offsets[j], offsets[j + 1]
            top = z[low]
            for q in range(low + 1, high):
                top = max(top, z[q])
            value += top - z[low + codes[i, j]]
            for q in range(low, high):
                z[q] = max(z[q] - top, -600.0)
        exp_all(z, bits, T)
        for j in range(n):
            low, high = offsets[j], offsets[j + 1]
            mass = 0.0
            for q in range(low, high):
                mass += z[q]
            value += np.log(mass)
            share = w / mass
            if want == 1:
                for q in range(low, high):
                    z[q] *= share
                z[low + codes[i, j]] -= w
            elif want == 2:
                for q in range(low, high):
                    z[q] = share * z[q] * (1.0 - z[q] / mass)
        total += w * value
        if want == 0:
            continue
        for q in range(T):
            g_h[q] += z[q]
        for s in range(m):
            u = U[i, s] if want == 1 else U[i, s] * U[i, s]
            for q in range(T):
                g_R[s, q] += u * z[q]
        for k in range(n):
            row = offsets[k] + codes[i, k]
            for q in range(T):
                g_Phi[row, q] += z[q]
    return total


@njit(nogil=True, cache=True)
def conditional_probabilities(U, codes, offsets, h, R, Phi, j):  # type: ignore[no-untyped-def]
    """(F-4) for one category of every row: (N, L_j)."""
    n_rows, n = codes.shape
    low, high = offsets[j], offsets[j + 1]
    out = np.empty((n_rows, high - low))
    for i in range(n_rows):
        top = -np.inf
        for q in range(low, high):
            z = h[q]
            for s in range(U.shape[1]):
                z += U[i, s] * R[s, q]
            for k in range(n):
                z += Phi[offsets[k] + codes[i, k], q]
            out[i, q - low] = z
            top = max(top, z)
        mass = 0.0
        for q in range(high - low):
            out[i, q] = np.exp(out[i, q] - top)
            mass += out[i, q]
        for q in range(high - low):
            out[i, q] /= mass
    return out
