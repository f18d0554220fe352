"""How far to move a number towards its prediction: learnt in rehearsal, never farther than rehearsal shows to pay (E8.7).

| equation | function |
|---|---|
| g of a case minimises sum (wanted - g step)^2, g rising with the cell score | `curve`, `isotonic` |
| a case that was seldom seen borrows cells of smaller steps, then of wider predictions | `lenders`, `case_gains` |
| Q of damage that hides best (few cells, from their own columns; noise), clean rows counted | `rehearsed_quality` |
| g n / (n + DOUBT) for n calibration rows | `shortened` |
| the largest prudence f for which f g keeps that Q above LEAST_QUALITY | `shortened`, `repair.fit_careful` |

A step that is right with probability g is best made by the share g: twice too timid costs a quarter of what it brings,
twice too bold costs four times what it risks. So where rehearsal says that repairs harm, all unsure steps are shortened.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from goldseam.conditional.marginals import Floats

__all__ = [
    "Lesson",
    "Offer",
    "case_gains",
    "cases",
    "curve",
    "gains_by_size",
    "isotonic",
    "lenders",
    "rehearsed_quality",
    "shortened",
]

STEPS = (1.0, 2.5, 4.0, 6.0)  # sizes of |mean - x| / sd, and
NARROW = 0.45  # width up to which a prediction is narrow
COMPANY = -1.0  # log odds of damage by the rest of the row below which a value stands alone
KNOTS, N_KNOTS = (-6.0, 14.0), 81
LEAST_GIANTS = 10  # natural values beyond the range, of a size, from which their g is learnt
LEAST_CELLS = 30  # a case seen less often borrows cells, see `lenders`
CLIP = 20.0  # a deviation counts as at most so many standard deviations
MANY, SMALL = 0.2, 1.5  # a row is noisy if more than this share of its numbers is suspect, but only so many sd off
DOUBT = 10.0  # so many calibration rows that would have shown nothing are added to those that there are
PRUDENCE = (1.0, 0.8, 0.6, 0.4, 0.2, 0.0)
LEAST_QUALITY = -0.02
SLACK = 0.05  # where no prudence keeps LEAST_QUALITY, the best that prudence can do is given up by so much
NARROW_CASE, WIDE_CASE, NATURAL_CASE = range(3)
N_CASES = 2 * (len(STEPS) + 1) * 3  # noisy rows or not, by size, by kind


@dataclass(frozen=True)
class Offer:
    """What is offered to number cells (n, m): `step` = (mean - x) / sd, `width` of the predicted score, and what speaks for
    it: cell `scores`, `context` (log odds of damage by the rest of the row alone), whether x is `natural` (rare, but as its
    column may be), how far it lies `beyond` the range, whether it is `absurd`, whether on the `heavy` side of its column."""

    scores: Floats
    context: Floats
    step: Floats
    width: Floats
    natural: NDArray[np.bool_]
    beyond: Floats
    absurd: NDArray[np.bool_]
    heavy: NDArray[np.bool_]

    @property
    def noisy(self) -> NDArray[np.bool_]:
        """Rows with many suspects, all a little off: noise rather than foreign values, (n, 1)."""
        suspect = self.scores > 0.0
        many = suspect.sum(1, keepdims=True)
        square = (np.minimum(np.abs(self.step), STEPS[-1]) ** 2 * suspect).sum(1, keepdims=True)
        return np.asarray((many > MANY * suspect.shape[1]) & (square < SMALL**2 * many))

    @property
    def size(self) -> NDArray[np.int64]:
        """The class of the step's size."""
        return np.searchsorted(STEPS, np.abs(self.step), side="right")

    @property
    def alone(self) -> NDArray[np.bool_]:
        """Values in rows that are otherwise sound."""
        return self.context < COMPANY

    @property
    def unsure(self) -> NDArray[np.bool_]:
        """Steps short of the largest that are wide or natural, in rows that are not noisy."""
        return np.asarray((self.size < len(STEPS)) & ((self.width >= NARROW) | self.natural) & ~self.noisy)


@dataclass(frozen=True)
class Lesson:
    """What was `wanted` = (true - x) / sd in rehearsal, (n, m); rows left `clean`, and rows `hard` to help: noisy ones, and
    those with a few cells redrawn from their own columns, (groups, n)."""

    wanted: Floats
    clean: NDArray[np.bool_]
    hard: NDArray[np.bool_]


def cases(offer: Offer) -> NDArray[np.int64]:
    """Which g a cell has: by the kind of row, the size of the step, how sure the prediction is, whether x may be natural."""
    kind = np.where(offer.natural, NATURAL_CASE, np.where(offer.width < NARROW, NARROW_CASE, WIDE_CASE))
    return (offer.noisy * (len(STEPS) + 1) + offer.size) * 3 + kind


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


def curve(knots: Floats, scores: Floats, step: Floats, wanted: Floats) -> Floats:
    """The isotonic g of some cells; between scores that were seen it rises in a straight line, below all of them it is 0."""
    bins = np.maximum(np.searchsorted(knots, scores, side="right") - 1, 0)
    mean, mass = _shares(bins, step, wanted, knots.size)
    seen = np.flatnonzero(mass > 0.0)
    rising = np.clip(isotonic(mean[seen], mass[seen]), 0.0, 1.0)
    return np.interp(np.arange(knots.size), seen, rising, left=0.0)


def gains_by_size(offer: Offer, wanted: Floats, use: NDArray[np.bool_]) -> Floats:
    """One g for each size of step, of some cells whatever their scores; 0 for sizes seen less than LEAST_GIANTS times."""
    size = offer.size[use]
    mean, _ = _shares(size, offer.step[use], wanted[use], len(STEPS) + 1)
    often = np.bincount(size, minlength=len(STEPS) + 1) >= LEAST_GIANTS
    return np.where(often, np.clip(mean, 0.0, 1.0), 0.0)


def _shares(bins: NDArray[np.int64], step: Floats, wanted: Floats, n_bins: int) -> tuple[Floats, Floats]:
    """The share of the steps that was wanted in each bin, in least squares, and the squares of the steps."""
    weight = np.minimum(step**2, CLIP**2)
    share = np.clip(wanted / np.where(step == 0.0, 1.0, step), -1.0, 2.0)
    mass = np.bincount(bins, weight, minlength=n_bins).astype(np.float64)
    return np.bincount(bins, weight * share, minlength=n_bins) / np.maximum(mass, 1e-12), mass


def case_gains(offer: Offer, wanted: Floats, use: NDArray[np.bool_]) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Knots, g per case (rows) and knot, from the cells `use`, and the cases whose g is borrowed."""
    knots = np.linspace(*KNOTS, N_KNOTS)
    case = np.where(use, cases(offer), -1)
    gains, lent = np.zeros((N_CASES, N_KNOTS)), np.zeros(N_CASES, dtype=bool)
    for k in range(N_CASES):
        for drawn_in in lenders(k):
            part = np.isin(case, drawn_in)
            if part.sum() >= LEAST_CELLS:
                gains[k] = curve(knots, offer.scores[part], offer.step[part], wanted[part])
                lent[k] = len(drawn_in) > 1
                break
    return knots, gains, lent


def lenders(case: int) -> list[list[int]]:
    """Ever more cases to learn g of a case from, until they were seen often enough: first with the next smaller steps, then,
    for narrow predictions, with wide ones. Both are harder to be right about, so what is borrowed is timid. Cases of noisy
    rows borrow nothing.

    >>> lenders(NATURAL_CASE + 3)
    [[5], [5, 2]]
    >>> lenders(NARROW_CASE)
    [[0], [0, 1]]
    """
    if case >= N_CASES // 2:
        return [[case]]
    own = list(range(case, -1, -3))
    wider = [own + [k + WIDE_CASE - NARROW_CASE for k in own]] if case % 3 == NARROW_CASE else []
    return [own[: n + 1] for n in range(len(own))] + wider


def rehearsed_quality(gain: Floats, offer: Offer, lesson: Lesson, n_rows: int) -> float:
    """The worst Q of the hard groups, each with its share of the clean rows, whose harm counts with a standard error more
    than was seen: the rows are copies of `n_rows`."""
    step, wanted = np.clip(offer.step, -CLIP, CLIP), np.clip(lesson.wanted, -CLIP, CLIP)
    undone = (wanted**2 - (wanted - gain * step) ** 2).sum(1)
    clean = undone[lesson.clean]
    harm = clean.mean() - clean.std() / np.sqrt(n_rows) if clean.size else 0.0
    energy = [(wanted[group] ** 2).sum() for group in lesson.hard]
    parts = [
        (undone[group].sum() + harm * group.sum()) / all_of_it
        for group, all_of_it in zip(lesson.hard, energy, strict=True)
        if all_of_it > 0.0
    ]
    return float(min(parts, default=0.0))


def shortened(gains: Floats, share: float, *, unsure: bool) -> Floats:
    """g of all steps that are not of the largest size, or only of those that are `unsure`, times a share."""
    at = np.arange(len(gains))
    size, kind, noisy = at // 3 % (len(STEPS) + 1), at % 3, at // 3 > len(STEPS)
    touched = size < len(STEPS)
    if unsure:
        touched &= (kind != NARROW_CASE) | noisy
    return gains * np.where(touched, share, 1.0)[:, None]
