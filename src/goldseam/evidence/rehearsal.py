"""Damage for practice: calibration rows are hurt on purpose, in many ways, to learn what findings and repairs are worth.

The ways are wider than any one protocol: runs of 5 to 60 % of the columns or scattered cells at 3 to 30 %; values drawn
uniformly, from the column itself, or far off; or plain noise on the whole row. Half of the rows stay clean.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from goldseam.conditional.layout import Layout
from goldseam.conditional.marginals import Floats, Marginals
from goldseam.schema import Blocks

__all__ = ["Rehearsal", "draw_cells", "hurt"]

DAMAGED = 0.5
FLAT, OWN, FAR, NOISE = range(4)
WAYS = (0.35, 0.25, 0.2, 0.2)


@dataclass(frozen=True)
class Rehearsal:
    """Hurt rows, the cells that changed, (n, p) in table order, and the way each row was hurt (n,)."""

    blocks: Blocks
    changed: NDArray[np.bool_]
    way: NDArray[np.int64]


def draw_cells(
    n_rows: int, n_cells: int, rng: np.random.Generator, grid: tuple[int, ...] | None = None
) -> NDArray[np.bool_]:
    """Which cells to hurt: half of the rows, of those 40 % in one run and 60 % scattered, at least one cell each.

    On a grid the run is a box.
    """
    run = _boxes(n_rows, (n_cells,) if grid is None else grid, rng)
    rate = np.exp(rng.uniform(np.log(0.03), np.log(0.3), n_rows))
    scattered = rng.random((n_rows, n_cells)) < rate[:, None]
    scattered[np.arange(n_rows), rng.integers(n_cells, size=n_rows)] = True
    cells = np.where((rng.random(n_rows) < 0.4)[:, None], run, scattered)
    return cells & (rng.random(n_rows) < DAMAGED)[:, None]


def _boxes(n_rows: int, grid: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.bool_]:
    """One box per row that takes 5 to 60 % of the grid; a run where the grid has one axis."""
    box = np.ones((n_rows, *grid), dtype=bool)
    share = rng.uniform(0.05, 0.6, n_rows) ** (1.0 / len(grid))
    for axis, extent in enumerate(grid):
        length = np.maximum(1.0, np.round(extent * share))
        start = np.floor(rng.random(n_rows) * (extent - length + 1.0))
        at = np.arange(extent)
        inside = (at >= start[:, None]) & (at < (start + length)[:, None])
        box &= inside.reshape([n_rows, *(extent if i == axis else 1 for i in range(len(grid)))])
    return box.reshape(n_rows, -1)


def hurt(
    blocks: Blocks, marginals: Marginals, layout: Layout, rng: np.random.Generator, grid: tuple[int, ...] | None = None
) -> Rehearsal:
    """A damaged copy of clean rows; every row has one kind of damage. Missing cells stay missing."""
    n = len(blocks)
    way = rng.choice(4, size=n, p=WAYS)
    cells = draw_cells(n, layout.n_cells, rng, grid)
    cells[way == NOISE] = cells[way == NOISE].any(1, keepdims=True)  # noise is everywhere in its row
    cells &= ~layout.unusable(blocks)
    numbers, codes = blocks.numbers.copy(), blocks.codes.copy()
    for j, cell in enumerate(layout.number_cells):
        hit = cells[:, cell]
        numbers[hit, j] = _number(blocks.numbers[hit, j], way[hit], j, marginals, rng)
    for j, cell in enumerate(layout.category_cells):
        hit = cells[:, cell]
        codes[hit, j] = _code(blocks.codes[hit, j], way[hit], j, marginals, rng)
    changed = layout.join((numbers != blocks.numbers) & ~np.isnan(blocks.numbers), codes != blocks.codes)
    return Rehearsal(Blocks(numbers, codes), changed, way)


def _number(old: Floats, way: NDArray[np.int64], j: int, marginals: Marginals, rng: np.random.Generator) -> Floats:
    first, last = marginals.offsets[j], marginals.offsets[j + 1]
    knots = marginals.knots[first:last]
    flat = rng.choice(knots, old.size) if marginals.discrete[j] else rng.uniform(knots[0], knots[-1], old.size)
    own = np.interp(rng.random(old.size), marginals.upto[first:last], knots)
    if marginals.discrete[j]:
        own = knots[np.abs(own[:, None] - knots).argmin(1)]
    shift = old + rng.choice((-1.0, 1.0), old.size) * rng.uniform(2.0, 5.0, old.size) * marginals.spread[j]
    far = np.where(rng.random(old.size) < 0.5, 10.0 * old, shift)
    noise = old + rng.uniform(0.2, 0.7, old.size) * marginals.spread[j] * rng.standard_normal(old.size)
    return np.choose(way, (flat, own, far, noise))


def _code(
    old: NDArray[np.int32], way: NDArray[np.int64], j: int, marginals: Marginals, rng: np.random.Generator
) -> NDArray[np.int32]:
    first, last = marginals.level_offsets[j], marginals.level_offsets[j + 1]
    flat = rng.integers(last - first, size=way.size)
    own = rng.choice(last - first, size=way.size, p=marginals.frequency[first:last])
    noise = np.where(rng.random(way.size) < 0.2, flat, old)
    return np.choose(way, (flat, own, flat, noise)).astype(np.int32)
