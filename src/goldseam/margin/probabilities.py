"""Probabilities from scores: a logistic curve fitted with trust as weights (G5.4)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import expit, logsumexp, softmax

__all__ = ["fit_curve", "fit_platt", "fit_temperature", "platt_probabilities"]

Floats = NDArray[np.float64]

PENALTY = 1.0 / 100.0

JUST_ABOVE = np.nextafter(0.5, 1.0)


def fit_curve(probability: str, scores: Floats, codes: NDArray[np.int64], weights: Floats) -> tuple[float, float]:
    """Slope and offset for `platt_probabilities`; `probability` is `'platt'`, or `'sigmoid'` for the scores as they are."""
    if probability != "platt":
        return 1.0, 0.0
    if scores.shape[1] == 1:
        return fit_platt(scores[:, 0], codes == 1, weights)
    return fit_temperature(scores, codes, weights), 0.0


def fit_platt(scores: Floats, positive: NDArray[np.bool_], weights: Floats) -> tuple[float, float]:
    """Slope A and offset B of P(positive) = sig(A f + B): weighted logistic regression, A^2 / 200 as penalty.

    Newton's method with halved steps; the problem is convex.

    >>> slope, offset = fit_platt(np.array([-1.0, 1.0]), np.array([False, True]), np.ones(2))
    >>> bool(slope > 0), round(offset, 6) == 0
    (True, True)
    """
    design = np.column_stack([scores, np.ones_like(scores)])
    signs = np.where(positive, 1.0, -1.0)
    ridge = np.array([PENALTY, 1e-12])
    beta = np.zeros(2)

    def value(b: Floats) -> float:
        return float(np.sum(weights * np.logaddexp(0.0, -signs * (design @ b))) + 0.5 * np.sum(ridge * b * b))

    for _ in range(100):
        chance = expit(-signs * (design @ beta))
        gradient = design.T @ (-weights * signs * chance) + ridge * beta
        curve = weights * chance * (1 - chance)
        step = np.linalg.solve((design * curve[:, None]).T @ design + np.diag(ridge), gradient)
        length, before = 1.0, value(beta)
        while value(beta - length * step) > before and length > 1e-8:
            length /= 2
        beta = beta - length * step
        if np.max(np.abs(length * step)) < 1e-9 * (1 + np.max(np.abs(beta))):
            break
    return float(beta[0]), float(beta[1])


def fit_temperature(scores: Floats, codes: NDArray[np.int64], weights: Floats) -> float:
    """The A >= 0 of P(c) = softmax(A f)_c for three or more classes; the likeliest class stays the one of the best score.

    >>> bool(fit_temperature(np.eye(3), np.arange(3), np.ones(3)) > 1)
    True
    """

    def value(slope: float) -> float:
        scaled = slope * scores
        fit = logsumexp(scaled, axis=1) - scaled[np.arange(len(codes)), codes]
        return float(np.sum(weights * fit)) + 0.5 * PENALTY * slope**2

    return float(minimize_scalar(value, bounds=(0.0, 1000.0), method="bounded", options={"xatol": 1e-8}).x)


def platt_probabilities(scores: Floats, slope: float, offset: float) -> Floats:
    """Class probabilities (rows, classes): sig(A f + B) for scores of one column, softmax(A f) for more.

    The likelier class is the predicted one: where B would put a row on the other side, it stays at one half.

    >>> platt_probabilities(np.array([[0.0]]), 1.0, 0.0)
    array([[0.5, 0.5]])
    >>> platt_probabilities(np.array([[0.1], [-0.1]]), 1.0, -0.5).round(3)
    array([[0.5  , 0.5  ],
           [0.646, 0.354]])
    """
    if scores.shape[1] == 1:
        ahead = scores[:, 0] > 0
        positive = expit(slope * scores[:, 0] + offset)
        positive = np.where(ahead, np.maximum(positive, JUST_ABOVE), np.minimum(positive, 0.5))
        return np.column_stack([1 - positive, positive])
    return softmax(slope * scores, axis=1)
