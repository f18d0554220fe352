"""The protocol of P1: sets, splits, damage and metrics, and what today's tools reach on it (P3).

| what | where |
|---|---|
| sets, near-constant columns dropped, complete rows | `load_case` |
| reference half, calibration a fifth, incoming the rest | `goldseam.corruption.protocols.peer_split` |
| five kinds of damage in half of the rows | `goldseam.corruption.protocols.peer_protocol` |
| row AUC, detection, false alarms, cell AP, F1, Q | `metrics`, of a fitted evidence `measure` |
| best peer per set and kind, three-seed means | `BEST_PEER` |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, roc_auc_score

import goldseam.datasets as datasets
from goldseam.corruption.protocols import PEER_KINDS, nearly_constant, peer_protocol, peer_split
from goldseam.evidence.mixture import boldness
from goldseam.schema import Blocks, Schema
from goldseam.tables import Table, learn_schema

KINDS = PEER_KINDS[:4]
SETS: dict[str, Callable[[], datasets.Dataset]] = {
    "wdbc": datasets.load_wdbc,
    "image-segmentation": datasets.load_image_segmentation,
    "german": datasets.load_german,
    "credit-approval": datasets.load_credit_approval,
    "g241c": datasets.load_g241c,
    "usps01": lambda: datasets.load_usps("all", digits=(0, 1)),
}
UNSEEN_SETS: dict[str, Callable[[], datasets.Dataset]] = {
    "pima": datasets.load_pima_diabetes,
    "wine": datasets.load_wine,
    "sonar": datasets.load_sonar,
    "ionosphere": datasets.load_ionosphere,
    "heart": datasets.load_ida_heart,
    "waveform": lambda: datasets.load_ida_waveform("test"),
    "new-thyroid": datasets.load_new_thyroid,
    "australian": datasets.load_australian,
    "topgear": datasets.load_topgear,
    "digits": datasets.load_digits,
}
COLUMNS = ("detection", "AP", "F1", "Q")
# P3, in the order of SETS. F1 is that at the row threshold.
BEST_PEER: dict[str, dict[str, tuple[float, ...]]] = {
    "AUC": {
        "interval": (0.99, 0.98, 0.85, 0.91, 1.00, 1.00),
        "scatter-marginal": (0.90, 0.90, 0.62, 0.65, 0.52, 1.00),
        "scatter-uniform": (0.97, 0.95, 0.69, 0.81, 0.96, 1.00),
        "scale": (1.00, 0.98, 0.83, 0.86, 1.00, 1.00),
    },
    "detection": {
        "interval": (0.96, 0.93, 0.43, 0.63, 0.99, 1.00),
        "scatter-marginal": (0.54, 0.71, 0.14, 0.28, 0.06, 1.00),
        "scatter-uniform": (0.81, 0.85, 0.23, 0.37, 0.79, 1.00),
        "scale": (0.98, 0.91, 0.54, 0.52, 1.00, 1.00),
    },
    "AP": {
        "interval": (0.66, 0.65, 0.37, 0.50, 0.57, 0.70),
        "scatter-marginal": (0.41, 0.39, 0.10, 0.16, 0.05, 0.54),
        "scatter-uniform": (0.61, 0.55, 0.24, 0.42, 0.31, 0.66),
        "scale": (0.91, 0.77, 0.52, 0.51, 0.86, 0.97),
    },
    "F1": {
        "interval": (0.51, 0.64, 0.12, 0.35, 0.02, 0.14),
        "scatter-marginal": (0.34, 0.45, 0.05, 0.23, 0.00, 0.36),
        "scatter-uniform": (0.53, 0.55, 0.15, 0.35, 0.01, 0.42),
        "scale": (0.78, 0.62, 0.38, 0.48, 0.63, 0.86),
    },
    "Q": {
        "interval": (0.72, 0.91, 0.40, 0.54, 0.38, 0.60),
        "scatter-marginal": (0.57, 0.49, 0.00, 0.00, -0.01, 0.54),
        "scatter-uniform": (0.84, 0.91, 0.44, 0.68, 0.19, 0.87),
        "scale": (1.00, 0.98, 0.99, 0.93, 0.93, 1.00),
    },
}
# E9: what to aim at, mean over the six sets.
AIM = {
    "detection": (0.82, 0.50, 0.67, 0.82),
    "AP": (0.82, 0.40, 0.62, 0.85),
    "F1": (0.70, 0.35, 0.52, 0.70),
    "Q": (0.75, 0.30, 0.78, 0.98),
}


@dataclass(frozen=True)
class Case:
    """One split of one set."""

    schema: Schema
    reference: Blocks
    calibration: Blocks
    incoming: Blocks

    def damaged(self, kind: str, seed: int) -> tuple[Blocks, NDArray[np.bool_]]:
        """Incoming rows with one kind of damage, and the cells that changed."""
        damage = peer_protocol(self.incoming, self.schema, self.reference, kind, np.random.default_rng(1000 + seed))
        return damage.blocks, damage.cells


def load_case(dataset: datasets.Dataset, seed: int) -> Case:
    """The split of P1. Declared numbers stay numbers, however few values they take."""
    frame = dataset.complete().frame()
    parts = peer_split(len(frame), seed)
    frame = frame[:, [j for j, name in enumerate(frame.columns) if frame[name].n_unique() > 1]]
    for _ in range(2):  # once to find the near-constant columns, once without them
        kinds = {name: dataset.kinds[name] for name in frame.columns}
        settings: Mapping[str, object] = {"kinds": kinds, "small_integers": 0, "constant": "number"}
        schema = learn_schema(Table.read(frame[parts[0]]), **settings)  # type: ignore[arg-type]
        blocks = [Table.read(frame[part]).encode(schema) for part in parts]
        drop = {
            schema.columns[i].name
            for i, poor in zip(schema.modelled_positions, nearly_constant(blocks[0], schema), strict=True)
            if poor
        }
        if not drop:
            break
        frame = frame.drop(list(drop))
    return Case(schema, *blocks)


@dataclass(frozen=True)
class Outcome:
    """What became of the incoming rows; cells are the modelled ones, in table order."""

    row_scores: NDArray[np.float64]
    flagged: NDArray[np.bool_]
    cell_scores: NDArray[np.float64]
    suspect: NDArray[np.bool_]
    restored: Blocks


def metrics(case: Case, dirty: Blocks, cells: NDArray[np.bool_], found: Outcome, told: Blocks) -> dict[str, float]:
    """The metrics of P1; `told` are the codes that the true mask would give."""
    rows = cells.any(axis=1)
    sd = np.maximum(case.reference.numbers.std(axis=0), 1e-12)
    error = lambda blocks: (((blocks.numbers - case.incoming.numbers) / sd) ** 2).sum(axis=1)  # noqa: E731
    before, after = error(dirty), error(found.restored)
    wrong = lambda blocks: (blocks.codes != case.incoming.codes).mean() if blocks.codes.size else np.nan  # noqa: E731
    hit = cells[:, [c for c, i in enumerate(case.schema.modelled_positions) if i in case.schema.category_positions]]
    right = Blocks(dirty.numbers, np.where(hit, told.codes, dirty.codes).astype(np.int32))
    return {
        "AUC": roc_auc_score(rows, found.row_scores),
        "detection": found.flagged[rows].mean(),
        "false alarms": found.flagged[~rows].mean(),
        "AP": average_precision_score(cells.ravel(), found.cell_scores.ravel()),
        "F1": 2 * (found.suspect & cells).sum() / max(1, found.suspect.sum() + cells.sum()),
        "Q": 1 - after[rows].sum() / before[rows].sum(),
        "Q all rows": 1 - after.sum() / before.sum(),
        "category error before": wrong(dirty),
        "category error": wrong(found.restored),
        "category error by the mask": wrong(right),
    }


def measure(case: Case, dirty: Blocks, cells: NDArray[np.bool_], model, n_jobs=None) -> dict[str, float]:  # type: ignore[no-untyped-def]
    """The metrics of P1 for what a fitted `goldseam.evidence` finds and repairs, and what it would make of the true mask."""
    found, repairs = model.repair(dirty, n_jobs, boldness(model.openness(dirty, n_jobs)))
    told = model.mend(model.rows(dirty), np.where(cells, 0.0, -np.inf))
    outcome = Outcome(found.row_scores, found.flagged, found.cell_scores, found.suspect, repairs.blocks)
    moved = (repairs.changed & cells)[:, model.layout.number_cells]
    inside = (repairs.low <= case.incoming.numbers) & (case.incoming.numbers <= repairs.high)
    return {
        **metrics(case, dirty, cells, outcome, Blocks(told.values, told.codes)),
        "coverage": inside[moved].mean() if moved.any() else np.nan,
    }


def mean_over_seeds(results: Mapping[str, list[dict[str, float]]]) -> dict[str, dict[str, float]]:
    """Mean metrics per kind of damage."""
    return {
        kind: {key: float(np.mean([one[key] for one in many])) for key in many[0]} for kind, many in results.items()
    }


def beside_peers(found: Mapping[str, Mapping[str, Mapping[str, float]]]) -> list[dict[str, object]]:
    """A row per set and kind of damage with the best peer's figures, then the means over sets with the aims as well."""
    rows: list[dict[str, object]] = [
        {"set": name, "damage": kind, **found[name][kind], **_peers(kind, [name])}
        for name in found
        for kind in PEER_KINDS
    ]
    for k, kind in enumerate(KINDS):
        mean = {
            key: float(np.nanmean([one[kind][key] for one in found.values()]))
            for key in next(iter(found.values()))[kind]
        }
        aims = {f"{c} aim": AIM[c][k] for c in COLUMNS}
        rows.append({"set": "mean", "damage": kind, **mean, **_peers(kind, list(found)), **aims})
    return rows


def _peers(kind: str, names: list[str]) -> dict[str, float]:
    """The figures of the best peer of each set (P3), on the mean of some sets; none for noise."""
    if kind not in KINDS:
        return {}
    at = [list(SETS).index(name) for name in names]
    return {f"{column} peer": float(np.mean([BEST_PEER[column][kind][i] for i in at])) for column in COLUMNS}
