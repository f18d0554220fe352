"""The parameters of a mixed field, and what can be read off them (F2).

Legend: m numbers (s, t), n categories (j, k) with L_j states, T states in all; u a standardised clean row, d its
one-hot categories.

| equation | where |
|---|---|
| (F-1) log p(u, v) up to log Z | `log_density` |
| (F-3) number given the rest | `number_conditionals` |
| (F-4) category given the rest | `category_fields` |
| (F-17) repair of an indefinite B | `make_definite` |
| edges of the graph, F1.2 | `find_edges` |

Each unordered pair is one parameter: `B` and `Phi` are symmetric, and the half of (F-1) lets `Phi_jk` enter (F-4) once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldseam.errors import ModelFileError
from goldseam.model_file import check_indices

__all__ = ["Edge", "Layout", "Potentials", "find_edges", "make_definite"]

Array = NDArray[np.float64]
EDGE_FLOOR = 1e-8  # F5.2: pairs below are no edges


@dataclass(frozen=True)
class Layout:
    """Where the states of each category stand in a vector of all T states.

    >>> Layout.of([2, 3]).offsets.tolist(), Layout.of([2, 3]).column_of_state.tolist()
    ([0, 2, 5], [0, 0, 1, 1, 1])
    """

    offsets: NDArray[np.int64]

    @classmethod
    def of(cls, sizes: Any) -> Layout:
        """The layout for categories with so many states each."""
        return cls(np.concatenate([[0], np.cumsum(np.asarray(sizes, dtype=np.int64))]).astype(np.int64))

    @property
    def n_columns(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_states(self) -> int:
        return int(self.offsets[-1])

    @property
    def sizes(self) -> NDArray[np.int64]:
        return np.diff(self.offsets)

    @cached_property
    def column_of_state(self) -> NDArray[np.int64]:
        return np.repeat(np.arange(self.n_columns), self.sizes)

    @cached_property
    def pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """All pairs of categories: the first, the second, and where their blocks start when laid end to end."""
        first, second = np.triu_indices(self.n_columns, 1)
        starts = np.concatenate([[0], np.cumsum(self.sizes[first] * self.sizes[second])])
        return first.astype(np.int64), second.astype(np.int64), starts.astype(np.int64)

    def block(self, column: int) -> slice:
        """The states of one category."""
        return slice(int(self.offsets[column]), int(self.offsets[column + 1]))

    def one_hot(self, codes: NDArray[np.int32]) -> Array:
        """d(v) of every row; a code below 0 gives a row of zeros in its block."""
        out = np.zeros((len(codes), self.n_states))
        for j in range(self.n_columns):
            known = codes[:, j] >= 0
            out[np.flatnonzero(known), self.offsets[j] + codes[known, j]] = 1.0
        return out


@dataclass(frozen=True)
class Potentials:
    """The parameters of (F-1): B (m, m), a (m), R (m, T), h (T), Phi (T, T), and the layout of the states."""

    B: Array
    a: Array
    R: Array
    h: Array
    Phi: Array
    offsets: NDArray[np.int64]

    def check_state(self) -> None:
        """A file whose arrays do not fit together is refused: compiled loops follow the offsets."""
        check_indices("offsets of states", self.offsets, 0, len(self.h) + 1)
        m, T = len(self.a), len(self.h)
        ends = self.offsets[[0, -1]].tolist() if len(self.offsets) else []
        if ends != [0, T] or (np.diff(self.offsets) < 1).any():
            raise ModelFileError(f"The model file's offsets of states must rise from 0 to {T}; got {ends}.")
        shapes = {"B": (m, m), "R": (m, T), "Phi": (T, T)}
        for name, shape in shapes.items():
            if getattr(self, name).shape != shape:
                raise ModelFileError(f"The model file's {name} must be {shape}; got {getattr(self, name).shape}.")

    @cached_property
    def layout(self) -> Layout:
        return Layout(self.offsets)

    @property
    def n_numbers(self) -> int:
        return len(self.a)

    @property
    def arrays(self) -> tuple[Array, Array, Array, Array, Array, NDArray[np.int64]]:
        """All of them, as the compiled loops take them."""
        return self.B, self.a, self.R, self.h, self.Phi, self.offsets

    def log_density(self, u: Array, codes: NDArray[np.int32]) -> Array:
        """(F-1) without log Z, for every row."""
        d = self.layout.one_hot(codes)
        quadratic = -0.5 * np.einsum("is,st,it->i", u, self.B, u) + 0.5 * np.einsum("ip,pq,iq->i", d, self.Phi, d)
        return quadratic + u @ self.a + d @ self.h + np.einsum("is,sp,ip->i", u, self.R, d)

    def number_conditionals(self, u: Array, codes: NDArray[np.int32]) -> tuple[Array, Array]:
        """(F-3): mean and variance of every number given the rest of its row."""
        diagonal = np.diag(self.B)
        drive = self.a + self.layout.one_hot(codes) @ self.R.T - u @ self.B + u * diagonal
        return drive / diagonal, 1.0 / diagonal

    def category_fields(self, u: Array, codes: NDArray[np.int32]) -> Array:
        """The exponents z of (F-4) for every state of every row."""
        return self.h + u @ self.R + self.layout.one_hot(codes) @ self.Phi

    def centred(self) -> Potentials:
        """The same field with blocks of R and Phi that sum to zero: what may be compared between fits (F2)."""
        a, h, R, Phi = self.a.copy(), self.h.copy(), self.R.copy(), self.Phi.copy()
        blocks = [self.layout.block(j) for j in range(self.layout.n_columns)]
        for b in blocks:
            mean = R[:, b].mean(axis=1, keepdims=True)
            R[:, b] -= mean
            a += mean[:, 0]
        for j, b in enumerate(blocks):
            for c in blocks[j + 1 :]:
                block = Phi[b, c]
                rows, columns, all_ = block.mean(1, keepdims=True), block.mean(0, keepdims=True), block.mean()
                h[b] += rows[:, 0] - all_
                h[c] += columns[0]
                Phi[b, c] = block - rows - columns + all_
                Phi[c, b] = Phi[b, c].T
        return Potentials(self.B, a, R, h, Phi, self.offsets)


@dataclass(frozen=True)
class Edge:
    """A pair of columns that speak to each other: kind `cc`, `cd` or `dd`, and how strongly (F1.2)."""

    first: str
    second: str
    kind: str
    strength: float


def find_edges(field: Potentials, numbers: tuple[str, ...], categories: tuple[str, ...]) -> tuple[Edge, ...]:
    """All edges of the field, strongest first within each kind."""
    scale = np.sqrt(np.diag(field.B))
    blocks = [field.layout.block(j) for j in range(field.layout.n_columns)]
    found = [
        Edge(numbers[s], numbers[t], "cc", float(abs(field.B[s, t]) / (scale[s] * scale[t])))
        for s in range(len(numbers))
        for t in range(s + 1, len(numbers))
    ]
    found += [
        Edge(name, categories[j], "cd", float(np.linalg.norm(field.R[s, b])))
        for s, name in enumerate(numbers)
        for j, b in enumerate(blocks)
    ]
    found += [
        Edge(categories[j], categories[k], "dd", float(np.linalg.norm(field.Phi[blocks[j], blocks[k]])))
        for j in range(len(blocks))
        for k in range(j + 1, len(blocks))
    ]
    return tuple(sorted((e for e in found if e.strength > EDGE_FLOOR), key=lambda e: (e.kind, -e.strength)))


def make_definite(B: Array) -> tuple[Array, bool]:
    """(F-17): shrink the off-diagonal of B until it is positive definite; True when that was needed."""
    scale = np.sqrt(np.diag(B))
    C = B / np.outer(scale, scale)
    least = float(np.linalg.eigvalsh(C)[0]) if len(C) else 1.0
    if least >= 0.001:
        return B, False
    theta = (1 - 0.05) / (1 - least)
    eye = np.eye(len(C))
    return (eye + theta * (C - eye)) * np.outer(scale, scale), True
