"""The GEM field and the trust it gives: how believable each row is, from its own class and from the classifier's loss.

=======  ======================================================================
(G-14)   `fit_class_field`: ell, threshold and scale of one class
(G-19)   `ClassField.score`: g = (tau - ell) / s; `clip_field`
(G-20)   `log_odds`: a = logit p0 + lambda g; `trust_given_loss`: sig(a - beta l)
(G-22)   `margin_loss`: C [1 - margin]_+
(G-21)   `objective`: J
(G-23)   `best_score`: a new row against its nearest class
=======  ======================================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from goldseam.errors import ParameterError
from goldseam.margin import entropy, thresholds
from goldseam.margin.repetition import learn_repetition

__all__ = [
    "FIELD_LIMITS",
    "ClassField",
    "FieldSettings",
    "RowTrust",
    "best_score",
    "clip_field",
    "fit_class_field",
    "log_odds",
    "lowered",
    "margin_loss",
    "objective",
    "row_trust",
    "trust_given_loss",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Space = entropy.EuclideanRows | entropy.GramRows

FIELD_LIMITS = (-30.0, 1.5)
"""(G-19): the upper limit lets the loss still lower the trust of central rows."""


@dataclass(frozen=True)
class FieldSettings:
    """What shapes the field: see the parameters of `GEMMEDClassifier`."""

    n_neighbors: str | int | float = "auto"
    threshold: str = "auto"
    entropy: str = "leave-one-out"
    max_reference: int = 2000
    repetition: bool = True
    isolation: bool = True


@dataclass(frozen=True)
class ClassField:
    """The field of one class: its reference rows (positions among the training rows), k, tau, s and the floor of R.

    `state` is `'on'`, `'small'` (fewer rows than `thresholds.FEWEST_ROWS`) or `'flat'` (no spread, or no foreign neighbours).
    """

    reference: Ints
    n_neighbors: int
    threshold: float
    scale: float
    floor: float
    n_kept: int
    n_rows: int
    state: Literal["on", "small", "flat"]

    def score(self, sums: Floats) -> Floats:
        """(G-19) for neighbour sums R: how far, in scales, a row lies inside the threshold."""
        if self.state == "flat":
            return np.where(sums == 0, FIELD_LIMITS[1], -np.inf)
        ell, _ = entropy.log_sums(sums, self.floor)
        return (self.threshold - ell) / self.scale


def fit_class_field(
    space: Space, rows: Ints, settings: FieldSettings, rng: np.random.Generator
) -> tuple[ClassField, Floats]:
    """The field of the class made of the distinct `rows`, and g of each of them."""
    reference = rows[entropy.reference_rows(len(rows), settings.max_reference)]
    bipartite = settings.entropy == "bipartite"
    k = entropy.neighbour_count(settings.n_neighbors, len(reference), bipartite=bipartite)
    k = min(k, _foreign_rows(space, rows, reference))
    if len(reference) < 3 or k < 2:
        return _flat(reference, k, len(rows)), np.full(len(rows), FIELD_LIMITS[1])
    sums = entropy.bipartite_sums(space, rows, k, rng)[0] if bipartite else space.sums(rows, reference, k)
    ell, floor = entropy.log_sums(sums)
    if len(rows) < thresholds.FEWEST_ROWS:
        whole = thresholds.cut(np.sort(ell), len(ell))
        field = ClassField(reference, k, whole.threshold, whole.scale, floor, len(rows), len(rows), "small")
        return field, np.full(len(rows), FIELD_LIMITS[1])
    found = thresholds.find_cut(ell, settings.threshold)
    field = ClassField(reference, k, found.threshold, found.scale, floor, found.n_kept, len(rows), "on")
    return field, field.score(sums)


def _flat(reference: Ints, k: int, n_rows: int) -> ClassField:
    k = max(1, min(k, len(reference)))
    return ClassField(reference, k, np.nan, np.nan, 1e-12, n_rows, n_rows, "flat")


def _foreign_rows(space: Space, rows: Ints, reference: Ints) -> int:
    """Fewest reference rows that any row may look at: those of another group, if groups are known."""
    if space.groups is None:
        return len(reference)
    sizes = np.bincount(space.groups[reference], minlength=int(space.groups.max()) + 1)
    return len(reference) - int(sizes[space.groups[rows]].max(initial=0))


def lowered(scores: Floats, suspicions: Floats) -> Floats:
    """Field scores, lowered where another view of the rows gives a negative score; that view never raises a score."""
    return np.where(suspicions < 0, np.minimum(scores, suspicions), scores)


def clip_field(field: Floats) -> Floats:
    """g as the model uses it."""
    return np.clip(field, *FIELD_LIMITS)


def log_odds(field: Floats, prior: float, strength: float) -> Floats:
    """a of (G-20): the log odds of being nominal before the loss is seen."""
    return logit(prior) + strength * clip_field(field)


def trust_given_loss(odds: Floats, loss: Floats, loss_strength: float) -> Floats:
    """pi of (G-20).

    >>> trust_given_loss(np.array([0.0, 0.0]), np.array([0.0, 2.0]), 1.0).round(3)
    array([0.5  , 0.119])
    """
    return expit(odds - loss_strength * loss)


def margin_loss(scores: Floats, codes: Ints, C: float) -> Floats:
    """l of (G-20), (G-22): scores (rows, classes), or (rows, 1) for two classes; codes 0, 1, ...

    >>> margin_loss(np.array([[0.5], [0.5]]), np.array([1, 0]), 1.0)
    array([0.5, 1.5])
    """
    rows = np.arange(len(codes))
    if scores.shape[1] == 1:
        margin = np.where(codes == 1, scores[:, 0], -scores[:, 0])
    else:
        others = scores.copy()
        others[rows, codes] = -np.inf
        margin = (scores[rows, codes] - others.max(axis=1)) / 2
    return C * np.maximum(1.0 - margin, 0.0)


def objective(half_norm: float, odds: Floats, loss: Floats, loss_strength: float, weights: Floats) -> float:
    """J of (G-21)."""
    if loss_strength == 0:
        return half_norm + float(np.sum(weights * expit(odds) * loss))
    capped = np.logaddexp(0.0, odds) - np.logaddexp(0.0, odds - loss_strength * loss)
    return half_norm + float(np.sum(weights * capped)) / loss_strength


def best_score(scores: Floats) -> Floats:
    """t of (G-23): the best of a row's scores over the classes (first axis), never above the upper limit of the field."""
    return np.minimum(scores.max(axis=0), FIELD_LIMITS[1])


@dataclass(frozen=True)
class RowTrust:
    """Trust and field per row, and the cut they come from."""

    trust: Floats
    field: Floats
    threshold: float
    scale: float
    n_kept: int
    n_neighbors: int


def row_trust(
    X: Floats,
    sample_weight: Floats | None = None,
    *,
    n_neighbors: str | int | float = "auto",
    threshold: str = "auto",
    trust_prior: float = 0.5,
    field_strength: float = 2.0,
    max_reference: int = 2000,
    repetition: bool = True,
    groups: Ints | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
) -> RowTrust:
    """Trust of rows by GEM entropy alone: all rows are taken as one class and no label is used.

    `X` holds numbers on comparable scales; NaN is "not observed". Rows of weight zero do not shape the field and get
    a field by it. `repetition` also looks for readings that repeat (dead or stuck channels). `groups` are codes >= 0: rows
    of one group do not vouch for each other. The result does not depend on the order of the rows or on copies of a row.

    >>> rows = np.vstack([np.random.default_rng(0).normal(size=(60, 2)), [[40.0, -40.0]]])
    >>> result = row_trust(rows)
    >>> bool(result.trust[-1] < 0.01), bool(np.mean(result.trust[:-1] > 0.5) > 0.9)
    (True, True)
    """
    if not 0 < trust_prior < 1:
        raise ParameterError(f"trust_prior must lie strictly between 0 and 1, but is {trust_prior}. Hint: 0.5.")
    rows = np.ascontiguousarray(X, dtype=np.float64)
    weight = np.ones(len(rows)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    counted = np.flatnonzero((weight > 0) & ~np.isnan(rows).all(axis=1))
    found = entropy.distinct_rows(rows[counted], seed)
    first = counted[found.first]
    space = entropy.EuclideanRows(rows, groups, n_jobs)
    settings = FieldSettings(n_neighbors, threshold, "leave-one-out", max_reference)
    field, distinct = fit_class_field(space, first, settings, np.random.default_rng(seed))
    g = np.empty(len(rows))
    g[counted] = distinct[found.inverse]
    rest = np.setdiff1d(np.arange(len(rows)), counted)
    g[rest] = field.score(space.sums(rest, field.reference, field.n_neighbors))
    if repetition:
        repeated = learn_repetition(rows[first], np.zeros(len(first), dtype=np.int64), 1)
        g = lowered(g, repeated.scores(rows)[0])
    trust = expit(log_odds(g, trust_prior, field_strength))
    trust[np.isnan(rows).all(axis=1)] = 0.0
    return RowTrust(trust, g, field.threshold, field.scale, field.n_kept, field.n_neighbors)
