"""What the joint evidence costs: fitting, judging and repairing, with and without the boosted expert."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from benchmarks.evidence.protocol import SETS, Case, load_case
from benchmarks.harness import peak_memory_mb, seconds, write_results
from goldseam import datasets
from goldseam.corruption.protocols import peer_protocol
from goldseam.evidence import fit_evidence
from goldseam.schema import Blocks, Schema
from goldseam.tables import Table, learn_schema

BOOSTED_UP_TO = 60


def _cases(quick: bool) -> Iterator[tuple[str, Case, Blocks]]:
    """Sets of P1 with interval damage in half of the rows, and adult with damage in a twentieth."""
    for name in ("credit-approval", "image-segmentation", *(() if quick else ("usps01", "g241c"))):
        case = load_case(SETS[name](), 0)
        yield name, case, case.damaged("interval", 0)[0]
    yield "adult", *_adult(10_000 if quick else 100_000)


def _adult(n_rows: int) -> tuple[Case, Blocks]:
    frame = datasets.load_adult().complete().frame()
    rng = np.random.default_rng(0)
    order = rng.permutation(len(frame))
    schema = learn_schema(Table.read(frame[order[:7500]]))
    parts = [Table.read(frame[rows]).encode(schema) for rows in (order[:7500], order[7500:9500], order[9500:])]
    case = Case(schema, *parts)
    incoming = parts[2].take(np.resize(np.arange(len(parts[2])), n_rows))
    return case, _hurt(incoming, case, schema, rng)


def _hurt(incoming: Blocks, case: Case, schema: Schema, rng: np.random.Generator) -> Blocks:
    """Interval damage in half of the first tenth of the rows."""
    some = len(incoming) // 10
    dirty = peer_protocol(incoming.take(slice(0, some)), schema, case.reference, "interval", rng).blocks
    rest = incoming.take(slice(some, len(incoming)))
    return Blocks(np.concatenate([dirty.numbers, rest.numbers]), np.concatenate([dirty.codes, rest.codes]))


def main(quick: bool) -> None:
    rows = []
    for name, case, dirty in _cases(quick):
        cells = len(case.schema.modelled_positions)
        for boosted in (False, True) if cells <= BOOSTED_UP_TO else (False,):
            settings = {"boosted": boosted, "rng": np.random.default_rng(0)}
            fit = partial(fit_evidence, case.reference, case.calibration, case.schema, **settings)
            model = fit()
            part = dirty.take(slice(0, 20_000 if boosted else len(dirty)))
            model.repair(part.take(slice(0, 600)))
            rows.append(
                {
                    "set": name,
                    "columns": cells,
                    "experts": "Gaussian + boosted" if boosted else "Gaussian",
                    "rows": len(part),
                    "fit s": seconds(fit, 1),
                    "judge rows/s": len(part) / seconds(partial(model.judge, part), 2),
                    "repair rows/s": len(part) / seconds(partial(model.repair, part), 2),
                    "memory MB so far": peak_memory_mb(),
                }
            )
            print(rows[-1], flush=True)
    write_results(
        "evidence-speed",
        rows,
        title="Cost of the joint evidence, one core",
        notes="Interval damage in half of the rows, of adult in a twentieth. Experts see 800 rows where boosted. Fit: reference "
        "and calibration as in P1, adult 7,500 and 2,000 rows. Repair includes judging.",
        quick=quick,
    )
