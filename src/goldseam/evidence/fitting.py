"""How the evidence is learnt: experts from reference rows, every promise from calibration rows they have not seen.

From calibration rows come the pool's weights, the ranks behind p-values, the cell threshold, the repairs' gain and
reach. Whatever depends on the pool is cross-fitted: a calibration row is scored by a pool learnt without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldseam.conditional.boosted import fit_boosted
from goldseam.conditional.gaussian import fit_gaussian
from goldseam.conditional.layout import Layout, layout_of
from goldseam.conditional.marginals import Floats, Ints, Marginals, fit_marginals
from goldseam.conditional.masking import draw_masks
from goldseam.conditional.source import CellSource
from goldseam.conditional.ties import fit_ties
from goldseam.errors import CalibrationWarning, InputError, ParameterError, warn
from goldseam.evidence.calibration import Calibration, best_threshold
from goldseam.evidence.doubt import as_many_as_clean, damage_probabilities, offset
from goldseam.evidence.gains import Lesson, Offer
from goldseam.evidence.interface import Statement, UnitExpert, UnitSource, Witness, fit_statement
from goldseam.evidence.intervals import Changes, bounds, distances, fit_intervals, loss_class
from goldseam.evidence.model import Evidence
from goldseam.evidence.pool import Pool, fit_pool
from goldseam.evidence.prior import Prior
from goldseam.evidence.rehearsal import NOISE, OWN, hurt
from goldseam.evidence.repair import Repairer, fit_repairer, fit_switch, hopeless, vague
from goldseam.evidence.rows import predictions
from goldseam.evidence.selection import choose_experts
from goldseam.evidence.switching import fit_terms, log_odds, terms
from goldseam.schema import Blocks, Schema

__all__ = ["Practice", "fit_evidence", "learn_evidence"]

MASKED_COPIES = 3
FOLDS = 5
LEAST_CALIBRATION = 4
REHEARSED = (3000, 400_000)  # rows at most, cells at most
POOLED = 250_000  # cells from which the pool is learnt, about
CHOSEN_ON = 60_000  # cells on which experts are weighed, about
BOOSTED_COLUMNS = (3, 60)
FEW = 0.15  # share of a row's cells up to which damage is scarce
DELICATE = 2.0  # such rows, if their damage hides, and clean ones count twice when categories learn to change
_NO_POOL = Pool(np.empty((0, 0)), np.empty((0, 0)), np.empty(0), np.zeros(1, dtype=np.int64))
_NO_CALIBRATION = Calibration(np.empty(0), np.empty(0), 0.0)
_NO_REPAIRER = Repairer(np.zeros(1), np.zeros((1, 1)), np.inf, np.empty(0))


def fit_evidence(*args: Any, **settings: Any) -> Evidence:
    """The same as `learn_evidence`, without what its promises were learnt from."""
    return learn_evidence(*args, **settings)[0]


def learn_evidence(
    reference: Blocks,
    calibration: Blocks,
    schema: Schema,
    *,
    gaussian: bool = True,
    boosted: bool | None = None,
    sources: Sequence[CellSource | UnitExpert] = (),
    choose: bool = False,
    damaged: float = 0.0,
    witnesses: Sequence[Witness] = (),
    prior: Prior | None = None,
    alarm_rate: float = 0.05,
    coverage: float = 0.9,
    rng: np.random.Generator,
) -> tuple[Evidence, Practice]:
    """Learn from reference rows, promise from calibration rows; also what the promises were learnt from.

    `boosted` adds the boosted expert to the `gaussian` one; None: for 3 to 60 columns. `sources` are further experts and
    `witnesses` judges of cells without predictions (see `interface`), all fitted on the same reference rows. With `choose`,
    experts that do not pay on the calibration rows are dropped (see `selection`). A share of the calibration rows may be
    `damaged` themselves; then ranks are among as many of them as are clean (see `doubt`).
    """
    if not 0.0 < alarm_rate < 1.0:
        raise ParameterError(
            f"alarm_rate must lie between 0 and 1; got {alarm_rate}. Hint: 0.05 flags 5 % of clean rows."
        )
    if len(calibration) < LEAST_CALIBRATION:
        raise InputError(
            f"Calibration needs at least {LEAST_CALIBRATION} rows; got {len(calibration)}. Hint: give more reference rows."
        )
    if len(calibration) < 1.0 / alarm_rate - 1.0:
        warn(
            f"{len(calibration)} calibration rows cannot show an alarm rate of {alarm_rate}; no row will be flagged. "
            f"Hint: give at least {int(np.ceil(1.0 / alarm_rate)) - 1}, or raise alarm_rate.",
            CalibrationWarning,
        )
    layout = layout_of(schema)
    marginals = fit_marginals(reference, np.array([len(column.levels) for column in schema.categories], dtype=np.int64))
    experts = _experts(reference, marginals, layout, gaussian, boosted, rng)
    experts += [_as_source(source, marginals, layout) for source in sources]
    if not experts:
        raise ParameterError("The evidence needs at least one expert. Hint: gaussian=True.")
    blank = Evidence(
        layout, marginals, tuple(experts), prior or Prior(), _NO_POOL, _NO_CALIBRATION, _NO_REPAIRER, alarm_rate
    )
    blank = _with_those_that_pay(blank, calibration, rng) if choose else blank
    return _calibrated(blank, calibration, witnesses, coverage, rng, damaged)


def _as_source(source: CellSource | UnitExpert, marginals: Marginals, layout: Layout) -> CellSource:
    return UnitSource(source, marginals, layout) if isinstance(source, UnitExpert) else source


def _with_those_that_pay(blank: Evidence, calibration: Blocks, rng: np.random.Generator) -> Evidence:
    """The same with the experts that gain enough; what each gained is kept. The first stays."""
    rows = blank.rows(calibration)
    row_of, masks = _masked_copies(len(rows), blank.layout.n_cells, rng, CHOSEN_ON)
    answers = predictions(rows, blank.sources, masks, row_of)
    chosen, gains = choose_experts(rows.scores, row_of, answers, blank.marginals, keep=1)
    names = [type(source).__name__ for source in blank.sources]
    accounts = tuple((names[i], gains[i], i in chosen) for i in range(len(names)))
    return replace(blank, sources=tuple(blank.sources[i] for i in chosen), accounts=accounts)


def _experts(
    reference: Blocks,
    marginals: Marginals,
    layout: Layout,
    gaussian: bool,
    boosted: bool | None,
    rng: np.random.Generator,
) -> list[CellSource]:
    scores = marginals.score(reference)
    experts: list[CellSource] = []
    if gaussian:
        expert = fit_gaussian(scores, marginals, layout)
        if len(layout.category_cells):
            expert = replace(expert, ties=fit_ties(scores, marginals, layout, rng.spawn(1)[0]))
        experts.append(expert)
    few, many = BOOSTED_COLUMNS
    if boosted or (boosted is None and few <= layout.n_cells <= many):
        experts.append(fit_boosted(scores, marginals.n_levels, layout, rng))
    return experts


def _calibrated(
    blank: Evidence,
    calibration: Blocks,
    witnesses: Sequence[Witness],
    coverage: float,
    rng: np.random.Generator,
    damaged: float = 0.0,
) -> tuple[Evidence, Practice]:
    rows = blank.rows(calibration)
    row_of, masks = _masked_copies(len(rows), blank.layout.n_cells, rng)
    answers = predictions(rows, blank.sources, masks, row_of)
    folds = min(FOLDS, len(rows) // 2)
    fold = rng.permutation(len(rows)) % folds
    heard = [witness.suspicion(calibration) for witness in witnesses]
    statements = _statements(blank, calibration, witnesses, heard, rng)
    tries = []
    for k in range(folds):
        use = fold[row_of] != k
        pool = fit_pool(rows.scores, row_of[use], [answer.take(use) for answer in answers], blank.marginals)
        apart = tuple(one.without(fold == k, part) for one, part in zip(statements, heard, strict=True))
        model = replace(blank, pool=pool, statements=apart)
        tries.append(_practise(model, calibration.take(np.flatnonzero(fold == k)), rng))
    pool = fit_pool(rows.scores, row_of, answers, blank.marginals)
    practice = _undoubted(_joined(tries), damaged)
    return _learn(replace(blank, pool=pool, statements=statements), practice, coverage), practice


def _statements(
    blank: Evidence,
    calibration: Blocks,
    witnesses: Sequence[Witness],
    heard: Sequence[Floats],
    rng: np.random.Generator,
) -> tuple[Statement, ...]:
    if not witnesses:
        return ()
    rehearsal = hurt(calibration, blank.marginals, blank.layout, rng, blank.prior.grid)
    pairs = zip(witnesses, heard, strict=True)
    return tuple(fit_statement(one, part, rehearsal.blocks, rehearsal.changed) for one, part in pairs)


def _masked_copies(
    n_rows: int, n_cells: int, rng: np.random.Generator, pooled: int = POOLED
) -> tuple[Ints, NDArray[np.bool_]]:
    """Rows and masks to learn the pool from: some rows as they are, as many masked, up to MASKED_COPIES times."""
    chosen = rng.permutation(n_rows)[: max(2 * FOLDS, pooled // n_cells // 2)]
    copies = int(np.clip(pooled // (n_cells * len(chosen)) - 1, 1, MASKED_COPIES))
    masks = draw_masks(copies * len(chosen), n_cells, rng)
    return np.tile(chosen, 1 + copies), np.concatenate([np.zeros((len(chosen), n_cells), dtype=bool), masks])


@dataclass(frozen=True)
class Practice:
    """Clean and hurt calibration rows as a pool that has not seen them judges them; n clean, N hurt rows."""

    clean_odds: Floats
    clean_cells: Floats
    odds: Floats
    cells: Floats
    context: Floats
    changed: NDArray[np.bool_]
    natural: NDArray[np.bool_]
    way: Ints
    numbers: Floats
    codes: NDArray[np.int32]
    true_numbers: Floats
    true_codes: NDArray[np.int32]
    mended_numbers: Floats
    other_codes: NDArray[np.int32]
    other_terms: Floats
    center: Floats
    width: Floats
    lost: Floats

    @property
    def offset(self) -> float:
        """What scores lack to be log likelihood ratios (D-1); rows of small noise apart."""
        return offset(self.odds[self.changed.any(axis=1) & (self.way != NOISE)])


def _practise(model: Evidence, blocks: Blocks, rng: np.random.Generator) -> Practice:
    clean = model.beliefs(model.rows(blocks))
    quota = min(REHEARSED[0], REHEARSED[1] // model.layout.n_cells) // FOLDS
    many = blocks.take(np.resize(np.arange(len(blocks)), quota))
    rehearsal = hurt(many, model.marginals, model.layout, rng, model.prior.grid)
    rows = model.rows(rehearsal.blocks)
    beliefs = model.beliefs(rows)
    mended = model.mend(rows, beliefs.cell_scores)
    at = model.layout.category_cells
    all_told = model.all_told(rows, np.arange(len(rows)))
    other, parts = terms(
        rehearsal.blocks.codes, beliefs.cell_scores, beliefs.context[:, at], mended.levels, all_told, model.pool.offsets
    )
    return Practice(
        clean_odds=clean.row_scores,
        clean_cells=clean.cell_scores,
        odds=beliefs.row_scores,
        cells=beliefs.cell_scores,
        context=beliefs.context,
        changed=rehearsal.changed,
        natural=model.natural(rows, beliefs),
        way=rehearsal.way,
        numbers=rehearsal.blocks.numbers,
        codes=rehearsal.blocks.codes,
        true_numbers=many.numbers,
        true_codes=many.codes,
        mended_numbers=mended.values,
        other_codes=other,
        other_terms=parts,
        center=mended.center,
        width=mended.width,
        lost=mended.lost,
    )


def _joined(tries: Sequence[Practice]) -> Practice:
    return Practice(*(np.concatenate(parts) for parts in zip(*(vars(one).values() for one in tries), strict=True)))


def _undoubted(practice: Practice, share: float) -> Practice:
    """The same with as many calibration rows as are clean, when a share of them is not."""
    damaged = damage_probabilities(practice.clean_odds + practice.offset, share)
    kept = as_many_as_clean(practice.clean_odds, damaged)
    return replace(practice, clean_odds=practice.clean_odds[kept], clean_cells=practice.clean_cells[kept])


def _learn(model: Evidence, practice: Practice, coverage: float) -> Evidence:
    """Thresholds and repairs from practice."""
    clean_cells = np.sort(practice.clean_cells[np.isfinite(practice.clean_cells)])
    calibration = Calibration(np.sort(practice.clean_odds), clean_cells, 0.0)
    flagged = calibration.row_p_values(practice.odds) <= model.alarm_rate
    seen = flagged[:, None] & np.isfinite(practice.cells)
    local = seen & (practice.way != NOISE)[:, None]
    threshold = best_threshold(practice.cells[local], practice.changed[local])
    model = replace(model, calibration=replace(calibration, cell_threshold=threshold))
    return replace(model, repairer=_fit_repairer(model, practice, seen, coverage))


def _fit_repairer(model: Evidence, practice: Practice, seen: NDArray[np.bool_], coverage: float) -> Repairer:
    at, spread = model.layout.number_cells, model.marginals.spread
    offer = Offer(
        scores=practice.cells[:, at],
        context=practice.context[:, at],
        step=np.nan_to_num(practice.mended_numbers - practice.numbers) / spread,
        width=practice.width,
        natural=practice.natural[:, at],
        beyond=model.marginals.beyond_range(practice.numbers),
        absurd=model.marginals.absurd(practice.numbers),
    )
    share = practice.changed.mean(1)
    scarce = (practice.way == OWN) & (share > 0.0) & (share <= FEW)
    wanted = np.nan_to_num(practice.true_numbers - practice.numbers) / spread
    lesson = Lesson(wanted, share == 0.0, np.stack([scarce, (practice.way == NOISE) & (share > 0.0)]))
    repairer = fit_repairer(offer, lesson, seen[:, at], len(practice.clean_odds))
    gain = np.where(seen[:, at], repairer.gain(offer), 0.0)
    changes = _changes(model, practice, offer, gain, _changed(model, repairer, practice, offer, gain, seen))
    repairer = repairer.with_intervals(fit_intervals(changes, len(at), coverage))
    weights, switch = _fit_switch(practice, seen[:, model.layout.category_cells], scarce | (share == 0.0))
    return replace(repairer, weights=weights, switch=switch)


def _changed(
    model: Evidence, repairer: Repairer, practice: Practice, offer: Offer, gain: Floats, seen: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Rehearsed numbers that would be changed: odd, not refused; rows of small noise apart."""
    at, calibration = model.layout.number_cells, model.calibration
    suspect = seen & (practice.cells > calibration.cell_threshold)
    movable = repairer.odd(suspect[:, at], calibration.cell_p_values(offer.scores), gain)
    if model.layout.whole.size:  # whole numbers move by whole steps
        movable &= ~model.layout.whole | (np.abs(gain * offer.step) * model.marginals.spread >= 1.0)
    unable = (hopeless(suspect) & ~offer.absurd) | vague(offer)
    return np.asarray((gain > 0.0) & movable & ~unable & (practice.way != NOISE)[:, None])


def _changes(model: Evidence, practice: Practice, offer: Offer, gain: Floats, use: NDArray[np.bool_]) -> Changes:
    """Rehearsed changes as their intervals would be built."""
    marginals, at = model.marginals, model.layout.number_cells
    truth, x, center = practice.true_numbers, practice.numbers, practice.center
    right = bounds(marginals, Blocks(truth, practice.true_codes))
    median = marginals.value_at(center)
    ends = (practice.mended_numbers, x + gain * (practice.mended_numbers - x), x)
    spared = [(truth - end) * (truth - median) <= 0.0 for end in ends]
    observed = distances(bounds(marginals, Blocks(x, practice.codes)), center, practice.width)
    row, column = np.nonzero(use)
    return Changes(
        column=column,
        loss=loss_class(practice.lost)[row],
        scores=np.where(offer.absurd, np.inf, offer.scores)[use],
        outside=(offer.beyond > 0.0)[use],
        damaged=practice.changed[:, at][use],
        distance=np.stack([distances(right, center, practice.width, one)[use] for one in spared]),
        observed=np.where(offer.beyond > 0.0, np.inf, observed)[use],
    )


def _fit_switch(practice: Practice, use: NDArray[np.bool_], delicate: NDArray[np.bool_]) -> tuple[Floats, float]:
    """What speaks for another level, weighed, and the log odds from which categories change; `use` (N, k).

    Rows where most changes harm (`delicate` (N,): nothing is damaged, or little and hidden) count DELICATE times. A calibration
    row is rehearsed many times: the penalty counts as that many cells.
    """
    right, was = practice.other_codes == practice.true_codes, practice.codes == practice.true_codes
    good, bad = right & ~was, was & ~right
    matters = use & (good | bad)
    weight = np.broadcast_to(np.where(delicate, DELICATE, 1.0)[:, None], use.shape)
    copies = len(practice.odds) / max(len(practice.clean_odds), 1)
    weights = fit_terms(practice.other_terms[matters], good[matters], weight[matters], copies)
    odds = log_odds(practice.other_terms, weights)
    hard = np.broadcast_to((practice.way == OWN)[:, None], use.shape)
    return weights, max(0.0, fit_switch(odds[use], good[use], bad[use], hard[use]))
