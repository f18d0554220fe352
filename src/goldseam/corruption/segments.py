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
    length = np.maximum(1, np.rint(n_columns * rng.uniform(low, high, rows.size))).astype(np.int64)
    cells = np.zeros(sheet.values.shape, dtype=bool)
    cells[rows] = _runs(n_columns, length, rng)
    return fill_cells(sheet, cells, fill, rng, snap=snap)


def _runs(n_places: int, length: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.bool_]:
    """One run of each length at a random place, (n_runs, n_places)."""
    start = rng.integers(0, n_places - length + 1)[:, None]
    place = np.arange(n_places)
    return np.asarray((place >= start) & (place < start + length[:, None]))


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
    length = rng.integers(smallest, largest + 1, rows.size)
    across, down = _runs(width, length, rng), _runs(height, length, rng)
    cells = np.zeros(sheet.values.shape, dtype=bool)
    cells[rows] = (down[:, :, None] & across[:, None, :]).reshape(rows.size, height * width)
    return fill_cells(sheet, cells, fill, rng, snap=snap)
