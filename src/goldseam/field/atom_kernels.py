"""Compiled loops over the training values of numbers: the empirical marginals.

Letters as in `kernels`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from goldseam.field.kernels import LOG2E, exp_all

__all__ = ["blank_rows", "empirical_rows"]

FUSED = {"contract", "reassoc", "nnan", "nsz"}  # sums in vectors; the same for the same row, whatever its batch
SINGLE = np.float32
LEAST_POWER = -120.0  # of 2 that float32 holds


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


@njit(nogil=True, cache=True, fastmath=FUSED)
def blank_rows(centre, spread, atoms, log_share, widths, starts, mean, variance):  # type: ignore[no-untyped-def]
    """`empirical_rows` where nothing is observed, to seven digits: weights are taken in float32, their sums in float64.

    Exponents are taken from that of the nearest atom up: no exponent is far above it, and not all can vanish.
    """
    size = 1
    for s in range(centre.shape[1]):
        size = max(size, starts[s + 1] - starts[s])
    part, bits = np.empty(size, SINGLE), np.empty(size, np.int32)
    power, halves = bits.view(SINGLE), np.empty(len(centre))
    for s in range(centre.shape[1]):
        own = slice(starts[s], starts[s + 1])
        a, base, wide = atoms[own], log_share[own], widths[own]
        for i in range(len(centre)):  # apart: LLVM would divide anew for every atom
            halves[i] = 0.5 * LOG2E / spread[i, s]
        for i in range(len(centre)):
            half, kappa = halves[i], centre[i, s]
            near = half * _nearest(a, kappa) ** 2
            for k in range(len(a)):
                d = a[k] - kappa
                e = max(base[k] * LOG2E + near - half * d * d, LEAST_POWER)
                whole = np.floor(e + 0.5)
                part[k] = e - whole
                bits[k] = (np.int32(whole) + np.int32(127)) << np.int32(23)
            mass, first, second = 0.0, 0.0, 0.0
            for k in range(len(a)):
                weight, d = np.float64(_two_to(part[k]) * power[k]), a[k] - kappa
                mass += weight
                first += weight * d
                second += weight * (d * d + wide[k])
            first /= mass
            mean[i, s], variance[i, s] = kappa + first, max(second / mass - first * first, 1e-6)


@njit(nogil=True, cache=True, fastmath=FUSED)
def _two_to(r):  # type: ignore[no-untyped-def]
    """2**r for |r| <= 1/2, to 1e-7."""
    w = SINGLE(0.00015403530) * r + SINGLE(0.0013333558)
    w = (w * r + SINGLE(0.0096181291)) * r + SINGLE(0.055504109)
    return ((w * r + SINGLE(0.24022651)) * r + SINGLE(0.69314718)) * r + SINGLE(1.0)


@njit(nogil=True, cache=True)
def _nearest(a, x):  # type: ignore[no-untyped-def]
    """Distance of x to the nearest of some ascending values."""
    low, left = 0, len(a)
    while left > 1:
        half = left // 2
        low += half if a[low + half] <= x else 0
        left -= half
    return min(abs(a[low] - x), abs(a[min(low + 1, len(a) - 1)] - x))
