"""The same defaults on sets that nothing was tuned on: false alarms, detection, localisation, repair."""

from __future__ import annotations

from benchmarks.evidence.peers import SHOWN, measured
from benchmarks.evidence.protocol import UNSEEN_SETS
from benchmarks.harness import write_results
from goldseam.corruption.protocols import PEER_KINDS


def main(quick: bool) -> None:
    rows = []
    for name in ("wine", "new-thyroid") if quick else UNSEEN_SETS:
        found = measured(name, UNSEEN_SETS[name], range(1 if quick else 2))
        rows += [{"set": name, "damage": kind, **{key: found[kind][key] for key in SHOWN}} for kind in PEER_KINDS]
    write_results(
        "evidence-unseen",
        rows,
        title="Joint evidence on sets it was not tuned on",
        notes="Alarm rate 0.05, two seeds, defaults. Calibration sets of 35 to 500 rows: false alarms vary accordingly.",
        quick=quick,
    )
