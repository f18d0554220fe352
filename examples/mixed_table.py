"""Restore a mixed table: visits to a clinic, typed in by hand.

    python examples/mixed_table.py [FOLDER]

Heights in metres instead of centimetres, weights in pounds, blood pressures swapped, empty cells, a ward that does not
exist. The restorer is given a clean year and then a damaged month; the report shows what it made of it.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import polars as pl

import goldseam as gs


def visits(n: int, rng: np.random.Generator) -> pl.DataFrame:
    """Visits in which everything hangs together: age, build, pressure, ward."""
    male = rng.random(n) < 0.48
    age = rng.integers(18, 91, n)
    height = np.where(male, 177, 164) + rng.normal(0, 6, n) - 0.04 * (age - 45)
    bmi = 24 + 0.05 * (age - 45) + rng.normal(0, 2.5, n)
    smoker = rng.random(n) < 0.25
    systolic = 96 + 0.55 * age + 1.3 * (bmi - 24) + 6 * smoker + rng.normal(0, 5, n)
    ward = np.select([systolic > 148, age > 70], ["cardiology", "geriatrics"], "general")
    moved = rng.random(n) < 0.06
    return pl.DataFrame(
        {
            "sex": np.where(male, "male", "female"),
            "age": age,
            "height_cm": np.round(height, 1),
            "weight_kg": np.round(bmi * (height / 100) ** 2, 1),
            "smoker": smoker,
            "systolic": np.rint(systolic).astype(np.int64),
            "diastolic": np.rint(0.5 * systolic + 17 + rng.normal(0, 3, n)).astype(np.int64),
            "ward": np.where(moved, "day clinic", ward),
        }
    )


def damaged(table: pl.DataFrame, rng: np.random.Generator) -> pl.DataFrame:
    """What goes wrong when people type."""
    kind = pl.Series(rng.choice(8, table.height, p=[0.86, 0.03, 0.03, 0.02, 0.02, 0.02, 0.01, 0.01]))
    swapped, pounds = kind == 3, (pl.col("weight_kg") * 2.2046).round(1)
    return table.with_columns(
        height_cm=pl.when(kind == 1).then(pl.col("height_cm") / 100).otherwise("height_cm"),
        weight_kg=pl.when(kind == 2).then(pounds).when(kind == 4).then(None).otherwise("weight_kg"),
        systolic=pl.when(swapped).then("diastolic").when(kind == 5).then(None).otherwise("systolic"),
        diastolic=pl.when(swapped).then("systolic").otherwise("diastolic"),
        age=pl.when(kind == 6).then(pl.col("age") * 10 + 1).otherwise("age"),
        ward=pl.when(kind == 7).then(pl.lit("cardio 2b")).otherwise("ward"),
    )  # fmt: skip


def main(folder: Path) -> tuple[gs.Restoration, pl.DataFrame]:
    """The restoration and the truth."""
    rng = np.random.default_rng(7)
    reference, truth = visits(800, rng), visits(300, rng)
    restorer = gs.Restorer(alarm_rate=0.05, random_state=0).fit(reference)
    result = restorer.restore(damaged(truth, rng))
    folder.mkdir(parents=True, exist_ok=True)
    result.seam.write(folder / "seam.parquet")
    result.save_report(folder / "mixed.html", title="Clinic visits")
    print(result)
    return result, truth


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "goldseam-demo"))
