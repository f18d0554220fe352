"""Compiled loops of belief propagation over the categories, the numbers integrated out; eight rows side by side.

Letters as in `kernels`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from goldseam.compiled import lean
from goldseam.field.kernels import exp_all, integrate_numbers

__all__ = [
    "LANES",
    "infer_rows",
    "message_places",
    "normalise_lanes",
    "pair_weights",
    "reset_messages",
    "sweep_pairs",
]

LANES = 8  # rows that are inferred side by side; a full vector register of float64
MESSAGE_FLOOR = 1e-12  # F5.2
BELIEF_FLOOR = 1e-30  # below what float64 can add to one; the spec's 1e-14 would blur observed cells without noise
FLAT = 1e-8  # F5.2: pair potentials with a smaller range are no edges


@lean()
def pair_weight(e, Phi, R, VR, offsets, first, second, starts, free, W, Wt, bits):  # type: ignore[no-untyped-def]
    """W = exp(Phi + R'VR - max) of one pair of categories, and transposed; whether it is an edge. `free` lists the numbers
    that were integrated out."""
    j, k = first[e], second[e]
    low_j, low_k = offsets[j], offsets[k]
    L, K = offsets[j + 1] - low_j, offsets[k + 1] - low_k
    block = W[starts[e] : starts[e] + L * K]
    for left in range(L):
        row = block[left * K : left * K + K]
        source = Phi[low_j + left, low_k : low_k + K]
        for right in range(K):
            row[right] = source[right]
        for i in range(free.shape[0]):
            r = R[free[i], low_j + left]
            if r != 0.0:
                v = VR[free[i], low_k : low_k + K]
                for right in range(K):
                    row[right] += r * v[right]
    top, low = block[0], block[0]
    for i in range(L * K):
        top, low = max(top, block[i]), min(low, block[i])
    if top - low <= FLAT:
        return False
    for i in range(L * K):
        block[i] = max(block[i] - top, -600.0)
    exp_all(block, bits[: L * K], L * K)
    transposed = Wt[starts[e] : starts[e] + L * K]
    for left in range(L):
        for right in range(K):
            transposed[right * L + left] = block[left * K + right]
    return True


@lean()
def pair_weights(Phi, R, VR, offsets, first, second, starts, free, W, Wt, live, bits):  # type: ignore[no-untyped-def]
    """The weights of every pair of categories; `live` says which pairs are edges."""
    for e in range(first.shape[0]):
        live[e] = pair_weight(e, Phi, R, VR, offsets, first, second, starts, free, W, Wt, bits)


@njit(nogil=True, cache=True)
def possible_pairs(Phi, offsets, first, second):  # type: ignore[no-untyped-def]
    """Which pairs are edges before any number is integrated out."""
    out = np.empty(first.shape[0], dtype=np.bool_)
    for e in range(first.shape[0]):
        low_j, low_k = offsets[first[e]], offsets[second[e]]
        top = low = Phi[low_j, low_k]
        for p in range(low_j, offsets[first[e] + 1]):
            for q in range(low_k, offsets[second[e] + 1]):
                top, low = max(top, Phi[p, q]), min(low, Phi[p, q])
        out[e] = top - low > FLAT
    return out


@lean()
def leaning(R, offsets, free, lean):  # type: ignore[no-untyped-def]
    """Which categories lean on a number that is integrated out: only two of those are coupled by it."""
    for j in range(offsets.shape[0] - 1):
        lean[j] = False
        for i in range(free.shape[0]):
            for q in range(offsets[j], offsets[j + 1]):
                lean[j] = lean[j] or R[free[i], q] != 0.0


@lean()
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


@lean()
def send_open(belief, inverse_back, weights, target, inverse, closed, c, new, kept):  # type: ignore[no-untyped-def]
    """`send` to the lanes whose target is not known. A known category takes no message, so that a row's beliefs do not
    depend on what the rows beside it need, not even in the last bit."""
    count = 0
    for x in range(LANES):
        count += closed[x]
    if count == LANES:
        return
    K = target.shape[0]
    if count:
        for q in range(K):
            for x in range(LANES):
                kept[q, x], kept[K + q, x] = target[q, x], inverse[q, x]
    send(belief, inverse_back, weights, target, inverse, c, new)
    if count:
        for q in range(K):
            for x in range(LANES):
                if closed[x]:
                    target[q, x], inverse[q, x] = kept[q, x], kept[K + q, x]


@lean()
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
def message_places(first, second, offsets):  # type: ignore[no-untyped-def]
    """Where the messages of every pair stand: to `first`, then to `second`."""
    places = np.zeros(first.shape[0] + 1, dtype=np.int64)
    for e in range(first.shape[0]):
        j, k = first[e], second[e]
        places[e + 1] = places[e] + (offsets[j + 1] - offsets[j]) + (offsets[k + 1] - offsets[k])
    return places


@lean()
def reset_messages(inverse, places, first, offsets, used):  # type: ignore[no-untyped-def]
    """Uniform messages on the pairs in use, as reciprocals."""
    for e in range(first.shape[0]):
        if used[e]:
            middle = places[e] + offsets[first[e] + 1] - offsets[first[e]]
            inverse[places[e] : middle] = float(middle - places[e])
            inverse[middle : places[e + 1]] = float(places[e + 1] - middle)


@lean()
def sweep_pairs(b, inverse, places, used, closed, W, Wt, first, second, starts, offsets, c, new, kept):  # type: ignore[no-untyped-def]
    """One sweep of (F-21): both messages of every pair in use, in the order of the list; none to `closed` categories
    (n, LANES)."""
    for e in range(first.shape[0]):
        if used[e]:
            j, k = first[e], second[e]
            middle = places[e] + offsets[j + 1] - offsets[j]
            to_j, to_k = inverse[places[e] : middle], inverse[middle : places[e + 1]]
            b_j, b_k = b[offsets[j] : offsets[j + 1]], b[offsets[k] : offsets[k + 1]]
            size = b_j.shape[0] * b_k.shape[0]
            send_open(b_j, to_j, Wt[starts[e] : starts[e] + size], b_k, to_k, closed[k], c, new, kept)
            send_open(b_k, to_k, W[starts[e] : starts[e] + size], b_j, to_j, closed[j], c, new, kept)


@njit(nogil=True, cache=True)
def infer_rows(  # type: ignore[no-untyped-def]
    X, codes, order, group, precision, B, a, R, h, Phi, offsets, first, second, starts, log_odds,
    max_sweeps, tol, Q, mean, variance, cavity_mean, cavity_variance, sweeps, change_of,
):  # fmt: skip
    """Posterior of every row: numbers integrated out, loopy belief propagation over the categories (F-19 to F-21).

    Rows are taken in `order`. `precision` (groups, m) is 1/sigma² of every number of the rows of a `group`: 0 where it
    is blank, inf where its noise is nil and it is clamped. log_odds[j] = log P(y=l|v=l) / P(y=l|v=other) of (F-6), inf
    where the flip rate is nil.
    The sweeps of a row come back negative when they ended before its beliefs settled; `change_of` is the largest change
    of a belief in its last sweep.
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
    places = message_places(first, second, offsets)
    inverse = np.empty((places[pairs], LANES))
    b, before = np.empty((T, LANES)), np.empty((T, LANES))
    c, new, kept = np.empty((width, LANES)), np.empty((width + 2, LANES)), np.empty((2 * width, LANES))
    start_mean = np.empty((m, LANES))
    drive = np.empty(m)
    rows = np.empty(LANES, dtype=np.int64)
    done = np.empty(LANES, dtype=np.bool_)
    used, ready = np.empty(pairs, dtype=np.bool_), np.zeros(pairs, dtype=np.bool_)
    closed, lean = np.zeros((n, LANES), dtype=np.bool_), np.zeros(n, dtype=np.bool_)
    open_column = np.empty(n, dtype=np.bool_)
    possible = possible_pairs(Phi, offsets, first, second)
    current = -1
    free = np.empty(0, dtype=np.int64)
    at = 0
    while at < n_rows:
        g = group[order[at]]
        if g != current:
            current = g
            for s in range(m):
                clamped[s] = np.isinf(precision[g, s])
                row_precision[s] = 0.0 if clamped[s] else precision[g, s]
            free = integrate_numbers(B, R, row_precision, clamped, V, VR, half)
            leaning(R, offsets, free, lean)
            ready[:] = False
        lanes = 0
        while lanes < LANES and at < n_rows and group[order[at]] == current:
            rows[lanes] = order[at]
            lanes += 1
            at += 1
        for x in range(lanes, LANES):
            rows[x] = rows[lanes - 1]
        for j in range(n):
            open_column[j] = False
        for x in range(lanes):
            i = rows[x]
            for s in range(m):  # a - B_FC x_C + precision x, then the mean before the categories speak
                if clamped[s]:
                    continue
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
        for x in range(lanes, LANES):
            for s in range(m):
                start_mean[s, x] = start_mean[s, lanes - 1]
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
                closed[j, x] = y >= 0 and np.isinf(log_odds[j])
                if y < 0:
                    open_column[j] = True
                elif closed[j, x]:
                    for q in range(offsets[j], offsets[j + 1]):
                        b[q, x] = 0.0 if q == offsets[j] + y else -1000.0
                else:
                    open_column[j] = True
                    b[offsets[j] + y, x] += log_odds[j]
        normalise_lanes(b, bits, offsets)
        any_used = False
        for e in range(pairs):
            j, k = first[e], second[e]
            used[e] = (open_column[j] or open_column[k]) and (possible[e] or (lean[j] and lean[k]))
            if used[e] and not ready[e]:  # weights are made when a row first needs them
                live[e] = pair_weight(e, Phi, R, VR, offsets, first, second, starts, free, W, Wt, bits)
                ready[e] = True
            used[e] = used[e] and live[e]
            any_used = any_used or used[e]
        reset_messages(inverse, places, first, offsets, used)
        for x in range(LANES):
            done[x] = False
            sweeps[rows[x]] = 0
        remaining = LANES
        sweep = 0
        while remaining > 0:
            sweep += 1
            for q in range(T):  # not `before[:] = b`: its check of shapes takes seconds to compile
                for x in range(LANES):
                    before[q, x] = b[q, x]
            sweep_pairs(b, inverse, places, used, closed, W, Wt, first, second, starts, offsets, c, new, kept)
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
                    change_of[i] = change
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
