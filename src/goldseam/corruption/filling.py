"""What stands in a cell after it was overwritten.

| fill | number | category |
|---|---|---|
| uniform | uniform in the reference range; on a lattice one of its values (see `snap`) | any level |
| marginal | the value of a random reference row | the same |
| copy | the value of another row of the table, one donor per row | the same |
| constant | one value per row, uniform in the common range of the columns | any level |
| gross | x 10, or 3 standard deviations up or down, half each | another level |
| a number | that number | the level of that position |
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from goldseam.corruption.sheet import FEW_LEVELS, Matrix, Sheet
from goldseam.errors import ParameterError

__all__ = ["FILLS", "fill_cells", "other_level"]

FILLS = ("uniform", "marginal", "copy", "constant", "gross")
SNAPS = ("auto", "always", "never")


def fill_cells(
    sheet: Sheet, cells: NDArray[np.bool_], fill: str | float, rng: np.random.Generator, *, snap: str = "auto"
) -> Matrix:
    """The sheet's values with the chosen cells overwritten.

    `snap` concerns uniform values: 'auto' takes a column's own values when it has at most 20 of them (continuous noise on
    a lattice would give itself away), 'always' moves to the nearest reference value, 'never' stays uniform.
    """
    if fill not in FILLS and not isinstance(fill, (int, float)):
        raise ParameterError(f"fill must be one of {', '.join(map(repr, FILLS))} or a number; got {fill!r}.")
    if snap not in SNAPS:
        raise ParameterError(f"snap must be one of {', '.join(map(repr, SNAPS))}; got {snap!r}.")
    new = sheet.values.copy()
    donors = _donors(len(new), rng) if fill == "copy" else None
    level = rng.random(len(new)) if fill == "constant" else None
    bounds = _common_range(sheet) if fill == "constant" else (0.0, 0.0)
    for j in range(new.shape[1]):
        rows = np.flatnonzero(cells[:, j])
        if rows.size == 0:
            continue
        if donors is not None:
            new[rows, j] = sheet.values[donors[rows], j]
        elif level is not None:
            new[rows, j] = _constant(sheet, j, level[rows], bounds)
        elif isinstance(fill, str):
            new[rows, j] = _DRAWS[fill](sheet, j, rows, rng, snap)
        else:
            new[rows, j] = fill if sheet.is_number[j] else _level(sheet, j, fill)
    return new


def _donors(n_rows: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """For each row another row."""
    return (np.arange(n_rows) + rng.integers(1, max(n_rows, 2), n_rows)) % max(n_rows, 1)


def _common_range(sheet: Sheet) -> tuple[float, float]:
    """From the least to the greatest number of the reference."""
    lows, highs = sheet.low[sheet.is_number], sheet.high[sheet.is_number]
    return float(np.fmin.reduce(lows, initial=np.inf)), float(np.fmax.reduce(highs, initial=-np.inf))


def _constant(sheet: Sheet, j: int, level: Matrix, bounds: tuple[float, float]) -> Matrix:
    if sheet.is_number[j]:
        return bounds[0] + level * (bounds[1] - bounds[0])
    return np.floor(level * sheet.n_levels[j])


def _level(sheet: Sheet, j: int, value: float) -> float:
    if value not in range(int(sheet.n_levels[j])):
        raise ParameterError(
            f"fill={value!r} is not a position among the {sheet.n_levels[j]} levels of column {sheet.names[j]!r}. "
            "Hint: name the numeric columns in columns."
        )
    return value


def _uniform(sheet: Sheet, j: int, rows: NDArray[np.int64], rng: np.random.Generator, snap: str) -> Matrix:
    if not sheet.is_number[j]:
        return rng.integers(0, sheet.n_levels[j], rows.size).astype(np.float64)
    lattice = sheet.lattice(j)
    if lattice.size == 0:
        return np.full(rows.size, np.nan)
    if snap == "auto" and lattice.size <= FEW_LEVELS:
        return rng.choice(lattice, rows.size)
    drawn = rng.uniform(lattice[0], lattice[-1], rows.size)
    return nearest(lattice, drawn) if snap == "always" else drawn


def nearest(lattice: Matrix, values: Matrix) -> Matrix:
    """The nearest of some sorted values.

    >>> nearest(np.array([0.0, 1.0, 5.0]), np.array([0.4, 3.5, 9.0])).tolist()
    [0.0, 5.0, 5.0]
    """
    right = np.clip(np.searchsorted(lattice, values), 1, max(lattice.size - 1, 1))
    left = right - 1
    right = np.minimum(right, lattice.size - 1)
    return np.where(values - lattice[left] <= lattice[right] - values, lattice[left], lattice[right])


def _marginal(sheet: Sheet, j: int, rows: NDArray[np.int64], rng: np.random.Generator, snap: str) -> Matrix:
    observed = sheet.observed(j)
    return rng.choice(observed, rows.size) if observed.size else np.full(rows.size, np.nan)


def _gross(sheet: Sheet, j: int, rows: NDArray[np.int64], rng: np.random.Generator, snap: str) -> Matrix:
    old = sheet.values[rows, j]
    if not sheet.is_number[j]:
        return other_level(old, int(sheet.n_levels[j]), rng)
    times_ten = rng.random(rows.size) < 0.5
    step = 3 * sheet.sd[j] * rng.choice([-1.0, 1.0], rows.size)
    return np.where(times_ten, 10 * old, old + step)


_DRAWS = {"uniform": _uniform, "marginal": _marginal, "gross": _gross}


def other_level(codes: Matrix, n_levels: int, rng: np.random.Generator) -> Matrix:
    """A level other than the one that stands there; gaps and unseen levels stay.

    >>> other_level(np.array([0.0, 1.0, np.nan]), 2, np.random.default_rng(0)).tolist()
    [1.0, 0.0, nan]
    """
    if n_levels < 2:
        return codes.copy()
    shift = rng.integers(1, n_levels, codes.size)
    return np.where(codes >= 0, (codes + shift) % n_levels, codes)
