"""When a category should change: Bayes' rule, each of its terms weighed by what it was worth in rehearsal.

Level x stands, v is the likeliest other one of K. By the rest of its row the cell is damaged with odds e^c, and damage draws
any level with probability 1 / K; q are the probabilities of the levels given other cells.

| equation | function |
|---|---|
| (E-11) log odds that v is right rather than x = c - log K + log q(v) - log q(x) | `BAYES` |
| its terms: c below and above 0; log q(x) from the believed cells and from all; log q(v); log K; share suspected | `terms` |
| their weights: logistic regression on rehearsed cells, shrunk towards Bayes' rule | `fit_terms` |

In rehearsal c proves too sure of itself above 0, and what is withheld wrongly would have vouched for x: so both have weights of
their own. The share suspected is not in Bayes' rule: the more is suspected, the worse is q.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from goldseam.conditional.marginals import Floats

__all__ = ["BAYES", "fit_terms", "log_odds", "terms"]

BAYES = (1.0, 1.0, -0.5, -0.5, 1.0, -1.0, 0.0, 0.0)  # weights of the terms; the last is a constant
DOUBTFUL = -3.0  # context below this counts as this
CERTAIN = 8.0  # and above this as this
UNKNOWN = 0.002  # probability of a level that was never seen
ROUNDS = 50
HALVES = tuple(0.5**k for k in range(8))  # of Newton's step, the best is taken
TOLERANCE = 1e-6  # gain of a round below which it is the last
TRACE = 1e-9
CONSTANT = 1e-3  # a term's variance counts as at least this


def terms(
    codes: NDArray[np.int32],
    scores: Floats,
    context: Floats,
    levels: Floats,
    all_told: Floats,
    offsets: NDArray[np.int64],
) -> tuple[NDArray[np.int32], Floats]:
    """The likeliest other level of every category cell (n, k), and the terms of (E-11), (n, k, 8).

    `scores` (n, p) of all cells of the rows, `context` (n, k); `levels` are the probabilities of all levels side by side given
    the believed cells, column j at offsets[j] : offsets[j + 1], and `all_told` those given all cells.
    """
    n, k = codes.shape
    other, out = np.zeros((n, k), dtype=np.int32), np.ones((n, k, len(BAYES)))
    out[:, :, 0] = np.clip(context, DOUBTFUL, 0.0)
    out[:, :, 1] = np.clip(context, 0.0, CERTAIN)
    out[:, :, 6] = (scores > 0.0).mean(1, keepdims=True)
    rows = np.arange(n)
    for j in range(k):
        share, whole = levels[:, offsets[j] : offsets[j + 1]].copy(), all_told[:, offsets[j] : offsets[j + 1]]
        seen, code = codes[:, j] >= 0, np.maximum(codes[:, j], 0)
        stands = [np.where(seen, one[rows, code], UNKNOWN) for one in (share, whole)]
        share[rows[seen], code[seen]] = 0.0
        other[:, j] = share.argmax(1)
        logs = np.log(np.maximum([*stands, share.max(1)], 1e-300))
        out[:, j, 2:5] = logs.T
        out[:, j, 5] = np.log(share.shape[1])
    return other, out


def log_odds(parts: Floats, weights: Floats) -> Floats:
    """Log odds (...) that the other level is right rather than the one that stands, from terms (..., 8).

    >>> parts = np.array([0.0, 2.0, np.log(0.1), np.log(0.1), np.log(0.6), np.log(4.0), 0.1, 1.0])
    >>> bool(np.isclose(log_odds(parts, np.array(BAYES)), 2.0 + np.log(0.6 / 0.1 / 4.0)))
    True
    """
    return np.asarray((parts * weights).sum(-1))  # a product of matrices might depend on the rows beside it


def fit_terms(parts: Floats, good: NDArray[np.bool_], weight: Floats, prior: float) -> Floats:
    """Weights of the terms from cells that were to change (`good`) or to stay, each with a `weight`.

    Penalised logistic regression by Newton's method: the penalty prior var(term) (weight - Bayes' weight)^2 / 2 counts as
    about `prior` cells.
    """
    bayes = np.array(BAYES)
    if not good.any() or good.all():
        return bayes
    penalty = prior * np.maximum(parts.var(0), CONSTANT)

    def loss(weights: Floats) -> float:
        z = parts @ weights
        return float(weight @ (np.logaddexp(0.0, z) - good * z) + 0.5 * penalty @ (weights - bayes) ** 2)

    weights, now = bayes, loss(bayes)
    for _ in range(ROUNDS):
        right = 1.0 / (1.0 + np.exp(-np.clip(parts @ weights, -30.0, 30.0)))
        slope = parts.T @ (weight * (good - right)) - penalty * (weights - bayes)
        curve = (parts * (weight * right * (1.0 - right))[:, None]).T @ parts + np.diag(penalty + TRACE)
        step = np.linalg.solve(curve, slope)
        tried = [weights + share * step for share in HALVES]
        losses = [loss(one) for one in tried]
        best = int(np.argmin(losses))
        if losses[best] >= now - TOLERANCE:
            break
        weights, now = tried[best], losses[best]
    return weights
