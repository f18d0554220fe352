"""Linear relations between the numbers of a row, W x + c = 0, within bounds; some numbers are whole.

| equation | function |
|---|---|
| W x + c, term by term: the same for a row whatever the batch | `gaps` |
| x - V W' S^+ (W x + c), S = W V W', V the variances of the free cells: the least movement for its variance | `_steps` |
| cells beyond a bound stay on it, whole ones are rounded one after the other, and the rest makes up for it | `meet` |
| abs(W x + c) > 1e-6 (1 + max abs x): not met | `broken` |
| no x meets all | `impossible` |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

__all__ = ["System", "broken", "gaps", "impossible", "meet"]

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

SLACK: Final = 1e-6
LEAST_VARIANCE: Final = 1e-24
RANK: Final = 1e-12
INFEASIBLE: Final = 2  # linprog's status
SECONDS: Final = 10.0  # for the search among whole numbers; what is not settled by then passes


@dataclass(frozen=True)
class System:
    """R relations over m numbers: weights (R, m), constants (R,); bounds and whole numbers (m,)."""

    weights: Floats
    constants: Floats
    low: Floats
    high: Floats
    whole: Flags

    def first(self, n: int) -> System:
        """The same with the first n relations only."""
        return System(self.weights[:n], self.constants[:n], self.low, self.high, self.whole)


def gaps(system: System, numbers: Floats) -> Floats:
    """(n, R): by how much each relation is missed; NaN where one of its cells is not known."""
    out = np.tile(system.constants, (len(numbers), 1))
    for r, weights in enumerate(system.weights):
        for j in np.flatnonzero(weights):
            out[:, r] += weights[j] * numbers[:, j]
    return out


def broken(system: System, numbers: Floats) -> Flags:
    """(n, R): relations that are known not to hold."""
    gap = np.abs(gaps(system, numbers))
    sizes = [1.0 + np.abs(numbers[:, weights != 0.0]).max(axis=1) for weights in system.weights]
    return gap > SLACK * np.array(sizes).reshape(len(sizes), len(numbers)).T


def meet(system: System, numbers: Floats, free: Flags, variance: Floats) -> Floats:
    """The numbers with their free cells moved onto the relations, as far as bounds and whole numbers let them.

    Free cells must lie within their bounds. A row's result depends on that row alone.
    """
    out, free = numbers.copy(), free & (system.weights != 0.0).any(axis=0)
    rows = np.flatnonzero(free.any(axis=1) & (np.abs(gaps(system, out)) > 0.0).any(axis=1))
    while rows.size:
        out[rows], held = _pass(system, out[rows], free[rows], variance[rows])
        free[rows] &= ~held
        rows = rows[held.any(axis=1)]
    return out


def _pass(system: System, numbers: Floats, free: Flags, variance: Floats) -> tuple[Floats, Flags]:
    """One movement, and the cells that are settled by it: those on their bounds, or else the first whole one."""
    moved = np.where(free, numbers - _steps(system, numbers, free, variance), numbers)
    inside = np.where(free, np.clip(moved, system.low, system.high), moved)
    hit = free & (inside != moved)
    open_ = free & system.whole & ~hit.any(axis=1, keepdims=True)
    rounded = open_ & (np.cumsum(open_, axis=1) == 1)
    return np.where(rounded, np.rint(inside), inside), hit | rounded


def _steps(system: System, numbers: Floats, free: Flags, variance: Floats) -> Floats:
    weights, gap = system.weights, gaps(system, numbers)
    known = np.isfinite(gap)
    scope = np.where(free, np.maximum(variance, LEAST_VARIANCE), 0.0)
    spread = np.zeros((len(numbers), len(weights), len(weights)))
    for r, s in np.ndindex(spread.shape[1:]):
        for j in np.flatnonzero(weights[r] * weights[s]):
            spread[:, r, s] += scope[:, j] * weights[r, j] * weights[s, j]
    spread *= known[:, :, None] & known[:, None, :]
    size = np.sqrt(np.diagonal(spread, axis1=1, axis2=2))
    size = np.where(size > 0.0, size, 1.0)
    inverse = np.linalg.pinv(spread / (size[:, :, None] * size[:, None, :]), rcond=1e-13, hermitian=True)
    pull = (inverse @ (np.where(known, gap, 0.0) / size)[:, :, None])[:, :, 0] / size
    out = np.zeros_like(numbers)
    for r, j in zip(*np.nonzero(weights), strict=True):
        out[:, j] += scope[:, j] * weights[r, j] * pull[:, r]
    return out


def impossible(system: System) -> bool:
    """Whether no row at all can meet the relations within its bounds."""
    if not len(system.weights):
        return False
    size = np.abs(system.weights).max(axis=1, keepdims=True)
    weights, wanted = system.weights / size, -system.constants / size[:, 0]
    both = np.column_stack([weights, wanted / max(float(np.abs(wanted).max()), 1.0)])
    if np.linalg.matrix_rank(both, tol=RANK) > np.linalg.matrix_rank(weights, tol=RANK):
        return True
    at = np.flatnonzero((weights != 0.0).any(axis=0))
    found = linprog(
        np.zeros(at.size), A_eq=weights[:, at], b_eq=wanted, bounds=np.column_stack([system.low[at], system.high[at]]),
        integrality=system.whole[at].astype(int), options={"time_limit": SECONDS},
    )  # fmt: skip
    return bool(found.status == INFEASIBLE)
