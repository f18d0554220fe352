"""What the restorer promises and what is measured: false alarms, false discoveries, coverage, noise (all with defaults)."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness import write_results
from benchmarks.restorer.tables import load_case, quality, quality_at, restored_at
from goldseam import Restorer
from goldseam.corruption.protocols import PEER_KINDS

RATES = (0.01, 0.05, 0.1)
FDRS = (0.05, 0.1, 0.2)
LEAST_CELLS = 30  # a share of fewer is not shown
USED = (
    "pima",
    "credit-approval",
    "german",
    "wdbc",
    "skab",
    "digits",
    "ionosphere",
    "adult",
    "image-segmentation",
    "usps01",
)


def main(quick: bool) -> None:
    alarms, discoveries, coverages, noises = [], [], [], []
    for name in USED[:2] if quick else USED:
        found = [measured(name, seed) for seed in range(1 if quick else 2)]
        alarms.append({"set": name, **_alarms(found)})
        discoveries.append({"set": name, **_discoveries(found)})
        coverages.append({"set": name, **_coverages(found)})
        noises.append({"set": name, **_mean(found, "quality")})
        _write(alarms, discoveries, coverages, noises, quick)


def _write(alarms, discoveries, coverages, noises, quick) -> None:  # type: ignore[no-untyped-def]
    notes = "Clean rows that neither fit nor calibration saw. limit: rate + 2 sd, of the incoming and the calibration sample."
    write_results("restorer-alarms", alarms, title="False alarms of clean rows", notes=notes, quick=quick)
    notes = (
        "Interval and scatter-uniform damage of P1 in half of the rows, drawn three times for each fit; mean share of "
        "suspected cells that were fine. limit: rate + 2 sd of that mean. power: share of damaged cells that are suspected."
    )
    write_results("restorer-discoveries", discoveries, title="False discoveries among cells", notes=notes, quick=quick)
    notes = (
        "Nominal .90, per kind of damage: numbers that were changed, rightly or not, and beside it those of them that were "
        f"damaged; empty below {LEAST_CELLS} cells. noise: cells of denoised rows. width: mean of all intervals but "
        "those of noise, in standard deviations of the column."
    )
    write_results("restorer-coverage", coverages, title="Coverage of intervals", notes=notes, quick=quick)
    notes = (
        "Q of damaged rows and of all rows, and of all rows of tables with a tenth of the rows damaged, where harm to clean ones "
        "weighs nine times as much. Categories: wrong before and after. Damage of P1 in half of the rows."
    )
    write_results("restorer-quality", noises, title="Restoration with defaults", notes=notes, quick=quick)


def measured(name: str, seed: int) -> dict[str, dict[str, Any]]:
    """One fit, everything that can be read from it."""
    case = load_case(name, seed)
    model = Restorer(audit=False, kinds=case.kinds, random_state=seed).fit(case.reference)
    p_values = model.p_values(case.incoming)
    out: dict[str, dict[str, Any]] = {"alarms": {}, "fdr": {}, "coverage": {}, "quality": {}}
    out["alarms"] = {f"at {rate}": float((p_values <= rate).mean()) for rate in RATES}
    out["alarms"]["incoming"], out["alarms"]["calibration"] = len(case.incoming), model.row_counts_["calibration"]
    for kind in PEER_KINDS:
        table, cells = case.damaged(kind, seed)
        result = model.restore(table)
        _add_outcome(out, case, model, result, table, cells, kind)
    tables = [case.damaged(kind, seed + 100 * draw) for kind in ("interval", "scatter-uniform") for draw in range(3)]
    for q in FDRS:
        control = model.set_params(error_control="fdr", alarm_rate=q)
        suspects = [_modelled(control, control.check(table).suspect) for table, _ in tables]
        pairs = [(suspect, cells) for suspect, (_, cells) in zip(suspects, tables, strict=True)]
        out["fdr"][f"at {q}"] = [(suspect & ~cells).sum() / max(1, suspect.sum()) for suspect, cells in pairs]
        out["fdr"][f"power at {q}"] = [(suspect & cells).sum() / cells.sum() for suspect, cells in pairs]
    return out


def _discoveries(found):  # type: ignore[no-untyped-def]
    row = {}
    for q in FDRS:
        shares = np.concatenate([one["fdr"][f"at {q}"] for one in found])
        row[f"at {q}"] = float(shares.mean())
        row[f"limit {q}"] = q + 2.0 * float(shares.std(ddof=1) / np.sqrt(shares.size))
        row[f"power at {q}"] = float(np.mean([one["fdr"][f"power at {q}"] for one in found]))
    return row


def _add_outcome(out, case, model, result, table, cells, kind) -> None:  # type: ignore[no-untyped-def]
    truth, dirty, restored = case.blocks(case.incoming), case.blocks(table), case.blocks(result.table)
    rows = cells.any(axis=1)
    out["quality"][f"{kind} Q"] = quality(case, restored, dirty, rows)
    out["quality"][f"{kind} Q all"] = quality(case, restored, dirty)
    if kind != "noise":  # of a table as a whole
        few = restored_at(model, case, table, rows, 0.1)
        out["quality"][f"{kind} Q tenth"] = quality_at(case, few, dirty, rows, 0.1)
    if truth.codes.size:
        out["quality"][f"{kind} wrong before"] = float((dirty.codes != truth.codes).mean())
        out["quality"][f"{kind} wrong after"] = float((restored.codes != truth.codes).mean())
    lines = result.seam.to_polars().filter(result.seam.to_polars()["low"].is_not_null())
    names = {column.name: j for j, column in enumerate(case.schema.numbers)}
    lines = lines.filter(lines["column"].is_in(list(names)))
    at = lines["row"].to_numpy(), np.array([names[column] for column in lines["column"]], dtype=np.int64)
    low, high = lines["low"].to_numpy(), lines["high"].to_numpy()
    real = truth.numbers[at]
    sd = np.maximum(case.blocks(case.reference).numbers.std(axis=0), 1e-12)
    out["coverage"][kind] = (low <= real) & (real <= high), dirty.numbers[at] != real, (high - low) / sd[at[1]]


def _coverages(found):  # type: ignore[no-untyped-def]
    """Shares of intervals that hold the truth: of all changed numbers and of the damaged ones, over all fits."""
    row, widths = {}, []
    for kind in PEER_KINDS:
        inside, damaged, width = (
            np.concatenate(part) for part in zip(*(one["coverage"][kind] for one in found), strict=True)
        )
        row[kind] = _share(inside)
        if kind != "noise":
            row[f"{kind} damaged"] = _share(inside[damaged])
            widths.append(width)
    row["width"] = float(np.concatenate(widths).mean())
    return row


def _share(inside):  # type: ignore[no-untyped-def]
    return float(inside.mean()) if inside.size >= LEAST_CELLS else None


def _modelled(model, suspect):  # type: ignore[no-untyped-def]
    return suspect[:, list(model.schema_.modelled_positions)]


def _alarms(found):  # type: ignore[no-untyped-def]
    row = {}
    for rate in RATES:
        row[f"at {rate}"] = float(np.mean([one["alarms"][f"at {rate}"] for one in found]))
        sizes = [1 / one["alarms"]["incoming"] + 1 / one["alarms"]["calibration"] for one in found]
        row[f"limit {rate}"] = rate + 2 * float(np.sqrt(rate * (1 - rate) * np.sum(sizes)) / len(found))
    return row


def _mean(found, what):  # type: ignore[no-untyped-def]
    return {key: float(np.nanmean([one[what][key] for one in found])) for key in found[0][what]}
