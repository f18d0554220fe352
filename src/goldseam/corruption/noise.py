"""Small errors everywhere: Gaussian noise on numbers, random flips of categories."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from goldseam.corruption.damage import check_share, simulator
from goldseam.corruption.filling import other_level
from goldseam.corruption.sheet import Matrix, Sheet
from goldseam.errors import ParameterError

__all__ = ["add_noise", "flip_categories"]


@simulator("noise")
def add_noise(
    sheet: Sheet, rows: NDArray[np.int64], rng: np.random.Generator, strength: float = 0.5, flips: float = 0.0
) -> Matrix:
    """Add Gaussian noise of `strength` standard deviations to every number, and flip categories at rate `flips`.

    >>> damage = add_noise(np.arange(20.0).reshape(10, 2) / 3, strength=0.1, random_state=0)
    >>> damage
    Damage(noise: 6 of 20 cells in 3 rows)
    """
    if not strength >= 0:
        raise ParameterError(f"strength must be at least 0 standard deviations; got {strength!r}.")
    new = sheet.values.copy()
    numbers = np.flatnonzero(sheet.is_number)
    new[np.ix_(rows, numbers)] += strength * sheet.sd[numbers] * rng.standard_normal((rows.size, numbers.size))
    return _flipped(sheet, new, rows, rng, check_share("flips", flips)) if flips else new


@simulator("flip")
def flip_categories(sheet: Sheet, rows: NDArray[np.int64], rng: np.random.Generator, rate: float = 0.2) -> Matrix:
    """Replace each category with probability `rate` by another level, all others equally likely."""
    return _flipped(sheet, sheet.values.copy(), rows, rng, check_share("rate", rate))


def _flipped(sheet: Sheet, new: Matrix, rows: NDArray[np.int64], rng: np.random.Generator, rate: float) -> Matrix:
    for j in np.flatnonzero(~sheet.is_number):
        hit = rows[rng.random(rows.size) < rate]
        new[hit, j] = other_level(sheet.values[hit, j], int(sheet.n_levels[j]), rng)
    return new
