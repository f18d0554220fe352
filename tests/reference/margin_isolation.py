"""(I-1) and (I-3) one value at a time, as written."""

import math

import numpy as np


def upper_limit(column):
    v = sorted(column)
    n = len(v)
    low, high = np.quantile(v, 0.25), np.quantile(v, 0.75)
    if n < 4 or high == low:
        return math.inf
    for r in range(n - math.ceil(0.75 * n), 0, -1):
        last = n - r - 1
        w = min(max(r, math.ceil(math.sqrt(n))), last)
        scale = (v[last] - v[last - w]) / math.log(1 + w / r)
        if v[last + 1] - v[last] >= max(0.5 * (high - low), math.log(n) / r * scale):
            return (v[last] + v[last + 1]) / 2
    return math.inf


def second_population(evidence, limit):
    m = int(max(evidence))
    share = [np.mean(np.asarray(evidence) <= t) for t in range(m + 1)]
    drops = [0.0] * (m + 1)
    for t in range(m + 1):
        for a in range(t):
            for b in range(t + 1, m + 1):
                chord = share[a] + (share[b] - share[a]) * (t - a) / (b - a)
                drops[t] = max(drops[t], chord - share[t])
    best = int(np.argmax(drops))
    return best + 0.5 if math.sqrt(len(evidence)) * drops[best] >= limit else math.inf
