"""Which rows of a reference can be trusted, when it may hold damaged rows itself.

Rows are judged by each other. The GEM entropy of `margin` picks the rows that a first model of evidence is fitted on (those
that do not lie apart); each row is then judged by a model that has not seen it, and in a second round by one that was
fitted on the believed rows alone. The share of damaged rows and the probability of each come from `evidence.doubt`.

The two uses of a row need different care. To fit on, every row that is rather damaged than clean is left out: a clean row
more or less changes little. Among calibration rows each clean one that is left out makes the alarm rate too high, and each
damaged one that stays makes it too low. So only rows that are surely damaged are left out, and the ranks allow for the
share of those that remain.

Scope: a tenth of the rows damaged costs up to 5 points of detection, a fifth little more (skab, credit-approval), and a
share over .3 is not looked for. The share that is assumed is the least that is likely, so where damage hides the alarm rate
comes out too low. Where clean rows have the tails of damaged ones (german: columns that hardly depend on each other) some
pass for damaged, declared rightly or not, and the alarm rate comes out too high: .08 for .05. A clean reference that is
declared contaminated may cost alarms elsewhere too (skab: .08, against .06 when declared clean).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from goldseam.evidence import Prior, learn_evidence
from goldseam.evidence.doubt import damage_probabilities, damaged_share
from goldseam.margin.trust import row_trust
from goldseam.schema import Blocks, Schema

__all__ = ["Belief", "features", "judge_each_other"]

N_FOLDS: Final = 5
ROUNDS: Final = 2
LEAST_COMPANY: Final = 0.02
LEAST_SURE: Final = 0.5
LEAST_USED: Final = 0.05
LEAST_CALIBRATION: Final = 20


def features(blocks: Blocks, schema: Schema) -> NDArray[np.float64]:
    """Numbers in robust units and one-hot levels, on comparable scales; NaN where nothing was observed.

    >>> from goldseam.schema import Column, Kind
    >>> schema = Schema((Column("x", Kind.CONTINUOUS, center=1.0, scale=2.0), Column("c", Kind.CATEGORICAL, ("a", "b"))))
    >>> features(Blocks(np.array([[5.0]]), np.array([[1]], dtype=np.int32)), schema)
    array([[2.        , 0.        , 0.70710678]])
    """
    center = np.array([column.center for column in schema.numbers])
    scale = np.array([column.scale for column in schema.numbers])
    parts = [(blocks.numbers - center) / scale]
    for j, column in enumerate(schema.categories):
        code = blocks.codes[:, j, None]
        parts.append(np.where(code < 0, np.nan, (code == np.arange(len(column.levels))) / np.sqrt(2.0)))
    return np.concatenate(parts, axis=1)


@dataclass(frozen=True)
class Belief:
    """How likely each row of a reference is clean, and what share of the `used` rows is damaged all the same."""

    trust: NDArray[np.float64]
    damaged: float = 0.0

    @property
    def sure(self) -> NDArray[np.bool_]:
        """Rows to fit and to audit on."""
        return np.asarray(self.trust >= LEAST_SURE)

    @property
    def used(self) -> NDArray[np.bool_]:
        """Rows to draw calibration rows from."""
        return np.asarray(self.trust >= LEAST_USED)


def judge_each_other(blocks: Blocks, schema: Schema, prior: Prior, rng: np.random.Generator) -> Belief:
    """What the rows of a reference make of each other."""
    seed = int(rng.integers(2**31))
    believed = row_trust(features(blocks, schema), seed=seed).trust >= LEAST_COMPANY
    fold = rng.permutation(len(blocks)) % N_FOLDS
    for _ in range(ROUNDS):
        ratios = np.empty(len(blocks))
        for k in range(N_FOLDS):
            mine = fold == k
            ratios[mine] = _ratios(blocks, schema, np.flatnonzero(believed & ~mine), np.flatnonzero(mine), prior, rng)
        share = damaged_share(ratios)
        belief = Belief(1.0 - damage_probabilities(ratios, share))
        believed = belief.sure
    used = float(belief.used.mean())
    return replace(belief, damaged=max(0.0, 1.0 - (1.0 - share) / used) if used else 0.0)


def _ratios(
    blocks: Blocks,
    schema: Schema,
    others: NDArray[np.int64],
    mine: NDArray[np.int64],
    prior: Prior,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Log likelihood ratios, damaged : clean, of rows, by the Gaussian expert fitted on other rows."""
    order = rng.permutation(others)
    n = min(max(LEAST_CALIBRATION, order.size // 4), order.size // 2)
    reference, calibration = blocks.take(order[n:]), blocks.take(order[:n])
    model, practice = learn_evidence(  # no alarm is raised
        reference, calibration, schema, boosted=False, prior=prior, alarm_rate=0.5, rng=rng
    )
    return model.judge(blocks.take(mine)).row_scores + practice.offset
