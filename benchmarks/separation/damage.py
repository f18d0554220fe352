"""E8, E9 and S14: what kinds of damage are seen, contaminated references, and the documented failures."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness import write_results
from benchmarks.separation.measures import Trial, quality, spread, table_trial
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
    """Reference, calibration and clean test rows; the reference is that of the specification for every seed."""
    train = np.asarray(datasets.load_usps("train", digits=(0, 1)).data)
    test = np.asarray(datasets.load_usps("test", digits=(0, 1)).data)
    order = np.random.default_rng(7).permutation(len(train))
    clean = test[np.random.default_rng(21 + seed).permutation(len(test))[:400]]
    return train[order[:500]], train[order[1000:1300]], clean


def kind_rows(seeds: range) -> list[dict[str, Any]]:
    rows = []
    for kind in KINDS:
        found: dict[str, list[tuple[float, ...]]] = {}
        for seed in seeds:
            reference, calibration, clean = usps(seed)
            damage = square_protocol(clean, np.random.default_rng(5 + seed))
            content = damage.values
            if kind != KINDS[0]:
                content = overwrite(clean, damage.overwritten, reference, kind, np.random.default_rng(6 + seed))
            for title, settings in PIPELINES.items():
                separator = CorruptionSeparator((16, 16), alarm_rate=0.1, **settings)
                separator.fit(reference, clean_rows=calibration)
                found.setdefault(title, []).append(judged(separator, content, damage.overwritten))
        row = {"damage": kind, **shown(found), "reference TD/F1 α=.5, α=1 (search)": REFERENCE[kind]}
        rows.append(row)
        print(row, flush=True)
    return rows


def judged(separator: CorruptionSeparator, rows: Any, mask: Any) -> tuple[float, float]:
    """TD of rows and F1 of cells."""
    result = separator.restore(rows)
    f1 = 2 * (result.cells & mask).sum() / max(1, result.cells.sum() + mask.sum())
    return float(result.flagged[mask.any(axis=1)].mean()), float(f1)


def shown(found: dict[str, list[tuple[float, ...]]]) -> dict[str, str]:
    """Mean ± sd over the seeds, TD before F1."""
    texts = {}
    for title, figures in found.items():
        table = np.array(figures)
        spreads = table.std(axis=0, ddof=1) if len(table) > 1 else np.zeros(table.shape[1])
        texts[title + " TD/F1"] = " / ".join(
            f"{m:.3f} ± {s:.3f}" for m, s in zip(table.mean(axis=0), spreads, strict=True)
        )
    return texts


def contaminated_rows(seeds: range) -> list[dict[str, Any]]:
    expected = {0.0: ".943 .699", 0.05: ".828 .605", 0.10: ".809 .583", 0.25: ".742 .465"}
    rows = []
    for share, figures in expected.items():
        found: dict[str, list[tuple[float, ...]]] = {}
        for seed in seeds:
            reference, calibration, clean = usps(seed)
            damage = square_protocol(clean, np.random.default_rng(5 + seed))
            rng = np.random.default_rng(6 + seed)
            bad = square_protocol(reference, rng)
            hit = bad.rows & (rng.random(len(reference)) < 2 * share)  # the protocol damages every second row
            dirty, trust = np.where(hit[:, None], bad.values, reference), np.where(hit, 0.0, 1.0)
            for title, settings, trusts in (
                ("search α=.5", {"refine": False, "ranked_fraction": 0.5}, None),
                ("**product**", {}, None),
                ("product with trust", {}, trust),
            ):
                separator = CorruptionSeparator((16, 16), alarm_rate=0.05, **settings)
                separator.fit(dirty, trust=trusts, clean_rows=calibration)
                found.setdefault(title, []).append(judged(separator, damage.values, damage.overwritten))
        row = {"damage": f"reference contaminated: {share}", **shown(found)}
        rows.append({**row, "reference TD/F1 α=.5, α=1 (search)": figures})
        print(rows[-1], flush=True)
    return rows


def failure_rows(seeds: range) -> list[dict[str, Any]]:
    """S13.10: what is not seen, on tables."""
    rows = []
    for name in ("wdbc", "ringnorm"):
        for title in ("runs of the column's own values", "scattered single cells", "runs of uniform noise"):
            found, restored = [], []
            for seed in seeds:
                trial, rng = table_trial(name, seed), np.random.default_rng(4 + seed)
                hit = trial.mask.any(axis=1)
                scattered = (rng.random(trial.clean.shape) < 0.1) & hit[:, None]
                mask, values = scattered if title.startswith("scattered") else trial.mask, trial.clean.copy()
                own = trial.reference[rng.integers(len(trial.reference), size=mask.shape), np.arange(mask.shape[1])]
                values[mask] = (own if "own" in title else rng.random(mask.shape))[mask]
                used = Trial(**{**vars(trial), "rows": values, "mask": mask})
                separator = CorruptionSeparator(alarm_rate=0.1, scaling="none")
                result = separator.fit(trial.reference, clean_rows=trial.calibration).restore(values)
                figures = quality(used, result.flagged, result.cells, result.table)
                means = np.where(mask, trial.reference.mean(axis=0), values)
                before, after = (((part - trial.clean)[mask.any(axis=1)] ** 2).sum() for part in (values, means))
                found.append((figures["TD"], figures["F1"]))
                restored.append({"product Q": figures["Q"], "column means under the true mask Q": 1 - after / before})
            rows.append({"damage": f"{name}: {title}", **shown({"**product**": found}), **spread(restored)})
            print(rows[-1], flush=True)
    return rows


def main(quick: bool) -> None:
    seeds = range(2 if quick else 5)
    rows = kind_rows(seeds) + contaminated_rows(seeds) + failure_rows(seeds)
    write_results(
        "separation-damage",
        rows,
        title="Kinds of damage, contaminated references, and what is not seen",
        notes="Mean ± sd over five seeds; the first is that of the reference figures. USPS 0 vs 1, N = 500, grid, 10 % "
        "(contamination: 5 %). Values that are plausible where they stand are hardly "
        "seen: patches of other rows, background colour, a column's own values. Scattered cells are not what the tree "
        "looks for.",
        quick=quick,
    )
