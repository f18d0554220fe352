"""Compiled loops of the scores (S-24, S-7) and of the confirmed rule's levels (S-9, S-10)."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["confirmed_levels", "continuous_scores"]


@njit(nogil=True, cache=True)
def continuous_scores(radii, ranks, above, base, shape, tail, out):  # type: ignore[no-untyped-def]
    """(S-24) p-values of rows x nodes: interpolated between member radii, (S-7) beyond the largest; NaN stays.

    `ranks` and `above` are `MemberRadii`; `base` and `shape` the Pareto tail of every node, whose k + 1 is `tail`.
    """
    n, nodes = ranks.shape
    total = above[0, 0]
    rank, mass = np.empty(n), np.empty(n + 1)
    for node in range(nodes):
        rank[:] = ranks[:, node]
        mass[:] = above[:, node]
        for i in range(radii.shape[0]):
            radius = np.float64(radii[i, node])
            if np.isnan(radius):
                out[i, node] = np.nan
            elif radius > rank[n - 1]:
                floor = 1.0 / (total + 1.0)
                out[i, node] = min(floor, _beyond(radius, rank[n - 1], base[node], shape[node], tail * floor))
            else:
                below, size = 0, n  # members whose radius is smaller; halved without a branch
                while size > 1:
                    half = size // 2
                    below += half * (rank[below + half - 1] < radius)
                    size -= half
                below += rank[below] < radius
                low = rank[below - 1] if below else 0.0
                gap = rank[below] - low
                step = (radius - low) / gap if gap > 0 else 0.0
                out[i, node] = (1.0 + mass[below] - step * (mass[below] - mass[below + 1])) / (total + 1.0)


@njit(nogil=True, cache=True)
def _beyond(radius, largest, base, shape, weight):  # type: ignore[no-untyped-def]
    """(S-7) before the floor is applied; `weight` is (k + 1) / (N + 1)."""
    if base <= 1e-12:
        return 1e-3 * np.exp(-min((radius - largest) / 0.05, 700.0))
    return weight * (radius / base) ** (-1.0 / shape)


@njit(nogil=True, cache=True)
def confirmed_levels(p, start, stop, first, count, parent, order, levels, cells):  # type: ignore[no-untyped-def]
    """(S-9) into `levels` (rows x nodes) and (S-10) into `cells` (rows x columns, in table order)."""
    nodes = start.shape[0]
    best = np.empty(nodes)
    for i in range(p.shape[0]):
        levels[i, 0] = best[0] = np.inf
        for node in range(1, nodes):
            level = p[i, node]
            if count[node] == 0:
                level = max(level, p[i, parent[node]])
            for child in range(first[node], first[node] + count[node]):
                level = max(level, p[i, child])
            levels[i, node] = level
            best[node] = min(level, best[parent[node]])
            if count[node] == 0:
                for j in range(start[node], stop[node]):
                    cells[i, order[j]] = best[node]
