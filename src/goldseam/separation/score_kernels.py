"""Compiled loops of the scores (S-24, S-7, S-30) and of the confirmed rule's levels (S-9, S-10)."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["confirmed_levels", "continuous_scores", "part_ties"]

SHARE = 1e-6  # of a score that ties may change


@njit(nogil=True, cache=True, boundscheck=False)
def continuous_scores(radii, ranks, above, base, shape, tail, out):  # type: ignore[no-untyped-def]
    """(S-24) p-values of rows x nodes: interpolated between member radii, (S-7) beyond the largest; NaN stays.

    `ranks` and `above` are `MemberRadii`; `base` and `shape` the Pareto tail of every node, whose k + 1 is `tail`.
    """
    n, nodes = ranks.shape
    wide = int(np.ceil(np.sqrt(n) / 8)) * 8
    shelves = np.full((-(-n // wide), wide), np.inf)
    rank, mass, values = shelves.reshape(shelves.size), np.empty(n + 1), np.empty(radii.shape[0])
    for node in range(nodes):
        rank[:n] = ranks[:, node]
        mass[:] = above[:, node]
        values[:] = radii[:, node]
        _node_scores(values, shelves, shelves[:, wide - 1].copy(), rank[n - 1], mass, base[node], shape[node], tail)
        out[:, node] = values


@njit(nogil=True, boundscheck=False)
def _node_scores(values, shelves, ends, largest, mass, base, shape, tail):  # type: ignore[no-untyped-def]
    """Radii of one node into its p-values, in place. The members' radii stand on `shelves`, whose last ones are `ends`.

    A radius is compared with all ends, then with one whole shelf: both are counted in vectors, while the branches of a
    binary search would be guessed wrong every other time.
    """
    count, wide = shelves.shape
    rank, total = shelves.reshape(count * wide), mass[0]
    for i in range(values.shape[0]):
        radius = values[i]
        if np.isnan(radius):
            continue
        if radius > largest:
            floor = 1.0 / (total + 1.0)
            values[i] = min(floor, _beyond(radius, largest, base, shape, tail * floor))
            continue
        shelf, below = 0, 0  # members whose radius is smaller
        for j in range(count):
            shelf += ends[j] < radius
        for j in range(wide):
            below += shelves[shelf, j] < radius
        below += shelf * wide
        low = rank[below - 1] if below else 0.0
        gap = rank[below] - low
        step = (radius - low) / gap if gap > 0 else 0.0
        values[i] = (1.0 + mass[below] - step * (mass[below] - mass[below + 1])) / (total + 1.0)


@njit(nogil=True)
def _beyond(radius, largest, base, shape, weight):  # type: ignore[no-untyped-def]
    """(S-7) before the floor is applied; `weight` is (k + 1) / (N + 1)."""
    if base <= 1e-12:
        return 1e-3 * np.exp(-min((radius - largest) / 0.05, 700.0))
    return weight * (radius / base) ** (-1.0 / shape)


@njit(nogil=True, cache=True)
def part_ties(p):  # type: ignore[no-untyped-def]
    """(S-30) p (1 - SHARE (1 - p) (1 - mean of its row)) for rows x nodes, in place: the rarer a row, the smaller."""
    for i in range(p.shape[0]):
        total = 0.0
        for node in range(p.shape[1]):
            total += p[i, node]
        rare = SHARE * (1.0 - total / p.shape[1])
        for node in range(p.shape[1]):
            p[i, node] *= 1.0 - rare * (1.0 - p[i, node])


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
