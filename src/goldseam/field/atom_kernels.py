"""Compiled loop over the training values of numbers: the empirical marginals.

Letters as in `kernels`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from goldseam.field.kernels import exp_all

__all__ = ["empirical_rows"]

FUSED = {"contract", "reassoc", "nnan", "nsz"}  # sums in vectors; the same for the same row, whatever its batch


@njit(nogil=True, cache=True, fastmath=FUSED)
def _meet(own, wide, pull, cost, part, rest):  # type: ignore[no-untyped-def]
    """What an observation of precision `own` does to atoms of variance `wide`: exponent -pull d² - cost, posterior mean
    moved by `part` of the distance, posterior variance `rest`."""
    for k in range(wide.shape[0]):
        inflated = 1.0 + own * wide[k]
        pull[k], cost[k] = 0.5 * own / inflated, 0.5 * np.log(inflated)
        part[k], rest[k] = own * wide[k] / inflated, wide[k] / inflated


@njit(nogil=True, cache=True, fastmath=FUSED)
def _from_top(exponent, bits, K):  # type: ignore[no-untyped-def]
    """exp(exponent - top) of the first K, in place; the top."""
    top = exponent[0]
    for k in range(1, K):
        top = max(top, exponent[k])
    for k in range(K):
        exponent[k] = max(exponent[k] - top, -600.0)
    exp_all(exponent, bits, K)
    return top


@njit(nogil=True, cache=True, fastmath=FUSED)
def empirical_rows(  # type: ignore[no-untyped-def]
    X, precision, group, centre, spread, atoms, log_share, widths, starts, background, epsilon,
    mean, variance, genuine, log_density,
):  # fmt: skip
    """(F-31) to (F-33) for every number: posterior over the atoms of its column, from the cavity (centre, spread) of (F-30).

    Cells with infinite precision keep mean and variance. `genuine` is g of (F-32), `log_density` log p(x; sigma) (0 where
    blank). `log_share` holds log p_k and the division by N(0, 1); `background` is 1/W. An atom is a normal of variance
    `widths`: 0 for values that repeat, wide where the training values are sparse.
    """
    size = 1
    for s in range(X.shape[1]):
        size = max(size, starts[s + 1] - starts[s])
    prior, weight, bits = np.empty(size), np.empty(size), np.empty(size, dtype=np.int64)
    pull, cost, part, rest = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    for s in range(X.shape[1]):  # one column after the other: its atoms stay at hand
        a, base = atoms[starts[s] : starts[s + 1]], log_share[starts[s] : starts[s + 1]]
        wide, K, met = widths[starts[s] : starts[s + 1]], starts[s + 1] - starts[s], -1.0
        for i in range(X.shape[0]):
            own = precision[group[i], s]
            genuine[i, s], log_density[i, s] = 1.0, 0.0
            if own == np.inf:
                continue
            if own != met:
                _meet(own, wide, pull, cost, part, rest)
                met = own
            half, kappa = 0.5 / spread[i, s], centre[i, s]
            x = X[i, s] if own > 0.0 else kappa
            for k in range(K):
                d = a[k] - kappa
                prior[k] = base[k] - half * d * d
            if own > 0.0:
                for k in range(K):
                    d = a[k] - x
                    weight[k] = prior[k] - pull[k] * d * d - cost[k]
            top = _from_top(prior, bits, K)
            high = _from_top(weight, bits, K) if own > 0.0 else top
            seen = weight if own > 0.0 else prior
            mass, total, first, second = 0.0, 0.0, 0.0, 0.0
            for k in range(K):
                d = (a[k] - x) * (1.0 - part[k])  # the atom's own normal meets the observation
                mass += prior[k]
                total += seen[k]
                first += seen[k] * d
                second += seen[k] * (d * d + rest[k])
            first /= total
            second = second / total - first * first
            if own > 0.0:
                log_p = high - top + np.log(total / mass) + 0.5 * np.log(own / (2.0 * np.pi))
                log_density[i, s] = log_p
                p = (1.0 - epsilon) * np.exp(min(max(log_p, -60.0), 60.0))
                g = p / (p + epsilon * background[s])
                genuine[i, s] = g
                mean[i, s] = x + g * first
                variance[i, s] = max(g * second + (1.0 - g) / own + g * (1.0 - g) * first * first, 1e-6)
            else:
                mean[i, s] = x + first
                variance[i, s] = max(second, 1e-6)
