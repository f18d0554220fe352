"""Neighbouring cells overwritten together: runs of columns, squares on a grid."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from goldseam.corruption.damage import check_share, simulator
from goldseam.corruption.filling import fill_cells
from goldseam.corruption.sheet import Matrix, Sheet
from goldseam.errors import ParameterError

__all__ = ["overwrite_intervals", "overwrite_squares"]


@simulator("interval")
def overwrite_intervals(
    sheet: Sheet,
    rows: NDArray[np.int64],
    rng: np.random.Generator,
    share: tuple[float, float] = (0.05, 0.5),
    fill: str | float = "uniform",
    snap: str = "auto",
) -> Matrix:
    """Overwrite a run of neighbouring columns, its length a uniform share of the columns (at least one column).

    `fill` says with what: 'uniform', 'marginal', 'copy', 'constant', 'gross' or a number; `snap` whether uniform values
    are moved onto the column's own ('auto': when it has at most 20; 'always', 'never').

    >>> table = np.random.default_rng(0).normal(size=(40, 10))
    >>> damage = overwrite_intervals(table, share=(0.3, 0.3), rows=1.0, random_state=0)
    >>> np.unique(damage.cells.sum(axis=1)).tolist()
    [3]
    """
    low, high = (check_share("share", float(limit)) for limit in share)
    if low > high:
        raise ParameterError(f"share must be (low, high) with low <= high; got {share!r}.")
    n_columns = len(sheet.names)
    cells = np.zeros(sheet.values.shape, dtype=bool)
    for row in rows:
        length = max(1, round(n_columns * rng.uniform(low, high)))
        start = rng.integers(0, n_columns - length + 1)
        cells[row, start : start + length] = True
    return fill_cells(sheet, cells, fill, rng, snap=snap)


@simulator("square")
def overwrite_squares(
    sheet: Sheet,
    rows: NDArray[np.int64],
    rng: np.random.Generator,
    grid: tuple[int, int],
    side: tuple[int, int] = (4, 11),
    fill: str | float = "uniform",
    snap: str = "never",
) -> Matrix:
    """Overwrite a square of an image whose pixels are the columns, row by row on a `grid` of (height, width).

    The side is a whole number between the two of `side`, both included; `fill` and `snap` as in `overwrite_intervals`,
    but uniform values are not snapped by default.
    """
    height, width = grid
    if height * width != len(sheet.names):
        raise ParameterError(
            f"grid {height} x {width} has {height * width} cells, but there are {len(sheet.names)} columns to damage. "
            "Hint: name the pixels in columns."
        )
    smallest, largest = side
    if not 1 <= smallest <= largest <= min(height, width):
        raise ParameterError(f"side must be (low, high) within 1 and {min(height, width)}; got {side!r}.")
    cells = np.zeros((len(sheet.values), height, width), dtype=bool)
    for row in rows:
        length = int(rng.integers(smallest, largest + 1))
        top, left = rng.integers(0, height - length + 1), rng.integers(0, width - length + 1)
        cells[row, top : top + length, left : left + length] = True
    return fill_cells(sheet, cells.reshape(len(cells), -1), fill, rng, snap=snap)
