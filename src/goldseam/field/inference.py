"""The posterior of a row under a field and its emission (F5).

| equation | where |
|---|---|
| (F-18) to (F-20), (F-22) the published loop | `infer(..., method="structured")`, `method="mean-field"` |
| (F-21) loopy belief propagation | `infer(..., method="lbp")` |
| F5.5 Gibbs | `sample`, `method="gibbs"` |
| all combinations of the unknown categories | `method="exact"` (`exact`) |
| what a cell should be given the other believed cells | `leave_one_out` |

**Departure.** The published loop takes q(u) q(v) independent of each other: a blank number and a blank category that
determine each other then lock into one guess, and the probabilities are over-confident. Here the numbers are
integrated out exactly: given the pattern of observed numbers with V of (F-19), the categories alone are again a
pairwise field, with unary potentials h + R'V b + ½ diag(R'VR) and pair potentials Phi + R'VR, where b = a + x/sigma².
Loopy belief propagation runs on that field once, without an outer loop, and is followed by the exact mean and
variance of the numbers given the beliefs. Numbers without noise are clamped: they leave V and enter the unary terms.
On adult with half the cells blank the log-loss of the blanks falls from 1.17 to .98. The published loop remains as
"structured".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from goldseam.engines.local import map_row_blocks
from goldseam.field import gibbs_kernels, leave_one_out_kernels, message_kernels, published_kernels
from goldseam.field.beliefs import Array, Beliefs, Codes, Noise, cell_precision, groups_of
from goldseam.field.exact import enumerate_rows
from goldseam.field.potentials import Potentials

__all__ = ["Beliefs", "Method", "Noise", "infer", "leave_one_out", "row_seeds", "sample"]

# numba's own annotations take no starred arguments
gibbs_rows: Any = gibbs_kernels.gibbs_rows
infer_rows: Any = message_kernels.infer_rows
leave_one_out_rows: Any = leave_one_out_kernels.leave_one_out_rows
structured_rows: Any = published_kernels.structured_rows
Method = Literal["lbp", "structured", "mean-field", "gibbs", "exact"]

MAX_SWEEPS = 12  # 6 outer steps of 2 sweeps in F5.1
TOLERANCE = 1e-3  # F5.1
CHUNK = 4096  # rows per task; results do not depend on it
SIGMA_FLOOR, FLIP_FLOOR = 0.02, 1e-3  # F5.1: nil noise in the published loop
GIBBS_SWEEPS, GIBBS_BURN_IN = 180, 40  # F5.5


def in_chunks(call: Callable[[slice], None], n_rows: int, n_jobs: int, size: int = CHUNK) -> None:
    """Run `call` over blocks of rows, in threads when n_jobs > 1."""
    if n_rows:
        map_row_blocks(call, n_rows, n_jobs=n_jobs, block=size)


def infer(
    field: Potentials,
    numbers: Array,
    codes: Codes,
    noise: Noise,
    *,
    method: Method = "lbp",
    frequencies: Array | None = None,
    precision: Array | None = None,
    max_sweeps: int = MAX_SWEEPS,
    tol: float = TOLERANCE,
    outer: int = 6,
    seed: int = 0,
    n_jobs: int = 1,
) -> Beliefs:
    """Beliefs about every row; `numbers` standardised with NaN for blanks, codes below 0 for cells that say nothing.

    `precision` (N, m) replaces the precisions that follow from `noise` (gross errors: every cell has its own).
    `frequencies` is p0,
    needed by the published loop (F-18).

    >>> field = Potentials(np.eye(1), np.zeros(1), np.array([[1.0, -1.0]]), np.zeros(2), np.zeros((2, 2)), np.array([0, 2]))
    >>> beliefs = infer(field, np.array([[0.5]]), np.array([[-1]], dtype=np.int32), Noise.nil(1, 1))
    >>> beliefs.Q.round(3)
    array([[0.731, 0.269]])
    """
    if method in ("structured", "mean-field"):
        noise = Noise(np.maximum(noise.sigma, SIGMA_FLOOR), np.maximum(noise.flip, FLIP_FLOOR))
    precision = cell_precision(numbers, noise) if precision is None else precision
    n_rows = len(numbers)
    out = Beliefs.empty(n_rows, field.layout.n_states, field.n_numbers)
    odds = noise.log_odds(field.layout.sizes)
    p0 = np.ones(field.layout.n_states) if frequencies is None else frequencies

    def run(rows: slice) -> None:
        X, y, part = np.ascontiguousarray(numbers[rows]), np.ascontiguousarray(codes[rows]), out.rows(rows)
        order, group, patterns = groups_of(precision[rows])
        head = (X, y, order, group, patterns, *field.arrays, *field.layout.pairs, odds)
        if method == "lbp":
            infer_rows(
                *head, max_sweeps, tol, part.Q, part.mean, part.variance, part.cavity_mean, part.cavity_variance,
                part.sweeps, part.change,
            )  # fmt: skip
        elif method == "exact":
            enumerate_rows(field, X, y, noise, patterns[group], part)
        elif method == "gibbs":
            _gibbs(field, X, y, order, group, patterns, odds, part, seed)
        else:
            naive = method == "mean-field"
            structured_rows(*head, p0, naive, outer, 2, tol, part.Q, part.mean, part.variance, part.sweeps, part.change)
        if method != "lbp":
            _cavities(part, X, patterns[group])

    in_chunks(run, n_rows, n_jobs)
    return out


def _cavities(part: Beliefs, X: Array, precision: Array) -> None:
    """(F-30) from mean and variance."""
    clamped = np.isinf(precision)
    own = np.where(clamped, 0.0, precision)
    V = np.where(clamped, 1.0, part.variance)
    t = np.maximum(1.0 / V - own, 1e-3)
    part.cavity_mean[:] = np.where(clamped, part.mean, (part.mean / V - own * np.nan_to_num(X)) / t)
    part.cavity_variance[:] = np.where(clamped, 0.0, 1.0 / t)


def row_seeds(numbers: Array, codes: Codes, seed: int) -> NDArray[np.uint64]:
    """One seed per row from its content and the model's seed: the same row draws the same numbers in any table
    (DESIGN, principle 1)."""
    words = np.concatenate([numbers.view(np.uint64), codes.astype(np.int64).view(np.uint64)], axis=1)
    state = np.full(len(words), np.uint64(seed % 2**63), dtype=np.uint64)
    for column in range(words.shape[1]):
        state = (state ^ words[:, column]) * np.uint64(0xBF58476D1CE4E5B9)
        state ^= state >> np.uint64(31)
        state *= np.uint64(0x94D049BB133111EB)
        state ^= state >> np.uint64(29)
    return state


def _gibbs(
    field: Potentials,
    X: Array,
    y: Codes,
    order: Any,
    group: Any,
    patterns: Array,
    odds: Array,
    part: Beliefs,
    seed: int,
) -> None:
    seeds = row_seeds(X, y, seed)
    nothing_u, nothing_v = np.empty((0, len(X), X.shape[1])), np.empty((0, len(X), y.shape[1]), dtype=np.int32)
    gibbs_rows(
        X, y, seeds, order, group, patterns, *field.arrays, odds, GIBBS_BURN_IN, GIBBS_SWEEPS, 0,
        part.Q, part.mean, part.variance, nothing_u, nothing_v,
    )  # fmt: skip
    part.sweeps[:] = GIBBS_SWEEPS


def sample(
    field: Potentials,
    numbers: Array,
    codes: Codes,
    noise: Noise,
    n_draws: int,
    *,
    seed: int = 0,
    every: int = 10,
    burn_in: int = GIBBS_BURN_IN,
    n_jobs: int = 1,
) -> tuple[Array, Codes]:
    """Draws of the clean row from its posterior (F9.3): numbers (draws, N, m) and codes (draws, N, n); clamped cells
    are constant."""
    u = np.empty((n_draws, len(numbers), field.n_numbers))
    v = np.empty((n_draws, len(numbers), field.layout.n_columns), dtype=np.int32)
    odds, precision = noise.log_odds(field.layout.sizes), cell_precision(numbers, noise)
    scratch = Beliefs.empty(len(numbers), field.layout.n_states, field.n_numbers)

    def run(rows: slice) -> None:
        X, y, part = np.ascontiguousarray(numbers[rows]), np.ascontiguousarray(codes[rows]), scratch.rows(rows)
        order, group, patterns = groups_of(precision[rows])
        gibbs_rows(
            X, y, row_seeds(X, y, seed), order, group, patterns, *field.arrays, odds, burn_in, n_draws * every, every,
            part.Q, part.mean, part.variance, u[:, rows], v[:, rows],
        )  # fmt: skip

    in_chunks(run, len(numbers), n_jobs)
    return u, v


def leave_one_out(
    field: Potentials, numbers: Array, codes: Codes, withheld_numbers: Any, withheld_codes: Any, *, n_jobs: int = 1
) -> tuple[Array, Array, Array]:
    """Every cell given the *other* believed cells: mean (N, m), variance (N, m), category probabilities (N, T).

    A cell is believed when it is observed and not withheld. A withheld cell is predicted from all believed ones, a
    believed cell from
    all believed ones but itself. Exact for numbers when no category is hidden, and for any cell with one hidden
    category; with more, the
    influence of a cell on the hidden ones is divided out one neighbour at a time.
    """
    X = np.where(withheld_numbers, np.nan, numbers)
    y = np.where(withheld_codes, -1, codes).astype(np.int32)
    nil = Noise.nil(field.n_numbers, field.layout.n_columns)
    precision, blank = cell_precision(X, nil), y < 0
    mean, variance, Q = X.copy(), np.zeros(X.shape), field.layout.one_hot(y)  # of rows with nothing to infer
    gaps = np.flatnonzero(np.isnan(X).any(axis=1) | blank.any(axis=1))
    beliefs = infer(field, X[gaps], y[gaps], nil, precision=precision[gaps], n_jobs=n_jobs)
    mean[gaps], variance[gaps], Q[gaps] = beliefs.mean, beliefs.variance, beliefs.Q

    def run(rows: slice) -> None:
        leave_one_out_rows(
            X[rows], y[rows], blank[rows], *groups_of(precision[rows]), *field.arrays, *field.layout.pairs,
            Q[rows], mean[rows], variance[rows],
        )  # fmt: skip

    in_chunks(run, len(X), n_jobs)
    return mean, variance, Q
