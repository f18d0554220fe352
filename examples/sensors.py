"""Restore sensor readings: a pump with six sensors, one of which is always in trouble.

    python examples/sensors.py [FOLDER]

Spikes, a stuck sensor, a gap and a spell with an offset. The rows are a time series, so the report draws every column
along the rows, gold where it was mended.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import polars as pl

import goldseam as gs


def readings(n: int, rng: np.random.Generator, start: int = 0) -> pl.DataFrame:
    """A load that comes and goes, and six sensors that follow it."""
    t = start + np.arange(n)
    load = 1 + 0.35 * np.sin(t / 60) + 0.2 * np.sin(t / 23 + 1) + 0.1 * np.sin(t / 7.1)
    warm = 20 + 18 * (1 + 0.33 * np.sin(t / 60 - 0.4) + 0.18 * np.sin(t / 23 + 0.7))
    columns = {
        "pressure_bar": 2 + 1.6 * load**2,
        "flow_l_min": 40 * load,
        "current_a": 3 + 5 * load,
        "temperature_c": warm,
        "vibration_mm_s": 0.4 + 0.9 * load + 0.01 * warm,
        "voltage_v": 231 - 3 * load,
    }
    noise = {name: 0.03 * np.std(values) * rng.standard_normal(n) for name, values in columns.items()}
    return pl.DataFrame({name: np.round(values + noise[name], 3) for name, values in columns.items()})


def damaged(table: pl.DataFrame, rng: np.random.Generator) -> pl.DataFrame:
    """Spikes in pressure, a stuck flow meter, a gap in temperature, an offset in vibration."""
    cells = {name: table[name].to_numpy().copy() for name in table.columns}
    spikes = rng.choice(table.height, 14, replace=False)
    cells["pressure_bar"][spikes] += rng.choice([-1, 1], 14) * rng.uniform(2, 5, 14)
    cells["flow_l_min"][300:380] = cells["flow_l_min"][300]
    cells["temperature_c"][520:570] = np.nan
    cells["vibration_mm_s"][700:740] += 0.6
    return pl.DataFrame(cells, nan_to_null=True)


def main(folder: Path) -> tuple[gs.Restoration, pl.DataFrame]:
    """The restoration and the truth."""
    rng = np.random.default_rng(3)
    reference, truth = readings(2000, rng), readings(900, rng, start=2000)
    restorer = gs.Restorer(alarm_rate=0.02, random_state=0).fit(reference)
    result = restorer.restore(damaged(truth, rng))
    folder.mkdir(parents=True, exist_ok=True)
    result.seam.write(folder / "seam.parquet")
    result.save_report(folder / "sensors.html", title="Pump 3", ordered=True)
    print(result)
    return result, truth


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "goldseam-demo"))
