"""What repairs do where few rows are damaged: tables that tell for themselves, and models that are told a half or a tenth."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness import write_results
from benchmarks.restorer.promises import USED
from benchmarks.restorer.tables import Case, load_case, quality_at, restored_at
from goldseam import Restorer
from goldseam.corruption.protocols import PEER_KINDS

SHARES = (0.5, 0.1)
TOLD = ("auto", 0.5, 0.1)
SETS = (*USED, "australian", "waveform")


def main(quick: bool) -> None:
    rows, opens = [], []
    for name in SETS[:2] if quick else SETS:
        for expected in TOLD:
            models = [fitted(name, seed, expected) for seed in range(1 if quick else 2)]
            found = [measured(*one, seed) for seed, one in enumerate(models)]
            if expected == "auto":
                opens += [{"set": name, "split": seed, **open_shares(*one, seed)} for seed, one in enumerate(models)]
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
    notes = (
        "Share of openly damaged rows that a survey finds (E-15): in clean rows, and with damage of P1 in half of them. "
        "From .05 on repairs are as bold as in rehearsal."
    )
    write_results("restorer-openness", opens, title="How openly tables are damaged", notes=notes, quick=quick)


def fitted(name: str, seed: int, expected: Any) -> tuple[Case, Restorer]:
    case = load_case(name, seed)
    model = Restorer(damaged_share=expected, audit=False, denoise=False, kinds=case.kinds, random_state=seed)
    return case, model.fit(case.reference)


def open_shares(case: Case, model: Restorer, seed: int) -> dict[str, float | None]:
    kinds = {kind: case.damaged(kind, seed)[0] for kind in PEER_KINDS[:4]}
    return {kind: model.survey([table]).open_share for kind, table in {"clean": case.incoming, **kinds}.items()}


def measured(case: Case, model: Restorer, seed: int) -> dict[str, float]:
    out = {}
    for kind in PEER_KINDS[:4]:
        table, cells = case.damaged(kind, seed)
        dirty, rows = case.blocks(table), cells.any(axis=1)
        for share in SHARES:
            restored = restored_at(model, case, table, rows, share)
            out[f"Q {kind} {share:g}"] = quality_at(case, restored, dirty, rows, share)
    return out
