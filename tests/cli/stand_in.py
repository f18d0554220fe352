"""A restorer that is simple enough to predict: a cell outside the reference's range, or empty, becomes the median.

The tests of the command line's machinery (streams, signals, journals, formats) run it in place of the real one, so that
they know every byte that must come out and do not wait for a fit. Run as a program it is `goldseam` with that restorer.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from goldseam import model_file
from goldseam.model_file import save
from goldseam.schema import MISSING, UNSEEN, Blocks, Schema
from goldseam.seam import Restoration, Seam
from goldseam.tables import Table, learn_schema


@dataclass(frozen=True)
class Levels:
    rows: int

    def to_dict(self) -> dict[str, int]:
        return {"rows": self.rows}


@dataclass(frozen=True)
class Findings:
    text: str
    row: int = 0

    def to_dict(self) -> dict[str, Any]:
        return {"text": self.text, "row": self.row, "damage": [{"kind": "out of range"}]}

    def __str__(self) -> str:
        return self.text


class StandIn:
    """The interface of `Restorer`, with ranges and medians."""

    def __init__(self, alarm_rate: float = 0.05, seconds: float = 0.0, **settings: Any) -> None:
        self.alarm_rate, self.seconds = alarm_rate, seconds
        self.settings = {key: value for key, value in settings.items() if key in ("kinds", "missing_values")}
        self.n_jobs: int | None = None
        self.error_control = settings.get("error_control", "row")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {"alarm_rate": self.alarm_rate}

    def set_params(self, n_jobs: int | None) -> StandIn:
        self.n_jobs = n_jobs
        return self

    def fit(self, reference: Any) -> StandIn:
        table = Table.read(reference)
        self.schema_: Schema = learn_schema(table, **{k: v for k, v in self.settings.items() if v})
        blocks = table.encode(self.schema_)
        self.medians_ = np.nanmedian(blocks.numbers, axis=0) if blocks.numbers.size else np.empty(0)
        self.audit_ = Findings("Sees what is out of range, nothing else.")
        return self

    def save(self, path: str) -> None:
        save(self, path)

    def survey(self, batches: Any) -> Levels:
        return Levels(sum(Table.read(batch).n_rows for batch in batches))

    def check(self, table: Any, levels: Any = None, first_row: int = 0) -> Restoration:
        return self._judged(table, first_row, "check")

    def restore(self, table: Any, levels: Any = None, first_row: int = 0) -> Restoration:
        return self._judged(table, first_row, "restore")

    def explain(self, table: Any, row: int, levels: Any = None) -> Findings:
        found = self.check(table)
        return Findings(f"suspect: {', '.join(found.schema.names[j] for j in np.flatnonzero(found.suspect[row]))}")

    def _judged(self, native: Any, first_row: int, mode: str) -> Restoration:
        time.sleep(self.seconds)
        table, schema = Table.read(native), self.schema_
        before = table.encode(schema)
        suspect, changed = self._masks(before)
        after = self._mended(before)
        lines = self._lines(schema, before, after, suspect, changed, first_row)
        changed = changed if mode == "restore" else np.zeros_like(changed)
        facts = {"first_row": first_row, "mode": mode}
        return Restoration(table, schema, after, changed, suspect, lines, np.full(len(before), 0.5), facts)

    def _masks(self, blocks: Blocks) -> tuple[Any, Any]:
        schema = self.schema_
        suspect = np.zeros((len(blocks), len(schema.columns)), dtype=bool)
        empty = suspect.copy()
        for j, (position, column) in enumerate(zip(schema.number_positions, schema.numbers, strict=True)):
            values = blocks.numbers[:, j]
            suspect[:, position] = (values < column.low) | (values > column.high)
            empty[:, position] = np.isnan(values)
        for j, position in enumerate(schema.category_positions):
            suspect[:, position] = blocks.codes[:, j] == UNSEEN
            empty[:, position] = blocks.codes[:, j] == MISSING
        return suspect, suspect | empty

    def _mended(self, blocks: Blocks) -> Blocks:
        numbers = np.broadcast_to(self.medians_, blocks.numbers.shape).copy()
        return Blocks(numbers, np.zeros_like(blocks.codes))

    def _lines(self, schema: Schema, before: Blocks, after: Blocks, suspect: Any, changed: Any, first_row: int) -> Seam:
        cells = [(int(r), int(c)) for r, c in zip(*np.nonzero(changed), strict=True)]
        columns = [schema.columns[c] for _, c in cells]
        return Seam.of(
            row=[first_row + r for r, _ in cells],
            column=[column.name for column in columns],
            kind=[column.kind.value for column in columns],
            cause=["corrupt" if suspect[r, c] else "missing" for r, c in cells],
            observed=[_text(schema, before, r, c) for r, c in cells],
            restored=[_text(schema, after, r, c) for r, c in cells],
        )


def _text(schema: Schema, blocks: Blocks, row: int, position: int) -> str | None:
    column = schema.columns[position]
    if column.modelled_as == "number":
        value = float(blocks.numbers[row, schema.number_positions.index(position)])
        return None if np.isnan(value) else repr(value)
    code = int(blocks.codes[row, schema.category_positions.index(position)])
    return None if code == MISSING else "?" if code == UNSEEN else str(column.levels[code])


@contextmanager
def installed() -> Iterator[None]:
    """Let the command line use the stand-in, for a while."""
    real_module, real_names = sys.modules.get("goldseam.restorer"), model_file.STORABLE
    module = ModuleType("goldseam.restorer")
    vars(module).update({"Restorer": StandIn, "StandIn": StandIn, "Findings": Findings, "Levels": Levels})
    for cls in (StandIn, Findings):
        cls.__module__ = "goldseam.restorer"
    sys.modules["goldseam.restorer"] = module
    model_file.STORABLE = real_names | {"restorer.StandIn", "restorer.Findings"}  # type: ignore[misc]
    try:
        yield
    finally:
        model_file.STORABLE = real_names  # type: ignore[misc]
        del sys.modules["goldseam.restorer"]
        if real_module is not None:
            sys.modules["goldseam.restorer"] = real_module


if __name__ == "__main__":
    from goldseam.cli import main

    with installed():
        main()
