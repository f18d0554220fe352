"""Rows that are noisy throughout: found by how well the mixed field foresees their numbers, and denoised by it.

A damaged cell is odd by itself; noise is a little of it in every cell. The field predicts each number from the others
of its row under several stories, and every cell votes for or against each of them by its log density. Any cell may stray,
come from anywhere, with a probability r (`RATES`): often in damaged rows, hardly ever in others, so that a few bad cells cannot
make a row noisy. Cells that the evidence distrusts (`Damaged`) stray for certain.

===========================================================  ==========================================================
row is clean                                                 sum_k c_k exp V_k, c learnt on clean calibration rows
some cells are damaged, the rest is clean                    mean over r of exp sum log((1 - r) p_clean + r / range)
all numbers have noise of k standard deviations              V_k: the same with p_k, half of it at the least of the rates
===========================================================  ==========================================================

A survey fits the shares of the stories to the rows of a table. Noise is acted on where at least `LEAST_SHARE` of the rows
have it and it gains more log likelihood than samples of as many clean calibration rows do, and `LEAST_GAIN` per noisy row,
at levels above those that clean rows themselves seem to have; no column may decide it alone. The survey is the only step
that looks at a table as a whole; its result, `TableNoise`, is kept and shown. From there on everything is per row: a row whose
likeliest story is noise is denoised at its likeliest level. Flip rates of categories are read from the noisy rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.covariance import ledoit_wolf

from goldseam.conditional.layout import check_lengths
from goldseam.evidence.calibration import conformal_p_values
from goldseam.evidence.mixture import mixed
from goldseam.field import Field, gaussian_field, given_levels, learn_field
from goldseam.field.levels import NoiseLevels
from goldseam.field.noise import estimate_flips
from goldseam.model_checks import check_indices
from goldseam.schema import Blocks, Schema

__all__ = [
    "Cleaned",
    "Damaged",
    "Denoiser",
    "TableNoise",
    "damaged_rows",
    "fit_denoiser",
    "given_noise",
    "is_wide",
    "nil_noise",
    "surveyed_rows",
]

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

SIGMAS: Final = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8)  # sds of the column; the first is nil
FLIP: Final = 0.05  # assumed of categories while numbers vote
ROUNDS: Final = 100
SAMPLES: Final = 12
MOST_SURVEYED: Final = 1000  # rows of a table
MOST_VOTERS: Final = 2000  # calibration rows
MOST_VOTES: Final = 50_000  # cells of either: wide tables have fewer rows, but not below LEAST_ROWS
LEAST_ROWS: Final = 100
MOST_FITTED: Final = 4000
MOST_COLUMNS: Final = 100
MOST_NUMBERS: Final = 400  # of a table without categories: then the field is Gaussian
RATES: Final = (3e-4, 0.01, 0.03, 0.1, 0.3)  # shares of numbers that stray; the first in rows that are not damaged
EVEN: Final = (0.5, 0.5)  # shares of clean and of damaged rows by which noisy ones are ranked: a table may have none
GIVEN: Final = len(SIGMAS)
LEAST_CALIBRATION: Final = 20
LEAST_SURVEYED: Final = 20
LEAST_LIKELIHOOD: Final = 1e-200
LEAST_SHARE: Final = 0.15  # of the rows, that must be noisy
LEAST_SHARE_ASKED: Final = 1e-4  # of the rows, or of clean ones, that must have a level for a row to be asked about it
LEAST_GAIN: Final = 0.5  # in log likelihood per noisy row
LEAST_VOICES: Final = 3  # columns from which no single one may decide:
LEAST_LEFT: Final = 0.15  # of the gain that must be left without the one that speaks loudest
NATURAL_SHARE: Final = 0.05  # of clean rows that make a level natural
LEAST_FLIP: Final = 0.02  # above the floor
DAMAGED_FDR: Final = 0.5
ENOUGH: Final = 0.2  # of the rows that are not noisy, to tell how many are damaged besides;
FEW: Final = 2.0  # rows that may be odd by nature
MUCH: Final = 0.05
RARELY: Final = 0.1
MARGIN: Final = 0.3  # in probability, by which another level must be likelier
PENALTY: Final = 0.4
TOLERANCE: Final = 1e-5


@dataclass(frozen=True)
class TableNoise:
    """The noise of a table: `shares` of its rows that are clean, damaged, and that have noise of each level (none if it was
    given), standard deviations `sigma` in own units and flip rates; what the survey gained, and the floor it had to pass.
    Noisy rows with a p-value up to `damaged_p_value` are damaged besides, in a world whose noise is `louder` than the survey
    found. Clean rows have these p-values, sorted (`alarms`), when they are judged as rows of such a table."""

    shares: Floats
    sigma: Floats
    flip: Floats
    given: bool
    gain: float
    floor: float
    damaged_p_value: float = 0.0
    louder: float = 1.0
    alarms: Floats = field(default_factory=lambda: np.empty(0))

    @property
    def acts(self) -> bool:
        """Whether any observed cell may be changed."""
        return bool(self.sigma.any() or self.flip.any())

    def most_damaged(self, n_noisy: int, n_rows: int) -> int:
        """How many of the noisy rows of a table may be damaged besides. Damage does not choose rows by noise: noisy ones are
        damaged as often as the others, where there are others enough to tell; a few rows prove nothing."""
        quiet, damaged = self.shares[:2].sum(), self.shares[1] - FEW / n_rows
        return n_noisy if quiet < ENOUGH else int(np.clip(damaged / quiet, 0.0, 1.0) * n_noisy)

    def rank(self, p_values: Floats) -> Floats:
        """How rare rows with these p-values are among clean ones that are judged in the same ways."""
        return conformal_p_values(-p_values, -self.alarms[::-1]) if self.alarms.size else p_values

    def described(self, schema: Schema) -> dict[str, dict[str, Any]]:
        """Per modelled column: value, unit and status, and the share of rows that have it."""
        parts = [(schema.numbers, self.sigma, "sd"), (schema.categories, self.flip, "flip rate")]
        share = 1.0 if self.given or not self.shares.size else float(self.shares[2:].sum())
        found = "given" if self.given else "estimated"
        return {
            column.name: {
                "value": float(value) if value > 0.0 else None,
                "unit": unit,
                "status": found if value > 0.0 else "nil" if self.given else "below_floor",
                "share": share if value > 0.0 else None,
            }
            for columns, values, unit in parts
            for column, value in zip(columns, values, strict=True)
        }


@dataclass(frozen=True)
class Damaged:
    """Numbers of n rows that are damaged by the story that the rest of the row is `clean`, and that it is `noisy`."""

    clean: Flags
    noisy: Flags

    @classmethod
    def nothing(cls, blocks: Blocks) -> Damaged:
        """By no story any."""
        return cls(*(np.zeros(blocks.numbers.shape, dtype=bool) for _ in range(2)))


@dataclass(frozen=True)
class Cleaned:
    """Denoised rows: blocks, the intervals of all numbers (own units), the probabilities of all levels side by side."""

    blocks: Blocks
    low: Floats
    high: Floats
    levels: Floats


@dataclass(frozen=True)
class Denoiser:
    """A field, and how clean rows vote: shares of the levels among all calibration rows and among the first half of
    `clean_votes`; `natural` levels are those that clean rows seem to have; their flip rate is `flip_floor`."""

    field: Field
    clean: Floats
    half: Floats
    clean_votes: Floats
    natural: int
    flip_floor: float

    def check_state(self) -> None:
        """A share per level of noise, a vote per story and row; a file that has others is refused."""
        levels = len(SIGMAS)
        check_lengths("shares of noise", (levels,), self.clean, self.half)
        check_lengths("votes of clean rows", (max(len(self.clean_votes), 2), 1 + levels), self.clean_votes)
        check_indices("number of natural levels", np.array([self.natural]), 1, levels + 1)

    def votes(self, blocks: Blocks, damaged: Damaged, asked: Flags | None = None) -> Floats:
        """V (n, 1 + levels): what each row's numbers say for the story that some are damaged and the rest is clean, and for
        each level of noise, beside the story that all is clean; -inf for levels that are not `asked` for."""
        return _together(self.cell_votes(blocks, damaged, asked))

    def cell_votes(self, blocks: Blocks, damaged: Damaged, asked: Flags | None = None) -> Floats:
        """What every number says, (1 + levels, RATES, n, m): `votes` before they are added up."""
        sigmas, hidden = (SIGMAS[0], *SIGMAS), np.array([damaged.clean] + [damaged.noisy] * len(SIGMAS))
        hidden[1] = False
        plain = self._strayed(blocks, SIGMAS[0], hidden[1])[0]
        heard = np.ones(len(sigmas), dtype=bool) if asked is None else np.append(True, asked)
        out = np.full((len(sigmas), len(RATES), *plain.shape), -np.inf)
        for story in np.flatnonzero(heard):
            out[story] = self._strayed(blocks, sigmas[story], hidden[story]) - plain
        return out

    def _strayed(self, blocks: Blocks, sigma: float, hidden: Flags) -> Floats:
        """Log density of every number given the others at a level of noise, if at each of the RATES numbers stray: they come from
        anywhere, as those do that are hidden from the others."""
        found = np.where(hidden, -np.inf, self.field.densities(blocks, sigma, FLIP, hidden))
        anywhere = -np.log(self.field.atoms.range)
        strayed = [np.logaddexp(np.log1p(-rate) + found, np.log(rate) + anywhere) for rate in RATES]
        return np.where(np.isnan(blocks.numbers), 0.0, np.stack(strayed))  # a gap has no voice

    def survey(self, blocks: Blocks, damaged: Damaged) -> TableNoise:
        """The noise of a table, from some of its rows; nil where it does not pass the floor, or where rows are few."""
        if len(blocks) < LEAST_SURVEYED:
            return nil_noise(self.field.schema)
        cells = self.cell_votes(blocks, damaged)
        votes = _together(cells)
        shares, gain = self._shares(votes, self.clean)
        floor = self.floor(len(blocks)) if gain > 0.0 else 0.0
        noisy = shares[2:].sum()
        passes = noisy >= LEAST_SHARE and gain > floor + LEAST_GAIN * noisy * len(blocks)
        if not passes or not self._by_many(cells, shares, gain):
            return nil_noise(self.field.schema, gain, floor)
        shares = _independent(shares)
        level = self._level(shares)
        rows = self._levels(votes, shares) > 0
        flips = _flip_rates(self.field, blocks.take(rows), float(level))
        flipped = flips.size > 0 and flips.mean() > self.flip_floor + LEAST_FLIP
        return TableNoise(shares, level * self.field.scale, flips * flipped, False, gain, floor)

    def _by_many(self, cells: Floats, shares: Floats, gain: float) -> bool:
        """Whether a share of the gain is left without the column that says most for noise. Noise is in every column; one that
        drifted, or holds fractions where there were whole numbers, speaks for it alone: a hundredth is left then, but a third
        where noise was drawn."""
        if cells.shape[3] < LEAST_VOICES:
            return True
        level = self.natural + int(shares[2:].argmax())
        loudest = int(cells[1 + level, 0].sum(axis=0).argmax())
        return self._shares(_together(np.delete(cells, loudest, axis=3)), self.clean)[1] > LEAST_LEFT * gain

    def _level(self, shares: Floats) -> float:
        """The noise of noisy rows, in standard deviations of the columns."""
        return float(np.sqrt(shares[2:] @ np.square(SIGMAS[self.natural :]) / shares[2:].sum()))

    def understated(self, blocks: Blocks, damaged: Damaged, noise: TableNoise) -> float:
        """By what factor the survey of rows that were given this noise finds less of it; infinite where it finds none."""
        shares = self._shares(self.votes(blocks, damaged), self.clean)[0]
        return self._level(noise.shares) / self._level(shares) if shares[2:].any() else np.inf

    def floor(self, n_rows: int) -> float:
        """The largest gain that samples of so many clean rows show by chance."""
        rest = self.clean_votes[len(self.clean_votes) // 2 :]
        rng = np.random.default_rng(self.field.seed)
        drawn = (rest[rng.integers(len(rest), size=n_rows)] for _ in range(SAMPLES))
        return max(self._shares(votes, self.half)[1] for votes in drawn)

    def _parts(self, votes: Floats, clean: Floats) -> Floats:
        """Likelihood of the stories, up to a factor per row: clean, damaged, and each level that is not natural."""
        likelihood = _likelihoods(votes)
        parts = [likelihood[:, 1:] @ clean, likelihood[:, 0], likelihood[:, 1 + self.natural :]]
        return np.maximum(np.column_stack(parts), LEAST_LIKELIHOOD)

    def _shares(self, votes: Floats, clean: Floats) -> tuple[Floats, float]:
        """Shares of the stories in a table, and what those of noise gain in log likelihood."""
        parts = self._parts(votes, clean)
        shares, without = mixed(parts, rounds=ROUNDS), mixed(parts[:, :2], rounds=ROUNDS)
        return shares, float(np.log(parts @ shares / (parts[:, :2] @ without)).sum())

    def listen(self, blocks: Blocks, damaged: Damaged, noise: TableNoise) -> tuple[NDArray[np.int64], Floats]:
        """The level of every row, an index into SIGMAS, 0 for rows that are not noisy, GIVEN where noise was given; and how rare
        so noisy a row is among clean ones (1 where nobody asked)."""
        if noise.given or not noise.acts:
            return np.full(len(blocks), GIVEN if noise.acts else 0), np.ones(len(blocks))
        asked = np.append(np.zeros(self.natural), noise.shares[2:]) + self.clean > LEAST_SHARE_ASKED
        votes, shares = self.votes(blocks, damaged, asked), np.append(EVEN, noise.shares[2:])
        odds, clean = (self._odds(one, shares) for one in (votes, self.clean_votes))
        return self._levels(votes, noise.shares), conformal_p_values(odds, np.sort(clean))

    def _odds(self, votes: Floats, shares: Floats) -> Floats:
        """Log odds that rows are noisy."""
        parts = self._parts(votes, self.clean) * shares
        noisy, others = (np.maximum(part.sum(axis=1), LEAST_LIKELIHOOD) for part in (parts[:, 2:], parts[:, :2]))
        return np.asarray(np.log(noisy / others))

    def _levels(self, votes: Floats, shares: Floats) -> NDArray[np.int64]:
        level = self.natural + (self._parts(votes, self.clean) * shares)[:, 2:].argmax(axis=1)
        return np.where(self._odds(votes, shares) > 0.0, level, 0)

    def restore(
        self, blocks: Blocks, level: NDArray[np.int64], noise: TableNoise, hidden: Flags, coverage: float
    ) -> Cleaned:
        """Noisy rows as the field believes them at their levels; hidden numbers are treated as missing. A category changes
        where another level is likelier by `MARGIN`."""
        numbers, codes = blocks.numbers.copy(), blocks.codes.copy()
        low, high = np.full(numbers.shape, np.nan), np.full(numbers.shape, np.nan)
        shares = np.empty((len(blocks), sum(len(column.levels) for column in self.field.schema.categories)))
        for one in np.unique(level):
            rows = np.flatnonzero(level == one)
            levels = self._noise_levels(int(one), noise)
            done = self.field.denoise(blocks.take(rows), levels, hidden[rows])
            numbers[rows] = done.blocks.numbers
            believed = list(done.posterior.category_probabilities.values())
            for j, p in enumerate(believed):
                codes[rows, j] = _switched(codes[rows, j], p)
            shares[rows] = np.column_stack([np.empty((rows.size, 0)), *believed])
            low[rows], high[rows] = done.posterior.intervals(coverage)
        return Cleaned(Blocks(numbers, codes), low, high, shares)

    def add_noise(self, blocks: Blocks, noise: TableNoise, rng: np.random.Generator) -> Blocks:
        """The rows of a table with the noise of another."""
        sigma = np.tile(noise.sigma, (len(blocks), 1))
        if not noise.given:
            shares = noise.shares[2:] / noise.shares[2:].sum()
            level = rng.choice(np.array(SIGMAS[self.natural :]), size=len(blocks), p=shares)
            sigma = noise.louder * level[:, None] * self.field.scale
        numbers = blocks.numbers + sigma * rng.standard_normal(sigma.shape)
        sizes = np.array([len(column.levels) for column in self.field.schema.categories], dtype=np.int64)
        sizes = np.maximum(sizes, 2)
        flipped = (rng.random(blocks.codes.shape) < noise.flip) & (blocks.codes >= 0)
        others = (blocks.codes + 1 + rng.integers(sizes - 1, size=blocks.codes.shape)) % sizes
        return Blocks(numbers, np.where(flipped, others, blocks.codes).astype(np.int32))

    def _noise_levels(self, level: int, noise: TableNoise) -> NoiseLevels:
        sigma = noise.sigma if level == GIVEN else SIGMAS[level] * self.field.scale
        schema = self.field.schema
        names = [column.name for column in schema.numbers + schema.categories]
        return given_levels(schema, dict(zip(names, [*sigma, *noise.flip], strict=True)))


def fit_denoiser(reference: Blocks, calibration: Blocks, schema: Schema, rng: np.random.Generator) -> Denoiser | None:
    """Learn a field from reference rows and how clean rows vote from calibration rows.

    None where there is nothing to learn from: no numbers, too few calibration rows, or a very wide table. That of a wide
    table of numbers is Gaussian.
    """
    if len(schema.numbers) == 0 or len(calibration) < LEAST_CALIBRATION:
        return None
    if (wide := is_wide(schema)) and (schema.categories or len(schema.numbers) > MOST_NUMBERS):
        return None
    some = reference.take(np.sort(rng.permutation(len(reference))[:MOST_FITTED]))
    if wide:
        field = gaussian_field(some, schema, rng, lambda u: ledoit_wolf(u, assume_centered=True)[0])
    else:
        field = learn_field(some, schema, rng, penalty=PENALTY, tol=TOLERANCE)
    rows = calibration.take(rng.permutation(len(calibration))[: surveyed_rows(schema, MOST_VOTERS)])
    nobody = np.empty(0)
    votes = Denoiser(field, nobody, nobody, nobody, 1, 0.0).votes(rows, Damaged.nothing(rows))
    clean, half = (mixed(_likelihoods(part[:, 1:]), rounds=ROUNDS) for part in (votes, votes[: len(votes) // 2]))
    natural = 1 + int(np.flatnonzero(clean > NATURAL_SHARE).max())
    flips = _flip_rates(field, rows, SIGMAS[0])
    return Denoiser(field, clean, half, votes, natural, float(flips.mean()) if flips.size else 0.0)


def is_wide(schema: Schema) -> bool:
    """Whether a table has too many columns for a field that is learnt by pairs."""
    return len(schema.modelled_positions) > MOST_COLUMNS


def surveyed_rows(schema: Schema, most: int = MOST_SURVEYED) -> int:
    """How many rows are asked for their votes."""
    return min(most, max(LEAST_ROWS, MOST_VOTES // len(schema.modelled_positions)))


def given_noise(schema: Schema, given: Mapping[str, float], damaged_p_value: float = 0.0) -> TableNoise:
    """Noise that the user knows: standard deviations in own units and flip rates by column."""
    levels = given_levels(schema, given)
    return TableNoise(np.empty(0), levels.sigma, levels.flip, True, 0.0, 0.0, damaged_p_value)


def damaged_rows(p_values: Floats) -> float:
    """The p-value up to which noisy rows are damaged besides: of those below it at most a share of DAMAGED_FDR is expected to
    be noisy only (Storey). If they are less than MUCH of all rows, chance and heavy tails may make as many: then the share
    must be RARELY.

    >>> damaged_rows(np.array([0.001, 0.002, 0.003, 0.6, 0.8]))
    0.003
    >>> damaged_rows(np.linspace(0.01, 1.0, 100))
    0.0
    """
    rising = np.sort(p_values)
    rank = np.arange(1, rising.size + 1)
    noisy_only = min(1.0, (2.0 * float((rising > 0.5).sum()) + 1.0) / max(rising.size, 1)) * rising * rising.size
    for rate, least in ((DAMAGED_FDR, MUCH * rising.size), (RARELY, 0.0)):
        passed = np.flatnonzero(noisy_only <= rate * rank)
        if passed.size and rank[passed[-1]] - noisy_only[passed[-1]] >= least:
            return float(rising[passed[-1]])
    return 0.0


def _independent(shares: Floats) -> Floats:
    """Shares of the stories when damage does not choose rows by their noise: of damaged rows as many are noisy as of others.

    >>> _independent(np.array([0.1, 0.2, 0.3, 0.4])).round(3)
    array([0.1  , 0.025, 0.375, 0.5  ])
    """
    noisy = shares[2:].sum() / (shares[0] + shares[2:].sum())
    out = shares * np.where(np.arange(shares.size) < 2, 1.0, 1.0 + shares[1] * noisy / shares[2:].sum())
    out[1] *= 1.0 - noisy
    return out


def nil_noise(schema: Schema, gain: float = 0.0, floor: float = 0.0) -> TableNoise:
    """No noise: what a survey gained did not pass the floor."""
    return TableNoise(np.empty(0), np.zeros(len(schema.numbers)), np.zeros(len(schema.categories)), False, gain, floor)


def _together(cells: Floats) -> Floats:
    """The votes of all numbers of a row together, (n, 1 + levels). The numbers of damaged rows stray at any but the first of the
    RATES; of the other rows, half do at the first and half at any other."""
    rates = cells.sum(axis=3)
    often = np.logaddexp.reduce(rates[:, 1:], axis=1) - np.log(len(RATES) - 1)
    out = np.logaddexp(rates[:, 0], often) - np.log(2.0)
    return np.concatenate([often[:1], np.zeros_like(out[:1]), out[2:]]).T


def _likelihoods(votes: Floats) -> Floats:
    return np.asarray(np.exp(votes - votes.max(axis=1, keepdims=True)))


def _switched(codes: NDArray[np.int32], p: Floats) -> NDArray[np.int32]:
    """The likeliest levels where they are likelier by MARGIN than those observed, or nothing was."""
    old = np.take_along_axis(p, np.maximum(codes, 0)[:, None].astype(np.int64), axis=1)[:, 0]
    stays = (codes >= 0) & (p.max(axis=1) - old <= MARGIN)
    return np.where(stays, codes, p.argmax(axis=1)).astype(np.int32)


def _flip_rates(field: Field, blocks: Blocks, sigma: float) -> Floats:
    """Estimated flip rates of the categories, given noise of `sigma` sds in the numbers."""
    if not field.schema.categories or not len(blocks):
        return np.zeros(len(field.schema.categories))
    numbers, codes = field.evidence(blocks)
    spread = np.full(numbers.shape[1], sigma)
    return np.asarray(estimate_flips(field.potentials, field.frequencies, numbers, codes, spread))
