"""Compiled loops of the mixed field. One row at a time, or rows in fixed lanes: a row's result never depends on its neighbours.

Legend: `offsets` as in `Layout`; `codes` int32 with values below 0 for cells that say nothing; letters as in the spec.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = [
    "conditional_fit",
    "conditional_probabilities",
    "empirical_rows",
    "gibbs_rows",
    "infer_rows",
    "leave_one_out_rows",
    "structured_rows",
]

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


LANES = 8  # rows that are inferred side by side; a full vector register of float64
MESSAGE_FLOOR = 1e-12  # F5.2
BELIEF_FLOOR = 1e-30  # below what float64 can add to one; the spec's 1e-14 would blur observed cells without noise
FLAT = 1e-8  # F5.2: pair potentials with a smaller range are no edges


@njit(nogil=True, cache=True)
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
    """The numbers that are not clamped, integrated out: V = (B + diag precision)⁻¹ over them (F-19), V R, and ½ diag R'VR."""
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
    return n_free


@njit(nogil=True, cache=True)
def pair_weights(Phi, R, VR, offsets, first, second, starts, free, W, Wt, live, bits):  # type: ignore[no-untyped-def]
    """W = exp(Phi + R'VR - max) of every pair of categories, and transposed; `live` says which pairs are edges."""
    m = R.shape[0]
    for e in range(first.shape[0]):
        j, k = first[e], second[e]
        low_j, low_k = offsets[j], offsets[k]
        L, K = offsets[j + 1] - low_j, offsets[k + 1] - low_k
        block = W[starts[e] : starts[e] + L * K]
        for left in range(L):
            row = block[left * K : left * K + K]
            source = Phi[low_j + left, low_k : low_k + K]
            for right in range(K):
                row[right] = source[right]
            if free > 0:
                for s in range(m):
                    r = R[s, low_j + left]
                    if r != 0.0:
                        v = VR[s, low_k : low_k + K]
                        for right in range(K):
                            row[right] += r * v[right]
        top, low = block[0], block[0]
        for i in range(L * K):
            top, low = max(top, block[i]), min(low, block[i])
        live[e] = top - low > FLAT
        if live[e]:
            for i in range(L * K):
                block[i] = max(block[i] - top, -600.0)
            exp_all(block, bits[: L * K], L * K)
            transposed = Wt[starts[e] : starts[e] + L * K]
            for left in range(L):
                for right in range(K):
                    transposed[right * L + left] = block[left * K + right]


@njit(nogil=True, cache=True)
def send(belief, inverse_back, weights, target, inverse, c, new):  # type: ignore[no-untyped-def]
    """One message of (F-21) in all lanes. `weights` (states of target, states of source); messages are kept as reciprocals."""
    L, K = belief.shape[0], target.shape[0]
    for left in range(L):
        for x in range(LANES):
            c[left, x] = belief[left, x] * inverse_back[left, x]
    total = new[K]
    for x in range(LANES):
        total[x] = 0.0
    for right in range(K):
        w = weights[right * L : right * L + L]
        out = new[right]
        for x in range(LANES):
            out[x] = 0.0
        left = 0
        while left + 4 <= L:
            w0, w1, w2, w3 = w[left], w[left + 1], w[left + 2], w[left + 3]
            c0, c1, c2, c3 = c[left], c[left + 1], c[left + 2], c[left + 3]
            for x in range(LANES):
                out[x] += c0[x] * w0 + c1[x] * w1 + c2[x] * w2 + c3[x] * w3
            left += 4
        while left < L:
            w0, c0 = w[left], c[left]
            for x in range(LANES):
                out[x] += c0[x] * w0
            left += 1
        for x in range(LANES):
            total[x] += out[x]
    mass = new[K + 1]
    for x in range(LANES):
        total[x] = 1.0 / total[x]
        mass[x] = 0.0
    for right in range(K):
        for x in range(LANES):
            message = max(new[right, x] * total[x], MESSAGE_FLOOR)
            b = target[right, x] * message * inverse[right, x]
            inverse[right, x] = 1.0 / message
            target[right, x] = b
            mass[x] += b
    for x in range(LANES):
        mass[x] = 1.0 / mass[x]
    for right in range(K):
        for x in range(LANES):
            target[right, x] = max(target[right, x] * mass[x], BELIEF_FLOOR)


@njit(nogil=True, cache=True)
def normalise_lanes(z, bits, offsets):  # type: ignore[no-untyped-def]
    """exp and normalise every category of every lane, in place; z is (T, LANES)."""
    for j in range(offsets.shape[0] - 1):
        for x in range(LANES):
            top = z[offsets[j], x]
            for q in range(offsets[j] + 1, offsets[j + 1]):
                top = max(top, z[q, x])
            for q in range(offsets[j], offsets[j + 1]):
                z[q, x] = max(z[q, x] - top, -69.0)
    exp_all(z.reshape(-1), bits, z.size)
    for j in range(offsets.shape[0] - 1):
        block = z[offsets[j] : offsets[j + 1]]
        for x in range(LANES):
            mass = 0.0
            for q in range(block.shape[0]):
                mass += block[q, x]
            for q in range(block.shape[0]):
                block[q, x] = max(block[q, x] / mass, BELIEF_FLOOR)


@njit(nogil=True, cache=True)
def infer_rows(  # type: ignore[no-untyped-def]
    X, codes, order, group, precision, B, a, R, h, Phi, offsets, first, second, starts, log_odds,
    max_sweeps, tol, Q, mean, variance, cavity_mean, cavity_variance, sweeps,
):  # fmt: skip
    """Posterior of every row: numbers integrated out, loopy belief propagation over the categories (F-19 to F-21).

    Rows are taken in `order`. `precision` (groups, m) is 1/sigma² of every number of the rows of a `group`: 0 where it
    is blank, inf where its noise is nil and it is clamped. log_odds[j] = log P(y=l|v=l) / P(y=l|v=other) of (F-6), inf
    where the flip rate is nil.
    The sweeps of a row come back negative when they ended before its beliefs settled.
    """
    n_rows, m = X.shape
    n, T = codes.shape[1], h.shape[0]
    width = 0
    for j in range(n):
        width = max(width, offsets[j + 1] - offsets[j])
    pairs = first.shape[0]
    weights_size = starts[pairs]
    W, Wt, live = np.empty(weights_size), np.empty(weights_size), np.zeros(pairs, dtype=np.bool_)
    bits = np.empty(max(T * LANES, width * width), dtype=np.int64)
    V, VR, half = np.zeros((m, m)), np.zeros((m, T)), np.zeros(T)
    row_precision, clamped = np.zeros(m), np.zeros(m, dtype=np.bool_)
    messages = np.zeros(pairs + 1, dtype=np.int64)
    for e in range(pairs):
        j, k = first[e], second[e]
        messages[e + 1] = messages[e] + (offsets[j + 1] - offsets[j]) + (offsets[k + 1] - offsets[k])
    inverse = np.empty((messages[pairs], LANES))
    b, before = np.empty((T, LANES)), np.empty((T, LANES))
    c, new = np.empty((width, LANES)), np.empty((width + 2, LANES))
    start_mean = np.empty((m, LANES))
    drive = np.empty(m)
    rows = np.empty(LANES, dtype=np.int64)
    done = np.empty(LANES, dtype=np.bool_)
    used = np.empty(pairs, dtype=np.bool_)
    open_column = np.empty(n, dtype=np.bool_)
    current = -1
    free = 0
    at = 0
    while at < n_rows:
        g = group[order[at]]
        if g != current:
            current = g
            for s in range(m):
                clamped[s] = np.isinf(precision[g, s])
                row_precision[s] = 0.0 if clamped[s] else precision[g, s]
            free = integrate_numbers(B, R, row_precision, clamped, V, VR, half)
            pair_weights(Phi, R, VR, offsets, first, second, starts, free, W, Wt, live, bits)
        lanes = 0
        while lanes < LANES and at < n_rows and group[order[at]] == current:
            rows[lanes] = order[at]
            lanes += 1
            at += 1
        for x in range(lanes, LANES):
            rows[x] = rows[lanes - 1]
        for j in range(n):
            open_column[j] = False
        for x in range(LANES):
            i = rows[x]
            for s in range(m):  # a - B_FC x_C + precision x, then the mean before the categories speak
                drive[s] = a[s]
                if row_precision[s] > 0.0:
                    drive[s] += row_precision[s] * X[i, s]
                for t in range(m):
                    if clamped[t]:
                        drive[s] -= B[s, t] * X[i, t]
            for s in range(m):
                total = 0.0
                if clamped[s]:
                    total = X[i, s]
                else:
                    for t in range(m):
                        total += V[s, t] * drive[t] if not clamped[t] else 0.0
                start_mean[s, x] = total
        for q in range(T):
            base = h[q] + half[q]
            for x in range(LANES):
                b[q, x] = base
            for s in range(m):
                r = R[s, q]
                if r != 0.0:
                    for x in range(LANES):
                        b[q, x] += r * start_mean[s, x]
        for j in range(n):
            for x in range(LANES):
                y = codes[rows[x], j]
                if y < 0:
                    open_column[j] = True
                elif np.isinf(log_odds[j]):
                    for q in range(offsets[j], offsets[j + 1]):
                        b[q, x] = 0.0 if q == offsets[j] + y else -1000.0
                else:
                    open_column[j] = True
                    b[offsets[j] + y, x] += log_odds[j]
        normalise_lanes(b, bits, offsets)
        any_used = False
        for e in range(pairs):
            used[e] = live[e] and (open_column[first[e]] or open_column[second[e]])
            any_used = any_used or used[e]
            if used[e]:
                uniform_j = float(offsets[first[e] + 1] - offsets[first[e]])
                uniform_k = float(offsets[second[e] + 1] - offsets[second[e]])
                middle = messages[e] + offsets[first[e] + 1] - offsets[first[e]]
                for q in range(messages[e], middle):
                    for x in range(LANES):
                        inverse[q, x] = uniform_j
                for q in range(middle, messages[e + 1]):
                    for x in range(LANES):
                        inverse[q, x] = uniform_k
        for x in range(LANES):
            done[x] = False
            sweeps[rows[x]] = 0
        remaining = LANES
        sweep = 0
        while remaining > 0:
            sweep += 1
            before[:] = b
            if any_used:
                for e in range(pairs):
                    if used[e]:
                        j, k = first[e], second[e]
                        middle = messages[e] + offsets[j + 1] - offsets[j]
                        to_j, to_k = inverse[messages[e] : middle], inverse[middle : messages[e + 1]]
                        b_j, b_k = b[offsets[j] : offsets[j + 1]], b[offsets[k] : offsets[k + 1]]
                        size = b_j.shape[0] * b_k.shape[0]
                        send(b_j, to_j, Wt[starts[e] : starts[e] + size], b_k, to_k, c, new)
                        send(b_k, to_k, W[starts[e] : starts[e] + size], b_j, to_j, c, new)
            for x in range(LANES):
                if done[x]:
                    continue
                change = 0.0
                for q in range(T):
                    change = max(change, abs(b[q, x] - before[q, x]))
                if change < tol or sweep >= max_sweeps or not any_used:
                    done[x] = True
                    remaining -= 1
                    i = rows[x]
                    sweeps[i] = sweep if change < tol else -sweep
                    for q in range(T):
                        Q[i, q] = b[q, x]
                    for s in range(m):
                        total, extra = start_mean[s, x], 0.0
                        if not clamped[s]:
                            for j in range(n):
                                level, square = 0.0, 0.0
                                for q in range(offsets[j], offsets[j + 1]):
                                    step = VR[s, q] * b[q, x]
                                    level += step
                                    square += step * VR[s, q]
                                total += level
                                extra += max(square - level * level, 0.0)
                            own = row_precision[s]
                            prior = max(1.0 / V[s, s] - own, 1e-3)
                            share = 1.0 / (V[s, s] * prior)
                            cavity_mean[i, s] = (total / V[s, s] - (own * X[i, s] if own > 0.0 else 0.0)) / prior
                            cavity_variance[i, s] = 1.0 / prior + extra * share * share
                        else:
                            cavity_mean[i, s] = total
                            cavity_variance[i, s] = 0.0
                        mean[i, s] = total
                        variance[i, s] = V[s, s] + extra


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
    n, T = codes.shape[1], h.shape[0]
    pairs = first.shape[0]
    W, Wt, live = np.empty(starts[pairs]), np.empty(starts[pairs]), np.zeros(pairs, dtype=np.bool_)
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
    full, expected, start = np.empty(m), np.empty(T), np.empty(m)
    z, c = np.empty(width), np.empty(width)
    loo_mean, loo_variance = np.empty(m), np.empty(m)
    current = -1
    free = 0
    for position in range(n_rows):
        i = order[position]
        if group[i] != current:
            current = group[i]
            for s in range(m):
                clamped[s] = np.isinf(precision[current, s])
            free = integrate_numbers(B, R, row_precision, clamped, V, VR, half)
            pair_weights(Phi, R, VR, offsets, first, second, starts, free, W, Wt, live, bits)
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
                block = (W if j < k else Wt)[starts[e] : starts[e] + L * K]  # (states of j, states of k)
                if not hidden[i, k]:
                    for q in range(L):
                        z[q] += np.log(block[q * K + codes[i, k]])
                    continue
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


@njit(nogil=True, cache=True)
def empirical_rows(  # type: ignore[no-untyped-def]
    X, precision, group, centre, spread, atoms, log_share, widths, starts, background, epsilon,
    mean, variance, genuine, log_density,
):  # fmt: skip
    """(F-31) to (F-33) for every number: posterior over the atoms of its column, from the cavity (centre, spread) of (F-30).

    Cells with infinite precision keep mean and variance. `genuine` is g of (F-32), `log_density` log p(x; sigma) (0 where
    blank). `log_share` holds log p_k and the division by N(0, 1); `background` is 1/W. An atom is a normal of variance
    `widths`: 0 for values that repeat, wide where the training values are sparse.
    """
    size = 1
    for s in range(X.shape[1]):
        size = max(size, starts[s + 1] - starts[s])
    prior, weight, bits = np.empty(size), np.empty(size), np.empty(size, dtype=np.int64)
    for i in range(X.shape[0]):
        for s in range(X.shape[1]):
            own = precision[group[i], s]
            genuine[i, s], log_density[i, s] = 1.0, 0.0
            if np.isinf(own):
                continue
            a, base = atoms[starts[s] : starts[s + 1]], log_share[starts[s] : starts[s + 1]]
            wide = widths[starts[s] : starts[s + 1]]
            K = a.shape[0]
            t, kappa = 1.0 / spread[i, s], centre[i, s]
            top = -np.inf
            for k in range(K):
                d = a[k] - kappa
                prior[k] = base[k] - 0.5 * t * d * d
                top = max(top, prior[k])
            for k in range(K):
                prior[k] = max(prior[k] - top, -600.0)
            x = X[i, s]
            high = -np.inf
            if own > 0.0:
                for k in range(K):
                    d = a[k] - x
                    inflated = 1.0 + own * wide[k]
                    weight[k] = prior[k] - 0.5 * own * d * d / inflated - 0.5 * np.log(inflated)
                    high = max(high, weight[k])
                for k in range(K):
                    weight[k] = max(weight[k] - high, -600.0)
            exp_all(prior, bits, K)
            if own > 0.0:
                exp_all(weight, bits, K)
            else:
                for k in range(K):
                    weight[k] = prior[k]
            mass, total, first, second, inner = 0.0, 0.0, 0.0, 0.0, 0.0
            for k in range(K):
                mass += prior[k]
                total += weight[k]
                if own > 0.0:  # the atom's own normal meets the observation
                    share = own * wide[k] / (1.0 + own * wide[k])
                    prior[k] = a[k] + share * (x - a[k])
                    inner += weight[k] * wide[k] / (1.0 + own * wide[k])
                else:
                    prior[k] = a[k]
                    inner += weight[k] * wide[k]
                first += weight[k] * prior[k]
            first /= total
            for k in range(K):
                second += weight[k] * (prior[k] - first) * (prior[k] - first)
            second = (second + inner) / total
            if own > 0.0:
                log_p = high + np.log(total / mass) + 0.5 * np.log(own / (2.0 * np.pi))
                log_density[i, s] = log_p
                p = (1.0 - epsilon) * np.exp(min(max(log_p, -60.0), 60.0))
                g = p / (p + epsilon * background[s])
                genuine[i, s] = g
                mean[i, s] = g * first + (1.0 - g) * x
                away = first - x
                variance[i, s] = max(g * second + (1.0 - g) / own + g * (1.0 - g) * away * away, 1e-6)
            else:
                mean[i, s] = first
                variance[i, s] = max(second, 1e-6)


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


@njit(nogil=True, cache=True)
def structured_rows(  # type: ignore[no-untyped-def]
    X, codes, order, group, precision, B, a, R, h, Phi, offsets, first, second, starts, log_odds, p0, naive,
    outer, sweeps, tol, Q, mean, variance, steps,
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
    pair_weights(Phi, R, VR, offsets, first, second, starts, 0, W, Wt, live, bits)
    messages = np.zeros(pairs + 1, dtype=np.int64)
    for e in range(pairs):
        messages[e + 1] = (
            messages[e] + offsets[first[e] + 1] - offsets[first[e]] + offsets[second[e] + 1] - offsets[second[e]]
        )
    inverse = np.empty((messages[pairs], LANES))
    b, before, z, mu = np.empty((T, LANES)), np.empty((T, LANES)), np.empty((T, LANES)), np.empty((m, LANES))
    c, new = np.empty((width, LANES)), np.empty((width + 2, LANES))
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
        for e in range(pairs):
            middle = messages[e] + offsets[first[e] + 1] - offsets[first[e]]
            inverse[messages[e] : middle] = float(middle - messages[e])
            inverse[middle : messages[e + 1]] = float(messages[e + 1] - middle)
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
                        middle = messages[e] + offsets[first[e] + 1] - offsets[first[e]]
                        for q in range(messages[e], middle):
                            for x in range(LANES):
                                b[offsets[first[e]] + q - messages[e], x] -= np.log(inverse[q, x])
                        for q in range(middle, messages[e + 1]):
                            for x in range(LANES):
                                b[offsets[second[e]] + q - middle, x] -= np.log(inverse[q, x])
                normalise_lanes(b, bits, offsets)
                for _ in range(sweeps):
                    for e in range(pairs):
                        if live[e]:
                            j, k = first[e], second[e]
                            middle = messages[e] + offsets[j + 1] - offsets[j]
                            to_j, to_k = inverse[messages[e] : middle], inverse[middle : messages[e + 1]]
                            b_j, b_k = b[offsets[j] : offsets[j + 1]], b[offsets[k] : offsets[k + 1]]
                            size = b_j.shape[0] * b_k.shape[0]
                            send(b_j, to_j, Wt[starts[e] : starts[e] + size], b_k, to_k, c, new)
                            send(b_k, to_k, W[starts[e] : starts[e] + size], b_j, to_j, c, new)
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
                    for q in range(T):
                        Q[i, q] = b[q, x]
                    for s in range(m):
                        mean[i, s] = mu[s, x]
                        variance[i, s] = V[s, s]
