"""E8, E9 and S14: what kinds of damage are seen, contaminated references, and the documented failures."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness import write_results
from benchmarks.separation.measures import Trial, quality, table_trial
from goldseam import datasets
from goldseam.corruption.protocols import square_protocol
from goldseam.separation import CorruptionSeparator

KINDS = (
    "uniform noise",
    "constant random grey",
    "constant 1 (stroke)",
    "own marginal",
    "patch of another row",
    "constant 0",
)
REFERENCE = {  # S12.8: TD / F1 of the unrefined search, α=.5, then α=1
    "uniform noise": ".976/.709, .876/.540",
    "constant random grey": ".914/.688, .574/.280",
    "constant 1 (stroke)": ".249/.078, .775/.459",
    "own marginal": ".230/.025, .890/.424",
    "patch of another row": ".182/.005, .368/.048",
    "constant 0": ".134/.001, .435/.068",
}
PIPELINES: dict[str, dict[str, Any]] = {
    "search α=.5": {"refine": False, "ranked_fraction": 0.5},
    "search α=1": {"refine": False},
    "**product**": {},
}


def overwrite(clean: Any, mask: Any, reference: Any, kind: str, rng: np.random.Generator) -> Any:
    """Other contents for the squares of S12.0."""
    values, other = clean.copy(), reference[rng.integers(len(reference), size=len(clean))]
    for i in np.flatnonzero(mask.any(axis=1)):
        cells = mask[i]
        n = int(cells.sum())
        own = reference[rng.integers(len(reference), size=n), np.flatnonzero(cells)]
        content = {
            "constant random grey": rng.random(),
            "constant 1 (stroke)": 1.0,
            "constant 0": 0.0,
            "own marginal": own,
        }
        values[i, cells] = other[i, cells] if kind.startswith("patch") else content[kind]
    return values


def usps(seed: int) -> tuple[Any, Any, Any]:
    train = np.asarray(datasets.load_usps("train", digits=(0, 1)).data)
    test = np.asarray(datasets.load_usps("test", digits=(0, 1)).data)
    order = np.random.default_rng(7).permutation(len(train))
    clean = test[np.random.default_rng(seed).permutation(len(test))[:400]]
    return train[order[:500]], train[order[1000:1300]], clean


def kind_rows(quick: bool) -> list[dict[str, Any]]:
    reference, calibration, clean = usps(21)
    damage = square_protocol(clean, np.random.default_rng(5))
    rows = []
    for kind in KINDS:
        content = (
            overwrite(clean, damage.overwritten, reference, kind, np.random.default_rng(6))
            if kind != KINDS[0]
            else damage.values
        )
        row: dict[str, Any] = {"damage": kind}
        for title, settings in PIPELINES.items():
            separator = CorruptionSeparator((16, 16), alarm_rate=0.1, **settings).fit(reference, clean_rows=calibration)
            row[title + " TD/F1"] = judged(separator, clean, content, damage.overwritten)
        rows.append({**row, "reference TD/F1 α=.5, α=1 (search)": REFERENCE[kind]})
        print(rows[-1], flush=True)
    return rows


def judged(separator: CorruptionSeparator, clean: Any, rows: Any, mask: Any) -> str:
    result = separator.restore(rows)
    hit = mask.any(axis=1)
    f1 = 2 * (result.cells & mask).sum() / max(1, result.cells.sum() + mask.sum())
    return f"{result.flagged[hit].mean():.3f}/{f1:.3f}"


def contaminated_rows(quick: bool) -> list[dict[str, Any]]:
    reference, calibration, clean = usps(21)
    damage = square_protocol(clean, np.random.default_rng(5))
    expected = {0.0: ".943 .699", 0.05: ".828 .605", 0.10: ".809 .583", 0.25: ".742 .465"}
    rows = []
    for share, figures in expected.items():
        rng = np.random.default_rng(6)
        bad = square_protocol(reference, rng)
        hit = rng.random(len(reference)) < 2 * share  # the protocol damages every second row
        dirty = np.where((hit & bad.rows)[:, None], bad.values, reference)
        trust = np.where(hit & bad.rows, 0.0, 1.0)
        row: dict[str, Any] = {"damage": f"reference contaminated: {(trust == 0).mean():.3f}"}
        for title, settings in {"search α=.5": {"refine": False, "ranked_fraction": 0.5}, "**product**": {}}.items():
            separator = CorruptionSeparator((16, 16), alarm_rate=0.05, **settings)
            row[title + " TD/F1"] = judged(
                separator.fit(dirty, clean_rows=calibration), clean, damage.values, damage.overwritten
            )
            if title == "**product**":
                trusted = separator.fit(dirty, trust=trust, clean_rows=calibration)
                row["product with trust TD/F1"] = judged(trusted, clean, damage.values, damage.overwritten)
        rows.append({**row, "reference TD/F1 α=.5, α=1 (search)": figures})
        print(rows[-1], flush=True)
    return rows


def failure_rows(quick: bool) -> list[dict[str, Any]]:
    """S13.10: what is not seen, on tables."""
    rows = []
    for name in ("wdbc", "ringnorm"):
        trial = table_trial(name, 0)
        rng = np.random.default_rng(4)
        scattered = (rng.random(trial.clean.shape) < 0.1) & trial.mask.any(axis=1)[:, None]
        cases = {
            "runs of the column's own values": (trial.mask, "marginal"),
            "scattered single cells": (scattered, "uniform"),
            "runs of uniform noise": (trial.mask, "uniform"),
        }
        for title, (mask, fill) in cases.items():
            values = trial.clean.copy()
            drawn = trial.reference[rng.integers(len(trial.reference), size=mask.shape), np.arange(mask.shape[1])]
            values[mask] = (drawn if fill == "marginal" else rng.random(mask.shape))[mask]
            used = Trial(**{**vars(trial), "rows": values, "mask": mask})
            separator = CorruptionSeparator(alarm_rate=0.1, scaling="none").fit(
                trial.reference, clean_rows=trial.calibration
            )
            result = separator.restore(values)
            found = quality(used, result.flagged, result.cells, result.table)
            means = values.copy()
            means[mask] = np.broadcast_to(trial.reference.mean(axis=0), mask.shape)[mask]
            hit = mask.any(axis=1)
            q = 1 - ((means - trial.clean)[hit] ** 2).sum() / ((values - trial.clean)[hit] ** 2).sum()
            row = {"damage": f"{name}: {title}", "**product** TD/F1": f"{found['TD']:.3f}/{found['F1']:.3f}"}
            rows.append({**row, "product Q": found["Q"], "column means under the true mask Q": float(q)})
            print(rows[-1], flush=True)
    return rows


def main(quick: bool) -> None:
    rows = kind_rows(quick) + contaminated_rows(quick) + failure_rows(quick)
    write_results(
        "separation-damage",
        rows,
        title="Kinds of damage, contaminated references, and what is not seen",
        notes="USPS 0 vs 1, N = 500, grid, 10 % (contamination: 5 %). Values that are plausible where they stand are hardly "
        "seen: patches of other rows, background colour, a column's own values. Scattered cells are not what the tree "
        "looks for.",
        quick=quick,
    )
