"""Local entropy of rows from nearest-neighbour graphs (GEM: geometric entropy minimisation).

=======  =====================================================================
(G-3)    `entropy_offset`: h = d log R - log((k - 1) / (M c_d))
(G-14)   `neighbour_sums`: R, the sum of the k nearest distances; `log_sums`: ell = log R
G2.2     `bipartite_sums`: the paper's single random split
G4.1     `distinct_rows`: copies must not vouch for each other
G5.5     `reference_rows`: a random subset to look for neighbours in
G5.7     distances over the columns that both rows have
=======  =====================================================================
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldseam.engines.local import map_row_blocks
from goldseam.margin import kernels

__all__ = [
    "Distinct",
    "EuclideanRows",
    "GramRows",
    "Neighbourhood",
    "bipartite_sums",
    "distinct_rows",
    "entropy_offset",
    "gram_squares",
    "log_sums",
    "neighbour_count",
    "neighbour_sums",
    "reference_rows",
    "squared_distance_sums",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_BLOCK = 2048
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Neighbourhood:
    """Reference rows, transposed to (columns, rows), and the group each of them belongs to (-1: none)."""

    columns: Floats
    groups: Ints

    @classmethod
    def of(cls, rows: Floats, groups: Ints | None = None) -> Neighbourhood:
        """The neighbourhood made of `rows`, shape (rows, columns)."""
        groups = np.full(len(rows), kernels.NO_ROW) if groups is None else groups
        return cls(np.ascontiguousarray(rows.T), groups)

    @property
    def size(self) -> int:
        """Number of reference rows."""
        return self.columns.shape[1]


@dataclass(frozen=True)
class Distinct:
    """`first`: one row number per distinct row, in an order that depends on content only; `inverse`: row -> distinct."""

    first: Ints
    inverse: Ints


def distinct_rows(rows: Floats, seed: int = 0) -> Distinct:
    """Find equal rows (NaN equals NaN, -0 equals 0). The order is that of a seeded hash of the content.

    >>> found = distinct_rows(np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]]))
    >>> len(found.first), bool(found.inverse[0] == found.inverse[2])
    (2, True)
    """
    bits = _canonical_bits(rows)
    first, inverse = _unique(_hash(bits, seed))
    if np.array_equal(bits[first][inverse], bits):
        return Distinct(first, inverse)
    whole = np.ascontiguousarray(bits).view(np.dtype((np.void, bits.dtype.itemsize * bits.shape[1])))
    return Distinct(*_unique(whole[:, 0]))


def _unique(keys: NDArray[Any]) -> tuple[Ints, Ints]:
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    return first.astype(np.int64), inverse.astype(np.int64).reshape(-1)


def _canonical_bits(rows: Floats) -> NDArray[np.uint64]:
    plain = np.ascontiguousarray(rows, dtype=np.float64) + 0.0
    plain[np.isnan(plain)] = np.nan
    return plain.view(np.uint64)


def _hash(bits: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    state = np.full(len(bits), np.uint64(seed) + _GOLDEN, dtype=np.uint64)
    for column in bits.T:
        state = (state ^ column) * _GOLDEN
        state ^= state >> np.uint64(29)
        state = state * np.uint64(0xBF58476D1CE4E5B9)
        state ^= state >> np.uint64(32)
    return state


def reference_rows(n_rows: int, max_reference: int) -> Ints:
    """The rows neighbours are looked for in: the first ones, as distinct rows come in random order."""
    return np.arange(min(n_rows, max_reference))


def neighbour_count(setting: str | int | float, n_rows: int, *, bipartite: bool = False) -> int:
    """k from the setting: `'auto'`, a number, or a fraction of the class; between 2 and n - 1.

    >>> neighbour_count("auto", 100), neighbour_count(0.1, 100), neighbour_count(7, 5)
    (25, 10, 4)
    """
    if isinstance(setting, str):
        wanted = 5 if bipartite else math.ceil(0.25 * n_rows)
    elif isinstance(setting, (int, np.integer)):
        wanted = int(setting)
    else:
        wanted = math.ceil(setting * n_rows)
    return max(2, min(wanted, n_rows - 1))


def neighbour_sums(
    rows: Floats,
    neighbourhood: Neighbourhood,
    k: int,
    *,
    own: Ints | None = None,
    groups: Ints | None = None,
    n_jobs: int | None = None,
) -> Floats:
    """R of (G-14) for each row; `own` is its position among the reference rows, -1 for none.

    A row whose neighbours are fewer than k gets infinity.

    >>> rows = np.array([[0.0], [1.0], [3.0]])
    >>> neighbour_sums(rows, Neighbourhood.of(rows), 2, own=np.arange(3))
    array([4., 3., 5.])
    """
    nobody = np.full(len(rows), kernels.NO_ROW)
    own, groups = nobody if own is None else own, nobody if groups is None else groups
    sums = np.full(len(rows), np.inf)
    if k > neighbourhood.size or len(rows) == 0:
        return sums
    gaps = bool(np.isnan(rows).any() or np.isnan(neighbourhood.columns).any())
    kernel = kernels.neighbour_sums_observed if gaps else kernels.neighbour_sums
    rows = np.ascontiguousarray(rows, dtype=np.float64)

    def work(block: slice) -> None:
        kernel(rows[block], neighbourhood.columns, k, own[block], groups[block], neighbourhood.groups, sums[block])

    map_row_blocks(work, len(rows), n_jobs=n_jobs, block=_BLOCK)
    return sums


def squared_distance_sums(
    squares: Floats,
    k: int,
    *,
    own: Ints | None = None,
    groups: Ints | None = None,
    reference_groups: Ints | None = None,
) -> Floats:
    """R from ready squared distances (rows, reference rows), as a precomputed kernel gives them (G5.9)."""
    nobody = np.full(len(squares), kernels.NO_ROW)
    sums = np.full(len(squares), np.inf)
    if k <= squares.shape[1]:
        kernels.smallest_sums(
            np.ascontiguousarray(squares),
            k,
            nobody if own is None else own,
            nobody if groups is None else groups,
            np.full(squares.shape[1], kernels.NO_ROW) if reference_groups is None else reference_groups,
            sums,
        )
    return sums


@dataclass(frozen=True)
class EuclideanRows:
    """Training rows with Euclidean distances, over shared columns where cells are missing (NaN)."""

    rows: Floats
    groups: Ints | None = None
    n_jobs: int | None = None

    def sums(self, which: Ints, reference: Ints, k: int) -> Floats:
        """R of rows `which` among rows `reference`, never counting a row itself or a row of its group."""
        groups = None if self.groups is None else self.groups[reference]
        neighbourhood = Neighbourhood.of(self.rows[reference], groups)
        mine = None if self.groups is None else self.groups[which]
        own = _positions(which, reference, len(self.rows))
        return neighbour_sums(self.rows[which], neighbourhood, k, own=own, groups=mine, n_jobs=self.n_jobs)


@dataclass(frozen=True)
class GramRows:
    """Training rows known by their kernel matrix: squared distance K_ii + K_jj - 2 K_ij (G5.9)."""

    gram: Floats
    groups: Ints | None = None

    def sums(self, which: Ints, reference: Ints, k: int) -> Floats:
        """As `EuclideanRows.sums`."""
        diagonal = np.diag(self.gram)
        squares = gram_squares(self.gram[np.ix_(which, reference)], diagonal[which], diagonal[reference])
        own = _positions(which, reference, len(self.gram))
        groups = (None, None) if self.groups is None else (self.groups[which], self.groups[reference])
        return squared_distance_sums(squares, k, own=own, groups=groups[0], reference_groups=groups[1])


def _positions(which: Ints, reference: Ints, n_rows: int) -> Ints:
    position = np.full(n_rows, kernels.NO_ROW)
    position[reference] = np.arange(len(reference))
    return position[which]


def gram_squares(gram: Floats, row_diagonal: Floats, reference_diagonal: Floats) -> Floats:
    """Squared distances in the space of a kernel; rounding below zero is cut off."""
    return np.maximum(row_diagonal[:, None] + reference_diagonal[None, :] - 2 * gram, 0.0)


def bipartite_sums(
    space: EuclideanRows | GramRows, which: Ints, k: int, rng: np.random.Generator
) -> tuple[Floats, Ints]:
    """R within one random split of the rows `which`, and M, the size of the other half, per row (G2.2)."""
    order = rng.permutation(len(which))
    half = len(which) // 2
    first, second = order[:half], order[half:]
    k = min(k, len(first), len(second))
    sums, sizes = np.empty(len(which)), np.empty(len(which), dtype=np.int64)
    for mine, other in ((first, second), (second, first)):
        sums[mine] = space.sums(which[mine], which[other], k)
        sizes[mine] = len(other)
    return sums, sizes


def log_sums(sums: Floats, floor: float | None = None) -> tuple[Floats, float]:
    """ell = log R, zero R raised to half the smallest positive one (1e-12 if none); returns ell and that floor."""
    if floor is None:
        positive = sums[(sums > 0) & np.isfinite(sums)]
        floor = float(positive.min()) / 2 if positive.size else 1e-12
    return np.log(np.where(sums > 0, sums, floor)), floor


def entropy_offset(k: int, size: Ints, dimension: float) -> Floats:
    """The constant of (G-3): h = d ell - offset, offset = log((k - 1) / (M c_d)), c_d the volume of the unit ball."""
    log_ball = 0.5 * dimension * math.log(math.pi) - math.lgamma(dimension / 2 + 1)
    return np.log(k - 1) - np.log(size) - log_ball
