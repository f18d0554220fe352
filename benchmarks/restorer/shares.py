"""What repairs do where few rows are damaged: tables that tell for themselves, and models that are told a half or a tenth."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness import write_results
from benchmarks.restorer.promises import USED
from benchmarks.restorer.tables import load_case, quality_at, restored_at
from goldseam import Restorer
from goldseam.corruption.protocols import PEER_KINDS

SHARES = (0.5, 0.1)
TOLD = ("auto", 0.5, 0.1)


def main(quick: bool) -> None:
    rows = []
    for name in (*USED[:2],) if quick else USED:
        for expected in TOLD:
            found = [measured(name, seed, expected) for seed in range(1 if quick else 2)]
            rows.append(
                {"set": name, "damaged_share": expected, **{k: np.mean([f[k] for f in found]) for k in found[0]}}
            )
            print(rows[-1], flush=True)
    for expected in TOLD:
        own = [row for row in rows if row["damaged_share"] == expected]
        means = {key: np.mean([row[key] for row in own]) for key in own[0] if key.startswith("Q")}
        rows.append({"set": "mean", "damaged_share": expected, **means})
    notes = (
        "Q of numbers, clean rows counted, when half and a tenth of the rows are damaged as in P1. damaged_share: what the model "
        "was told; auto: it looks at the table. Two splits."
    )
    write_results("restorer-shares", rows, title="Few damaged rows", notes=notes, quick=quick)


def measured(name: str, seed: int, expected: Any) -> dict[str, float]:
    case = load_case(name, seed)
    model = Restorer(damaged_share=expected, audit=False, denoise=False, kinds=case.kinds, random_state=seed).fit(
        case.reference
    )
    out = {}
    for kind in PEER_KINDS[:4]:
        table, cells = case.damaged(kind, seed)
        dirty, rows = case.blocks(table), cells.any(axis=1)
        for share in SHARES:
            restored = restored_at(model, case, table, rows, share)
            out[f"Q {kind} {share:g}"] = quality_at(case, restored, dirty, rows, share)
    return out
