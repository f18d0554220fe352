"""Several ranked fractions at once (S15): does the rarest of two scores decide rows better than Euclid alone?"""

from __future__ import annotations

from typing import Any

from benchmarks.harness import write_results
from benchmarks.separation import fresh, measures
from benchmarks.separation.measures import quality, run, spread, table_trial, usps_trial

FRACTIONS = {"α=1 (default)": 1.0, "α=.5": 0.5, "rarest of both": (1.0, 0.5)}
DIGITS = {
    "usps 0 vs 1": ((0, 1), (1000, 600, None)),
    "usps 3 vs 8": ((3, 8), (700, 400, 332)),
    "usps 2 vs 7": ((2, 7), (700, 400, None)),
    "usps 4 vs 9": ((4, 9), (700, 400, None)),
    "usps ten digits": (range(10), (1000, 400, 500)),
}


def main(quick: bool) -> None:
    measures.TABLES.update(fresh.TABLES)
    n, studies = 2 if quick else 5, {}
    for name, (digits, sizes) in DIGITS.items():
        trials = [usps_trial(seed, digits, sizes) for seed in range(400, 400 + n)]
        studies[f"{name}, 5 %"] = (trials, {"tree": (16, 16), "alarm_rate": 0.05})
    for name in measures.TABLES:
        trials = [table_trial(name, split) for split in range(200, 200 + n)]
        leaf = 4 if name.startswith("g241") else 2
        studies[f"{name}, 10 %"] = (trials, {"alarm_rate": 0.1, "n_donors": 5, "leaf_size": leaf})
    rows: list[dict[str, Any]] = []
    for name, (trials, common) in studies.items():
        for title, fraction in FRACTIONS.items():
            results = []
            for trial in trials:
                _, found = run(trial, **common, ranked_fraction=fraction)
                figures = quality(trial, found.flagged, found.cells, found.table)
                results.append({key: figures[key] for key in ("FA", "TD", "F1", "Q")})
            rows.append({"data": name, "row decision": title, **spread(results)})
            print(rows[-1], flush=True)
    write_results(
        "separation-fractions",
        rows,
        title="Ranked fractions: one, or the rarest of two",
        notes="Squares in digits, runs in tables; five seeds (400-404) or splits (250-254). The rarest of both is about ten "
        "times as expensive as Euclid alone and is not the default: it wins on hard digits and heavy tails, and loses where "
        "the reference is tiny (sonar, wine).",
        quick=quick,
    )
