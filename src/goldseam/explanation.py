"""Why a row was flagged, in words and figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldseam.mending import NO_CAUSE, Mended, Mender
from goldseam.schema import MISSING, UNSEEN, Blocks, Schema
from goldseam.seam import CAUSES

__all__ = ["Explanation", "explain_row"]


@dataclass(frozen=True)
class Explanation:
    """One row: its p-value, and for every cell what was observed, what its neighbours expect, and how odd that is.

    `cells` are mappings with the keys column, observed, expected, low, high, p_value, probability, cause.
    """

    row: int
    p_value: float
    alarm_rate: float
    cells: tuple[Mapping[str, Any], ...]
    donors: tuple[int, ...]

    @property
    def flagged(self) -> bool:
        """Whether the row is flagged at the alarm rate."""
        return self.p_value <= self.alarm_rate

    def to_dict(self) -> dict[str, Any]:
        """A plain dict that JSON can hold."""
        return {
            "row": self.row,
            "flagged": self.flagged,
            "p_value": self.p_value,
            "alarm_rate": self.alarm_rate,
            "cells": [dict(cell) for cell in self.cells],
            "donors": list(self.donors),
        }

    def __str__(self) -> str:
        verdict = "flagged" if self.flagged else "not flagged"
        head = f"Row {self.row} is {verdict}: p = {self.p_value:.3g}, alarm rate {self.alarm_rate:g}."
        odd = sorted(self.cells, key=lambda cell: -cell["probability"] if cell["probability"] is not None else 1.0)
        lines = [_line(cell) for cell in odd[:12]]
        donors = f"Closest reference rows: {', '.join(map(str, self.donors))}." if self.donors else ""
        return "\n".join([head, *lines, donors]).rstrip()


def _line(cell: Mapping[str, Any]) -> str:
    probability = "empty" if cell["probability"] is None else f"damaged with probability {cell['probability']:.2f}"
    span = "" if cell["low"] is None else f" ({cell['low']:.4g} to {cell['high']:.4g})"
    cause = f", {cell['cause']}" if cell["cause"] else ""
    return f"  {cell['column']}: {_shown(cell['observed'])}, expected {_shown(cell['expected'])}{span}; {probability}{cause}"


def _shown(value: Any) -> str:
    return "nothing" if value is None else f"{value:.5g}" if isinstance(value, float) else repr(value)


def explain_row(
    mender: Mender, schema: Schema, blocks: Blocks, row: int, alarm_rate: float, reference_rows: NDArray[np.int64]
) -> Explanation:
    """Take one row through the mender and through a prediction of every cell from the cells that are believed."""
    mended = mender.mend(blocks)
    evidence = mender.evidence
    rows = evidence.rows(blocks)
    expected = evidence.mend(rows, np.where(mended.suspect, 0.0, -np.inf))
    cells = tuple(
        {
            "column": schema.names[position],
            "observed": _value(schema, position, blocks),
            "expected": _value(schema, position, Blocks(expected.values, expected.codes)),
            **_figures(mended, schema, position, cell),
        }
        for cell, position in enumerate(schema.modelled_positions)
    )
    donors = tuple(int(reference_rows[i]) for i in mended.donors[0] if i >= 0)
    return Explanation(row, float(mended.row_p_values[0]), alarm_rate, cells, donors)


def _value(schema: Schema, position: int, blocks: Blocks) -> Any:
    if position in schema.number_positions:
        number = float(blocks.numbers[0, schema.number_positions.index(position)])
        return None if np.isnan(number) else number
    code = int(blocks.codes[0, schema.category_positions.index(position)])
    if code == UNSEEN:
        return "a value the reference never had"
    return None if code == MISSING else schema.columns[position].levels[code]


def _figures(mended: Mended, schema: Schema, position: int, cell: int) -> dict[str, Any]:
    number = schema.number_positions.index(position) if position in schema.number_positions else None
    cause = mended.cause[0, cell]
    return {
        "low": None if number is None else _known(mended.low[0, number]),
        "high": None if number is None else _known(mended.high[0, number]),
        "p_value": _known(mended.p_values[0, cell]),
        "probability": _known(mended.probabilities[0, cell]),
        "cause": None if cause == NO_CAUSE else CAUSES[cause],
    }


def _known(value: np.floating[Any]) -> float | None:
    return float(value) if np.isfinite(value) else None
