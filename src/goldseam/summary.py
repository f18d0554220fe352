"""A restoration in figures: one plain dict, of which every report is a view.

The dict is described by `summary.schema.json` beside this module; its `version` tells readers what to expect. It holds
sums, smallest and largest values over fixed bins, so that the summaries of the batches of a table add up to that of
the whole (`combine`): a table that never fits in memory has a report too.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from goldseam.errors import InputError
from goldseam.schema import MISSING, UNSEEN, Blocks, Column, Schema

if TYPE_CHECKING:
    from goldseam.seam import Restoration

__all__ = ["VERSION", "combine", "json_schema", "rows_before_and_after", "summarise"]

VERSION: Final = "1.0"
BINS: Final = 24
LEVELS: Final = 20
TIME_BINS: Final = 512
TIMELINES: Final = 64
EXAMPLES: Final = 12
GRID_SIDE: Final = 64
CAUSES: Final = ("missing", "corrupt", "noise", "unseen", "refused")

Numbers = NDArray[np.float64]
Flags = NDArray[np.bool_]


def json_schema() -> dict[str, Any]:
    """The published JSON schema of a summary.

    >>> json_schema()["properties"]["version"]["const"] == VERSION
    True
    """
    return json.loads(files("goldseam").joinpath("summary.schema.json").read_text(encoding="utf-8"))


def summarise(restoration: Restoration) -> dict[str, Any]:
    """The restoration in figures: a plain dict that JSON can hold, described by `json_schema()`."""
    facts = plain(restoration.facts)
    schema, changed = restoration.schema, restoration.changed
    before = restoration.incoming.encode(schema)
    after = _after(schema, before, restoration.blocks, changed)
    first_row = int(facts.get("first_row", 0))
    return {
        "version": VERSION,
        "mode": facts.get("mode") or _mode(restoration),
        "table": {"rows": len(changed), "columns": len(schema.columns), "first_row": first_row},
        "seam": _seam_figures(restoration),
        "suspect": {"cells": int(restoration.suspect.sum()), "rows": int(restoration.suspect.any(axis=1).sum())},
        "row_p_values": _p_value_counts(restoration.row_p_values),
        "columns": _columns(restoration, before, after, facts),
        "grid_shape": facts.get("grid_shape"),
        "examples": _examples(restoration, facts.get("grid_shape"), first_row),
        "timelines": _timelines(schema, before, after, changed, first_row) if facts.get("ordered") else None,
        "promises": facts.get("promises", []),
        "reference": {key: facts.get("reference", {}).get(key) for key in ("rows", "trust")},
        "audit": facts.get("audit"),
        "how": facts.get("how", {}),
    }


def plain(value: Any) -> Any:
    """Figures and names as JSON holds them: no numpy scalars, null for what is not finite, text for the rest.

    >>> plain({"a": np.float64("nan"), "b": (np.int64(2), True), "c": np.array([1.5])})
    {'a': None, 'b': [2, True], 'c': [1.5]}
    """
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (str, bool, int)) else str(value)


def _mode(restoration: Restoration) -> str:
    """A restoration that changed nothing, though its seam has repairs to offer, was a check."""
    offered = any(count for cause, count in restoration.seam.count_by_cause().items() if cause != "refused")
    return "check" if offered and not restoration.changed.any() else "restore"


def _after(schema: Schema, before: Blocks, restored: Blocks, changed: Flags) -> Blocks:
    numbers = np.where(changed[:, list(schema.number_positions)], restored.numbers, before.numbers)
    codes = np.where(changed[:, list(schema.category_positions)], restored.codes, before.codes)
    return Blocks(numbers, codes)


def _seam_figures(restoration: Restoration) -> dict[str, Any]:
    frame = restoration.seam.frame
    return {
        "lines": frame.height,
        "rows": frame["row"].n_unique() if frame.height else 0,
        "cells_changed": int(restoration.changed.sum()),
        "rows_changed": int(restoration.changed.any(axis=1).sum()),
        "by_cause": restoration.seam.count_by_cause(),
        "rejected": len(restoration.rejected),
    }


def _p_value_counts(p_values: Numbers | None) -> list[int] | None:
    """Rows by p-value, in twenty bins of equal width."""
    if p_values is None:
        return None
    return np.histogram(p_values[np.isfinite(p_values)], bins=20, range=(0.0, 1.0))[0].tolist()


# ---------------------------------------------------------------------------------------------------- columns


def _columns(restoration: Restoration, before: Blocks, after: Blocks, facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    schema = restoration.schema
    counted: dict[str, dict[str, int]] = {name: dict.fromkeys(CAUSES, 0) for name in schema.names}
    for name, cause, count in restoration.seam.frame.group_by("column", "cause").len().iter_rows():
        counted[name][cause] = count
    references = (facts.get("reference") or {}).get("columns") or {}
    within = {at: i for block in (schema.number_positions, schema.category_positions) for i, at in enumerate(block)}
    audited = {row.get("name"): row for row in (facts.get("audit") or {}).get("columns") or []}
    return [
        {
            "name": column.name,
            "kind": column.kind.value,
            "by_cause": counted[column.name],
            "cells_changed": int(restoration.changed[:, position].sum()),
            **_distributions(column, within.get(position, -1), before, after, references.get(column.name)),
            "noise": (facts.get("noise") or {}).get(column.name),
            "restorable": (audited.get(column.name) or {}).get("restorable"),
        }
        for position, column in enumerate(schema.columns)
    ]


def _distributions(
    column: Column, block: int, before: Blocks, after: Blocks, reference: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Before, after and the reference over the same bins or levels; null for columns that are not modelled."""
    if column.modelled_as == "number":
        edges = np.asarray((reference or {}).get("edges") or _edges(column), dtype=np.float64)
        shown = {"before": before.numbers[:, block], "after": after.numbers[:, block]}
        counts: dict[str, Any] = {key: _number_counts(values, edges) for key, values in shown.items()}
        behind = (reference or {}).get("counts") if (reference or {}).get("edges") else None
        return {"edges": edges.tolist(), "levels": None, **counts, "reference": behind}
    if column.modelled_as == "category":
        levels = column.levels[:LEVELS]
        shown_codes = {"before": before.codes[:, block], "after": after.codes[:, block]}
        counts = {key: _level_counts(codes, len(levels)) for key, codes in shown_codes.items()}
        names = [str(level) for level in levels]
        return {"edges": None, "levels": names, **counts, "reference": _reference_levels(names, reference)}
    return {"edges": None, "levels": None, "before": None, "after": None, "reference": None}


def _edges(column: Column) -> list[float]:
    """Bins over what the reference held, from the schema alone, so that every batch has the same."""
    low, high = column.low, column.high
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        low, high = column.center - 3 * column.scale, column.center + 3 * column.scale
    return np.linspace(low, high, BINS + 1).tolist()


def _number_counts(values: Numbers, edges: Numbers) -> dict[str, Any]:
    seen = values[~np.isnan(values)]
    return {
        "counts": _binned(seen, edges).tolist(),
        "below": int((seen < edges[0]).sum()),
        "above": int((seen > edges[-1]).sum()),
        "missing": len(values) - len(seen),
        "smallest": float(seen.min()) if len(seen) else None,
        "largest": float(seen.max()) if len(seen) else None,
    }


def _binned(values: Numbers, edges: Numbers) -> NDArray[np.int64]:
    """Counts over bins; bins of one width need no sorting, and numpy counts them alike to the last value."""
    low, high = edges[0], edges[-1]
    if low < high and np.array_equal(edges, np.linspace(low, high, len(edges))):
        return np.histogram(values, bins=len(edges) - 1, range=(low, high))[0]
    return np.histogram(values, bins=edges)[0]


def _level_counts(codes: NDArray[np.int32], n_levels: int) -> dict[str, Any]:
    return {
        "counts": np.bincount(codes[(codes >= 0) & (codes < n_levels)], minlength=n_levels).tolist(),
        "other": int((codes >= n_levels).sum()),
        "unseen": int((codes == UNSEEN).sum()),
        "missing": int((codes == MISSING).sum()),
    }


def _reference_levels(names: Sequence[str], reference: Mapping[str, Any] | None) -> list[int] | None:
    if not reference or not reference.get("levels"):
        return None
    counted = dict(zip(map(str, reference["levels"]), reference["counts"], strict=True))
    return [int(counted.get(name, 0)) for name in names]


# --------------------------------------------------------------------------------------- rows: examples and time


def _examples(restoration: Restoration, grid_shape: Sequence[int] | None, first_row: int) -> list[dict[str, Any]]:
    """The rows with most damage as pictures, when the columns are the cells of a grid."""
    if not grid_shape or math.prod(grid_shape) != len(restoration.schema.columns):
        return []
    touched = restoration.suspect | restoration.changed
    damage = touched.sum(axis=1)
    worst = np.array([row for row in np.argsort(-damage, kind="stable")[:EXAMPLES] if damage[row]], dtype=np.int64)
    before, after = rows_before_and_after(restoration, worst)
    return [
        {
            "row": first_row + int(row),
            "damage": int(damage[row]),
            "before": _picture(before[i], grid_shape),
            "after": _picture(after[i], grid_shape),
            "touched": _picture(touched[row].astype(np.float64), grid_shape),
        }
        for i, row in enumerate(worst)
    ]


def rows_before_and_after(restoration: Restoration, rows: NDArray[np.int64]) -> tuple[Numbers, Numbers]:
    """Some rows in full, as numbers: also columns modelled as categories or not at all, as flat pixels are."""
    schema = restoration.schema
    before = np.full((len(rows), len(schema.columns)), np.nan)
    restored = before.copy()
    for position, column in enumerate(schema.columns):
        values = getattr(restoration.incoming.cells(column.name, schema.missing_values), "values", None)
        before[:, position] = np.nan if values is None else values[rows]
    restored[:, list(schema.number_positions)] = restoration.blocks.numbers[rows]
    for block, position in enumerate(schema.category_positions):
        levels = np.array([*map(_as_number, schema.columns[position].levels), np.nan])  # codes below zero hit the end
        restored[:, position] = levels[np.maximum(restoration.blocks.codes[rows, block], -1)]
    return before, np.where(restoration.changed[rows], restored, before)


def _as_number(level: object) -> float:
    return float(level) if isinstance(level, (int, float)) else math.nan


def _picture(values: Numbers, grid_shape: Sequence[int]) -> list[list[float | None]]:
    """A row as a grid of at most `GRID_SIDE` cells a side, each the mean of what it covers."""
    image = values.reshape(tuple(grid_shape))
    height, width = (math.ceil(side / GRID_SIDE) for side in image.shape)
    padded = np.pad(image, ((0, -image.shape[0] % height), (0, -image.shape[1] % width)), mode="edge")
    tiles = padded.reshape(padded.shape[0] // height, height, padded.shape[1] // width, width)
    return [
        [float(f"{cell:.5g}") if math.isfinite(cell) else None for cell in line] for line in tiles.mean(axis=(1, 3))
    ]


def _timelines(schema: Schema, before: Blocks, after: Blocks, changed: Flags, first_row: int) -> dict[str, Any]:
    """Smallest and largest value over bins of rows; bins are aligned to row 0 of the table, whatever the batch."""
    rows = first_row + np.arange(len(changed))
    per_bin = _rows_per_bin(first_row + len(changed))
    bins = rows // per_bin
    starts = np.flatnonzero(np.diff(bins, prepend=-1))
    positions = schema.number_positions[:TIMELINES]
    return {
        "rows_per_bin": per_bin,
        "bins": bins[starts].tolist(),
        "columns": [
            {
                "name": schema.columns[position].name,
                "changed": np.add.reduceat(changed[:, position], starts, dtype=np.int64).tolist()
                if len(starts)
                else [],
                "before": _extremes(before.numbers[:, block], starts),
                "after": _extremes(after.numbers[:, block], starts),
            }
            for block, position in enumerate(positions)
        ],
    }


def _rows_per_bin(n_rows: int) -> int:
    """A power of two, so that coarser bins are unions of finer ones."""
    return 1 << max(0, math.ceil(math.log2(max(n_rows, 1) / TIME_BINS)))


def _extremes(values: Numbers, starts: NDArray[np.int64]) -> dict[str, list[float | None]]:
    if not len(starts):
        return {"low": [], "high": []}
    return {
        "low": plain(np.fmin.reduceat(values, starts)),
        "high": plain(np.fmax.reduceat(values, starts)),
    }


# ---------------------------------------------------------------------------------------------------- batches


def combine(summaries: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The summary of a table out of those of its batches (disjoint rows, one model)."""
    parts = [dict(summary) for summary in summaries]
    if not parts:
        raise InputError("There is no summary to combine. Hint: pass one summary per batch.")
    names = [[column["name"] for column in part["columns"]] for part in parts]
    if any(part["version"] != VERSION for part in parts) or any(name != names[0] for name in names):
        raise InputError(
            f"Summaries of version {VERSION} with the same columns can be combined; got versions "
            f"{sorted({str(part['version']) for part in parts})} and {len({tuple(name) for name in names})} sets of columns. "
            "Hint: combine batches that one model restored."
        )
    return reduce(_added, parts)


def _added(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    table = {
        "rows": first["table"]["rows"] + second["table"]["rows"],
        "columns": first["table"]["columns"],
        "first_row": min(first["table"]["first_row"], second["table"]["first_row"]),
    }
    examples = sorted(first["examples"] + second["examples"], key=lambda example: (-example["damage"], example["row"]))
    return {
        **first,
        "mode": "restore" if "restore" in (first["mode"], second["mode"]) else "check",
        "table": table,
        "seam": _sums(first["seam"], second["seam"]),
        "suspect": _sums(first["suspect"], second["suspect"]),
        "row_p_values": _sums(first["row_p_values"], second["row_p_values"]),
        "columns": [_added_column(*pair) for pair in zip(first["columns"], second["columns"], strict=True)],
        "examples": examples[:EXAMPLES],
        "timelines": _joined_timelines(first["timelines"], second["timelines"]),
    }


def _added_column(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    added = {key: _sums(first[key], second[key]) for key in ("by_cause", "cells_changed")}
    for key in ("before", "after"):
        a, b = first[key], second[key]
        if a is not None:
            counts = {name: _sums(a[name], b[name]) for name in a if name not in ("smallest", "largest")}
            added[key] = counts | {
                name: _outer(name, a[name], b[name]) for name in a if name in ("smallest", "largest")
            }
    return {**first, **added}


def _outer(name: str, first: float | None, second: float | None) -> float | None:
    seen = [value for value in (first, second) if value is not None]
    return (min(seen) if name in ("smallest", "low") else max(seen)) if seen else None


def _sums(first: Any, second: Any) -> Any:
    """Counts added leaf by leaf."""
    if isinstance(first, Mapping):
        return {key: _sums(first[key], second[key]) for key in first}
    if isinstance(first, list):
        return [_sums(*pair) for pair in zip(first, second, strict=True)]
    return None if first is None or second is None else first + second


def _joined_timelines(first: dict[str, Any] | None, second: dict[str, Any] | None) -> dict[str, Any] | None:
    if first is None or second is None:
        return None
    per_bin = max(first["rows_per_bin"], second["rows_per_bin"])  # the later batch knows the length so far
    owners = [
        part["bins"][i] * part["rows_per_bin"] // per_bin for part in (first, second) for i in range(len(part["bins"]))
    ]
    return {
        "rows_per_bin": per_bin,
        "bins": sorted(set(owners)),
        "columns": [_joined_column(owners, *pair) for pair in zip(first["columns"], second["columns"], strict=True)],
    }


def _joined_column(owners: Sequence[int], first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    changed: dict[int, int] = {}
    for owner, count in zip(owners, first["changed"] + second["changed"], strict=True):
        changed[owner] = changed.get(owner, 0) + count
    joined: dict[str, Any] = {"name": first["name"], "changed": [changed[owner] for owner in sorted(changed)]}
    for when in ("before", "after"):
        joined[when] = {end: _joined_ends(owners, first[when][end] + second[when][end], end) for end in ("low", "high")}
    return joined


def _joined_ends(owners: Sequence[int], values: Sequence[float | None], end: str) -> list[float | None]:
    ends: dict[int, float | None] = {}
    for owner, value in zip(owners, values, strict=True):
        ends[owner] = _outer(end, ends.get(owner), value)
    return [ends[owner] for owner in sorted(ends)]
