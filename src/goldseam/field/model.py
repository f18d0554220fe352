"""A learnt field over encoded rows: what the estimator and the restorer share.

`learn_field` makes a `Field` from reference blocks, `gaussian_field` one of many numbers in closed form. A `Field` holds
arrays and words only, so that a model file can keep it, and every method reads it without changing it, so that threads may
share it. All methods but `estimate_noise` work row by row: a row's answer depends on the field, the noise levels and that row.

| question | method |
|---|---|
| what should each cell be, given the *other* believed cells of its row? | `Field.predict_blocks`, `Field.given_others` |
| what was each cell, given all cells of its row and their noise? | `Field.denoise` |
| how noisy is this table? | `Field.estimate_noise` |
| clean rows that could be behind this one | `Field.sample` |
| how likely are these rows? | `Field.score` |
| how far did inference come, sweep by sweep? | `Field.trace` |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldseam.errors import InputError, ModelFileError
from goldseam.field import bounds, emission, noise
from goldseam.field.beliefs import Beliefs, Codes, Noise, cell_precision
from goldseam.field.inference import Method, infer, leave_one_out, sample
from goldseam.field.learning import fit_field, learn, mean_score
from goldseam.field.levels import NoiseLevels, nil_levels
from goldseam.field.objective import ObjectiveKind, Rows
from goldseam.field.posterior import AtomShape, FieldPosterior
from goldseam.field.potentials import Layout, Potentials
from goldseam.schema import UNSEEN, Blocks, Column, Kind, Schema

__all__ = ["Denoised", "Field", "gaussian_field", "learn_field"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
MAX_NOISE_ROWS = 10_000  # rows of a table that estimate its noise
MIN_FLOOR_ROWS = 8  # fewer reference rows cannot be split to measure floors
WILD = 3.0  # evidence is cut this many training ranges beyond the training range: keeps 1e300 finite
COARSE = 0.15  # standard deviations of the narrowest prediction: atoms as close as this are one to it


@dataclass(frozen=True)
class Denoised:
    """Rows as the field believes them: the posterior of every cell, the hard answer, and which cells it changes.

    `blocks` has the posterior mean of a number (own units) and the most probable level of a category where the cell is
    blank, withheld, noisy or a gross error; everywhere else the observed value, bit for bit.
    """

    posterior: FieldPosterior
    blocks: Blocks
    changed_numbers: Mask
    changed_codes: Mask


@dataclass(frozen=True)
class Field:
    """A learnt field: schema, standardisation, potentials, the training values of numbers, shares of levels, noise
    floors, and how it was learnt."""

    schema: Schema
    center: Array
    scale: Array
    potentials: Potentials
    atoms: emission.Atoms
    frequencies: Array
    floors: noise.Floors | None
    marginals: str
    inference: Method
    seed: int
    penalty: float
    objective_value: float
    n_iter: int
    converged: bool
    last_change: float

    def check_state(self) -> None:
        """A file whose parts belong to different tables is refused."""
        m = len(self.schema.numbers)
        sizes = [len(column.levels) for column in self.schema.categories]
        if self.potentials.layout.sizes.tolist() != sizes or self.potentials.n_numbers != m:
            raise ModelFileError(f"The model file's field must be over {m} numbers and categories of {sizes} levels.")
        if {len(self.center), len(self.scale), len(self.atoms.range)} != {m}:
            raise ModelFileError(f"The model file's field must standardise {m} numbers.")
        if self.frequencies.shape != (sum(sizes),):
            raise ModelFileError(
                f"The model file's field must have {sum(sizes)} shares of levels; got {self.frequencies.size}."
            )
        if self.floors is not None and (self.floors.sigma.shape, self.floors.flip.shape) != ((m,), (len(sizes),)):
            raise ModelFileError(f"The model file's noise floors must be of {m} numbers and {len(sizes)} categories.")

    # ------------------------------------------------------------------------------------------------ evidence

    def _evidence(self, blocks: Blocks) -> tuple[Array, Codes, Mask]:
        """Standardised numbers, cut far outside the training range, codes, and which numbers were cut."""
        with np.errstate(over="ignore"):
            u = (blocks.numbers - self.center) / self.scale
        first, last = self.atoms.values[self.atoms.starts[:-1]], self.atoms.values[self.atoms.starts[1:] - 1]
        cut = np.clip(u, first - WILD * self.atoms.range, last + WILD * self.atoms.range)
        return np.ascontiguousarray(cut), blocks.codes, (cut != u) & ~np.isnan(u)

    def _own_mean(self, mean: Array) -> Array:
        return np.asarray(self.center + self.scale * mean)

    def _own_variance(self, variance: Array) -> Array:
        """Variance in the table's units; infinite where the square of the units overflows."""
        with np.errstate(over="ignore"):
            return np.asarray(np.square(np.sqrt(variance) * self.scale))

    # ------------------------------------------------------------------------------------------------ cells

    @cached_property
    def _coarse_atoms(self) -> emission.Atoms:
        """Atoms as close as a fraction of the narrowest prediction there can be, that from all other cells, taken as one."""
        return self.atoms.merged(COARSE / np.sqrt(np.diag(self.potentials.B)))

    def predict_blocks(
        self, blocks: Blocks, withheld_numbers: Any, withheld_codes: Any, *, n_jobs: int = 1
    ) -> FieldPosterior:
        """Every cell given the *other* cells of its row that are believed (observed and not withheld)."""
        u, codes, _ = self._evidence(blocks)
        mean, variance, Q = leave_one_out(self.potentials, u, codes, withheld_numbers, withheld_codes, n_jobs=n_jobs)
        found = Beliefs(Q, mean, variance, mean, variance, np.ones(len(u), dtype=np.int64), np.zeros(len(u)))
        nothing, shape = np.full(u.shape, np.nan), None
        if self.marginals == "empirical":
            shape = self._atom_shape(found, nothing, np.zeros(u.shape), np.ones(u.shape))
        return self._posterior(*self._blank(mean, variance, n_jobs), found, codes, nothing, shape)

    def given_others(
        self, blocks: Blocks, withheld_numbers: Any, withheld_codes: Any, *, n_jobs: int = 1
    ) -> tuple[Array, Array, Array]:
        """What `predict_blocks` says in numbers alone: mean and variance of the numbers, probabilities of all levels."""
        u, codes, _ = self._evidence(blocks)
        mean, variance, Q = leave_one_out(self.potentials, u, codes, withheld_numbers, withheld_codes, n_jobs=n_jobs)
        return *self._blank(mean, variance, n_jobs), Q

    def _blank(self, mean: Array, variance: Array, n_jobs: int) -> tuple[Array, Array]:
        """Mean and variance in the table's units of numbers that are not observed, from the field's."""
        if self.marginals == "empirical":
            mean, variance = emission.blank(self._coarse_atoms, mean, variance, n_jobs=n_jobs)
        return self._own_mean(mean), self._own_variance(variance)

    def denoise(
        self,
        blocks: Blocks,
        levels: NoiseLevels | None = None,
        withheld_numbers: Any = None,
        withheld_codes: Any = None,
        *,
        n_jobs: int = 1,
    ) -> Denoised:
        """Every cell given *all* believed cells of its row, itself included, under the noise levels (None: nil).

        A withheld cell is treated as missing, whatever it holds. Masks are boolean, shaped like the blocks.
        """
        levels = nil_levels(self.schema) if levels is None else levels
        believed = _without(blocks, withheld_numbers, withheld_codes)
        u, codes, wild = self._evidence(believed)
        beliefs, mean, variance, r, shape = self._believe(u, codes, levels, n_jobs)
        replaced = np.isnan(u) | (r > 0.5 if levels.gross > 0 else levels.sigma > 0)
        keep = ~replaced | (wild & ~(r > 0.5))
        numbers = np.where(keep, believed.numbers, self._own_mean(mean))
        variance = self._own_variance(np.where(keep, 0.0, variance))
        posterior = self._posterior(numbers, variance, beliefs, codes, r, shape)
        hard = self._hard_codes(codes, beliefs.Q, levels)
        return Denoised(posterior, Blocks(numbers, hard), ~keep, hard != blocks.codes)

    def _believe(
        self, u: Array, codes: Codes, levels: NoiseLevels, n_jobs: int
    ) -> tuple[Beliefs, Array, Array, Array, AtomShape | None]:
        """Beliefs, mean and variance of numbers (standardised), corruption probability of numbers, their shape."""
        standard, undefined = levels.standardised(self.scale), np.full(u.shape, np.nan)
        if levels.gross > 0:
            found = emission.gross_errors(self.potentials, self.atoms, u, codes, standard, levels.gross, n_jobs=n_jobs)
            return found.beliefs, found.fill, found.variance, found.probability, None
        beliefs = infer(
            self.potentials, u, codes, standard, method=self.inference, frequencies=self.frequencies, seed=self.seed,
            n_jobs=n_jobs,
        )  # fmt: skip
        if self.marginals == "gaussian":
            return beliefs, beliefs.mean, beliefs.variance, undefined, None
        precision = cell_precision(u, standard)
        moments = emission.empirical(self.atoms, u, precision, beliefs, n_jobs=n_jobs)
        shape = self._atom_shape(beliefs, u, precision, moments.genuine)
        return beliefs, moments.mean, moments.variance, undefined, shape

    def _atom_shape(self, beliefs: Beliefs, u: Array, precision: Array, genuine: Array) -> AtomShape:
        return AtomShape(
            self.atoms, beliefs.cavity_mean, beliefs.cavity_variance, u, precision, genuine, self.center, self.scale
        )

    def _hard_codes(self, codes: Codes, Q: Array, levels: NoiseLevels) -> Codes:
        """argmax of the probabilities; an unseen level of a column that is believed stays (F1.3)."""
        new, layout = codes.copy(), self.potentials.layout
        for j in range(codes.shape[1]):
            best = Q[:, layout.block(j)].argmax(axis=1)
            believed = levels.flip[j] == 0 and levels.gross == 0
            new[:, j] = np.where((codes[:, j] != -1) & believed, codes[:, j], best)
        return new

    def _posterior(
        self, mean: Array, variance: Array, beliefs: Beliefs, codes: Codes, r: Array, shape: AtomShape | None
    ) -> FieldPosterior:
        layout = self.potentials.layout
        probabilities, corruption = {}, {c.name: r[:, s] for s, c in enumerate(self.schema.numbers)}
        for j, column in enumerate(self.schema.categories):
            Q = beliefs.Q[:, layout.block(j)]
            probabilities[column.name] = Q
            own = np.take_along_axis(Q, np.maximum(codes[:, [j]], 0), axis=1)[:, 0]
            corruption[column.name] = np.where(codes[:, j] >= 0, 1.0 - own, np.nan)
        ordered = {c.name: probabilities[c.name] @ steps for c, steps in self._ordered()}
        names = tuple(c.name for c in self.schema.numbers)
        settled, unseen = beliefs.sweeps > 0, codes == UNSEEN
        return FieldPosterior(
            names, mean, variance, probabilities, corruption, settled, beliefs.change, unseen, ordered, shape
        )

    def densities(
        self, blocks: Blocks, sigma: float, flip: float, withheld_numbers: Any = None, *, n_jobs: int = 1
    ) -> Array:
        """log p (N, m) of every number given the other believed cells of its row, if all numbers had noise of `sigma`
        standard deviations and all categories the flip rate `flip`; 0 where nothing is believed."""
        u, codes = self.evidence(blocks, withheld_numbers)
        levels = Noise(np.full(u.shape[1], sigma), np.full(codes.shape[1], flip))
        beliefs = infer(self.potentials, u, codes, levels, frequencies=self.frequencies, n_jobs=n_jobs)
        shape = emission.empirical(self.atoms, u, cell_precision(u, levels), beliefs, n_jobs=n_jobs)
        background = np.log(emission.EPSILON * self.atoms.background)
        log_p = np.logaddexp(np.log1p(-emission.EPSILON) + shape.log_density, background)
        return np.asarray(np.where(np.isnan(u), 0.0, log_p))

    def evidence(self, blocks: Blocks, withheld_numbers: Any = None) -> tuple[Array, Codes]:
        """Standardised numbers and codes of rows, blank where withheld."""
        return self._evidence(_without(blocks, withheld_numbers, None))[:2]

    def _ordered(self) -> list[tuple[Column, Array]]:
        """Categories whose levels have an order, with a number for each: its value, or its place where it is a word."""
        found = []
        for column in self.schema.categories:
            if column.kind in (Kind.INTEGER, Kind.ORDINAL) and not column.merged:
                plain = all(isinstance(level, (int, float)) for level in column.levels)
                found.append((column, np.array(column.levels if plain else range(len(column.levels)), dtype=float)))
        return found

    # ------------------------------------------------------------------------------------------------ tables

    def estimate_noise(
        self, blocks: Blocks, base: NoiseLevels | None = None, *, numbers_and_flips: bool = True, gross: bool = False
    ) -> NoiseLevels:
        """Noise levels of a table (F6): refused, and nil, where they do not pass the floors measured at `fit`.

        `base` are the levels that stay where nothing is estimated. Uses at most 10,000 rows, drawn by the field's seed.
        """
        base = nil_levels(self.schema) if base is None else base
        if len(blocks) == 0:
            raise InputError("estimate_noise got a table of 0 rows; at least 1 is needed. Hint: check the filter.")
        rows = np.random.default_rng(self.seed).permutation(len(blocks))[:MAX_NOISE_ROWS]
        u, codes, _ = self._evidence(blocks.take(rows))
        if self.marginals == "gaussian":
            return self._published_noise(u, codes, base)
        if self.floors is None:
            raise InputError(
                "This field has no noise floors: they were not asked for at fit, or the reference had fewer than "
                f"{MIN_FLOOR_ROWS} rows. Hint: give noise as a mapping."
            )
        found = noise.estimate(self.potentials, self.atoms, self.frequencies, u, codes, gross=gross)
        return self._gated(found, self.floors, base, numbers_and_flips, gross)

    def _published_noise(self, u: Array, codes: Codes, base: NoiseLevels) -> NoiseLevels:
        found = noise.published_em(self.potentials, self.frequencies, u, codes)
        n = len(base.status)
        return replace(
            base, sigma=found.sigma * self.scale, flip=found.flip, status=("estimated",) * n, source=("em",) * n
        )

    def _gated(
        self, found: noise.NoiseEstimate, floors: noise.Floors, base: NoiseLevels, noise_too: bool, gross: bool
    ) -> NoiseLevels:
        accepted, sigma_passes, flip_passes, rate = noise.gate(found, floors)
        out = base
        if noise_too:
            m, n = len(base.sigma), len(base.flip)
            words = {True: "estimated", False: "below_floor"}
            out = replace(
                out,
                sigma=accepted.sigma * self.scale,
                flip=accepted.flip,
                status=(words[sigma_passes],) * m + (words[flip_passes],) * n,
                source=("table",) * (m + n),
                floor=np.concatenate([floors.pooled_sigma * self.scale, np.full(n, floors.pooled_flip)]),
            )
        if gross:
            status = "estimated" if rate > 0 else "below_floor"
            out = replace(out, gross=rate, gross_status=status, gross_floor=floors.gross)
        return out

    # ------------------------------------------------------------------------------------------------ draws, scores

    def sample(
        self, blocks: Blocks, levels: NoiseLevels | None = None, n_draws: int = 5, *, n_jobs: int = 1
    ) -> list[Blocks]:
        """Clean rows drawn from their posterior (F9.3); observed cells without noise are the same in all of them.

        When gross errors are looked for, cells more likely wrong than right are drawn as if they were missing.
        """
        levels = nil_levels(self.schema) if levels is None else levels
        if levels.gross > 0:
            found = self.denoise(blocks, levels, n_jobs=n_jobs)
            blocks = _without(blocks, found.changed_numbers, found.changed_codes)
        u, codes, _ = self._evidence(blocks)
        standard = levels.standardised(self.scale)
        draws_u, draws_v = sample(self.potentials, u, codes, standard, n_draws, seed=self.seed, n_jobs=n_jobs)
        if self.marginals == "empirical":
            draws_u = self._on_atoms(u, codes, standard, draws_u, n_jobs)
        open_numbers = np.isnan(u) | (levels.sigma > 0)
        believed = (codes != -1) & (levels.flip == 0)
        return [
            Blocks(
                np.where(open_numbers, self._own_mean(one), blocks.numbers),
                np.where(believed, codes, v).astype(np.int32),
            )
            for one, v in zip(draws_u, draws_v, strict=True)
        ]

    def _on_atoms(self, u: Array, codes: Codes, levels: Noise, draws: Array, n_jobs: int) -> Array:
        """Draws moved to the training values at the same quantile of the cell's posterior: their dependence stays."""
        from scipy.special import ndtr

        beliefs, precision = infer(self.potentials, u, codes, levels, n_jobs=n_jobs), cell_precision(u, levels)
        out = draws.copy()
        for s in range(u.shape[1]):
            rows = np.flatnonzero(~np.isinf(precision[:, s]))
            b = [a[rows, s] for a in (beliefs.cavity_mean, beliefs.cavity_variance, u, precision)]
            rising = np.cumsum(emission.atom_weights(self.atoms, s, *b), axis=1)
            values = self.atoms.values[self.atoms.column(s)]
            p = ndtr((draws[:, rows, s] - beliefs.mean[rows, s]) / np.sqrt(beliefs.variance[rows, s]))
            for k in range(len(draws)):
                out[k, rows, s] = values[np.minimum((rising < p[k][:, None]).sum(axis=1), len(values) - 1)]
        return out

    def trace(self, blocks: Blocks, levels: NoiseLevels | None = None, steps: int = 6) -> Array:
        """Log evidence of every row after each sweep of its inference (steps, N): `bounds.trace`."""
        levels = nil_levels(self.schema) if levels is None else levels
        u, codes, _ = self._evidence(blocks)
        found = bounds.trace(
            self.potentials, u, codes, levels.standardised(self.scale), method=self.inference, steps=steps,
            frequencies=self.frequencies,
        )  # fmt: skip
        return found.values

    def score(self, blocks: Blocks) -> float:
        """Mean log likelihood of complete rows: numbers given categories, each category given the rest (F1.2)."""
        u, codes, _ = self._evidence(blocks)
        return mean_score(self.potentials, Rows.of(u, codes, self.potentials.layout))


def learn_field(
    blocks: Blocks,
    schema: Schema,
    rng: np.random.Generator,
    *,
    weights: Array | None = None,
    penalty: float | None = None,
    objective: ObjectiveKind = "block",
    marginals: str = "empirical",
    inference: Method = "lbp",
    floors: bool = False,
    gross_floor: bool = False,
    max_iter: int = 500,
    tol: float = 1e-6,
) -> Field:
    """Learn a field from reference rows, which may have blanks; `penalty` None chooses c on held-out rows (F4).

    `floors` measures what `estimate_noise` needs (eight refits), `gross_floor` that of gross errors too.
    """
    weights = np.ones(len(blocks)) if weights is None else weights
    center, scale = _standard(blocks.numbers, weights)
    seed = int(rng.integers(2**31 - 1))
    layout = Layout.of([len(column.levels) for column in schema.categories])
    u, codes = (blocks.numbers - center) / scale, blocks.codes
    like = Rows(np.zeros((0, u.shape[1])), codes[:0], weights / weights.sum(), layout)
    learnt, rows = learn(u, codes, like, objective, penalty, rng, max_iter=max_iter, tol=tol)

    def refit(train: Rows) -> Potentials:
        return fit_field(train, objective, learnt.c, begin=learnt.field, max_iter=max_iter, tol=1e-5).field

    measured = None
    if (floors or gross_floor) and marginals == "empirical" and len(rows.numbers) >= MIN_FLOOR_ROWS:
        measured = noise.measure_floors(rows, refit, rng, gross=gross_floor)
    return Field(
        schema, center, scale, learnt.field, emission.Atoms.of(u, rows.weights), rows.frequencies, measured, marginals,
        inference, seed, learnt.c, learnt.value, learnt.n_iter, learnt.converged, learnt.last_change,
    )  # fmt: skip


def gaussian_field(
    blocks: Blocks, schema: Schema, rng: np.random.Generator, covariance: Callable[[Array], Array]
) -> Field:
    """A field of numbers alone whose precision is the inverse of the `covariance` of standardised rows, which must be definite:
    for tables so wide that learning by pairs takes long. Blanks count as means."""
    n, m = blocks.numbers.shape
    center, scale = _standard(blocks.numbers, np.ones(n))
    u = (blocks.numbers - center) / scale
    precision: Array = np.asarray(np.linalg.inv(covariance(np.nan_to_num(u))), dtype=np.float64)
    none = np.empty(0)
    potentials = Potentials(
        precision, np.zeros(m), np.empty((m, 0)), none, np.empty((0, 0)), np.zeros(1, dtype=np.int64)
    )
    return Field(
        schema, center, scale, potentials, emission.Atoms.of(u, np.full(n, 1.0 / n)), none, None, "empirical", "lbp",
        int(rng.integers(2**31 - 1)), 0.0, float("nan"), 0, True, 0.0,
    )  # fmt: skip


def _without(blocks: Blocks, withheld_numbers: Any, withheld_codes: Any) -> Blocks:
    """The blocks with withheld cells blanked."""
    numbers, codes = blocks.numbers, blocks.codes
    if withheld_numbers is not None:
        numbers = np.where(withheld_numbers, np.nan, numbers)
    if withheld_codes is not None:
        codes = np.where(withheld_codes, np.int32(-1), codes)
    return Blocks(numbers, codes)


def _standard(numbers: Array, weights: Array) -> tuple[Array, Array]:
    """Weighted mean and sd (ddof 0) of the observed values; divided by the largest first, so that 1e300 does not
    overflow."""
    size = np.maximum(np.nanmax(np.abs(numbers), axis=0, initial=0.0), 1e-300)
    v = numbers / size
    seen = ~np.isnan(v)
    w = np.where(seen, weights[:, None], 0.0)
    w = w / np.maximum(w.sum(axis=0), 1e-300)
    mean = np.sum(w * np.nan_to_num(v), axis=0)
    sd = np.sqrt(np.sum(w * np.where(seen, v - mean, 0.0) ** 2, axis=0))
    return mean * size, np.where(sd > 0, sd * size, 1.0)
