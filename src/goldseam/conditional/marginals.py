"""Each column by itself: normal scores, tails, and how a damaged value would be distributed (E8.1, E8.2).

| equation | function |
|---|---|
| z = Phi^-1(F(x)), F the reference's distribution with ties at mid-rank | `Marginals.score` |
| P(X > x) beyond the range: generalised Pareto, probability-weighted moments | `_tail` |
| slab = .6 uniform on the range + .3 marginal + .1 wide, against the marginal | `Marginals.score`, `Marginals.log_code_ratio` |

A number has a score `z`; a value that carries mass (a tie) has the bounds `low`, `high` of its score as well, so that
spikes and few-valued columns have probabilities, not densities. `ratio` is log(slab / marginal): what is known of a
cell before its neighbours are asked. Everything after works in scores and is free of units.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from goldseam.conditional import kernels
from goldseam.conditional.layout import check_lengths, check_offsets
from goldseam.schema import MISSING, UNSEEN, Blocks

__all__ = ["Marginals", "Scores", "fit_marginals"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
SLAB = (0.6, 0.3, 0.1)  # uniform, marginal, wide (E8.2)
FEW_LEVELS = 20  # P1: a column with at most so many values is damaged on its own levels
N_EDGES = 24
LEAST_IN_BIN = 8
SKEWED_SHAPE = 0.5
HEAVY = 0.25  # a tail of at least this shape may hold natural giants
GIANT, ABSURD = 2.5, 4.0  # ranges outside the range, and
OUTSTANDING = 3.0  # standard deviations outside it
IN_COMPANY = 0.25  # share of a row's other numbers outside their ranges from which a giant is not alone
UNSEEN_SLAB = 0.05  # share of damaged category cells that hold something the reference never had
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(7)


@dataclass(frozen=True)
class Scores:
    """Rows as the experts see them: numbers (n, m) as scores, codes (n, k), and how much likelier a
    damaged cell would hold each value than a clean one: `even` if drawn uniformly, `far` if drawn widely."""

    z: Floats
    low: Floats
    high: Floats
    even: Floats
    far: Floats
    codes: NDArray[np.int32]
    code_even: Floats

    def __len__(self) -> int:
        return len(self.z)

    def take(self, rows: NDArray[np.int64] | slice) -> Scores:
        return Scores(*(part[rows] for part in vars(self).values()))


@dataclass(frozen=True)
class Marginals:
    """The reference's distribution of every column; flat arrays with offsets, one stretch per column. `n_codes_seen`: how many
    codes speak against a level never seen, fewer than there are where such levels are to be expected."""

    knots: Floats
    below: Floats
    upto: Floats
    offsets: Ints
    edges: Floats
    density: Floats
    edge_offsets: Ints
    discrete: NDArray[np.bool_]
    resolution: Floats
    center: Floats
    spread: Floats
    n_seen: Floats
    tail_sigma: Floats
    tail_xi: Floats
    frequency: Floats
    level_offsets: Ints
    n_codes_seen: Floats

    def check_state(self) -> None:
        """Stretches lie within their arrays, one per column."""
        columns, categories = self.center.size, self.n_codes_seen.size
        check_offsets("knots", self.offsets, columns, self.knots.size)
        check_lengths("knots", self.knots.shape, self.below, self.upto)
        check_offsets("edges", self.edge_offsets, columns, self.edges.size, least=2)
        check_lengths("edges", self.edges.shape, self.density)
        check_offsets("levels", self.level_offsets, categories, self.frequency.size)
        check_lengths("columns", (columns,), self.discrete, self.resolution, self.spread, self.n_seen)
        check_lengths("tails", (columns, 2), self.tail_sigma, self.tail_xi)

    @property
    def n_levels(self) -> Ints:
        return np.diff(self.level_offsets)

    def score(self, blocks: Blocks) -> Scores:
        """Scores of some rows; NaN and negative codes stay what they are."""
        z, low, high, even, far = kernels.score_numbers(
            np.ascontiguousarray(blocks.numbers, dtype=np.float64), self.knots, self.below, self.upto, self._levels, self.offsets,
            *self._guides, self.edges, self.density, self.edge_offsets, self.discrete, self.resolution, self.center, self.spread,
            self.n_seen, self.tail_sigma, self.tail_xi,
        )  # fmt: skip
        return Scores(z, low, high, even, far, blocks.codes, self.code_ratio(blocks.codes))

    def scores_around(self, mean: Floats, sd: Floats) -> tuple[Floats, Floats]:
        """Normal scores of means, and half the way in scores from one standard deviation below to one above."""
        return kernels.scores_around(
            mean, sd, self.knots, self._levels, self.offsets, *self._guides, self.n_seen, self.tail_sigma, self.tail_xi
        )

    @cached_property
    def _levels(self) -> Floats:
        """P(X < knot) + P(X = knot) / 2."""
        return np.asarray(0.5 * (self.upto + self.below))

    @cached_property
    def _guides(self) -> tuple[Ints, Floats]:
        """Where to look for a value among the knots."""
        return kernels.guides(self.knots, self.offsets)

    def code_ratio(self, codes: NDArray[np.int32]) -> Floats:
        """Uniform over the levels / marginal, of category cells; one where nothing was observed."""
        out = np.ones(codes.shape)
        for j, levels in enumerate(self.n_levels):
            frequency = self.frequency[self.level_offsets[j] : self.level_offsets[j + 1]]
            out[:, j] = (1.0 / (levels * frequency))[np.maximum(codes[:, j], 0)]
            out[codes[:, j] == UNSEEN, j] = UNSEEN_SLAB * (self.n_codes_seen[j] + 1.0)
            out[codes[:, j] == MISSING, j] = 1.0
        return out

    def on_heavy_side(self, numbers: Floats) -> NDArray[np.bool_]:
        """Values on the side of their column's median where the tail may be heavy: natural giants live there (E5).

        The shape is known from the top tenth of the values, with a standard error of (1 + shape) / sqrt(their number).
        """
        known_from = np.clip(self.n_seen // 10, 5, 100)[:, None]
        heavy = self.tail_xi + (1.0 + self.tail_xi) / np.sqrt(known_from) >= HEAVY
        return np.where(numbers > self.center, heavy[:, 1], heavy[:, 0])

    def beyond_range(self, numbers: Floats) -> Floats:
        """How far outside the reference's range, in multiples of the reach from the median to that end; 0 inside."""
        top = self.knots[self.offsets[1:] - 1]
        bottom = self.knots[self.offsets[:-1]]
        above = (numbers - top) / np.maximum(top - self.center, 1e-12)
        below = (bottom - numbers) / np.maximum(self.center - bottom, 1e-12)
        return np.nan_to_num(np.maximum(np.maximum(above, below), 0.0))

    def absurd(self, numbers: Floats) -> NDArray[np.bool_]:
        """Numbers so far outside the reference's range that anything else is likelier, unless their neighbours expect them."""
        return self._outside(numbers, ABSURD)

    def _outside(self, numbers: Floats, ranges: float) -> NDArray[np.bool_]:
        top, bottom = self.knots[self.offsets[1:] - 1], self.knots[self.offsets[:-1]]
        outside = np.maximum(numbers - top, bottom - numbers)
        return np.asarray((self.beyond_range(numbers) >= ranges) & (outside >= OUTSTANDING * self.spread))

    def lone_giants(self, numbers: Floats) -> NDArray[np.bool_]:
        """Giants in rows that are not outside the range in many other columns too, where they would be natural."""
        giant = self._outside(numbers, GIANT)
        company = ((self.beyond_range(numbers) > 0.0) & ~giant).sum(1)
        others = np.isfinite(numbers).sum(1) - 1
        return np.asarray(giant & (company < IN_COMPANY * np.maximum(others, 1))[:, None])

    def unscore(self, mean: Floats, width: Floats) -> Floats:
        """Expected value in own units of numbers whose scores are normal (mean, width)."""
        weights = _WEIGHTS / _WEIGHTS.sum()
        return self._unscored(mean, width, _NODES, weights)

    def value_at(self, score: Floats) -> Floats:
        """The value of each column at a score: a tied value comes out as it is, to the bit."""
        at, sure = np.zeros(1), np.ones(1)
        nothing = np.zeros(score.shape)
        return self._unscored(score, nothing, at, sure)

    def _unscored(self, mean: Floats, width: Floats, nodes: Floats, weights: Floats) -> Floats:
        return kernels.unscore_numbers(
            mean, width, self.knots, self.below, self.upto, self._levels, self.offsets, nodes, weights
        )


def fit_marginals(blocks: Blocks, n_levels: Ints, once: Floats | float = 0.0) -> Marginals:
    """Learn the distribution of every column of the reference. `n_levels` are the levels of the category columns, `once` the
    shares of their cells whose level was seen no second time: so likely are further levels, and so little does one say."""
    columns = [_column(column[np.isfinite(column)]) for column in blocks.numbers.T]
    seen, spread = (np.array([getattr(c, name) for c in columns], dtype=np.float64) for name in ("seen", "spread"))
    tails = np.array([c.tails for c in columns], dtype=np.float64).reshape(len(columns), 2, 3)
    skew = np.array([c.skew for c in columns], dtype=np.float64).reshape(len(columns), 2)
    sigma, xi = _tails(tails, skew, seen, spread)
    frequency = [_frequency(blocks.codes[:, j], int(k)) for j, k in enumerate(n_levels)]
    n_codes = (blocks.codes >= 0).sum(0).astype(np.float64)
    return Marginals(
        knots=_flat([c.knots for c in columns]),
        below=_flat([c.below for c in columns]),
        upto=_flat([c.upto for c in columns]),
        offsets=_offsets([c.knots for c in columns]),
        edges=_flat([c.edges for c in columns]),
        density=_flat([c.slopes for c in columns]),
        edge_offsets=_offsets([c.edges for c in columns]),
        discrete=np.array([c.knots.size <= FEW_LEVELS for c in columns], dtype=bool),
        resolution=np.array([c.resolution for c in columns], dtype=np.float64),
        center=np.array([c.center for c in columns], dtype=np.float64),
        spread=spread,
        n_seen=seen,
        tail_sigma=sigma,
        tail_xi=xi,
        frequency=_flat(frequency),
        level_offsets=_offsets(frequency),
        n_codes_seen=n_codes / (1.0 + once * n_codes),
    )


@dataclass(frozen=True)
class _Column:
    """What one number column showed."""

    knots: Floats
    below: Floats
    upto: Floats
    edges: Floats
    slopes: Floats
    resolution: float
    center: float
    spread: float
    seen: int
    tails: tuple[tuple[float, float, float], tuple[float, float, float]]
    skew: tuple[float, float]


def _column(values: Floats) -> _Column:
    values = values if values.size else np.zeros(1)
    n = values.size
    knots, counts = np.unique(values, return_counts=True)
    upto = np.asarray((np.cumsum(counts) + 0.5) / (n + 1.0), dtype=np.float64)
    below = upto - counts / (n + 1.0)
    span = max(float(knots[-1] - knots[0]), 1e-12)
    gap = float(np.median(np.diff(knots))) if knots.size > 1 else 1.0
    center, spread = float(np.median(values)), float(values.std()) or 1.0
    edges, slopes = _slopes(knots, (below + upto) / 2.0, span)
    tails = (_tail(center - values, spread), _tail(values - center, spread))
    resolution = max(gap, span / (n + 1.0))
    return _Column(knots, below, upto, edges, slopes, resolution, center, spread, n, tails, _skew(knots, center))


def _slopes(knots: Floats, middle: Floats, span: float) -> tuple[Floats, Floats]:
    """dz/dx in stretches of equal width in z, each with enough values; the last slope is padding.

    The density phi(z) dz/dx then falls in the tails as a normal one does, which bins of equal counts would hide.
    """
    z = np.array([kernels.normal_quantile(u) for u in middle])
    if knots.size < 2 * LEAST_IN_BIN:
        chosen = np.array([0, knots.size - 1])
    else:
        grid = np.linspace(z[LEAST_IN_BIN], z[-LEAST_IN_BIN - 1], N_EDGES - 1)
        inner = np.searchsorted(z, grid[(grid > z[0]) & (grid < z[-1])])
        chosen = _spaced(np.concatenate([[0], inner, [knots.size - 1]]))
    if knots.size < 2:
        return np.array([knots[0], knots[0] + span]), np.full(2, 1.0 / span)
    edges = knots[chosen]
    slope = np.diff(z[chosen]) / np.diff(edges)
    return edges, np.append(slope, slope[-1])


def _spaced(positions: Ints) -> Ints:
    """Positions in rising order, at least LEAST_IN_BIN apart, keeping both ends."""
    kept = [int(positions[0])]
    for position in positions[1:-1]:
        if position - kept[-1] >= LEAST_IN_BIN and positions[-1] - position >= LEAST_IN_BIN:
            kept.append(int(position))
    return np.array([*kept, int(positions[-1])], dtype=np.int64)


def _tail(side: Floats, spread: float) -> tuple[float, float, float]:
    """Excess mean, largest excess and raw shape of the top tenth: probability-weighted moments."""
    ordered = np.sort(side)
    k = int(np.clip(side.size // 10, 5, 100))
    if ordered.size <= k:
        return spread, 0.0, 0.2
    excess = ordered[-k:] - ordered[-k - 1]
    b0 = float(excess.mean())
    b1 = float(np.mean(excess * (1.0 - (np.arange(k) + 0.65) / k)))
    if b0 <= 0.0 or b0 - 2.0 * b1 <= 1e-9 * b0:
        return max(b0, 0.05 * spread), float(excess[-1]), 0.2
    return b0, float(excess[-1]), 2.0 - b0 / (b0 - 2.0 * b1)


def _skew(knots: Floats, center: float) -> tuple[float, float]:
    """How much farther the column reaches down than up, and up than down, from its median."""
    down, up = center - knots[0], knots[-1] - center
    return float(down / max(up, 1e-12)), float(up / max(down, 1e-12))


def _tails(raw: Floats, skew: Floats, n_seen: Floats, spread: Floats) -> tuple[Floats, Floats]:
    """Scale at the largest value and shape of both tails of all columns; shapes shrink towards the table's mean.

    The long side of a skewed column has a shape of at least SKEWED_SHAPE (Hill index 2, E5): a few hundred rows do not
    show how far such a column can go.
    """
    if not len(raw):
        return np.empty((0, 2)), np.empty((0, 2))
    k = np.clip(n_seen // 10, 5, 100)[:, None]
    share = k / (k + 30.0)
    xi = np.clip(share * raw[:, :, 2] + (1.0 - share) * raw[:, :, 2].mean(), 0.0, 1.5)
    xi = np.maximum(xi, SKEWED_SHAPE * np.clip((skew - 2.0) / 3.0, 0.0, 1.0))
    sigma = raw[:, :, 0] * (1.0 - np.minimum(xi, 0.9)) + xi * raw[:, :, 1]
    return np.maximum(sigma, 0.02 * spread[:, None]), xi


def _frequency(codes: NDArray[np.int32], levels: int) -> Floats:
    counts = np.bincount(codes[codes >= 0], minlength=levels)[:levels] + 0.5
    return np.asarray(counts / counts.sum())


def _flat(parts: list[Floats]) -> Floats:
    return np.concatenate([np.asarray(part, dtype=np.float64) for part in parts]) if parts else np.empty(0)


def _offsets(parts: list[Floats]) -> Ints:
    return np.concatenate([[0], np.cumsum([len(part) for part in parts], dtype=np.int64)]).astype(np.int64)
