"""What repairs do where few rows are damaged, and what it helps to say so: Q of `damaged_share` .5 and .1."""

from __future__ import annotations

import numpy as np

from benchmarks.harness import write_results
from benchmarks.restorer.promises import USED
from benchmarks.restorer.tables import load_case, quality_at
from goldseam import Restorer
from goldseam.corruption.protocols import PEER_KINDS

SHARES = (0.5, 0.1)


def main(quick: bool) -> None:
    rows = []
    for name in (*USED[:2],) if quick else USED:
        for expected in SHARES:
            found = [measured(name, seed, expected) for seed in range(1 if quick else 2)]
            rows.append(
                {"set": name, "damaged_share": expected, **{k: np.mean([f[k] for f in found]) for k in found[0]}}
            )
            print(rows[-1], flush=True)
    for expected in SHARES:
        own = [row for row in rows if row["damaged_share"] == expected]
        means = {key: np.mean([row[key] for row in own]) for key in own[0] if key.startswith("Q")}
        rows.append({"set": "mean", "damaged_share": expected, **means})
    notes = (
        "Q of numbers, clean rows counted, when half and a tenth of the rows are damaged as in P1; rows are restored apart, so "
        "both are read off one restored table. damaged_share: what the model was told. Two splits."
    )
    write_results("restorer-shares", rows, title="Few damaged rows", notes=notes, quick=quick)


def measured(name: str, seed: int, expected: float) -> dict[str, float]:
    case = load_case(name, seed)
    model = Restorer(damaged_share=expected, audit=False, denoise=False, kinds=case.kinds, random_state=seed).fit(
        case.reference
    )
    out = {}
    for kind in PEER_KINDS[:4]:
        table, cells = case.damaged(kind, seed)
        dirty, restored = case.blocks(table), case.blocks(model.restore(table).table)
        for share in SHARES:
            out[f"Q {kind} {share:g}"] = quality_at(case, restored, dirty, cells.any(axis=1), share)
    return out
