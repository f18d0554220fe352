"""Minimise f(x) + group penalty: quasi-Newton on what is not zero, proximal steps for the zeros (F4.3, F4.6).

| equation | where |
|---|---|
| (F-15) step rule | `proximal_steps` |
| (F-16) proximal step | `shrink` |
| F4.6 quasi-Newton with scaled variables, then exact zeros | `minimise` |

Over the groups that are not zero the objective is smooth, so limited-memory BFGS on variables scaled by their
curvature (the penalty's included: rare states have almost none of their own) converges fast. Proximal steps between
the bursts set groups to zero or wake them, and Newton steps over the numbers' variables cut through the valley that a
dependent pair of columns makes (`newton`). Accelerated proximal steps alone, the published method, need ten times as
long on adult and do not settle; they are kept as the slow twin in the tests.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from goldseam.field import newton
from goldseam.field.objective import Objective

__all__ = ["Fit", "group_metric", "minimise", "proximal_steps", "shrink"]

Array = NDArray[np.float64]
MEMORY = 20  # pairs kept by limited-memory BFGS
BURST = 40  # its iterations before the scaling is renewed
STEP_FLOOR = 1e-10  # F4.3
DIAGONAL_FLOOR = 1e-6  # (F-16)
STIFF = 1e-4  # gain per iteration after the first burst that calls for Newton steps
NORM_FLOOR = 1e-3  # a group this small is as good as zero for the scaling


@dataclass(frozen=True)
class Fit:
    """Where an optimiser ended: the vector, F, the iterations and whether the stopping rule was met."""

    x: Array
    value: float
    n_iter: int
    converged: bool
    last_change: float


def shrink(objective: Objective, x: Array, steps: Array) -> Array:
    """(F-16): shrink every group towards zero; `steps` is the step size of every entry, equal within a group."""
    groups, inside = objective.groups, objective.groups >= 0
    norms = objective.norms(x)
    group_steps = np.zeros(len(norms))
    group_steps[groups[inside]] = steps[inside]
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = np.maximum(1.0 - group_steps * objective.penalty * objective.group_weights / norms, 0.0)
    factor[norms == 0] = 0.0
    out = x.copy()
    out[inside] *= factor[groups[inside]]
    out[objective.diagonal] = np.maximum(out[objective.diagonal], DIAGONAL_FLOOR)
    return out


def group_metric(objective: Objective, x: Array) -> Array:
    """Curvature of every entry, the largest of its group within a group."""
    curvature, groups = objective.curvature(x), objective.groups
    inside = groups >= 0
    top = np.zeros(len(objective.group_weights))
    np.maximum.at(top, groups[inside], curvature[inside])
    curvature[inside] = top[groups[inside]]
    return np.maximum(curvature, 1e-3 * curvature.max(initial=1e-12))


def minimise(objective: Objective, x: Array, max_iter: int, tol: float) -> Fit:
    """The minimiser of (F-7), from x; converged when a burst, and the proximal steps after it, gain less than tol per
    iteration."""
    x, total, eta = proximal_steps(objective, x, 0.3, 5)
    used, change = 5, np.inf
    while used < max_iter:
        before, zero = total, objective.norms(x) == 0
        x, steps, settled = smooth_descent(objective, x, min(BURST, max_iter - used), tol)
        total = objective.total(x)
        if used > BURST and before - total > STIFF * steps and newton.usable(objective):
            x, total = newton.newton_steps(objective, x, 4)
        x, total, eta = proximal_steps(objective, x, eta, 3)
        used += steps + 3
        change = (before - total) / (steps + 3)
        same = bool(((objective.norms(x) == 0) == zero).all())
        if change < tol * max(1.0, abs(total)) and (settled or same):
            return Fit(x, total, used, True, change)
    return Fit(x, total, used, False, change)


def proximal_steps(objective: Objective, x: Array, eta: float, count: int) -> tuple[Array, float, float]:
    """A few plain proximal steps with the step rule (F-15): they set whole groups to zero, or wake them."""
    metric = group_metric(objective, x)
    f, g = objective.value_and_gradient(x)
    for _ in range(count):
        while True:
            new = shrink(objective, x - eta / metric * g, eta / metric)
            d = new - x
            f_new, g_new = objective.value_and_gradient(new)
            if f_new <= f + g @ d + (metric * d) @ d / (2 * eta) + 1e-12 or eta < STEP_FLOOR:
                break
            eta *= 0.5
        x, f, g = new, f_new, g_new
    return x, f + objective.penalty_of(x), eta * 1.5


def smooth_descent(objective: Objective, x: Array, max_iter: int, tol: float) -> tuple[Array, int, bool]:
    """Limited-memory BFGS on F over the entries whose group is not zero; norms are rounded off at a ten-thousandth of
    their size."""
    groups, norms = objective.groups, objective.norms(x)
    weights = objective.penalty * objective.group_weights
    free = np.append(norms, 1.0)[groups] > 0  # -1: no group
    inside = groups[free] >= 0
    of_free, floor = groups[free][inside], 1e-4 * norms

    def smooth(v: Array) -> tuple[float, Array]:
        full = x.copy()
        full[free] = v
        f, g = objective.value_and_gradient(full)
        soft = np.sqrt(objective.norms(full) ** 2 + floor**2)
        g = g[free]
        g[inside] += weights[of_free] / soft[of_free] * v[inside]
        return f + float(weights @ soft), g

    curvature = objective.curvature(x)[free]
    curvature[inside] += (weights / np.maximum(norms, NORM_FLOOR))[of_free]
    v, steps, settled = lbfgs(smooth, x[free], 1.0 / np.sqrt(np.maximum(curvature, 1e-12)), max_iter, tol)
    out = x.copy()
    out[free] = v
    return out, steps, settled


def lbfgs(
    call: Callable[[Array], tuple[float, Array]], x: Array, scale: Array, max_iter: int, tol: float
) -> tuple[Array, int, bool]:
    """Limited-memory BFGS with Armijo backtracking on x / scale; True when five steps in a row gained less than tol
    each."""
    pairs: deque[tuple[Array, Array, float]] = deque(maxlen=MEMORY)
    f, g = call(x)
    g = g * scale
    small = 0
    for iteration in range(1, max_iter + 1):
        d = -_two_loop(g, pairs)
        slope = float(g @ d)
        if slope >= 0:
            pairs.clear()
            d, slope = -g, -float(g @ g)
        step = 1.0 if pairs else min(1.0, 1.0 / max(np.sqrt(-slope), 1e-12))
        while True:
            new = x + step * scale * d
            f_new, g_new = call(new)
            if f_new <= f + 1e-4 * step * slope or step < STEP_FLOOR:
                break
            step *= 0.5 if np.isfinite(f_new) else 0.25
        if f_new > f:
            return x, iteration, True
        g_new = g_new * scale
        s, y = step * d, g_new - g
        curvature = float(s @ y)
        if curvature > 1e-10 * float(y @ y):
            pairs.append((s, y, 1.0 / curvature))
        small = small + 1 if f - f_new < tol * max(1.0, abs(f)) else 0
        x, f, g = new, f_new, g_new
        if small >= 5:
            return x, iteration, True
    return x, max_iter, False


def _two_loop(g: Array, pairs: deque[tuple[Array, Array, float]]) -> Array:
    """The inverse Hessian of the kept pairs times g."""
    q, alphas = g.copy(), []
    for s, y, rho in reversed(pairs):
        alphas.append(rho * (s @ q))
        q -= alphas[-1] * y
    if pairs:
        s, y, rho = pairs[-1]
        q *= 1.0 / (rho * (y @ y))
    for (s, y, rho), alpha in zip(pairs, reversed(alphas), strict=True):
        q += (alpha - rho * (y @ q)) * s
    return q
