"""Compiled Gibbs sampler, one stream of random numbers per row.

Letters as in `kernels`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from goldseam.field.kernels import integrate_numbers

__all__ = ["gibbs_rows"]


@njit(nogil=True, cache=True)
def uniform(state):  # type: ignore[no-untyped-def]
    """The next number of a row's own stream in (0, 1): splitmix64."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    x = state[0]
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    x = x ^ (x >> np.uint64(31))
    return (np.float64(x >> np.uint64(11)) + 0.5) * (1.0 / 9007199254740992.0)


@njit(nogil=True, cache=True)
def gibbs_rows(  # type: ignore[no-untyped-def]
    X, codes, seeds, order, group, precision, B, a, R, h, Phi, offsets, log_odds, burn_in, sweeps, keep_every,
    Q, mean, variance, draws_u, draws_v,
):  # fmt: skip
    """Gibbs sampling of every row (F5.5), with the numbers integrated out while the categories move: near-copies mix better.

    Q and mean average the conditional probabilities and means after burn-in, variance adds the spread of the
    conditional means to V.
    draws_u (draws, rows, m) and draws_v (draws, rows, n) take a state every `keep_every` sweeps.
    """
    n_rows, m = X.shape
    n, T = codes.shape[1], h.shape[0]
    V, VR, half = np.zeros((m, m)), np.zeros((m, T)), np.zeros(T)
    row_precision, clamped = np.zeros(m), np.zeros(m, dtype=np.bool_)
    pair = np.empty((T, T))
    root = np.zeros((m, m))
    z, p, start, centre, v = np.empty(T), np.empty(T), np.empty(m), np.empty(m), np.empty(n, dtype=np.int64)
    sums, squares, noise = np.empty(m), np.empty(m), np.empty(m)
    state = np.empty(1, dtype=np.uint64)
    current = -1
    for position in range(n_rows):
        i = order[position]
        if group[i] != current:
            current = group[i]
            for s in range(m):
                clamped[s] = np.isinf(precision[current, s])
                row_precision[s] = 0.0 if clamped[s] else precision[current, s]
            integrate_numbers(B, R, row_precision, clamped, V, VR, half)
            for q in range(T):
                for r in range(T):
                    total = Phi[q, r]
                    for s in range(m):
                        total += R[s, q] * VR[s, r]
                    pair[q, r] = total
            root[:] = 0.0
            for s in range(m):  # Cholesky of V, rows of clamped numbers stay zero
                for t in range(s + 1):
                    total = V[s, t]
                    for r in range(t):
                        total -= root[s, r] * root[t, r]
                    if s == t:
                        root[s, s] = np.sqrt(max(total, 0.0))
                    elif root[t, t] > 0.0:
                        root[s, t] = total / root[t, t]
        state[0] = seeds[i]
        for s in range(m):
            if clamped[s]:
                start[s] = X[i, s]
            else:
                start[s] = 0.0
                for t in range(m):
                    if not clamped[t]:
                        drive = a[t]
                        if row_precision[t] > 0.0:
                            drive += row_precision[t] * X[i, t]
                        for r in range(m):
                            if clamped[r]:
                                drive -= B[t, r] * X[i, r]
                        start[s] += V[s, t] * drive
        for q in range(T):
            z[q] = h[q] + half[q]
            for s in range(m):
                z[q] += R[s, q] * start[s]
        for j in range(n):
            y = codes[i, j]
            low, high = offsets[j], offsets[j + 1]
            if y >= 0 and not np.isinf(log_odds[j]):
                z[low + y] += log_odds[j]
            v[j] = y
            if y < 0:
                v[j] = 0
                for q in range(low, high):
                    if z[q] > z[low + v[j]]:
                        v[j] = q - low
            for q in range(low, high):
                Q[i, q] = 0.0
        sums[:] = 0.0
        squares[:] = 0.0
        kept = 0
        for sweep in range(burn_in + sweeps):
            for j in range(n):
                low, L = offsets[j], offsets[j + 1] - offsets[j]
                if codes[i, j] >= 0 and np.isinf(log_odds[j]):
                    if sweep >= burn_in:
                        Q[i, low + codes[i, j]] += 1.0
                    continue
                top = -np.inf
                for q in range(L):
                    total = z[low + q]
                    for k in range(n):
                        if k != j:
                            total += pair[offsets[k] + v[k], low + q]
                    p[q] = total
                    top = max(top, total)
                mass = 0.0
                for q in range(L):
                    p[q] = np.exp(p[q] - top)
                    mass += p[q]
                target = uniform(state) * mass
                chosen = L - 1
                for q in range(L):
                    target -= p[q]
                    if target <= 0.0:
                        chosen = q
                        break
                v[j] = chosen
                if sweep >= burn_in:
                    for q in range(L):
                        Q[i, low + q] += p[q] / mass
            if sweep < burn_in:
                continue
            for s in range(m):
                centre[s] = start[s]
                for j in range(n):
                    centre[s] += VR[s, offsets[j] + v[j]]
                sums[s] += centre[s]
                squares[s] += centre[s] * centre[s]
            if keep_every > 0 and (sweep - burn_in + 1) % keep_every == 0 and kept < draws_u.shape[0]:
                for s in range(m):
                    noise[s] = np.sqrt(-2.0 * np.log(uniform(state))) * np.cos(2.0 * np.pi * uniform(state))
                for s in range(m):
                    total = centre[s]
                    for t in range(s + 1):
                        total += root[s, t] * noise[t]
                    draws_u[kept, i, s] = total
                for j in range(n):
                    draws_v[kept, i, j] = v[j]
                kept += 1
        for q in range(T):
            Q[i, q] /= sweeps
        for s in range(m):
            mean[i, s] = sums[s] / sweeps
            variance[i, s] = V[s, s] + max(squares[s] / sweeps - mean[i, s] * mean[i, s], 0.0)
