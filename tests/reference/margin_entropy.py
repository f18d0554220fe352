"""Slow and obvious: neighbour sums by full distance tables, threshold (G-16) word by word."""

from __future__ import annotations

import math

import numpy as np


def sums_by_sorting(rows, reference, k, excluded=None):
    """Sum of the k smallest distances; `excluded[i]` are the reference rows that row i may not use."""
    out = []
    for i, row in enumerate(rows):
        distances = []
        for j, other in enumerate(reference):
            if excluded is not None and j in excluded[i]:
                continue
            shared = ~np.isnan(row) & ~np.isnan(other)
            if shared.any():
                distances.append(math.sqrt(np.sum((row - other)[shared] ** 2) * len(row) / shared.sum()))
        distances.sort()
        out.append(sum(distances[:k]) if len(distances) >= k else math.inf)
    return np.array(out)


def mad(values):
    return np.median(np.abs(np.asarray(values) - np.median(values)))


def auto_rule(ell):
    """(G-16) with one-based positions, as written."""
    v = [None, *sorted(ell)]
    n = len(ell)
    if n < 6:
        return n
    gap = {s: v[s + 1] - v[s] for s in range(1, n)}
    first_best = lambda candidates: max(candidates, key=lambda s: (gap[s], -s))  # noqa: E731
    s2 = first_best(range(math.ceil(0.4 * n), n))
    core = v[1 : max(4, n // 2) + 1]
    for _ in range(20):
        limit = np.median(core) + 3 * 1.4826 * mad(core)
        new = [value for value in v[1:] if value <= limit]
        if len(new) == len(core) or len(new) < 4:
            break
        core = new
    s1 = len(core)
    if s1 < n:
        w = max(2, math.floor(0.1 * n))
        lo, hi = max(n // 2, s1 - w), min(n - 1, s1 + w)
        if hi > lo:
            s1 = first_best(range(lo, hi + 1))
    clear = s1 < s2 and gap[s1] >= 0.5 * 1.4826 * mad(v[1 : s1 + 1]) and s1 >= math.ceil(0.4 * n)
    # the guards beyond (G-16): a gap that costs a share q of the class must be 1.4 q and log(n) / (n q) scales wide;
    # without one a tail that ends within 2 scales stays whole, else at most a twentieth is cut off
    scale = lambda s: max(1.4826 * mad(v[1 : s + 1]), 1e-3)  # noqa: E731
    top = min(math.ceil(0.95 * n), n - 1)
    short = v[n] <= np.median(v[1:]) + 2 * scale(n)
    chosen = n if short else first_best(range(top, n))
    for s in [s1, s2] if clear else [s2]:
        if s < math.ceil(0.95 * n) and gap[s] >= max(1.4 * (1 - s / n), math.log(n) / (n - s)) * scale(s):
            chosen = s
            break
    # and what is kept must not hold a second hump: many rows, far from the core, where the density rises again
    lowest = math.ceil(0.4 * n)
    if s1 >= lowest and chosen - s1 >= 0.1 * n and np.median(v[s1 + 1 : chosen + 1]) - v[s1] >= 1.5 * scale(s1):
        return s1 if hump(v[lowest + 1 : chosen + 1]) >= 0.95 else chosen
    return chosen


def hump(x):
    """sqrt(m) times the largest drop of the shares below any chord that ends on both sides of a point."""
    m = len(x)
    drop = 0.0
    for i in range(m):
        for a in range(i):
            for b in range(i + 1, m):
                chord = (a + (b - a) * (x[i] - x[a]) / (x[b] - x[a])) / (m - 1)
                drop = max(drop, chord - i / (m - 1))
    return math.sqrt(m) * drop
