"""How far categories could be mended at all: the evidence's rule beside boosters that were shown thousands of damaged rows.

Adult has rows to spare. For every category column a booster sees what the evidence says of its cells, and the whole damaged
row, and learns from rows that are damaged by the protocol itself whether the level should change. Trained on all kinds of damage
mixed it is a ceiling for any rule; trained on the kind that it is tested on, for any rule that were told the kind.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

from benchmarks.evidence.protocol import KINDS, Case, load_case, measure
from benchmarks.harness import write_results
from goldseam import datasets
from goldseam.corruption.protocols import peer_protocol, peer_split
from goldseam.evidence import Evidence, fit_evidence
from goldseam.evidence.switching import terms
from goldseam.schema import Blocks
from goldseam.tables import Table

TRAINED_ON, TESTED_ON = 8000, 3000
GOOD, BAD, NEITHER = 1, 0, 2


def _further_rows(case: Case, n_rows: int, seed: int) -> Blocks:
    """Rows of Adult that the case does not use."""
    frame = datasets.load_adult().complete().frame()
    used = np.concatenate(peer_split(len(frame), seed))
    rest = np.random.default_rng(seed).permutation(np.setdiff1d(np.arange(len(frame)), used))[:n_rows]
    return Table.read(frame[rest.tolist()].select([column.name for column in case.schema.columns])).encode(case.schema)


def _shown(
    model: Evidence, clean: Blocks, dirty: Blocks
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """What is known of each category cell (n, k, terms), of each row (n, ...), and whether a change would be good (n, k)."""
    rows = model.rows(dirty)
    found = model.findings(rows)
    mended = model.mend(rows, np.where(found.flagged[:, None], found.cell_scores, -np.inf))
    all_told = model.all_told(rows, np.arange(len(rows)))
    context = found.context[:, model.layout.category_cells]
    other, parts = terms(dirty.codes, found.cell_scores, context, mended.levels, all_told, model.pool.offsets)
    whole = np.column_stack([found.row_scores, found.flagged, found.cell_scores, dirty.numbers, dirty.codes])
    stands = dirty.codes == clean.codes
    return parts, whole, np.where(stands, BAD, np.where(other == clean.codes, GOOD, NEITHER))


def _balance(booster: HistGradientBoostingClassifier, seen: NDArray[np.float64], truth: NDArray[np.int64]) -> int:
    """Levels put right less levels put wrong, when changes are made that are likelier good than bad."""
    chance = dict(zip(booster.classes_, booster.predict_proba(seen).T, strict=True))
    if GOOD not in chance:
        return 0
    changed = chance[GOOD] > chance.get(BAD, 0.0)
    return int((truth[changed] == GOOD).sum() - (truth[changed] == BAD).sum())


def _boosted(shown, told: bool, train: int) -> list[float]:  # type: ignore[no-untyped-def]
    """Levels put right on balance per kind, as a share of all category cells; the first `train` rows are learnt from."""
    balance = np.zeros(len(shown))
    cells = shown[0][2][train:].size
    for j in range(shown[0][2].shape[1]):
        seen = [np.column_stack([parts[:, j], whole]) for parts, whole, _ in shown]
        truth = [good[:, j] for _, _, good in shown]
        groups = [[k] for k in range(len(shown))] if told else [list(range(len(shown)))]
        for group in groups:
            booster = HistGradientBoostingClassifier(max_iter=100, min_samples_leaf=40, random_state=0)
            booster.fit(
                np.concatenate([seen[k][:train] for k in group]), np.concatenate([truth[k][:train] for k in group])
            )
            for k in group:
                balance[k] += _balance(booster, seen[k][train:], truth[k][train:])
    return [float(b) / cells for b in balance]


def main(quick: bool) -> None:
    train, test = (500, 300) if quick else (TRAINED_ON, TESTED_ON)
    case = load_case(datasets.load_adult(), 0)
    model = fit_evidence(case.reference, case.calibration, case.schema, rng=np.random.default_rng(0))
    clean = _further_rows(case, train + test, 0)
    shown, figures = [], []
    for k, kind in enumerate(KINDS):
        damage = peer_protocol(clean, case.schema, case.reference, kind, np.random.default_rng(50 + k))
        shown.append(_shown(model, clean, damage.blocks))
        tested = np.arange(train, len(clean))
        figures.append(
            measure(replace(case, incoming=clean.take(tested)), damage.blocks.take(tested), damage.cells[tested], model)
        )
    with threadpool_limits(1, user_api="openmp"):
        mixed, told = (_boosted(shown, told, train) for told in (False, True))
    rows = []
    for k, kind in enumerate(KINDS):
        before, after, mask = (figures[k][f"category error{which}"] for which in (" before", "", " by the mask"))
        shares = {"evidence": before - after, "booster": mixed[k], "booster told the kind": told[k]}
        rows.append({"damage": kind, "before": before, "by the mask": mask,
                     **{name: gain / (before - mask) for name, gain in shares.items()}})  # fmt: skip
    write_results(
        "evidence-categories",
        rows,
        title="Categories: how much of what the true mask would give",
        notes=f"Adult, one split of P1, {test:,} further rows. before, by the mask: share of wrong category cells. evidence: its "
        f"rule, which learnt from {len(case.calibration)} calibration rows. booster: one per column, shown {train:,} further "
        "rows of each kind of damage, with all that the evidence says and the row itself; it may change cells of rows that are "
        "not flagged.",
        quick=quick,
    )
