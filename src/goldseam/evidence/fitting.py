"""How the evidence is learnt: experts from reference rows, every promise from calibration rows they have not seen.

From calibration rows come the pool's weights, the ranks behind p-values, the cell threshold, the repairs' gain and
reach. Whatever depends on the pool is cross-fitted: a calibration row is scored by a pool learnt without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
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
from goldseam.evidence.calibration import Calibration
from goldseam.evidence.interface import Statement, UnitExpert, UnitSource, Witness, fit_statement
from goldseam.evidence.model import Evidence
from goldseam.evidence.pool import Pool, fit_pool
from goldseam.evidence.posterior import DEEPEST
from goldseam.evidence.practice import Practice, joined, learn, undoubted, worth
from goldseam.evidence.prior import Prior
from goldseam.evidence.rehearsal import hurt
from goldseam.evidence.repair import Repairer
from goldseam.evidence.rows import predictions
from goldseam.evidence.selection import choose_experts
from goldseam.evidence.switching import terms
from goldseam.schema import Blocks, Schema

__all__ = ["Practice", "fit_evidence", "learn_evidence"]

MASKED_COPIES = 3
FOLDS = 5
LEAST_CALIBRATION = 4
REHEARSED = (3000, 400_000)  # rows at most, cells at most
POOLED = 250_000  # cells from which the pool is learnt, about
CHOSEN_ON = 60_000  # cells on which experts are weighed, about
BOOSTED_COLUMNS = (3, 60)
CAUTIOUS = 0.5  # power of the odds of damage by which repairs are shortened: gains are cautious already
WORTH_OF_EXPERTS = (
    0.005  # what a costlier method must be worth more in rehearsal: experts have paid in density already,
)
WORTH_OF_WITNESSES = 0.02  # but a witness that guesses is worth up to .01
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
    further: Sequence[Witness] = (),
    prior: Prior | None = None,
    alarm_rate: float = 0.05,
    coverage: float = 0.9,
    damaged_share: float = 0.5,
    rng: np.random.Generator,
) -> tuple[Evidence, Practice]:
    """Learn from reference rows, promise from calibration rows; also what the promises were learnt from.

    `boosted` adds the boosted expert to the `gaussian` one; None: for 3 to 60 columns. `sources` are further experts and
    `witnesses` judges of cells without predictions (see `interface`), all fitted on the same reference rows. With `choose`,
    experts that do not pay on the calibration rows are dropped (see `selection`), and so are those besides the first if they
    are not worth it in rehearsal (see `practice`); `further` witnesses are heard if that is worth it. A share of the calibration
    rows may be `damaged` themselves; then ranks are among as many of them as are clean (see `doubt`). Of the rows to come a
    `damaged_share` is expected to be damaged: with few, unsure repairs are shortened.
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
    n_levels = np.array([len(column.levels) for column in schema.categories], dtype=np.int64)
    marginals = fit_marginals(reference, n_levels, np.array([column.once for column in schema.categories]))
    experts = _experts(reference, marginals, layout, gaussian, boosted, rng)
    experts += [_as_source(source, marginals, layout) for source in sources]
    if not experts:
        raise ParameterError("The evidence needs at least one expert. Hint: gaussian=True.")
    repairer = replace(_NO_REPAIRER, odds=(damaged_share / (1.0 - damaged_share)) ** CAUTIOUS)
    blank = Evidence(
        layout, marginals, tuple(experts), prior or Prior(), _NO_POOL, _NO_CALIBRATION, repairer, alarm_rate,
        deepest=min(DEEPEST, layout.n_cells),
    )  # fmt: skip
    if not choose:
        return _calibrated(blank, calibration, witnesses, coverage, rng, damaged)
    blank = _with_those_that_pay(blank, calibration, rng)
    return _worth_most(blank, calibration, witnesses, further, coverage, rng, damaged)


def _worth_most(
    blank: Evidence,
    calibration: Blocks,
    witnesses: Sequence[Witness],
    further: Sequence[Witness],
    coverage: float,
    rng: np.random.Generator,
    damaged: float,
) -> tuple[Evidence, Practice]:
    """The first expert alone, then all that pay, then with `further` witnesses: the costlier is taken where it is worth more. All
    rehearse the same damage."""
    seed = int(rng.integers(2**63))

    def rehearsed(sources: Sequence[CellSource], heard: Sequence[Witness]) -> tuple[Evidence, Practice, float]:
        part = replace(blank, sources=tuple(sources))
        fitted = _calibrated(part, calibration, heard, coverage, np.random.default_rng(seed), damaged)
        return *fitted, worth(*fitted)

    tried = [rehearsed(blank.sources[:1], witnesses)]
    taken = tried[0]
    if len(blank.sources) > 1:
        tried.append(rehearsed(blank.sources, witnesses))
        taken = tried[-1] if tried[-1][2] >= taken[2] + WORTH_OF_EXPERTS else taken
    if further:
        tried.append(rehearsed(taken[0].sources, [*witnesses, *further]))
        taken = tried[-1] if tried[-1][2] >= taken[2] + WORTH_OF_WITNESSES else taken
    model, practice, _ = taken
    used = _names(model)
    accounts = tuple((name, gain, stays and name in used) for name, gain, stays in blank.accounts)
    methods = tuple((_names(one), value) for one, _, value in tried)
    return replace(model, accounts=accounts, methods=methods), practice


def _names(model: Evidence) -> tuple[str, ...]:
    sources = [*model.sources, *(statement.witness for statement in model.statements)]
    return tuple(type(one).__name__ for one in sources)


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
    practice = undoubted(joined(tries), damaged)
    return learn(replace(blank, pool=pool, statements=statements), practice, coverage), practice


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
