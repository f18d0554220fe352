"""Masked copies of rows: some inputs withheld, scattered or in one run (E1).

A model trained on them can predict from the cells that remain believed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["draw_masks"]

MOST_WITHHELD = 0.6


def draw_masks(n_rows: int, n_cells: int, rng: np.random.Generator, most: float = MOST_WITHHELD) -> NDArray[np.bool_]:
    """Which cells to withhold: a share uniform in 0 .. most, half of the rows scattered, half one contiguous run.

    >>> masks = draw_masks(4, 10, np.random.default_rng(0))
    >>> masks.shape, bool(masks.sum(1).max() <= 10)
    ((4, 10), True)
    """
    share = rng.uniform(0.0, most, n_rows)
    scattered = rng.random((n_rows, n_cells)) < share[:, None]
    length = np.floor(share * n_cells)
    start = np.floor(rng.random(n_rows) * (n_cells - length + 1.0))
    cell = np.arange(n_cells)
    run = (cell >= start[:, None]) & (cell < (start + length)[:, None])
    return np.where((rng.random(n_rows) < 0.5)[:, None], scattered, run)
