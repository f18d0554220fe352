"""Calibration rows that may be damaged themselves: how likely each is, and which to keep so that ranks are those of clean
rows.

A row's score s is taken for a log likelihood ratio, damaged : clean, but for a constant c: damage is never just what the
prior expects. Rehearsed damage sets it right, because over damaged rows the inverse ratio averages to one.

| equation | function |
|---|---|
| (D-1) c = log mean exp(-s) over rehearsed rows | `offset` |
| (D-2) least pi with sum log(1 - pi + pi exp(s + c)) within 2 of its maximum | `damaged_share` |
| (D-3) P(damaged) = sig(s + c + logit pi) | `damage_probabilities` |
| (D-4) of the k oddest rows, for every k, as many are kept as are clean by (D-3), rounded | `as_many_as_clean` |

Which of some equally odd rows are the clean ones is not known; for ranks only their number matters. (D-2) takes the lower
end of what is likely, because a share that is too high breaks the promised alarm rate, and one too low only costs power.
Where no row is damaged it comes out near zero, unless clean rows have the tails of damaged ones.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, logsumexp

from goldseam.conditional.marginals import Floats

__all__ = ["as_many_as_clean", "damage_probabilities", "damaged_share", "offset"]

SHARES: Final = np.arange(301) / 1000.0
LIKELY: Final = 2.0  # in log likelihood: two standard deviations
MOST_RATIO: Final = 50.0


def offset(rehearsed: Floats) -> float:
    """(D-1) What scores lack to be log likelihood ratios, from those of damaged rows; 0 without any."""
    return float(logsumexp(-rehearsed) - np.log(rehearsed.size)) if rehearsed.size else 0.0


def damaged_share(ratios: Floats) -> float:
    """(D-2) The least share of damaged rows that is likely enough, from log likelihood ratios.

    >>> damaged_share(np.repeat([-9.0, 9.0], [900, 100]))
    0.082
    >>> damaged_share(np.repeat([-9.0, 0.0], [900, 100]))
    0.0
    """
    excess = np.expm1(np.minimum(ratios, MOST_RATIO))
    likelihood = np.array([np.log1p(share * excess).sum() for share in SHARES])
    return float(SHARES[likelihood >= likelihood.max() - LIKELY][0])


def damage_probabilities(ratios: Floats, share: float) -> Floats:
    """(D-3) How likely each row is damaged, when a share of all rows is."""
    return np.asarray(expit(ratios + logit(share)))


def as_many_as_clean(scores: Floats, damaged: Floats) -> NDArray[np.bool_]:
    """(D-4) True for rows to keep, given scores and probabilities of damage.

    >>> as_many_as_clean(np.array([4.0, 1.0, 3.0, 2.0]), np.array([1.0, 0.0, 0.6, 0.3]))
    array([False,  True, False,  True])
    """
    oddest = np.argsort(-scores, kind="stable")
    clean = np.floor(np.cumsum(1.0 - damaged[oddest]) + 0.5)
    kept = np.empty(scores.size, dtype=bool)
    kept[oddest] = np.diff(clean, prepend=0.0) > 0.0
    return kept
