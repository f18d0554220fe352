"""Which cells to believe: rounds of candidates, each predicted from the cells it leaves believed (E3, E8).

| equation | function |
|---|---|
| (E-6) row prior, chain of segments | `kernels.row_posterior`, `kernels.chain_pass` |
| (E-7) candidates weighted by the pseudo-likelihood | `kernels.candidate_weight` |
| next candidate: the worst third of the suspects joins, the likelier sound come back | `kernels.belief_step` |
| second start: all rare and all distrusted cells withheld together | `start_again` |
| (E-12) what rare cells vouch for each other counts once | `kernels.shared_support` |
| (E-14) search: of the TRIED most contradicted cells the one joins that makes (E-7) largest, while it grows | `search` |
| cell score = posterior logit + half of the cell's own log-likelihood ratio | `Beliefs.cell_scores` |
| row score = log odds of the first round + half of the worst cell score | `Beliefs.row_scores` |

Where columns depend on each other closely, one wrong cell contradicts all others, and they contradict it. How much a cell is
contradicted then does not tell which one is wrong; whether the others agree without it does. That is what the search tries.

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
from goldseam.conditional.marginals import Floats, Ints
from goldseam.conditional.source import CellSource
from goldseam.evidence import kernels
from goldseam.evidence.pool import Pool
from goldseam.evidence.prior import Prior
from goldseam.evidence.rows import Rows, support

__all__ = ["DEEPEST", "Beliefs", "Experts", "State", "believe", "init", "search", "start_again", "step"]

ROUNDS = 10  # from each of the two starts
RARE = 4.0  # a cell is rare if damage of some kind would draw its value so many times oftener than the reference
LONGEST_RUN = 0.4  # of the columns, in which such cells must lie to be wrong together
WORST_SHARE = 1.0 / 3.0  # E3
MOST_WITHHELD = 0.6  # E3
ODD = 1.0  # log odds of damage above which a row is searched, and log-likelihood ratio above which a cell is tried
TRIED = 3  # cells that a search withholds on trial, one at a time
DEEPEST = 4  # cells that it withholds in the end, at most
OWN = 0.5  # weight of a cell's own evidence in its score
OWN_LIMIT = 4.0
WORST_CELL = 0.5  # weight of the worst cell in the row score


@dataclass(frozen=True)
class Experts:
    """Who judges: the sources with their pool, what is thought possible before a row is seen, and how many cells a search
    withholds at most."""

    sources: Sequence[CellSource]
    pool: Pool
    prior: Prior
    layout: Layout
    deepest: int

    @property
    def prior_arrays(self) -> tuple[Any, ...]:
        return self.prior.arrays(self.layout.n_cells)

    def support(self, rows: Rows, withheld: NDArray[np.bool_], row_of: Ints) -> Floats:
        """kappa of every cell given the believed ones, for candidates `withheld` (r, p) of the rows `row_of`."""
        return support(rows, self.sources, self.pool, self.layout, withheld, row_of)


@dataclass(frozen=True)
class State:
    """What the next round needs; arrays are written in place, row by row. `first` (n, p) is kappa of the first round; the
    others are those of `kernels.weigh_candidates`."""

    withheld: NDArray[np.bool_]
    visited: NDArray[np.uint64]
    count: Ints
    best: Floats
    total: Floats
    on: Floats
    off: Floats
    surprise: Floats
    odds: Floats
    first: Floats
    active: Ints

    @property
    def weighed(self) -> tuple[Any, ...]:
        """What weighing a candidate writes."""
        return self.visited, self.count, self.best, self.total, self.on, self.off, self.surprise, self.odds


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


def init(rows: Rows, experts: Experts) -> State:
    """Nothing withheld but what cannot be used."""
    n, p = rows.unusable.shape
    return State(
        withheld=np.zeros((n, p), dtype=bool),
        visited=np.zeros((n, 2 * ROUNDS + TRIED * experts.deepest), dtype=np.uint64),
        count=np.zeros(n, dtype=np.int64),
        best=np.full(n, -np.inf),
        total=np.zeros(n),
        on=np.zeros((n, p)),
        off=np.zeros((n, p)),
        surprise=np.zeros((n, p)),
        odds=np.zeros(n),
        first=np.zeros((n, p)),
        active=np.arange(n),
    )


def step(state: State, number: int, rows: Rows, experts: Experts) -> State:
    """One round: predict from the believed cells, weigh the candidate, propose the next."""
    kappa = experts.support(rows, state.withheld[state.active], state.active)
    if number == 0:
        state.first[:] = kappa
    shared = np.zeros(len(kappa))
    if number >= ROUNDS:
        shared = kernels.shared_support(state.first, kappa, state.active, ~rows.missing, state.withheld)
    going = kernels.belief_step(
        state.withheld,
        kappa,
        shared,
        state.active,
        rows.cells,
        state.weighed,
        experts.prior_arrays,
        WORST_SHARE,
        MOST_WITHHELD,
    )
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


def search(state: State, rows: Rows, experts: Experts) -> None:
    """Weigh the candidates of odd rows that a search from nothing withheld comes across (E-14)."""
    going = np.flatnonzero(state.odds > ODD)
    held, kappa, best = np.zeros_like(state.withheld), state.first.copy(), np.full(len(rows), -np.inf)
    for _ in range(min(experts.deepest, int(MOST_WITHHELD * held.shape[1]))):
        tried = kernels.most_contradicted(rows.drawn, kappa, going, rows.missing | held, ODD, TRIED)
        place, rank = np.nonzero(tried >= 0)
        row_of = going[place]
        if not len(row_of):
            break
        masks = held[row_of]
        masks[np.arange(len(row_of)), tried[place, rank]] = True
        given = experts.support(rows, masks, row_of)
        weights = np.full(tried.shape, -np.inf)
        weights[place, rank] = kernels.weigh_candidates(
            masks, given, row_of, rows.cells, state.weighed, experts.prior_arrays
        )
        grown = weights.max(1) > best[going]
        chosen = (np.searchsorted(place, np.arange(len(going))) + weights.argmax(1))[grown]
        going = going[grown]
        held[going], kappa[going], best[going] = masks[chosen], given[chosen], weights[grown].max(1)


def believe(rows: Rows, experts: Experts) -> Beliefs:
    """Rounds until no row has a new candidate, at most ROUNDS from each of the two starts; then the search."""
    state = init(rows, experts)
    for number in range(2 * ROUNDS):
        if number == ROUNDS:
            state = start_again(state, rows, experts.prior_arrays[-1])
        if len(state.active):
            state = step(state, number, rows, experts)
    search(state, rows, experts)
    logits = np.log(np.maximum(state.on, 1e-300)) - np.log(np.maximum(state.off, 1e-300))
    return Beliefs(logits, state.surprise / state.total[:, None], state.odds, rows.missing)
