"""Fill by regression on the context: a Gaussian conditional mean around the row's own neighbours.

    y_m = s_m - w P_mm^(-1) P_mo (x_o - s_o),   s = mean of the donors,  P = (covariance + ridge)^(-1)        (S-28)

That is the conditional mean given the context, corrected by what it misses on the donors (it is linear, so the average
over the donors is its value at their mean). The weight w in {0, 1/2, 1} is chosen on reference rows with hidden runs, the
regression being fitted on the other half of the reference: the smallest one that is not worse than the best by more
than a standard error (S-29). Numbers only: categories take the donors' most frequent level.

| equation | function |
|---|---|
| P | `learn_regression` |
| w (S-29) | `best_weight` |
| (S-28) | `regressed` |
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from goldseam.separation.fill_kernels import regress_cells
from goldseam.separation.reference import Reference, in_row_blocks

__all__ = ["ContextRegression", "best_weight", "learn_regression", "regressed"]

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]

RIDGE = 0.1  # of the median variance
N_TRIALS = 200  # reference rows that choose the weight
WEIGHTS = (0.0, 0.5, 1.0)
MOST_COLUMNS = 2048  # above, a precision matrix would outgrow the reference: the weight is 0


@dataclass(frozen=True, eq=False)
class ContextRegression:
    """Precision of the numeric columns in scaled units, and the weight of the regression."""

    precision: FloatArray
    weight: float


def learn_regression(reference: Reference, n_donors: int) -> ContextRegression:
    """Fit on all reference rows; choose the weight on half of them with the regression of the other half."""
    scaled = reference.numbers
    if not 0 < scaled.shape[1] <= MOST_COLUMNS:
        return ContextRegression(np.empty((0, 0)), 0.0)
    half = len(scaled) // 2
    tried = np.arange(half, min(len(scaled), half + N_TRIALS))
    weight = best_weight(*_trials(reference, _precision(scaled[:half]), tried, n_donors))
    return ContextRegression(_precision(scaled) if weight else np.empty((0, 0)), weight)


def best_weight(misfit: FloatArray, shift: FloatArray) -> float:
    """(S-29) The smallest weight within one standard error of the best; `misfit` = truth - mean of the donors.

    >>> best_weight(np.array([[2.0], [-1.9], [2.1]]), np.array([[-2.0], [2.0], [-2.0]]))
    1.0
    """
    errors = np.stack([((misfit + weight * shift) ** 2).sum(axis=1) for weight in WEIGHTS])
    best = int(np.argmin(errors.sum(axis=1)))
    loss = errors - errors[best]
    spread = loss.std(axis=1, ddof=1) / np.sqrt(loss.shape[1]) if loss.shape[1] > 1 else np.zeros(len(loss))
    return WEIGHTS[int(np.argmax(loss.mean(axis=1) <= spread))]


def regressed(
    reference: Reference,
    fitted: ContextRegression,
    filled: FloatArray,
    hidden: BoolArray,
    donors: IntArray,
    trust: FloatArray | None = None,
    n_jobs: int | None = None,
) -> FloatArray:
    """(S-28) for the hidden numeric cells of rows that the donors have filled; other cells come back as they are.

    Nothing is put outside the range of the reference.
    """
    if fitted.weight == 0.0:
        return filled
    return _moved(reference, fitted.precision, fitted.weight, reference.range, filled, hidden, donors, trust, n_jobs)


def _moved(
    reference: Reference,
    precision: FloatArray,
    weight: float,
    limits: tuple[FloatArray, FloatArray],
    filled: FloatArray,
    hidden: BoolArray,
    donors: IntArray,
    trust: FloatArray | None = None,
    n_jobs: int | None = None,
) -> FloatArray:
    columns, numbers = np.flatnonzero(~reference.is_category), reference.numbers
    units = tuple(array[columns] for array in (reference.center, reference.scale, *limits))
    trusts, result = np.ones(len(reference)) if trust is None else trust, filled.copy()
    in_row_blocks(
        len(filled),
        n_jobs,
        lambda b: regress_cells(result[b], hidden[b], donors[b], columns, units, numbers, trusts, precision, weight),
    )
    return result


def _precision(scaled: FloatArray) -> FloatArray:
    covariance = np.atleast_2d(np.cov(scaled, rowvar=False))
    ridge = RIDGE * float(np.median(np.diag(covariance))) or RIDGE
    return np.asarray(np.linalg.inv(covariance + ridge * np.eye(len(covariance))), dtype=np.float64)


def _trials(
    reference: Reference, precision: FloatArray, rows: IntArray, n_donors: int
) -> tuple[FloatArray, FloatArray]:
    """Hide runs of 5 to 50 % of the tree order: truth minus the donors' mean, and the regression's shift, per number."""
    rng, d = np.random.default_rng(0), reference.n_columns
    hidden = np.zeros((len(rows), d), dtype=bool)
    for i in range(len(rows)):
        length = max(1, round(d * rng.uniform(0.05, 0.5)))
        start = rng.integers(0, d - length + 1)
        hidden[i, reference.tree.order[start : start + length]] = True
    near, _ = reference.nearest(reference.values[rows], hidden, min(n_donors, len(reference) - 1), members=rows)
    filled = reference.completed(reference.values[rows], hidden, near)
    endless = np.full(d, np.inf)
    moved = _moved(reference, precision, 1.0, (-endless, endless), filled, hidden, near)
    truth, mean, best = (reference.scaled_numbers(part) for part in (reference.values[rows], filled, moved))
    known = ~np.isnan(reference.values[rows])[:, ~reference.is_category]
    return np.where(known, truth - mean, 0.0), np.where(known, mean - best, 0.0)
