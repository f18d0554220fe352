"""What practice teaches: thresholds, how far to move a number, when a category changes, intervals, and what a method is worth.

Calibration rows are hurt on purpose (`rehearsal`) and judged by a model that has not seen them; `fitting` does both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from goldseam.conditional.marginals import Floats, Ints
from goldseam.evidence.calibration import Calibration, best_threshold
from goldseam.evidence.doubt import as_many_as_clean, damage_probabilities, offset
from goldseam.evidence.gains import CLIP, Lesson, Offer
from goldseam.evidence.intervals import Changes, bounds, distances, fit_intervals, loss_class
from goldseam.evidence.mixture import OPEN, boldest_offers, outlines, row_classes
from goldseam.evidence.model import Evidence
from goldseam.evidence.rehearsal import FAR, FLAT, NOISE, OWN
from goldseam.evidence.repair import Repairer, fit_careful, fit_repairer, fit_switch, hopeless, vague
from goldseam.evidence.switching import fit_terms, log_odds
from goldseam.schema import Blocks

__all__ = ["Practice", "average_precision", "joined", "learn", "undoubted", "worth"]

FEW = 0.15  # share of a row's cells up to which damage is scarce
DELICATE = 2.0  # such rows, if their damage hides, and clean ones count twice when categories learn to change


@dataclass(frozen=True)
class Practice:
    """Clean and hurt calibration rows as a pool that has not seen them judges them; n clean, N hurt rows."""

    clean_odds: Floats
    clean_cells: Floats
    odds: Floats
    cells: Floats
    context: Floats
    changed: NDArray[np.bool_]
    natural: NDArray[np.bool_]
    way: Ints
    numbers: Floats
    codes: NDArray[np.int32]
    true_numbers: Floats
    true_codes: NDArray[np.int32]
    mended_numbers: Floats
    other_codes: NDArray[np.int32]
    other_terms: Floats
    center: Floats
    width: Floats
    lost: Floats

    @property
    def offset(self) -> float:
        """What scores lack to be log likelihood ratios (D-1); rows of small noise apart."""
        return offset(self.odds[self.changed.any(axis=1) & (self.way != NOISE)])


def joined(tries: Sequence[Practice]) -> Practice:
    """The practice of several folds as one."""
    return Practice(*(np.concatenate(parts) for parts in zip(*(vars(one).values() for one in tries), strict=True)))


def undoubted(practice: Practice, share: float) -> Practice:
    """The same with as many calibration rows as are clean, when a share of them is not."""
    damaged = damage_probabilities(practice.clean_odds + practice.offset, share)
    kept = as_many_as_clean(practice.clean_odds, damaged)
    return replace(practice, clean_odds=practice.clean_odds[kept], clean_cells=practice.clean_cells[kept])


def learn(model: Evidence, practice: Practice, coverage: float) -> Evidence:
    """Thresholds and repairs from practice; the odds of damage are those that the model's repairer has."""
    clean_cells = np.sort(practice.clean_cells[np.isfinite(practice.clean_cells)])
    model = replace(model, calibration=Calibration(np.sort(practice.clean_odds), clean_cells, 0.0))
    seen = _seen(model, practice)
    local = seen & (practice.way != NOISE)[:, None]
    threshold = best_threshold(practice.cells[local], practice.changed[local])
    model = replace(model, calibration=replace(model.calibration, cell_threshold=threshold))
    model = replace(model, repairer=_fit_repairer(model, practice, seen, coverage))
    return _knowing_ways(model, practice, seen) if len(model.layout.number_cells) else model


def worth(model: Evidence, practice: Practice) -> float:
    """What a model that learnt from practice was worth in it: the mean, over ways to hurt rows, noise apart, of the share of hurt
    rows that were found, of the average precision of cells, of Q, and of the share of wrong categories put right on balance."""
    seen, offer = _seen(model, practice), _offer(model, practice)
    at, codes = model.layout.number_cells, model.layout.category_cells
    gain = np.where(seen[:, at], model.repairer.gain(offer), 0.0)
    moved = np.where(_changed(model, model.repairer, practice, offer, gain, seen), gain * offer.step, 0.0)
    wanted, moved = (np.clip(part, -CLIP, CLIP) for part in (_wanted(model, practice), moved))
    left, harm = ((wanted - moved) ** 2).sum(1), (wanted**2).sum(1)
    odds = log_odds(practice.other_terms, model.repairer.weights)
    code = np.where(seen[:, codes] & (odds >= model.repairer.switch), practice.other_codes, practice.codes)
    wrong, after = ((one != practice.true_codes).sum(1) for one in (practice.codes, code))
    figures = []
    for way in (FLAT, OWN, FAR):
        rows = practice.way == way
        hurt, cells = rows & practice.changed.any(1), np.isfinite(practice.cells[rows])
        if not hurt.any():
            continue
        figures.append(seen[hurt].any(1).mean())
        figures.append(average_precision(practice.cells[rows][cells], practice.changed[rows][cells]))
        parts = ((left, harm), (after, wrong))
        figures += [1.0 - after[rows].sum() / before[rows].sum() for after, before in parts if before[rows].sum() > 0]
    return float(np.mean(figures)) if figures else 0.0


def average_precision(scores: Floats, truth: NDArray[np.bool_]) -> float:
    """Mean precision at the places of what is true, scores falling; cells with one score share a place.

    >>> average_precision(np.array([3.0, 2.0, 1.0]), np.array([True, False, True]))
    0.8333333333333333
    """
    order = np.argsort(-scores, kind="stable")
    last = np.append(np.diff(scores[order]) != 0.0, True)
    hits, places = np.cumsum(truth[order])[last], np.flatnonzero(last) + 1.0
    return float((np.diff(hits, prepend=0) * hits / places).sum() / truth.sum())


def _seen(model: Evidence, practice: Practice) -> NDArray[np.bool_]:
    """Observed cells of rows that would be flagged, (N, p)."""
    flagged = model.calibration.row_p_values(practice.odds) <= model.alarm_rate
    return np.asarray(flagged[:, None] & np.isfinite(practice.cells))


def _offer(model: Evidence, practice: Practice) -> Offer:
    """What was offered to rehearsed numbers."""
    at, marginals = model.layout.number_cells, model.marginals
    return Offer(
        scores=practice.cells[:, at],
        context=practice.context[:, at],
        step=np.nan_to_num(practice.mended_numbers - practice.numbers) / marginals.spread,
        width=practice.width,
        natural=practice.natural[:, at],
        beyond=marginals.beyond_range(practice.numbers),
        absurd=marginals.absurd(practice.numbers),
        heavy=marginals.on_heavy_side(practice.numbers),
    )


def _wanted(model: Evidence, practice: Practice) -> Floats:
    """How far rehearsed numbers were from the truth, in standard deviations."""
    return np.nan_to_num(practice.true_numbers - practice.numbers) / model.marginals.spread


def _fit_repairer(model: Evidence, practice: Practice, seen: NDArray[np.bool_], coverage: float) -> Repairer:
    at, offer = model.layout.number_cells, _offer(model, practice)
    lesson = _lesson(model, practice)
    odds = model.repairer.odds
    repairer = replace(fit_repairer(offer, lesson.wanted, seen[:, at], len(practice.clean_odds)), odds=odds)
    gain = np.where(seen[:, at], repairer.gain(offer), 0.0)
    changes = _changes(model, practice, offer, gain, _changed(model, repairer, practice, offer, gain, seen))
    repairer = repairer.with_intervals(fit_intervals(changes, len(at), coverage))
    weights, switch = _fit_switch(practice, seen[:, model.layout.category_cells], lesson.hard[0] | lesson.clean)
    return replace(repairer, weights=weights, switch=max(0.0, switch - np.log(odds)))


def _lesson(model: Evidence, practice: Practice) -> Lesson:
    share = practice.changed.mean(1)
    scarce = (practice.way == OWN) & (share > 0.0) & (share <= FEW)
    return Lesson(_wanted(model, practice), share == 0.0, np.stack([scarce, (practice.way == NOISE) & (share > 0.0)]))


def _knowing_ways(model: Evidence, practice: Practice, seen: NDArray[np.bool_]) -> Evidence:
    """The same, able to tell how a table is damaged (`mixture`), and with a repairer for damage that hides: it learnt from clean
    rows, values of their own columns and small noise alone."""
    at, offer, hurt = model.layout.number_cells, _offer(model, practice), np.asarray(practice.changed.any(1))
    hides = ~(hurt & np.isin(practice.way, OPEN))
    own = fit_careful(offer, _lesson(model, practice), seen[:, at] & hides[:, None], len(practice.clean_odds))
    careful = replace(
        model.repairer, gains=own.gains, lent=own.lent, timid=own.timid, lone=own.lone, outside=own.outside
    )
    offered = boldest_offers(offer, np.where(seen[:, at], model.repairer.gain(offer), 0.0))
    classes = row_classes(model.calibration.row_p_values(practice.odds), model.alarm_rate, offered)
    return replace(model, careful=careful, outlines=outlines(classes, hurt, practice.way))


def _changed(
    model: Evidence, repairer: Repairer, practice: Practice, offer: Offer, gain: Floats, seen: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Rehearsed numbers that would be changed: odd, not refused; rows of small noise apart."""
    at, calibration = model.layout.number_cells, model.calibration
    suspect = seen & (practice.cells > calibration.cell_threshold)
    movable = repairer.odd(suspect[:, at], calibration.cell_p_values(offer.scores), gain)
    if model.layout.whole.size:  # whole numbers move by whole steps
        movable &= ~model.layout.whole | (np.abs(gain * offer.step) * model.marginals.spread >= 1.0)
    unable = (hopeless(suspect) & ~offer.absurd) | vague(offer)
    return np.asarray((gain > 0.0) & movable & ~unable & (practice.way != NOISE)[:, None])


def _changes(model: Evidence, practice: Practice, offer: Offer, gain: Floats, use: NDArray[np.bool_]) -> Changes:
    """Rehearsed changes as their intervals would be built."""
    marginals, at = model.marginals, model.layout.number_cells
    truth, x, center = practice.true_numbers, practice.numbers, practice.center
    right = bounds(marginals, Blocks(truth, practice.true_codes))
    median = marginals.value_at(center)
    ends = (practice.mended_numbers, x + gain * (practice.mended_numbers - x), x)
    spared = [(truth - end) * (truth - median) <= 0.0 for end in ends]
    observed = distances(bounds(marginals, Blocks(x, practice.codes)), center, practice.width)
    row, column = np.nonzero(use)
    return Changes(
        column=column,
        loss=loss_class(practice.lost)[row],
        scores=np.where(offer.absurd, np.inf, offer.scores)[use],
        outside=(offer.beyond > 0.0)[use],
        damaged=practice.changed[:, at][use],
        distance=np.stack([distances(right, center, practice.width, one)[use] for one in spared]),
        observed=np.where(offer.beyond > 0.0, np.inf, observed)[use],
    )


def _fit_switch(practice: Practice, use: NDArray[np.bool_], delicate: NDArray[np.bool_]) -> tuple[Floats, float]:
    """What speaks for another level, weighed, and the log odds from which categories change; `use` (N, k).

    Rows where most changes harm (`delicate` (N,): nothing is damaged, or little and hidden) count DELICATE times. A calibration
    row is rehearsed many times: the penalty counts as that many cells.
    """
    right, was = practice.other_codes == practice.true_codes, practice.codes == practice.true_codes
    good, bad = right & ~was, was & ~right
    matters = use & (good | bad)
    weight = np.broadcast_to(np.where(delicate, DELICATE, 1.0)[:, None], use.shape)
    copies = len(practice.odds) / max(len(practice.clean_odds), 1)
    weights = fit_terms(practice.other_terms[matters], good[matters], weight[matters], copies)
    odds = log_odds(practice.other_terms, weights)
    hard = np.broadcast_to((practice.way == OWN)[:, None], use.shape)
    return weights, fit_switch(odds[use], good[use], bad[use], hard[use])
