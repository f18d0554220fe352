"""What the margin estimators accept: parameters, labels, weights, groups and values, with errors that say what to do."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import _check_sample_weight

from goldseam.errors import InputError, ParameterError

__all__ = [
    "check_parameters",
    "class_weights",
    "encode_groups",
    "encode_labels",
    "require_all_classes",
    "require_moderate_values",
    "require_plain_labels",
    "require_two_classes",
    "row_weights",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LARGEST_VALUE = 1e100
"""Squares of larger numbers, summed over columns, come near the end of the number range."""

_CHOICES: dict[str, tuple[str, ...]] = {
    "threshold": ("auto", "gap", "literal"),
    "solver": ("mean-field", "gibbs"),
    "entropy": ("leave-one-out", "bipartite"),
    "linear_solver": ("auto", "liblinear", "primal", "libsvm", "sgd"),
    "probability": ("platt", "sigmoid"),
    "missing": ("raise", "indicator"),
    "gate": ("hard", "soft", "none"),
}
_KERNELS = ("linear", "rbf", "precomputed")
_GAMMAS = ("scale", "robust", "auto")


def check_parameters(estimator: Any) -> None:
    """Check every setting the estimator has against its limits."""
    for name, value in estimator.get_params(deep=False).items():
        if name in _CHOICES and value not in _CHOICES[name]:
            raise _bad(name, f"one of {', '.join(map(repr, _CHOICES[name]))}", value)
        check = _CHECKS.get(name)
        if check is not None:
            check(name, value)


def _bad(name: str, limit: str, value: Any) -> ParameterError:
    return ParameterError(f"{name} must be {limit}, but is {value!r}. Hint: see the parameters of the class.")


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _positive(name: str, value: Any) -> None:
    if not _is_number(value) or not 0 < value < np.inf:
        raise _bad(name, "a positive number", value)


def _not_negative(name: str, value: Any) -> None:
    if not _is_number(value) or not 0 <= value < np.inf:
        raise _bad(name, "a number of at least 0", value)


def _strength(name: str, value: Any) -> None:
    if isinstance(value, str):
        if value != "auto":
            raise _bad(name, "None, 'auto' or a number of at least 0", value)
    elif value is not None:
        _not_negative(name, value)


def _probability(name: str, value: Any) -> None:
    if not _is_number(value) or not 0 < value < 1:
        raise _bad(name, "strictly between 0 and 1", value)


def _count(name: str, value: Any) -> None:
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise _bad(name, "a whole number of at least 1", value)


def _count_or_none(name: str, value: Any) -> None:
    if value is not None:
        _count(name, value)


def _neighbours(name: str, value: Any) -> None:
    whole = isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 2
    fraction = isinstance(value, Real) and not isinstance(value, Integral) and 0 < float(value) < 1
    if not (whole or fraction or (isinstance(value, str) and value == "auto")):
        raise _bad(name, "'auto', a whole number of at least 2, or a fraction between 0 and 1", value)


def _kernel(name: str, value: Any) -> None:
    if not callable(value) and value not in _KERNELS:
        raise _bad(name, f"one of {', '.join(map(repr, _KERNELS))} or a function", value)


def _gamma(name: str, value: Any) -> None:
    if isinstance(value, str):
        if value not in _GAMMAS:
            raise _bad(name, f"one of {', '.join(map(repr, _GAMMAS))} or a positive number", value)
    else:
        _positive(name, value)


_CHECKS: dict[str, Any] = {
    "kernel": _kernel,
    "gamma": _gamma,
    "C": _positive,
    "clip": _positive,
    "n_neighbors": _neighbours,
    "trust_prior": _probability,
    "field_strength": _not_negative,
    "loss_strength": _strength,
    "max_reference": _count,
    "n_landmarks": _count_or_none,
    "max_iter": _count_or_none,
    "tol": _positive,
}


def require_plain_labels(y: Any) -> None:
    """Labels of mixed type cannot be ordered: say which types were found."""
    values = np.asarray(y, dtype=object) if isinstance(y, (list, tuple)) else np.asarray(y)
    if values.dtype != object or values.ndim != 1:
        return
    kinds = {
        "text" if isinstance(v, str) else "number" if isinstance(v, (Real, np.bool_)) else type(v).__name__
        for v in values
    }
    if len(kinds) > 1:
        raise InputError(
            f"The labels are of mixed type: {', '.join(sorted(kinds))}. Hint: make them all text or all numbers, "
            "and drop rows without a label."
        )


def encode_labels(y: NDArray[Any]) -> tuple[NDArray[Any], Ints]:
    """The classes in order and the code of every row."""
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise InputError(
            f"A classifier needs at least 2 classes, but the labels hold {len(classes)} class: {classes.tolist()}. "
            "Hint: for rows without labels use row_trust."
        )
    return classes, codes.astype(np.int64).reshape(-1)


def require_all_classes(codes: Ints, classes: NDArray[Any]) -> None:
    """Every class must keep a row of positive weight in which something is observed."""
    counts = np.bincount(codes, minlength=len(classes))
    if np.any(counts == 0):
        empty = classes[counts == 0].tolist()
        raise InputError(
            f"Of {len(classes)} classes, {empty} have no row of positive weight with an observed value. "
            "Hint: check sample_weight and class_weight."
        )


def require_two_classes(classes: NDArray[Any], solver: str, threshold: str) -> None:
    """The printed model is binary."""
    if len(classes) > 2:
        raise InputError(
            f"solver={solver!r} with threshold={threshold!r} knows two classes only, but the labels hold {len(classes)} "
            "classes. Hint: solver='mean-field' with threshold='auto'."
        )


def require_moderate_values(X: Floats) -> None:
    """Distances of huge numbers overflow: name the cell."""
    huge = np.abs(X) > LARGEST_VALUE
    if huge.any():
        row, column = np.argwhere(huge)[0]
        raise InputError(
            f"Row {row}, column {column} holds {X[row, column]:g}; values beyond {LARGEST_VALUE:g} cannot be used. "
            "Hint: rescale the column, or mark such values as missing."
        )


def row_weights(sample_weight: ArrayLike | None, X: Floats) -> Floats:
    """One weight per row, none negative, not all zero."""
    weights: Floats = _check_sample_weight(sample_weight, X, dtype=np.float64)
    if np.any(weights < 0):
        row = int(np.argmax(weights < 0))
        raise InputError(
            f"sample_weight must not be negative, but row {row} has {weights[row]:g}. Hint: use 0 to leave a row out."
        )
    if not np.any(weights > 0):
        raise InputError(
            f"sample_weight must have a positive entry, but all {len(weights)} are zero. Hint: leave it out."
        )
    return weights


def class_weights(
    setting: Mapping[Any, float] | str | None, classes: NDArray[Any], codes: Ints, weights: Floats
) -> Floats:
    """The class's weight for every row; `'balanced'` gives each class the same total of `weights`."""
    if setting is None:
        return np.ones(len(codes))
    if isinstance(setting, str):
        if setting != "balanced":
            raise _bad("class_weight", "None, 'balanced' or a dict", setting)
        totals = np.bincount(codes, weights, minlength=len(classes))
        factors = np.divide(weights.sum(), len(classes) * totals, out=np.ones(len(classes)), where=totals > 0)
        return factors[codes]
    return compute_class_weight(setting, classes=classes, y=classes[codes])[codes]


def encode_groups(groups: ArrayLike | None, n_rows: int) -> Ints | None:
    """Group codes 0, 1, ... or None."""
    if groups is None:
        return None
    values = np.asarray(groups)
    if values.shape != (n_rows,):
        raise InputError(
            f"groups must have one entry per row, {n_rows}, but has shape {values.shape}. Hint: pass a 1-d array."
        )
    return np.unique(values, return_inverse=True)[1].astype(np.int64).reshape(-1)
