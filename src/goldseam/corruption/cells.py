"""Single cells: scattered gross errors, resampled, copied, constant and swapped ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from goldseam.corruption.damage import check_share, simulator
from goldseam.corruption.filling import fill_cells
from goldseam.corruption.sheet import Matrix, Sheet
from goldseam.errors import ParameterError

__all__ = ["scatter_cells", "scatter_errors", "swap_cells"]


@simulator("scatter")
def scatter_errors(
    sheet: Sheet,
    rows: NDArray[np.int64],
    rng: np.random.Generator,
    rate: float = 0.1,
    fill: str | float = "gross",
    at_least_one: bool = True,
    snap: str = "auto",
) -> Matrix:
    """Overwrite single cells, each with probability `rate`, at least one per damaged row unless told otherwise.

    `fill` is 'gross' (x 10, or 3 standard deviations away; another level), 'uniform', 'marginal' (the column's own
    distribution), 'copy' (from another row), 'constant' or a number; `snap` as in `overwrite_intervals`.

    >>> damage = scatter_errors(np.arange(1.0, 41.0).reshape(4, 10), rows=1.0, random_state=0)
    >>> bool(damage.rows.all())
    True
    """
    cells = scatter_cells(sheet.values.shape, rows, rng, check_share("rate", rate), at_least_one)
    return fill_cells(sheet, cells, fill, rng, snap=snap)


def scatter_cells(
    shape: tuple[int, ...], rows: NDArray[np.int64], rng: np.random.Generator, rate: float, at_least_one: bool = True
) -> NDArray[np.bool_]:
    """Where single errors fall: a mask of the shape, True only in the rows given."""
    hit = rng.random((rows.size, shape[1])) < rate
    spare = rng.integers(0, shape[1], rows.size)
    empty = ~hit.any(axis=1) & at_least_one
    hit[empty, spare[empty]] = True
    cells = np.zeros(shape, dtype=bool)
    cells[rows] = hit
    return cells


@simulator("swap")
def swap_cells(sheet: Sheet, rows: NDArray[np.int64], rng: np.random.Generator, n_pairs: int = 1) -> Matrix:
    """Exchange the values of `n_pairs` pairs of numeric columns within a row, as a typist would.

    Gaps stay where they are; a row with too few observed numbers loses pairs.
    """
    numbers = np.flatnonzero(sheet.is_number)
    if not 1 <= n_pairs <= numbers.size // 2:
        raise ParameterError(
            f"n_pairs must be between 1 and {numbers.size // 2}, half of the {numbers.size} numeric columns; got {n_pairs!r}."
        )
    new = sheet.values.copy()
    for row in rows:
        observed = numbers[~np.isnan(sheet.values[row, numbers])]
        half = min(n_pairs, observed.size // 2)
        chosen = rng.choice(observed, 2 * half, replace=False)
        new[row, chosen] = sheet.values[row, np.roll(chosen, half)]
    return new
