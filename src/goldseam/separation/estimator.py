"""`CorruptionSeparator`: which cells of a row cannot be believed, at a promised rate of false alarms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, OutlierMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from goldseam.errors import InputError, ModelFileError, ParameterError
from goldseam.model_checks import check_attributes, check_indices
from goldseam.schema import Schema
from goldseam.separation import fitting
from goldseam.separation.encoding import category_columns, learn_scaling, to_blocks, to_values
from goldseam.separation.explain import Explanation, explain_row
from goldseam.separation.impute import Filled
from goldseam.separation.model import Evidence, Found, SeparationModel
from goldseam.separation.reference import Reference
from goldseam.separation.refine import learn_residuals
from goldseam.separation.regression import learn_regression
from goldseam.separation.segments import learn_evidence
from goldseam.separation.tree import AttributeTree
from goldseam.tables import Table
from goldseam.validation import Saved, fit_blocks, new_blocks, restored

__all__ = ["CorruptionSeparator", "SeparationResult"]

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]

BATCH = 2048  # rows whose intermediate results are held at a time


@dataclass(frozen=True, eq=False)
class SeparationResult:
    """What was found in a table, row by row.

    Attributes
    ----------
    table : the restored table, of the kind that came in
    flagged : bool (n_rows,), rows with cells that are not believed
    searched : bool (n_rows,), rows flagged before their outline was drawn
    refused : bool (n_rows,), rows with too little left to mend them: returned as they came
    cells : bool (n_rows, n_columns), cells not believed
    probability : float (n_rows, n_columns), chance of being overwritten; 0 in rows that are not flagged
    levels : float (n_rows,), entry level of the row (small is rare)
    p_values : float (n_rows,), conformal p-value of the row
    change : float (n_rows,), Euclidean length of the change to the row's numbers, in scaled units
    donors : int (n_rows, n_donors), positions in the reference the values came from, -1 for none
    """

    table: Any
    flagged: BoolArray
    searched: BoolArray
    refused: BoolArray
    cells: BoolArray
    probability: FloatArray
    levels: FloatArray
    p_values: FloatArray
    change: FloatArray
    donors: IntArray


class CorruptionSeparator(Saved, OneToOneFeatureMixin, TransformerMixin, OutlierMixin, BaseEstimator):
    """Find rows some part of which was overwritten, outline that part, and fill it from similar reference rows.

    The columns are arranged in a tree. At every node a row is compared with its nearest reference rows on the node's
    columns alone; a part that is rare together with its sub-parts is declared corrupt. How rare a row must be is
    calibrated on reference rows held out for that: *if the calibration rows and a new clean row are exchangeable, and
    the reference rows, scaling, tree and settings were fixed without looking at the calibration rows, the probability
    that the new clean row is flagged is at most* ``alarm_rate``. *The probability is over the draw of the calibration
    rows and the new row together.*

    Values that are plausible where they stand are not seen: cells redrawn from their column, patches of other rows,
    scattered single cells. See the maths page for what was measured.

    Parameters
    ----------
    tree : 'interval', 'clustered', grid shape or AttributeTree
        How columns belong together; must follow how damage strikes. A shape such as ``(16, 16)`` is a grid.
    leaf_size : int or None
        Columns of a leaf; None is 4, below 32 columns 2.
    ranked_fraction : float or several
        Share α of the squared deviations, smallest first, that a distance keeps. Below 1 only for continuous data. With
        several, e.g. ``(1.0, 0.5)``, the rarest score of a node counts: more damage is seen, at about ten times the cost.
    n_neighbors : int
        Rank K of the neighbour whose distance is a row's radius.
    node_alarm_rate : float or None
        Level of every single node; None derives it from `alarm_rate`.
    alarm_rate : float
        Share of clean rows that may be flagged.
    calibration : 'conformal' or 'recursion'
        Held-out rows, or the label model of the paper (safe but wasteful).
    rule : 'confirmed' or 'paper'
        Search rule; the paper's stops at a rare node with common children and takes single leaves at their word.
    scores : 'continuous', 'counted' or 'paper'
        Form of the node p-values.
    refine : bool, 'segments' or 'residuals'
        How the outline is drawn: True is 'segments', a posterior over all boxes or runs; 'residuals' thresholds
        smoothed residuals; False takes the declared nodes as they are.
    imputer : 'context-regression', 'context-mean', 'context-medoid', 'sibling-map', 'sibling-nearest' or a fitted imputer
        The regression moves the mean of the donors by what the believed cells say, as far as that helped on reference
        rows; the medoid copies a real combination. The sibling imputers are the paper's and need `refine=False`. A
        fitted imputer must have been fitted on the modelled columns, all numbers.
    n_donors : int
        Reference rows that a cell is filled from.
    scaling : 'auto', 'robust', 'range', 'quantiles', 'common' or 'none'
        'auto' is one common range on grids, robust (by the IQR) where there are categories, else by the 1 % and 99 %
        quantiles.
    kinds : mapping of column name to kind, optional
        Overrules the inferred kinds of columns.
    missing_values : sequence of str
        Strings that mean "not observed".
    max_reference : int
        Reference rows kept, at random.
    n_jobs : int or None
        Threads; results do not depend on it.
    random_state : int, RandomState or None
        Which rows are held out and which are kept.

    Attributes
    ----------
    model_ : SeparationModel
        Everything a decision needs, on plain arrays.
    schema_ : Schema
    calibration_ : Calibration
        Levels of the calibration rows, and the share of them that is flagged.
    offset_ : float
        Rows whose entry level is below are flagged.
    reference_rows_, calibration_rows_ : int arrays
        Rows of X that were used for each.

    Notes
    -----
    Paper mode is ``rule='paper', scores='paper', refine=False, imputer='sibling-map', node_alarm_rate=0.002``.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> waves = lambda n: np.sin(np.arange(32) / 4 + rng.uniform(0, 6, (n, 1))) + 0.05 * rng.normal(size=(n, 32))
    >>> rows = waves(2)
    >>> rows[1, 8:16] = rng.uniform(-1, 1, 8)
    >>> separator = CorruptionSeparator().fit(waves(400))
    >>> separator.predict(rows)
    array([ 1, -1])
    >>> np.flatnonzero(separator.separate(rows)[1]).tolist()
    [8, 9, 10, 11, 12, 13, 14, 15]
    """

    def __init__(
        self,
        tree: str | tuple[int, ...] | AttributeTree = "interval",
        *,
        leaf_size: int | None = None,
        ranked_fraction: float | Sequence[float] = 1.0,
        n_neighbors: int = 5,
        node_alarm_rate: float | None = None,
        alarm_rate: float = 0.05,
        calibration: str = "conformal",
        rule: str = "confirmed",
        scores: str = "continuous",
        refine: bool | str = True,
        imputer: Any = "context-regression",
        n_donors: int = 10,
        scaling: str = "auto",
        kinds: Mapping[str, str] | None = None,
        missing_values: Sequence[str] = (),
        max_reference: int = 20_000,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ) -> None:
        self.tree = tree
        self.leaf_size = leaf_size
        self.ranked_fraction = ranked_fraction
        self.n_neighbors = n_neighbors
        self.node_alarm_rate = node_alarm_rate
        self.alarm_rate = alarm_rate
        self.calibration = calibration
        self.rule = rule
        self.scores = scores
        self.refine = refine
        self.imputer = imputer
        self.n_donors = n_donors
        self.scaling = scaling
        self.kinds = kinds
        self.missing_values = missing_values
        self.max_reference = max_reference
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, trust: ArrayLike | None = None, clean_rows: Any = None) -> Self:
        """Learn from rows believed clean.

        Parameters
        ----------
        X : table (n_rows, n_columns)
        y : ignored
        trust : array (n_rows,), optional
            Probability that a row is nominal. Rows below 0.5 are left out; the others count by their trust.
        clean_rows : table, optional
            Calibration rows; without it a part of X is held out.
        """
        fitting.check_settings(self)
        blocks, schema = fit_blocks(
            self,
            X,
            kinds=self.kinds,
            small_integers=0,
            constant="number",
            missing_values=self.missing_values,
        )
        values = to_values(blocks, schema)
        _check_gaps(values, schema)
        weights = _checked_trust(trust, len(values))
        return self._fit_values(values, schema, weights, clean_rows)

    def _fit_values(self, values: FloatArray, schema: Schema, trust: FloatArray | None, clean_rows: Any) -> Self:
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        held_out = self.node_alarm_rate is None and clean_rows is None
        usable = np.ones(len(values), dtype=bool) if trust is None else trust >= 0.5
        rows, held = fitting.split_rows(len(values), self.max_reference, held_out, usable, rng)
        if self.n_neighbors >= len(rows):
            raise ParameterError(
                f"n_neighbors must be below the number of reference rows ({len(rows)}, n_samples={len(values)}), "
                f"got {self.n_neighbors}."
            )
        self.schema_ = schema
        names = tuple(schema.names[i] for i in schema.modelled_positions)
        reference = self._reference(values[rows], names)
        model = SeparationModel.learn(
            reference,
            n_neighbors=self.n_neighbors,
            rule=self.rule,
            form=self.scores,
            trust=None if trust is None else trust[rows],
            more_fractions=tuple(map(float, fitting.ranked_fractions(self)[1:])),
            n_jobs=self.n_jobs,
        )
        if self.imputer == "context-regression":
            model = replace(model, regression=learn_regression(reference, self.n_donors))
        clean = values[held] if clean_rows is None else self._values(clean_rows)[1]
        model = self._with_outline(model, clean)
        weights = None if trust is None or clean_rows is not None else trust[held]
        self.model_, self.calibration_ = fitting.calibrated(model, self, clean, weights)
        self.offset_ = self.model_.limit
        self.reference_rows_, self.calibration_rows_ = rows, held
        return self

    def _reference(self, values: FloatArray, names: tuple[str, ...]) -> Reference:
        blank = np.flatnonzero(np.isnan(values).all(axis=0))
        if len(blank):
            raise InputError(
                f"Column {names[blank[0]]!r} is missing in all {len(values)} reference rows; at least 1 observed cell is "
                "needed. Hint: drop the column."
            )
        tree = fitting.choose_tree(self.tree, names, values, self.leaf_size)
        is_category = category_columns(self.schema_)
        method = self.scaling
        if method == "auto":
            method = "robust" if is_category.any() else "common" if tree.shape is not None else "quantiles"
        center, scale = learn_scaling(values, is_category, method)
        self._check_fillable(tree, is_category)
        return Reference(values, tree, center, scale, is_category, float(fitting.ranked_fractions(self)[0]))

    def _check_fillable(self, tree: AttributeTree, is_category: BoolArray) -> None:
        if isinstance(self.imputer, str):
            if self.imputer.startswith("sibling") and not tree.is_binary:
                raise ParameterError(f"imputer={self.imputer!r} needs a binary tree. Hint: use a context imputer.")
        elif is_category.any():
            raise ParameterError("A fitted imputer can only be used when all modelled columns are numbers.")

    def _with_outline(self, model: SeparationModel, clean: FloatArray) -> SeparationModel:
        if self.refine is True or self.refine == "segments":
            return replace(model, segments=learn_evidence(model.reference))
        if self.refine == "residuals":
            reference = model.reference
            if len(clean):
                return replace(model, residuals=learn_residuals(reference, clean))
            return replace(model, residuals=learn_residuals(reference, reference.values, np.arange(len(reference))))
        return model

    def _values(self, X: Any) -> tuple[Table, FloatArray]:
        table, blocks = new_blocks(self, X, self.schema_)
        values = to_values(blocks, self.schema_)
        _check_gaps(values, self.schema_)
        return table, values

    def _find(self, values: FloatArray, members: IntArray | None = None) -> Found:
        return self.model_.find(values, members=members, n_jobs=self.n_jobs)

    def _fill(self, values: FloatArray, found: Found, members: IntArray | None = None) -> Filled:
        return self.model_.fill(values, found, self.imputer, self.n_donors, members=members, n_jobs=self.n_jobs)

    def predict(self, X: Any) -> IntArray:
        """-1 for rows with cells that are not believed, else +1."""
        return np.where(self._per_batch(X, lambda part: self._find(part).flagged), -1, 1)

    def separate(self, X: Any) -> BoolArray:
        """True at the cells that are not believed; one column per column of the table."""
        return self._in_table(self._per_batch(X, lambda part: self._find(part).mask))

    def node_p_values(self, X: Any) -> FloatArray:
        """Score of every row at every node of `model_.reference.tree`; small is rare."""
        return self._per_batch(X, lambda part: self.model_.scores(part, n_jobs=self.n_jobs).node_p_values)

    def score_samples(self, X: Any) -> FloatArray:
        """Entry level of every row, higher is more normal; 1 where no outline is left."""
        return self._per_batch(X, self._row_scores)

    def _row_scores(self, values: FloatArray) -> FloatArray:
        if self.model_.segments is not None and self.rule == "confirmed":
            return np.minimum(self.model_.levels(values, n_jobs=self.n_jobs), 1.0)
        found = self._find(values)  # rows that the search or the refinement lets go do not score below the limit
        levels = np.minimum(found.levels, 1.0)
        return np.where(found.flagged, levels, np.maximum(levels, self.offset_))

    def decision_function(self, X: Any) -> FloatArray:
        """`score_samples` minus `offset_`: negative for flagged rows."""
        return self.score_samples(X) - self.offset_

    def p_values(self, X: Any) -> FloatArray:
        """Conformal p-value of every row: share of calibration rows that are at least as rare, itself included."""
        levels = self._per_batch(X, lambda part: self.model_.levels(part, n_jobs=self.n_jobs))
        return self.calibration_.p_values(levels)

    def evidence(self, X: Any) -> Evidence:
        """Levels, node scores and segment posterior of every row, nothing decided; modelled columns only."""
        check_is_fitted(self)
        parts = [self.model_.evidence(part, n_jobs=self.n_jobs) for part in _batches(self._values(X)[1])]
        return Evidence(*(np.concatenate([getattr(part, name) for part in parts]) for name in vars(parts[0])))

    def transform(self, X: Any) -> Any:
        """The table with cells that are not believed, and missing ones, filled; all others come back as they were."""
        check_is_fitted(self)
        return self._restored_table(X)

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Fit, then restore the same rows; a reference row does not count as its own neighbour or donor."""
        self.fit(X, y, **fit_params)
        return self._restored_table(X, own=True)

    def restore(self, X: Any) -> SeparationResult:
        """Restored table together with flags, cells, levels, p-values, the size of the change and donors."""
        check_is_fitted(self)
        return self._restore(X)

    def explain(self, row: Any) -> Explanation:
        """Why one row (a table with one row, or its values) was flagged or not."""
        check_is_fitted(self)
        X = np.asarray(row)[None, :] if isinstance(row, (list, tuple)) or getattr(row, "ndim", 2) == 1 else row
        values = self._values(X)[1]
        if len(values) != 1:
            raise InputError(f"explain takes exactly 1 row, got {len(values)}.")
        found = self._find(values)
        filled = self._fill(values, found)
        names = [self.schema_.names[i] for i in self.schema_.modelled_positions]
        level = self.model_.levels(values)
        return explain_row(
            self.model_,
            found,
            names,
            p_value=float(self.calibration_.p_values(level)[0]),
            donors=filled.donors[0].tolist(),
            refused=bool(filled.refused[0]),
        )

    def _restore(self, X: Any, *, own: bool = False) -> SeparationResult:
        table, values = self._values(X)
        parts = self._restored_parts(values, own)
        joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        native = self._mended(table, values, joined)
        del joined["filled"]
        for name in ("cells", "probability"):
            joined[name] = self._in_table(joined[name])
        return SeparationResult(native, p_values=self.calibration_.p_values(joined["levels"]), **joined)

    def _restored_table(self, X: Any, *, own: bool = False) -> Any:
        table, values = self._values(X)
        parts = self._restored_parts(values, own)
        kept = {name: np.concatenate([part[name] for part in parts]) for name in ("filled", "cells", "refused")}
        return self._mended(table, values, kept)

    def _restored_parts(self, values: FloatArray, own: bool) -> list[dict[str, NDArray[Any]]]:
        members = self._own_rows(len(values)) if own else None
        return [
            self._restore_part(values[rows], None if members is None else members[rows])
            for rows in _slices(len(values))
        ]

    def _mended(self, table: Table, values: FloatArray, found: Mapping[str, NDArray[Any]]) -> Any:
        """The table with what was found put into the cells that are not believed or not observed."""
        changed = (found["cells"] | np.isnan(values)) & ~found["refused"][:, None]
        return restored(self, table, self.schema_, to_blocks(found["filled"], self.schema_), self._in_table(changed))

    def _restore_part(self, values: FloatArray, members: IntArray | None) -> dict[str, NDArray[Any]]:
        found = self._find(values, members)
        filled = self._fill(values, found, members)
        numbers = ~self.model_.reference.is_category
        change, rows = np.zeros(len(values)), np.flatnonzero(found.flagged)
        moved = ((filled.values[rows] - values[rows]) / self.model_.reference.scale)[:, numbers]
        change[rows] = np.sqrt(np.sum(np.where(found.mask[rows][:, numbers], moved, 0.0) ** 2, axis=1))
        donors = np.full((len(values), self.n_donors), -1, dtype=np.int64)
        width = min(donors.shape[1], filled.donors.shape[1])
        donors[:, :width] = filled.donors[:, :width]
        return {
            "filled": filled.values,
            "flagged": found.flagged,
            "searched": found.searched,
            "refused": filled.refused,
            "cells": found.mask,
            "probability": found.probability,
            "levels": found.levels,
            "change": change,
            "donors": donors,
        }

    def _own_rows(self, n_rows: int) -> IntArray:
        members = np.full(n_rows, -1, dtype=np.int64)
        members[self.reference_rows_] = np.arange(len(self.reference_rows_))
        return members

    def _in_table(self, cells: NDArray[Any]) -> NDArray[Any]:
        """Cells of the modelled columns among all columns of the table."""
        if cells.shape[1] == len(self.schema_.columns):
            return cells
        result = np.zeros((len(cells), len(self.schema_.columns)), dtype=cells.dtype)
        result[:, list(self.schema_.modelled_positions)] = cells
        return result

    def _per_batch(self, X: Any, call: Callable[[FloatArray], NDArray[Any]]) -> NDArray[Any]:
        check_is_fitted(self)
        return np.concatenate([call(part) for part in _batches(self._values(X)[1])])

    def check_state(self) -> None:
        """A model file whose parts do not belong together is refused."""
        if not hasattr(self, "model_"):
            return
        check_attributes(
            self, model_=SeparationModel, schema_=Schema, calibration_=fitting.Calibration, offset_=float,
            reference_rows_=NDArray[np.int64], calibration_rows_=NDArray[np.int64], n_features_in_=int,
        )  # fmt: skip
        fitting.check_settings(self)
        reference, kinds = self.model_.reference, category_columns(self.schema_)
        if not np.array_equal(reference.is_category, kinds) or self.reference_rows_.shape != (len(reference),):
            raise ModelFileError(
                f"The model file's separation is over {reference.n_columns} columns and {len(reference)} rows, other ones than "
                f"the {len(kinds)} of its schema and the {len(self.reference_rows_)} it names."
            )
        check_indices("reference rows", self.reference_rows_, 0, np.iinfo(np.int64).max)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


def _slices(n_rows: int) -> list[slice]:
    return [slice(begin, begin + BATCH) for begin in range(0, max(n_rows, 1), BATCH)]


def _batches(values: FloatArray) -> list[FloatArray]:
    return [values[rows] for rows in _slices(len(values))]


def _check_gaps(values: FloatArray, schema: Schema) -> None:
    empty = np.flatnonzero(np.isnan(values).all(axis=1)) if values.shape[1] else np.empty(0)
    if len(empty):
        raise InputError(
            f"Row {empty[0]} has no observed cell in any of the {len(schema.modelled_positions)} modelled columns; at "
            f"least 1 is needed ({len(empty)} such rows). Hint: drop empty rows."
        )


def _checked_trust(trust: ArrayLike | None, n_rows: int) -> FloatArray | None:
    if trust is None:
        return None
    weights = np.asarray(trust, dtype=np.float64)
    if weights.shape != (n_rows,) or not ((weights >= 0) & (weights <= 1)).all():
        raise InputError(f"trust must be {n_rows} numbers in [0, 1], one per row; got shape {weights.shape}.")
    return weights
