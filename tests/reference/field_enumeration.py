"""The exact posterior of one row by going through every combination of categories (any Gaussian block)."""

from __future__ import annotations

import itertools

import numpy as np


def enumerate_row(field, x, y, sigma, flip):
    """Exact Q (T,), mean (m,), covariance (m, m) and log evidence (without log Z) of one row; blank cells NaN and -1;
    noise 0 is nil."""
    layout = field.layout
    seen = ~np.isnan(x)
    clamped, noisy = seen & (sigma == 0), seen & (sigma > 0)
    free = ~clamped
    precision = np.where(noisy, 1.0 / np.where(sigma > 0, sigma, 1.0) ** 2, 0.0)
    V = np.linalg.inv((field.B + np.diag(precision))[np.ix_(free, free)])
    pull = precision[noisy] * x[noisy]
    weights, means, states = [], [], []
    for v in itertools.product(*(range(size) for size in layout.sizes)):
        d = np.zeros(layout.n_states)
        d[layout.offsets[:-1] + np.array(v, dtype=int)] = 1.0
        emission = 0.0
        for j, (observed, rate) in enumerate(zip(y, flip, strict=True)):
            if observed >= 0:
                other = rate / max(layout.sizes[j] - 1, 1)
                p = (1 - rate if v[j] == observed else other) if rate > 0 else float(v[j] == observed)
                emission += np.log(p) if p > 0 else -np.inf
        gamma = field.a + field.R @ d
        fixed = np.where(clamped, np.nan_to_num(x), 0.0)
        drive = gamma - field.B @ fixed
        drive[noisy] += pull
        drive = drive[free]
        log_w = field.h @ d + 0.5 * d @ field.Phi @ d + emission + 0.5 * drive @ V @ drive + gamma @ fixed
        mean = fixed.copy()
        mean[free] = V @ drive
        weights.append(log_w)
        means.append(mean)
        states.append(d)
    top = np.max(weights)
    w = np.exp(np.array(weights) - top)
    evidence = top + np.log(w.sum())
    w /= w.sum()
    mean = w @ np.array(means)
    centred = np.array(means) - mean
    covariance = np.einsum("c,cs,ct->st", w, centred, centred)
    covariance[np.ix_(free, free)] += V
    return w @ np.array(states), mean, covariance, evidence


def random_field(rng, m, sizes, *, tree=False, strength=1.0):
    """A field with random potentials; with `tree` the categories form a chain and no number touches more than one of
    them."""
    from goldseam.field.potentials import Layout, Potentials

    layout = Layout.of(sizes)
    T, n = layout.n_states, layout.n_columns
    A = rng.normal(size=(m, m)) * 0.4
    B = A @ A.T + np.eye(m)
    R = rng.normal(size=(m, T)) * strength
    Phi = rng.normal(size=(T, T)) * strength
    for j in range(n):
        for k in range(n):
            if j == k or (tree and abs(j - k) != 1):
                Phi[layout.block(j), layout.block(k)] = 0.0
    Phi = np.triu(Phi) + np.triu(Phi).T
    if tree:
        B, keep = np.diag(np.diag(B)), np.zeros_like(R)
        for s in range(m):
            block = layout.block(s % n)
            keep[s, block] = R[s, block]
        R = keep
    return Potentials(B, rng.normal(size=m), R, rng.normal(size=T), Phi, layout.offsets)
