"""Compiled loop over the training values of numbers: the empirical marginals.

Letters as in `kernels`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from goldseam.field.kernels import exp_all

__all__ = ["empirical_rows"]


@njit(nogil=True, cache=True)
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
    for i in range(X.shape[0]):
        for s in range(X.shape[1]):
            own = precision[group[i], s]
            genuine[i, s], log_density[i, s] = 1.0, 0.0
            if np.isinf(own):
                continue
            a, base = atoms[starts[s] : starts[s + 1]], log_share[starts[s] : starts[s + 1]]
            wide = widths[starts[s] : starts[s + 1]]
            K = a.shape[0]
            t, kappa = 1.0 / spread[i, s], centre[i, s]
            top = -np.inf
            for k in range(K):
                d = a[k] - kappa
                prior[k] = base[k] - 0.5 * t * d * d
                top = max(top, prior[k])
            for k in range(K):
                prior[k] = max(prior[k] - top, -600.0)
            x = X[i, s]
            high = -np.inf
            if own > 0.0:
                for k in range(K):
                    d = a[k] - x
                    inflated = 1.0 + own * wide[k]
                    weight[k] = prior[k] - 0.5 * own * d * d / inflated - 0.5 * np.log(inflated)
                    high = max(high, weight[k])
                for k in range(K):
                    weight[k] = max(weight[k] - high, -600.0)
            exp_all(prior, bits, K)
            if own > 0.0:
                exp_all(weight, bits, K)
            else:
                for k in range(K):
                    weight[k] = prior[k]
            mass, total, first, second, inner = 0.0, 0.0, 0.0, 0.0, 0.0
            for k in range(K):
                mass += prior[k]
                total += weight[k]
                if own > 0.0:  # the atom's own normal meets the observation
                    share = own * wide[k] / (1.0 + own * wide[k])
                    prior[k] = a[k] + share * (x - a[k])
                    inner += weight[k] * wide[k] / (1.0 + own * wide[k])
                else:
                    prior[k] = a[k]
                    inner += weight[k] * wide[k]
                first += weight[k] * prior[k]
            first /= total
            for k in range(K):
                second += weight[k] * (prior[k] - first) * (prior[k] - first)
            second = (second + inner) / total
            if own > 0.0:
                log_p = high + np.log(total / mass) + 0.5 * np.log(own / (2.0 * np.pi))
                log_density[i, s] = log_p
                p = (1.0 - epsilon) * np.exp(min(max(log_p, -60.0), 60.0))
                g = p / (p + epsilon * background[s])
                genuine[i, s] = g
                mean[i, s] = g * first + (1.0 - g) * x
                away = first - x
                variance[i, s] = max(g * second + (1.0 - g) / own + g * (1.0 - g) * away * away, 1e-6)
            else:
                mean[i, s] = first
                variance[i, s] = max(second, 1e-6)
