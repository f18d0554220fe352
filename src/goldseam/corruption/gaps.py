"""Cells that go missing.

MCAR: every cell with the same probability. MAR: the probability of a gap grows with the rank of another column. MNAR: it
grows with the rank of the value that goes missing. With r the rank in (0, 1) the probability is 1 - (1 - r)^k,
k = rate / (1 - rate): its mean over the rows is the rate.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from goldseam.corruption.damage import check_share, simulator
from goldseam.corruption.sheet import Matrix, Sheet
from goldseam.errors import ParameterError

__all__ = ["make_gaps"]

MECHANISMS = ("mcar", "mar", "mnar")


@simulator("gap", rows=1.0)
def make_gaps(
    sheet: Sheet,
    rows: NDArray[np.int64],
    rng: np.random.Generator,
    rate: float = 0.2,
    mechanism: str = "mcar",
    driver: str | int | None = None,
) -> Matrix:
    """Empty cells at a rate, by mechanism 'mcar', 'mar' or 'mnar' (see the module).

    `driver` names the column that drives 'mar', one of `columns`; it keeps its own cells. Without it every column is
    driven by the one before it. The rate must be below 1 for 'mar' and 'mnar'.

    >>> damage = make_gaps(np.arange(20.0).reshape(10, 2) / 3, rate=0.5, random_state=0)
    >>> int(np.isnan(damage.table).sum()) == int(damage.cells.sum())
    True
    """
    if mechanism not in MECHANISMS:
        raise ParameterError(f"mechanism must be one of {', '.join(map(repr, MECHANISMS))}; got {mechanism!r}.")
    check_share("rate", rate)
    probability = np.full((rows.size, len(sheet.names)), float(rate))
    if mechanism != "mcar":
        probability = _driven(sheet.values[rows], _drivers(sheet, mechanism, driver), rate)
    new = sheet.values.copy()
    chosen = new[rows]
    chosen[rng.random(probability.shape) < probability] = np.nan
    new[rows] = chosen
    return new


def _drivers(sheet: Sheet, mechanism: str, driver: str | int | None) -> NDArray[np.int64]:
    """The column whose rank decides, for each column; -1 where no cell may go."""
    own = np.arange(len(sheet.names))
    if mechanism == "mnar":
        return own
    if len(own) < 2:
        raise ParameterError("mechanism='mar' needs at least 2 columns; got 1. Hint: mechanism='mnar'.")
    if driver is None:
        return np.roll(own, 1)
    position = sheet.position(driver)
    return np.where(own == position, -1, position)


def _driven(values: Matrix, drivers: NDArray[np.int64], rate: float) -> Matrix:
    if rate >= 1:
        raise ParameterError(f"rate must be below 1 when gaps depend on values; got {rate!r}.")
    rank = np.apply_along_axis(_rank, 0, values) if len(values) else values
    probability = 1 - (1 - rank[:, drivers]) ** (rate / (1 - rate))
    return np.where(drivers >= 0, probability, 0.0)


def _rank(values: Matrix) -> Matrix:
    """Ranks in (0, 1), ties shared, the middle for gaps."""
    rank = np.full(values.shape, 0.5)
    seen = ~np.isnan(values)
    rank[seen] = (rankdata(values[seen]) - 0.5) / max(int(seen.sum()), 1)
    return rank
