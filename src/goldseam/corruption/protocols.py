"""The exact draws behind the reference figures: same generator, same order, same damage.

These work on plain arrays or blocks and take the generator as an argument. For everyday use the simulators of this
package are more convenient.

| protocol | function |
|---|---|
| S12.0 square corruption | `square_protocol` |
| S12.0 interval corruption, snapped for lattices (S12.5) | `interval_protocol` |
| F11.2 noise, flips, then gaps; the seed of a setting | `mixed_protocol`, `mixed_protocol_seed` |
| G7.5 injected failures | `failure_protocol` |
| P1 split, near-constant columns, five kinds of damage | `peer_split`, `nearly_constant`, `peer_protocol` |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from goldseam.corruption.cells import scatter_cells
from goldseam.corruption.damage import differs
from goldseam.corruption.filling import fill_cells, nearest, other_level
from goldseam.corruption.sheet import Matrix, Sheet, from_blocks, to_blocks
from goldseam.errors import ParameterError
from goldseam.schema import MISSING, Blocks, Schema

__all__ = [
    "FAILURE_KINDS",
    "PEER_KINDS",
    "FailureDamage",
    "MatrixDamage",
    "MixedDamage",
    "PeerDamage",
    "failure_protocol",
    "interval_protocol",
    "mixed_protocol",
    "mixed_protocol_seed",
    "nearly_constant",
    "peer_protocol",
    "peer_split",
    "square_protocol",
]

PEER_KINDS = ("interval", "scatter-marginal", "scatter-uniform", "scale", "noise")
FAILURE_KINDS = ("noise", "saturate", "dead", "label")
TRACE = 1e-9  # G7.5 does not say so, but its figures for digits need it: constant pixels get a trace of noise


@dataclass(frozen=True, eq=False)
class MatrixDamage:
    """Damaged rows (n, d); `overwritten` (n, d) cells that were drawn anew, `rows` (n,) rows that were chosen."""

    values: Matrix
    overwritten: NDArray[np.bool_]
    rows: NDArray[np.bool_]


def square_protocol(images: Matrix, rng: np.random.Generator, *, width: int = 16) -> MatrixDamage:
    """Squares of side 4 to 11 of uniform noise in half of the images (S12.0), row-major on a width x width grid."""
    if images.shape[1] != width * width:
        raise ParameterError(f"images must have {width} x {width} = {width * width} columns; got {images.shape[1]}.")
    chosen = np.asarray(rng.random(len(images)) < 0.5)
    new = images.copy().reshape(-1, width, width)
    cells = np.zeros(new.shape, dtype=bool)
    for i in np.flatnonzero(chosen):
        side = int(rng.integers(4, 12))
        row, column = (int(rng.integers(0, width + 1 - side)) for _ in range(2))
        place = (i, slice(row, row + side), slice(column, column + side))
        new[place] = rng.random(side * side).reshape(side, side)
        cells[place] = True
    return MatrixDamage(new.reshape(images.shape), cells.reshape(images.shape), chosen)


def interval_protocol(
    values: Matrix, low: Matrix, high: Matrix, rng: np.random.Generator, *, lattice: Matrix | None = None
) -> MatrixDamage:
    """Runs of 5 to 50 % of the columns in half of the rows, uniform between `low` and `high` (S12.0).

    `lattice` is a reference (r, d): the noise is moved to the nearest value that occurs in its column (S12.5, digits).
    """
    n_rows, n_columns = values.shape
    chosen = np.asarray(rng.random(n_rows) < 0.5)
    new, cells = values.copy(), np.zeros(values.shape, dtype=bool)
    for i in np.flatnonzero(chosen):
        length = max(1, round(n_columns * rng.uniform(0.05, 0.5)))
        start = int(rng.integers(0, n_columns - length + 1))
        run = slice(start, start + length)
        new[i, run] = rng.uniform(low[run], high[run])
        cells[i, run] = True
    if lattice is not None:
        for j in range(n_columns):
            hit = cells[:, j]
            new[hit, j] = nearest(np.unique(lattice[:, j]), new[hit, j])
    return MatrixDamage(new, cells, chosen)


@dataclass(frozen=True, eq=False)
class MixedDamage:
    """Noisy numbers (NaN where blank) and codes (MISSING where blank); `blank` (N, m + n), numbers first."""

    numbers: Matrix
    codes: NDArray[np.int32]
    blank: NDArray[np.bool_]


def mixed_protocol_seed(repetition: int, noise: float, gaps: float) -> int:
    """The seed of a setting (F11.2).

    >>> mixed_protocol_seed(2, 0.3, 0.5)
    2312
    """
    return 1000 * repetition + 10 * int(100 * noise) + int(10 * gaps) + 7


def mixed_protocol(
    numbers: Matrix,
    codes: NDArray[np.int32],
    n_levels: Sequence[int],
    *,
    noise: float,
    gaps: float,
    rng: np.random.Generator,
) -> MixedDamage:
    """Noise tau on standardised numbers, flips at rate tau, then round(rho (m + n)) gaps in every row (F11.2).

    `numbers` must be standardised with the training mean and standard deviation; `rng` is
    `default_rng(mixed_protocol_seed(repetition, noise, gaps))`.
    """
    n_rows, n_columns = len(numbers), numbers.shape[1] + codes.shape[1]
    noisy = numbers + noise * rng.standard_normal(numbers.shape)
    flip = rng.random(codes.shape) < noise
    shift = np.array([rng.integers(1, levels, n_rows) for levels in n_levels], dtype=np.int64).reshape(-1, n_rows).T
    flipped = np.where(flip, (codes + shift) % np.asarray(n_levels, dtype=np.int64), codes).astype(np.int32)
    order = rng.random((n_rows, n_columns)).argsort(axis=1).argsort(axis=1)
    blank = order < round(gaps * n_columns)
    m = numbers.shape[1]
    noisy[blank[:, :m]] = np.nan
    flipped[blank[:, m:]] = MISSING
    return MixedDamage(noisy, flipped, blank)


@dataclass(frozen=True, eq=False)
class FailureDamage:
    """Training rows and labels after injected failures; `failed` (n,), `group` (n,) the failed group or -1."""

    values: Matrix
    labels: NDArray[np.int64]
    failed: NDArray[np.bool_]
    group: NDArray[np.int64]


def failure_protocol(
    values: Matrix, labels: NDArray[np.int64], groups: Sequence[Sequence[int]], kind: str, rng: np.random.Generator
) -> FailureDamage:
    """Failures of one group of features per bad row, or flipped labels (-1, 1), in clean training rows (G7.5).

    'noise' adds 8 standard deviations, 'saturate' is the training maximum times U(1.5, 4), 'dead' is 0, each in 30 % of
    the rows; 'label' flips 20 % of the labels.
    """
    if kind not in FAILURE_KINDS:
        raise ParameterError(f"kind must be one of {', '.join(map(repr, FAILURE_KINDS))}; got {kind!r}.")
    failed = rng.random(len(values)) < (0.2 if kind == "label" else 0.3)
    sd, highest = values.std(axis=0) + TRACE, values.max(axis=0)
    new, group = values.copy(), np.full(len(values), -1)
    if kind == "label":
        return FailureDamage(new, np.where(failed, -labels, labels), failed, group)
    for i in np.flatnonzero(failed):
        group[i] = rng.integers(len(groups))
        place = np.asarray(groups[group[i]])
        if kind == "noise":
            new[i, place] += 8 * sd[place] * rng.standard_normal(len(place))
        else:
            new[i, place] = highest[place] * rng.uniform(1.5, 4) if kind == "saturate" else 0.0
    return FailureDamage(new, labels.copy(), failed, group)


@dataclass(frozen=True, eq=False)
class PeerDamage:
    """Damaged blocks; `cells` (n, modelled columns in table order) True where the value changed."""

    blocks: Blocks
    cells: NDArray[np.bool_]

    @property
    def rows(self) -> NDArray[np.bool_]:
        """True for rows with a changed cell."""
        return np.asarray(self.cells.any(axis=1))


def peer_split(n_rows: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Rows of reference (half, at most 1,000), calibration (a fifth, at most 500), incoming (the rest, at most 600).

    >>> [len(part) for part in peer_split(569, 0)]
    [284, 113, 172]
    """
    order = np.random.default_rng(seed).permutation(n_rows)
    first, second = n_rows // 2, n_rows // 2 + n_rows // 5
    return order[:first][:1000], order[first:second][:500], order[second:][:600]


def nearly_constant(reference: Blocks, schema: Schema, share: float = 0.99) -> NDArray[np.bool_]:
    """True for modelled columns (table order) whose commonest value fills at least that share of the rows."""
    values = from_blocks(reference, schema).values
    return np.array([np.unique(column, return_counts=True)[1].max() >= share * len(values) for column in values.T])


def peer_protocol(blocks: Blocks, schema: Schema, reference: Blocks, kind: str, rng: np.random.Generator) -> PeerDamage:
    """One of the five kinds of damage of P1 in about half of the rows; integers stay whole."""
    if kind not in PEER_KINDS:
        raise ParameterError(f"kind must be one of {', '.join(map(repr, PEER_KINDS))}; got {kind!r}.")
    sheet = from_blocks(blocks, schema, reference)
    rows = np.flatnonzero(rng.random(len(blocks)) < 0.5)
    new = _peer_values(sheet, rows, kind, rng)
    new = np.where(sheet.whole & ~np.isnan(new), np.rint(new), new)
    return PeerDamage(to_blocks(new, schema), differs(sheet.values, new))


def _peer_values(sheet: Sheet, rows: NDArray[np.int64], kind: str, rng: np.random.Generator) -> Matrix:
    if kind == "noise":
        return _peer_noise(sheet, rows, rng)
    if kind == "interval":
        return fill_cells(sheet, _runs(sheet.values.shape, rows, rng), "uniform", rng)
    fill = {"scatter-marginal": "marginal", "scatter-uniform": "uniform", "scale": "gross"}[kind]
    return fill_cells(sheet, scatter_cells(sheet.values.shape, rows, rng, 0.1), fill, rng)


def _runs(shape: tuple[int, ...], rows: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.bool_]:
    cells = np.zeros(shape, dtype=bool)
    for row in rows:
        length = max(1, round(shape[1] * rng.uniform(0.1, 0.4)))
        start = int(rng.integers(0, shape[1] - length + 1))
        cells[row, start : start + length] = True
    return cells


def _peer_noise(sheet: Sheet, rows: NDArray[np.int64], rng: np.random.Generator) -> Matrix:
    new = sheet.values.copy()
    for j in range(new.shape[1]):
        if sheet.is_number[j]:
            new[rows, j] += 0.5 * sheet.sd[j] * rng.standard_normal(rows.size)
        else:
            hit = rows[rng.random(rows.size) < 0.2]
            new[hit, j] = other_level(new[hit, j], int(sheet.n_levels[j]), rng)
    return new
