"""How far categories could be mended at all: the evidence's rule beside boosters that were shown thousands of damaged rows.

Adult has rows to spare. German and credit-approval have not: there boosters learn from damaged copies of the calibration
rows and of half of the incoming ones, and are tested on copies of the other half. For every category column a booster sees
what the evidence says of its cells, and the whole damaged row, and learns from rows that are damaged by the protocol itself
whether the level should change. Trained on flagged rows, and free to change those alone, it is a ceiling for any rule that
keeps the promise to rows that are not flagged; trained on all rows and free to change all, for any rule; trained on the kind
of damage that it is tested on, for any rule that were told the kind.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

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
SPLITS = {"adult": 1, "german": 3, "credit-approval": 3}
SETS = {
    "adult": datasets.load_adult,
    "german": datasets.load_german,
    "credit-approval": datasets.load_credit_approval,
}
GOOD, BAD, NEITHER = 1, 0, 2


def _further_rows(case: Case, n_rows: int, seed: int) -> Blocks:
    """Rows of Adult that the case does not use."""
    frame = datasets.load_adult().complete().frame()
    used = np.concatenate(peer_split(len(frame), seed))
    rest = np.random.default_rng(seed).permutation(np.setdiff1d(np.arange(len(frame)), used))[:n_rows]
    return Table.read(frame[rest.tolist()].select([column.name for column in case.schema.columns])).encode(case.schema)


def _copied_rows(case: Case, train: int, test: int) -> Blocks:
    """Calibration rows and the first half of the incoming ones, as often as needed to train; the other half, to test."""
    half, n = len(case.incoming) // 2, len(case.calibration)
    both = [
        np.concatenate(pair) for pair in zip(vars(case.calibration).values(), vars(case.incoming).values(), strict=True)
    ]
    rows = np.concatenate([np.resize(np.arange(n + half), train), np.resize(np.arange(n + half, len(both[0])), test)])
    return Blocks(*both).take(rows)


@dataclass(frozen=True)
class Shown:
    """What is known of each category cell (n, k, terms) and of each row (n, ...), whether the row is flagged (n,), and whether
    a change of the cell would be good (n, k)."""

    cells: NDArray[np.float64]
    rows: NDArray[np.float64]
    flagged: NDArray[np.bool_]
    good: NDArray[np.int64]

    def take(self, use: slice | NDArray[np.bool_]) -> Shown:
        return Shown(*(part[use] for part in vars(self).values()))

    def column(self, j: int) -> NDArray[np.float64]:
        return np.column_stack([self.cells[:, j], self.rows])


def _shown(model: Evidence, clean: Blocks, dirty: Blocks) -> Shown:
    rows = model.rows(dirty)
    found = model.findings(rows)
    mended = model.mend(rows, np.where(found.flagged[:, None], found.cell_scores, -np.inf))
    all_told = model.all_told(rows, np.arange(len(rows)))
    context = found.context[:, model.layout.category_cells]
    other, parts = terms(dirty.codes, found.cell_scores, context, mended.levels, all_told, model.pool.offsets)
    whole = np.column_stack([found.row_scores, found.flagged, found.cell_scores, dirty.numbers, dirty.codes])
    stands = dirty.codes == clean.codes
    return Shown(parts, whole, found.flagged, np.where(stands, BAD, np.where(other == clean.codes, GOOD, NEITHER)))


def _balance(booster: HistGradientBoostingClassifier, seen: NDArray[np.float64], truth: NDArray[np.int64]) -> int:
    """Levels put right less levels put wrong, when changes are made that are likelier good than bad."""
    chance = dict(zip(booster.classes_, booster.predict_proba(seen).T, strict=True))
    if GOOD not in chance:
        return 0
    changed = chance[GOOD] > chance.get(BAD, 0.0)
    return int((truth[changed] == GOOD).sum() - (truth[changed] == BAD).sum())


def _boosted(shown: list[Shown], train: int, told: bool = False, everywhere: bool = True) -> list[float]:
    """Levels put right on balance per kind, as a share of all category cells; the first `train` rows are learnt from."""
    balance = np.zeros(len(shown))
    cells = shown[0].good[train:].size
    learnt, tested = ([one.take(part) for one in shown] for part in (slice(train), slice(train, None)))
    if not everywhere:
        learnt, tested = ([one.take(one.flagged) for one in part] for part in (learnt, tested))
    for j in range(shown[0].good.shape[1]):
        for group in [[k] for k in range(len(shown))] if told else [list(range(len(shown)))]:
            booster = HistGradientBoostingClassifier(max_iter=100, min_samples_leaf=40, random_state=0)
            booster.fit(
                np.concatenate([learnt[k].column(j) for k in group]),
                np.concatenate([learnt[k].good[:, j] for k in group]),
            )
            for k in group:
                balance[k] += _balance(booster, tested[k].column(j), tested[k].good[:, j])
    return [float(b) / cells for b in balance]


def _measured(name: str, seed: int, train: int, test: int) -> list[dict[str, float]]:
    """Per kind of damage: errors before and by the mask, and the gains of the rule and of the boosters."""
    case = load_case(SETS[name](), seed)
    model = fit_evidence(case.reference, case.calibration, case.schema, rng=np.random.default_rng(seed))
    clean = _further_rows(case, train + test, seed) if name == "adult" else _copied_rows(case, train, test)
    shown, figures = [], []
    for k, kind in enumerate(KINDS):
        damage = peer_protocol(clean, case.schema, case.reference, kind, np.random.default_rng(50 + k))
        shown.append(_shown(model, clean, damage.blocks))
        tested = np.arange(train, len(clean))
        figures.append(
            measure(replace(case, incoming=clean.take(tested)), damage.blocks.take(tested), damage.cells[tested], model)
        )
    with threadpool_limits(1, user_api="openmp"):
        ways = ({"everywhere": False}, {}, {"told": True})
        flagged, mixed, told = (_boosted(shown, train, **way) for way in ways)
    rows = []
    for k in range(len(KINDS)):
        before, after, mask = (figures[k][f"category error{which}"] for which in (" before", "", " by the mask"))
        gains = {"evidence": before - after, "booster in flagged rows": flagged[k], "booster": mixed[k],
                 "booster told the kind": told[k]}  # fmt: skip
        rows.append({"before": before, "by the mask": mask, **gains})
    return rows


def main(quick: bool) -> None:
    train, test = (500, 300) if quick else (TRAINED_ON, TESTED_ON)
    rows = []
    for name, splits in SPLITS.items():
        found = [_measured(name, seed, train, test) for seed in range(1 if quick else splits)]
        for k, kind in enumerate(KINDS):
            mean = {key: float(np.mean([one[k][key] for one in found])) for key in found[0][k]}
            whole = mean["before"] - mean["by the mask"]
            shares = {key: value if key in ("before", "by the mask") else value / whole for key, value in mean.items()}
            rows.append({"set": name, "damage": kind, **shares})
            print(rows[-1], flush=True)
    write_results(
        "evidence-categories",
        rows,
        title="Categories: how much of what the true mask would give",
        notes=f"Splits of P1: {', '.join(f'{name} {n}' for name, n in SPLITS.items())}; tested on {test:,} rows each. before, by "
        "the mask: share of wrong category cells. evidence: its rule, which learnt from the calibration rows alone. booster: one "
        f"per column, shown {train:,} rows of each kind of damage, with all that the evidence says and the row itself: further "
        "rows of adult; of the other two copies of calibration rows and of half of the incoming rows, tested on copies of the "
        "other half. In flagged rows: it learns from those and changes those alone; else it may change cells of all rows.",
        quick=quick,
    )
