"""What a suspect cell should have been, how far to go there, and when not to (E5, E8.7).

| equation | function |
|---|---|
| repaired = x + g(score) (mean - x), g isotonic, learnt in rehearsal | `fit_gain`, `Repairer.gain` |
| g = 1 where the score is above SURE and the prediction is narrow, in cases that were rehearsed | `Repairer.gain` |
| no repair where g <= .1, where the row has too little left, or where the mean is no better than a guess | `Evidence.repair` |
| interval: mean +- q width in scores, q the conformal quantile of repaired cells in rehearsal | `fit_reach` |
| a category changes when, in rehearsal, changing at its score did more good than harm | `fit_switch` |
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from goldseam.conditional.marginals import Floats

__all__ = ["Repairer", "fit_gain", "fit_reach", "fit_switch", "isotonic"]

ABSTAIN = 0.1  # E8.7
TOO_WIDE = 1.05  # a width of 1 is the column's own spread
MOST_SUSPECT = 0.6  # of a row's cells; beyond, too little is left to mend from
CLIP = 20.0  # a deviation counts as at most so many standard deviations when g is learnt
SHRINK = 50.0
STEPS = (1.0, 2.5, 6.0)  # sizes of |mean - x| / sd, and
WIDTHS = (0.45,)  # predicted widths that have a g of their own
KNOTS, N_KNOTS = (-6.0, 14.0), 81
LEAST_CELLS = 30
CONTRADICTED = 2.0  # a rare value is not natural when its neighbours make it e^2 times less likely than its column
GIANT = 2.5  # a natural giant lies less than so many ranges beyond the range; it is reported, not repaired
THIN = 4.0  # a value is rare where a uniform draw would put it so many times oftener than the reference
SURE = 4.0  # a cell scored above this, whose prediction is narrow, is replaced outright
CAUTION = (0.5, 0.5, 0.25, 0.0)  # by size of step
NATURAL_CAUTION = 0.5


@dataclass(frozen=True)
class Repairer:
    """g as step functions of the cell score, one row of `gains` per case (size of the step, width); the score from which a
    category changes; how many widths an interval reaches per number column."""

    knots: Floats
    gains: Floats
    switch: float
    reach: Floats

    def gain(self, scores: Floats, step: Floats, width: Floats, natural: NDArray[np.bool_]) -> Floats:
        """How far to move, 0 .. 1; 0 means leave alone. `step` = (mean - x) / sd, `width` of the predicted score,
        `natural`: rare, but as its column may be."""
        position = np.searchsorted(self.knots, scores, side="right") - 1
        case = _case(step, width, natural)
        gains = np.where(position < 0, 0.0, self.gains[case, np.maximum(position, 0)])
        rehearsed = (self.gains.max(axis=1) > 0.0)[case]
        gains = np.where(rehearsed & (scores > SURE) & (width < WIDTHS[0]) & ~natural, 1.0, gains)
        return np.where(gains > ABSTAIN, gains, 0.0)


def isotonic(values: Floats, weights: Floats) -> Floats:
    """The rising sequence nearest to `values` in weighted squares: pool adjacent violators.

    >>> isotonic(np.array([1.0, 3.0, 2.0]), np.ones(3))
    array([1. , 2.5, 2.5])
    """
    means: list[float] = []
    masses: list[float] = []
    sizes: list[int] = []
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        means.append(value)
        masses.append(weight)
        sizes.append(1)
        while len(means) > 1 and means[-2] >= means[-1]:
            mass = masses[-2] + masses[-1]
            means[-2] = (means[-2] * masses[-2] + means[-1] * masses[-1]) / mass if mass > 0.0 else means[-1]
            masses[-2], sizes[-2] = mass, sizes[-2] + sizes[-1]
            del means[-1], masses[-1], sizes[-1]
    return np.repeat(means, sizes)


def _case(step: Floats, width: Floats, natural: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Which g a cell has: by the size of the step offered, how sure the prediction is, whether x may be natural."""
    size = np.searchsorted(STEPS, np.abs(step), side="right")
    sure = np.where(natural, len(WIDTHS) + 1, np.searchsorted(WIDTHS, width, side="right"))
    return np.asarray(size * (len(WIDTHS) + 2) + sure)


def fit_gain(
    scores: Floats,
    step: Floats,
    width: Floats,
    natural: NDArray[np.bool_],
    wanted: Floats,
    way: NDArray[np.int64],
) -> tuple[Floats, Floats]:
    """g from rehearsed cells: `step` = (mean - x) / sd offered, `wanted` = (true - x) / sd needed; knots and gains.

    Per case g lies between what was best for all rehearsed damage and the least of what was best for each way of
    damage: a repair that pays on average but harms tables with one kind of damage is made by halves.
    """
    knots = np.linspace(KNOTS[0], KNOTS[1], N_KNOTS)
    case = _case(step, width, natural)
    gains = np.zeros(((len(STEPS) + 1) * (len(WIDTHS) + 2), N_KNOTS))
    for k in range(len(gains)):
        use = case == k
        if use.sum() < LEAST_CELLS:
            continue
        parts = [use & (way == one) for one in np.unique(way)]
        curves = [_curve(knots, scores[part], step[part], wanted[part]) for part in parts if part.sum() >= LEAST_CELLS]
        common = _curve(knots, scores[use], step[use], wanted[use])
        size, sure = divmod(k, len(WIDTHS) + 2)
        caution = NATURAL_CAUTION if sure > len(WIDTHS) else CAUTION[size]
        gains[k] = (1.0 - caution) * common + caution * np.min([common, *curves], axis=0)
    return knots, gains


def _curve(knots: Floats, scores: Floats, step: Floats, wanted: Floats) -> Floats:
    """The isotonic g of some cells."""
    bins = np.maximum(np.searchsorted(knots, scores, side="right") - 1, 0)
    weight = np.minimum(step**2, CLIP**2)
    share = np.clip(wanted / np.where(step == 0.0, 1.0, step), -1.0, 2.0)
    mass = np.bincount(bins, weight, minlength=knots.size).astype(np.float64)
    mean = np.bincount(bins, weight * share, minlength=knots.size) / np.maximum(mass, 1e-12)
    seen = mass > 0.0
    rising = np.clip(isotonic(mean[seen], mass[seen]), 0.0, 1.0)
    before = np.searchsorted(np.flatnonzero(seen), np.arange(knots.size), side="right") - 1
    return np.where(before < 0, 0.0, rising[np.maximum(before, 0)])


def fit_switch(scores: Floats, good: NDArray[np.bool_], bad: NDArray[np.bool_]) -> float:
    """The score from which changing categories helped: good = would become right, bad = would become wrong."""
    if not scores.size:
        return np.inf
    order = np.argsort(-scores, kind="stable")
    balance = np.cumsum(good[order].astype(np.int64) - bad[order])
    at = int(balance.argmax())
    return float(scores[order[at]]) if balance[at] > 0 else np.inf


def fit_reach(distance: Floats, column: NDArray[np.int64], n_columns: int, coverage: float) -> Floats:
    """Conformal quantile of |true - mean| / width of repaired cells, per column shrunk towards that of all."""
    if not distance.size:
        return np.full(n_columns, 2.0)
    common = _upper(distance, coverage)
    out = np.full(n_columns, common)
    for j in range(n_columns):
        own = distance[column == j]
        if own.size:
            out[j] = (own.size * _upper(own, coverage) + SHRINK * common) / (own.size + SHRINK)
    return out


def _upper(distance: Floats, coverage: float) -> float:
    rank = min(int(np.ceil((distance.size + 1) * coverage)), distance.size)
    return float(np.sort(distance)[rank - 1])
