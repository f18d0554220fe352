"""The scikit-learn face of the mixed field."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from goldseam.engines.local import n_threads
from goldseam.errors import ConvergenceWarning, DataWarning, InputError, ParameterError
from goldseam.field import emission, noise
from goldseam.field.inference import Beliefs, Noise, cell_precision, infer, leave_one_out, sample
from goldseam.field.learning import fit_field, learn, mean_score
from goldseam.field.objective import Rows
from goldseam.field.posterior import AtomShape, FieldPosterior, Pooled, pool
from goldseam.field.potentials import Layout, Potentials, find_edges
from goldseam.schema import UNSEEN, Blocks
from goldseam.validation import fit_blocks, new_blocks, restored

__all__ = ["RandomMixedField"]

Array = NDArray[np.float64]
CHOICES = {
    "objective": ("block", "pseudo"),
    "marginals": ("empirical", "gaussian"),
    "inference": ("lbp", "structured", "mean-field", "gibbs"),
}
MAX_NOISE_ROWS = 10_000  # rows of a table that estimate its noise
WILD = 3.0  # evidence is cut this many training ranges beyond the training range: keeps 1e300 finite


class RandomMixedField(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """A pairwise field over numbers and categories that fills gaps, removes noise and flags gross errors.

    `fit` learns from clean rows. `transform` fills gaps and leaves observed cells as they are, bit for bit, unless
    noise
    was given (`noise`) or estimated from a table (`estimate_noise`), or gross errors are looked for. A row's result
    never
    depends on other rows.

    Parameters
    ----------
    penalty : "auto" or float
        The constant c of the group penalty; "auto" chooses it on held-out rows.
    objective : {"block", "pseudo"}
        Likelihood of all numbers together given the categories, or of each cell given the rest.
    noise : "none", "estimate" or mapping of column name to level
        A mapping gives standard deviations (in the column's units) and flip rates; columns not listed have none.
        "estimate" measures in `fit` what `estimate_noise` needs; until that is called the noise is nil.
    marginals : {"empirical", "gaussian"}
        Whether the training values shape the posterior of numbers.
    gross_error_rate : float or "estimate"
        Share of cells that are replaced by something else; 0 looks for none. "estimate" works like `noise="estimate"`.
    inference : {"lbp", "structured", "mean-field", "gibbs"}
        Belief propagation with the numbers integrated out; the published loop; naive; sampling.
    max_iter, tol : int, float
        Learning ends after `max_iter` iterations or when one gains less than `tol` relative to the objective.
    max_levels : int
        Most states of a category; rarer ones are merged.
    kinds, missing_values
        As in `goldseam.tables.learn_schema`.
    n_jobs : int, optional
        Threads over rows; -1 uses all cores. Results do not depend on it.
    random_state : int, RandomState or None
        Seeds the splits of `fit` and, together with each row's content, its draws.
    verbose : int
        1 prints what `fit` found.

    Attributes
    ----------
    potentials_ : Potentials
    edges_ : tuple of Edge
        Pairs of columns that depend on each other given the rest, with strength.
    noise_ : dict
        Per column: value (own units, or flip rate), source, floor and status (given, estimated, below_floor, nil).
    penalty_, n_iter_, converged_, objective_value_ : float, int, bool, float

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"size": [1.0, 1.1, 5.0, 5.2] * 10, "kind": ["small", "small", "large", "large"] * 10})
    >>> field = RandomMixedField(penalty=0.4, random_state=0).fit(table)
    >>> field.transform(pd.DataFrame({"size": [4.9, 1.0], "kind": [None, "small"]}))["kind"].tolist()
    ['large', 'small']
    """

    def __init__(
        self,
        penalty: str | float = "auto",
        *,
        objective: str = "block",
        noise: str | Mapping[str, float] = "none",
        marginals: str = "empirical",
        gross_error_rate: str | float = 0.0,
        inference: str = "lbp",
        max_iter: int = 500,
        tol: float = 1e-6,
        max_levels: int = 50,
        kinds: Mapping[str, str] | None = None,
        missing_values: Sequence[str] = (),
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.penalty = penalty
        self.objective = objective
        self.noise = noise
        self.marginals = marginals
        self.gross_error_rate = gross_error_rate
        self.inference = inference
        self.max_iter = max_iter
        self.tol = tol
        self.max_levels = max_levels
        self.kinds = kinds
        self.missing_values = missing_values
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # ------------------------------------------------------------------------------------------------ learning

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the field from clean (or trusted) rows; blanks are allowed."""
        self._check_settings()
        if sample_weight is not None and not np.any(np.asarray(sample_weight, dtype=float)):
            raise InputError(
                "sample_weight is zero for every row; at least one weight must be above 0. Hint: leave it out."
            )
        blocks, schema = fit_blocks(
            self, X, kinds=self.kinds, max_levels=self.max_levels, missing_values=self.missing_values,
            sample_weight=sample_weight
        )  # fmt: skip
        weights = np.ones(len(blocks)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
        blocks, weights = blocks.take(weights > 0), weights[weights > 0]
        self.schema_ = schema
        self.center_, self.scale_ = _standard(blocks.numbers, weights)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        self.seed_ = int(rng.integers(2**31 - 1))
        self._learn(blocks, weights, rng)
        self._set_given_noise()
        if self.verbose:
            print(
                f"field: c {self.penalty_:g}, F {self.objective_value_:.4f} after {self.n_iter_} iterations, "
                f"{len(self.edges_)} edges"
            )
        return self

    def _learn(self, blocks: Blocks, weights: Array, rng: np.random.Generator) -> None:
        layout = Layout.of([len(column.levels) for column in self.schema_.categories])
        u, codes = (blocks.numbers - self.center_) / self.scale_, blocks.codes
        like = Rows(np.zeros((0, u.shape[1])), codes[:0], weights / weights.sum(), layout)
        c = None if self.penalty == "auto" else float(self.penalty)
        kind: Any = self.objective
        learnt, rows = learn(u, codes, like, kind, c, rng, max_iter=self.max_iter, tol=self.tol)
        self.potentials_, self.penalty_, self.objective_value_ = learnt.field, learnt.c, learnt.value
        self.n_iter_, self.converged_ = learnt.n_iter, learnt.converged
        self.atoms_ = emission.Atoms.of(u, rows.weights)
        self.frequencies_ = rows.frequencies
        names = (
            tuple(column.name for column in self.schema_.numbers),
            tuple(column.name for column in self.schema_.categories),
        )
        self.edges_ = find_edges(learnt.field, *names)
        if not learnt.converged:
            warnings.warn(
                f"Learning the field ended after max_iter={self.max_iter} iterations; the last ones gained "
                f"{learnt.last_change:.2g} each, tol is {self.tol:g}. Hint: raise max_iter or penalty.",
                ConvergenceWarning,
                stacklevel=3,
            )
        self.floors_ = self._floors(rows, learnt.field, rng) if self._estimates else None

    @property
    def _estimates(self) -> bool:
        return (isinstance(self.noise, str) and self.noise == "estimate") or self.gross_error_rate == "estimate"

    def _floors(self, rows: Rows, field: Potentials, rng: np.random.Generator) -> dict[str, Any] | None:
        if self.marginals == "gaussian" or len(rows.numbers) < 8:
            return None
        kind: Any = self.objective

        def refit(train: Rows) -> Potentials:
            return fit_field(train, kind, self.penalty_, begin=field, max_iter=self.max_iter, tol=1e-5).field

        return asdict(noise.measure_floors(rows, refit, rng, gross=self.gross_error_rate == "estimate"))

    def _check_settings(self) -> None:
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                raise ParameterError(
                    f"{name} must be one of {', '.join(map(repr, choices))}; got {getattr(self, name)!r}. Hint: check the word."
                )
        if isinstance(self.noise, str) and self.noise not in ("none", "estimate"):
            raise ParameterError(
                f"noise must be 'none', 'estimate' or a mapping; got {self.noise!r}. Hint: check the word."
            )
        if self.penalty != "auto" and not (isinstance(self.penalty, (int, float)) and self.penalty > 0):
            raise ParameterError(
                f"penalty must be 'auto' or a number above 0; got {self.penalty!r}. Hint: .4 is usual."
            )
        rate = self.gross_error_rate
        if rate != "estimate" and not (isinstance(rate, (int, float)) and 0 <= rate < 0.5):
            raise ParameterError(
                f"gross_error_rate must be 'estimate' or lie in [0, .5); got {rate!r}. Hint: .05 is usual."
            )
        if not (isinstance(self.max_iter, (int, np.integer)) and self.max_iter > 0):
            raise ParameterError(f"max_iter must be a whole number above 0; got {self.max_iter!r}. Hint: 500 is usual.")

    def _set_given_noise(self) -> None:
        given = self.noise if isinstance(self.noise, Mapping) else {}
        names = [column.name for column in self.schema_.columns]
        for name, value in given.items():
            if name not in names:
                raise ParameterError(
                    f"noise names column {name!r}, which is not in the table: {', '.join(names)}. Hint: check it."
                )
            if not np.isfinite(value) or value < 0:
                raise ParameterError(f"noise of column {name!r} must be at least 0; got {value}. Hint: 0 means none.")
        sigma = np.array([float(given.get(c.name, 0.0)) for c in self.schema_.numbers]) / self.scale_
        flip = np.array([float(given.get(c.name, 0.0)) for c in self.schema_.categories])
        for column, rate in zip(self.schema_.categories, flip, strict=True):
            if rate >= 1:
                raise ParameterError(
                    f"noise of category {column.name!r} is a flip rate and must be below 1; got {rate:g}. Hint: .1"
                )
        self.sigma_, self.flip_ = sigma, flip
        self.gross_rate_ = 0.0 if isinstance(self.gross_error_rate, str) else float(self.gross_error_rate)
        self.noise_ = {
            name: {"value": value, "source": "user", "floor": None, "status": "given" if name in given else "nil"}
            for name, value in self._levels()
        }

    def _levels(self) -> list[tuple[str, float]]:
        """Noise of every modelled column in its own units."""
        numbers = [(c.name, float(v)) for c, v in zip(self.schema_.numbers, self.sigma_ * self.scale_, strict=True)]
        return numbers + [(c.name, float(v)) for c, v in zip(self.schema_.categories, self.flip_, strict=True)]

    # ------------------------------------------------------------------------------------------------ noise of a table

    def estimate_noise(self, X: Any) -> RandomMixedField:
        """A copy of this field with the noise levels of a table; below the floor they are refused and stay nil (F6).

        Needs `noise="estimate"` (or `gross_error_rate="estimate"`) at `fit`, which measures the floors. With
        `marginals="gaussian"` the published EM is used, which knows no floors.
        """
        check_is_fitted(self)
        if not self._estimates:
            raise ParameterError(
                "estimate_noise needs floors, which fit measures only with noise='estimate'; this field has "
                f"noise={self.noise!r}. Hint: RandomMixedField(noise='estimate').fit(reference)."
            )
        u, codes, _ = self._evidence(new_blocks(self, X, self.schema_)[1])
        if len(u) == 0:
            raise InputError("estimate_noise got a table of 0 rows; at least 1 is needed. Hint: check the filter.")
        rows = np.random.default_rng(self.seed_).permutation(len(u))[:MAX_NOISE_ROWS]
        other = copy.copy(self)
        if self.marginals == "gaussian":
            other._set_published_noise(u[rows], codes[rows])
        else:
            other._set_estimated_noise(u[rows], codes[rows])
        return other

    def _set_published_noise(self, u: Array, codes: NDArray[np.int32]) -> None:
        found = noise.published_em(self.potentials_, self.frequencies_, u, codes)
        self.sigma_, self.flip_ = found.sigma, found.flip
        self.noise_ = {
            name: {"value": value, "source": "em", "floor": None, "status": "estimated"}
            for name, value in self._levels()
        }

    def _set_estimated_noise(self, u: Array, codes: NDArray[np.int32]) -> None:
        if self.floors_ is None:
            raise InputError(
                "The reference had fewer than 8 rows, too few to measure noise floors. Hint: give noise as a mapping."
            )
        floors = noise.Floors(**self.floors_)
        gross = self.gross_error_rate == "estimate"
        found = noise.estimate(self.potentials_, self.atoms_, self.frequencies_, u, codes, gross=gross)
        accepted, sigma_passes, flip_passes, rate = noise.gate(found, floors)
        if isinstance(self.noise, str) and self.noise == "estimate":
            self.sigma_, self.flip_ = accepted.sigma, accepted.flip
        if gross:
            self.gross_rate_ = rate
        passes = [sigma_passes] * len(self.sigma_) + [flip_passes] * len(self.flip_)
        floor = [floors.pooled_sigma * scale for scale in self.scale_] + [floors.pooled_flip] * len(self.flip_)
        self.noise_ = {
            name: {
                "value": value if passed else None,
                "source": "table",
                "floor": float(level),
                "status": "estimated" if passed else "below_floor",
            }
            for (name, value), passed, level in zip(self._levels(), passes, floor, strict=True)
        }

    # ------------------------------------------------------------------------------------------------ rows

    def _evidence(self, blocks: Blocks) -> tuple[Array, NDArray[np.int32], NDArray[np.bool_]]:
        """Standardised numbers, cut far outside the training range, codes, and which numbers were cut."""
        with np.errstate(over="ignore"):
            u = (blocks.numbers - self.center_) / self.scale_
        first, last = self.atoms_.values[self.atoms_.starts[:-1]], self.atoms_.values[self.atoms_.starts[1:] - 1]
        cut = np.clip(u, first - WILD * self.atoms_.range, last + WILD * self.atoms_.range)
        return np.ascontiguousarray(cut), blocks.codes, (cut != u) & ~np.isnan(u)

    @property
    def _threads(self) -> int:
        return n_threads(self.n_jobs)

    def _infer(self, blocks: Blocks) -> tuple[FieldPosterior, Array, NDArray[np.bool_]]:
        """Posterior in the table's units, the numbers to write, and which numbers change."""
        u, codes, wild = self._evidence(blocks)
        levels, blank = Noise(self.sigma_, self.flip_), np.isnan(u)
        r = np.full(u.shape, np.nan)
        method: Any = self.inference
        if self.gross_rate_ > 0:
            found = emission.gross_errors(
                self.potentials_, self.atoms_, u, codes, levels, self.gross_rate_, n_jobs=self._threads
            )
            beliefs, r = found.beliefs, found.probability
            replaced = blank | (r > 0.5)
            mean, variance, shape = np.where(replaced, found.fill, u), np.where(replaced, found.variance, 0.0), None
        else:
            beliefs = infer(
                self.potentials_, u, codes, levels, method=method, frequencies=self.frequencies_, seed=self.seed_,
                n_jobs=self._threads,
            )  # fmt: skip
            mean, variance, shape = self._numbers(u, levels, beliefs)
            replaced = blank | (self.sigma_ > 0)
        keep = ~replaced | (wild & ~(r > 0.5))
        numbers = np.where(keep, blocks.numbers, self.center_ + self.scale_ * mean)
        posterior = self._posterior(
            numbers, self._own_variance(np.where(keep, 0.0, variance)), beliefs, codes, r, shape
        )
        return posterior, numbers, ~keep

    def _numbers(self, u: Array, levels: Noise, beliefs: Beliefs) -> tuple[Array, Array, AtomShape | None]:
        if self.marginals == "gaussian":
            return beliefs.mean, beliefs.variance, None
        precision = cell_precision(u, levels)
        found = emission.empirical(self.atoms_, u, precision, beliefs, n_jobs=self._threads)
        shape = AtomShape(
            self.atoms_,
            beliefs.cavity_mean,
            beliefs.cavity_variance,
            u,
            precision,
            found.genuine,
            self.center_,
            self.scale_,
        )
        return found.mean, found.variance, shape

    def _posterior(
        self,
        mean: Array,
        variance: Array,
        beliefs: Beliefs,
        codes: NDArray[np.int32],
        r: Array,
        shape: AtomShape | None,
    ) -> FieldPosterior:
        layout = self.potentials_.layout
        probabilities, corruption = {}, {c.name: r[:, s] for s, c in enumerate(self.schema_.numbers)}
        for j, column in enumerate(self.schema_.categories):
            Q = beliefs.Q[:, layout.block(j)]
            probabilities[column.name] = Q
            own = np.take_along_axis(Q, np.maximum(codes[:, [j]], 0), axis=1)[:, 0]
            corruption[column.name] = np.where(codes[:, j] >= 0, 1.0 - own, np.nan)
        names = tuple(c.name for c in self.schema_.numbers)
        return FieldPosterior(
            names, mean, variance, probabilities, corruption, beliefs.sweeps > 0, codes == UNSEEN, shape
        )

    def _own_variance(self, variance: Array) -> Array:
        """Variance in the table's units; infinite where the square of the units overflows."""
        with np.errstate(over="ignore"):
            return np.square(np.sqrt(variance) * self.scale_)

    def posterior(self, X: Any) -> FieldPosterior:
        """Means, variances, category probabilities, corruption probabilities and intervals of every cell."""
        check_is_fitted(self)
        return self._infer(new_blocks(self, X, self.schema_)[1])[0]

    def transform(self, X: Any, *, soft: bool = False) -> Any:
        """The restored table, of the same type as X; `soft=True` gives means and category probabilities as an array
        (F9.1)."""
        check_is_fitted(self)
        table, blocks = new_blocks(self, X, self.schema_)
        posterior, numbers, changed_numbers = self._infer(blocks)
        if soft:
            return posterior.features()
        codes = self._hard(blocks.codes, posterior)
        new = Blocks(numbers, codes)
        return restored(self, table, self.schema_, new, self._changed(blocks, changed_numbers, codes))

    def _hard(self, codes: NDArray[np.int32], posterior: FieldPosterior) -> NDArray[np.int32]:
        """argmax of the probabilities; an unseen level of a column that is believed stays (F1.3)."""
        new = codes.copy()
        for j, p in enumerate(posterior.category_probabilities.values()):
            believed = self.flip_[j] == 0 and self.gross_rate_ == 0
            stays = (codes[:, j] != -1) if believed else np.zeros(len(codes), dtype=bool)
            new[:, j] = np.where(stays, codes[:, j], p.argmax(axis=1))
        return new

    def _changed(self, blocks: Blocks, numbers: NDArray[np.bool_], codes: NDArray[np.int32]) -> NDArray[np.bool_]:
        changed = np.zeros((len(blocks), len(self.schema_.columns)), dtype=bool)
        changed[:, list(self.schema_.number_positions)] = numbers
        changed[:, list(self.schema_.category_positions)] = codes != blocks.codes
        return changed

    def soft_feature_names_out(self) -> NDArray[np.object_]:
        """Names of the columns of `transform(X, soft=True)`."""
        check_is_fitted(self)
        states = [f"{c.name}={level}" for c in self.schema_.categories for level in c.levels]
        return np.array([c.name for c in self.schema_.numbers] + states, dtype=object)

    def predict_cells(self, X: Any, withheld: ArrayLike | None = None) -> FieldPosterior:
        """Every cell given the *other* cells of its row that are believed (observed and not withheld).

        `withheld` is boolean with one column per column of X. The posterior's `corruption_probability` of a category is
        one minus the probability of what was observed; that of a number is undefined. This is the field as a source of
        evidence: a cell that its row cannot explain is suspect.
        """
        check_is_fitted(self)
        blocks = new_blocks(self, X, self.schema_)[1]
        hide = (
            np.zeros((len(blocks), len(self.schema_.columns)), dtype=bool) if withheld is None else np.asarray(withheld)
        )
        if hide.shape != (len(blocks), len(self.schema_.columns)):
            raise InputError(
                f"withheld must have one entry per cell, shape {(len(blocks), len(self.schema_.columns))}; got {hide.shape}. "
                "Hint: one column per column of the table."
            )
        return self.predict_blocks(
            blocks, hide[:, list(self.schema_.number_positions)], hide[:, list(self.schema_.category_positions)]
        )

    def predict_blocks(self, blocks: Blocks, withheld_numbers: Any, withheld_codes: Any) -> FieldPosterior:
        """`predict_cells` for encoded rows."""
        u, codes, _ = self._evidence(blocks)
        mean, variance, Q = leave_one_out(
            self.potentials_, u, codes, withheld_numbers, withheld_codes, n_jobs=self._threads
        )
        zeros = np.zeros(u.shape)
        found = Beliefs(Q, mean, variance, mean, variance, np.ones(len(u), dtype=np.int64))
        shape = None
        if self.marginals == "empirical":
            blank = np.full(u.shape, np.nan)
            moments = emission.empirical(self.atoms_, blank, zeros, found, n_jobs=self._threads)
            shape = AtomShape(self.atoms_, mean, variance, blank, zeros, np.ones(u.shape), self.center_, self.scale_)
            mean, variance = moments.mean, moments.variance
        nothing = np.full(u.shape, np.nan)
        own = self.center_ + self.scale_ * mean
        return self._posterior(own, self._own_variance(variance), found, codes, nothing, shape)

    def sample(self, X: Any, n_draws: int = 5) -> list[Any]:
        """Restored tables drawn from the posterior (F9.3); observed cells without noise are the same in all of them."""
        check_is_fitted(self)
        if n_draws < 1:
            raise ParameterError(f"n_draws must be at least 1; got {n_draws}. Hint: 5 is usual for pooling.")
        table, blocks = new_blocks(self, X, self.schema_)
        u, codes, _ = self._evidence(blocks)
        levels = Noise(self.sigma_, self.flip_)
        draws_u, draws_v = sample(self.potentials_, u, codes, levels, n_draws, seed=self.seed_, n_jobs=self._threads)
        if self.marginals == "empirical":
            draws_u = self._on_atoms(u, codes, levels, draws_u)
        open_numbers = np.isnan(u) | (self.sigma_ > 0)
        out = []
        for v_u, v in zip(draws_u, draws_v, strict=True):
            numbers = np.where(open_numbers, self.center_ + self.scale_ * v_u, blocks.numbers)
            new = np.where((blocks.codes != -1) & (self.flip_ == 0), blocks.codes, v).astype(np.int32)
            changed = self._changed(blocks, open_numbers, new)
            out.append(restored(self, table, self.schema_, Blocks(numbers, new), changed))
        return out

    def _on_atoms(self, u: Array, codes: NDArray[np.int32], levels: Noise, draws: Array) -> Array:
        """Draws moved to the training values at the same quantile of the cell's posterior: their dependence stays."""
        from scipy.special import ndtr

        beliefs, precision = infer(self.potentials_, u, codes, levels, n_jobs=self._threads), cell_precision(u, levels)
        out = draws.copy()
        for s in range(u.shape[1]):
            rows = np.flatnonzero(~np.isinf(precision[:, s]))
            b = [a[rows, s] for a in (beliefs.cavity_mean, beliefs.cavity_variance, u, precision)]
            rising = np.cumsum(emission.atom_weights(self.atoms_, s, *b), axis=1)
            values = self.atoms_.values[self.atoms_.column(s)]
            p = ndtr((draws[:, rows, s] - beliefs.mean[rows, s]) / np.sqrt(beliefs.variance[rows, s]))
            for k in range(len(draws)):
                out[k, rows, s] = values[np.minimum((rising < p[k][:, None]).sum(axis=1), len(values) - 1)]
        return out

    @staticmethod
    def pool(estimates: ArrayLike, variances: ArrayLike) -> Pooled:
        """(F-39): pool one estimate per drawn table by Rubin's rules."""
        return pool(estimates, variances)

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log likelihood of each complete row: numbers given categories, each category given the rest (F1.2)."""
        check_is_fitted(self)
        blocks = new_blocks(self, X, self.schema_)[1]
        complete = ~np.isnan(blocks.numbers).any(axis=1) & (blocks.codes >= 0).all(axis=1)
        if not complete.any():
            raise InputError(f"score needs complete rows; all {len(blocks)} have blanks. Hint: transform them first.")
        if not complete.all():
            warnings.warn(
                f"score leaves out {int((~complete).sum())} of {len(blocks)} rows with blanks or unseen categories.",
                DataWarning,
                stacklevel=2,
            )
        u, codes, _ = self._evidence(blocks.take(np.flatnonzero(complete)))
        return mean_score(self.potentials_, Rows.of(u, codes, self.potentials_.layout))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


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
