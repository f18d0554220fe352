"""The levels of a category from what goes with them: naive Bayes, each cell with a weight of its own.

| equation | function |
|---|---|
| (E-13) log p(l), the believed given = log p(l) + sum over them of w log p(v, l given) / p(v) + constant | `kernels.tie_sums` |
| p(v, l given) / p(v) = (n_vl + a p(v)) / ((n_l + a) p(v)), a = SMOOTHING | `lift` |
| numbers by bins of their scores, each value for itself where there are few; bins count for their neighbours | `slips` |
| w: multinomial regression on rows and masked copies, each row left out of its own counts | `fit_heard` |

A sum over cells is exact for any mask: what is withheld is left out. Weights below one say that cells repeat each other. What was
seen once cannot vouch for itself, as its row does not count there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from goldseam.conditional import kernels
from goldseam.conditional.layout import Layout, check_lengths, check_offsets
from goldseam.conditional.marginals import Floats, Ints, Marginals, Scores
from goldseam.conditional.masking import draw_masks
from goldseam.errors import ModelFileError

__all__ = ["Ties", "fit_heard", "fit_ties", "lift", "slips"]

BINS = 8  # of a number with many values, equally full
SMOOTHING = 8.0  # rows that the marginal counts for among those with a level
HEARD = 30  # cells at most that a column hears, those that tell most
SLIP = 0.2  # share of what was seen in a bin that counts for its neighbours: numbers err a little
ROWS, COPIES = 2000, 3  # from which weights are learnt at most, and masked copies of each
ENTRIES = 2_000_000  # of the regression of a column, about
PRIOR, PENALTY = 0.5, 20.0  # weight that is expected; for how many nats a departure of one counts, twice
ROUNDS = 20
HALVES = tuple(0.5**k for k in range(5))  # of Newton's step, the best is taken
TOLERANCE = 0.01  # nats; gain of a round below which it is the last


@dataclass(frozen=True)
class Ties:
    """`table` (values, levels): what a value of a cell adds to the log odds of all levels of all categories; `base` (levels,)
    their log frequency. Cell c owns the values starts[c] : starts[c + 1]; numbers those between the `edges` of their scores."""

    layout: Layout
    edges: Floats
    edge_offsets: Ints
    starts: Ints
    level_offsets: Ints
    base: Floats
    table: Floats

    def check_state(self) -> None:
        """Every cell owns its values, every category its levels."""
        numbers, categories = self.layout.number_cells, self.layout.category_cells
        check_offsets("edges of ties", self.edge_offsets, len(numbers), self.edges.size, least=0)
        check_offsets("levels of ties", self.level_offsets, len(categories), self.base.size)
        check_offsets("values of ties", self.starts, self.layout.n_cells, len(self.table))
        check_lengths("table of ties", (len(self.table), self.base.size), self.table)
        sizes = self.layout.join((np.diff(self.edge_offsets) + 1)[None], self.n_levels[None])[0]
        if not np.array_equal(np.diff(self.starts), sizes):
            raise ModelFileError("The model file's ties know other values than their cells have.")

    def check_for(self, layout: Layout, n_levels: Ints) -> None:
        """They read as many cells, and answer for the same levels."""
        check_lengths("numbers of ties", layout.number_cells.shape, self.layout.number_cells)
        if not np.array_equal(self.n_levels, n_levels):
            raise ModelFileError("The model file's ties know other levels than its columns have.")

    @property
    def n_levels(self) -> Ints:
        return np.diff(self.level_offsets)

    def values(self, scores: Scores) -> Ints:
        """Which value of the table every cell holds, (n, p); -1 where nothing usable was observed."""
        bins = np.full(scores.z.shape, -1, dtype=np.int64)
        for j, z in enumerate(scores.z.T):
            seen = np.isfinite(z)
            edges = self.edges[self.edge_offsets[j] : self.edge_offsets[j + 1]]
            bins[seen, j] = np.searchsorted(edges, z[seen])
        own = self.layout.join(bins, scores.codes.astype(np.int64))
        return np.ascontiguousarray(np.where(own >= 0, own + self.starts[:-1], -1))

    def levels(self, values: Ints, withheld: NDArray[np.bool_], row_of: Ints) -> Floats:
        """Probabilities of all levels side by side, each category's given the believed others."""
        sums = kernels.tie_sums(values, withheld, row_of, self.base, self.table)
        own = np.arange(self.base.size) - np.repeat(self.level_offsets[:-1], self.n_levels)
        return kernels.level_shares(sums, own, self.level_offsets, self.level_offsets, 0.0)


def fit_ties(scores: Scores, marginals: Marginals, layout: Layout, rng: np.random.Generator) -> Ties:
    """Learn from reference rows what goes with the levels of every category."""
    edges = [_edges(z[np.isfinite(z)], bool(few)) for z, few in zip(scores.z.T, marginals.discrete, strict=True)]
    sizes = layout.join(np.array([[one.size + 1 for one in edges]]), marginals.n_levels[None])[0].astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    edge_offsets = np.concatenate([[0], np.cumsum([one.size for one in edges])]).astype(np.int64)
    base, level_offsets = np.log(marginals.frequency), marginals.level_offsets
    flat = np.concatenate([np.empty(0), *edges])
    blank = Ties(layout, flat, edge_offsets, starts, level_offsets, base, np.zeros((int(starts[-1]), base.size)))
    values = blank.values(scores)
    chosen = rng.permutation(len(values))[:ROWS]
    masks = draw_masks(COPIES * len(chosen), layout.n_cells, rng)
    for j, cell in enumerate(layout.category_cells):
        of = slice(level_offsets[j], level_offsets[j + 1])
        blank.table[:, of] = _column(values, chosen, masks, int(cell), starts, layout.number_cells, base[of])
    return blank


def _edges(z: Floats, few: bool) -> Floats:
    """Between the bins of a number: halfway between values where there are few, else at quantiles."""
    if few:
        distinct = np.unique(z)
        return np.asarray((distinct[1:] + distinct[:-1]) / 2.0)
    return np.unique(np.quantile(z, np.arange(1, BINS) / BINS))


def lift(together: Floats, level: Floats, share: Floats) -> Floats:
    """Log of p(value given level) / p(value) from counts of both and of the level, shrunk towards 0; `share`: p(value).

    >>> bool(lift(np.array(0.0), np.array(0.0), np.array(0.5)) == 0.0)
    True
    """
    return np.asarray(np.log((together + SMOOTHING * share) / ((level + SMOOTHING) * share)))


def slips(size: int) -> Floats:
    """How bins of a number count for each other, (size, size): a small error moves some of what was seen to the next bin.

    >>> slips(3)
    array([[0.9, 0.1, 0. ],
           [0.1, 0.8, 0.1],
           [0. , 0.1, 0.9]])
    """
    step = np.eye(size, k=1) + np.eye(size, k=-1)
    return np.asarray((1.0 - SLIP) * np.eye(size) + 0.5 * SLIP * (step + np.diag(2.0 - step.sum(0))))


@dataclass(frozen=True)
class _Tie:
    """What a cell says about a category: counts `together` (values, levels), of which `own` (values,) a row of that value
    brings itself, and the `share` of the values."""

    together: Floats
    own: Floats
    share: Floats

    @property
    def lift(self) -> Floats:
        return lift(self.together, self.together.sum(0), self.share[:, None])

    @property
    def told(self) -> float:
        """Nats that the cell tells, all rows together."""
        return float(np.sum(self.together * self.lift))

    def said(self, value: Ints, level: Ints, hidden: NDArray[np.bool_]) -> Floats:
        """About all levels in some rows, (rows, levels); each row is left out of its own counts."""
        usable = (value >= 0) & ~hidden
        out = np.where(usable[:, None], self.lift[value], 0.0)
        rows = np.flatnonzero(usable)
        at, of = value[rows], level[rows]
        out[rows, of] = lift(self.together[at, of] - self.own[at], self.together.sum(0)[of] - 1.0, self.share[at])
        return np.asarray(out)


def _tie(value: Ints, level: Ints, size: int, levels: int, number: bool) -> _Tie:
    """Learn what one cell says from its values and the levels (rows,); negative where there is none."""
    both = (value >= 0) & (level >= 0)
    counts = np.bincount(value[both] * levels + level[both], minlength=size * levels).reshape(size, levels)
    between = slips(size) if number else np.eye(size)
    together = between @ counts
    share = (together.sum(1) + 0.5) / (together.sum() + 0.5 * size)
    return _Tie(together, np.diag(between), share)


def _column(
    values: Ints, chosen: Ints, masks: NDArray[np.bool_], cell: int, starts: Ints, numbers: Ints, base: Floats
) -> Floats:
    """What every value says about the levels of one category, (values, levels)."""
    out = np.zeros((int(starts[-1]), base.size))
    own = np.where(values >= 0, values - starts[:-1], -1)
    level, others = own[:, cell], [c for c in range(len(starts) - 1) if c != cell]
    ties = {c: _tie(own[:, c], level, starts[c + 1] - starts[c], base.size, c in numbers) for c in others}
    heard = sorted(sorted(others, key=lambda c: -ties[c].told)[:HEARD])
    rows = chosen[level[chosen] >= 0][: max(1, ENTRIES // ((1 + COPIES) * base.size * max(len(heard), 1)))]
    hidden = np.concatenate([np.zeros((len(rows), masks.shape[1]), dtype=bool), masks[: COPIES * len(rows)]])
    rows = np.tile(rows, 1 + COPIES)
    said = [ties[c].said(own[rows, c], level[rows], hidden[:, c]) for c in heard]
    if len(rows) and said:
        weights = fit_heard(np.stack(said, axis=2), level[rows], base)
        for c, weight in zip(heard, weights, strict=True):
            out[starts[c] : starts[c + 1]] = weight * ties[c].lift
    return out


def fit_heard(said: Floats, level: Ints, base: Floats) -> Floats:
    """Weights (cells,) of what cells say (rows, levels, cells) about the `level` that stood: Newton, ridge towards PRIOR."""
    rows, expected = np.arange(len(level)), np.full(said.shape[2], PRIOR)

    def loss(weights: Floats) -> float:
        odds = base + said @ weights
        top = odds.max(1)
        sums = np.log(np.exp(odds - top[:, None]).sum(1)) + top
        return float((sums - odds[rows, level]).sum() + 0.5 * PENALTY * ((weights - expected) ** 2).sum())

    weights, now = expected, loss(expected)
    for _ in range(ROUNDS):
        odds = base + said @ weights
        right = np.exp(odds - odds.max(1, keepdims=True))
        right /= right.sum(1, keepdims=True)
        mean = np.einsum("rl,rlc->rc", right, said)
        slope = (mean - said[rows, level]).sum(0) + PENALTY * (weights - expected)
        spread = (said * np.sqrt(right)[:, :, None]).reshape(-1, len(weights))
        curve = spread.T @ spread - mean.T @ mean + PENALTY * np.eye(len(weights))
        step = np.linalg.solve(curve, slope)
        tried = [weights - share * step for share in HALVES]
        losses = [loss(one) for one in tried]
        best = int(np.argmin(losses))
        if losses[best] >= now - TOLERANCE:
            break
        weights, now = tried[best], losses[best]
    return weights
