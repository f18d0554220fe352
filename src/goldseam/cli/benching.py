"""What `goldseam bench` measures: a clean table, damaged on purpose, restored, and compared with the truth."""

from __future__ import annotations

import time
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from goldseam import corruption
from goldseam.cli.cells import table_for
from goldseam.cli.console import table
from goldseam.cli.delimited import Limits
from goldseam.cli.progress import working
from goldseam.cli.session import Session
from goldseam.errors import GoldseamError, InputError
from goldseam.schema import MISSING, Blocks, Schema
from goldseam.tables import Table

__all__ = ["bench_model", "cell_scores", "gain"]

KINDS: Final = {
    "scatter": corruption.scatter_errors,
    "intervals": corruption.overwrite_intervals,
    "units": corruption.mistake_units,
    "categories": corruption.flip_categories,
    "gaps": corruption.make_gaps,
}
Flags = NDArray[np.bool_]


def bench_model(session: Session, restorer: Any, options: dict[str, Any]) -> None:
    """Measure every kind of damage and print the table."""
    clean = _clean_rows(session, restorer.schema_, options["most"])
    with working(f"damaging and restoring {clean.height:,} rows", quiet=options["quiet"], say=session.console.note):
        rows = [line for kind in KINDS if (line := _measured(kind, clean, restorer, options)) is not None]
    data = {"rows": clean.height, "damage": rows}
    headings = ["damage", "found", "alarms", "localised", "restored", "categories", "rows/s"]
    cells = [[row["kind"], *(_show(row[key]) for key in headings[1:6]), f"{row['rows/s']:,.0f}"] for row in rows]
    session.console.result(
        data, f"{clean.height:,} rows, damaged on purpose\n\n" + table(headings, cells, right=range(1, 7))
    )


def _clean_rows(session: Session, schema: Schema, most: int) -> pl.DataFrame:
    parts, have = [], 0
    for batch in session.bad_lines.watched(session.inputs.batches(Limits())):
        parts.append(table_for(batch, schema, session.markers)[0])
        have += len(batch)
        if have >= most:
            break
    if not have:
        raise InputError("The table has no rows to measure on. Hint: give rows that are believed clean.")
    return pl.concat(parts, how="vertical_relaxed").head(most)


def _measured(kind: str, clean: pl.DataFrame, restorer: Any, options: dict[str, Any]) -> dict[str, Any] | None:
    """One kind of damage; None where the table has nothing that it could hit."""
    schema = restorer.schema_
    kinds = {c.name: "passthrough" if c.modelled_as == "nothing" else c.kind.value for c in schema.columns}
    columns = [
        schema.names[i] for i in (schema.category_positions if kind == "categories" else schema.modelled_positions)
    ]
    if not columns or (kind == "units" and not schema.number_positions):
        return None
    try:
        damage = KINDS[kind](clean, rows=options["rows"], columns=columns, kinds=kinds, random_state=options["seed"])
    except GoldseamError as error:
        raise InputError(f"Damage of kind {kind!r} is not possible: {error}") from error
    start = time.perf_counter()
    found = restorer.restore(damage.table)
    seconds = time.perf_counter() - start
    truth, damaged = (Table.read(frame).encode(schema) for frame in (clean, damage.table))
    restored = Table.read(found.table).encode(schema)
    flagged = found.suspect.any(axis=1)
    localised = None if kind == "gaps" else cell_scores(found.suspect, damage.cells)
    return {
        "kind": kind,
        "found": None if kind == "gaps" else _share(flagged, damage.rows),
        "alarms": _share(flagged, ~damage.rows),
        "localised": localised,
        "restored": gain(truth, damaged, restored, schema),
        "categories": right_categories(truth, damaged, restored),
        "rows/s": clean.height / max(seconds, 1e-9),
    }


def _share(flagged: Flags, among: Flags) -> float | None:
    return float(flagged[among].mean()) if among.any() else None


def cell_scores(suspect: Flags, damaged: Flags) -> float:
    """F1 of suspected cells.

    >>> cell_scores(np.array([[True, True]]), np.array([[True, False]]))
    0.666...
    """
    both = int((suspect & damaged).sum())
    return 2 * both / max(1, int(suspect.sum()) + int(damaged.sum()))


def gain(truth: Blocks, damaged: Blocks, restored: Blocks, schema: Schema) -> float | None:
    """1 - squared error after / before over numbers, in units of the column's spread; gaps start at the centre."""
    if not schema.numbers:
        return None
    center = np.array([column.center for column in schema.numbers])
    scale = np.array([column.scale for column in schema.numbers])
    known = ~np.isnan(truth.numbers)
    before, after = (
        np.where(np.isnan(block.numbers), center, block.numbers)[known] for block in (damaged, restored)
    )  # fmt: skip
    true, unit = truth.numbers[known], np.broadcast_to(scale, truth.numbers.shape)[known]
    lost = float((((before - true) / unit) ** 2).sum())
    return 1 - float((((after - true) / unit) ** 2).sum()) / lost if lost else None


def right_categories(truth: Blocks, damaged: Blocks, restored: Blocks) -> float | None:
    """Share of the wrong categories that were put right, less those that were put wrong."""
    known = truth.codes != MISSING
    wrong = (damaged.codes != truth.codes) & known
    right = restored.codes == truth.codes
    if not wrong.any():
        return None
    return float((right & wrong).sum() - (~right & ~wrong & known).sum()) / float(wrong.sum())


def _show(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
