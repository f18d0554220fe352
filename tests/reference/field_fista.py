"""The published optimiser: FISTA with backtracking and function restart (F4.3). Slow twin of
`goldseam.field.optimiser.minimise`."""

from __future__ import annotations

import numpy as np

from goldseam.field.optimiser import STEP_FLOOR, Fit, shrink

STEP_TOLERANCE = 1e-4  # F4.3: relative length of the last step


def fista(objective, x, max_iter, tol) -> Fit:
    """FISTA with backtracking and function restart."""
    metric = np.ones_like(x)
    y, t, eta = x, 1.0, 1.0
    total, change, step = objective.total(x), np.inf, np.inf
    for iteration in range(1, max_iter + 1):
        f, g = objective.value_and_gradient(y)
        if not np.isfinite(f):
            y, t = x, 1.0
            f, g = objective.value_and_gradient(y)
        while True:
            new = shrink(objective, y - eta / metric * g, eta / metric)
            d = new - y
            f_new = objective.value(new)
            if f_new <= f + g @ d + (metric * d) @ d / (2 * eta) + 1e-12 or eta < STEP_FLOOR:
                break
            eta *= 0.5
        new_total = f_new + objective.penalty_of(new)
        eta *= 1.1
        if new_total > total + 1e-12 and t > 1:
            y, t = x, 1.0
            continue
        change, step = total - new_total, float(np.linalg.norm(new - x) / max(1.0, np.linalg.norm(x)))
        t_new = (1 + np.sqrt(1 + 4 * t * t)) / 2
        y, x, total, t = new + (t - 1) / t_new * (new - x), new, new_total, t_new
        if iteration > 20 and abs(change) < tol * max(1.0, abs(total)) and step < STEP_TOLERANCE:
            return Fit(x, total, iteration, True, change)
    return Fit(x, total, max_iter, False, change)
