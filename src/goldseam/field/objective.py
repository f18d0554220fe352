"""What learning minimises: the penalised pseudo-likelihood of a field and its gradient (F4.1, F4.2).

| equation | where |
|---|---|
| (F-7) penalised objective | `Objective.total` |
| (F-8) penalty level and weights | `penalty_level`, `Objective.group_weights` |
| (F-9), (F-12) block form | `block_form` |
| (F-10), (F-13) pseudo form | `pseudo_form` |
| (F-11), (F-14) categories | `learning_kernels.conditional_fit` |

The optimiser sees one vector x: diagonal and upper triangle of B, a, R, h and the upper blocks of Phi, each pair
once, so the plain inner product of two such vectors is the one (F-15) asks for. Row means are weighted means
throughout (F4.8).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from goldseam.field.learning_kernels import conditional_fit
from goldseam.field.potentials import Layout, Potentials

__all__ = ["Objective", "ObjectiveKind", "Rows", "effective_rows", "penalty_level"]

Array = NDArray[np.float64]
ObjectiveKind = Literal["block", "pseudo"]


@dataclass(frozen=True)
class Rows:
    """Complete rows to learn from: standardised numbers, codes without gaps, weights that sum to one."""

    numbers: Array
    codes: NDArray[np.int32]
    weights: Array
    layout: Layout

    @classmethod
    def of(cls, numbers: Array, codes: NDArray[np.int32], layout: Layout, weights: Array | None = None) -> Rows:
        """Rows with weights brought to sum one; equal weights when none are given."""
        weights = np.full(len(numbers), 1.0) if weights is None else np.asarray(weights, dtype=float)
        return cls(np.ascontiguousarray(numbers), np.ascontiguousarray(codes), weights / weights.sum(), layout)

    def take(self, rows: NDArray[np.intp]) -> Rows:
        """Some of the rows, weighted among themselves."""
        return Rows.of(self.numbers[rows], self.codes[rows], self.layout, self.weights[rows])

    @cached_property
    def frequencies(self) -> Array:
        """p0: weighted share of every state."""
        states = (self.codes + self.layout.offsets[:-1]).ravel()
        weights = np.repeat(self.weights, self.layout.n_columns)
        return np.bincount(states, weights, minlength=self.layout.n_states).astype(float)


def effective_rows(weights: Array) -> float:
    """(sum w)^2 / sum w^2, which stands for N when rows are weighted (F4.8).

    >>> effective_rows(np.array([1.0, 1.0, 0.0]))
    2.0
    """
    return float(weights.sum() ** 2 / np.square(weights).sum())


def penalty_level(c: float, n_columns: int, n_rows: float) -> float:
    """lambda of (F-8)."""
    return float(c * np.sqrt(np.log(max(n_columns, 2)) / n_rows))


class Objective:
    """f of (F-9) or (F-10), its gradient, and the penalty of (F-7), as functions of one vector."""

    def __init__(self, rows: Rows, kind: ObjectiveKind, penalty: float) -> None:
        self.rows, self.kind, self.penalty = rows, kind, penalty
        m, layout = rows.numbers.shape[1], rows.layout
        self.m, self.T = m, layout.n_states
        self._upper = np.triu_indices(m, 1)
        column = layout.column_of_state
        first, second = np.nonzero(column[:, None] < column[None, :])
        self._pairs = (first, second)
        sizes = [m, len(self._upper[0]), m, m * self.T, self.T, len(first)]
        self._cuts = np.cumsum(sizes)[:-1]
        self.size = int(sum(sizes))
        self.first_pair = int(self._cuts[-1])
        self.S = np.einsum("i,is,it->st", rows.weights, rows.numbers, rows.numbers)

    def pack(self, field: Potentials) -> Array:
        """The vector of a field."""
        parts = [np.diag(field.B), field.B[self._upper], field.a, field.R.ravel(), field.h, field.Phi[self._pairs]]
        return np.concatenate(parts)

    def unpack(self, x: Array) -> Potentials:
        """The field of a vector."""
        diagonal, upper, a, R, h, pairs = np.split(x, self._cuts)
        B = np.diag(diagonal)
        B[self._upper] = upper
        B[self._upper[::-1]] = upper
        Phi = np.zeros((self.T, self.T))
        Phi[self._pairs] = pairs
        Phi[self._pairs[::-1]] = pairs
        return Potentials(B, a, np.ascontiguousarray(R.reshape(self.m, self.T)), h, Phi, self.rows.layout.offsets)

    @cached_property
    def groups(self) -> NDArray[np.int64]:
        """For every entry of x the group whose norm is penalised, -1 for none."""
        column, n = self.rows.layout.column_of_state, self.rows.layout.n_columns
        none = np.full(self.m, -1, dtype=np.int64)
        cc = np.arange(len(self._upper[0]))
        cd = len(cc) + (np.arange(self.m)[:, None] * n + column).ravel()
        _, dd = np.unique(column[self._pairs[0]] * n + column[self._pairs[1]], return_inverse=True)
        unpenalised = np.full(self.T, -1, dtype=np.int64)
        return np.concatenate([none, cc, none, cd, unpenalised, len(cc) + self.m * n + dd]).astype(np.int64)

    @cached_property
    def group_weights(self) -> Array:
        """Penalty weight of every group: w_s w_t, w_s g_j, g_j g_k of (F-8)."""
        layout, p = self.rows.layout, self.rows.frequencies
        w = np.sqrt(np.maximum(np.diag(self.S) - (self.rows.weights @ self.rows.numbers) ** 2, 0.0))
        p = np.minimum(p, 1.0)  # the sum of all weights may round to more
        g = np.sqrt(np.bincount(layout.column_of_state, p * (1 - p), minlength=layout.n_columns))
        j, k = np.triu_indices(layout.n_columns, 1)
        return np.concatenate([w[self._upper[0]] * w[self._upper[1]], np.outer(w, g).ravel(), g[j] * g[k]])

    @cached_property
    def diagonal(self) -> slice:
        """Where diag B stands in x."""
        return slice(0, self.m)

    def norms(self, x: Array) -> Array:
        """Norm of every penalised group."""
        inside = self.groups >= 0
        return np.sqrt(np.bincount(self.groups[inside], x[inside] ** 2, minlength=len(self.group_weights)))

    def penalty_of(self, x: Array) -> float:
        """The penalty term of (F-7)."""
        return float(self.penalty * (self.group_weights @ self.norms(x)))

    def total(self, x: Array) -> float:
        """F of (F-7); infinite where B is not positive definite."""
        return self.value(x) + self.penalty_of(x)

    def value(self, x: Array) -> float:
        """f alone; infinite where B is not positive definite."""
        field = self.unpack(x)
        value = self._form(field, self.rows, self.S)[0]
        return value + self._categories(field, 0)[0] if np.isfinite(value) else np.inf

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        """f and its gradient; (inf, nothing useful) where B is not positive definite."""
        field = self.unpack(x)
        value, g_B, g_a, g_R = self._form(field, self.rows, self.S)
        if not np.isfinite(value):
            return np.inf, np.zeros_like(x)
        value_d, g_h, g_R_d, pairs = self._categories(field, 1)
        return value + value_d, np.concatenate([np.diag(g_B), g_B[self._upper], g_a, (g_R + g_R_d).ravel(), g_h, pairs])

    def curvature(self, x: Array) -> Array:
        """Diagonal of the Hessian at x (of the block form; for B its leading part): the scale of every variable
        (F4.6)."""
        field, p = self.unpack(x), self.rows.frequencies
        _, h, R, pairs = self._categories(field, 2)
        V = np.diag(np.linalg.inv(field.B)) if self.m else np.zeros(0)
        cc = V[self._upper[0]] * V[self._upper[1]]
        return np.concatenate([0.5 * V**2, cc, V, (R + V[:, None] * p).ravel(), h, pairs])

    @property
    def _form(self) -> Callable[[Potentials, Rows, Array], tuple[float, Array, Array, Array]]:
        return block_form if self.kind == "block" else pseudo_form

    def _categories(self, field: Potentials, want: int) -> tuple[float, Array, Array, Array]:
        rows, T = self.rows, self.T
        h, R, K = np.zeros(T), np.zeros((self.m, T)), np.zeros((T, T))
        value = conditional_fit(
            rows.numbers, rows.codes, rows.weights, field.offsets, field.h, field.R, field.Phi, h, R, K, want
        )
        return value, h, R, K[self._pairs] + K[self._pairs[::-1]]


def start(rows: Rows) -> Potentials:
    """Independent columns: the start of F4.3."""
    layout, N = rows.layout, effective_rows(rows.weights)
    variances = np.einsum("i,is->s", rows.weights, rows.numbers**2)
    sizes = layout.sizes[layout.column_of_state]
    h = np.log((rows.frequencies * N + 0.5) / (N + 0.5 * sizes))
    m, T = rows.numbers.shape[1], layout.n_states
    B = np.diag(1.0 / np.maximum(variances, 1e-12))
    return Potentials(B, np.zeros(m), np.zeros((m, T)), h, np.zeros((T, T)), layout.offsets)


def drive(field: Potentials, rows: Rows) -> Array:
    """gamma = a + R d(v) of every row."""
    states = rows.codes + rows.layout.offsets[:-1]
    out = np.broadcast_to(field.a, (len(states), field.n_numbers)).copy()
    for j in range(states.shape[1]):
        out += field.R.T[states[:, j]]
    return out


def _spread_over_states(E: Array, rows: Rows) -> Array:
    """E'D: sum of the rows of E in every state."""
    out = np.empty((E.shape[1], rows.layout.n_states))
    states = rows.codes + rows.layout.offsets[:-1]
    for s in range(E.shape[1]):
        weights = np.repeat(E[:, s], states.shape[1])
        out[s] = np.bincount(states.ravel(), weights, minlength=rows.layout.n_states)
    return out


def block_form(field: Potentials, rows: Rows, S: Array) -> tuple[float, Array, Array, Array]:
    """(F-9) without f_D and (F-12): value, dB, da, dR."""
    if field.n_numbers == 0:
        return 0.0, field.B, field.a, np.zeros_like(field.R)
    try:
        root = np.linalg.cholesky(field.B)
    except np.linalg.LinAlgError:
        return np.inf, field.B, field.a, field.R
    V = np.linalg.inv(field.B)
    w, gamma = rows.weights[:, None], drive(field, rows)
    M = gamma @ V
    wE = w * (rows.numbers - M)
    value = -np.log(np.diag(root)).sum() + 0.5 * np.sum(S * field.B)
    value += -np.sum(w * rows.numbers * gamma) + 0.5 * np.sum(w * gamma * M)
    K = S - V - M.T @ (w * M)
    K[np.diag_indices_from(K)] *= 0.5
    return float(value), K, -wE.sum(axis=0), -_spread_over_states(wE, rows)


def pseudo_form(field: Potentials, rows: Rows, S: Array) -> tuple[float, Array, Array, Array]:
    """(F-10) without f_D and (F-13): value, dB, da, dR."""
    if field.n_numbers == 0:
        return 0.0, field.B, field.a, np.zeros_like(field.R)
    diagonal = np.diag(field.B)
    if (diagonal <= 0).any():
        return np.inf, field.B, field.a, field.R
    w = rows.weights[:, None]
    e = rows.numbers @ field.B - drive(field, rows)
    f = e / diagonal
    value = np.sum(w * (-0.5 * np.log(diagonal) + 0.5 * e * f))
    wf = w * f
    K = rows.numbers.T @ wf
    g_B = K + K.T
    g_B[np.diag_indices_from(g_B)] = -0.5 / diagonal + np.diag(K) - 0.5 * np.sum(wf * f, axis=0)
    return float(value), g_B, -wf.sum(axis=0), -_spread_over_states(wf, rows)
