"""Unknown-location damage on the six sets of P1 through `Restorer`: one fit on all clean rows, one `restore` of
every damaged table, against the best peer of each set (P3) and the aim (E9)."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from benchmarks.evidence.protocol import (
    SETS,
    Case,
    Outcome,
    beside_peers,
    load_case,
    mean_over_seeds,
    metrics,
)
from benchmarks.harness import write_results
from goldseam import Restorer
from goldseam.corruption.protocols import PEER_KINDS
from goldseam.schema import Blocks, Schema
from goldseam.tables import Table


def main(quick: bool) -> None:
    seeds = range(1 if quick else 3)
    worst: list[tuple[float, str]] = []
    found = {}
    for name in ["wdbc", "credit-approval"] if quick else SETS:
        fits = [measured(load_case(SETS[name](), seed), seed) for seed in seeds]
        found[name] = mean_over_seeds({kind: [fit[kind] for fit in fits] for kind in PEER_KINDS})
        worst += [(fit[kind]["Q all rows"], f"{name} {kind}") for fit in fits for kind in PEER_KINDS]
        print(name, {kind: {k: round(v, 3) for k, v in one.items()} for kind, one in found[name].items()}, flush=True)
    lowest = ", ".join(f"{what} {q:.3f}" for q, what in sorted(worst)[:4])
    notes = f"""Restorer(audit=False, kinds=...), fitted on the reference and calibration rows of P1 together: it splits them
itself and chooses its method; no rows are held back for an audit. `peer`: the best peer of each set with hindsight (P3);
`aim`: E9. F1: suspect cells. Alarm rate 0.05, {len(seeds)} seeds. Lowest Q of
all rows of a single split: {lowest}."""
    title = "The restorer on damage at unknown places"
    write_results("restorer-peers", beside_peers(found), title=title, notes=notes, quick=quick)


def measured(case: Case, seed: int) -> dict[str, dict[str, float]]:
    """The metrics of one split per kind of damage."""
    kinds = {column.name: column.kind for column in (*case.schema.numbers, *case.schema.categories)}
    reference = pl.concat([as_frame(part, case.schema) for part in (case.reference, case.calibration)])
    model = Restorer(audit=False, kinds=kinds, random_state=seed).fit(reference)
    return {kind: outcome(case, model, *case.damaged(kind, seed)) for kind in PEER_KINDS}


def outcome(case: Case, model: Restorer, dirty: Blocks, cells: Any) -> dict[str, float]:
    table, evidence = as_frame(dirty, case.schema), model.mender_.evidence
    result = model.restore(table)
    found = Outcome(
        -model.score_samples(table), result.flagged, model.cell_scores(table), result.suspect,
        Table.read(result.table).encode(case.schema),
    )  # fmt: skip
    told = evidence.mend(evidence.rows(Table.read(table).encode(model.schema_)), np.where(cells, 0.0, -np.inf))
    return metrics(case, dirty, cells, found, Blocks(told.values, told.codes))


def as_frame(blocks: Blocks, schema: Schema) -> pl.DataFrame:
    """Encoded rows as a table of the modelled columns."""
    parts = {column.name: blocks.numbers[:, j] for j, column in enumerate(schema.numbers)}
    for j, column in enumerate(schema.categories):
        parts[column.name] = np.array(column.levels, dtype=object)[blocks.codes[:, j]].astype(str)
    return pl.DataFrame({schema.columns[i].name: parts[schema.columns[i].name] for i in schema.modelled_positions})
