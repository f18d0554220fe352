"""Which cells to believe: rounds of candidates, each predicted from the cells it leaves believed (E3, E8).

| equation | function |
|---|---|
| (E-6) row prior, chain of segments | `kernels.row_posterior`, `kernels.chain_pass` |
| (E-7) candidates weighted by the pseudo-likelihood | `kernels.candidate_weight` |
| next candidate: the worst third of the suspects joins, the likelier sound come back | `kernels.belief_step` |
| second start: all rare and all distrusted cells withheld together | `start_again` |
| (E-12) what rare cells vouch for each other counts once | `kernels.shared_support` |
| kappa of a lone giant <= max(0, log slab - DAMNING): its neighbours cannot save it | `prepare_rows`, `step` |
| cell score = posterior logit + half of the cell's own log-likelihood ratio | `Beliefs.cell_scores` |
| row score = log odds of the first round + half of the worst cell score | `Beliefs.row_scores` |

The cell score departs from E8.5: the chain spreads suspicion to neighbours, rightly inside a segment and wrongly between
two scattered cells of a weakly dependent table; the cell's own evidence sorts those out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldseam.conditional.layout import Layout
from goldseam.conditional.marginals import Floats, Ints, Scores
from goldseam.conditional.source import CellPrediction, CellSource
from goldseam.evidence import kernels
from goldseam.evidence.pool import Pool
from goldseam.evidence.prior import Prior, slab_ratios
from goldseam.schema import Blocks

__all__ = ["Beliefs", "Rows", "State", "believe", "init", "prepare_rows", "step"]

ROUNDS = 10
RARE = 4.0  # a cell is rare if damage of some kind would draw its value so many times oftener than the reference
LONGEST_RUN = 0.4  # of the columns, in which such cells must lie to be wrong together
WORST_SHARE = 1.0 / 3.0  # E3
MOST_WITHHELD = 0.6  # E3
OWN = 0.5  # weight of a cell's own evidence in its score
OWN_LIMIT = 4.0
DAMNING = 8.0  # log-likelihood ratio below which neighbours cannot bring a lone giant; in scores it is near the largest
LEAST_SLAB = 1e-300
WORST_CELL = 0.5  # weight of the worst cell in the row score


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


@dataclass(frozen=True)
class State:
    """What the next round needs; arrays are written in place, row by row. `first` (n, p) is kappa of the first round."""

    withheld: NDArray[np.bool_]
    visited: NDArray[np.uint64]
    best: Floats
    total: Floats
    on: Floats
    off: Floats
    surprise: Floats
    odds: Floats
    first: Floats
    active: Ints


@dataclass(frozen=True)
class Beliefs:
    """What a row's cells deserve: `logits` (n, p) posterior log odds of damage, `own` (n, p) log-likelihood ratio of the
    cell alone, `odds` (n,) log odds of the first round that the row is damaged, `missing` (n, p)."""

    logits: Floats
    own: Floats
    odds: Floats
    missing: NDArray[np.bool_]

    @property
    def cell_scores(self) -> Floats:
        """Higher is more suspicious; -inf where nothing was observed."""
        scores = self.logits + OWN * np.clip(self.own, -OWN_LIMIT, OWN_LIMIT)
        return np.where(self.missing, -np.inf, scores)

    @property
    def context(self) -> Floats:
        """Log odds of damage by the rest of the row alone."""
        return self.logits - self.own

    @property
    def row_scores(self) -> Floats:
        """Higher is more suspicious. The first round detects rows, later rounds localise (E4)."""
        return self.odds + WORST_CELL * np.maximum(self.cell_scores.max(1), -10.0)

    def take(self, rows: Any) -> Beliefs:
        return Beliefs(*(part[rows] for part in vars(self).values()))


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


def init(rows: Rows) -> State:
    """Nothing withheld but what cannot be used."""
    n, p = rows.unusable.shape
    return State(
        withheld=np.zeros((n, p), dtype=bool),
        visited=np.zeros((n, 2 * ROUNDS), dtype=np.uint64),
        best=np.full(n, -np.inf),
        total=np.zeros(n),
        on=np.zeros((n, p)),
        off=np.zeros((n, p)),
        surprise=np.zeros((n, p)),
        odds=np.zeros(n),
        first=np.zeros((n, p)),
        active=np.arange(n),
    )


def step(
    state: State, number: int, rows: Rows, sources: Sequence[CellSource], pool: Pool, prior: Prior, layout: Layout
) -> State:
    """One round: predict from the believed cells, weigh the candidate, propose the next."""
    answers = predictions(rows, sources, state.withheld[state.active], state.active)
    numbers, levels = pool.log_ratio(rows.scores, state.active, answers)
    kappa = layout.join(np.minimum(numbers, rows.vouching[state.active]), levels)
    if number == 0:
        state.first[:] = kappa
    shared = np.zeros(len(kappa))
    if number >= ROUNDS:
        shared = kernels.shared_support(state.first, kappa, state.active, ~rows.missing, state.withheld)
    going = kernels.belief_step(
        rows.slab, rows.drawn, kappa, shared, state.active, ~rows.missing, state.withheld, state.visited, number, state.best,
        state.total, state.on, state.off, state.surprise, state.odds, WORST_SHARE, MOST_WITHHELD, *prior.arrays(layout.n_cells),
    )  # fmt: skip
    return replace(state, active=state.active[going])


def start_again(state: State, rows: Rows, order: Ints) -> State:
    """Where two or more rare cells are still believed that lie in one run of the `order`, they may vouch for each other: all
    of them are withheld together, with the cells that are distrusted already."""
    rare = (rows.slab.max(0) > RARE) & ~rows.missing
    distrusted = (state.on > state.off) & ~rows.missing
    together, believed = rare | distrusted, (rare & ~distrusted)[:, order]
    p = together.shape[1]
    reach = p - believed[:, ::-1].argmax(1) - believed.argmax(1)
    few = (together.sum(1) <= MOST_WITHHELD * p) & (reach <= LONGEST_RUN * p)
    active = np.flatnonzero((believed.sum(1) >= 2) & few)
    state.withheld[active] = together[active]
    return replace(state, active=active)


def believe(rows: Rows, sources: Sequence[CellSource], pool: Pool, prior: Prior, layout: Layout) -> Beliefs:
    """Rounds until no row has a new candidate, at most ROUNDS from each of the two starts."""
    state = init(rows)
    for number in range(2 * ROUNDS):
        if number == ROUNDS:
            state = start_again(state, rows, prior.arrays(layout.n_cells)[-1])
        if len(state.active):
            state = step(state, number, rows, sources, pool, prior, layout)
    logits = np.log(np.maximum(state.on, 1e-300)) - np.log(np.maximum(state.off, 1e-300))
    return Beliefs(logits, state.surprise / state.total[:, None], state.odds, rows.missing)
