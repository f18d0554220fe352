"""The joint posterior by summing over every set of damaged cells: slow, and with no chain algebra to get wrong."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np


def pattern_probability(pattern, usable, runs, order):
    """P(pattern of the usable cells) under the chain: sum over all paths of off / short / long."""
    short, long, first, start = runs
    step = np.array(
        [
            [1 - start, start / 2, start / 2],
            [1 / short, 1 - 1 / short, 0.0],
            [1 / long, 0.0, 1 - 1 / long],
        ]
    )
    total = 0.0
    for path in product(range(3), repeat=len(pattern)):
        weight = (1 - first, first / 2, first / 2)[path[0]]
        for before, after in pairwise(path):
            weight *= step[before, after]
        fits = all((path[a] > 0) == pattern[j] for a, j in enumerate(order) if usable[j])
        total += weight * fits
    return total


def enumerate_posterior(like, usable, clean, scatter, rates, segment, runs, order):
    """Log odds of the row and P(damaged) of its usable cells, by enumeration."""
    kinds, p = like.shape
    damaged = np.zeros(p)
    total = clean
    free = [j for j in range(p) if usable[j]]
    for bits in product((False, True), repeat=len(free)):
        pattern = np.zeros(p, dtype=bool)
        pattern[free] = bits
        chain = pattern_probability(pattern, usable, runs, order)
        for s in range(kinds):
            drawn = np.prod(like[s, pattern])
            weight = segment[s] * chain * drawn
            for k, rate in enumerate(rates):
                weight += scatter[k, s] * rate ** pattern.sum() * (1 - rate) ** (len(free) - pattern.sum()) * drawn
            total += weight
            damaged += weight * pattern
    return np.log((total - clean) / clean), damaged / total
