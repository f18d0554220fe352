"""Compiled loop of the published inference: numbers and categories in turn.

Letters as in `kernels`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from goldseam.field.kernels import integrate_numbers
from goldseam.field.message_kernels import (
    LANES,
    message_places,
    normalise_lanes,
    pair_weights,
    reset_messages,
    sweep_pairs,
)

__all__ = ["structured_rows"]


@njit(nogil=True, cache=True)
def structured_rows(  # type: ignore[no-untyped-def]
    X, codes, order, group, precision, B, a, R, h, Phi, offsets, first, second, starts, log_odds, p0, naive,
    outer, sweeps, tol, Q, mean, variance, steps, change_of,
):  # fmt: skip
    """The loop of F5.1 as published: q(u) and q(v) in turn; q(v) by (F-21) with kept messages, or naively by (F-22)."""
    n_rows, m = X.shape
    n, T = codes.shape[1], h.shape[0]
    pairs = first.shape[0]
    W, Wt, live = np.empty(starts[pairs]), np.empty(starts[pairs]), np.zeros(pairs, dtype=np.bool_)
    width = 1
    for j in range(n):
        width = max(width, offsets[j + 1] - offsets[j])
    bits = np.empty(max(T * LANES, width * width), dtype=np.int64)
    V, VR, half = np.zeros((m, m)), np.zeros((m, T)), np.zeros(T)
    clamped, row_precision = np.zeros(m, dtype=np.bool_), np.zeros(m)
    pair_weights(Phi, R, VR, offsets, first, second, starts, np.empty(0, dtype=np.int64), W, Wt, live, bits)
    places = message_places(first, second, offsets)
    inverse = np.empty((places[pairs], LANES))
    b, before, z, mu = np.empty((T, LANES)), np.empty((T, LANES)), np.empty((T, LANES)), np.empty((m, LANES))
    c, new, kept = np.empty((width, LANES)), np.empty((width + 2, LANES)), np.empty((2 * width, LANES))
    closed = np.zeros((codes.shape[1], LANES), dtype=np.bool_)  # the published loop knows no clamped category
    rows, done = np.empty(LANES, dtype=np.int64), np.empty(LANES, dtype=np.bool_)
    current = -1
    at = 0
    while at < n_rows:
        if group[order[at]] != current:
            current = group[order[at]]
            for s in range(m):
                row_precision[s] = precision[current, s]
            integrate_numbers(B, R, row_precision, clamped, V, VR, half)
        lanes = 0
        while lanes < LANES and at < n_rows and group[order[at]] == current:
            rows[lanes] = order[at]
            lanes += 1
            at += 1
        for x in range(lanes, LANES):
            rows[x] = rows[lanes - 1]
        for x in range(LANES):  # (F-18)
            done[x] = False
            for q in range(T):
                b[q, x] = np.log(max(p0[q], 1e-6))
            for j in range(n):
                if codes[rows[x], j] >= 0:
                    b[offsets[j] + codes[rows[x], j], x] += log_odds[j]
        normalise_lanes(b, bits, offsets)
        reset_messages(inverse, places, first, offsets, live)
        remaining, step = LANES, 0
        while remaining > 0:
            step += 1
            before[:] = b
            for x in range(LANES):  # (F-19)
                for s in range(m):
                    total = 0.0
                    for t in range(m):
                        drive = a[t] + (row_precision[t] * X[rows[x], t] if row_precision[t] > 0.0 else 0.0)
                        total += V[s, t] * drive
                    for q in range(T):
                        total += VR[s, q] * b[q, x]
                    mu[s, x] = total
            for x in range(LANES):  # (F-20)
                for q in range(T):
                    total = h[q]
                    for s in range(m):
                        total += R[s, q] * mu[s, x]
                    z[q, x] = total
                for j in range(n):
                    if codes[rows[x], j] >= 0:
                        z[offsets[j] + codes[rows[x], j], x] += log_odds[j]
            if naive:
                for _ in range(sweeps):
                    for j in range(n):
                        block = b[offsets[j] : offsets[j + 1]]
                        for q in range(block.shape[0]):
                            for x in range(LANES):
                                block[q, x] = z[offsets[j] + q, x]
                            for r in range(T):
                                phi = Phi[offsets[j] + q, r]
                                if phi != 0.0:
                                    for x in range(LANES):
                                        block[q, x] += phi * b[r, x]
                        normalise_lanes(block, bits, np.array([0, block.shape[0]]))
            else:
                b[:] = z
                for e in range(pairs):
                    if live[e]:
                        middle = places[e] + offsets[first[e] + 1] - offsets[first[e]]
                        for q in range(places[e], middle):
                            for x in range(LANES):
                                b[offsets[first[e]] + q - places[e], x] -= np.log(inverse[q, x])
                        for q in range(middle, places[e + 1]):
                            for x in range(LANES):
                                b[offsets[second[e]] + q - middle, x] -= np.log(inverse[q, x])
                normalise_lanes(b, bits, offsets)
                for _ in range(sweeps):
                    sweep_pairs(b, inverse, places, live, closed, W, Wt, first, second, starts, offsets, c, new, kept)
            for x in range(LANES):
                if done[x]:
                    continue
                change = 0.0
                for q in range(T):
                    change = max(change, abs(b[q, x] - before[q, x]))
                if (change < tol and step > 1) or step >= outer:
                    done[x] = True
                    remaining -= 1
                    i = rows[x]
                    steps[i] = step if change < tol else -step
                    change_of[i] = change
                    for q in range(T):
                        Q[i, q] = b[q, x]
                    for s in range(m):
                        mean[i, s] = mu[s, x]
                        variance[i, s] = V[s, s]
