"""Radial machines on real data with injected failures: does trust help where far rows act only locally?"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from benchmarks.harness import write_results
from benchmarks.margin.failures import gain, one_run, tables

KINDS = ("clean", "noise", "saturate", "dead", "label")
FIRST = 500
"""Splits 500-539 were not looked at while rules and constants were chosen, but for the two figures that the notes name."""
RUNS = {"g241c": 8}


def main(quick: bool) -> None:
    warnings.simplefilter("ignore")
    rows = []
    for name, (X, y, groups, _) in tables().items():
        splits = range(FIRST, FIRST + (2 if quick else RUNS.get(name, 40)))
        for kind in KINDS:
            runs = [
                one_run(X, y, groups, kind, split, 1.0, rivals=False, kernel="rbf", gamma="auto") for split in splits
            ]
            row: dict[str, Any] = {"data": name, "failure": kind}
            for key in ("SVM", "GEM", "oracle", "FA", "det"):
                row[key] = float(np.mean([run[key] for run in runs])) if key in runs[0] else None
            row["GEM - SVM"], row["standard error"] = gain(runs, "GEM", "SVM")
            rows.append({**row, "runs": len(runs)})
        print(name, "done", flush=True)
    notes = (
        "Test error in %; damage and scaling as in margin-failures, rbf kernel, C = 1, gamma = 1 / columns. The oracle is "
        "fitted on the sound rows alone, each at cost C; where the loss does not count, GEM gives the cost of the rows it "
        "distrusts to the others of their class. That rule was chosen on splits 400-419 and on the footsteps; that distrust "
        "wants proof on splits 600-749 of sonar and 600-639 of other sets, after clean sonar had cost .84 on splits 500-539, and "
        "that columns can give it after a first form had cost ionosphere, noise, .24 of its gain there: the splits of this "
        "table are no longer quite held out. On 150 further ones (1000-1149) clean sonar costs +.15 (standard error .07; "
        "without proof +.64, .13)."
    )
    write_results("margin-kernels", rows, title="Radial machines, injected failures", notes=notes, quick=quick)
