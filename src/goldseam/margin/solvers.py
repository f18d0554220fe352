"""Mean-field solvers: majorise-minimise on the trust-capped loss, and the printed regulariser with its dual.

=======  =======================================================================
(G-21)   `mean_field`: fit an SVM weighted by trust, update the trust by the loss
G2.4     `LiteralPrior`: pi = sig(logit p0 - beta l - mu h / N), mu by Brent's method
(G-4)    `literal_entropy`: h and the budgets S_c as printed
=======  =======================================================================

Beyond the specification, `carried_weights`: where the loss does not count (beta = 0), what distrust takes from some rows
of a class goes to the others. Else C would shrink with the trust, and with it the share of the class most damaged.

A solver knows a classifier only by `FitMachine`: weights per row in, `Fitted` (scores on the training rows, norm,
machine) out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, logit

from goldseam.margin import entropy, thresholds
from goldseam.margin.trust import Space, margin_loss, objective, trust_given_loss

__all__ = [
    "FieldPrior",
    "FitMachine",
    "Fitted",
    "LiteralEntropy",
    "LiteralPrior",
    "Solution",
    "carried_weights",
    "literal_entropy",
    "mean_field",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SMALLEST_WEIGHT = 1e-6
STALL = 1e-5


@dataclass(frozen=True)
class Fitted:
    """A classifier fitted to the training rows: scores (rows, columns of scores) and half its squared norm."""

    machine: Any
    scores: Floats
    half_norm: float


FitMachine = Callable[[Floats], Fitted]


class TrustRule(Protocol):
    """How the loss of the rows changes their trust."""

    def start(self) -> Floats:
        """Trust before any loss is known."""

    def update(self, loss: Floats) -> Floats:
        """Trust given the loss."""

    def objective(self, fitted: Fitted, loss: Floats, weights: Floats) -> float:
        """What the solver lowers; NaN where nothing is."""


@dataclass(frozen=True)
class FieldPrior:
    """The GEM field: log odds a per row, (G-20)."""

    odds: Floats
    loss_strength: float

    def start(self) -> Floats:
        """sig(a)."""
        return expit(self.odds)

    def update(self, loss: Floats) -> Floats:
        """sig(a - beta l)."""
        return trust_given_loss(self.odds, loss, self.loss_strength)

    def objective(self, fitted: Fitted, loss: Floats, weights: Floats) -> float:
        """J of (G-21)."""
        return objective(fitted.half_norm, self.odds, loss, self.loss_strength, weights)


@dataclass(frozen=True)
class LiteralEntropy:
    """h per row (G-3), budget S_c per class (G-4), class codes, and the rows s_rho below each gap."""

    values: Floats
    budgets: Floats
    codes: Ints
    n_kept: Ints


def literal_entropy(
    space: Space,
    codes: Ints,
    *,
    n_neighbors: str | int | float,
    dimension: float,
    bipartite: bool,
    rng: np.random.Generator,
    lowest: float = 0.0,
    printed_budget: bool = False,
    printed_position: bool = False,
) -> LiteralEntropy:
    """h and S_c; `lowest` is the fraction of the class where the search for the gap begins.

    Two corrections of G3 can be undone: `printed_budget` leaves S_c undivided where the entropy sum is divided by N (item
    2), `printed_position` counts the first row above the gap among those below it (item 5).
    """
    values = np.empty(len(codes))
    budgets, kept = [], []
    for code in range(int(codes.max()) + 1):
        rows = np.flatnonzero(codes == code)
        values[rows] = _class_entropy(space, rows, n_neighbors, dimension, bipartite, rng)
        ordered = np.sort(values[rows])
        kept.append(thresholds.literal_kept(ordered, int(np.ceil(lowest * len(rows)))) + printed_position)
        budgets.append(float(np.sum(ordered[: kept[-1]])) * (len(codes) if printed_budget else 1))
    return LiteralEntropy(values, np.array(budgets), codes, np.array(kept))


def _class_entropy(
    space: Space,
    rows: Ints,
    n_neighbors: str | int | float,
    dimension: float,
    bipartite: bool,
    rng: np.random.Generator,
) -> Floats:
    k = entropy.neighbour_count(n_neighbors, len(rows), bipartite=bipartite)
    if bipartite:
        k = min(k, len(rows) // 2)
        sums, sizes = entropy.bipartite_sums(space, rows, k, rng)
    else:
        sums, sizes = space.sums(rows, rows, k), np.full(len(rows), len(rows) - 1)
    return dimension * entropy.log_sums(sums)[0] - entropy.entropy_offset(k, sizes, dimension)


@dataclass
class LiteralPrior:
    """The printed regulariser: a dual mu_c per class holds the expected entropy sum at its budget S_c / N."""

    entropy: LiteralEntropy
    prior: float
    loss_strength: float
    duals: Floats = field(init=False)

    def __post_init__(self) -> None:
        self.duals = np.zeros(len(self.entropy.budgets))

    def start(self) -> Floats:
        """Every row counts in full at first."""
        return np.ones(len(self.entropy.codes))

    def update(self, loss: Floats) -> Floats:
        """pi with mu_c = 0 if the budget is not reached, else the root of the constraint, at most N."""
        n = len(loss)
        trust = np.empty(n)
        for code, budget in enumerate(self.entropy.budgets):
            rows = np.flatnonzero(self.entropy.codes == code)
            odds, h = logit(self.prior) - self.loss_strength * loss[rows], self.entropy.values[rows] / n
            self.duals[code] = _budget_dual(odds, h, budget / n, float(n))
            trust[rows] = expit(odds - self.duals[code] * h)
        return trust

    def objective(self, fitted: Fitted, loss: Floats, weights: Floats) -> float:
        """Not defined for the alternation."""
        return float("nan")


def _budget_dual(odds: Floats, h: Floats, budget: float, largest: float) -> float:
    def excess(dual: float) -> float:
        return float(np.sum(expit(odds - dual * h) * h)) - budget

    if excess(0.0) <= 0:
        return 0.0
    if excess(largest) >= 0:
        return largest
    return float(brentq(excess, 0.0, largest))


def carried_weights(weights: Floats, trust: Floats, codes: Ints) -> Floats:
    """Weights that, times trust, sum to what each class weighed: its trusted rows carry the share of the others.

    >>> carried_weights(np.ones(4), np.array([1.0, 0.0, 0.5, 0.5]), np.array([0, 0, 1, 1])).round(4)
    array([2., 2., 2., 2.])
    """
    kept = np.bincount(codes, weights * np.maximum(trust, SMALLEST_WEIGHT))
    return weights * (np.bincount(codes, weights) / kept)[codes]


@dataclass(frozen=True)
class Solution:
    """The last classifier, the trust it leads to, and how the solver came there."""

    fitted: Fitted
    trust: Floats
    objectives: tuple[float, ...]
    n_iter: int
    change: float
    settled: bool = True


def mean_field(
    fit_machine: FitMachine,
    rule: TrustRule,
    codes: Ints,
    weights: Floats,
    *,
    C: float,
    max_iter: int = 30,
    tol: float = 1e-3,
    start: Floats | None = None,
) -> Solution:
    """Alternate a weighted fit and a trust update until no trust moves by `tol`, or J stalls; J never rises."""
    trust = rule.start() if start is None else start
    objectives: list[float] = []
    for _ in range(max_iter):
        fitted = fit_machine(weights * np.maximum(trust, SMALLEST_WEIGHT))
        loss = margin_loss(fitted.scores, codes, C)
        objectives.append(rule.objective(fitted, loss, weights))
        previous, trust = trust, rule.update(loss)
        change = float(np.max(np.abs(trust - previous)))
        settled = change < tol or _stalls(objectives)
        if settled:
            break
    return Solution(fitted, trust, tuple(objectives), len(objectives), change, settled)


def _stalls(objectives: list[float]) -> bool:
    """True where the last round won less than the fits are exact to; trust may still tremble by their inexactness."""
    return len(objectives) > 2 and objectives[-2] - objectives[-1] <= STALL * abs(objectives[-1])
