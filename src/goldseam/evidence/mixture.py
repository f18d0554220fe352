"""How a table is damaged, from its rows together: the shares of the ways in which rows were hurt in rehearsal.

A real giant and a uniform draw look the same in one row. They differ in a table: damage that is drawn from the columns
themselves brings no more giants than the reference has, draws from anywhere bring many. So rows fall into classes (how odd
the row is, what kind of repair it is offered), rehearsal tells how often each class is met among clean rows and among rows that
were hurt in each way, and the shares of the ways in a table are those that make its classes likeliest.

| equation | function |
|---|---|
| class of a row: its p-value in multiples of the alarm rate; if flagged, its boldest offer | `row_classes`, `boldest_offers` |
| (E-15) shares s that maximise sum_c n_c log sum_w s_w P(c given w), by EM | `mixed` |
| share of rows hurt openly, flat or far, and of those hurt far; less a FEW rows | `openness` |
| boldness = share / MUCH, at most 1; of values beyond the range by the share of far alone | `boldness` |
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from goldseam.conditional.marginals import Floats, Ints
from goldseam.evidence.gains import STEPS, Offer
from goldseam.evidence.rehearsal import FAR, FLAT, WAYS

__all__ = [
    "N_CLASSES",
    "OPEN",
    "UNKNOWN",
    "Boldness",
    "Openness",
    "boldest_offers",
    "boldness",
    "mixed",
    "openness",
    "outlines",
    "row_classes",
]

MULTIPLES = (0.2, 1.0, 2.0, 4.0, 7.0, 10.0, 15.0)  # of the alarm rate: ends of the classes of p-values
FLAGGED = 2  # so many of them are of flagged rows
NONE, UNSURE, NATURAL, LARGE = range(4)  # what a flagged row is offered
N_CLASSES = 4 * FLAGGED + len(MULTIPLES) + 1 - FLAGGED
LEAST = 0.5  # is added to the rehearsed rows of every class
ROUNDS = 300
OPEN = (FLAT, FAR)  # ways whose values a column need not have
MUCH = 0.1  # share from which repairs are as bold as in rehearsal
FEW = 2.0  # rows that may be odd by nature: they prove nothing about a table


class Openness(NamedTuple):
    """The share of a table's rows that prove to be openly damaged, and of those that are by slips of scale and the like (far)."""

    open: float
    far: float


class Boldness(NamedTuple):
    """How bold repairs are, between those for damage that hides (0) and those for damage of all kinds (1): `inside` a column's
    range, and of values beyond it on a heavy side, which the column may have by nature (`far`)."""

    inside: float
    far: float


UNKNOWN = Boldness(0.5, 0.5)  # of rows whose table was not surveyed


def boldest_offers(offer: Offer, gain: Floats) -> Ints:
    """What steps (gain > 0, (n, m)) rows would make: any of the largest size that is not natural, else any natural one, else any
    unsure one of a value that stands alone, else none of these."""
    steps = gain > 0.0
    large = (steps & ~offer.natural & (offer.size == len(STEPS))).any(1)
    natural, unsure = (steps & offer.natural).any(1), (steps & offer.unsure & offer.alone & ~offer.natural).any(1)
    return np.where(large, LARGE, np.where(natural, NATURAL, np.where(unsure, UNSURE, NONE)))


def row_classes(p_values: Floats, rate: float, offered: Ints) -> Ints:
    """The class of every row, by its p-value and, for flagged ones, by what they are `offered` at the boldest.

    >>> row_classes(np.array([0.001, 0.03, 0.06, 0.9]), 0.05, np.full(4, NATURAL))
    array([ 2,  6,  8, 13])
    """
    place = np.searchsorted(np.array(MULTIPLES) * rate * (1.0 + 1e-9), p_values)
    return np.where(place < FLAGGED, 4 * place + offered, 4 * FLAGGED + place - FLAGGED)


def outlines(classes: Ints, hurt: NDArray[np.bool_], way: Ints) -> Floats:
    """How often each class was met in rehearsal (1 + ways, N_CLASSES): among clean rows, and among those `hurt` in each way."""
    groups = [~hurt, *(hurt & (way == one) for one in range(len(WAYS)))]
    counts = np.stack([np.bincount(classes[group], minlength=N_CLASSES) for group in groups]) + LEAST
    return np.asarray(counts / counts.sum(1, keepdims=True))


def mixed(parts: Floats, counts: Ints | None = None, rounds: int = ROUNDS) -> Floats:
    """EM for the weights of a mixture with known densities (cases, components); a case may have been met several times.

    >>> mixed(np.array([[1.0, 0.1], [1.0, 0.2]])).round(2)
    array([1., 0.])
    >>> mixed(np.array([[0.9, 0.1], [0.1, 0.9]]), np.array([50, 50])).round(2)
    array([0.5, 0.5])
    """
    times = np.full(len(parts), 1.0 / len(parts)) if counts is None else counts / counts.sum()
    shares = np.full(parts.shape[1], 1.0 / parts.shape[1])
    for _ in range(rounds):
        shares = shares * ((times / (parts @ shares)) @ parts)
    return np.asarray(shares)


def openness(known: Sequence[Floats], counts: Sequence[Ints]) -> Openness:
    """How openly a table is damaged (E-15) whose parts were judged by models with these outlines; `counts`: how often each class
    was met in each part."""
    met = np.concatenate(counts)
    hurt = mixed(np.concatenate([one.T for one in known]), met)[1:]
    shares = np.array([hurt[list(OPEN)].sum(), hurt[FAR]]) - FEW / met.sum()
    return Openness(*np.maximum(shares, 0.0).tolist())


def boldness(found: Openness | None) -> Boldness:
    """How bold the repairs of a table are.

    >>> boldness(Openness(0.3, 0.05)), boldness(None)
    (Boldness(inside=1.0, far=0.5), Boldness(inside=0.5, far=0.5))
    """
    return UNKNOWN if found is None else Boldness(*(min(1.0, share / MUCH) for share in found))
