"""The settings of the estimator, checked at fit."""

from __future__ import annotations

from typing import Any

import numpy as np

from goldseam.errors import ParameterError

__all__ = ["check_settings"]

CHOICES = {
    "objective": ("block", "pseudo"),
    "marginals": ("empirical", "gaussian"),
    "inference": ("lbp", "structured", "mean-field", "gibbs", "exact"),
}


def check_settings(model: Any) -> None:
    """Refuse settings outside their limits, by name."""
    for name, choices in CHOICES.items():
        if getattr(model, name) not in choices:
            raise ParameterError(
                f"{name} must be one of {', '.join(map(repr, choices))}; got {getattr(model, name)!r}. Hint: check the word."
            )
    if isinstance(model.noise, str) and model.noise not in ("none", "estimate"):
        raise ParameterError(
            f"noise must be 'none', 'estimate' or a mapping; got {model.noise!r}. Hint: check the word."
        )
    if model.penalty != "auto" and not (isinstance(model.penalty, (int, float)) and model.penalty > 0):
        raise ParameterError(f"penalty must be 'auto' or a number above 0; got {model.penalty!r}. Hint: .4 is usual.")
    rate = model.gross_error_rate
    if rate != "estimate" and not (isinstance(rate, (int, float)) and 0 <= rate < 0.5):
        raise ParameterError(
            f"gross_error_rate must be 'estimate' or lie in [0, .5); got {rate!r}. Hint: .05 is usual."
        )
    if not (isinstance(model.max_iter, (int, np.integer)) and model.max_iter > 0):
        raise ParameterError(f"max_iter must be a whole number above 0; got {model.max_iter!r}. Hint: 500 is usual.")
    if not (isinstance(model.tol, (int, float)) and 0 < model.tol < np.inf):
        raise ParameterError(f"tol must be a number above 0; got {model.tol!r}. Hint: 1e-6 is usual.")
