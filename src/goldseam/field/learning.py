"""Learn a field from reference rows: penalty by held-out fit, gaps in the reference by stochastic EM (F4.5, F4.7).

| spec | where |
|---|---|
| F4.3, F4.6 one fit | `fit_field` |
| F4.5 choice of c | `choose_penalty` |
| F4.7 rows with blanks | `learn` |
| F1.2 held-out or training fit of rows | `mean_score` |
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from goldseam.field.beliefs import Codes, Noise
from goldseam.field.inference import sample
from goldseam.field.objective import Objective, ObjectiveKind, Rows, effective_rows, penalty_level, start
from goldseam.field.optimiser import minimise
from goldseam.field.potentials import Potentials, make_definite

__all__ = ["Learnt", "choose_penalty", "fit_field", "learn", "mean_score"]

Array = NDArray[np.float64]
CANDIDATES = (1.2, 0.8, 0.4, 0.2)  # F4.5, heaviest first: each fit starts from the one before
MAX_CHOICE_ROWS = 8000  # rows that choose c (F4.6)
ROUNDS, COPIES = 4, 2  # F4.7


@dataclass(frozen=True)
class Learnt:
    """A learnt field: potentials, the constant c, F of (F-7), iterations, whether they settled, the last gain per
    iteration."""

    field: Potentials
    c: float
    value: float
    n_iter: int
    converged: bool
    last_change: float


def fit_field(
    rows: Rows,
    kind: ObjectiveKind,
    c: float,
    *,
    n_rows: float | None = None,
    begin: Potentials | None = None,
    max_iter: int = 500,
    tol: float = 1e-6,
) -> Learnt:
    """Minimise (F-7) on complete rows; `n_rows` stands for N in (F-8) when rows are copies."""
    n_columns = rows.numbers.shape[1] + rows.layout.n_columns
    penalty = penalty_level(c, n_columns, effective_rows(rows.weights) if n_rows is None else n_rows)
    objective = Objective(rows, kind, penalty)
    fit = minimise(objective, objective.pack(start(rows) if begin is None else begin), max_iter, tol)
    field = objective.unpack(fit.x)
    if kind == "pseudo":
        B, _ = make_definite(field.B)
        field = Potentials(B, field.a, field.R, field.h, field.Phi, field.offsets)
    return Learnt(field, c, fit.value, fit.n_iter, fit.converged, fit.last_change)


def choose_penalty(rows: Rows, kind: ObjectiveKind, rng: np.random.Generator, *, max_iter: int = 200) -> float:
    """F4.5: fit on three quarters for each candidate, take the best (F-9) on the rest."""
    order = rng.permutation(len(rows.numbers))[:MAX_CHOICE_ROWS]
    cut = 3 * len(order) // 4
    if cut < 8:
        return 0.5
    train, rest = rows.take(order[:cut]), rows.take(order[cut:])
    scores, field = [], None
    for c in CANDIDATES:
        field = fit_field(train, kind, c, begin=field, max_iter=max_iter, tol=1e-5).field
        scores.append(mean_score(field, rest))
    return CANDIDATES[int(np.argmax(scores))]


def mean_score(field: Potentials, rows: Rows) -> float:
    """Minus (F-9), minus ½ m log 2 pi: the mean log conditional likelihood of complete rows (F1.2)."""
    objective = Objective(rows, "block", 0.0)
    return -objective.value(objective.pack(field)) - 0.5 * field.n_numbers * float(np.log(2 * np.pi))


def learn(
    numbers: Array,
    codes: Codes,
    rows_like: Rows,
    kind: ObjectiveKind,
    c: float | None,
    rng: np.random.Generator,
    *,
    max_iter: int,
    tol: float,
) -> tuple[Learnt, Rows]:
    """Learn from rows that may have blanks (NaN, codes below 0); also gives the (completed) rows. `c` None chooses it.

    `rows_like` carries layout and weights. Blanks are first filled by draws from their own column, then by Gibbs draws
    from the field, learnt anew in each of four rounds.
    """
    layout, weights = rows_like.layout, rows_like.weights
    blank_x, blank_y = np.isnan(numbers), codes < 0
    complete = Rows.of(*_draw_from_columns(numbers, codes, rng), layout, weights)
    c = choose_penalty(complete, kind, rng) if c is None else c
    n_rows = effective_rows(weights)
    learnt = fit_field(complete, kind, c, n_rows=n_rows, max_iter=max_iter, tol=tol)
    if not (blank_x.any() or blank_y.any()):
        return learnt, complete
    nil = Noise.nil(numbers.shape[1], layout.n_columns)
    known = np.where(codes < 0, -1, codes).astype(np.int32)
    for _ in range(ROUNDS):
        seed = int(rng.integers(2**62))
        u, v = sample(learnt.field, numbers, known, nil, COPIES, seed=seed, every=31, burn_in=0)
        stacked = Rows.of(np.concatenate(u), np.concatenate(v), layout, np.tile(weights, COPIES))
        learnt = fit_field(stacked, kind, c, n_rows=n_rows, begin=learnt.field, max_iter=max_iter, tol=tol)
    return learnt, Rows.of(u[0], v[0], layout, weights)


def _draw_from_columns(numbers: Array, codes: Codes, rng: np.random.Generator) -> tuple[Array, Codes]:
    """Blanks filled by random observed values of their column."""
    numbers, codes = numbers.copy(), codes.copy()
    for s in range(numbers.shape[1]):
        blank = np.isnan(numbers[:, s])
        numbers[blank, s] = rng.normal(size=int(blank.sum()))  # standardised: mean 0, sd 1
    for j in range(codes.shape[1]):
        blank = codes[:, j] < 0
        codes[blank, j] = rng.choice(codes[~blank, j], int(blank.sum())) if blank.any() else 0
    return numbers, codes
