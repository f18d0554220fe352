"""Why a row was flagged, in words and figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from goldseam.mending import NO_CAUSE, Mended, Mender
from goldseam.schema import MISSING, UNSEEN, Blocks, Numbers, Schema
from goldseam.seam import CAUSES
from goldseam.separation.encoding import to_values
from goldseam.tables import Table
from goldseam.witnesses import TreeWitness

__all__ = ["Explanation", "explain_row"]


@dataclass(frozen=True)
class Explanation:
    """One row: its p-value, and for every cell what was observed, what its neighbours expect, and how odd that is.

    `cells` are mappings with the keys column, observed, expected, restored, low, high, p_value, probability, cause.
    Under FDR control cells with a p-value up to `cell_limit` are suspect, and a row is flagged for having one; otherwise
    `cell_limit` is None and a row is flagged for its own p-value, or for its noise. Where the attribute tree is among the
    sources, `path` leads from all columns down to the oddest segment: mappings with the keys columns and p_value.
    """

    row: int
    flagged: bool
    p_value: float
    alarm_rate: float
    cells: tuple[Mapping[str, Any], ...]
    donors: tuple[int, ...]
    cell_limit: float | None = None
    path: tuple[Mapping[str, Any], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """A plain dict that JSON can hold."""
        return {
            "row": int(self.row),
            "flagged": self.flagged,
            "p_value": self.p_value,
            "alarm_rate": self.alarm_rate,
            "cell_limit": self.cell_limit,
            "cells": [dict(cell) for cell in self.cells],
            "donors": list(self.donors),
            "path": [dict(node) for node in self.path],
        }

    def __str__(self) -> str:
        verdict = "flagged" if self.flagged else "not flagged"
        odd = sorted(self.cells, key=lambda cell: -cell["probability"] if cell["probability"] is not None else 1.0)
        lines = [f"Row {self.row} is {verdict}: p = {self.p_value:.3g}, {self._rule()}.", *map(_line, odd[:12])]
        if self.path:
            lines.append(f"Oddest segment by the tree: {' > '.join(map(_node, self.path))}.")
        donors = f"Closest reference rows: {', '.join(map(str, self.donors))}." if self.donors else ""
        return "\n".join([*lines, donors]).rstrip()

    def _rule(self) -> str:
        if self.cell_limit is None:
            return f"alarm rate {self.alarm_rate:g}"
        return f"false discovery rate {self.alarm_rate:g}: cells with p up to {self.cell_limit:.3g} are suspect"


def _line(cell: Mapping[str, Any]) -> str:
    probability = "empty" if cell["probability"] is None else f"damaged with probability {cell['probability']:.2f}"
    span = "" if cell["low"] is None else f" ({cell['low']:.4g} to {cell['high']:.4g})"
    cause = f", {cell['cause']}" if cell["cause"] else ""
    never = " (never in the reference)" if cell["cause"] == "unseen" else ""
    return (
        f"  {cell['column']}: {_shown(cell['observed'])}{never}, expected {_shown(cell['expected'])}{span}; "
        f"{probability}{cause}"
    )


def _node(node: Mapping[str, Any]) -> str:
    names = node["columns"]
    span = names[0] if len(names) == 1 else f"{names[0]} .. {names[-1]}"
    return f"{span} (p = {node['p_value']:.3g})"


def _shown(value: Any) -> str:
    return "nothing" if value is None else f"{value:.5g}" if isinstance(value, float) else repr(value)


def explain_row(
    mender: Mender,
    table: Table,
    blocks: Blocks,
    row: int,
    mended: Mended,
    alarm_rate: float,
    cell_limit: float | None,
) -> Explanation:
    """What became of one row (`blocks`, `mended`; its number in the table is `row`), beside a prediction of every cell from
    the cells that are believed."""
    evidence, schema = mender.evidence, mender.schema
    expected = evidence.mend(evidence.rows(blocks), np.where(mended.suspect, 0.0, -np.inf))
    cells = tuple(
        {
            "column": schema.names[position],
            "observed": _observed(table, row, schema, position, blocks),
            "expected": _value(schema, position, Blocks(expected.values, expected.codes)),
            "restored": _value(schema, position, mended.blocks) if mended.changed[0, cell] else None,
            **_figures(mended, schema, position, cell),
        }
        for cell, position in enumerate(schema.modelled_positions)
    )
    donors = tuple(int(i) for i in mended.donors[0] if i >= 0)
    p_value, flagged = float(mended.row_p_values[0]), bool(mended.flagged[0])
    return Explanation(row, flagged, p_value, alarm_rate, cells, donors, cell_limit, _path(mender, blocks))


def _path(mender: Mender, blocks: Blocks) -> tuple[Mapping[str, Any], ...]:
    """From all columns down to the segment with the smallest p-value; of several the one with the fewest columns."""
    heard = [statement.witness for statement in mender.evidence.statements]
    trees = [witness for witness in heard if isinstance(witness, TreeWitness)]
    if not trees:
        return ()
    model, schema = trees[0].model, mender.schema
    tree = model.reference.tree
    p_values = model.scores(to_values(blocks, schema)).node_p_values[0]
    node = int(np.lexsort((tree.size, p_values))[0])
    names = [schema.names[i] for i in schema.modelled_positions]
    path = []
    while node >= 0:
        path.append({"columns": [names[j] for j in tree.columns(node).tolist()], "p_value": float(p_values[node])})
        node = int(tree.parent[node])
    return tuple(path[::-1])


def _observed(table: Table, row: int, schema: Schema, position: int, blocks: Blocks) -> Any:
    """The cell as it stands in the table."""
    cells = table.cells(schema.names[position], schema.missing_values)
    if position in schema.number_positions and isinstance(cells, Numbers):
        return _known(cells.values[row])
    if position in schema.category_positions and blocks.codes[0, schema.category_positions.index(position)] == UNSEEN:
        return table.texts(schema.names[position], np.array([row]), schema.missing_values)[0]
    return _value(schema, position, blocks)


def _value(schema: Schema, position: int, blocks: Blocks) -> Any:
    if position in schema.number_positions:
        number = float(blocks.numbers[0, schema.number_positions.index(position)])
        return None if np.isnan(number) else number
    code = int(blocks.codes[0, schema.category_positions.index(position)])
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
