"""What the field's benchmarks share: the four real sets, their damage (F11.2), classifiers and scores."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from goldseam.corruption.protocols import mixed_protocol, mixed_protocol_seed
from goldseam.datasets import load_adult, load_australian, load_credit_approval, load_german
from goldseam.field.emission import Atoms, empirical
from goldseam.field.inference import Noise, cell_precision, infer
from goldseam.field.learning import fit_field
from goldseam.field.objective import Rows
from goldseam.field.potentials import Layout
from goldseam.schema import Kind

SETS = ("credit-approval", "australian", "german", "adult")
PENALTY = {"credit-approval": 0.4, "australian": 0.4, "german": 0.8, "adult": 0.4}  # F4.5, F4.6
NUMBERS = {
    "adult": "age fnlwgt education_num capital_gain capital_loss hours_per_week",
    "credit-approval": "A2 A3 A8 A11 A14 A15",
    "australian": "A2 A3 A7 A10 A13 A14",
    "german": "a2 a5 a8 a11 a13 a16 a18",
}


@dataclass(frozen=True)
class Split:
    """Standardised numbers and codes of training and test rows, with labels 0/1 and the numbers of states."""

    name: str
    numbers: np.ndarray
    codes: np.ndarray
    labels: np.ndarray
    test_numbers: np.ndarray
    test_codes: np.ndarray
    test_labels: np.ndarray
    sizes: np.ndarray
    columns: tuple[str, ...]

    @property
    def layout(self) -> Layout:
        return Layout.of(self.sizes)

    @property
    def rows(self) -> Rows:
        return Rows.of(self.numbers, self.codes, self.layout)


@cache
def _parts(name: str):
    """Frames, labels and kinds of the complete training and test rows (F11.2)."""
    if name == "adult":
        parts = [load_adult("train").complete(), load_adult("test").complete()]
    else:
        whole = {"credit-approval": load_credit_approval, "australian": load_australian, "german": load_german}[name]()
        cut = 667 if name == "german" else 460
        parts = [whole.take(np.arange(cut)).complete(), whole.take(np.arange(cut, whole.n_rows)).complete()]
    return tuple(p.frame() for p in parts), tuple(p.target for p in parts), parts[0].kinds


def load_frames(name: str):
    """Training and test rows as frames."""
    return _parts(name)[0]


@cache
def load(name: str) -> Split:
    """One of the sets, split and coded as in F11.2 (levels of both parts)."""
    frames, labels, kinds = _parts(name)
    numeric = _number_columns(name, kinds, frames[0].columns)
    rest = [c for c in frames[0].columns if c not in numeric]
    X, Z = (f.select(numeric).to_numpy().astype(float) for f in frames)
    mean, sd = X.mean(axis=0), X.std(axis=0)
    levels = [sorted({str(v) for f in frames for v in f[c].to_list()}) for c in rest]
    codes = [
        np.column_stack([[table.index(str(v)) for v in f[c].to_list()] for c, table in zip(rest, levels, strict=True)])
        for f in frames
    ]
    names = sorted({str(v) for v in labels[0]})
    y = [np.array([str(v) == names[1] for v in part], dtype=int) for part in labels]
    return Split(
        name, (X - mean) / sd, codes[0].astype(np.int32), y[0], (Z - mean) / sd, codes[1].astype(np.int32), y[1],
        np.array([len(v) for v in levels]), (*numeric, *rest),
    )  # fmt: skip


def _number_columns(name, kinds, columns) -> list[str]:
    """Numbers by F11.2; small integers of german count as numbers there."""
    numeric = (Kind.CONTINUOUS, Kind.INTEGER)
    by_kind = [c for c in columns if Kind(kinds[c]) in numeric]
    wanted = len(NUMBERS[name].split())
    if len(by_kind) == wanted:
        return by_kind
    listed = NUMBERS[name].split()
    if all(c in columns for c in listed):
        return listed
    positions = [int(c[1:]) - 1 for c in listed]
    return [columns[p] for p in positions]


@cache
def fitted(name: str):
    """The field of a set at the penalty of F11.2, its atoms and the training frequencies."""
    split = load(name)
    learnt = fit_field(split.rows, "block", PENALTY[name])
    return learnt, Atoms.of(split.numbers, split.rows.weights), split.rows.frequencies


def damaged(split: Split, tau: float, rho: float, repeat: int, rows=slice(None)):
    """Test rows after noise, flips and gaps (F11.2)."""
    rng = np.random.default_rng(mixed_protocol_seed(repeat, tau, rho))
    hurt = mixed_protocol(split.test_numbers[rows], split.test_codes[rows], split.sizes, noise=tau, gaps=rho, rng=rng)
    return hurt.numbers, hurt.codes


def restore(name: str, X, y, tau: float, method: str = "lbp"):
    """Beliefs with the noise known, and the numbers by the training values (F7)."""
    learnt, atoms, p0 = fitted(name)
    noise = Noise(np.full(X.shape[1], tau), np.full(y.shape[1], tau))
    beliefs = infer(learnt.field, X, y, noise, method=method, frequencies=p0)
    return beliefs, empirical(atoms, X, cell_precision(X, noise), beliefs)


def hard(split: Split, Q) -> np.ndarray:
    """The most probable state of every category."""
    blocks = [split.layout.block(j) for j in range(len(split.sizes))]
    return np.column_stack([Q[:, b].argmax(axis=1) for b in blocks]).astype(np.int32)


def dummies(split: Split, numbers, codes) -> np.ndarray:
    return np.column_stack([numbers, split.layout.one_hot(codes)])


def standard_error(values) -> float:
    values = np.asarray(values, dtype=float)
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")
