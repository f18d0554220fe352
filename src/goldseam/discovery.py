"""Cell-level error control: conformal p-values against cells that were fine, and Benjamini and Hochberg's rule.

A fine cell looks worse in a damaged row than in a clean one: suspicion spreads to its neighbours. So a cell is compared
with fine cells of damaged rows that looked as odd as its own. Those come from rehearsal: calibration rows hurt on purpose
with values that may pass for sound ones, judged by a pool that has not seen them, sorted into bins by the row's score.
Within a bin the p-value is the conformal one. Far-off values are left out: next to them fine cells look fine, which would
make promises for damage that hides. The audit measures the rate that results.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from goldseam.conditional.layout import check_offsets
from goldseam.evidence import Practice
from goldseam.evidence.rehearsal import FLAT, OWN

__all__ = ["FineCells", "benjamini_hochberg", "count_p_values", "fit_fine_cells", "rehearsed_power"]

Floats = NDArray[np.float64]

N_BINS: Final = 6
P_STEPS: Final = 100_000


@dataclass(frozen=True)
class FineCells:
    """Scores of fine cells, sorted within bins of rows; `edges` are the row scores between the bins."""

    edges: Floats
    scores: Floats
    offsets: NDArray[np.int64]

    def check_state(self) -> None:
        """A file whose bins lead outside the scores is refused."""
        check_offsets("fine cells", self.offsets, len(self.edges) + 1, self.scores.size, least=0)

    def p_values(self, row_scores: Floats, cell_scores: Floats) -> Floats:
        """Share of fine cells, in rows as odd, that score at least as high; 1 where nothing was observed."""
        out = np.ones(cell_scores.shape)
        bins = np.searchsorted(self.edges, row_scores, side="right")
        for b in range(len(self.edges) + 1):
            rows = bins == b
            fine = self.scores[self.offsets[b] : self.offsets[b + 1]]
            above = fine.size - np.searchsorted(fine, cell_scores[rows], side="left")
            out[rows] = (1.0 + above) / (1.0 + fine.size)
        return out


def fit_fine_cells(practice: Practice) -> FineCells:
    """What fine cells scored in rows whose damage passes for sound values: there suspicion spreads most."""
    hidden = practice.changed.any(axis=1) & ((practice.way == FLAT) | (practice.way == OWN))
    edges = np.unique(np.quantile(practice.odds, np.arange(1, N_BINS) / N_BINS))
    bins = np.where(hidden, np.searchsorted(edges, practice.odds, side="right"), -1)
    fine = ~practice.changed & np.isfinite(practice.cells)
    parts = [np.sort(practice.cells[bins == b][fine[bins == b]]) for b in range(len(edges) + 1)]
    offsets = np.concatenate([[0], np.cumsum([part.size for part in parts])]).astype(np.int64)
    return FineCells(edges, np.concatenate(parts), offsets)


def rehearsed_power(fine: FineCells, practice: Practice, rate: float) -> float:
    """Share of the damaged cells of the rehearsal that are suspect at a false discovery rate."""
    p_values = fine.p_values(practice.odds, practice.cells)
    limit = benjamini_hochberg(count_p_values(p_values[np.isfinite(practice.cells)]), rate)
    return float((p_values[practice.changed] <= limit).mean()) if practice.changed.any() else 0.0


def benjamini_hochberg(counts: NDArray[np.int64], rate: float) -> float:
    """The largest p-value that the step-up rule lets pass; `counts[r]` cells have a p-value of at most r / N.

    Counting in steps lets a table that comes in batches be surveyed without keeping its cells.

    >>> benjamini_hochberg(np.array([0, 5, 0, 0, 5]), 0.5)
    0.25
    """
    p_values = np.arange(counts.size) / (counts.size - 1)
    passed = np.cumsum(counts)
    ok = (passed > 0) & (p_values * passed[-1] <= rate * passed)
    return float(p_values[np.flatnonzero(ok)[-1]]) if ok.any() else 0.0


def count_p_values(p_values: Floats) -> NDArray[np.int64]:
    """How many p-values fall into each step, rounded up: the sum over batches feeds `benjamini_hochberg`.

    >>> count_p_values(np.array([0.0000049, 1.0]))[[1, P_STEPS]]
    array([1, 1])
    """
    steps = np.ceil(p_values * P_STEPS - 1e-9).astype(np.int64)
    return np.bincount(steps.ravel(), minlength=P_STEPS + 1)
