"""An imputer from elsewhere as the repairer: it fills gaps and what the evidence suspects.

An unfitted imputer is fitted on the reference rows. It sees one row per row: numbers in robust units, then the levels of
every category as ones and zeros, with NaN where nothing is believed. An imputer that was fitted elsewhere sees the
modelled columns as they are, which therefore must be numbers. Its intervals come from calibration rows with cells taken
away on purpose: the absolute error that `coverage` of them stay below, per column.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from goldseam.contamination import features
from goldseam.errors import ParameterError
from goldseam.evidence import Repairs
from goldseam.schema import MISSING, Blocks, Schema
from goldseam.tables import named_numbers

__all__ = ["Outside", "fit_outside"]

Flags = NDArray[np.bool_]
TAKEN: Final = 0.2  # of the cells of calibration rows
COPIES: Final = 3


@dataclass(frozen=True)
class Outside:
    """A fitted imputer, whether it sees columns as they are, and how far its intervals reach per number."""

    imputer: Any
    schema: Schema
    plain: bool
    reach: NDArray[np.float64]

    def filled(self, blocks: Blocks, gone: Flags) -> Blocks:
        """The rows with cells `gone` (modelled ones, in table order) and gaps filled."""
        modelled = self.schema.modelled_positions
        numbers = gone[:, [modelled.index(i) for i in self.schema.number_positions]]
        codes = gone[:, [modelled.index(i) for i in self.schema.category_positions]]
        believed = Blocks(
            np.where(numbers, np.nan, blocks.numbers), np.where(codes, MISSING, blocks.codes).astype(np.int32)
        )
        seen = believed.numbers if self.plain else features(believed, self.schema)
        out = self._transformed(seen)
        if out.shape != seen.shape or np.isnan(out).any():
            raise ParameterError(
                f"The repairer {type(self.imputer).__name__} must fill every cell of a table of shape {seen.shape}; it "
                f"returned shape {out.shape} with {int(np.isnan(out).sum())} gaps. Hint: keep_empty_features=True."
            )
        return self._decoded(out)

    def _transformed(self, seen: NDArray[np.float64]) -> NDArray[np.float64]:
        """What the imputer makes of the rows; one that was fitted on named columns sees them under their names, in its order."""
        names = _names_of(self.imputer) if self.plain else None
        if names is None:
            return np.asarray(self.imputer.transform(seen), dtype=np.float64)
        own = [column.name for column in self.schema.numbers]
        order = np.array([own.index(name) for name in names])
        frame = named_numbers(names, seen[:, order])
        out = np.asarray(self.imputer.transform(frame), dtype=np.float64)
        return out[:, np.argsort(order)] if out.shape == seen.shape else out

    def _decoded(self, out: NDArray[np.float64]) -> Blocks:
        m = len(self.schema.numbers)
        if self.plain:
            return Blocks(out, np.empty((len(out), 0), dtype=np.int32))
        center, scale = (np.array([getattr(c, name) for c in self.schema.numbers]) for name in ("center", "scale"))
        codes = np.empty((len(out), len(self.schema.categories)), dtype=np.int32)
        first = m
        for j, column in enumerate(self.schema.categories):
            codes[:, j] = out[:, first : first + len(column.levels)].argmax(axis=1)
            first += len(column.levels)
        return Blocks(center + scale * out[:, :m], codes)

    def over(self, blocks: Blocks, suspect: Flags, repairs: Repairs) -> Repairs:
        """The repairs with this imputer's values where the evidence changed something."""
        rows = np.flatnonzero(repairs.changed.any(axis=1))
        if not rows.size:
            return repairs
        modelled = self.schema.modelled_positions
        at = [modelled.index(i) for i in self.schema.number_positions]
        where = [modelled.index(i) for i in self.schema.category_positions]
        gone = repairs.changed[rows] | suspect[rows]
        filled = self.filled(blocks.take(rows), gone)
        numbers, codes = repairs.blocks.numbers.copy(), repairs.blocks.codes.copy()
        low, high = repairs.low.copy(), repairs.high.copy()
        new = repairs.changed[rows][:, at]
        numbers[rows] = np.where(new, filled.numbers, numbers[rows])
        low[rows] = np.where(new, filled.numbers - self.reach, low[rows])
        high[rows] = np.where(new, filled.numbers + self.reach, high[rows])
        if where:
            codes[rows] = np.where(repairs.changed[rows][:, where], filled.codes, codes[rows])
        return replace(repairs, blocks=Blocks(numbers, codes), low=low, high=high)


def fit_outside(
    imputer: Any, reference: Blocks, calibration: Blocks, schema: Schema, coverage: float, rng: np.random.Generator
) -> Outside:
    """Fit an imputer on the reference, or take one that is fitted, and measure how far its errors reach."""
    try:
        check_is_fitted(imputer)
        plain = True
    except NotFittedError:
        plain = False
    if plain:
        _check_fitted(imputer, schema)
    else:
        imputer = clone(imputer).fit(features(reference, schema))
    blank = Outside(imputer, schema, plain, np.zeros(len(schema.numbers)))
    rows = calibration.take(np.tile(np.arange(len(calibration)), COPIES))
    gone = rng.random((len(rows), len(schema.modelled_positions))) < TAKEN
    error = np.abs(blank.filled(rows, gone).numbers - rows.numbers)
    taken = gone[:, [schema.modelled_positions.index(i) for i in schema.number_positions]]
    reach = [np.quantile(one[use], coverage) if use.any() else np.inf for one, use in _columns(error, taken)]
    return replace(blank, reach=np.array(reach))


def _columns(error: NDArray[np.float64], taken: Flags) -> list[tuple[NDArray[np.float64], Flags]]:
    """Per column the errors and where there was something to take."""
    return [(error[:, j], taken[:, j] & ~np.isnan(error[:, j])) for j in range(error.shape[1])]


def _names_of(imputer: Any) -> list[str] | None:
    """The names of the columns an imputer was fitted on, if it was fitted on named ones."""
    names = getattr(imputer, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def _check_fitted(imputer: Any, schema: Schema) -> None:
    if schema.categories:
        raise ParameterError(
            f"A repairer that is already fitted can only be used where all columns are numbers; "
            f"{schema.categories[0].name!r} is a category. Hint: give it unfitted, clone(repairer)."
        )
    expected = getattr(imputer, "n_features_in_", len(schema.numbers))
    if expected != len(schema.numbers):
        raise ParameterError(
            f"The repairer was fitted on {expected} columns, but {len(schema.numbers)} are modelled. "
            "Hint: give it unfitted, clone(repairer)."
        )
    own = [column.name for column in schema.numbers]
    names = _names_of(imputer)
    if names is not None and set(names) != set(own):
        raise ParameterError(
            f"The repairer was fitted on column {min(set(names) - set(own))!r}, which is not among those modelled: "
            f"{', '.join(own[:20])}. Hint: give it unfitted, clone(repairer)."
        )
