"""Blocks in, mended blocks out: judge, decide, repair, constrain. Everything here is per row, given a table's `Levels`.

`Mender` joins what the restorer learnt; `mend` takes rows through it. Cells are the modelled ones, in table order.

A table that is noisy throughout is another world. Its evidence is learnt anew from reference and calibration rows with the
same noise (`Mender.noisy_evidence`), so that a noisy row is not damaged by that alone; then its believed cells are denoised.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from goldseam.conditional.layout import check_lengths, layout_of
from goldseam.constraints import Constraints
from goldseam.denoising import Damaged, Denoiser, TableNoise, damaged_rows
from goldseam.discovery import FineCells
from goldseam.errors import ModelFileError, ParameterError
from goldseam.evidence import Evidence, Findings, Repairs, fit_evidence
from goldseam.evidence.mixture import UNKNOWN, Boldness, Openness, boldness
from goldseam.evidence.repair import DISTRUST, MOST_SUSPECT
from goldseam.evidence.rows import Rows
from goldseam.model_checks import check_indices
from goldseam.outside import Outside
from goldseam.schema import MISSING, UNSEEN, Blocks, Schema
from goldseam.seam import CAUSES
from goldseam.separation.encoding import category_columns, to_blocks, to_values
from goldseam.separation.reference import Reference
from goldseam.witnesses import fit_tree_witness

__all__ = ["Levels", "Mended", "Mender", "Policy", "joined"]

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]

NO_CAUSE: Final = -1
MISSING_CELL, CORRUPT, NOISE, UNSEEN_CELL, REFUSED = range(len(CAUSES))
N_DONORS: Final = 3
MOST_UNDERSTATED: Final = 1.5
DOUBT: Final = 0.3  # probability of damage from which a number of a noisy row does not help to predict others
NATURAL_DOUBT: Final = 0.5  # the same for one that its column may have by nature
Action = Literal["repair", "flag", "quarantine"]
ACTIONS: Final = ("repair", "flag", "quarantine")


@dataclass(frozen=True)
class Levels:
    """What belongs to a table as a whole: the p-value up to which cells are suspect (FDR), its noise, and the shares of its rows,
    noisy ones apart, that are openly damaged and that are far off (`evidence.mixture`; None: not surveyed)."""

    cell_p_value: float | None = None
    noise: TableNoise | None = None
    open_share: float | None = None
    far_share: float | None = None

    @property
    def noisy(self) -> bool:
        """Whether observed cells are to be denoised."""
        return self.noise is not None and self.noise.acts

    @property
    def boldness(self) -> Boldness:
        """How bold repairs of its rows are."""
        if self.open_share is None or self.far_share is None:
            return UNKNOWN
        return boldness(Openness(self.open_share, self.far_share))


ALL_QUIET: Final = Levels()


@dataclass(frozen=True)
class Policy:
    """What may be touched, per modelled cell: repair it, only `flag` it (nothing in that column is changed, gaps
    included), or `quarantine` a row where it is suspect (nothing in that row is changed); and the probability of damage
    from which a repair is worth its risk. Noise is found for a table, not for a cell, so that no cost is asked of it."""

    flag: Flags
    quarantine: Flags
    least_probability: Floats

    @classmethod
    def of(cls, policy: str | Mapping[str, str], costs: float | Mapping[str, float] | None, schema: Schema) -> Policy:
        """From the restorer's parameters. A cost c says that a wrong repair is c times as bad as a missed one."""
        names = [schema.names[i] for i in schema.modelled_positions]
        actions = _per_column(policy, names, "policy", "repair")
        for name, action in zip(names, actions, strict=True):
            if action not in ACTIONS:
                raise ParameterError(f"policy of column {name!r} must be one of {', '.join(ACTIONS)}; got {action!r}.")
        cost = np.array(_per_column(0.0 if costs is None else costs, names, "costs", 0.0), dtype=float)
        if not (np.isfinite(cost) & (cost >= 0)).all():
            raise ParameterError(
                f"costs must be finite and at least 0; got {cost.min():g}. Hint: 9 asks for 90 % probability."
            )
        chosen = np.array(actions)
        return cls(chosen == "flag", chosen == "quarantine", cost / (1.0 + cost))

    def check_state(self) -> None:
        """One entry per cell."""
        shapes = {array.shape for array in (self.flag, self.quarantine, self.least_probability)}
        flags = self.flag.dtype.kind == self.quarantine.dtype.kind == "b"
        if shapes != {(self.flag.size,)} or not flags:
            raise ModelFileError(
                f"The model file's policy must have one entry per cell; it has shapes {sorted(shapes)}."
            )


def _per_column(setting: object, names: Sequence[str], what: str, default: object) -> list[object]:
    if not isinstance(setting, Mapping):
        return [setting] * len(names)
    setting = {str(name): value for name, value in setting.items()}
    unknown = [name for name in setting if name not in names]
    if unknown:
        raise ParameterError(
            f"{what} names column {unknown[0]!r}, which is not modelled. Hint: modelled are {', '.join(names[:20])}."
        )
    return [setting.get(name, default) for name in names]


@dataclass(frozen=True)
class Mended:
    """What became of n rows; cells (n, p), numbers (n, m). `filled`: how likely the level is that was put into an empty
    category; NaN for other cells."""

    blocks: Blocks
    row_p_values: Floats
    flagged: Flags
    suspect: Flags
    changed: Flags
    cause: NDArray[np.int8]
    p_values: Floats
    probabilities: Floats
    filled: Floats
    low: Floats
    high: Floats
    donors: Ints
    quarantined: Flags

    def take(self, rows: Ints) -> Mended:
        """Some of the rows, in the order given."""
        parts = {name: getattr(self, name)[rows] for name in Mended.__dataclass_fields__ if name != "blocks"}
        return Mended(blocks=self.blocks.take(rows), **parts)

    def with_donors(self, rows: Ints) -> Mended:
        """The same with donors renamed to the given row numbers."""
        return replace(self, donors=np.where(self.donors >= 0, rows[np.maximum(self.donors, 0)], -1))


T = TypeVar("T", Findings, Repairs, Blocks)


def _patched(all_rows: T, some: T, rows: Ints) -> T:
    """The same with some rows replaced."""
    values: dict[str, Any] = {}
    for name, value in vars(all_rows).items():
        part = getattr(some, name)
        if isinstance(value, Blocks):
            values[name] = _patched(value, part, rows)
        else:
            values[name] = value.copy()
            values[name][rows] = part
    return replace(all_rows, **values)


def _without_unseen(blocks: Blocks) -> Blocks:
    """Levels that the reference does not have as gaps: in a noisy row they may be its noise and speak against no other cell."""
    return Blocks(blocks.numbers, np.where(blocks.codes == UNSEEN, MISSING, blocks.codes).astype(np.int32))


def joined(parts: Sequence[Mended]) -> Mended:
    """Consecutive parts as one."""
    columns = {
        name: [getattr(part, name) for part in parts] for name in Mended.__dataclass_fields__ if name != "blocks"
    }
    blocks = Blocks(
        np.concatenate([part.blocks.numbers for part in parts]), np.concatenate([part.blocks.codes for part in parts])
    )
    return Mended(blocks=blocks, **{name: np.concatenate(column) for name, column in columns.items()})


@dataclass(frozen=True)
class Mender:
    """Everything a row needs on its way."""

    evidence: Evidence
    schema: Schema
    fine: FineCells
    reference: Reference
    constraints: Constraints
    policy: Policy
    calibration: Blocks
    coverage: float
    denoiser: Denoiser | None = None
    outside: Outside | None = None

    def check_state(self) -> None:
        """A model file whose parts belong to different tables is refused."""
        m, levels = len(self.schema.numbers), [len(column.levels) for column in self.schema.categories]
        rows = self.calibration
        check_lengths("cells of the policy", (m + len(levels),), self.policy.flag)
        self.constraints.check_for(m, self.evidence.pool.offsets)
        check_lengths("calibration rows", (len(rows.codes), m), rows.numbers)
        check_lengths("calibration rows", (len(rows.numbers), len(levels)), rows.codes)
        check_indices("codes of calibration rows", rows.codes, UNSEEN, np.array(levels, dtype=np.int64))
        codes = to_blocks(self.reference.values, self.schema).codes
        check_indices("codes of reference rows", codes, UNSEEN, np.array(levels, dtype=np.int64))
        layout, own = self.evidence.layout, layout_of(self.schema)
        check_lengths("numbers", own.number_cells.shape, layout.number_cells)
        others: list[Any] = [one.witness for one in self.evidence.statements]
        others += [getattr(source, "expert", None) for source in self.evidence.sources]
        others += [] if self.denoiser is None else [self.denoiser.field]
        fits = (
            np.array_equal(layout.number_cells, own.number_cells)
            and np.array_equal(self.evidence.marginals.n_levels, levels)
            and np.array_equal(self.reference.is_category, category_columns(self.schema))
            and all(one.schema.to_dict() == self.schema.to_dict() for one in others if one is not None)
        )
        if not fits:
            raise ModelFileError(
                "The model file's evidence, witnesses and rules were learnt from other columns than it has."
            )

    def for_table(self, levels: Levels) -> Callable[[Blocks], Mended]:
        """How to mend the rows of a table with these levels."""
        noisy = self.noisy_evidence(levels.noise) if levels.noise is not None and levels.noisy else None
        return lambda blocks: self.mend(blocks, levels, noisy)

    def evidence_for(self, noise: TableNoise | None) -> Evidence:
        """The evidence for rows of a table with this noise."""
        return self.evidence if noise is None or not noise.acts else self.noisy_evidence(noise)

    def noisy_evidence(self, noise: TableNoise) -> Evidence:
        """The evidence for rows with this noise: the Gaussian expert and the tree; the last one is kept."""
        assert self.denoiser is not None
        kept = vars(self).setdefault("_last_noisy", {})
        key = (noise.shares.tobytes(), noise.sigma.tobytes(), noise.flip.tobytes(), noise.louder)
        if key not in kept:
            rng = np.random.default_rng(self.denoiser.field.seed)
            clean = to_blocks(self.reference.values, self.schema), self.calibration
            reference, calibration = (self.denoiser.add_noise(rows, noise, rng) for rows in clean)
            prior = self.evidence.prior
            kept.clear()
            kept[key] = fit_evidence(
                reference, calibration, self.schema, boosted=False, prior=prior, coverage=self.coverage, rng=rng,
                witnesses=(fit_tree_witness(reference, self.schema, prior.grid, rng),),
            )  # fmt: skip
        evidence: Evidence = kept[key]
        return evidence

    def damaged_besides(
        self, blocks: Blocks, damaged: Damaged, noise: TableNoise, n_jobs: int | None
    ) -> tuple[Damaged, TableNoise]:
        """Which numbers the evidence for noisy rows doubts, and the noise with the p-value up to which noisy rows are damaged
        besides: none if they could all be noise that the survey understated."""
        assert self.denoiser is not None
        loud = self.denoiser.listen(blocks, damaged, noise)[0] > 0
        for world in (replace(noise, louder=self._understated(noise, n_jobs)), noise):
            found = self.noisy_evidence(world).judge(_without_unseen(blocks), n_jobs)
            p_values = np.sort(found.row_p_values[loud])
            limit = damaged_rows(p_values)
            if limit > 0.0 and (most := noise.most_damaged(loud.sum(), len(blocks))) < loud.sum():
                limit = min(limit, p_values[most - 1] if most else 0.0)
            if limit == 0.0:
                break
        doubted = self._doubted(found, blocks, limit)[:, self.evidence.layout.number_cells]
        return replace(damaged, noisy=doubted), replace(world, damaged_p_value=limit)

    def _understated(self, noise: TableNoise, n_jobs: int | None) -> float:
        """How much more noise there may be than a survey found: it leaves out cells that look damaged by it."""
        assert self.denoiser is not None
        rows = self.denoiser.add_noise(self.calibration, noise, np.random.default_rng(self.denoiser.field.seed))
        damaged = replace(Damaged.nothing(rows), clean=self.hidden(self.evidence.judge(rows, n_jobs)))
        return float(np.clip(self.denoiser.understated(rows, damaged, noise), 1.0, MOST_UNDERSTATED))

    def with_alarms(self, noise: TableNoise, n_jobs: int | None) -> TableNoise:
        """The same noise with the p-values that calibration rows have beside it. There are two alarms then, for damage and for
        noise: rows are ranked among clean ones that went through both, and the promise is kept."""
        found = self.evidence.judge(self.calibration, n_jobs)
        besides, _, _ = self._listened(self.calibration, found, noise, self.noisy_evidence(noise))
        promised = int(self.evidence.alarm_rate * (1 + len(self.calibration)))
        damaged = max(0, int(found.flagged.sum()) - promised)  # those of a contaminated reference
        return replace(noise, alarms=np.sort(besides.row_p_values)[damaged:])

    def _doubted(self, found: Findings, blocks: Blocks, limit: float) -> Flags:
        """Numbers, of rows with a p-value up to the limit, that neither noise nor a heavy tail explains."""
        layout = self.evidence.layout
        doubt = np.where(found.natural, NATURAL_DOUBT, DOUBT)
        doubted = (found.probabilities > doubt) & ~layout.unusable(blocks)
        doubted &= (found.row_p_values <= limit)[:, None]
        doubted[:, layout.category_cells] = False
        return np.asarray(doubted)

    def hidden(self, found: Findings) -> Flags:
        """Numbers that the evidence distrusts: those of flagged rows with even odds of damage, at most three fifths."""
        at = self.evidence.layout.number_cells
        scores = np.where(found.flagged[:, None], found.cell_scores, -np.inf)
        kth = np.sort(scores, axis=1)[:, [scores.shape[1] - 1 - int(MOST_SUSPECT * scores.shape[1])]]
        return np.asarray(((scores > DISTRUST) & (scores > kth))[:, at])

    def mend(self, blocks: Blocks, levels: Levels = ALL_QUIET, noisy: Evidence | None = None) -> Mended:
        """Judge and repair rows. With `levels.cell_p_value`, cells up to it are suspect, whatever the row's own p-value;
        with `levels.noise`, rows that have it are judged by the evidence for `noisy` rows, and denoised."""
        by_cell = levels.cell_p_value is not None
        rows = self.evidence.rows(blocks)
        found = self._found(blocks, rows, levels.cell_p_value)
        if noisy is None or levels.noise is None:
            found, repairs = self._repaired(blocks, rows, found, levels)
            return self._decided(blocks, found, repairs, np.zeros(len(blocks), dtype=bool), by_cell=by_cell)
        besides, damaged, level = self._listened(blocks, found, levels.noise, noisy)
        p_values = levels.noise.rank(besides.row_p_values)
        alarming = p_values <= self.evidence.alarm_rate
        if not by_cell:
            found = replace(found, flagged=alarming, suspect=found.suspect & alarming[:, None])
        found, repairs = self._repaired(blocks, rows, replace(found, row_p_values=p_values), levels)
        besides = replace(
            besides, row_p_values=p_values, flagged=besides.suspect.any(axis=1) | (alarming & (not by_cell))
        )
        loud = np.flatnonzero(level > 0)
        chance = besides.probabilities[np.ix_(loud, self.evidence.layout.number_cells)]
        denoised = self._denoised(blocks.take(loud), level[loud], levels.noise, damaged.noisy[loud], chance)
        found, repairs = _patched(found, besides.take(loud), loud), _patched(repairs, denoised, loud)
        return self._decided(blocks, found, repairs, level > 0, by_cell=by_cell)

    def _listened(
        self, blocks: Blocks, found: Findings, noise: TableNoise, noisy: Evidence
    ) -> tuple[Findings, Damaged, Ints]:
        """What is found in rows of a `noisy` table: the cells by its evidence, the row by that for clean rows or, where it is
        noisy, by how rare its noise is among them; which numbers are damaged besides, and the level of each row's noise."""
        assert self.denoiser is not None
        besides = noisy.findings(noisy.rows(_without_unseen(blocks)))
        suspect = self._doubted(besides, blocks, noise.damaged_p_value)
        damaged = Damaged(self.hidden(found), suspect[:, self.evidence.layout.number_cells])
        level, p_values = self.denoiser.listen(blocks, damaged, noise)
        # where noise was given all rows are to be noisy: alarming is what that does not explain
        p_values = besides.row_p_values if noise.given else np.where(suspect.any(axis=1), 0.0, p_values)
        p_values = np.where(level > 0, p_values, found.row_p_values)
        return replace(besides, suspect=suspect, row_p_values=p_values), damaged, level

    def without_noisy(self, blocks: Blocks, noise: TableNoise | None, n_jobs: int | None) -> Blocks:
        """The rows of a table with this noise that do not have it."""
        if noise is None or not noise.acts:
            return blocks
        found = self.evidence.judge(blocks, n_jobs)
        return blocks.take(np.flatnonzero(self._listened(blocks, found, noise, self.noisy_evidence(noise))[2] == 0))

    def _found(self, blocks: Blocks, rows: Rows, cell_p_value: float | None) -> Findings:
        """What the evidence for clean rows finds; with a p-value of cells, those up to it, whatever the row's own."""
        found = self.evidence.findings(rows)
        if cell_p_value is None:
            return found
        p_values = self.fine.p_values(found.row_scores, found.cell_scores)
        suspect = (p_values <= cell_p_value) & ~rows.missing
        return replace(found, cell_p_values=p_values, suspect=suspect, flagged=np.asarray(suspect.any(axis=1)))

    def _repaired(self, blocks: Blocks, rows: Rows, found: Findings, levels: Levels) -> tuple[Findings, Repairs]:
        """How rows are repaired; and what was found, with all cells suspect that are rather wrong than right."""
        repairs = self._in_whole_steps(blocks, self.evidence.repairs(blocks, rows, found, levels.boldness))
        if levels.cell_p_value is None:
            found = found.suspecting(repairs.wrong)
        return found, repairs if self.outside is None else self.outside.over(blocks, found.suspect, repairs)

    def _in_whole_steps(self, blocks: Blocks, repairs: Repairs) -> Repairs:
        """The repairs with whole numbers moved by the steps that are made in full: to round half a step up would make it a
        whole one, with four times its harm. Those that would not move by one stay."""
        layout = self.evidence.layout
        if not layout.whole.any():
            return repairs
        new = repairs.blocks.numbers
        old = np.where(np.isnan(blocks.numbers), np.rint(new), blocks.numbers)
        new = np.where(layout.whole, old + np.trunc(new - old), new)
        changed = repairs.changed & ~layout.numbers_only(new == blocks.numbers)
        moved = changed[:, layout.number_cells]
        low = np.where(moved, np.minimum(repairs.low, new), np.nan)
        high = np.where(moved, np.maximum(repairs.high, new), np.nan)
        whole = Blocks(new, repairs.blocks.codes)
        wrong = np.where(changed, repairs.wrong, 0.0)
        return replace(repairs, blocks=whole, changed=changed, wrong=wrong, low=low, high=high)

    def _denoised(self, blocks: Blocks, level: Ints, noise: TableNoise, doubted: Flags, chance: Floats) -> Repairs:
        """Noisy rows as the denoiser believes them without the numbers that noise does not explain, gaps too. Those go the
        root of the `chance` that they are damaged of the way: it is cautious for those in runs."""
        assert self.denoiser is not None
        clean = self.denoiser.restore(blocks, level, noise, doubted, self.coverage)
        old, new = blocks.numbers, clean.blocks.numbers
        new = np.where(doubted & ~np.isnan(old), old + np.sqrt(chance) * (new - old), new)
        changed = self.evidence.layout.join(new != old, clean.blocks.codes != blocks.codes)
        nothing = np.zeros(changed.shape)
        low, high = np.minimum(clean.low, new), np.maximum(clean.high, new)
        return Repairs(Blocks(new, clean.blocks.codes), changed, nothing > 0.0, nothing, low, high, clean.levels)

    def _decided(self, blocks: Blocks, found: Findings, repairs: Repairs, loud: Flags, *, by_cell: bool) -> Mended:
        """Policies and constraints on top of the repairs; then the causes.

        Cells of noisy (`loud`) rows, and rare cells of flagged rows, that are not suspect themselves may be drawn in
        towards what their neighbours say: cause `noise`.
        """
        evidence, policy = self.evidence, self.policy
        unseen = evidence.layout.unseen(blocks)
        missing = evidence.layout.unusable(blocks) & ~unseen
        suspect = found.suspect
        repairs = self._permitted(blocks, repairs)
        quarantined = np.asarray((suspect & policy.quarantine).any(axis=1))
        worth = found.probabilities >= policy.least_probability
        allowed = missing | ((suspect | (not by_cell)) & worth) | (loud[:, None] & ~suspect)
        wanted = repairs.changed & allowed & ~policy.flag & ~quarantined[:, None]
        numbers, changed = self._constrained(blocks, repairs, wanted)
        mended = self._kept(blocks, Blocks(numbers, repairs.blocks.codes), changed)
        changed &= evidence.layout.join(mended.numbers != blocks.numbers, mended.codes != blocks.codes)
        cause = np.full(changed.shape, NO_CAUSE, dtype=np.int8)
        cause[(suspect | missing | repairs.refused) & ~changed] = REFUSED
        cause[changed & suspect] = CORRUPT
        cause[changed & ~suspect] = NOISE
        cause[unseen] = UNSEEN_CELL
        cause[changed & missing] = MISSING_CELL
        touched = cause != NO_CAUSE
        low, high = self._intervals(repairs, numbers, changed)
        return Mended(
            mended, found.row_p_values, found.flagged, suspect, changed, cause,
            np.where(missing, np.nan, found.cell_p_values), np.where(missing, np.nan, found.probabilities),
            self._filled(mended, repairs, changed & missing), low, high, self._donors(blocks, touched), quarantined,
        )  # fmt: skip

    def _permitted(self, blocks: Blocks, repairs: Repairs) -> Repairs:
        """The repairs with the likeliest of the allowed levels where a forbidden one was chosen; refused where that is the
        level that stands, or none has any probability."""
        if not self.constraints.forbidden:
            return repairs
        offsets = self.evidence.pool.offsets
        levels = self.constraints.shares(repairs.levels, offsets)
        codes, changed, refused = repairs.blocks.codes.copy(), repairs.changed.copy(), repairs.refused.copy()
        for j, cell in enumerate(self.evidence.layout.category_cells):
            banned = [code for i, code in self.constraints.forbidden if i == j]
            rows = np.flatnonzero(changed[:, cell] & np.isin(codes[:, j], banned))
            share = levels[rows, offsets[j] : offsets[j + 1]]
            codes[rows, j] = np.where(share.max(axis=1) > 0.0, share.argmax(axis=1), blocks.codes[rows, j])
            changed[rows, cell] = codes[rows, j] != blocks.codes[rows, j]
            refused[rows, cell] = ~changed[rows, cell]
        return replace(
            repairs, blocks=Blocks(repairs.blocks.numbers, codes), changed=changed, refused=refused, levels=levels
        )

    def _filled(self, mended: Blocks, repairs: Repairs, filled: Flags) -> Floats:
        """How likely the levels are that were put into empty categories."""
        out, offsets = np.full(filled.shape, np.nan), self.evidence.pool.offsets
        for j, cell in enumerate(self.evidence.layout.category_cells):
            rows = np.flatnonzero(filled[:, cell])
            out[rows, cell] = repairs.levels[rows, offsets[j] + mended.codes[rows, j]]
        return out

    def _intervals(self, repairs: Repairs, numbers: Floats, changed: Flags) -> tuple[Floats, Floats]:
        """The intervals of changed numbers, within their bounds, and the numbers put in; whole numbers have whole ends."""
        rules, moved = self.constraints, changed[:, self.evidence.layout.number_cells]
        low, high = (np.where(rules.whole, np.rint(end), end) for end in (repairs.low, repairs.high))
        low, high = (np.clip(end, rules.low, rules.high) for end in (low, high))
        low, high = np.minimum(low, numbers), np.maximum(high, numbers)
        return np.where(moved, low, np.nan), np.where(moved, high, np.nan)

    def _constrained(self, blocks: Blocks, repairs: Repairs, wanted: Flags) -> tuple[Floats, Flags]:
        """Numbers that respect the constraints, and the cells that are changed then: without those of relations that cannot
        be met, which may free others of theirs in turn."""
        at, changed = self.evidence.layout.number_cells, wanted.copy()
        width = np.nan_to_num(repairs.high - repairs.low, nan=1.0, posinf=1.0)
        variance = np.maximum(width, 1e-12) ** 2
        while True:
            kept = self._kept(blocks, repairs.blocks, changed)
            numbers, unmet = self.constraints.hold(kept, changed[:, at], variance)
            if not unmet.any():
                return numbers, changed
            changed[:, at] &= ~unmet

    def _kept(self, before: Blocks, after: Blocks, changed: Flags) -> Blocks:
        """The repairs where they stand, the old cells elsewhere."""
        layout = self.evidence.layout
        numbers = np.where(changed[:, layout.number_cells], after.numbers, before.numbers)
        codes = np.where(changed[:, layout.category_cells], after.codes, before.codes)
        return Blocks(numbers, codes.astype(np.int32))

    def _donors(self, blocks: Blocks, touched: Flags) -> Ints:
        """The reference rows nearest over the cells that were left alone, for rows that were touched; -1: none."""
        donors = np.full((len(blocks), N_DONORS), -1, dtype=np.int64)
        rows = np.flatnonzero(touched.any(axis=1) & ~touched.all(axis=1))
        if rows.size:
            values = to_values(blocks.take(rows), self.schema)
            donors[rows], _ = self.reference.nearest(values, touched[rows], min(N_DONORS, len(self.reference) - 1))
        return donors
