"""What a suspect cell should have been, how far to go there, and when not to (E5, E8.7).

| equation | function |
|---|---|
| repaired = x + g (mean - x), g of its case at its score | `Repairer.gain`, `fit_repairer` |
| g = 1 for absurd values, and for scores above SURE with a narrow prediction, in cases that paid in rehearsal | `Repairer.gain` |
| a number with g >= EVEN, a category whose other level is likelier: rather wrong than right, so suspect | `Repairer.wrong` |
| what a case borrows from others (`gains.lenders`) counts inside the range only, or for g = 1 short of giants | `Repairer.gain` |
| a natural value beyond the range: one g by the size of the step | `Repairer.outside`, `fit_repairer` |
| where damage hides: of unsure steps of a value that stands alone in a sound row n / (n + WARY) + Q is made | `fit_careful` |
| a natural value that so stands alone is moved by at most LONE, one beyond the range by OUTSIDE | `fit_careful` |
| g / (1 - g) of both times the `odds` that a row is damaged: even in rehearsal, lower where few rows are | `Repairer.gain` |
| of flagged rows, suspects and cells with a p-value up to RARE are mended | `Repairer.odd` |
| g of a table lies between the careful one and the bold one, as its damage is open | `between` |
| no repair where g <= .1, where the row has too little left, or where the mean is no better than a guess | `Evidence.repair` |
| interval: as far as rehearsal asks, and x itself where it may be right (`intervals`) | `Repairer.widths`, `Repairer.doubted` |
| log odds that the likeliest other level is right rather than the one that stands (`switching`) | `Repairer.rivals` |
| a category changes when it is likelier and, in rehearsal, changing at such odds did more good than harm | `fit_switch` |
| in earlier files: e^score q / (1 + e^score q_old) | `rivals` |
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from goldseam.conditional.layout import Layout
from goldseam.conditional.marginals import GIANT, Floats, Ints
from goldseam.errors import ModelFileError
from goldseam.evidence.gains import (
    DOUBT,
    LEAST_QUALITY,
    N_CASES,
    NARROW,
    PRUDENCE,
    SLACK,
    STEPS,
    Lesson,
    Offer,
    case_gains,
    cases,
    gains_by_size,
    rehearsed_quality,
    shortened,
)
from goldseam.evidence.intervals import BEYOND, DOUBTED, FILLED, LOSSES, REPLACED, WAYS, Intervals
from goldseam.evidence.mixture import Boldness
from goldseam.evidence.switching import BAYES, log_odds, terms

__all__ = ["Repairer", "between", "fit_careful", "fit_repairer", "fit_switch", "hopeless", "rivals", "vague"]

ABSTAIN = 0.1  # E8.7
TOO_WIDE = 1.05  # a width of 1 is the column's own spread
MOST_SUSPECT = 0.6  # of a row's cells; beyond, too little is left to mend from
EVEN = 0.5  # share of right steps from which a number of a flagged row is suspect whatever its score
RARE = 0.002  # p-value up to which a cell of a flagged row may be drawn in though it is not suspect
CONTRADICTED = 2.0  # a rare value is not natural when its neighbours make it e^2 times less likely than its column
HANDFUL = 6  # in a column of so few values a natural giant lies
FOREIGN = 1.0  # less than so many ranges beyond the range
WHOLE = 0.95  # in files without `doubt`: a number moved by less may have been right, so its interval holds it too
DISTRUST = -1.0  # cells scored above this are distrusted: they do not help to predict others in a repair
THIN = 4.0  # a value is rare where a uniform draw would put it so many times oftener than the reference
SURE = 4.0  # a cell scored above this, whose prediction is narrow, is replaced outright
TIMID = 0.75  # share of unsure steps that is made in such a row at least, more where Q of damage that hides is above 0
WARY = 50.0  # calibration rows of which few show the oddities that a table has by nature
LONE = (0.0, 0.0, 0.2, 0.4, 0.85)  # by size of step: values a few sd off are natural, uniform draws are farther
OUTSIDE = (0.0, 0.0, 0.0, 0.35, 0.35)


@dataclass(frozen=True)
class Repairer:
    """g as step functions of the cell score, one row of `gains` per case; the log odds from which a category changes; how
    many widths an interval reaches per number column, by how much it stretches, and the scores up to which it holds x
    (see `intervals`); the cases whose g is `lent` by others; from which g on a number is `wrong` whatever its score; the weights
    of what speaks for another level (see `switching`); what is made of unsure steps of values that stand alone; the `odds` of
    damage by which repairs of lone values are shortened: 1 is as in rehearsal (half of the rows damaged); by size of step, the
    largest g of natural values that stand alone (`lone`) and g of those beyond the range (`outside`).
    Earlier files lack the last nine."""

    knots: Floats
    gains: Floats
    switch: float
    reach: Floats
    stretch: Floats = field(default_factory=lambda: np.ones((len(WAYS), len(LOSSES) + 1)))
    doubt: Floats = field(default_factory=lambda: np.empty(0))
    lent: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(N_CASES, dtype=bool))
    even: float = np.inf
    weights: Floats = field(default_factory=lambda: np.empty(0))
    timid: float = 1.0
    odds: float = 1.0
    lone: Floats = field(default_factory=lambda: np.array(LONE))
    outside: Floats = field(default_factory=lambda: np.array(OUTSIDE))

    def check_state(self) -> None:
        """A row of gains per case, a column per knot; a stretch for each way to change a cell and class of loss."""
        expected = (N_CASES, self.knots.size)
        if self.gains.shape not in (expected, (1, self.knots.size)) or self.lent.shape != (N_CASES,):
            raise ModelFileError(
                f"The model file's gains have shapes {self.gains.shape} and {self.lent.shape}; "
                f"{expected} and {(N_CASES,)} are needed."
            )
        if not 0.0 <= self.timid <= 1.0:
            raise ModelFileError(f"The model file's share of unsure steps must lie between 0 and 1; got {self.timid}.")
        if not 0.0 < self.odds < np.inf:
            raise ModelFileError(f"The model file's odds of damage must be positive; got {self.odds}.")
        for shares in (self.lone, self.outside):
            if shares.shape != (len(LONE),) or not ((shares >= 0.0) & (shares <= 1.0)).all():
                raise ModelFileError(
                    f"The model file must move natural values by {len(LONE)} shares between 0 and 1; got {shares.tolist()}."
                )
        shape = len(WAYS), len(LOSSES) + 1
        if self.stretch.shape != shape or self.doubt.shape not in (shape[1:], (0,)):
            raise ModelFileError(
                f"The model file's intervals have shapes {self.stretch.shape} and {self.doubt.shape}; "
                f"{shape} and {shape[1:]} are needed."
            )
        if self.weights.shape not in ((len(BAYES),), (0,)):
            raise ModelFileError(
                f"The model file weighs {self.weights.shape} terms of a category; {len(BAYES)} are needed."
            )

    def with_intervals(self, intervals: Intervals) -> Repairer:
        """The same with these intervals."""
        return replace(self, **vars(intervals))

    def doubted(self, offer: Offer, gain: Floats, loss: Ints) -> NDArray[np.bool_]:
        """Numbers whose observed value may be right: their intervals hold it. `loss` (n,) is the class of each row's."""
        if not self.doubt.size:
            return gain < WHOLE
        return (offer.scores <= self.doubt[loss][:, None]) & ~offer.absurd

    def widths(self, offer: Offer, missing: NDArray[np.bool_], doubted: NDArray[np.bool_], loss: Ints) -> Floats:
        """How many widths the interval of each number reaches."""
        replaced = np.where(offer.beyond > 0.0, BEYOND, REPLACED)
        way = np.where(missing, FILLED, np.where(doubted, DOUBTED, replaced))
        return self.reach * self.stretch[way, loss[:, None]]

    def odd(self, suspect: NDArray[np.bool_], p_values: Floats, sure: Floats) -> NDArray[np.bool_]:
        """Cells of flagged rows that may be changed, by their p-values and how likely they are wrong."""
        return suspect | (p_values <= RARE) | self.wrong(sure)

    def rivals(
        self, codes: NDArray[np.int32], scores: Floats, context: Floats, levels: Floats, all_told: Floats, layout: Layout,
        offsets: Ints,
    ) -> tuple[NDArray[np.int32], Floats]:  # fmt: skip
        """The likeliest other level of every category cell, and the log odds that speak for it; scores, context (n, p)."""
        at = layout.category_cells
        if not self.weights.size:
            return rivals(codes, scores[:, at], levels, offsets)
        other, parts = terms(codes, scores, context[:, at], levels, all_told, offsets)
        return other, log_odds(parts, self.weights)

    def surety(self, odds: Floats) -> Floats:
        """How likely categories are wrong, by the log odds that another level is right; 0 for files without weights."""
        return 1.0 / (1.0 + np.exp(-np.clip(odds, -50.0, 50.0))) if self.weights.size else np.zeros(odds.shape)

    def wrong(self, sure: Floats) -> NDArray[np.bool_]:
        """Cells that are rather wrong than right, as such cells were in rehearsal: by a number's g, a category's odds."""
        return sure >= self.even

    def gain(self, offer: Offer) -> Floats:
        """How far to move, 0 .. 1; 0 means leave alone."""
        position = np.searchsorted(self.knots, offer.scores, side="right") - 1
        case = np.minimum(cases(offer), len(self.gains) - 1)
        known = ~(self.lent[case] & (offer.beyond > 0.0))
        gains = np.where((position >= 0) & known, self.gains[case, np.maximum(position, 0)], 0.0)
        gains = np.where(offer.unsure & offer.alone, self.timid * gains, gains)
        paid = self.gains.max(axis=1)[case] > 0.0
        sure = (offer.scores > SURE) & (offer.width < NARROW) & ~offer.natural & ~offer.noisy
        gains = np.where(paid & sure & (known | (offer.beyond < GIANT)), 1.0, gains)
        gains = np.where(offer.natural, self._natural(gains, offer), gains)
        if self.odds != 1.0:
            lone = (offer.unsure | offer.natural) & offer.alone
            gains = np.where(lone, self.odds * gains / (self.odds * gains + 1.0 - gains), gains)
        gains = np.where(offer.absurd & (offer.scores > DISTRUST), 1.0, gains)
        return np.where(gains > ABSTAIN, gains, 0.0)

    def _natural(self, gains: Floats, offer: Offer) -> Floats:
        """How far to move values that may be natural."""
        inside = np.minimum(gains, np.where(offer.alone, self.lone[offer.size], 1.0))
        return np.where(offer.noisy, 0.0, np.where(offer.beyond > 0.0, self.outside[offer.size], inside))


def between(bold: Repairer, careful: Repairer | None, offer: Offer, boldness: Boldness) -> Floats:
    """How far to move when repairs are so bold (`mixture`): between g learnt from damage that hides and g learnt from all damage.

    Damage that hides does not leave the range, and draws from anywhere leave it by little. So large steps of values beyond the
    range, on a side that may hold giants by nature, wait for a table that shows slips of scale. On other sides one slip in a
    thousand rows is a slip, and so is what is absurd anywhere."""
    gains = bold.gain(offer)
    if careful is None:
        return gains
    beyond, hidden = offer.beyond > 0.0, careful.gain(offer)
    mixed = boldness.inside * gains + (1.0 - boldness.inside) * hidden
    slip = beyond & (offer.size == len(STEPS))
    mixed = np.where(slip, np.where(offer.heavy, boldness.far, 1.0) * gains, mixed)
    giant = boldness.far * gains + (1.0 - boldness.far) * boldness.inside * hidden
    mixed = np.where(beyond & offer.natural, giant, mixed)
    mixed = np.where(offer.absurd, gains, mixed)
    return np.where(mixed > ABSTAIN, mixed, 0.0)


def fit_repairer(offer: Offer, wanted: Floats, use: NDArray[np.bool_], n_rows: int) -> Repairer:
    """g from rehearsed cells `use`; `n_rows` calibration rows stand behind it."""
    giants = offer.natural & (offer.beyond > 0.0)
    knots, gains, lent = case_gains(offer, wanted, use & ~giants)
    share = n_rows / (n_rows + DOUBT)
    outside = share * gains_by_size(offer, wanted, use & giants & ~offer.noisy)
    return Repairer(
        knots, shortened(gains, share, unsure=False), np.inf, np.empty(0), lent=lent, even=EVEN, lone=np.ones(len(LONE)),
        outside=outside,
    )  # fmt: skip


def fit_careful(offer: Offer, lesson: Lesson, use: NDArray[np.bool_], n_rows: int) -> Repairer:
    """The same, but only as bold as pays where damage hides."""
    bold = replace(fit_repairer(offer, lesson.wanted, use, n_rows), lone=np.array(LONE), outside=np.array(OUTSIDE))
    tried = [replace(bold, gains=shortened(bold.gains, share, unsure=True)) for share in PRUDENCE]
    gained = [np.where(use, one.gain(offer), 0.0) for one in tried]
    qualities = np.array([rehearsed_quality(gain, offer, lesson, n_rows) for gain in gained])
    best = float(qualities.max())
    enough = LEAST_QUALITY if best >= LEAST_QUALITY else best - SLACK
    chosen = int(np.argmax(qualities >= enough))
    hidden = rehearsed_quality(gained[chosen], offer, replace(lesson, hard=lesson.hard[:1]), n_rows)
    return replace(tried[chosen], timid=float(np.clip(max(TIMID, n_rows / (n_rows + WARY)) + hidden, TIMID, 1.0)))


def rivals(
    codes: NDArray[np.int32], scores: Floats, levels: Floats, offsets: NDArray[np.int64]
) -> tuple[NDArray[np.int32], Floats]:
    """The likeliest other level of every category cell, and the log odds that it is right and the one that stands is not.

    `levels` are the probabilities of all levels side by side, column j at offsets[j] : offsets[j + 1].
    """
    rows = np.arange(len(codes))
    other, odds = np.zeros(codes.shape, dtype=np.int32), np.full(codes.shape, -np.inf)
    for j in range(codes.shape[1]):
        share = levels[:, offsets[j] : offsets[j + 1]].copy()
        seen = codes[:, j] >= 0
        old = np.where(seen, share[rows, np.maximum(codes[:, j], 0)], 0.0)
        share[rows[seen], codes[seen, j]] = 0.0
        other[:, j] = share.argmax(1)
        best = np.log(np.maximum(share.max(1), 1e-300))
        odds[:, j] = scores[:, j] + best - np.log1p(np.exp(np.minimum(scores[:, j], 600.0)) * old)
    return other, odds


def fit_switch(odds: Floats, good: NDArray[np.bool_], bad: NDArray[np.bool_], hard: NDArray[np.bool_]) -> float:
    """The log odds from which changing categories helped: good = would become right, bad = would become wrong.

    Changes must not harm the `hard` cells on balance, those of rows whose damage hides, whatever they do for the others.
    """
    if not odds.size:
        return np.inf
    order = np.argsort(-odds, kind="stable")
    change = good[order] * 1.0 - bad[order]
    harmless = np.cumsum(np.where(hard[order], change, 0.0)) >= 0.0
    balance = np.where(harmless, np.cumsum(change), 0.0)
    at = int(balance.argmax())
    return float(odds[order[at]]) if balance[at] > 0 else np.inf


def hopeless(suspect: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Rows with too little left to mend from, (n, 1)."""
    return np.asarray(suspect.sum(1, keepdims=True) > MOST_SUSPECT * suspect.shape[1])


def vague(offer: Offer) -> NDArray[np.bool_]:
    """Numbers within the range whose prediction is no better than a guess."""
    return (offer.width > TOO_WIDE) & (offer.beyond == 0.0)
