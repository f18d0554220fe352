"""Compiled loop that turns beliefs about a row into what each cell should be given the others.

Letters as in `kernels`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from goldseam.compiled import lean
from goldseam.field.kernels import integrate_numbers
from goldseam.field.message_kernels import pair_weights

__all__ = ["leave_one_out_rows"]


@njit(nogil=True, cache=True)
def leave_one_out_rows(  # type: ignore[no-untyped-def]
    X, codes, hidden, order, group, precision, B, a, R, h, Phi, offsets, first, second, starts, Q, mean, variance,
):  # fmt: skip
    """Turn the posterior given the believed cells into what each believed cell should be given the *other* believed cells.

    On entry Q, mean and variance are those of `infer_rows` with every believed cell clamped; cells that are hidden keep theirs. A
    believed number s leaves the evidence by kappa = x + r/pi with pi = B_ss - B_sM V B_Ms and r = (a + R d - B u)_s; a believed
    category leaves it by dividing its own influence out of the hidden neighbours' beliefs. Exact with at most
    one hidden category.
    """
    n_rows, m = X.shape
    n, T, pairs = codes.shape[1], h.shape[0], first.shape[0]
    W, Wt, live = np.empty(starts[pairs]), np.empty(starts[pairs]), np.zeros(pairs, dtype=np.bool_)
    log_W, log_Wt = np.empty(starts[pairs]), np.empty(starts[pairs])
    width = 1
    for j in range(n):
        width = max(width, offsets[j + 1] - offsets[j])
    bits = np.empty(width * width, dtype=np.int64)
    V, VR, half = np.zeros((m, m)), np.zeros((m, T)), np.zeros(T)
    row_precision, clamped = np.zeros(m), np.zeros(m, dtype=np.bool_)
    pi, effect = np.zeros(m), np.zeros((m, T))
    pair_of = np.full((n, n), -1, dtype=np.int64)
    for e in range(pairs):
        pair_of[first[e], second[e]] = e
        pair_of[second[e], first[e]] = e
    scratch = np.empty(m), np.empty(T), np.empty(m), np.empty(width), np.empty(width), np.empty(m), np.empty(m)
    begin = 0
    while begin < n_rows:
        g, end = group[order[begin]], begin
        while end < n_rows and group[order[end]] == g:
            end += 1
        for s in range(m):
            clamped[s] = np.isinf(precision[g, s])
        free = integrate_numbers(B, R, row_precision, clamped, V, VR, half)
        pair_weights(Phi, R, VR, offsets, first, second, starts, free, W, Wt, live, bits)
        for e in range(pairs):
            if live[e]:
                for at in range(starts[e], starts[e + 1]):
                    log_W[at], log_Wt[at] = np.log(W[at]), np.log(Wt[at])
        _evidence_of_numbers(B, R, V, VR, clamped, pi, effect)
        integrated, weights = (clamped, VR, half, pi, effect), (W, Wt, log_W, log_Wt, live, pair_of, starts)
        _leave_out(
            X, codes, hidden, order[begin:end], B, a, R, h, offsets, integrated, weights, scratch, Q, mean, variance
        )
        begin = end


@lean()
def _evidence_of_numbers(B, R, V, VR, clamped, pi, effect):  # type: ignore[no-untyped-def]
    """How surely the others tell a clamped number, `pi` (m), and what each level adds to it, `effect` (m, T)."""
    m, T = R.shape
    for s in range(m):
        if clamped[s]:
            total = B[s, s]
            for t in range(m):
                if not clamped[t] and B[s, t] != 0.0:
                    for r in range(m):
                        if not clamped[r]:
                            total -= B[s, t] * V[t, r] * B[r, s]
            pi[s] = total
            for q in range(T):
                effect[s, q] = R[s, q]
            for t in range(m):
                if not clamped[t] and B[s, t] != 0.0:
                    for q in range(T):
                        effect[s, q] -= B[s, t] * VR[t, q]
            for q in range(T):
                effect[s, q] /= pi[s]


@lean()
def _leave_out(X, codes, hidden, order, B, a, R, h, offsets, integrated, weights, scratch, Q, mean, variance):  # type: ignore[no-untyped-def]
    """`leave_one_out_rows` for the rows `order`, whose clamped numbers are the same."""
    (m, T), n = R.shape, codes.shape[1]
    clamped, VR, half, pi, effect = integrated
    W, Wt, log_W, log_Wt, live, pair_of, starts = weights
    full, expected, start, z, c, loo_mean, loo_variance = scratch
    for i in order:
        for s in range(m):
            full[s] = X[i, s] if clamped[s] else mean[i, s]
        for q in range(T):
            expected[q] = Q[i, q]
        for s in range(m):
            start[s] = full[s]
            if not clamped[s]:
                for q in range(T):
                    start[s] -= VR[s, q] * expected[q]
        for s in range(m):
            loo_mean[s], loo_variance[s] = mean[i, s], variance[i, s]
            if not clamped[s]:
                continue
            r = a[s]
            for q in range(T):
                r += R[s, q] * expected[q]
            for t in range(m):
                r -= B[s, t] * full[t]
            centre, spread = X[i, s] + r / pi[s], 1.0 / pi[s]
            total_mean, total_spread = centre, spread
            for j in range(n):
                if not hidden[i, j]:
                    continue
                low, L = offsets[j], offsets[j + 1] - offsets[j]
                level = 0.0
                for q in range(L):
                    level += expected[low + q] * effect[s, low + q]
                top = -np.inf
                for q in range(L):  # the number's own evidence is divided out of the hidden category
                    away = X[i, s] - centre - effect[s, low + q] + level
                    c[q] = np.log(expected[low + q]) + 0.5 * min(pi[s] * away * away, 100.0)
                    top = max(top, c[q])
                mass = 0.0
                for q in range(L):
                    c[q] = np.exp(c[q] - top)
                    mass += c[q]
                first_moment, second_moment = 0.0, 0.0
                for q in range(L):
                    g = effect[s, low + q] - level
                    first_moment += c[q] / mass * g
                    second_moment += c[q] / mass * g * g
                total_mean += first_moment
                total_spread += max(second_moment - first_moment * first_moment, 0.0)
            loo_mean[s], loo_variance[s] = total_mean, total_spread
        for j in range(n):
            if hidden[i, j]:
                continue
            low, L = offsets[j], offsets[j + 1] - offsets[j]
            for q in range(L):
                z[q] = h[low + q] + half[low + q]
                for s in range(m):
                    z[q] += R[s, low + q] * start[s]
            for k in range(n):
                if k == j:
                    continue
                e = pair_of[j, k]
                if not live[e]:
                    continue
                K = offsets[k + 1] - offsets[k]
                if not hidden[i, k]:
                    log_block = log_W if j < k else log_Wt
                    for q in range(L):
                        z[q] += log_block[starts[e] + q * K + codes[i, k]]
                    continue
                block = (W if j < k else Wt)[starts[e] : starts[e] + L * K]  # (states of j, states of k)
                mass = 0.0
                for r in range(K):
                    c[r] = expected[offsets[k] + r] / max(block[codes[i, j] * K + r], 1e-200)
                    mass += c[r]
                for q in range(L):
                    total = 0.0
                    for r in range(K):
                        total += c[r] * block[q * K + r]
                    z[q] += np.log(max(total / mass, 1e-300))
            top = z[0]
            for q in range(1, L):
                top = max(top, z[q])
            mass = 0.0
            for q in range(L):
                z[q] = np.exp(z[q] - top)
                mass += z[q]
            for q in range(L):
                Q[i, low + q] = z[q] / mass
        for s in range(m):
            mean[i, s], variance[i, s] = loo_mean[s], loo_variance[s]
