"""The self-audit: damage rows one holds the truth of, look what is found and mended, and say so.

At fit the restorer keeps some reference rows aside. The audit damages them in several ways, lets the restorer judge
them, and measures, per kind of damage,

==============  =======================================================================================================
`found`         share of damaged rows that were flagged
`localised`     F1 of the suspected cells, over all rows
`restored`      Q = 1 - sum (restored - true)^2 / sum (damaged - true)^2 over the numbers of damaged rows, in standard
                deviations of the column; false repairs count. 0 is doing nothing, 1 is perfect.
`categories`    share of the wrong categories that were put right, less those that were put wrong
`coverage`      share of repaired numbers whose interval holds the truth
`column_mean`   Q when the suspected cells are filled with the column's mean instead
`knn`           Q when they are filled by the five nearest reference rows over the other cells
`times`         how often each held-out row was damaged: counts of rows and cells are of all times together
==============  =======================================================================================================

and per column how much of its spread a repair explains when the cell is simply gone. What stays below `LEAST_FOUND` is
listed as not seen here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.impute import KNNImputer

from goldseam.corruption.protocols import PEER_KINDS, peer_protocol
from goldseam.sampling import LEAST_AUDITED
from goldseam.schema import MISSING, Blocks, Schema

__all__ = ["Audit", "Outcome", "audit", "not_audited", "quality"]

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

LEAST_FOUND: Final = 0.3
LEAST_ROWS: Final = 200  # fewer held-out rows are damaged several times each, every time elsewhere
MOST_ROWS: Final = 400
MOST_NEIGHBOURS_REFERENCE: Final = 1000
WORDS: Final = {
    "interval": "10-40 % of the columns, side by side, overwritten",
    "scatter-marginal": "single cells redrawn from the column's own values",
    "scatter-uniform": "single cells redrawn over the column's range",
    "scale": "single cells ten times or three standard deviations off",
    "noise": "small noise on every cell of a row",
}


@dataclass(frozen=True)
class Outcome:
    """What a restorer made of some rows. Cells are the modelled ones in table order; `low`, `high` those of numbers."""

    blocks: Blocks
    flagged: Flags
    suspect: Flags
    changed: Flags
    low: Floats
    high: Floats


@dataclass(frozen=True)
class Audit:
    """What the restorer can and cannot do on this reference, measured when it was fitted.

    >>> Audit(damage=({"kind": "scale", "found": 0.9, "localised": 0.8, "restored": 0.7},)).cannot_see
    ()
    """

    damage: tuple[Mapping[str, Any], ...] = ()
    columns: tuple[Mapping[str, Any], ...] = ()
    sources: tuple[Mapping[str, Any], ...] = ()
    rows: tuple[tuple[str, int], ...] = ()
    promises: tuple[Mapping[str, Any], ...] = ()
    asked: bool = True
    methods: tuple[Mapping[str, Any], ...] = ()

    @property
    def cannot_see(self) -> tuple[str, ...]:
        """Kinds of damage of which too few rows are found, in words."""
        return tuple(
            f"{WORDS.get(row['kind'], row['kind'])} (found {row['found']:.0%})"
            for row in self.damage
            if row["found"] < LEAST_FOUND
        )

    def to_dict(self) -> dict[str, Any]:
        """A plain dict that JSON can hold."""
        return {
            "damage": [_without_nan(row) for row in self.damage],
            "columns": [_without_nan(row) for row in self.columns],
            "cannot_see": list(self.cannot_see),
            "sources": [dict(row) for row in self.sources],
            "rows": dict(self.rows),
            "promises": [dict(row) for row in self.promises],
            "methods": [dict(row) for row in self.methods],
        }

    def __str__(self) -> str:
        rows = dict(self.rows)
        if not self.damage:
            return "\n".join([not_audited(rows) if self.asked else "Not audited: audit=False.", *_distrusted(rows)])
        lines = [f"Audit on {rows.get('audited', 0)} held-out reference rows, damaged on purpose"]
        lines += [*_distrusted(rows), "", *_text_table(self.damage, _DAMAGE_TITLES)]
        if self.columns:
            worst = sorted(self.columns, key=lambda row: row["restorable"])
            lines += ["", "Share of a column's spread that a repair explains when the cell is gone:"]
            lines += [f"  {_listed(worst[-4:][::-1], 'best')}", f"  {_listed(worst[:4], 'worst')}"]
        if self.methods:
            shown = (f"{row['name']} {row['worth']:.3f}{' (used)' if row['used'] else ''}" for row in self.methods)
            lines += ["", f"Worth in rehearsal: {'; '.join(shown)}"]
        lines += ["", *(f"Promised {p['name']} {p['nominal']:g}: measured {p['measured']:.3f}" for p in self.promises)]
        seen = "; ".join(self.cannot_see) or "nothing that was tried"
        return "\n".join([*lines, f"Cannot see here: {seen}."])

    def _repr_html_(self) -> str:
        from goldseam.report import audit_html

        return audit_html(self.to_dict())


_DAMAGE_TITLES: Final = {
    "kind": "damage",
    "found": "found",
    "localised": "localised",
    "restored": "restored",
    "categories": "categories",
    "coverage": "coverage",
    "column_mean": "column mean",
    "knn": "kNN",
}


def not_audited(rows: Mapping[str, int]) -> str:
    """That the reference is too small to be audited."""
    got = rows.get("reference", 0) - rows.get("distrusted", 0)
    return (
        f"Not audited: {got} reference rows, at least {LEAST_AUDITED} are needed. "
        "Hint: give more reference rows, or audit=False."
    )


def _distrusted(rows: Mapping[str, int]) -> list[str]:
    if not rows.get("distrusted"):
        return []
    return [f"Distrusted and not learnt from: {rows['distrusted']} of {rows['reference']} reference rows."]


def _without_nan(row: Mapping[str, Any]) -> dict[str, Any]:
    """NaN, which JSON does not have, as None."""
    return {key: None if isinstance(value, float) and np.isnan(value) else value for key, value in row.items()}


def _text_table(rows: Sequence[Mapping[str, Any]], titles: Mapping[str, str]) -> list[str]:
    cells = [list(titles.values())] + [[_shown(row.get(key)) for key in titles] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return ["  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]) for line in cells]


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "-" if value is None or not np.isfinite(value) else f"{value:.2f}"


def _listed(rows: Sequence[Mapping[str, Any]], word: str) -> str:
    return f"{word}: " + ", ".join(f"{row['name']} {row['restorable']:.2f}" for row in rows)


# --- measuring --------------------------------------------------------------------------------------------------------


def audit(
    judge: Callable[[Blocks], Outcome],
    fill: Callable[[Blocks], Blocks],
    clean: Blocks,
    reference: Blocks,
    schema: Schema,
    rng: np.random.Generator,
    kinds: Sequence[str] = PEER_KINDS,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Measure a judge of tables on held-out clean rows, a line per kind of damage, and how gaps are filled, a line per column."""
    clean = clean.take(rng.permutation(len(clean))[:MOST_ROWS])
    times = -(-LEAST_ROWS // len(clean))
    often = clean.take(np.tile(np.arange(len(clean)), times))
    lines = [_line(kind, judge, often, reference, schema, rng) | {"times": times} for kind in kinds]
    return lines, _column_lines(fill, clean, reference, schema, rng)


def _line(
    kind: str,
    judge: Callable[[Blocks], Outcome],
    clean: Blocks,
    reference: Blocks,
    schema: Schema,
    rng: np.random.Generator,
) -> dict[str, Any]:
    damage = peer_protocol(clean, schema, reference, kind, rng)
    outcome = judge(damage.blocks)
    hit = damage.rows
    scale = _spread(reference.numbers)
    mask_numbers, mask_codes = _split(outcome.suspect, schema)
    inside = _inside(clean, outcome, schema)
    filled = {
        "column_mean": _filled_by_mean(damage.blocks, mask_numbers, reference),
        "knn": _filled_by_neighbours(damage.blocks, mask_numbers, mask_codes, reference, scale, schema),
    }
    return {
        "kind": kind,
        "size": WORDS[kind],
        "rows": int(hit.sum()),
        "found": _share(outcome.flagged[hit]),
        "localised": f1(outcome.suspect, damage.cells),
        "restored": quality(clean.numbers, damage.blocks.numbers, outcome.blocks.numbers, scale, hit),
        "categories": _categories_righted(clean, damage.blocks, outcome.blocks, hit),
        "coverage": _share(inside),
        "do_nothing": 0.0,
        **{name: quality(clean.numbers, damage.blocks.numbers, new, scale, hit) for name, new in filled.items()},
        "suspect_cells": int(outcome.suspect.sum()),
        "false_cells": int((outcome.suspect & ~damage.cells).sum()),
        "interval_cells": int(inside.size),
        "covered_cells": int(inside.sum()),
    }


def quality(true: Floats, damaged: Floats, restored: Floats, scale: Floats, rows: Flags) -> float:
    """Q over some rows: the share of the squared damage that was undone; NaN where there was none."""
    harm = np.nansum(((damaged - true) / scale)[rows] ** 2)
    left = np.nansum(((restored - true) / scale)[rows] ** 2)
    return float(1.0 - left / harm) if harm > 0 else float("nan")


def f1(found: Flags, truth: Flags) -> float:
    """F1 of flagged cells; NaN where nothing was damaged.

    >>> f1(np.array([True, True, False]), np.array([True, False, True]))
    0.5
    """
    if not truth.any():
        return float("nan")
    return float(2.0 * (found & truth).sum() / (found.sum() + truth.sum()))


def _share(flags: Flags) -> float:
    return float(flags.mean()) if flags.size else float("nan")


def _spread(numbers: Floats) -> Floats:
    if not numbers.shape[1]:
        return np.empty(0)
    spread = np.nanstd(numbers, axis=0)
    return np.where(spread > 0, spread, 1.0)


def _split(cells: Flags, schema: Schema) -> tuple[Flags, Flags]:
    """Cells in table order as those of numbers and of categories."""
    rank = {position: cell for cell, position in enumerate(schema.modelled_positions)}
    return (
        cells[:, [rank[i] for i in schema.number_positions]],
        cells[:, [rank[i] for i in schema.category_positions]],
    )


def _categories_righted(clean: Blocks, damaged: Blocks, restored: Blocks, rows: Flags) -> float:
    wrong = int((damaged.codes != clean.codes)[rows].sum())
    left = int((restored.codes != clean.codes)[rows].sum())
    return 1.0 - left / wrong if wrong else float("nan")


def _inside(clean: Blocks, outcome: Outcome, schema: Schema) -> Flags:
    """For every repaired number whether its interval holds the truth."""
    repaired, _ = _split(outcome.changed, schema)
    known = repaired & np.isfinite(outcome.low) & np.isfinite(outcome.high) & ~np.isnan(clean.numbers)
    return np.asarray(((outcome.low <= clean.numbers) & (clean.numbers <= outcome.high))[known])


def _filled_by_mean(blocks: Blocks, suspect: Flags, reference: Blocks) -> Floats:
    return (
        np.where(suspect, np.nanmean(reference.numbers, axis=0), blocks.numbers)
        if blocks.numbers.size
        else blocks.numbers
    )


def _filled_by_neighbours(
    blocks: Blocks, numbers: Flags, codes: Flags, reference: Blocks, scale: Floats, schema: Schema
) -> Floats:
    """scikit-learn's KNNImputer over standardised numbers and dummies, told our mask."""
    m = blocks.numbers.shape[1]
    if not m or not numbers.any():
        return blocks.numbers
    gone = Blocks(np.where(numbers, np.nan, blocks.numbers), np.where(codes, MISSING, blocks.codes).astype(np.int32))
    imputer = KNNImputer(n_neighbors=5, keep_empty_features=True)
    imputer.fit(_dummies(reference.take(slice(0, MOST_NEIGHBOURS_REFERENCE)), scale, schema))
    rows = np.flatnonzero(numbers.any(axis=1))
    filled = blocks.numbers.copy()
    filled[rows] = imputer.transform(_dummies(gone.take(rows), scale, schema))[:, :m] * scale
    return np.where(numbers, filled, blocks.numbers)


def _dummies(blocks: Blocks, scale: Floats, schema: Schema) -> Floats:
    parts = [blocks.numbers / scale]
    for j, column in enumerate(schema.categories):
        code = blocks.codes[:, j, None]
        hot = (code == np.arange(len(column.levels))) / np.sqrt(2.0)
        parts.append(np.where(code < 0, np.nan, hot))
    return np.concatenate(parts, axis=1)


def _column_lines(
    fill: Callable[[Blocks], Blocks], clean: Blocks, reference: Blocks, schema: Schema, rng: np.random.Generator
) -> list[dict[str, Any]]:
    """Empty every cell once, a tenth of the columns of a row at a time, and see how well it comes back."""
    n, p = len(clean), len(schema.modelled_positions)
    parts = max(2, min(10, p))
    part = np.argsort(rng.random((n, p)), axis=1) % parts
    numbers, codes = np.full(clean.numbers.shape, np.nan), np.full(clean.codes.shape, MISSING)
    for current in range(parts if n * p < 200_000 else 1):
        gone_numbers, gone_codes = _split(part == current, schema)
        filled = fill(
            Blocks(
                np.where(gone_numbers, np.nan, clean.numbers),
                np.where(gone_codes, MISSING, clean.codes).astype(np.int32),
            )
        )
        numbers = np.where(gone_numbers, filled.numbers, numbers)
        codes = np.where(gone_codes, filled.codes, codes)
    spread = _spread(reference.numbers)
    lines = [
        _number_line(column.name, clean.numbers[:, j], numbers[:, j], spread[j])
        for j, column in enumerate(schema.numbers)
    ]
    lines += [
        _category_line(column.name, clean.codes[:, j], codes[:, j], reference.codes[:, j])
        for j, column in enumerate(schema.categories)
    ]
    order = {name: i for i, name in enumerate(schema.names)}
    return sorted(lines, key=lambda line: order[line["name"]])


def _number_line(name: str, true: Floats, mended: Floats, spread: float) -> dict[str, Any]:
    known = ~np.isnan(true) & ~np.isnan(mended)
    error = float(np.sqrt(np.mean((mended - true)[known] ** 2))) if known.any() else float("nan")
    usual = float(np.std(true[known])) if known.any() else float("nan")
    return {
        "name": name,
        "restorable": 1.0 - (error / usual) ** 2 if usual > 0 else float("nan"),
        "error": error,
        "unit": "own units",
        "spread": float(spread),
    }


def _category_line(
    name: str, true: NDArray[np.int32], mended: NDArray[np.int32], reference: NDArray[np.int32]
) -> dict[str, Any]:
    known = (true >= 0) & (mended >= 0)
    mode = np.bincount(reference[reference >= 0]).argmax() if (reference >= 0).any() else 0
    error = _share(mended[known] != true[known])
    usual = _share(true[known] != mode)
    restorable = 1.0 - error / usual if usual > 0 else float("nan")
    return {"name": name, "restorable": restorable, "error": error, "unit": "share wrong", "spread": usual}
