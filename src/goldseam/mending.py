"""Blocks in, mended blocks out: judge, decide, repair, constrain. Everything here is per row.

`Mender` joins what the restorer learnt; `mend` takes rows through it. Cells are the modelled ones, in table order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from goldseam.constraints import Constraints
from goldseam.discovery import FineCells
from goldseam.errors import ParameterError
from goldseam.evidence import Evidence, Findings, Repairs
from goldseam.schema import Blocks, Schema
from goldseam.seam import CAUSES
from goldseam.separation.encoding import to_values
from goldseam.separation.reference import Reference

__all__ = ["Mended", "Mender", "Policy", "joined"]

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]

NO_CAUSE: Final = -1
MISSING_CELL, CORRUPT, NOISE, UNSEEN_CELL, REFUSED = range(len(CAUSES))
N_DONORS: Final = 3
RARE: Final = 0.002  # p-value up to which a cell of a flagged row may be drawn in though it is not suspect
Action = Literal["repair", "flag", "quarantine"]
ACTIONS: Final = ("repair", "flag", "quarantine")


@dataclass(frozen=True)
class Policy:
    """What to do with a suspected cell, per modelled cell: repair it, only flag it, or set its row aside; and the
    probability of damage from which a repair is worth its risk."""

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


def _per_column(setting: object, names: Sequence[str], what: str, default: object) -> list[object]:
    if not isinstance(setting, Mapping):
        return [setting] * len(names)
    unknown = [name for name in setting if name not in names]
    if unknown:
        raise ParameterError(
            f"{what} names column {unknown[0]!r}, which is not modelled. Hint: modelled are {', '.join(names[:20])}."
        )
    return [setting.get(name, default) for name in names]


@dataclass(frozen=True)
class Mended:
    """What became of n rows; cells (n, p), numbers (n, m)."""

    blocks: Blocks
    row_p_values: Floats
    flagged: Flags
    suspect: Flags
    changed: Flags
    cause: NDArray[np.int8]
    p_values: Floats
    probabilities: Floats
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

    def mend(self, blocks: Blocks, cell_p_value: float | None = None) -> Mended:
        """Judge and repair rows. With `cell_p_value`, cells up to it are suspect, whatever the row's own p-value."""
        evidence = self.evidence
        rows = evidence.rows(blocks)
        found = evidence.findings(rows)
        if cell_p_value is not None:
            p_values = self.fine.p_values(found.row_scores, found.cell_scores)
            suspect = (p_values <= cell_p_value) & ~rows.missing
            flagged = np.asarray(suspect.any(axis=1))
            found = replace(found, cell_p_values=p_values, suspect=suspect, flagged=flagged)
        scores = np.where(found.flagged[:, None], found.cell_scores, -np.inf)
        repairs = evidence._apply(blocks, rows, found, evidence.mend(rows, scores))
        return self._decided(blocks, rows.missing, found, repairs, by_cell=cell_p_value is not None)

    def _decided(self, blocks: Blocks, missing: Flags, found: Findings, repairs: Repairs, *, by_cell: bool) -> Mended:
        """Policies and constraints on top of the repairs; then the causes.

        A rare cell of a flagged row that is not suspect itself may be drawn in towards what its neighbours say: cause
        `noise`.
        """
        evidence, policy = self.evidence, self.policy
        unseen = evidence.layout.unseen(blocks)
        suspect = found.suspect
        quarantined = np.asarray((suspect & policy.quarantine).any(axis=1))
        worth = found.probabilities >= policy.least_probability
        drawn_in = (found.cell_p_values <= RARE) & (not by_cell)
        allowed = (suspect | drawn_in) & worth & ~policy.flag & ~quarantined[:, None]
        changed = repairs.changed & (missing | allowed)
        numbers, feasible = self._constrained(repairs, changed)
        changed &= feasible[:, None] | missing
        mended = self._kept(blocks, Blocks(numbers, repairs.blocks.codes), changed)
        cause = np.full(changed.shape, NO_CAUSE, dtype=np.int8)
        cause[(suspect | repairs.refused) & ~changed] = REFUSED
        cause[changed & suspect] = CORRUPT
        cause[changed & ~suspect] = NOISE
        cause[unseen] = UNSEEN_CELL
        cause[changed & missing] = MISSING_CELL
        touched = cause != NO_CAUSE
        at = evidence.layout.number_cells
        return Mended(
            mended, found.row_p_values, found.flagged, suspect, changed, cause,
            np.where(missing, np.nan, found.cell_p_values), np.where(missing, np.nan, found.probabilities),
            np.where(changed[:, at], repairs.low, np.nan), np.where(changed[:, at], repairs.high, np.nan),
            self._donors(blocks, touched), quarantined,
        )  # fmt: skip

    def _constrained(self, repairs: Repairs, changed: Flags) -> tuple[Floats, Flags]:
        at = self.evidence.layout.number_cells
        width = np.nan_to_num(repairs.high - repairs.low, nan=1.0, posinf=1.0)
        return self.constraints.hold(repairs.blocks, changed[:, at], np.maximum(width, 1e-12) ** 2)

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
