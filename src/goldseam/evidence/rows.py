"""Rows as the rounds of beliefs need them, and what the experts make of them when some cells are withheld.

| equation | function |
|---|---|
| kappa of a lone giant <= max(0, log slab - DAMNING): its neighbours cannot save it | `prepare_rows`, `support` |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldseam.conditional.layout import Layout
from goldseam.conditional.marginals import Floats, Ints, Scores
from goldseam.conditional.source import CellPrediction, CellSource
from goldseam.evidence.pool import Pool
from goldseam.evidence.prior import Prior, slab_ratios
from goldseam.schema import Blocks

__all__ = ["Rows", "predictions", "prepare_rows", "support"]

DAMNING = 8.0  # log-likelihood ratio below which neighbours cannot bring a lone giant; in scores it is near the largest
LEAST_SLAB = 1e-300


@dataclass(frozen=True)
class Rows:
    """Rows ready for the rounds: numbers in own units, scores, what each source prepared, cells without a usable value,
    cells without any value, how much likelier damage would have drawn each value, by kind (kinds, n, p) and, `drawn` (n, p),
    the log of its mean over kinds, and how far neighbours may vouch for each number, `vouching` (n, m)."""

    numbers: Floats
    scores: Scores
    prepared: tuple[Any, ...]
    unusable: NDArray[np.bool_]
    missing: NDArray[np.bool_]
    slab: Floats
    drawn: Floats
    vouching: Floats

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def cells(self) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """What is known of cells before their neighbours are asked, as the kernels take it."""
        return self.slab, self.drawn, ~self.missing


def prepare_rows(
    blocks: Blocks,
    scores: Scores,
    lone: NDArray[np.bool_],
    layout: Layout,
    sources: Sequence[CellSource],
    prior: Prior,
    extra: Floats | None = None,
) -> Rows:
    """Everything about rows that does not change between rounds. `lone` (n, m) are numbers that neighbours cannot vouch for,
    `extra` (n, p) log-likelihood ratios of witnesses."""
    unusable = layout.unusable(blocks)
    slab = slab_ratios(scores, layout, prior)
    if extra is not None:
        slab = slab * np.exp(extra)
    prepared = tuple(source.prepare(blocks, scores) for source in sources)
    missing = unusable & ~layout.unseen(blocks)
    damning = np.log(slab.max(0)[:, layout.number_cells])
    vouching = np.where(lone, np.maximum(damning - DAMNING, 0.0), np.inf)
    drawn = np.log(np.maximum(slab.mean(0), LEAST_SLAB))
    return Rows(blocks.numbers, scores, prepared, unusable, missing, slab, drawn, vouching)


def predictions(
    rows: Rows, sources: Sequence[CellSource], withheld: NDArray[np.bool_], row_of: Ints
) -> list[CellPrediction]:
    """All sources' answers for candidates `withheld` (r, p) of the rows `row_of`."""
    hidden = withheld | rows.unusable[row_of]
    return [source.predict(part, hidden, row_of) for source, part in zip(sources, rows.prepared, strict=True)]


def support(
    rows: Rows, sources: Sequence[CellSource], pool: Pool, layout: Layout, withheld: NDArray[np.bool_], row_of: Ints
) -> Floats:
    """kappa of every cell given the believed ones, (r, p), for candidates `withheld` (r, p) of the rows `row_of`."""
    answers = predictions(rows, sources, withheld, row_of)
    numbers, levels = pool.log_ratio(rows.scores, row_of, answers)
    return layout.join(np.minimum(numbers, rows.vouching[row_of]), levels)
