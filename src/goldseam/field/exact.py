"""The exact posterior of a row by going through all combinations of its unknown categories.

Given the categories the numbers are Gaussian, so with V = (B + diag precision)^-1 over the numbers that are not known,
the log weight of a combination d is z'd + ½ d'(Phi + R'VR)d with the unary potentials of `inference`. All weights of a
row stand in one array with an axis per unknown category. Costs the product of their levels: for small fields, and to
check the others.
"""

from __future__ import annotations

import numpy as np

from goldseam.errors import InputError
from goldseam.field.beliefs import Array, Beliefs, Codes, Noise
from goldseam.field.potentials import Potentials

__all__ = ["MAX_COMBINATIONS", "enumerate_rows"]

MAX_COMBINATIONS = 2**20


def enumerate_rows(field: Potentials, X: Array, codes: Codes, noise: Noise, precision: Array, out: Beliefs) -> None:
    """Fill Q, mean, variance and sweeps of every row; cavities are left to the caller."""
    odds = noise.log_odds(field.layout.sizes)
    for i, (x, y, own) in enumerate(zip(np.nan_to_num(X), codes, precision, strict=True)):
        out.Q[i], out.mean[i], out.variance[i] = _one_row(field, x, y, odds, own)
    out.sweeps[:], out.change[:] = 1, 0.0


def _one_row(field: Potentials, x: Array, y: Codes, odds: Array, precision: Array) -> tuple[Array, Array, Array]:
    clamped = np.isinf(precision)
    free, own = ~clamped, np.where(clamped, 0.0, precision)
    V = np.zeros_like(field.B)
    V[np.ix_(free, free)] = np.linalg.inv((field.B + np.diag(own))[np.ix_(free, free)])
    VR = V @ field.R
    fixed = np.where(clamped, x, 0.0)
    mean = fixed + V @ (field.a - field.B @ fixed + own * x)
    pairs = field.Phi + field.R.T @ VR
    known = (y >= 0) & np.isinf(odds)
    d = field.layout.one_hot(np.where(known, y, -1)[None])[0]
    z = field.h + 0.5 * np.diag(field.R.T @ VR) + field.R.T @ mean + pairs @ d
    unknown = [int(j) for j in np.flatnonzero(~known)]
    for j in unknown:
        if y[j] >= 0:
            z[field.layout.offsets[j] + y[j]] += odds[j]
    weights = _weights(field, z, pairs, unknown)
    Q = d.copy()
    for axis, j in enumerate(unknown):
        Q[field.layout.block(j)] = weights.sum(axis=tuple(a for a in range(len(unknown)) if a != axis))
    spread = np.array([_variance(field, VR[s], weights, unknown) if free[s] else 0.0 for s in range(len(x))])
    return Q, mean + VR @ Q, np.diag(V) + spread


def _weights(field: Potentials, z: Array, pairs: Array, unknown: list[int]) -> Array:
    """Posterior probability of every combination, one axis per unknown category."""
    sizes = [int(field.layout.sizes[j]) for j in unknown]
    if np.prod(sizes, dtype=float) > MAX_COMBINATIONS:
        raise InputError(
            f"Exact inference goes through at most {MAX_COMBINATIONS:,} combinations of unknown categories; a row has "
            f"{np.prod(sizes, dtype=float):,.0f}. Hint: inference='lbp'."
        )
    total = np.zeros(sizes)
    for a, j in enumerate(unknown):
        total += _on_axes(z[field.layout.block(j)], (a,), len(sizes))
        for b in range(a):
            block = pairs[field.layout.block(unknown[b]), field.layout.block(j)]
            total += _on_axes(block, (b, a), len(sizes))
    total = np.exp(total - total.max())
    return np.asarray(total / total.sum())


def _variance(field: Potentials, effect: Array, weights: Array, unknown: list[int]) -> float:
    """Variance of a number's conditional mean over the combinations."""
    level = np.zeros(weights.shape)
    for a, j in enumerate(unknown):
        level += _on_axes(effect[field.layout.block(j)], (a,), weights.ndim)
    first = float(np.sum(weights * level))
    return float(np.sum(weights * (level - first) ** 2))


def _on_axes(values: Array, axes: tuple[int, ...], n_axes: int) -> Array:
    """The array with its axes put at the given places among n_axes, the others of length one."""
    shape = [1] * n_axes
    for axis, size in zip(axes, values.shape, strict=True):
        shape[axis] = size
    return values.reshape(shape)
