"""The protocols written as loops over cells, straight from the text of the specs."""

from __future__ import annotations

import numpy as np


def squares(images, seed):
    """S12.0, square corruption."""
    rng = np.random.default_rng(seed)
    out = images.copy()
    corrupted = rng.random(len(images)) < 0.5
    for i in range(len(images)):
        if not corrupted[i]:
            continue
        side = rng.integers(4, 12)
        row = rng.integers(0, 17 - side)
        col = rng.integers(0, 17 - side)
        cells = rng.random(side**2)
        for k in range(side * side):
            out[i, (row + k // side) * 16 + col + k % side] = cells[k]
    return out, corrupted


def intervals(values, low, high, seed):
    """S12.0, interval corruption."""
    rng = np.random.default_rng(seed)
    out = values.copy()
    d = values.shape[1]
    corrupted = rng.random(len(values)) < 0.5
    for i in range(len(values)):
        if corrupted[i]:
            length = max(1, round(d * rng.uniform(0.05, 0.5)))
            start = rng.integers(0, d - length + 1)
            for j in range(start, start + length):
                out[i, j] = rng.uniform(low[j], high[j])
    return out, corrupted


def mixed(numbers, codes, n_levels, tau, rho, repetition):
    """F11.2: noise, flips, then gaps; -1 and NaN where blank."""
    rng = np.random.default_rng(1000 * repetition + 10 * int(100 * tau) + int(10 * rho) + 7)
    n, m = numbers.shape
    normal = rng.standard_normal((n, m))
    uniform = rng.random(codes.shape)
    shifts = [rng.integers(1, levels, n) for levels in n_levels]
    ranked = rng.random((n, m + codes.shape[1]))
    x, y = numbers.copy(), codes.copy()
    for i in range(n):
        for s in range(m):
            x[i, s] += tau * normal[i, s]
        for j, levels in enumerate(n_levels):
            if uniform[i, j] < tau:
                y[i, j] = (y[i, j] + shifts[j][i]) % levels
        for cell in sorted(range(m + len(n_levels)), key=lambda c: ranked[i, c])[: round(rho * (m + len(n_levels)))]:
            if cell < m:
                x[i, cell] = np.nan
            else:
                y[i, cell - m] = -1
    return x, y


def failures(values, labels, groups, kind, seed):
    """G7.5: injected failures."""
    rng = np.random.default_rng(seed)
    bad = rng.random(len(values)) < (0.2 if kind == "label" else 0.3)
    out, y = values.copy(), labels.copy()
    for i in np.flatnonzero(bad):
        group = groups[rng.integers(len(groups))] if kind != "label" else []
        if kind == "noise":
            for j, z in zip(group, rng.standard_normal(len(group)), strict=True):
                out[i, j] = values[i, j] + 8 * (values[:, j].std() + 1e-9) * z
        elif kind == "saturate":
            factor = rng.uniform(1.5, 4)
            for j in group:
                out[i, j] = values[:, j].max() * factor
        elif kind == "dead":
            for j in group:
                out[i, j] = 0
        else:
            y[i] = -y[i]
    return out, y, bad
