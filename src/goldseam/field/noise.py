"""Noise levels of a table, and the floors below which they are not to be believed (F6).

| equation | where |
|---|---|
| (F-25), (F-26) published EM | `published_em` |
| (F-29) empirical-marginal likelihood of sigma | `estimate_sigma` |
| (F-26) flip rates | `estimate_flips` |
| F6.4 floors, gate | `measure_floors`, `gate` |

Sigma of a number and the spread of its conditional are not separately identifiable under a Gaussian prior (F6.2), so
sigma is read from how well the values fall back on the values seen in training. That works for columns that repeat
values; the floor, measured on clean held-out rows, says where it does not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from goldseam.field.beliefs import Codes, Noise, cell_precision
from goldseam.field.emission import EPSILON, Atoms, empirical, estimate_gross_rate
from goldseam.field.inference import infer
from goldseam.field.objective import Rows
from goldseam.field.potentials import Potentials

__all__ = ["Floors", "NoiseEstimate", "estimate", "gate", "measure_floors", "published_em"]

Array = NDArray[np.float64]
GRID = np.array([0.02, 0.05, 0.08, 0.1, 0.13, 0.16, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.75])
START_SIGMA, START_FLIP = 0.3, 0.2
ROUNDS = 12  # of the published EM
MAX_FLIP_ROUNDS, FLIP_TOLERANCE = 40, 5e-4  # flip rates settle slowly when they are large
MIN_FLIP = 0.01  # F6.4: a pooled flip rate below is never acted on
SPLITS = 8
MAX_ROWS = 4000  # rows used to measure floors and to estimate: the standard error is far below the floor by then


@dataclass(frozen=True)
class NoiseEstimate:
    """Raw estimates: sigma per number (standardised) and pooled, flip rate per category and their mean, gross-error
    rate."""

    sigma: Array
    pooled_sigma: float
    flip: Array
    pooled_flip: float
    gross: float = 0.0


@dataclass(frozen=True)
class Floors:
    """The largest estimates on clean held-out rows."""

    sigma: Array
    pooled_sigma: float
    flip: Array
    pooled_flip: float
    gross: float = 0.0


def estimate_flips(field: Potentials, p0: Array, X: Array, y: Codes, sigma: Array, begin: Array | None = None) -> Array:
    """(F-26) iterated until it settles: the share of observed categories that the field does not believe.

    **Departure.** Twelve rounds end early when much is flipped: .46 / .45 / .48 for .5 on credit, australian, german, against
    .49 / .47 / .51 when settled.
    """
    flip = np.full(field.layout.n_columns, START_FLIP) if begin is None else begin
    for _ in range(MAX_FLIP_ROUNDS):
        Q = infer(field, X, y, Noise(sigma, flip), frequencies=p0).Q
        before, flip = flip, doubted(field, Q, y, flip)
        if np.abs(flip - before).max(initial=0.0) < FLIP_TOLERANCE:
            break
    return flip


def doubted(field: Potentials, Q: Array, y: Codes, flip: Array) -> Array:
    """(F-26): mean probability that an observed category is wrong; columns without observed cells keep their rate."""
    layout, out = field.layout, flip.copy()
    for j in range(layout.n_columns):
        rows = np.flatnonzero(y[:, j] >= 0)
        if len(rows):
            doubt = 1.0 - Q[rows, layout.offsets[j] + y[rows, j]]
            out[j] = np.clip(doubt.mean(), 1e-3, 1 - 1 / (2 * layout.sizes[j]))
    return out


def estimate_sigma(field: Potentials, atoms: Atoms, X: Array, y: Codes, flip: Array) -> tuple[Array, float]:
    """(F-29): sigma of every number and the pooled one, on the grid, then refined between its neighbours."""
    m = X.shape[1]
    if m == 0:
        return np.zeros(0), float(GRID[0])
    start = Noise(np.full(m, START_SIGMA), flip)
    beliefs = infer(field, X, y, start)
    seen = ~np.isnan(X)
    counts = np.maximum(seen.sum(axis=0), 1)

    def likelihood(sigma: float) -> Array:
        precision = cell_precision(X, Noise(np.full(m, sigma), flip))
        log_p = empirical(atoms, X, precision, beliefs).log_density
        mixed = np.logaddexp(np.log1p(-EPSILON) + log_p, np.log(EPSILON * atoms.background))
        return np.asarray(np.where(seen, mixed, 0.0).sum(axis=0) / counts)

    values = np.array([likelihood(sigma) for sigma in GRID])
    pooled = _refine(likelihood, values.sum(axis=1))
    return GRID[values.argmax(axis=0)], pooled


def _refine(likelihood: Callable[[float], Array], values: Array) -> float:
    """The best grid point, moved to the better of the points halfway to its neighbours; the lowest stays what it is."""
    best = int(values.argmax())
    if best == 0:
        return float(GRID[0])
    around = [0.5 * (GRID[best - 1] + GRID[best])] + (
        [0.5 * (GRID[best] + GRID[best + 1])] if best + 1 < len(GRID) else []
    )
    trial = [(float(values[best]), float(GRID[best]))] + [(float(likelihood(s).sum()), float(s)) for s in around]
    return max(trial)[1]


def estimate(field: Potentials, atoms: Atoms, p0: Array, X: Array, y: Codes, *, gross: bool = False) -> NoiseEstimate:
    """Flip rates at sigma .3, then sigma, then flip rates once more (F6.4)."""
    flip = estimate_flips(field, p0, X, y, np.full(X.shape[1], START_SIGMA))
    sigma, pooled = estimate_sigma(field, atoms, X, y, flip)
    flip = estimate_flips(field, p0, X, y, np.full(X.shape[1], pooled), flip)
    nil = Noise.nil(X.shape[1], y.shape[1])
    rate = estimate_gross_rate(field, atoms, X, y, nil) if gross else 0.0
    return NoiseEstimate(sigma, pooled, flip, float(flip.mean()) if len(flip) else 0.0, rate)


def measure_floors(
    rows: Rows,
    refit: Callable[[Rows], Potentials],
    rng: np.random.Generator,
    *,
    gross: bool = False,
    splits: int = SPLITS,
) -> Floors:
    """F6.4: fit on three quarters, estimate on the clean rest, take the largest value over the splits."""
    found = []
    for _ in range(splits):
        order = rng.permutation(len(rows.numbers))[:MAX_ROWS]
        cut = 3 * len(order) // 4
        train, rest = rows.take(order[:cut]), order[cut:]
        atoms = Atoms.of(train.numbers, train.weights)
        X, y = rows.numbers[rest], rows.codes[rest]
        found.append(estimate(refit(train), atoms, train.frequencies, X, y, gross=gross))
    return Floors(
        np.max([f.sigma for f in found], axis=0),
        max(f.pooled_sigma for f in found),
        np.max([f.flip for f in found], axis=0),
        max(f.pooled_flip for f in found),
        max(f.gross for f in found),
    )


def gate(found: NoiseEstimate, floors: Floors) -> tuple[Noise, bool, bool, float]:
    """F6.4: noise to act on, whether sigma and flips passed their floors, and the gross-error rate (0 below its
    floor)."""
    sigma_passes = found.pooled_sigma > floors.pooled_sigma
    flip_passes = found.pooled_flip > max(floors.pooled_flip, MIN_FLIP)
    sigma = np.full(len(found.sigma), found.pooled_sigma if sigma_passes else 0.0)
    flip = found.flip if flip_passes else np.zeros(len(found.flip))
    return Noise(sigma, flip), sigma_passes, flip_passes, found.gross if found.gross > floors.gross else 0.0


def published_em(field: Potentials, p0: Array, X: Array, y: Codes, rounds: int = ROUNDS) -> Noise:
    """(F-25) and (F-26): variational EM with the field held. Its sigma hardly leaves the start (F6.2): paper mode
    only."""
    seen_x = ~np.isnan(X)
    sigma, flip = np.full(X.shape[1], START_SIGMA), np.full(field.layout.n_columns, START_FLIP)
    for turn in range(rounds):
        outer = 6 if turn in (0, rounds - 1) else 4
        beliefs = infer(field, X, y, Noise(sigma, flip), method="structured", frequencies=p0, outer=outer)
        miss = np.where(seen_x, (np.nan_to_num(X) - beliefs.mean) ** 2 + beliefs.variance, 0.0)
        sigma = np.sqrt(np.maximum(miss.sum(axis=0) / np.maximum(seen_x.sum(axis=0), 1), 0.02**2))
        flip = doubted(field, beliefs.Q, y, flip)
    return Noise(sigma, flip)
