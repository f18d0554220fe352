"""How far the interval of a changed number reaches, and whether it holds the observed value too (E-8 to E-10).

| equation | function |
|---|---|
| interval: hull of center +- q s w in scores, the value put in, and x where the cell's score is at most d | `Evidence.repair` |
| scores at which an end of an interval just holds a value: a tied value may be held before its own score | `bounds` |
| distance of a value in widths: how far q s must reach to hold it; 0 between the median and the end held anyway | `distances` |
| (E-8) q of a column: quantile of the distances of damaged cells | `fit_intervals` |
| (E-9) d: quantile of the scores of fine cells, those lowest whose x q s reaches anyway | `fit_intervals` |
| (E-10) s: quantile of distance / q of damaged cells, by what is lost of the row and how they were changed | `fit_intervals` |
| quantiles are conformal, in groups, shrunk towards that of all | `quantiles` |

A changed number was damaged or fine, and how many were fine depends on the damage: few among gross errors, most where damage
hides. So the promise is kept for both apart (conformal prediction conditional on the label): of damaged cells `coverage` have
their true value within reach, of fine ones `coverage` have their observed value held. Then it holds for any mixture of the two.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from goldseam.conditional.marginals import Floats, Ints, Marginals
from goldseam.schema import Blocks

__all__ = ["Changes", "Intervals", "bounds", "distances", "fit_intervals", "loss_class", "quantiles"]

LOSSES = (0.1, 0.2, 0.35, 0.5)  # shares of a row that do not help: predictions from few cells err by more widths
SHRINK = 50.0
UNKNOWN_REACH = 2.0  # widths, where nothing was rehearsed
FILLED, REPLACED, DOUBTED, BEYOND = WAYS = range(4)  # gaps; x not held; x held; x not held and beyond the range
TRIFLE = 1e-9


@dataclass(frozen=True)
class Intervals:
    """q per number column, s (ways, losses) by how a cell was changed, d (losses)."""

    reach: Floats
    stretch: Floats
    doubt: Floats


@dataclass(frozen=True)
class Changes:
    """Numbers that were changed in rehearsal (k,): their `column`, the class of their row's `loss`, cell `scores` (infinite
    where x is absurd), whether x was `outside` the range, whether they were `damaged`; `distance` of the truth (3, k) if
    filled, replaced, doubted, and of the value `observed` (k,)."""

    column: Ints
    loss: Ints
    scores: Floats
    outside: NDArray[np.bool_]
    damaged: NDArray[np.bool_]
    distance: Floats
    observed: Floats


def loss_class(lost: Floats) -> Ints:
    """The class of the share of a row that does not help to predict the rest.

    >>> loss_class(np.array([0.0, 0.1, 0.6]))
    array([0, 1, 4])
    """
    return np.searchsorted(LOSSES, lost, side="right")


def bounds(marginals: Marginals, blocks: Blocks) -> tuple[Floats, Floats]:
    """The least score of an upper end, and the greatest of a lower end, that hold each number; ends stay within the range."""
    scores, x = marginals.score(blocks), blocks.numbers
    low, high = (np.where(np.isnan(end), scores.z, end) for end in (scores.low + TRIFLE, scores.high - TRIFLE))
    low = np.where(marginals.value_at(low) >= x, low, scores.z)
    high = np.where(marginals.value_at(high) <= x, high, scores.z)
    bottom, top = marginals.knots[marginals.offsets[:-1]], marginals.knots[marginals.offsets[1:] - 1]
    return np.where(x <= bottom, -np.inf, low), np.where(x >= top, np.inf, high)


def distances(
    ends: tuple[Floats, Floats], center: Floats, width: Floats, spared: NDArray[np.bool_] | None = None
) -> Floats:
    """How many widths an interval must reach to hold values with such `bounds`; none where they are `spared`."""
    out = np.maximum(0.0, np.maximum(ends[0] - center, center - ends[1])) / width
    return out if spared is None else np.where(spared, 0.0, out)


def fit_intervals(changes: Changes, n_columns: int, coverage: float) -> Intervals:
    """What keeps the promise for rehearsed changes, damaged and fine ones apart."""
    n_losses = len(LOSSES) + 1
    hurt, loss = changes.damaged, changes.loss
    reach = quantiles(changes.distance[FILLED, hurt], changes.column[hurt], n_columns, coverage, unknown=UNKNOWN_REACH)
    own = reach[changes.column]
    relative = np.divide(changes.distance, own, out=np.zeros(changes.distance.shape), where=own > 0.0)

    def stretched(end: int, use: NDArray[np.bool_]) -> Floats:
        return quantiles(relative[end, use], loss[use], n_losses, coverage, unknown=1.0)

    fine = ~hurt & np.isfinite(changes.scores)
    anyway = changes.observed <= own * stretched(REPLACED, hurt & ~changes.outside)[loss]
    scores = np.where(anyway, changes.scores.min(initial=0.0), changes.scores)
    doubt = quantiles(scores[fine], loss[fine], n_losses, coverage, unknown=np.inf)
    doubted = changes.scores <= doubt[loss]
    stretch = [
        stretched(FILLED, hurt),
        stretched(REPLACED, hurt & ~doubted & ~changes.outside),
        stretched(DOUBTED, hurt & doubted),
        stretched(REPLACED, hurt & ~doubted & changes.outside),
    ]
    return Intervals(reach, np.stack(stretch), doubt)


def quantiles(values: Floats, group: Ints, n_groups: int, coverage: float, *, unknown: float) -> Floats:
    """Conformal quantile of every group, shrunk towards that of all values; `unknown` where there are none."""
    if not values.size:
        return np.full(n_groups, unknown)
    common = _upper(values, coverage)
    out = np.full(n_groups, common)
    for k in range(n_groups):
        own = values[group == k]
        if own.size:
            out[k] += own.size / (own.size + SHRINK) * (_upper(own, coverage) - common)
    return out


def _upper(values: Floats, coverage: float) -> float:
    rank = min(int(np.ceil((values.size + 1) * coverage)), values.size)
    return float(np.sort(values)[rank - 1])
