"""Cheap peers in the protocol of P1: one score per cell, a threshold from clean calibration rows, an imputer told the mask.

| peer | cell score | repair |
|---|---|---|
| z-score | distance from the mean in standard deviations | KNNImputer |
| IQR | distance from the quartiles in their distances | KNNImputer |
| ledoit-wolf | residual given all other cells, shrunk covariance; rows by Mahalanobis | conditional mean given the others |

Numbers standardised, categories one-hot (a level's score: -log of its frequency; ledoit-wolf: its largest residual). The
threshold of cells is the largest score that lets 5 % of the clean rows have any suspect cell (P1).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from sklearn.covariance import LedoitWolf
from sklearn.impute import KNNImputer
from sklearn.metrics import average_precision_score, roc_auc_score

from benchmarks.evidence.protocol import Case
from goldseam.conditional.layout import layout_of
from goldseam.schema import Blocks

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Coder:
    """Blocks as one matrix: standardised numbers, then the levels of every category."""

    mean: Floats
    sd: Floats
    levels: tuple[int, ...]

    @classmethod
    def of(cls, case: Case) -> Coder:
        sd = np.maximum(case.reference.numbers.std(0), 1e-12)
        return cls(case.reference.numbers.mean(0), sd, tuple(len(c.levels) for c in case.schema.categories))

    def code(self, blocks: Blocks) -> Floats:
        hot = [blocks.codes[:, j, None] == np.arange(k) for j, k in enumerate(self.levels)]
        return np.concatenate([(blocks.numbers - self.mean) / self.sd, *hot], axis=1)


def scores(name: str, case: Case, blocks: Blocks) -> tuple[Floats, Floats]:
    """Cell scores (numbers first, then categories) and row scores."""
    coder = Coder.of(case)
    x, m = coder.code(blocks), case.reference.numbers.shape[1]
    starts = m + np.concatenate([[0], np.cumsum(coder.levels)]).astype(int)
    if name == "ledoit-wolf":
        fitted = LedoitWolf().fit(coder.code(case.reference))
        q = (x - fitted.location_) @ fitted.precision_
        residual = np.abs(q) / np.sqrt(np.diag(fitted.precision_))
        parts = [residual[:, a:b].max(1) for a, b in pairwise(starts)]
        cells = np.column_stack([residual[:, :m], *parts])
        return cells, fitted.mahalanobis(x)
    if name == "z-score":
        numbers = np.abs(x[:, :m])
    else:
        low, high = np.quantile(case.reference.numbers, (0.25, 0.75), axis=0)
        span = np.maximum(high - low, coder.sd * 1e-3)
        numbers = np.maximum((low - blocks.numbers) / span, (blocks.numbers - high) / span)
    rare = [
        -np.log((np.bincount(case.reference.codes[:, j], minlength=k) + 0.5) / (len(case.reference) + 0.5 * k))
        for j, k in enumerate(coder.levels)
    ]
    cells = np.column_stack([numbers, *(table[blocks.codes[:, j]] for j, table in enumerate(rare))])
    return cells, np.sort(cells, axis=1)[:, -3:].mean(1)


def repaired(name: str, case: Case, blocks: Blocks, suspect: NDArray[np.bool_]) -> Floats:
    """Numbers with the suspect ones filled."""
    coder, m = Coder.of(case), case.reference.numbers.shape[1]
    x = coder.code(blocks)
    hidden = np.concatenate(
        [suspect[:, :m], *(suspect[:, [m + j]].repeat(k, 1) for j, k in enumerate(coder.levels))], 1
    )
    if name == "ledoit-wolf":
        fitted = LedoitWolf().fit(coder.code(case.reference))
        for i in np.flatnonzero(hidden.any(1)):
            at, rest = np.flatnonzero(hidden[i]), np.flatnonzero(~hidden[i])
            part = fitted.precision_[np.ix_(at, at)]
            shift = np.linalg.solve(part, fitted.precision_[np.ix_(at, rest)] @ (x[i, rest] - fitted.location_[rest]))
            x[i, at] = fitted.location_[at] - shift
    else:
        imputer = KNNImputer(keep_empty_features=True).fit(coder.code(case.reference))
        rows = np.flatnonzero(hidden.any(1))
        if rows.size:
            x[rows] = imputer.transform(np.where(hidden[rows], np.nan, x[rows]))
    return np.where(suspect[:, :m], x[:, :m] * coder.sd + coder.mean, blocks.numbers)


def measure(name: str, case: Case, dirty: Blocks, cells: NDArray[np.bool_]) -> dict[str, float]:
    """The metrics of P1 for one cheap peer."""
    layout = layout_of(case.schema)
    truth = cells[:, np.concatenate([layout.number_cells, layout.category_cells])]
    calibration, row_calibration = scores(name, case, case.calibration)
    found, rows = scores(name, case, dirty)
    limit, row_limit = np.quantile(calibration.max(1), 0.95), np.quantile(row_calibration, 0.95)
    suspect = found > limit
    hit = truth.any(1)
    sd = Coder.of(case).sd
    error = lambda numbers: (((numbers - case.incoming.numbers) / sd) ** 2).sum(1)  # noqa: E731
    before, after = error(dirty.numbers), error(repaired(name, case, dirty, suspect))
    return {
        "AUC": roc_auc_score(hit, rows),
        "detection": float((rows > row_limit)[hit].mean()),
        "AP": average_precision_score(truth.ravel(), found.ravel()),
        "F1": 2 * (suspect & truth).sum() / max(1, suspect.sum() + truth.sum()),
        "Q": 1 - after[hit].sum() / before[hit].sum(),
        "Q all rows": 1 - after.sum() / before.sum(),
    }


PEERS = ("z-score", "IQR", "ledoit-wolf")
