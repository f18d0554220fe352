"""All sources of evidence as one fitted model: judge rows, repair them (`fitting` makes it)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from goldseam.conditional.layout import Layout, check_lengths
from goldseam.conditional.marginals import GIANT, Floats, Ints, Marginals
from goldseam.conditional.source import CellSource
from goldseam.engines.local import map_row_blocks, rows_per_block
from goldseam.errors import ModelFileError
from goldseam.evidence.calibration import Calibration
from goldseam.evidence.gains import Offer
from goldseam.evidence.interface import Statement
from goldseam.evidence.intervals import loss_class
from goldseam.evidence.mixture import N_CLASSES, UNKNOWN, Boldness, Openness, boldest_offers, openness, row_classes
from goldseam.evidence.pool import Pool
from goldseam.evidence.posterior import Beliefs, Experts, believe
from goldseam.evidence.prior import Prior
from goldseam.evidence.rehearsal import WAYS
from goldseam.evidence.repair import (
    CONTRADICTED,
    DISTRUST,
    FOREIGN,
    HANDFUL,
    MOST_SUSPECT,
    THIN,
    Repairer,
    between,
    hopeless,
    vague,
)
from goldseam.evidence.rows import Rows, predictions, prepare_rows
from goldseam.schema import Blocks

__all__ = ["Evidence", "Findings", "Mended", "Repairs"]

T = TypeVar("T")
PARTS = ("changed", "refused", "wrong", "low", "high", "levels")  # of repairs


@dataclass(frozen=True)
class Findings:
    """What was found in n rows with p modelled cells each (table order); `natural`: rare, but as its column may be;
    `context`: log odds of damage by the rest of the row alone."""

    row_scores: Floats
    row_p_values: Floats
    flagged: NDArray[np.bool_]
    cell_scores: Floats
    cell_p_values: Floats
    probabilities: Floats
    suspect: NDArray[np.bool_]
    natural: NDArray[np.bool_]
    context: Floats

    def take(self, rows: Ints) -> Findings:
        """Those of some rows."""
        return Findings(*(column[rows] for column in vars(self).values()))

    def suspecting(self, wrong: Floats) -> Findings:
        """The same, suspecting cells that rehearsal says are `wrong` with some probability (n, p)."""
        probabilities = np.maximum(self.probabilities, wrong)
        return replace(self, suspect=self.suspect | (wrong > 0.0), probabilities=probabilities)


@dataclass(frozen=True)
class Repairs:
    """Repaired blocks; `changed`, `refused`, `wrong` (n, p); numbers' intervals `low`, `high` (n, m), NaN where unchanged.
    `wrong`: how likely changed cells were wrong in rehearsal, whatever their score; 0 where they were rather right.
    `levels`: the probabilities of all levels side by side, given the cells that are believed; NaN for unchanged rows."""

    blocks: Blocks
    changed: NDArray[np.bool_]
    refused: NDArray[np.bool_]
    wrong: Floats
    low: Floats
    high: Floats
    levels: Floats


@dataclass(frozen=True)
class Evidence:
    """A fitted model; arrays and settings only. `accounts`: experts that were weighed, their gain, whether they stayed;
    `methods`: sets of sources that were rehearsed, and what each was worth; `deepest`: cells that a search withholds at most.
    `careful`: the repairer for tables whose damage hides; `outlines`: how such tables are told from others (see `mixture`).
    Earlier files have none of these, and were calibrated without a search."""

    layout: Layout
    marginals: Marginals
    sources: tuple[CellSource, ...]
    prior: Prior
    pool: Pool
    calibration: Calibration
    repairer: Repairer
    alarm_rate: float
    statements: tuple[Statement, ...] = ()
    accounts: tuple[tuple[str, float, bool], ...] = ()
    methods: tuple[tuple[tuple[str, ...], float], ...] = ()
    deepest: int = 0
    careful: Repairer | None = None
    outlines: Floats = field(default_factory=lambda: np.empty((0, 0)))

    def check_state(self) -> None:
        """The parts fit each other: what compiled loops follow leads nowhere outside."""
        numbers, categories = len(self.layout.number_cells), len(self.layout.category_cells)
        check_lengths("number columns", (numbers,), self.marginals.center, self.repairer.reach)
        check_lengths("category columns", (categories,), self.marginals.n_codes_seen, self.pool.offsets[1:])
        check_lengths("levels", self.marginals.level_offsets.shape, self.pool.offsets)
        self.pool.check_for(numbers, len(self.sources))
        if not np.array_equal(self.pool.offsets, self.marginals.level_offsets):
            raise ModelFileError("The model file's pool has other levels than its columns.")
        for source in self.sources:
            own = getattr(source, "layout", self.layout)
            check_lengths("cells of an expert", self.layout.number_cells.shape, own.number_cells)
            check_lengths("cells of an expert", self.layout.category_cells.shape, own.category_cells)
            levels = getattr(source, "n_levels", self.marginals.n_levels)
            if not np.array_equal(levels, self.marginals.n_levels):
                raise ModelFileError("The model file's experts know other levels than its columns have.")
        for statement in self.statements:
            check_lengths("exponents of a witness", (self.layout.n_cells,), statement.exponents, statement.ranks[0])
        self.prior.arrays(self.layout.n_cells)
        if not 0 <= self.deepest <= self.layout.n_cells:
            raise ModelFileError(f"The model file's search withholds {self.deepest} of {self.layout.n_cells} cells.")
        if self.careful is not None:
            check_lengths("number columns", (numbers,), self.careful.reach)
        if self.outlines.shape not in ((0, 0), (1 + len(WAYS), N_CLASSES)) or (self.outlines <= 0.0).any():
            raise ModelFileError(
                f"The model file's outlines of damage must be {1 + len(WAYS)} rows of {N_CLASSES} positive shares; "
                f"they have the shape {self.outlines.shape}."
            )

    def judge(self, blocks: Blocks, n_jobs: int | None = None) -> Findings:
        """Score rows and cells. A row's result depends on the model and the row alone."""
        parts = _map(lambda part: self.findings(self.rows(part)), blocks, n_jobs)
        return Findings(
            *(np.concatenate(column) for column in zip(*(vars(part).values() for part in parts), strict=True))
        )

    def repair(
        self, blocks: Blocks, n_jobs: int | None = None, boldness: Boldness = UNKNOWN
    ) -> tuple[Findings, Repairs]:
        """Judge rows, repair suspect cells of flagged ones, fill missing cells; as boldly as the table calls for (`mixture`)."""
        parts = _map(lambda part: self._repair(part, boldness), blocks, n_jobs)
        found = Findings(*(np.concatenate(c) for c in zip(*(vars(part[0]).values() for part in parts), strict=True)))
        mended = [part[1] for part in parts]
        fixed = Blocks(
            *(np.concatenate([getattr(part.blocks, name) for part in mended]) for name in ("numbers", "codes"))
        )
        rest = {name: np.concatenate([getattr(part, name) for part in mended]) for name in PARTS}
        return found, Repairs(fixed, **rest)

    @property
    def knows_ways(self) -> bool:
        """Whether it can tell how a table is damaged."""
        return bool(self.outlines.size)

    def class_counts(self, blocks: Blocks, n_jobs: int | None = None) -> Ints:
        """How many rows are of which class (`mixture.row_classes`)."""
        parts = _map(self._classes, blocks, n_jobs)
        return np.bincount(np.concatenate([np.empty(0, dtype=np.int64), *parts]), minlength=N_CLASSES)

    def openness(self, blocks: Blocks, n_jobs: int | None = None) -> Openness:
        """How openly a table is damaged."""
        return openness([self.outlines], [self.class_counts(blocks, n_jobs)])

    def _classes(self, blocks: Blocks) -> Ints:
        rows = self.rows(blocks)
        found = self.findings(rows)
        need = np.flatnonzero(found.flagged)
        part = found.take(need)
        offer = self.offer(blocks.take(need), part, self.mend(rows, part.cell_scores, need))
        offered = np.zeros(len(rows), dtype=np.int64)
        offered[need] = boldest_offers(offer, self.repairer.gain(offer))
        return row_classes(found.row_p_values, self.alarm_rate, offered)

    def rows(self, blocks: Blocks) -> Rows:
        """Rows as the rounds need them."""
        self.layout.check_blocks(blocks, self.marginals.n_levels)
        extra = [statement.log_ratio(blocks) for statement in self.statements]
        heard = np.sum(extra, axis=0) if extra else None
        scores, lone = self.marginals.score(blocks), self.marginals.lone_giants(blocks.numbers)
        return prepare_rows(blocks, scores, lone, self.layout, self.sources, self.prior, heard)

    def beliefs(self, rows: Rows) -> Beliefs:
        """The joint posterior of some rows."""
        return believe(rows, Experts(self.sources, self.pool, self.prior, self.layout, self.deepest))

    def findings(self, rows: Rows) -> Findings:
        """Beliefs against the calibration."""
        beliefs = self.beliefs(rows)
        scores = beliefs.cell_scores
        p_values = self.calibration.row_p_values(beliefs.row_scores)
        flagged = p_values <= self.alarm_rate
        suspect = flagged[:, None] & (scores > self.calibration.cell_threshold)
        probabilities = np.where(beliefs.missing, 0.0, 1.0 / (1.0 + np.exp(-beliefs.logits)))
        cells = self.calibration.cell_p_values(scores)
        return Findings(
            beliefs.row_scores, p_values, flagged, scores, cells, probabilities, suspect, self.natural(rows, beliefs),
            beliefs.context,
        )  # fmt: skip

    def natural(self, rows: Rows, beliefs: Beliefs) -> NDArray[np.bool_]:
        """Rare numbers on the heavy side of their column that their neighbours do not contradict (E5)."""
        kappa = rows.drawn - beliefs.own
        at = self.layout.number_cells
        beyond = self.marginals.beyond_range(rows.numbers)
        giant = np.where(np.diff(self.marginals.offsets) <= HANDFUL, FOREIGN, GIANT)
        rare = ((beyond > 0.0) & (beyond < giant)) | (rows.scores.even > THIN)
        out = np.zeros(kappa.shape, dtype=bool)
        out[:, at] = rare & self.marginals.on_heavy_side(rows.numbers) & (kappa[:, at] > -CONTRADICTED)
        return out

    def mend(self, rows: Rows, scores: Floats, row_of: Ints | None = None) -> Mended:
        """Every cell from the cells of its row that are not distrusted; of all rows, or of those in `row_of`."""
        row_of = np.arange(len(rows)) if row_of is None else row_of
        withheld = _withheld(scores, rows.missing[row_of])
        answers = predictions(rows, self.sources, withheld, row_of)
        center, width = self.pool.moments(answers)
        levels = self.pool.levels(answers)
        offsets = self.pool.offsets
        best = [levels[:, offsets[j] : offsets[j + 1]].argmax(1) for j in range(len(offsets) - 1)]
        codes = np.stack(best, axis=1).astype(np.int32) if best else np.empty((len(row_of), 0), dtype=np.int32)
        lost = (withheld | rows.missing[row_of]).mean(1)
        return Mended(self.marginals.unscore(center, width), center, width, codes, levels, lost)

    def all_told(self, rows: Rows, row_of: Ints) -> Floats:
        """Probabilities of all levels of the rows in `row_of`, each cell's from all other cells, believed or not."""
        if not len(self.layout.category_cells):
            return np.empty((len(row_of), 0))
        nothing = np.zeros((len(row_of), self.layout.n_cells), dtype=bool)
        return self.pool.levels(predictions(rows, self.sources, nothing, row_of))

    def _repair(self, blocks: Blocks, boldness: Boldness) -> tuple[Findings, Repairs]:
        rows = self.rows(blocks)
        found = self.findings(rows)
        repairs = self.repairs(blocks, rows, found, boldness)
        return found.suspecting(repairs.wrong), repairs

    def repairs(self, blocks: Blocks, rows: Rows, found: Findings, boldness: Boldness = UNKNOWN) -> Repairs:
        """Repair suspect cells of flagged rows and fill gaps. Rows that need neither are not predicted at all."""
        need = np.flatnonzero(found.flagged | rows.missing.any(1))
        part = found.take(need)
        mended = self.mend(rows, np.where(part.flagged[:, None], part.cell_scores, -np.inf), need)
        done = self._moved(blocks.take(need), rows.missing[need], part, mended, self.all_told(rows, need), boldness)
        fixed = Blocks(blocks.numbers.copy(), blocks.codes.copy())
        fixed.numbers[need], fixed.codes[need] = done.blocks.numbers, done.blocks.codes
        out = Repairs(
            fixed,
            np.zeros(rows.missing.shape, dtype=bool),
            np.zeros(rows.missing.shape, dtype=bool),
            np.zeros(rows.missing.shape),
            np.full(blocks.numbers.shape, np.nan),
            np.full(blocks.numbers.shape, np.nan),
            np.full((len(blocks), self.pool.offsets[-1]), np.nan),
        )
        for name in PARTS:
            getattr(out, name)[need] = getattr(done, name)
        return out

    def _moved(
        self,
        blocks: Blocks,
        missing: NDArray[np.bool_],
        found: Findings,
        mended: Mended,
        all_told: Floats,
        boldness: Boldness,
    ) -> Repairs:
        numbers, categories = self.layout.number_cells, self.layout.category_cells
        offer = self.offer(blocks, found, mended)
        mendable = found.flagged[:, None]
        gain = np.where(mendable, between(self.repairer, self.careful, offer, boldness), 0.0)
        other, odds = self.repairer.rivals(
            blocks.codes, found.cell_scores, found.context, mended.levels, all_told, self.layout, self.pool.offsets
        )
        wanted = self.layout.join(gain > 0.0, mendable & (odds >= self.repairer.switch))
        sure = self.layout.join(gain, self.repairer.surety(odds))
        wanted &= self.repairer.odd(found.suspect, found.cell_p_values, sure)
        absurd = self.layout.numbers_only(offer.absurd)  # anything is better than those
        unable = (hopeless(found.suspect) & ~absurd) | self.layout.numbers_only(vague(offer))
        refused = (wanted & unable) | (found.suspect & found.natural & ~wanted)
        changed = (wanted & ~refused) | missing
        move = np.where(missing[:, numbers], 1.0, gain)
        old = np.where(np.isnan(blocks.numbers), mended.values, blocks.numbers)
        new_numbers = np.where(changed[:, numbers], old + move * (mended.values - old), blocks.numbers)
        filled = np.where(missing[:, categories], mended.codes, other)
        new_codes = np.where(changed[:, categories], filled, blocks.codes).astype(np.int32)
        changed &= self.layout.join(~_same(new_numbers, blocks.numbers), new_codes != blocks.codes)
        loss = loss_class(mended.lost)
        doubted = self.repairer.doubted(offer, gain, loss) & ~missing[:, numbers]
        widths = self.repairer.widths(offer, missing[:, numbers], doubted, loss)
        low, high = self._interval(
            mended, widths, changed[:, numbers], new_numbers, np.where(doubted, old, new_numbers)
        )
        wrong = np.where(changed & self.repairer.wrong(sure), sure, 0.0)
        levels = np.where(changed.any(axis=1, keepdims=True), mended.levels, np.nan)
        return Repairs(Blocks(new_numbers, new_codes), changed, refused, wrong, low, high, levels)

    def offer(self, blocks: Blocks, found: Findings, mended: Mended) -> Offer:
        """What the predictions offer to number cells, and what speaks for it."""
        at = self.layout.number_cells
        step = np.nan_to_num(mended.values - blocks.numbers) / self.marginals.spread
        beyond = self.marginals.beyond_range(blocks.numbers)
        return Offer(
            found.cell_scores[:, at], found.context[:, at], step, mended.width, found.natural[:, at], beyond,
            self.marginals.absurd(blocks.numbers), self.marginals.on_heavy_side(blocks.numbers),
        )  # fmt: skip

    def _interval(
        self, mended: Mended, widths: Floats, changed: NDArray[np.bool_], *held: Floats
    ) -> tuple[Floats, Floats]:
        """So many widths around the center, and the values that are `held` anyway."""
        reach = widths * mended.width
        ends = [self.marginals.value_at(mended.center + side * reach) for side in (-1.0, 1.0)]
        low, high = np.min([ends[0], *held], axis=0), np.max([ends[1], *held], axis=0)
        return np.where(changed, low, np.nan), np.where(changed, high, np.nan)


@dataclass(frozen=True)
class Mended:
    """Predictions from the trusted cells: expected values in own units, their scores and widths, likeliest levels, and
    the probabilities of all levels side by side; the share of each row's cells that was `lost`, distrusted or missing."""

    values: Floats
    center: Floats
    width: Floats
    codes: NDArray[np.int32]
    levels: Floats
    lost: Floats


def _withheld(scores: Floats, missing: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Distrusted cells, but of a row at most the worst MOST_SUSPECT."""
    distrusted = (scores > DISTRUST) & ~missing
    limit = int(MOST_SUSPECT * scores.shape[1])
    kth = -np.sort(-scores, axis=1)[:, limit : limit + 1] if limit < scores.shape[1] else -np.inf
    return distrusted & (scores > kth)


def _same(new: Floats, old: Floats) -> NDArray[np.bool_]:
    return (new == old) | (np.isnan(new) & np.isnan(old))


def _map(call: Callable[[Blocks], T], blocks: Blocks, n_jobs: int | None) -> list[T]:
    size = rows_per_block(blocks.numbers.shape[1] + blocks.codes.shape[1])
    return map_row_blocks(lambda rows: call(blocks.take(rows)), len(blocks), n_jobs=n_jobs, block=size)
