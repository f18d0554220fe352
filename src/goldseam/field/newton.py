"""Newton steps over B, a, R and h with Phi held: the stiff part of learning (F4.6).

A category that is a function of a number (adult: education and education_num) makes a long narrow valley: B_ss, a_s,
R_{s,j} and h_j want to grow together, and first-order steps crawl along it. Over these variables the Hessian is
cheap:

    numbers     ½ tr(V dB V dB) + mean (da + dR d - dB M)' V (da + dR d - dB M),   V = B⁻¹, M = V gamma of each row
    categories  mean (diag p_j - p_j p_j') ⊗ f f',  f = (1, u),  one block per category j

Groups of R that are zero stay zero; those that are not add the Hessian of their norm.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from goldseam.field.learning_kernels import conditional_probabilities
from goldseam.field.objective import Objective, drive
from goldseam.field.potentials import Potentials

__all__ = ["MAX_VARIABLES", "newton_steps", "usable"]

Array = NDArray[np.float64]
MAX_VARIABLES = 1500
RIDGE = 1e-8
FIRST_DAMPING = 1e-3


def usable(objective: Objective) -> bool:
    """Whether the Hessian is small enough to be worth it."""
    return objective.kind == "block" and 0 < objective.first_pair <= MAX_VARIABLES and objective.m > 0


def newton_steps(objective: Objective, x: Array, count: int) -> tuple[Array, float]:
    """Up to `count` damped Newton steps; ends early when a step gains nothing."""
    total, damping = objective.total(x), FIRST_DAMPING
    for _ in range(count):
        new, value, damping = _step(objective, x, total, damping)
        if value >= total - 1e-9:
            break
        x, total = new, value
    return x, total


def _step(objective: Objective, x: Array, total: float, damping: float) -> tuple[Array, float, float]:
    """One Levenberg-Marquardt step: more damping until F falls."""
    size = objective.first_pair
    groups, norms = objective.groups[:size], objective.norms(x)
    free = np.flatnonzero(np.append(norms, 1.0)[groups] > 0)  # -1: no group
    _, gradient = objective.value_and_gradient(x)
    H = hessian(objective, x)[np.ix_(free, free)]
    g = gradient[free] + _penalty_slope(objective, x, free, H)
    diagonal = np.diag(H).copy()
    for _ in range(8):
        new = x.copy()
        new[free] -= np.linalg.solve(H + np.diag(damping * diagonal + RIDGE), g)
        value = objective.total(new)
        if value < total:
            return new, value, damping / 4
        damping *= 6
    return x, total, damping


def _penalty_slope(objective: Objective, x: Array, free: NDArray[np.intp], H: Array) -> Array:
    """Gradient of the penalty over the free entries; its Hessian is added to H."""
    groups, norms = objective.groups[free], objective.norms(x)
    weights = objective.penalty * objective.group_weights
    slope = np.zeros(len(free))
    for group in np.unique(groups[groups >= 0]):
        inside = np.flatnonzero(groups == group)
        unit = x[free[inside]] / norms[group]
        slope[inside] = weights[group] * unit
        H[np.ix_(inside, inside)] += weights[group] / norms[group] * (np.eye(len(inside)) - np.outer(unit, unit))
    return slope


def hessian(objective: Objective, x: Array) -> Array:
    """Hessian of f over diag B, upper B, a, R, h, in the order of x."""
    field = objective.unpack(x)
    m, T = objective.m, objective.T
    H = np.zeros((objective.first_pair, objective.first_pair))
    B_a_R = len(H) - T
    H[:B_a_R, :B_a_R] = _numbers_part(objective, field)
    start_R = B_a_R - m * T
    for j in range(objective.rows.layout.n_columns):
        states = np.arange(*objective.rows.layout.offsets[j : j + 2])
        where = np.concatenate([B_a_R + states, *(start_R + s * T + states for s in range(m))])
        H[np.ix_(where, where)] += _category_part(objective, field, j)
    return H


def _numbers_part(objective: Objective, field: Potentials) -> Array:
    m, T, rows = objective.m, objective.T, objective.rows
    V = np.linalg.inv(field.B)
    M = drive(field, rows) @ V
    features = np.column_stack([-M, np.ones(len(M)), rows.layout.one_hot(rows.codes)])
    C = features.T @ (rows.weights[:, None] * features)
    width = 1 + T + m
    full = np.kron(V, C)  # rows (output s, feature)
    upper = np.triu_indices(m, 1)
    J = np.zeros((m * width, m + len(upper[0]) + m + m * T))
    s = np.arange(m)
    J[s * width + s, s] = 1.0
    pair = m + np.arange(len(upper[0]))
    J[upper[0] * width + upper[1], pair] = 1.0
    J[upper[1] * width + upper[0], pair] = 1.0
    a = m + len(pair)
    J[s * width + m, a + s] = 1.0
    for q in range(T):
        J[s * width + m + 1 + q, a + m + s * T + q] = 1.0
    H = J.T @ full @ J
    first, second = np.concatenate([s, upper[0]]), np.concatenate([s, upper[1]])
    share = np.where(first == second, 0.5, 1.0)
    trace = V[np.ix_(second, first)] * V[np.ix_(first, second)] + V[np.ix_(first, first)] * V[np.ix_(second, second)]
    H[: len(first), : len(first)] += np.outer(share, share) * trace
    return H


def _category_part(objective: Objective, field: Potentials, j: int) -> Array:
    rows = objective.rows
    P = conditional_probabilities(rows.numbers, rows.codes, field.offsets, field.h, field.R, field.Phi, j)
    f = np.column_stack([np.ones(len(P)), rows.numbers])
    root = np.sqrt(rows.weights)[:, None]
    X = np.einsum("ia,il->ial", f * root, P).reshape(len(P), -1)
    H = -(X.T @ X)
    L = P.shape[1]
    diagonal = np.einsum("ia,ib,il->abl", f, f * rows.weights[:, None], P, optimize=True)
    block = np.arange(L)
    for left in range(f.shape[1]):
        for right in range(f.shape[1]):
            H[left * L + block, right * L + block] += diagonal[left, right]
    return H
