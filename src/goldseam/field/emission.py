"""How an observed number relates to the clean one when columns are lumpy: empirical marginals and gross errors (F7,
F8).

| equation | where |
|---|---|
| atoms, W, epsilon | `Atoms.of` |
| (F-31) to (F-33) | `empirical`, `blank` (loops in `atom_kernels`) |
| (F-34) to (F-38), the rounds | `gross_errors` |
| (F-31) as a distribution | `atom_weights`, `atom_quantiles` |

The clean density of a number is the field's Gaussian, with its N(0, 1) marginal replaced by the training values. A
wide background keeps values beyond the training range alive.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldseam.errors import ModelFileError
from goldseam.field import atom_kernels as _kernels
from goldseam.field.beliefs import Beliefs, Codes, Noise, groups_of
from goldseam.field.inference import in_chunks, infer
from goldseam.field.potentials import Potentials
from goldseam.model_file import check_indices

__all__ = ["Atoms", "Empirical", "GrossErrors", "atom_quantiles", "atom_weights", "blank", "empirical", "gross_errors"]

Array = NDArray[np.float64]
kernels: Any = _kernels
MAX_ATOMS = 300
EPSILON = 0.02  # weight of the background
GROSS_SIGMA = 0.05  # s0 of (F-34)
LUMPY_SIGMA = 0.01  # s0 where more than half of the training rows share their value with another
GROSS_ROUNDS = 3
WORKING_VARIANCE = 0.02  # (F-36)
HEAVY = 2.0  # tail index below which values beyond the range are believed (E5)
MAX_WIDTH = 0.25  # of an atom: one lonely giant must not excuse everything around it


@dataclass(frozen=True)
class Atoms:
    """The values each number takes in training: values, log p, squared widths, where each column starts, and its range.

    **Departure.** In F7 an atom is a point. Here a value that occurs once is a normal as wide as the gap to its
    neighbours: a column of distinct values says nothing about where between them the next one falls. Points made truly
    continuous columns worse than leaving them alone (wine, wdbc at tau .1: by up to 5 %). Values that repeat stay points.
    """

    values: Array
    log_p: Array
    widths: Array
    starts: NDArray[np.int64]
    range: Array

    def check_state(self) -> None:
        """A file whose columns of atoms lead outside is refused."""
        check_indices("starts of atoms", self.starts, 0, len(self.values) + 1)
        if len(self.starts) != len(self.range) + 1 or (np.diff(self.starts) < 1).any():
            raise ModelFileError(f"The model file's atoms must give each of {len(self.range)} numbers at least one.")
        if {len(self.log_p), len(self.widths)} != {len(self.values)}:
            raise ModelFileError(f"The model file's atoms must have {len(self.values)} shares and widths.")

    @classmethod
    def of(cls, numbers: Array, weights: Array) -> Atoms:
        """Atoms of standardised training columns (rows with weights that sum to one)."""
        columns = [_atoms(numbers[:, s], weights) for s in range(numbers.shape[1])]
        starts = np.concatenate([[0], np.cumsum([len(a) for a, _, _ in columns])]).astype(np.int64)
        values, shares, widths = (
            np.concatenate([column[part] for column in columns]) if columns else np.zeros(0) for part in range(3)
        )
        span = np.array([max(a[-1] - a[0], 1e-6) for a, _, _ in columns])
        return cls(values, np.log(shares), widths**2, starts, span)

    @property
    def log_share(self) -> Array:
        """log p_k + ½ min(a_k², 9): the share over the fitted N(0, 1), capped (F-31)."""
        return self.log_p + 0.5 * np.minimum(self.values**2, 9.0)

    @property
    def background(self) -> Array:
        """1/W with W three times the training range."""
        return 1.0 / (3.0 * self.range)

    @property
    def heavy(self) -> NDArray[np.bool_]:
        """Columns whose largest tenth falls off like a power below 2 (Hill): values beyond the range are natural there."""
        return np.array([_hill(self.values[self.column(s)]) < HEAVY for s in range(len(self.range))], dtype=bool)

    @property
    def lumpy(self) -> NDArray[np.bool_]:
        """Columns in which more than half of the training rows share their value with another row."""
        points = np.where(self.widths == 0, np.exp(self.log_p), 0.0)
        return np.array([points[self.column(s)].sum() > 0.5 for s in range(len(self.range))], dtype=bool)

    def beyond(self, numbers: Array) -> NDArray[np.bool_]:
        """True where a number lies outside the training range."""
        return np.asarray((numbers < self.values[self.starts[:-1]]) | (numbers > self.values[self.starts[1:] - 1]))

    def merged(self, steps: Array) -> Atoms:
        """Fewer atoms: those of a column that share a step of its size become one, with their mean and variance."""
        parts = []
        for s, step in enumerate(steps):
            at = self.column(s)
            _, bins = np.unique(np.floor(self.values[at] / step), return_inverse=True)
            p = np.exp(self.log_p[at])
            mass, first, second = (np.bincount(bins, p * x) for x in (1.0, self.values[at], self.widths[at]))
            mean = first / mass
            within = np.bincount(bins, p * np.square(self.values[at] - mean[bins]))
            parts.append((mean, np.log(mass), (second + within) / mass))
        values, log_p, widths = (np.concatenate([part[i] for part in parts] or [np.zeros(0)]) for i in range(3))
        starts = np.concatenate([[0], np.cumsum([len(part[0]) for part in parts])]).astype(np.int64)
        return Atoms(values, log_p, widths, starts, self.range)

    def column(self, s: int) -> slice:
        """Where the atoms of one number stand."""
        return slice(int(self.starts[s]), int(self.starts[s + 1]))


def _atoms(values: Array, weights: Array) -> tuple[Array, Array, Array]:
    """Values, shares and widths of the atoms of one column."""
    seen = ~np.isnan(values)
    order = np.argsort(values[seen], kind="stable")
    sorted_values, share = values[seen][order], weights[seen][order]
    if len(sorted_values) == 0:
        return np.zeros(1), np.ones(1), np.ones(1)
    distinct, counts = np.unique(sorted_values, return_counts=True)
    if len(sorted_values) > MAX_ATOMS:
        wanted = (np.arange(MAX_ATOMS) + 0.5) / MAX_ATOMS
        middle = np.cumsum(share) - 0.5 * share
        at = np.clip(np.searchsorted(middle / share.sum(), wanted), 0, len(middle) - 1)
        sorted_values, share = sorted_values[at], np.full(MAX_ATOMS, 1.0)
    unique, group = np.unique(sorted_values, return_inverse=True)
    p = np.bincount(group.reshape(-1), share)
    unique, p = unique[p > 0], p[p > 0] / p.sum()
    once = counts[np.searchsorted(distinct, unique)] == 1
    return (
        unique,
        p,
        np.where(once, np.minimum(_gaps(np.concatenate([distinct[:1], unique, distinct[-1:]])), MAX_WIDTH), 0.0),
    )


def _hill(values: Array) -> float:
    """Hill's index of the distances from the middle, largest tenth (at least 5)."""
    far = np.sort(np.abs(values - np.median(values)))[::-1]
    k = max(5, len(far) // 10)
    if len(far) <= k or far[k] <= 0:
        return np.inf
    return float(1.0 / max(np.mean(np.log(far[:k] / far[k])), 1e-12))


def _gaps(values: Array) -> Array:
    """Half the distance between the two neighbours of every inner value."""
    return np.asarray(0.5 * (values[2:] - values[:-2]))


@dataclass(frozen=True)
class Empirical:
    """(F-33): mean and variance of every number; `genuine` is g, `log_density` log p(x; sigma) of (F-32)."""

    mean: Array
    variance: Array
    genuine: Array
    log_density: Array


def empirical(atoms: Atoms, numbers: Array, precision: Array, beliefs: Beliefs, *, n_jobs: int = 1) -> Empirical:
    """Correct the beliefs about the numbers by the shape of their columns; clamped cells keep theirs."""
    out = Empirical(beliefs.mean.copy(), beliefs.variance.copy(), *(np.empty_like(beliefs.mean) for _ in range(2)))

    def run(rows: slice) -> None:
        _, group, patterns = groups_of(precision[rows])
        kernels.empirical_rows(
            np.ascontiguousarray(numbers[rows]), patterns, group, beliefs.cavity_mean[rows],
            beliefs.cavity_variance[rows], atoms.values, atoms.log_share, atoms.widths, atoms.starts, atoms.background, EPSILON,
            out.mean[rows], out.variance[rows], out.genuine[rows], out.log_density[rows],
        )  # fmt: skip

    in_chunks(run, len(numbers), n_jobs)
    return out


def blank(atoms: Atoms, mean: Array, variance: Array, *, n_jobs: int = 1) -> tuple[Array, Array]:
    """Mean and variance of numbers that are not observed, from the field's: `empirical` to seven digits, faster."""
    new_mean, new_variance = np.empty_like(mean), np.empty_like(variance)
    columns = atoms.values, atoms.log_share, atoms.widths, atoms.starts

    def run(rows: slice) -> None:
        kernels.blank_rows(mean[rows], variance[rows], *columns, new_mean[rows], new_variance[rows])

    in_chunks(run, len(mean), n_jobs)
    return new_mean, new_variance


def atom_weights(atoms: Atoms, s: int, centre: Array, spread: Array, x: Array, precision: Array) -> Array:
    """omega of (F-32) for one number of every row (N, atoms); w of (F-31) where the precision is 0."""
    part = atoms.column(s)
    values, base = atoms.values[part], atoms.log_share[part]
    own = np.where(np.isinf(precision) | np.isnan(x), 0.0, precision)[:, None]
    log_w = base - 0.5 * (values - centre[:, None]) ** 2 / np.maximum(spread, 1e-12)[:, None]
    inflated = 1.0 + own * atoms.widths[part]
    log_w = log_w - 0.5 * own * (values - np.nan_to_num(x)[:, None]) ** 2 / inflated - 0.5 * np.log(inflated)
    w = np.exp(log_w - log_w.max(axis=1, keepdims=True))
    return np.asarray(w / w.sum(axis=1, keepdims=True))


def atom_quantiles(atoms: Atoms, s: int, weights: Array, probability: float) -> Array:
    """Quantile of the weighted atoms of one number, per row: the first atom whose cumulative weight reaches it."""
    values = atoms.values[atoms.column(s)]
    at = (np.cumsum(weights, axis=1) < probability - 1e-12).sum(axis=1)
    return np.asarray(values[np.minimum(at, len(values) - 1)])


@dataclass(frozen=True)
class GrossErrors:
    """Result of the mixture emission: probability that a number is corrupt (NaN where blank), what it should be, the
    beliefs."""

    probability: Array
    fill: Array
    variance: Array
    beliefs: Beliefs


def gross_errors(
    field: Potentials, atoms: Atoms, numbers: Array, codes: Codes, noise: Noise, rate: float, *, n_jobs: int = 1
) -> GrossErrors:
    """(F-34) to (F-37) with a given rate: who can be believed and what the row says are found in turn.

    A row's own responsibilities set the precision of its cells, so every row is inferred on its own.

    **Departure.** (F-34) takes s0 = .05 everywhere. In a column that repeats values an error that is not one of them
    gives itself away, but a kernel of .05 hides it: there s0 is .01 (AUC of the flag at 5 / 15 %, six repeats: credit .930 /
    .920 -> .944 / .932, german .942 / .940 -> .978 / .980, australian .918 / .925 -> .939 / .939; wdbc has no such column).
    """
    seen = ~np.isnan(numbers)
    s0 = np.maximum(np.where(atoms.lumpy, LUMPY_SIGMA, GROSS_SIGMA), noise.sigma)
    flips = Noise(noise.sigma, np.maximum(noise.flip, rate))
    r = np.full(numbers.shape, rate)
    narrow = np.where(seen, 1.0 / s0**2, 0.0)
    giants = atoms.beyond(numbers) & atoms.heavy  # natural giants are not errors
    for _ in range(GROSS_ROUNDS):
        working = np.where(seen, (1.0 - r) / (s0**2 + WORKING_VARIANCE), 0.0)
        beliefs = infer(field, numbers, codes, flips, precision=working, n_jobs=n_jobs)
        log_clean = empirical(atoms, numbers, narrow, beliefs, n_jobs=n_jobs).log_density
        log_clean = np.where(giants, np.maximum(log_clean, -np.log(atoms.range)), log_clean)
        odds = np.exp(np.clip(np.log(rate / (1 - rate)) - np.log(atoms.range) - log_clean, -60.0, 60.0))
        r = np.where(seen, odds / (1.0 + odds), rate)
    blank = empirical(atoms, numbers, np.zeros_like(numbers), beliefs, n_jobs=n_jobs)
    return GrossErrors(np.where(seen, r, np.nan), blank.mean, blank.variance, beliefs)


def estimate_gross_rate(
    field: Potentials, atoms: Atoms, numbers: Array, codes: Codes, noise: Noise, *, n_jobs: int = 1
) -> float:
    """(F-38): one rate for the table, six passes from .05."""
    rate = 0.05
    for _ in range(6):
        found = gross_errors(field, atoms, numbers, codes, noise, rate, n_jobs=n_jobs)
        seen = ~np.isnan(found.probability)
        rate = float(np.clip((found.probability[seen].sum() + 1) / (seen.sum() + 20), 0.001, 0.5))
    return rate
