"""Which rows of a reference can be trusted, when it may hold damaged rows itself.

Two witnesses, neither of which has seen the row it judges: the GEM entropy of `margin` (rows that lie apart), and a first
model of evidence fitted on the other rows (cells that do not fit their neighbours). Both leave out only what is clearly
odd, because every clean row that is left out makes the later alarm rate too high.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from goldseam.evidence import Prior, fit_evidence
from goldseam.margin.trust import row_trust
from goldseam.schema import Blocks, Schema

__all__ = ["believed_rows", "features"]

N_FOLDS: Final = 5
ROUNDS: Final = 2
LEAST_TRUST: Final = 0.02
MOST_LOG_ODDS: Final = np.log(9.0) + 3.0  # one row in ten may be damaged, and the evidence must be strong
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


def believed_rows(
    blocks: Blocks, schema: Schema, prior: Prior, rng: np.random.Generator
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """True for rows that both witnesses believe; and the trust that the second one, if not the first, has in each."""
    seed = int(rng.integers(2**31))
    lone = row_trust(features(blocks, schema), seed=seed).trust < LEAST_TRUST
    believed = ~lone
    fold = rng.permutation(len(blocks)) % N_FOLDS
    for _ in range(ROUNDS):
        odds = np.empty(len(blocks))
        for k in range(N_FOLDS):
            mine = fold == k
            odds[mine] = _odds(blocks, schema, np.flatnonzero(believed & ~mine), np.flatnonzero(mine), prior, rng)
        believed = ~lone & (odds <= MOST_LOG_ODDS)
    return believed, np.where(lone, 0.0, expit(MOST_LOG_ODDS - odds))


def _odds(
    blocks: Blocks,
    schema: Schema,
    others: NDArray[np.int64],
    mine: NDArray[np.int64],
    prior: Prior,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Log odds that rows are damaged, by the Gaussian expert fitted on other rows."""
    order = rng.permutation(others)
    n = max(LEAST_CALIBRATION, order.size // 4)
    model = fit_evidence(
        blocks.take(order[n:]), blocks.take(order[:n]), schema, boosted=False, prior=prior, alarm_rate=0.05, rng=rng
    )
    return model.judge(blocks.take(mine)).row_scores
