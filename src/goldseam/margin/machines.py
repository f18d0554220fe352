"""A fitted large-margin classifier as plain arrays, evaluated one row at a time by our own code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from goldseam.errors import ModelFileError
from goldseam.margin import kernels

__all__ = ["KernelFunction", "Machine", "best_class"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
KernelFunction = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Machine:
    """f_c(x) = coefficients_c . phi(x) + intercept_c, with one f for two classes and one per class for more.

    phi(x) is x (`'linear'`), or the kernel of x with the `support` rows, which are stored transposed, (columns, rows).
    With `'precomputed'` the caller brings kernel values against the training rows and `support_rows` picks columns.

    >>> machine = Machine("linear", np.array([[1.0, -1.0]]), np.array([0.5]))
    >>> machine.scores(np.array([[3.0, 1.0]]))
    array([[2.5]])
    """

    kind: Literal["linear", "rbf", "callable", "precomputed"]
    coefficients: Floats
    intercepts: Floats
    support: Floats | None = None
    support_rows: Ints | None = None
    gamma: float = 1.0

    def check_state(self) -> None:
        """A file whose scores, coefficients and support rows do not fit is refused: compiled loops follow their sizes."""
        if self.coefficients.ndim != 2 or self.intercepts.shape != self.coefficients.shape[:1]:
            raise ModelFileError(
                f"The model file's machine needs an intercept per score; got {self.intercepts.shape} for coefficients of "
                f"shape {self.coefficients.shape}."
            )
        if self.kind == "precomputed":
            got = None if self.support_rows is None else self.support_rows.shape
        else:
            got = None if self.support is None else self.support.shape[1:]
        if self.kind != "linear" and got != self.coefficients.shape[1:]:
            raise ModelFileError(
                f"The model file's machine needs {self.coefficients.shape[1]} support rows; got {got and got[0]}."
            )

    @property
    def n_columns(self) -> int | None:
        """Columns of the rows it scores; None where those are kernel values."""
        if self.kind == "linear":
            return self.coefficients.shape[1]
        return None if self.support is None else len(self.support)

    def scores(self, rows: Floats, kernel: KernelFunction | None = None) -> Floats:
        """f of each row, shape (rows, scores); the same bits for a row in whatever batch it comes."""
        rows = np.ascontiguousarray(rows, dtype=np.float64)
        out = np.empty((len(rows), len(self.coefficients)))
        if self.kind == "rbf" and self.support is not None:
            kernels.radial_scores(rows, self.support, self.gamma, self.coefficients, self.intercepts, out)
            return out
        kernels.linear_scores(self._features(rows, kernel), self.coefficients, self.intercepts, out)
        return out

    def _features(self, rows: Floats, kernel: KernelFunction | None) -> Floats:
        if self.kind == "precomputed":
            return np.ascontiguousarray(rows[:, self.support_rows])
        if self.kind == "callable":
            assert kernel is not None
            assert self.support is not None
            support = np.ascontiguousarray(self.support.T)
            grams = [np.asarray(kernel(rows[i : i + 1], support), dtype=np.float64) for i in range(len(rows))]
            return np.ascontiguousarray(np.vstack(grams)) if grams else np.empty((0, len(support)))
        return rows


def best_class(scores: Floats) -> Ints:
    """Code of the class with the best score, for scores as `Machine.scores` gives them.

    >>> best_class(np.array([[-0.5], [0.0], [2.0]])), best_class(np.array([[0.1, 0.7, 0.2]]))
    (array([0, 0, 1]), array([1]))
    """
    return (scores[:, 0] > 0).astype(np.int64) if scores.shape[1] == 1 else np.argmax(scores, axis=1)
