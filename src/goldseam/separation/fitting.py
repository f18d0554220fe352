"""Steps of a fit: check the settings, choose reference and calibration rows, set the limit (S6.4, S10).

| S | function |
|---|---|
| S6.4 calibration rows, S10 `max_reference` | `split_rows` |
| S6.3, S6.4 limit | `calibrated` |
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldseam.errors import CalibrationWarning, InputError, ParameterError
from goldseam.separation.alarm import conformal_limit
from goldseam.separation.model import SeparationModel, recursion_limit
from goldseam.separation.tree import AttributeTree

__all__ = [
    "Calibration",
    "calibrated",
    "check_settings",
    "choose_tree",
    "leaf_size_for",
    "ranked_fractions",
    "split_rows",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

LEAST_REFERENCE = 10
IMPUTERS = ("context-mean", "context-medoid", "context-regression", "sibling-map", "sibling-nearest")
HIGHEST_LIMIT = 0.25  # a row that is no rarer than one in four at every node is never flagged


@dataclass(frozen=True, eq=False)
class Calibration:
    """Sorted levels of the calibration rows, their summed trust from below, and the share that is flagged."""

    levels: FloatArray
    mass: FloatArray
    rate: float

    def p_values(self, levels: FloatArray) -> FloatArray:
        """Conformal p-value: share of calibration rows at least as rare, the row itself among them.

        >>> Calibration(np.array([0.1, 0.5]), np.array([1.0, 2.0]), 0.0).p_values(np.array([0.05, 0.2, 1.0]))
        array([0.33333333, 0.66666667, 1.        ])
        """
        below = np.concatenate(([0.0], self.mass))[np.searchsorted(self.levels, levels, side="right")]
        return np.asarray((1.0 + below) / (1.0 + (self.mass[-1] if len(self.mass) else 0.0)))


def check_settings(estimator: Any) -> None:
    """Limits of all parameters, each with its name and the value got."""
    for fraction in ranked_fractions(estimator):
        _within("ranked_fraction", fraction, 0, 1, right=True)
    _within("alarm_rate", estimator.alarm_rate, 0, 1)
    if estimator.node_alarm_rate is not None and not 0 <= estimator.node_alarm_rate < 1:
        raise ParameterError(f"node_alarm_rate must be in [0, 1), got {estimator.node_alarm_rate!r}.")
    for name in ("n_neighbors", "n_donors", "max_reference"):
        if getattr(estimator, name) < 1:
            raise ParameterError(f"{name} must be at least 1, got {getattr(estimator, name)!r}.")
    _one_of("calibration", estimator.calibration, ("conformal", "recursion"))
    _one_of("rule", estimator.rule, ("confirmed", "paper"))
    _one_of("scores", estimator.scores, ("continuous", "counted", "paper"))
    _one_of("refine", estimator.refine, (True, False, "segments", "residuals"))
    _one_of("scaling", estimator.scaling, ("auto", "robust", "range", "quantiles", "common", "none"))
    _check_imputer(estimator)


def ranked_fractions(estimator: Any) -> tuple[float, ...]:
    """One fraction or several, as numbers."""
    given = estimator.ranked_fraction
    several = tuple(given) if isinstance(given, (tuple, list)) else (given,)
    if not several:
        raise ParameterError("ranked_fraction must be a number in (0, 1] or several of them, got none.")
    return several


def _check_imputer(estimator: Any) -> None:
    imputer = estimator.imputer
    if isinstance(imputer, str):
        _one_of("imputer", imputer, IMPUTERS)
        if imputer.startswith("sibling") and estimator.refine is not False:
            raise ParameterError(
                f"imputer={imputer!r} fills declared nodes, so it needs refine=False; got refine={estimator.refine!r}. "
                "Hint: use a context imputer, or refine=False."
            )
    elif not hasattr(imputer, "transform"):
        raise ParameterError(f"imputer must be one of {', '.join(IMPUTERS)} or a fitted imputer, got {imputer!r}.")


def _within(name: str, value: float, low: float, high: float, *, right: bool = False) -> None:
    if not (low < value < high or (right and value == high)):
        raise ParameterError(f"{name} must be in ({low}, {high}{']' if right else ')'}, got {value!r}.")


def _one_of(name: str, value: Any, allowed: tuple[Any, ...]) -> None:
    if not any(value is option or (isinstance(value, str) and value == option) for option in allowed):
        raise ParameterError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}.")


def leaf_size_for(leaf_size: int | None, n_columns: int) -> int:
    """4, below 32 columns 2, below 4 columns 1.

    >>> [leaf_size_for(None, d) for d in (3, 30, 256)]
    [1, 2, 4]
    """
    if leaf_size is not None:
        return leaf_size
    return 4 if n_columns >= 32 else min(2, max(1, n_columns // 2))


def choose_tree(tree: Any, names: tuple[str, ...], values: FloatArray, leaf_size: int | None) -> AttributeTree:
    """The tree over the modelled columns, down to its leaves."""
    d = len(names)
    if d < 2:
        raise InputError(f"Separation needs at least 2 modelled columns to compare parts of a row, got n_features={d}.")
    if isinstance(tree, AttributeTree):
        chosen = tree.resolved(names)
    elif isinstance(tree, str) and tree == "interval":
        chosen = AttributeTree.interval(d)
    elif isinstance(tree, str) and tree == "clustered":
        chosen = AttributeTree.clustered(values)
    elif isinstance(tree, (tuple, list)) and all(isinstance(side, (int, np.integer)) for side in tree):
        chosen = AttributeTree.grid(tree).resolved(names)
    else:
        raise ParameterError(f"tree must be 'interval', 'clustered', a grid shape or an AttributeTree, got {tree!r}.")
    size = leaf_size_for(leaf_size, d)
    pruned = chosen.pruned(size)
    if pruned.n_nodes == 1:
        raise ParameterError(
            f"The tree has no split: leaf_size={size}, but there are only {d} columns (n_features={d})."
        )
    return pruned


def split_rows(
    n_rows: int, max_reference: int, held_out: bool, usable: NDArray[np.bool_], rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Reference and calibration rows: 20 % held out, at least 200 where a third of the rows is that many."""
    order = rng.permutation(np.flatnonzero(usable))
    n = len(order)
    if n < LEAST_REFERENCE:
        raise InputError(
            f"The reference needs at least {LEAST_REFERENCE} rows, got n_samples={n}"
            + (" after leaving out rows of trust below 0.5." if n < n_rows else ".")
        )
    n_held = max(round(0.2 * n), min(200, n // 3)) if held_out else 0
    n_held = min(n_held, n - LEAST_REFERENCE)
    return np.sort(order[n_held:][:max_reference]), np.sort(order[:n_held])


def calibrated(
    model: SeparationModel,
    estimator: Any,
    clean: FloatArray,
    trust: FloatArray | None,
) -> tuple[SeparationModel, Calibration]:
    """The model with its limit, and the calibration levels that p-values are ranked among."""
    members = None
    if estimator.node_alarm_rate is not None:
        limit = float(np.nextafter(estimator.node_alarm_rate, np.inf))
        _warn_about_floor(model, estimator.node_alarm_rate)
        clean, members, trust = model.reference.values, np.arange(len(model.reference)), model.trust
    levels = model.levels(clean, members=members, n_jobs=estimator.n_jobs)
    if estimator.node_alarm_rate is None and estimator.calibration == "recursion":
        limit = recursion_limit(model, model.scores(clean, n_jobs=estimator.n_jobs), estimator.alarm_rate)
        if limit == 0.0:
            _warn_unreachable(model, estimator.alarm_rate, len(clean), "the recursion")
    elif estimator.node_alarm_rate is None:
        limit = _conformal(model, estimator, levels, trust)
    weights = np.ones(len(levels)) if trust is None else trust
    order = np.argsort(levels, kind="stable")
    mass = np.cumsum(weights[order])
    rate = float(weights[levels < limit].sum() / mass[-1]) if len(mass) else 0.0
    return model.with_limit(limit), Calibration(levels[order], mass, rate)


def _conformal(model: SeparationModel, estimator: Any, levels: FloatArray, trust: FloatArray | None) -> float:
    """(S-20), with warnings where nothing can be flagged."""
    found = conformal_limit(levels, estimator.alarm_rate, trust)
    floor = 1.0 / (model.members.total + 1.0)
    stuck = found.rank > 0 and model.form == "counted" and found.limit <= floor
    if found.rank == 0 or stuck:
        _warn_unreachable(model, estimator.alarm_rate, len(levels), "calibration")
    return min(found.limit, HIGHEST_LIMIT)


def _warn_unreachable(model: SeparationModel, rate: float, n: int, source: str) -> None:
    warnings.warn(
        f"alarm_rate={rate} cannot be reached by {source}: {n} calibration rows against {len(model.reference)} reference "
        f"rows let no row be flagged; the rate needs at least {int(np.ceil(1 / rate - 1e-9)) - 1} calibration rows and "
        f"scores below {1 / (model.members.total + 1):.2g}. Hint: give more rows, a larger alarm_rate, or "
        "scores='continuous'.",
        CalibrationWarning,
        stacklevel=5,
    )


def _warn_about_floor(model: SeparationModel, level: float) -> None:
    floor = 1.0 / (model.members.total + 1.0)
    if model.form == "counted" and level < floor:
        warnings.warn(
            f"node_alarm_rate={level} is below the smallest score {floor:.2g} that {len(model.reference)} reference rows "
            "can give, so nothing can be flagged. Hint: give more rows, or scores='continuous'.",
            CalibrationWarning,
            stacklevel=5,
        )
