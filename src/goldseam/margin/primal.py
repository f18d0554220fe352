"""Linear SVMs with very many rows and few columns: Newton's method on a rounded hinge, with a certificate.

Coordinate descent (liblinear) needs more passes the more rows there are per column. Here every step is one pass:

    P(theta) = |theta|^2 / 2 + sum_n c_n [1 - m_n]_+,    m_n = y_n x_n . theta,  a constant column carries the bias

The hinge is rounded to a parabola on a stretch of width h below the margin. h falls from 4 (nearly least squares) until
the duality gap P(theta) - D(alpha) is at most `gap` of P; alpha_n = c_n min([1 - m_n]_+ / h, 1) is the dual point that the
rounded hinge gives. The answer is therefore known to be that close to the exact SVM. Cost: rows x columns per pass, plus
rows on the stretch x columns^2.

=====================  ==========================================================
`fit_primal`           the solution, from a starting point, and its relative gap
`_newton_step`         direction by the Hessian of the rows on the stretch
`_step_length`         root of the slope along it, by bisection (P is convex)
=====================  ==========================================================
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Primal", "fit_primal"]

Floats = NDArray[np.float64]

WIDTHS = tuple(4.0 * 0.25**i for i in range(11))
WARM = 3
"""A warm start begins at the width of this number."""
STEPS = 30
BISECTIONS = 60
NEAR = 0.01
FLAT = 1e-12
"""A Newton step that promises less than this share of P ends the work at one width."""


@dataclass(frozen=True)
class Primal:
    """theta (weights, then bias) and the relative duality gap it was left with."""

    theta: Floats
    gap: float


def fit_primal(rows: Floats, signs: Floats, costs: Floats, *, start: Floats | None = None, gap: float = 1e-4) -> Primal:
    """Minimise P over theta; `rows` (n, p) without the constant column, signs -1/+1, costs c_n = C omega_n.

    >>> rows = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> found = fit_primal(rows, np.array([-1.0, -1, 1, 1]), np.full(4, 10.0))
    >>> found.theta.round(2) + 0.0, bool(found.gap <= 1e-4)
    (array([1., 0.]), True)
    """
    signed = signs[:, None] * np.column_stack([rows, np.ones(len(rows))])
    theta = np.zeros(signed.shape[1]) if start is None else start.copy()
    best = Primal(theta, np.inf)
    for width in WIDTHS[0 if start is None else WARM :]:
        margins = signed @ theta
        for _ in range(STEPS):
            direction, promise = _newton_step(signed, costs, theta, margins, width)
            if promise <= FLAT * _primal(theta, margins, costs):
                break
            slopes = signed @ direction
            length = _step_length(theta, direction, margins, slopes, costs, width)
            theta, margins = theta + length * direction, margins + length * slopes
        value = _primal(theta, margins, costs)
        relative = (value - _dual(signed, margins, costs, width)) / value if value > 0 else 0.0
        best = min(best, Primal(theta, float(relative)), key=lambda found: found.gap)
        if best.gap <= gap:
            break
    return best


def _primal(theta: Floats, margins: Floats, costs: Floats) -> float:
    return 0.5 * float(theta @ theta) + float(costs @ np.maximum(1.0 - margins, 0.0))


def _dual(signed: Floats, margins: Floats, costs: Floats, width: float) -> float:
    """D(alpha) = sum alpha - |sum alpha y x|^2 / 2 at the dual point of the rounded hinge."""
    alpha = _pull(margins, costs, width)
    total = signed.T @ alpha
    return float(alpha.sum()) - 0.5 * float(total @ total)


def _pull(margins: Floats, costs: Floats, width: float) -> Floats:
    """Minus the slope of each row's rounded hinge."""
    return costs * np.clip((1.0 - margins) / width, 0.0, 1.0)


def _newton_step(signed: Floats, costs: Floats, theta: Floats, margins: Floats, width: float) -> tuple[Floats, float]:
    """The Newton direction and how much it promises to win (half of slope times direction)."""
    gradient = theta - signed.T @ _pull(margins, costs, width)
    bent = np.flatnonzero((margins < 1.0) & (margins > 1.0 - width) & (costs > 0))
    part = signed[bent]
    hessian = np.eye(len(theta)) + (part * (costs[bent] / width)[:, None]).T @ part
    direction: Floats = -np.linalg.solve(hessian, gradient).astype(np.float64)
    return direction, -0.5 * float(gradient @ direction)


def _step_length(
    theta: Floats, direction: Floats, margins: Floats, slopes: Floats, costs: Floats, width: float
) -> float:
    """1 where the rounded objective falls that far or is level there, else the root of its slope in between."""

    def slope(length: float) -> float:
        pull = _pull(margins + length * slopes, costs, width)
        return float((theta + length * direction) @ direction) - float(pull @ slopes)

    low, high = 0.0, 1.0
    if slope(high) <= -NEAR * slope(low):
        return high
    for _ in range(BISECTIONS):
        if high - low <= NEAR * low:
            break
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) <= 0 else (low, middle)
    return low
