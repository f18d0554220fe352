"""The linear models of scikit-learn that a model file can hold: parameters and coefficients, set on a new object.

Nothing of scikit-learn is ever unpickled. A model is taken apart into the parameters that differ from their defaults and
the few fitted attributes that its answers depend on; it is put together by its constructor. Coefficients keep the order
they have in memory, on which the last bit of a product may depend.
"""

from __future__ import annotations

from importlib import import_module
from inspect import signature
from typing import Any, Final

import numpy as np

from goldseam.errors import ModelFileError

__all__ = ["LINEAR_MODELS", "linear_model", "linear_state"]

LINEAR_MODELS: Final = {
    "LinearRegression": "sklearn.linear_model",
    "LinearSVC": "sklearn.svm",
    "LogisticRegression": "sklearn.linear_model",
    "Perceptron": "sklearn.linear_model",
    "Ridge": "sklearn.linear_model",
    "SGDClassifier": "sklearn.linear_model",
}
FITTED: Final = ("classes_", "coef_", "intercept_", "n_features_in_", "feature_names_in_", "n_iter_")


def linear_state(model: object) -> dict[str, Any] | None:
    """What a file holds of a linear model; None for anything else.

    >>> from sklearn.linear_model import LogisticRegression
    >>> linear_state(LogisticRegression(C=2.0))
    {'parameters': {'C': 2.0}, 'fitted': {}, 'by_columns': False}
    """
    name = type(model).__name__
    if name not in LINEAR_MODELS or type(model) is not _class_of(name):
        return None
    defaults = {one.name: one.default for one in signature(type(model)).parameters.values()}
    given = {key: value for key, value in vars(model).items() if repr(defaults.get(key, value)) != repr(value)}
    fitted = {key: vars(model)[key] for key in FITTED if key in vars(model)}
    flags = getattr(fitted.get("coef_"), "flags", None)
    return {"parameters": given, "fitted": fitted, "by_columns": bool(flags and flags.fnc)}


def linear_model(name: Any, state: dict[str, Any]) -> Any:
    """The model that `linear_state` took apart."""
    if not isinstance(name, str) or name not in LINEAR_MODELS:
        raise ModelFileError(
            f"The model file names the scikit-learn model {name!r}; only {', '.join(LINEAR_MODELS)} are stored."
        )
    model = _class_of(name)(**state["parameters"])
    fitted = dict(state["fitted"])
    if fitted:
        _check_fitted(name, fitted)
        fitted["coef_"] = np.asarray(fitted["coef_"], order="F" if state["by_columns"] else "C")
        vars(model).update(fitted)
    return model


def _class_of(name: str) -> Any:
    return getattr(import_module(LINEAR_MODELS[name]), name)


def _check_fitted(name: str, fitted: dict[str, Any]) -> None:
    """Coefficients that fit the columns and classes, and are finite."""
    if unknown := set(fitted) - set(FITTED):
        raise ModelFileError(f"The model file's {name} has {min(unknown)!r}, which is no part of a linear model.")
    coefficients, intercepts = fitted["coef_"], np.asarray(fitted["intercept_"])
    classes = len(fitted["classes_"]) if "classes_" in fitted else None
    scores = () if classes is None else (1 if classes == 2 else classes,)
    expected = (*scores, fitted["n_features_in_"])
    if coefficients.shape != expected or intercepts.shape not in (scores, (), (1,)):
        raise ModelFileError(
            f"The model file's {name} needs coefficients of shape {expected} and intercepts of shape {scores}; "
            f"got {coefficients.shape} and {intercepts.shape}."
        )
    if coefficients.dtype.kind != "f" or not (np.isfinite(coefficients).all() and np.isfinite(intercepts).all()):
        raise ModelFileError(f"The model file's {name} must have finite coefficients.")
