"""Outline the overwritten part of a suspicious row: a posterior over all boxes of the grid, or all runs of the line.

The search (S5) finds suspicious rows and a seed; the borders of tree nodes seldom are the borders of the damage. Damage
is a box of cells whose values have nothing to do with the row (S1). So for every cell, with c the rows of the reference
nearest over the believed cells,

    e_j = log slab_j - log Student-t4( x_j ; mean_c, var_c + spread_j^2 ),  within ±limit                  (S-25)
    P(box | x) ∝ exp( temper * sum of e_j in the box ),  no box at all counting as evidence 0                (S-26)
    P(cell j overwritten) = sum of P(box) over the boxes that hold j                                         (S-27)

slab_j is uniform over the column's range; spread_j comes from the reference rows themselves, each left out of its own
neighbours; temper < 1 because residuals of neighbouring cells are not independent. Believed cells and box posterior
take turns for a few rounds. A row without a cell above 1/2 has no outline and is not flagged; that decision is part of
the score that is calibrated, so that the promised alarm rate is used in full.

| equation | function |
|---|---|
| spread, slab | `learn_evidence` |
| (S-25) | `segment_kernels.cell_odds` |
| (S-26), (S-27) | `segment_kernels.box_posterior` |
| alternation | `outline` |
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from goldseam.errors import ModelFileError
from goldseam.model_file import check_indices
from goldseam.separation.reference import Reference, in_row_blocks
from goldseam.separation.segment_kernels import outline_rows

__all__ = ["Outline", "SegmentEvidence", "learn_evidence", "outline"]

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]

LIMIT = 8.0  # one cell alone never settles a row
TEMPER = 0.5  # `cell_odds` takes roots
N_CONTEXT = 10
ROUNDS = 3
MOST_BOXES = 3  # several separate parts may be overwritten
GAIN = 6.0  # log odds that a further box must reach
LARGEST = 0.9  # a box over more of the row than this leaves no context; the seed stands
N_LEARN = 500  # reference rows that the spread is learnt from
MAX_BOXES = 2_000_000  # above, cells are taken together in blocks


@dataclass(frozen=True, eq=False)
class SegmentEvidence:
    """What cells of clean rows look like: all arrays per column, in table order and scaled units."""

    spread: FloatArray
    log_slab: FloatArray
    n_levels: IntArray
    grid: tuple[int, int, int]
    block: IntArray

    def check_state(self) -> None:
        """A file whose cells lie outside the grid is refused."""
        if len(self.grid) != 3 or min(self.grid) < 1:
            raise ModelFileError(f"The model file's grid must have three sides of at least 1; got {self.grid}.")
        check_indices("grid cells", self.block, 0, prod(self.grid))
        if (self.spread <= 0).any():
            raise ModelFileError(f"The model file's spread of cells must be positive; got {self.spread.min()}.")


@dataclass(frozen=True, eq=False)
class Outline:
    """`probability` (rows x columns) of being overwritten, `mask` where it is above 1/2, `evidence` per row.

    `donors` are the context neighbours given the mask; -1 in rows whose mask was still changing.
    """

    probability: FloatArray
    mask: BoolArray
    evidence: FloatArray
    donors: IntArray


def learn_evidence(reference: Reference) -> SegmentEvidence:
    """Spread and slab of every column, from the reference rows alone."""
    n = min(len(reference), N_LEARN)
    rows = reference.values[:n]
    index, _ = reference.nearest(
        rows, np.zeros(rows.shape, dtype=bool), min(N_CONTEXT, len(reference) - 1), members=np.arange(n)
    )
    square = np.empty(rows.shape)
    for i in range(n):
        donors = reference.values[index[i][index[i] >= 0]]
        filled = np.where(np.isnan(donors), reference.typical, donors)
        square[i] = ((rows[i] - filled.mean(axis=0)) / reference.scale) ** 2
    misfit = np.nanmean(np.where(np.isnan(rows), np.nan, square), axis=0)
    grid, block = _blocks(_three_axes(reference))
    spread = np.sqrt(_resolution(reference) ** 2 + 0.25 * misfit)
    return SegmentEvidence(spread, *_slab(reference), grid, block)


def _slab(reference: Reference) -> tuple[FloatArray, IntArray]:
    """Log density of an overwritten cell, and the number of levels of a category (0 for numbers)."""
    low, high = reference.range
    width = (high - low) / reference.scale
    if reference.tree.shape is not None:  # common units: a border pixel may be overwritten by anything
        width = np.maximum(width, 0.25 * (high.max() - low.min()) / reference.scale)
    width = np.where(width > 0, width, 1.0)
    levels = reference.n_levels
    return np.where(levels > 0, -np.log(np.maximum(levels, 1)), -np.log(width)), levels


def _resolution(reference: Reference) -> FloatArray:
    """Differences that do not count: 5 % of the common range of a grid, 1 % of each column's range on a line."""
    low, high = reference.range
    if reference.tree.shape is not None:
        return 0.05 * float(high.max() - low.min()) / reference.scale
    return np.where(high > low, 0.01 * (high - low), 0.01 * reference.scale) / reference.scale


def _three_axes(reference: Reference) -> tuple[int, int, int]:
    """The grid with three axes: ones in front, leading axes folded into one; the line is a single column."""
    sides = reference.tree.shape or (reference.n_columns, 1)
    if len(sides) > 3:
        sides = (prod(sides[:-2]), *sides[-2:])
    a, b, c = (1,) * (3 - len(sides)) + tuple(sides)
    return a, b, c


def _blocks(shape: tuple[int, int, int]) -> tuple[tuple[int, int, int], IntArray]:
    """Take cells together until the boxes can be counted; the coarser grid and the block of every cell."""
    steps = [1, 1, 1]

    def sides() -> list[int]:
        return [-(-side // step) for side, step in zip(shape, steps, strict=True)]

    while prod(side * (side + 1) // 2 for side in sides()) > MAX_BOXES:
        steps[int(np.argmax(sides()))] *= 2
    a, b, c = sides()
    places = np.indices(shape).reshape(3, -1) // np.array(steps)[:, None]
    return (a, b, c), np.ravel_multi_index(tuple(places), (a, b, c)).astype(np.int64)


def outline(
    reference: Reference,
    evidence: SegmentEvidence,
    values: FloatArray,
    seed: BoolArray,
    *,
    members: IntArray | None = None,
    n_jobs: int | None = None,
) -> Outline:
    """Alternate between context neighbours and box posterior, starting from the seed cells of the search."""
    order, n, k = reference.geometry, len(values), min(N_CONTEXT, len(reference) - 1)
    back = np.argsort(order)
    places = back[reference.tree.order]
    skips = np.full(n, -1, dtype=np.int64) if members is None else np.ascontiguousarray(members, dtype=np.int64)
    slab = np.exp(evidence.log_slab)
    cells = (reference.laid_rows, evidence.spread[order], slab[order], evidence.n_levels[order], np.exp(TEMPER * LIMIT))
    search = (reference.caps, reference.lanes, reference.seen, len(reference))
    block, settings = np.array(evidence.block), (ROUNDS, LARGEST, MOST_BOXES, GAIN)
    mask, posterior = np.empty(values.shape, dtype=bool), np.empty(values.shape)
    score, donors = np.empty(n), np.empty((n, k), dtype=np.int64)

    def work(b: slice) -> None:
        outline_rows(
            reference.laid(values[b]), reference.scaled(values[b]), np.take(seed[b], order, axis=1), skips[b], places, search, k,
            cells, block, evidence.grid, settings, mask[b], posterior[b], score[b], donors[b],
        )  # fmt: skip

    in_row_blocks(n, n_jobs, work)
    return Outline(np.take(posterior, back, axis=1), np.take(mask, back, axis=1), score, donors)
