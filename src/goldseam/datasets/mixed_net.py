"""A sparse random field over numbers and categories, sampled row by row (F11.1).

| equation | function |
|---|---|
| (F-1) with the parameters of F11.1 | `draw_field` |
| (F-3), (F-4), 400 sweeps of independent chains | `sample_field` |
| the two-class study | `make_mixed_net` |

A class shifts the coupling R of numbers and categories by delta. `shifted='nonzero'` shifts the non-zero entries of the
centred blocks, the reading under which the study works; `shifted='all'` shifts all of them, a pure shift of means.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from goldseam.datasets.dataset import Dataset
from goldseam.datasets.flat import check_choice
from goldseam.schema import Kind

__all__ = ["MixedField", "MixedNetStudy", "draw_field", "make_mixed_net", "sample_field"]

N_NUMBERS, N_CATEGORIES, N_STATES = 15, 10, 3
EDGE_PROBABILITY = 0.15


@dataclass(frozen=True)
class MixedField:
    """Parameters of (F-1): B (m, m), a (m), R (m, T), h (T), Phi (T, T); T states over all categories.

    `edges_cc` (m, m), `edges_cd` (m, n) and `edges_dd` (n, n) are True where there is an edge.
    """

    B: NDArray[np.float64]
    a: NDArray[np.float64]
    R: NDArray[np.float64]
    h: NDArray[np.float64]
    Phi: NDArray[np.float64]
    edges_cc: NDArray[np.bool_]
    edges_cd: NDArray[np.bool_]
    edges_dd: NDArray[np.bool_]

    def shifted(self, delta: float, entries: str) -> MixedField:
        """The field of a class: delta added to R on its edges (see the module's text)."""
        blocks = np.repeat(self.edges_cd, N_STATES, axis=1)
        return replace(self, R=self.R + delta * (blocks if entries == "all" else blocks & (self.R != 0)))


@dataclass(frozen=True)
class MixedNetStudy:
    """The rows of both classes in random order (target 0, 1) and the field before the classes' shifts.

    `dataset.splits` has 'train' (two thirds of the rows, the first ones) and 'test'.
    """

    dataset: Dataset
    field: MixedField


def make_mixed_net(
    random_state: int | np.random.Generator | None = None,
    *,
    delta: float = 0.25,
    shifted: str = "nonzero",
    n_per_class: int = 750,
    n_sweeps: int = 400,
) -> MixedNetStudy:
    """15 continuous and 10 three-state columns, two classes with R + delta and R - delta.

    >>> study = make_mixed_net(0, n_per_class=3, n_sweeps=2)
    >>> study.dataset, study.field.R.shape
    (Dataset('mixed-net', 6 rows, 25 columns), (15, 30))
    """
    check_choice("shifted", shifted, ("nonzero", "all"))
    rng = np.random.default_rng(random_state)
    field = draw_field(rng)
    parts = [sample_field(field.shifted(sign * delta, shifted), n_per_class, rng, n_sweeps) for sign in (1, -1)]
    numbers, codes = (np.vstack(arrays) for arrays in zip(*parts, strict=True))
    order = rng.permutation(2 * n_per_class)
    target = np.repeat([0, 1], n_per_class)[order]
    n_train = round(2 * n_per_class * 2 / 3)
    splits = {"train": np.arange(n_train), "test": np.arange(n_train, len(order))}
    return MixedNetStudy(_dataset(numbers[order], codes[order], target, splits), field)


def draw_field(rng: np.random.Generator) -> MixedField:
    """A random graph with the couplings of F11.1."""
    edges_cc = _symmetric_edges(rng, N_NUMBERS)
    edges_cd = rng.random((N_NUMBERS, N_CATEGORIES)) < EDGE_PROBABILITY
    edges_dd = _symmetric_edges(rng, N_CATEGORIES)
    couplings = rng.permuted(np.tile([1.0, 0.0, -1.0], (N_NUMBERS, N_CATEGORIES, 1)), axis=2)
    agreement = 0.5 + np.eye(N_STATES)
    coupled = edges_cc.astype(np.float64)
    return MixedField(
        B=4.0 * coupled + np.diag(1.0 + 4.0 * coupled.sum(axis=1)),
        a=np.ones(N_NUMBERS),
        R=(couplings * edges_cd[:, :, None]).reshape(N_NUMBERS, -1),
        h=np.zeros(N_CATEGORIES * N_STATES),
        Phi=np.asarray(np.kron(edges_dd, agreement), dtype=np.float64),
        edges_cc=edges_cc,
        edges_cd=edges_cd,
        edges_dd=edges_dd,
    )


def _symmetric_edges(rng: np.random.Generator, n: int) -> NDArray[np.bool_]:
    above = np.triu(rng.random((n, n)) < EDGE_PROBABILITY, 1)
    return above | above.T


def sample_field(
    field: MixedField, n_rows: int, rng: np.random.Generator, n_sweeps: int = 400
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Numbers (n_rows, m) and codes (n_rows, n) by Gibbs sampling, one chain per row, all columns in turn."""
    n_numbers, n_categories = field.R.shape[0], field.R.shape[1] // N_STATES
    u = np.zeros((n_numbers, n_rows))
    codes = rng.integers(0, N_STATES, (n_categories, n_rows))
    d = _one_hot(codes)
    precision = np.diag(field.B)
    others = field.B - np.diag(precision)
    for _ in range(n_sweeps):
        noise = rng.standard_normal(u.shape) / np.sqrt(precision)[:, None]
        pull = field.a[:, None] + field.R @ d
        for s in range(n_numbers):  # (F-3)
            u[s] = (pull[s] - others[s] @ u) / precision[s] + noise[s]
        uniform = rng.random(codes.shape)
        push = field.h[:, None] + field.R.T @ u
        for j in range(n_categories):  # (F-4)
            block = slice(j * N_STATES, (j + 1) * N_STATES)
            d[block], codes[j] = _draw_state(push[block] + field.Phi[block] @ d, uniform[j])
    return u.T.copy(), codes.T.copy()


def _one_hot(codes: NDArray[np.int64]) -> NDArray[np.float64]:
    states = np.arange(N_STATES)[None, :, None]
    return (codes[:, None, :] == states).astype(np.float64).reshape(-1, codes.shape[1])


def _draw_state(
    logits: NDArray[np.float64], uniform: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    weights = np.cumsum(np.exp(logits - logits.max(axis=0)), axis=0)
    state = (uniform * weights[-1] >= weights[:-1]).sum(axis=0)
    return (np.arange(N_STATES)[:, None] == state).astype(np.float64), state


def _dataset(
    numbers: NDArray[np.float64],
    codes: NDArray[np.int64],
    target: NDArray[np.int64],
    splits: dict[str, NDArray[np.int64]],
) -> Dataset:
    columns: dict[str, NDArray[np.generic]] = {f"u{s}": numbers[:, s] for s in range(numbers.shape[1])}
    columns |= {f"v{j}": np.array(["a", "b", "c"])[codes[:, j]] for j in range(codes.shape[1])}
    kinds = {name: Kind.CONTINUOUS if name.startswith("u") else Kind.CATEGORICAL for name in columns}
    return Dataset("mixed-net", pl.DataFrame(columns), target, kinds, "Generated, F11.1.", splits=splits)
