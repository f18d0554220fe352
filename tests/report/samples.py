"""Restorations whose every cell is known: a clean table, a damaged copy, and the seam between them."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from goldseam.schema import Blocks, Schema
from goldseam.seam import Restoration, Seam
from goldseam.tables import Table, learn_schema

FACTS: dict[str, Any] = {
    "promises": [
        {"name": "row alarm rate", "nominal": 0.05, "measured": 0.047, "sd": 0.012, "n": 300, "scope": "rows like the reference"},
        {"name": "interval coverage", "nominal": 0.9, "measured": 0.84, "sd": 0.01, "n": 2400, "scope": "cells like these"},
    ],
    "noise": {
        "age": {"value": 0.2, "unit": "sd", "status": "estimated"},
        "income": {"value": 0.01, "unit": "sd", "status": "below_floor"},
        "city": {"value": 0.031, "unit": "flip rate", "status": "given"},
        "smoker": {"value": 0.0, "unit": "flip rate", "status": "nil"},
    },
    "ordered": False,
    "audit": {
        "damage": [
            {"kind": "interval", "size": "10-40 %", "found": 0.93, "localised": 0.81, "restored": 0.78, "coverage": 0.91,
             "do_nothing": 0.0, "column_mean": 0.5, "knn": 0.6},
            {"kind": "swapped columns", "size": "2 cells", "found": 0.71, "localised": 0.64, "restored": 0.6, "coverage": 0.88},
        ],
        "columns": [{"name": "age", "restorable": 0.74, "error": 1.2, "unit": "own"}],
        "cannot_see": ["single cells redrawn from the column's own values (found 14 %)"],
        "sources": [{"name": "tree", "used": True, "seconds": 1.25, "gain": 0.12}, {"name": "field", "used": False}],
        "methods": [{"name": "conditional", "worth": 0.612}, {"name": "conditional + tree", "worth": 0.64, "used": True}],
        "rows": {"reference": 400, "fit": 300, "calibration": 100, "distrusted": 6},
    },
    "reference": {"rows": 400, "columns": {}, "trust": {"edges": [0.0, 0.5, 1.0], "counts": [6, 394], "distrusted": 6}},
    "how": {"call": "Restorer(alarm_rate=0.05).restore(incoming)", "seed": 0,
             "model": "sha256:ab12", "versions": {"goldseam": "0.1.0"}, "created": "2026-01-02T03:04:05+00:00"},
}  # fmt: skip


def mixed_tables(n_rows: int = 200, seed: int = 42) -> tuple[pl.DataFrame, pl.DataFrame]:
    """A clean mixed table and a copy with wrong, empty and unknown cells."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, n_rows)
    clean = pl.DataFrame(
        {
            "age": age,
            "income": np.round(12_000 + 600 * age + rng.normal(0, 4000, n_rows), 2),
            "city": rng.choice(["Kyoto", "Nara", "Osaka"], n_rows, p=[0.5, 0.2, 0.3]),
            "smoker": rng.random(n_rows) < 0.3,
        }
    )
    damaged = clean.with_columns(
        pl.when(pl.int_range(pl.len()) % 17 == 3).then(pl.col("age") * 10).otherwise("age").alias("age"),
        pl.when(pl.int_range(pl.len()) % 13 == 3).then(None).otherwise("income").alias("income"),
        pl.when(pl.int_range(pl.len()) % 29 == 3).then(pl.lit("Atlantis")).otherwise("city").alias("city"),
    )
    return clean, damaged


def restored(clean: Any, damaged: Any, facts: dict[str, Any] | None = None, **settings: Any) -> Restoration:
    """The restoration that brings `clean` back from `damaged`."""
    schema = learn_schema(Table.read(clean), **settings)
    incoming = Table.read(damaged)
    before, after = incoming.encode(schema), Table.read(clean).encode(schema)
    old, new = _side_by_side(schema, before), _side_by_side(schema, after)
    changed = ~((old == new) | (np.isnan(old) & np.isnan(new)))
    return Restoration(
        incoming, schema, after, changed, changed & ~np.isnan(old), _seam(schema, old, new, changed),
        _row_p_values(changed), FACTS if facts is None else facts,
    )  # fmt: skip


def _side_by_side(schema: Schema, blocks: Blocks) -> NDArray[np.float64]:
    cells = np.full((len(blocks), len(schema.columns)), np.nan)
    cells[:, list(schema.number_positions)] = blocks.numbers
    codes = blocks.codes.astype(np.float64)
    codes[blocks.codes == -1] = np.nan
    cells[:, list(schema.category_positions)] = codes
    return cells


def _row_p_values(changed: NDArray[np.bool_]) -> NDArray[np.float64]:
    spread = (np.arange(len(changed)) + 0.5) / max(1, len(changed))
    return np.where(changed.any(axis=1), spread / 100, spread)


def _seam(schema: Schema, old: NDArray[np.float64], new: NDArray[np.float64], changed: NDArray[np.bool_]) -> Seam:
    lines: dict[str, list[Any]] = {
        name: []
        for name in (
            "row",
            "column",
            "kind",
            "cause",
            "observed",
            "restored",
            "low",
            "high",
            "p_value",
            "probability",
            "donors",
        )
    }
    for row, position in np.argwhere(changed):
        column, before, after = schema.columns[position], old[row, position], new[row, position]
        is_number = column.modelled_as == "number"
        lines["row"].append(int(row))
        lines["column"].append(column.name)
        lines["kind"].append(column.kind.value)
        lines["cause"].append(
            "missing" if np.isnan(before) else "unseen" if before == -2 and not is_number else "corrupt"
        )
        lines["observed"].append(None if np.isnan(before) else _text(schema, position, before))
        lines["restored"].append(None if np.isnan(after) else _text(schema, position, after))
        lines["low"].append(after - column.scale if is_number else None)
        lines["high"].append(after + column.scale if is_number else None)
        lines["p_value"].append(None if np.isnan(before) else 1 / (5 + row))
        lines["probability"].append(0.97)
        lines["donors"].append([12, 85, 301])
    return Seam.of(**lines) if lines["row"] else Seam.of(row=[])


def _text(schema: Schema, position: int, value: float) -> str:
    column = schema.columns[position]
    if column.modelled_as == "number":
        return repr(float(value))
    return str(column.levels[int(value)]) if value >= 0 else "Atlantis"


def mixed(n_rows: int = 200, facts: dict[str, Any] | None = None) -> Restoration:
    return restored(*mixed_tables(n_rows), facts)


def images(n_rows: int = 60, side: int = 16) -> Restoration:
    """Discs with a bar across some of them."""
    rng = np.random.default_rng(42)
    y, x = np.mgrid[:side, :side]
    centre = rng.uniform(side * 0.3, side * 0.7, (n_rows, 2, 1, 1))
    clean = np.exp(-(((y - centre[:, 0]) ** 2 + (x - centre[:, 1]) ** 2) / side))
    clean += 0.02 * rng.standard_normal(clean.shape)
    damaged = clean.copy()
    for i in range(0, n_rows, 5):
        top = int(rng.integers(0, side - 4))
        damaged[i, top : top + 4] = rng.random((4, side))
    damaged[1, 2:5, 2:9] = np.nan
    facts = {**FACTS, "grid_shape": [side, side]}
    return restored(clean.reshape(n_rows, -1), damaged.reshape(n_rows, -1), facts, small_integers=0)


def series(n_rows: int = 900) -> Restoration:
    """Two sensors along time, with spikes, a stuck spell and a gap."""
    rng = np.random.default_rng(42)
    t = np.arange(n_rows)
    clean = np.column_stack([np.sin(t / 40), np.cos(t / 25) + t / n_rows]) + 0.05 * rng.standard_normal((n_rows, 2))
    damaged = clean.copy()
    damaged[rng.choice(n_rows, 12, replace=False), 0] += 3
    damaged[400:460, 1] = damaged[400, 1]
    damaged[700:730, 0] = np.nan
    names = {0: "pressure", 1: "temperature"}
    frames = [pl.DataFrame({names[j]: table[:, j] for j in names}, nan_to_null=True) for table in (clean, damaged)]
    return restored(*frames, {**FACTS, "ordered": True})
