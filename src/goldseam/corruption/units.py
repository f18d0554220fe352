"""Numbers in the wrong unit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from goldseam.corruption.cells import scatter_cells
from goldseam.corruption.damage import check_share, simulator
from goldseam.corruption.sheet import Matrix, Sheet
from goldseam.errors import ParameterError

__all__ = ["CONVERSIONS", "mistake_units"]

# name -> (factor, offset)
CONVERSIONS = {
    "x10": (10.0, 0.0),
    "x1000": (1000.0, 0.0),
    "/10": (0.1, 0.0),
    "/1000": (0.001, 0.0),
    "F->C": (5 / 9, -160 / 9),
    "C->F": (1.8, 32.0),
}


@simulator("unit")
def mistake_units(
    sheet: Sheet,
    rows: NDArray[np.int64],
    rng: np.random.Generator,
    conversion: str = "x1000",
    rate: float = 0.1,
    at_least_one: bool = True,
) -> Matrix:
    """Write numbers in another unit: 'x10', 'x1000', '/10', '/1000', 'F->C' or 'C->F', each cell with probability `rate`.

    >>> damage = mistake_units(np.full((3, 1), 100.0), rows=1.0, rate=1.0, conversion="C->F", random_state=0)
    >>> damage.table.ravel().tolist()
    [212.0, 212.0, 212.0]
    """
    if conversion not in CONVERSIONS:
        raise ParameterError(f"conversion must be one of {', '.join(map(repr, CONVERSIONS))}; got {conversion!r}.")
    factor, offset = CONVERSIONS[conversion]
    numbers = np.flatnonzero(sheet.is_number)
    new = sheet.values.copy()
    if numbers.size:
        cells = scatter_cells((len(new), numbers.size), rows, rng, check_share("rate", rate), at_least_one)
        new[:, numbers] = np.where(cells, new[:, numbers] * factor + offset, new[:, numbers])
    return new
