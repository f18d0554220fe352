"""The scikit-learn face of the mixed field."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from goldseam.engines.local import n_threads
from goldseam.errors import ConvergenceWarning, DataWarning, InputError, ModelFileError, ParameterError
from goldseam.field.checks import check_settings
from goldseam.field.dependence import dependent_pairs
from goldseam.field.inference import TOLERANCE
from goldseam.field.levels import NoiseLevels, given_levels
from goldseam.field.model import Denoised, Field, learn_field
from goldseam.field.posterior import FieldPosterior, Pooled, pool
from goldseam.field.potentials import Edge, Potentials, find_edges
from goldseam.model_checks import check_attributes
from goldseam.schema import Blocks, Schema
from goldseam.validation import Saved, fit_blocks, new_blocks, restored

__all__ = ["RandomMixedField"]


class RandomMixedField(Saved, OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """A pairwise field over numbers and categories that fills gaps, removes noise and flags gross errors.

    `fit` learns from clean rows. `transform` fills gaps and leaves observed cells as they are, bit for bit, unless
    noise was given (`noise`) or estimated from a table (`estimate_noise`), or gross errors are looked for. A row's
    result never depends on other rows.

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
    inference : {"lbp", "structured", "mean-field", "gibbs", "exact"}
        Belief propagation with the numbers integrated out; the published loop; naive; sampling; all combinations of the
        unknown categories (small fields).
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
    field_ : Field
        What was learnt, over encoded rows; `levels_` are the noise levels it acts on.
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
        check_settings(self)
        if sample_weight is not None and not np.any(np.asarray(sample_weight, dtype=float)):
            raise InputError(
                "sample_weight is zero for every row; at least one weight must be above 0. Hint: leave it out."
            )
        blocks, self.schema_ = fit_blocks(
            self, X, kinds=self.kinds, max_levels=self.max_levels, missing_values=self.missing_values,
            sample_weight=sample_weight
        )  # fmt: skip
        weights = np.ones(len(blocks)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
        self.levels_ = given_levels(
            self.schema_,
            self.noise if isinstance(self.noise, Mapping) else {},
            0.0 if isinstance(self.gross_error_rate, str) else float(self.gross_error_rate),
        )
        self.field_ = learn_field(
            blocks.take(weights > 0), self.schema_, self._rng(), weights=weights[weights > 0],
            penalty=None if self.penalty == "auto" else float(self.penalty), objective=self._word("objective"),
            marginals=self.marginals, inference=self._word("inference"), floors=self._estimates,
            gross_floor=self.gross_error_rate == "estimate", max_iter=self.max_iter, tol=self.tol,
        )  # fmt: skip
        self._warn_of_dependence(blocks)
        self._report_learning()
        return self

    def _rng(self) -> np.random.Generator:
        return np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))

    def _word(self, name: str) -> Any:
        return getattr(self, name)

    def _warn_of_dependence(self, blocks: Blocks) -> None:
        pairs = dependent_pairs(blocks, self.schema_)
        if pairs:
            names = ", ".join(f"{a!r} and {b!r}" for a, b in pairs[:5])
            more = f" and {len(pairs) - 5} more pairs" if len(pairs) > 5 else ""
            warnings.warn(
                f"Columns determine each other: {names}{more}. The field keeps them, but learns more slowly. "
                "Hint: leave one of each pair out.",
                DataWarning,
                stacklevel=3,
            )

    def _report_learning(self) -> None:
        if not self.converged_:
            warnings.warn(
                f"Learning the field ended after max_iter={self.max_iter} iterations; the last ones gained "
                f"{self.field_.last_change:.2g} each, tol is {self.tol:g}. Hint: raise max_iter or penalty.",
                ConvergenceWarning,
                stacklevel=3,
            )
        if self.verbose:
            print(
                f"field: c {self.penalty_:g}, F {self.objective_value_:.4f} after {self.n_iter_} iterations, "
                f"{len(self.edges_)} edges"
            )

    @property
    def _estimates(self) -> bool:
        return (isinstance(self.noise, str) and self.noise == "estimate") or self.gross_error_rate == "estimate"

    # ------------------------------------------------------------------------------------------------ what was learnt

    @property
    def potentials_(self) -> Potentials:
        return self.field_.potentials

    @property
    def edges_(self) -> tuple[Edge, ...]:
        numbers, categories = (tuple(c.name for c in part) for part in (self.schema_.numbers, self.schema_.categories))
        return find_edges(self.potentials_, numbers, categories)

    @property
    def noise_(self) -> dict[str, dict[str, Any]]:
        return self.levels_.described(self.schema_)

    @property
    def penalty_(self) -> float:
        return self.field_.penalty

    @property
    def objective_value_(self) -> float:
        return self.field_.objective_value

    @property
    def n_iter_(self) -> int:
        return self.field_.n_iter

    @property
    def converged_(self) -> bool:
        return self.field_.converged

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
        other = copy.copy(self)
        other.levels_ = self.field_.estimate_noise(
            new_blocks(self, X, self.schema_)[1],
            self.levels_,
            numbers_and_flips=isinstance(self.noise, str) and self.noise == "estimate",
            gross=self.gross_error_rate == "estimate",
        )
        return other

    # ------------------------------------------------------------------------------------------------ rows

    @property
    def _threads(self) -> int:
        return n_threads(self.n_jobs)

    def posterior(self, X: Any) -> FieldPosterior:
        """Means, variances, category probabilities, corruption probabilities and intervals of every cell."""
        check_is_fitted(self)
        return self._denoise(new_blocks(self, X, self.schema_)[1]).posterior

    def _denoise(self, blocks: Blocks) -> Denoised:
        found = self.field_.denoise(blocks, self.levels_, n_jobs=self._threads)
        moving = ~found.posterior.settled
        if moving.any():
            warnings.warn(
                f"Beliefs of {int(moving.sum())} of {len(blocks)} rows still moved when the sweeps ended, by up to "
                f"{found.posterior.change[moving].max():.2g}; settled means below {TOLERANCE:g}. "
                "Hint: inference='gibbs', or a larger penalty.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return found

    def evidence_trace(self, X: Any, n_steps: int = 6) -> NDArray[np.float64]:
        """Log evidence of every row after each sweep of its inference, (n_steps, rows), the prior's log Z left out (F5.4).

        Bethe for "lbp" and "structured", where it rises and flattens; a lower bound that never falls for "mean-field".
        Runs in plain NumPy: to look into an inference, not for large tables.
        """
        check_is_fitted(self)
        if n_steps < 1:
            raise ParameterError(f"n_steps must be at least 1; got {n_steps}. Hint: 6 is usual.")
        return self.field_.trace(new_blocks(self, X, self.schema_)[1], self.levels_, n_steps)

    def transform(self, X: Any, *, soft: bool = False) -> Any:
        """The restored table, of the same type as X; `soft=True` gives means and category probabilities as an array
        (F9.1)."""
        check_is_fitted(self)
        table, blocks = new_blocks(self, X, self.schema_)
        found = self._denoise(blocks)
        if soft:
            return found.posterior.features()
        changed = self._cells(found.changed_numbers, found.changed_codes)
        return restored(self, table, self.schema_, found.blocks, changed)

    def _cells(self, numbers: NDArray[np.bool_], codes: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Masks of numbers and of categories as one mask over the table's columns."""
        cells = np.zeros((len(numbers), len(self.schema_.columns)), dtype=bool)
        cells[:, list(self.schema_.number_positions)] = numbers
        cells[:, list(self.schema_.category_positions)] = codes
        return cells

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
        shape = (len(blocks), len(self.schema_.columns))
        hide = np.zeros(shape, dtype=bool) if withheld is None else np.asarray(withheld)
        if hide.shape != shape:
            raise InputError(
                f"withheld must have one entry per cell, shape {shape}; got {hide.shape}. "
                "Hint: one column per column of the table."
            )
        return self.predict_blocks(
            blocks, hide[:, list(self.schema_.number_positions)], hide[:, list(self.schema_.category_positions)]
        )

    def predict_blocks(self, blocks: Blocks, withheld_numbers: Any, withheld_codes: Any) -> FieldPosterior:
        """`predict_cells` for encoded rows."""
        return self.field_.predict_blocks(blocks, withheld_numbers, withheld_codes, n_jobs=self._threads)

    def sample(self, X: Any, n_draws: int = 5) -> list[Any]:
        """Restored tables drawn from the posterior (F9.3); observed cells without noise are the same in all of them."""
        check_is_fitted(self)
        if n_draws < 1:
            raise ParameterError(f"n_draws must be at least 1; got {n_draws}. Hint: 5 is usual for pooling.")
        table, blocks = new_blocks(self, X, self.schema_)
        return [
            restored(
                self, table, self.schema_, draw,
                self._cells(draw.numbers != blocks.numbers, draw.codes != blocks.codes),
            )
            for draw in self.field_.sample(blocks, self.levels_, n_draws, n_jobs=self._threads)
        ]  # fmt: skip

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
        return self.field_.score(blocks.take(np.flatnonzero(complete)))

    def check_state(self) -> None:
        """A model file whose parts do not belong together is refused."""
        if not hasattr(self, "field_"):
            return
        check_attributes(self, field_=Field, schema_=Schema, levels_=NoiseLevels, n_features_in_=int)
        if self.schema_.to_dict() != self.field_.schema.to_dict():
            raise ModelFileError("The model file's field was learnt from another table than its schema says.")
        self.levels_.check_for(self.schema_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags
