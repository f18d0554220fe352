"""What the joint evidence costs: fitting, judging and repairing, with and without the boosted expert."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks.evidence.protocol import SETS, load_case
from benchmarks.harness import seconds, write_results
from goldseam.evidence import fit_evidence
from goldseam.schema import Blocks


def _per_row(call: Callable[[Blocks], object], blocks: Blocks) -> float:
    """Milliseconds per row."""
    return 1e3 * seconds(lambda: call(blocks)) / len(blocks)


def main(quick: bool) -> None:
    rows = []
    for name in ("credit-approval", "image-segmentation", *(() if quick else ("usps01", "g241c"))):
        case = load_case(SETS[name](), 0)
        cells = len(case.schema.modelled_positions)
        clean = case.incoming
        dirty = case.damaged("interval", 0)[0]
        for boosted in (False, True) if cells <= 60 else (False,):
            fit = partial(
                fit_evidence,
                case.reference,
                case.calibration,
                case.schema,
                boosted=boosted,
                rng=np.random.default_rng(0),
            )
            model = fit()
            rows.append(
                {
                    "set": name,
                    "columns": cells,
                    "experts": "Gaussian + boosted" if boosted else "Gaussian",
                    "fit s": seconds(fit, 1),
                    "judge clean ms/row": _per_row(model.judge, clean),
                    "judge damaged ms/row": _per_row(model.judge, dirty),
                    "repair damaged ms/row": _per_row(model.repair, dirty),
                }
            )
    write_results(
        "evidence-speed",
        rows,
        title="Cost of the joint evidence, one core",
        notes="Limit with the Gaussian expert alone: 1 ms per row at 240 columns. Damaged: interval damage in half of the rows.",
        quick=quick,
    )
