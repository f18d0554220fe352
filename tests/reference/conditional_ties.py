"""Levels from what goes with them (E-13), row by row and cell by cell."""

from __future__ import annotations

import numpy as np


def level_probabilities(values, withheld, base, table, level_offsets):
    """Probabilities of all levels of one row, side by side."""
    out = []
    for j in range(len(level_offsets) - 1):
        odds = [
            base[level] + sum(table[v, level] for v, gone in zip(values, withheld, strict=True) if v >= 0 and not gone)
            for level in range(level_offsets[j], level_offsets[j + 1])
        ]
        share = np.exp(np.array(odds) - max(odds))
        out.extend(share / share.sum())
    return np.array(out)


def left_out(value, level, size, levels, smoothing):
    """What a category cell says in every row (rows, levels), counted anew without that row; shares of values with it."""
    share = (np.bincount(value, minlength=size) + 0.5) / (len(value) + 0.5 * size)
    out = np.empty((len(value), levels))
    for i in range(len(value)):
        for k in range(levels):
            others = [r for r in range(len(value)) if level[r] == k and not (r == i and level[i] == k)]
            together = sum(value[r] == value[i] for r in others)
            smoothed = (together + smoothing * share[value[i]]) / (len(others) + smoothing)
            out[i, k] = np.log(smoothed / share[value[i]])
    return out
