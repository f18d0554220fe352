"""Noise estimated from a damaged table, with its floors and refusals (F6, F12.8, F12.9)."""

from __future__ import annotations

import numpy as np

from benchmarks.field.settings import PENALTY, SETS, damaged, fitted, load
from benchmarks.harness import write_results
from goldseam.field import noise
from goldseam.field.learning import fit_field

LEVELS = (0.0, 0.05, 0.1, 0.2, 0.5)


def main(quick: bool) -> None:
    rows = []
    for name in SETS[:1] if quick else SETS:
        split = load(name)
        learnt, atoms, p0 = fitted(name)

        def refit(train, name=name, begin=learnt.field):
            return fit_field(train, "block", PENALTY[name], begin=begin, tol=1e-5).field

        floors = noise.measure_floors(split.rows, refit, np.random.default_rng(0))
        for level in LEVELS:
            found = []
            for repeat in range(2 if quick else 1 if name == "adult" else 6):
                X, y = (split.test_numbers, split.test_codes) if level == 0 else damaged(split, level, 0.0, repeat)
                found.append(noise.estimate(learnt.field, atoms, p0, X[:3000], y[:3000]))
                if level == 0:
                    break
            gates = [noise.gate(f, floors) for f in found]
            rows.append(
                {
                    "set": name,
                    "true level": level,
                    "pooled sigma": float(np.mean([f.pooled_sigma for f in found])),
                    "sigma floor": floors.pooled_sigma,
                    "sigma acted on": f"{np.mean([g[1] for g in gates]):.0%}",
                    "mean flip rate": float(np.mean([f.pooled_flip for f in found])),
                    "flip floor": floors.pooled_flip,
                    "flips acted on": f"{np.mean([g[2] for g in gates]):.0%}",
                    "largest error of a column's flip rate": float(
                        np.mean([np.abs(f.flip - level).max() for f in found])
                    ),
                }
            )
            print(rows[-1], flush=True)
    notes = (
        "Level: sd of the noise in standardised units and flip rate of every category. Floors: the largest estimate on clean "
        "held-out training rows, 8 splits. 'Acted on': share of the repeats in which the pooled value passed its floor; below it "
        "nothing is reported and observed cells stay as they are."
    )
    write_results("field-noise", rows, title="Noise levels from a damaged table", notes=notes, quick=quick)
