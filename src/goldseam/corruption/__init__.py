"""Damage on demand: seeded simulators that say which cells they touched.

Each takes a table (pandas, polars, pyarrow, numpy) and returns a `Damage`: the damaged table and the cells whose value
really changed. Cells that did not change come back bit-identical, dtypes stay.

>>> import numpy as np
>>> from goldseam.corruption import scatter_errors
>>> table = np.random.default_rng(0).normal(size=(100, 5))
>>> damage = scatter_errors(table, rate=0.2, rows=0.3, random_state=1)
>>> bool((damage.table[~damage.cells] == table[~damage.cells]).all())
True

`protocols` holds the exact draws of the published experiments. Anomalies on a ring and their labels are in
`goldseam.datasets.make_ring`.
"""

from goldseam.corruption.cells import scatter_errors, swap_cells
from goldseam.corruption.damage import Damage
from goldseam.corruption.gaps import make_gaps
from goldseam.corruption.labels import flip_labels
from goldseam.corruption.noise import add_noise, flip_categories
from goldseam.corruption.segments import overwrite_intervals, overwrite_squares
from goldseam.corruption.sensors import SENSOR_MODES, fail_sensors, stretches
from goldseam.corruption.units import CONVERSIONS, mistake_units

__all__ = [
    "CONVERSIONS",
    "SENSOR_MODES",
    "Damage",
    "add_noise",
    "fail_sensors",
    "flip_categories",
    "flip_labels",
    "make_gaps",
    "mistake_units",
    "overwrite_intervals",
    "overwrite_squares",
    "scatter_errors",
    "stretches",
    "swap_cells",
]
