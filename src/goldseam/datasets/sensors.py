"""Sensor recordings: one column per channel, one row per instant."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from goldseam.datasets.dataset import Dataset
from goldseam.datasets.flat import check_choice, continuous
from goldseam.datasets.locate import require_folder
from goldseam.datasets.reading import read_fields
from goldseam.datasets.sources import describe
from goldseam.errors import ParameterError

__all__ = ["load_intel_lab", "load_skab", "load_wsn_singlehop"]

_SKAB_CHANNELS = [
    "accelerometer_1",
    "accelerometer_2",
    "current",
    "pressure",
    "temperature",
    "thermocouple",
    "voltage",
    "volume_flow_rate",
]
_PAIRS = {"indoor": (1, 2), "outdoor": (3, 4)}


def load_skab(experiment: int | None = None) -> Dataset:
    """Water-circulation rig, 8 channels at 1 Hz.

    Without `experiment` the anomaly-free recording (9,405 rows, no target); with 0 to 15 one valve experiment of about
    1,100 rows, target 1 while the valve is tampered with, `details['changepoint']` 1 where that changes.
    `details['time']` is the time stamp.
    """
    if experiment is not None and experiment not in range(16):
        raise ParameterError(f"experiment must be None or a number from 0 to 15; got {experiment!r}.")
    file = "anomaly-free.csv.gz" if experiment is None else f"valve1/{experiment}.csv.gz"
    rows = read_fields(require_folder("skab") / file, ";", skip=1)
    details: dict[str, NDArray[np.generic]] = {"time": np.array([row[0] for row in rows], dtype="datetime64[s]")}
    numbers = np.array([row[1:] for row in rows], dtype=np.float64)
    target = None
    if experiment is not None:
        target = numbers[:, 8].astype(np.int64)
        details["changepoint"] = numbers[:, 9].astype(np.int64)
    data = np.ascontiguousarray(numbers[:, :8])
    return Dataset("skab", data, target, continuous(_SKAB_CHANNELS), describe("skab"), details)


def load_wsn_singlehop(place: str = "indoor") -> Dataset:
    """A pair of neighbouring motes, humidity and temperature of each, every 5 s.

    `place` is 'indoor' (motes 1 and 2, 4,417 readings) or 'outdoor' (3 and 4, 5,039). The target is 1 during an event
    made on purpose at one of the motes; `details['label_<mote>']` says at which.
    """
    motes = _PAIRS[check_choice("place", place, tuple(_PAIRS))]
    folder = require_folder("wsn-singlehop")
    tables = [
        np.array(read_fields(folder / f"singlehop_{place}_moteid{mote}_data.txt", None, skip=1), dtype=np.float64)
        for mote in motes
    ]
    shared, *positions = np.intersect1d(tables[0][:, 0], tables[1][:, 0], return_indices=True)
    aligned = [table[rows] for table, rows in zip(tables, positions, strict=True)]
    labels = {f"label_{mote}": table[:, 4].astype(np.int64) for mote, table in zip(motes, aligned, strict=True)}
    names = [f"{quantity}_{mote}" for mote in motes for quantity in ("humidity", "temperature")]
    data = np.hstack([table[:, 2:4] for table in aligned])
    details = {"reading": shared.astype(np.int64), **labels}
    target = np.maximum(*labels.values())
    return Dataset("wsn-singlehop", data, target, continuous(names), describe("wsn-singlehop"), details)


def load_intel_lab(subset: str = "train", *, quantity: str = "temperature") -> Dataset:
    """Fifty sensors in one laboratory every half hour: rows are instants, columns sensors.

    `subset` is 'train' (144 rows), 'test' (the 96 that follow) or 'all'; `quantity` is 'temperature' or 'humidity'.
    """
    check_choice("subset", subset, ("train", "test", "all"))
    check_choice("quantity", quantity, ("temperature", "humidity"))
    folder = require_folder("intel-lab-30min")
    parts = ("Train", "Test") if subset == "all" else (subset.title(),)
    columns = [
        np.array(read_fields(folder / f"intel{quantity.title()}{part}.csv"), dtype=np.float64).T for part in parts
    ]
    kinds = continuous([f"{quantity}_{i}" for i in range(1, 51)])
    return Dataset(
        "intel-lab-30min", np.ascontiguousarray(np.vstack(columns)), None, kinds, describe("intel-lab-30min")
    )
