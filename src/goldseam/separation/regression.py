"""Fill by regression on the context: a Gaussian conditional mean, corrected by what it misses on the row's neighbours.

    g(x) = mean_m - P_mm^(-1) P_mo (x_o - mean_o),   P = (covariance + ridge)^(-1)                            (S-28)
    y_m  = w [ g(x) + average over the donors s of (s_m - g(s)) ] + (1 - w) [ average of s_m ]                (S-29)

The weight w in {0, 1/2, 1} is the best one on reference rows with hidden runs, the regression being fitted on the other
half of the reference. Numbers only: categories take the donors' most frequent level.

| equation | function |
|---|---|
| P, w | `learn_regression` |
| (S-28), (S-29) | `regress` |
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from goldseam.separation.reference import Reference

__all__ = ["ContextRegression", "learn_regression", "regress"]

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]

RIDGE = 0.1  # of the median variance
N_TRIALS = 200  # reference rows that choose the weight
WEIGHTS = (0.0, 0.5, 1.0)


@dataclass(frozen=True, eq=False)
class ContextRegression:
    """Mean and precision of the numeric columns in scaled units, and the weight of the regression."""

    mean: FloatArray
    precision: FloatArray
    weight: float


def learn_regression(reference: Reference, n_donors: int) -> ContextRegression:
    """Fit on all reference rows; choose the weight on half of them with the regression of the other half."""
    scaled = _numbers(reference, reference.values)
    half = len(scaled) // 2
    tried = np.arange(half, min(len(scaled), half + N_TRIALS))
    weight = _best_weight(reference, _gaussian(scaled[:half]), scaled, tried, n_donors)
    mean, precision = _gaussian(scaled)
    return ContextRegression(mean, precision, weight)


def regress(
    reference: Reference, fitted: ContextRegression, row: FloatArray, hidden: BoolArray, donors: IntArray
) -> FloatArray:
    """(S-29) for the hidden numeric cells of one row, in the table's units; other cells come back as they are."""
    numbers = np.flatnonzero(~reference.is_category)
    inside = hidden[numbers]
    if not inside.any() or not len(donors):
        return row
    block = _numbers(reference, np.vstack([row[None, :], reference.values[donors]]))
    filled = _filled(fitted.mean, fitted.precision, block, inside, fitted.weight)
    result, cells = row.copy(), numbers[inside]
    low, high = np.nanmin(reference.values[:, cells], axis=0), np.nanmax(reference.values[:, cells], axis=0)
    result[cells] = np.clip(filled * reference.scale[cells] + reference.center[cells], low, high)
    return result


def _filled(mean: FloatArray, precision: FloatArray, block: FloatArray, inside: BoolArray, weight: float) -> FloatArray:
    """Hidden cells of the first row of the block, whose other rows are its donors."""
    average = block[1:, inside].mean(axis=0)
    if weight == 0.0:
        return np.asarray(average)
    around = (block[:, ~inside] - mean[~inside]).T
    shift = np.linalg.solve(precision[np.ix_(inside, inside)], precision[np.ix_(inside, ~inside)] @ around)
    expected = mean[inside] - shift.T
    corrected = expected[0] + (block[1:, inside] - expected[1:]).mean(axis=0)
    return np.asarray(weight * corrected + (1 - weight) * average)


def _numbers(reference: Reference, values: FloatArray) -> FloatArray:
    """Scaled numeric columns with gaps at the column's mean."""
    numbers = ~reference.is_category
    filled = np.where(np.isnan(values), reference.typical, values)[:, numbers]
    return np.asarray((filled - reference.center[numbers]) / reference.scale[numbers])


def _gaussian(scaled: FloatArray) -> tuple[FloatArray, FloatArray]:
    mean = np.asarray(scaled.mean(axis=0))
    covariance = np.atleast_2d(np.cov(scaled, rowvar=False))
    ridge = RIDGE * float(np.median(np.diag(covariance))) or RIDGE
    return mean, np.asarray(np.linalg.inv(covariance + ridge * np.eye(len(mean))), dtype=np.float64)


def _best_weight(
    reference: Reference, gaussian: tuple[FloatArray, FloatArray], scaled: FloatArray, rows: IntArray, n_donors: int
) -> float:
    """Least squared error over hidden runs of 5 to 50 % of the tree order; the smaller weight wins ties."""
    rng, d = np.random.default_rng(0), reference.n_columns
    hidden = np.zeros((len(rows), d), dtype=bool)
    for i in range(len(rows)):
        length = max(1, round(d * rng.uniform(0.05, 0.5)))
        start = rng.integers(0, d - length + 1)
        hidden[i, reference.tree.order[start : start + length]] = True
    k = min(n_donors, len(reference) - 1)
    near, _ = reference.nearest(reference.values[rows], hidden, k, members=rows)
    numbers, errors = ~reference.is_category, np.zeros(len(WEIGHTS))
    for i, row in enumerate(rows):
        inside, donors = hidden[i, numbers], near[i][near[i] >= 0]
        if inside.any() and len(donors):
            block = scaled[np.concatenate(([row], donors))]
            for j, weight in enumerate(WEIGHTS):
                errors[j] += ((_filled(*gaussian, block, inside, weight) - block[0, inside]) ** 2).sum()
    return WEIGHTS[int(np.argmin(errors))]
