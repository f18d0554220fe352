"""The restorer's settings, checked before anything is learnt: what is wrong, the limit, the value got, a hint."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NoReturn

import numpy as np

from goldseam.constraints import Constraint, Constraints
from goldseam.denoising import given_noise
from goldseam.engines.local import n_threads
from goldseam.errors import InputError, ParameterError
from goldseam.mending import Levels, Policy
from goldseam.schema import Schema

__all__ = ["SOURCES", "check_columns", "check_folds", "check_levels", "check_row", "check_settings", "group_order"]

WHOLE: Final = (int, np.integer)
NUMBER: Final = (int, float, np.integer, np.floating)
LARGEST: Final = 1e150
NARROWEST: Final = 1e-300
SOURCES: Final = ("conditional", "boosted", "field", "tree")


def check_settings(restorer: Any) -> None:
    """Settings that can be judged without a table."""
    _share("alarm_rate", restorer.alarm_rate, "0.05 is one in twenty")
    _share("coverage", restorer.coverage, "0.9 is nine in ten")
    if isinstance(restorer.damaged_share, str):
        _one_of("damaged_share", restorer.damaged_share, ("auto",))
    else:
        _share("damaged_share", restorer.damaged_share, "0.1 is one row in ten")
    _one_of("error_control", restorer.error_control, ("row", "fdr"))
    _one_of("reference", restorer.reference, ("clean", "contaminated"))
    _check_method(restorer.method)
    _mapping("kinds", restorer.kinds, "{'zip': 'categorical'}")
    _whole("max_levels", restorer.max_levels, 2, "50 is the default")
    _lines("missing_values", restorer.missing_values, (str,), "['n/a']")
    _lines("constraints", restorer.constraints, (str, Constraint), "['0 <= age <= 120']")
    _check_costs(restorer.costs)
    _check_repairer(restorer.repairer)
    _check_groups(restorer.groups)
    _check_grid(restorer.grid_shape)
    if restorer.groups is not None and restorer.grid_shape is not None:
        _refuse(
            "groups and grid_shape",
            "cannot be given together",
            restorer.groups,
            "keep the one that says how damage runs",
        )
    if not isinstance(restorer.denoise, Mapping):
        _one_of("denoise", restorer.denoise, ("auto", False))
    if restorer.n_jobs is not None:
        _whole("n_jobs", restorer.n_jobs, None, "None or 1 for one thread, -1 for all cores")
        n_threads(restorer.n_jobs)
    if not isinstance(restorer.verbose, WHOLE):
        _refuse("verbose", "must be a whole number", restorer.verbose, "0 is silent, 1 prints a line per stage")


def check_columns(restorer: Any, schema: Schema) -> None:
    """Settings that name columns or count them, once the columns are known."""
    _check_ranges(schema)
    names = [schema.names[i] for i in schema.modelled_positions]
    if restorer.groups is not None:
        group_order(restorer.groups, names)
    if restorer.grid_shape is not None and math.prod(restorer.grid_shape) != len(names):
        height, width = restorer.grid_shape
        _refuse(
            "grid_shape",
            f"must be that of the {len(names)} modelled columns",
            tuple(restorer.grid_shape),
            f"a grid of {height} by {width} has {height * width} pixels; is a column no pixel?",
        )
    if isinstance(restorer.denoise, Mapping):
        given_noise(schema, restorer.denoise)
    Constraints.of(restorer.constraints, schema)
    Policy.of(restorer.policy, restorer.costs, schema)


def group_order(groups: Mapping[str, Sequence[str]], names: Sequence[str]) -> list[int]:
    """Modelled columns with those of a group side by side; the rest follows in table order.

    >>> group_order({"a": ["z", "x"]}, ["x", "y", "z"])
    [2, 0, 1]
    """
    seen: dict[str, str] = {}
    for group, columns in groups.items():
        for name in map(str, columns):
            if name not in names:
                raise ParameterError(
                    f"Group {group!r} names column {name!r}, which is not modelled. Hint: modelled are {', '.join(names[:20])}."
                )
            if name in seen:
                where = (
                    f"twice in group {group!r}"
                    if seen[name] == group
                    else f"in two groups, {seen[name]!r} and {group!r}"
                )
                raise ParameterError(f"Column {name!r} is {where}; groups must not overlap. Hint: name it once.")
            seen[name] = group
    ordered = [*seen, *(name for name in names if name not in seen)]
    return [names.index(name) for name in ordered]


def check_levels(levels: Any, restorer: Any) -> Levels:
    """Levels of a table must be those of a model with the same error control and the same columns."""
    hint = "levels=restorer.survey(batches), by the restorer that uses them"
    if not isinstance(levels, Levels):
        _refuse("levels", "must be those of a survey", levels, hint)
    by_cell = restorer.error_control == "fdr"
    if by_cell != (levels.cell_p_value is not None):
        wanted = "need a p-value up to which cells are suspect" if by_cell else "must not have a threshold for cells"
        _refuse(f"levels under error_control={restorer.error_control!r}", wanted, levels.cell_p_value, hint)
    own = len(restorer.schema_.numbers), len(restorer.schema_.categories)
    if levels.noise is not None and (levels.noise.sigma.size, levels.noise.flip.size) != own:
        got = levels.noise.sigma.size, levels.noise.flip.size
        _refuse("levels", f"must tell the noise of {own[0]} numbers and {own[1]} categories", got, hint)
    for what, share in (("openly damaged", levels.open_share), ("far", levels.far_share)):
        if share is not None and not 0.0 <= share <= 1.0:
            _refuse("levels", f"must have a share of {what} rows between 0 and 1", share, hint)
    return levels


def check_row(row: Any, n_rows: int) -> int:
    """The number of a row of a table."""
    if isinstance(row, bool) or not isinstance(row, WHOLE):
        raise InputError(f"row must be a whole number; got {row!r}. Hint: rows are counted from 0.")
    if not n_rows:
        raise InputError(f"Row {row} was asked for, but the table has no rows. Hint: check the filter.")
    if not 0 <= row < n_rows:
        raise InputError(
            f"Row {row} was asked for, but the table has rows 0 to {n_rows - 1}. Hint: rows are counted from 0."
        )
    return int(row)


def check_folds(n_folds: Any, n_rows: int) -> int:
    """In how many parts a table without a reference is judged."""
    if isinstance(n_folds, bool) or not isinstance(n_folds, WHOLE) or not 2 <= n_folds <= n_rows:
        hint = "5 judges every fifth of the rows by the other four"
        _refuse("n_folds", f"must be a whole number from 2 to the number of rows, {n_rows}", n_folds, hint)
    return int(n_folds)


# --- one setting each ---------------------------------------------------------------------------------------------------


def _check_ranges(schema: Schema) -> None:
    """Squares of what is learnt must be numbers, and so must the inverse of its range."""
    for column in schema.numbers:
        largest, span = max(abs(column.low), abs(column.high)), column.high - column.low
        if largest > LARGEST or 0.0 < span < NARROWEST:
            raise InputError(
                f"Column {column.name!r} of the reference must stay below {LARGEST:g} and span at least {NARROWEST:g}; it goes "
                f"from {column.low:g} to {column.high:g}. Hint: give it in another unit."
            )


def _check_method(method: Any) -> None:
    if isinstance(method, str) and method == "auto":
        return
    hint = "'auto', or a list such as ['conditional', 'tree']"
    if isinstance(method, str) or not isinstance(method, Iterable):
        _refuse("method", "must be 'auto' or a list of sources", method, hint)
    for name in method:
        _one_of("method", name, SOURCES)
    if not set(method) - {"tree"}:
        raise ParameterError(
            f"method needs at least one of 'conditional', 'boosted', 'field' besides the tree; got {method!r}. Hint: {hint}."
        )


def _check_costs(costs: Any) -> None:
    for cost in costs.values() if isinstance(costs, Mapping) else () if costs is None else (costs,):
        if not isinstance(cost, NUMBER):
            _refuse("costs", "must be a number, or numbers by column", cost, "9 asks for 90 % probability")


def _check_repairer(repairer: Any) -> None:
    if repairer is not None and (isinstance(repairer, type) or not hasattr(repairer, "transform")):
        limit = "must have fit and transform, as scikit-learn's imputers have"
        _refuse("repairer", limit, repairer, "an imputer itself, as KNNImputer()")


def _check_groups(groups: Any) -> None:
    _mapping("groups", groups, "{'cuff': ['pressure', 'pulse']}")
    for name, columns in (groups or {}).items():
        if isinstance(columns, str) or not isinstance(columns, Iterable):
            _refuse(f"groups[{name!r}]", "must be a list of columns", columns, "['pressure', 'pulse']")


def _check_grid(shape: Any) -> None:
    if shape is None:
        return
    sides = list(shape) if isinstance(shape, Iterable) and not isinstance(shape, str) else []
    if len(sides) != 2 or not all(isinstance(side, WHOLE) and side > 0 for side in sides):
        _refuse("grid_shape", "must be two whole numbers above 0", shape, "(rows, columns) of the grid, as (16, 16)")


def _share(name: str, value: Any, hint: str) -> None:
    if not isinstance(value, NUMBER) or not 0 < value < 1:
        _refuse(name, "must lie strictly between 0 and 1", value, hint)


def _one_of(name: str, value: object, allowed: Sequence[object]) -> None:
    if not any(isinstance(value, type(one)) and value == one for one in allowed):
        _refuse(name, f"must be one of {', '.join(map(repr, allowed))}", value, "check the spelling")


def _mapping(name: str, value: Any, example: str) -> None:
    if value is not None and not isinstance(value, Mapping):
        _refuse(name, "must be a mapping", value, f"{name}={example}")


def _whole(name: str, value: Any, least: int | None, hint: str) -> None:
    if isinstance(value, bool) or not isinstance(value, WHOLE) or (least is not None and value < least):
        _refuse(name, "must be a whole number" + ("" if least is None else f" of at least {least}"), value, hint)


def _lines(name: str, value: Any, kinds: tuple[Any, ...], example: str) -> None:
    """A list of texts; a single text is one too, of letters, and never meant."""
    listed = list(value) if isinstance(value, Iterable) and not isinstance(value, (str, bytes)) else [None]
    if not all(isinstance(one, kinds) for one in listed):
        _refuse(name, "must be a sequence of strings", value, f"{name}={example}")


def _refuse(name: str, limit: str, value: object, hint: str) -> NoReturn:
    raise ParameterError(f"{name} {limit}; got {value!r}. Hint: {hint}.")
