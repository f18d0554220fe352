"""How far inference has come: the log evidence of every row, sweep by sweep (F5.4).

| equation | where |
|---|---|
| (F-23) numbers, with the categories' log Z_v | `_published` |
| (F-24) naive log Z_v | `_naive` |
| (F-24) Bethe log Z_v | `_bethe` |
| the same with the numbers integrated out | `_integrated` |

The naive value is a lower bound and never falls. The Bethe value is no bound; it is exact on trees, and elsewhere it
rises and flattens as the beliefs settle. The prior's -log Z is left out throughout. These are also the plain twins of
the compiled loops: no lanes, logarithms instead of products, all rows of a pattern side by side.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from goldseam.errors import ParameterError
from goldseam.field.beliefs import Codes, Noise, cell_precision, groups_of
from goldseam.field.inference import FLIP_FLOOR, SIGMA_FLOOR
from goldseam.field.potentials import EDGE_FLOOR, Potentials

__all__ = ["METHODS", "Trace", "trace"]

Array = NDArray[np.float64]
METHODS = ("lbp", "structured", "mean-field")
MESSAGE_FLOOR = np.log(1e-12)  # F5.2
NEVER = -1000.0  # log probability of a state that an observed category without noise rules out
SWEEPS = 2  # per outer step of the published loops (F5.1)


@dataclass(frozen=True)
class Trace:
    """Log evidence (steps, N) of every row after each sweep ("lbp") or outer step, and the last beliefs Q (N, T)."""

    values: Array
    Q: Array


@dataclass(frozen=True)
class _Pair:
    """An edge between two categories: where their states stand and the log potential."""

    j: slice
    k: slice
    potential: Array


def trace(
    field: Potentials,
    numbers: Array,
    codes: Codes,
    noise: Noise,
    *,
    method: str = "lbp",
    steps: int = 6,
    frequencies: Array | None = None,
) -> Trace:
    """Follow the inference of every row; arguments as in `inference.infer`."""
    if method not in METHODS:
        raise ParameterError(f"A trace exists for {', '.join(METHODS)}; got {method!r}. Hint: gibbs has no bound.")
    if method != "lbp":
        noise = Noise(np.maximum(noise.sigma, SIGMA_FLOOR), np.maximum(noise.flip, FLIP_FLOOR))
    out = Trace(np.empty((steps, len(numbers))), np.empty((len(numbers), field.layout.n_states)))
    _, group, patterns = groups_of(cell_precision(numbers, noise))
    emission = _emission(field, codes, noise)
    p0 = np.ones(field.layout.n_states) if frequencies is None else frequencies
    for g, precision in enumerate(patterns):
        rows = np.flatnonzero(group == g)
        x, log_p = np.nan_to_num(numbers[rows]), emission[rows]
        if method == "lbp":
            values, Q = _integrated(field, x, log_p, precision, steps)
        else:
            values, Q = _published(field, x, log_p, precision, p0, method == "mean-field", steps)
        out.values[:, rows], out.Q[rows] = values, Q
    return out


def _emission(field: Potentials, codes: Codes, noise: Noise) -> Array:
    """log P(y | v) of (F-6) for every state; 0 where blank."""
    layout = field.layout
    flip = np.clip(noise.flip, 1e-4, 1 - 1e-4)
    hit = np.where(noise.flip > 0, np.log1p(-flip), 0.0)
    miss = np.where(noise.flip > 0, np.log(flip / np.maximum(layout.sizes - 1, 1)), NEVER)
    column = layout.column_of_state
    seen = codes[:, column] >= 0
    return np.where(seen, np.where(layout.one_hot(codes) > 0, hit[column], miss[column]), 0.0)


def _integrated(field: Potentials, x: Array, log_p: Array, precision: Array, steps: int) -> tuple[Array, Array]:
    """Belief propagation over the categories with the numbers integrated out; rows of one pattern of precisions."""
    clamped = np.isinf(precision)
    free, own = ~clamped, np.where(clamped, 0.0, precision)
    V = np.linalg.inv((field.B + np.diag(own))[np.ix_(free, free)])
    VR = V @ field.R[free]
    fixed = np.where(clamped, x, 0.0)
    drive = (field.a - fixed @ field.B + own * x)[:, free]
    mean = fixed.copy()
    mean[:, free] = drive @ V
    value = -0.5 * np.einsum("is,st,it->i", fixed, field.B, fixed) + fixed @ field.a
    value = value + 0.5 * np.einsum("is,st,it->i", drive, V, drive)
    value = value + 0.5 * np.linalg.slogdet(V)[1] + 0.5 * free.sum() * np.log(2 * np.pi)
    value = value - _own_terms(x**2, own)
    half = 0.5 * np.sum(field.R[free] * VR, axis=0)
    pairs = _pairs(field, field.Phi + field.R[free].T @ VR)
    z = field.h + half + mean @ field.R + log_p
    messages = _uniform(pairs, len(x))
    values = np.empty((steps, len(x)))
    for step in range(steps):
        b = _sweep(z, pairs, messages)
        values[step] = value + _bethe(field, b, pairs, messages)
    return values, _normalised(field, b)


def _published(
    field: Potentials, x: Array, log_p: Array, precision: Array, p0: Array, naive: bool, steps: int
) -> tuple[Array, Array]:
    """(F-18) to (F-20) with (F-23) after every step; rows of one pattern of precisions."""
    V = np.linalg.inv(field.B + np.diag(precision))
    pairs = _pairs(field, field.Phi)
    messages = _uniform(pairs, len(x))
    Q = _normalised(field, log_p + np.log(np.maximum(p0, 1e-6)))
    fixed = 0.5 * np.linalg.slogdet(V)[1] + 0.5 * len(V) * (np.log(2 * np.pi) + 1) - 0.5 * np.sum(field.B * V)
    values = np.empty((steps, len(x)))
    for step in range(steps):
        mu = (field.a + precision * x + Q @ field.R.T) @ V
        z = field.h + mu @ field.R + log_p
        value = fixed - 0.5 * np.einsum("is,st,it->i", mu, field.B, mu) + mu @ field.a
        value = value - _own_terms((x - mu) ** 2 + np.diag(V), precision)
        if naive:
            Q = _naive_sweeps(field, z, Q)
            values[step] = value + _naive(field, z, Q)
        else:
            for _ in range(SWEEPS):
                b = _sweep(z, pairs, messages)
            Q = _normalised(field, b)
            values[step] = value + _bethe(field, b, pairs, messages)
    return values, Q


def _own_terms(squares: Array, precision: Array) -> Array:
    """Sum over the observed numbers with noise of ½ log 2 pi sigma² + square/(2 sigma²)."""
    noisy = precision > 0
    o = precision[noisy]
    return np.asarray(0.5 * np.sum(squares[:, noisy] * o + np.log(2 * np.pi / o), axis=1))


def _pairs(field: Potentials, potential: Array) -> list[_Pair]:
    blocks = [field.layout.block(j) for j in range(field.layout.n_columns)]
    pairs = [_Pair(b, c, potential[b, c]) for i, b in enumerate(blocks) for c in blocks[i + 1 :]]
    return [pair for pair in pairs if np.ptp(pair.potential) > EDGE_FLOOR]


def _uniform(pairs: list[_Pair], n_rows: int) -> list[list[Array]]:
    """Log messages of every pair, to j and to k."""
    return [[np.full((n_rows, size), -np.log(size)) for size in pair.potential.shape] for pair in pairs]


def _sweep(z: Array, pairs: list[_Pair], messages: list[list[Array]]) -> Array:
    """One sweep of (F-21) in logarithms; changes the messages and gives log beliefs."""
    b = z.copy()
    for pair, (to_j, to_k) in zip(pairs, messages, strict=True):
        b[:, pair.j] += to_j
        b[:, pair.k] += to_k
    for pair, kept in zip(pairs, messages, strict=True):
        for to, source, target, potential in (
            (1, pair.j, pair.k, pair.potential),
            (0, pair.k, pair.j, pair.potential.T),
        ):
            cavity = b[:, source] - kept[1 - to]
            new = _log_sum(cavity[:, :, None] + potential, axis=1)
            new = np.maximum(new - _log_sum(new, axis=1)[:, None], MESSAGE_FLOOR)
            b[:, target] += new - kept[to]
            kept[to] = new
    return b


def _bethe(field: Potentials, b: Array, pairs: list[_Pair], messages: list[list[Array]]) -> Array:
    """(F-24): Bethe log Z_v from log beliefs b = z + messages."""
    mass = {
        block.start: _log_sum(b[:, block], axis=1) for block in map(field.layout.block, range(field.layout.n_columns))
    }
    value = np.sum(list(mass.values()), axis=0) if mass else np.zeros(len(b))
    for pair, (to_j, to_k) in zip(pairs, messages, strict=True):
        joint = (b[:, pair.j] - to_j)[:, :, None] + pair.potential + (b[:, pair.k] - to_k)[:, None, :]
        value = value + _log_sum(joint.reshape(len(b), -1), axis=1) - mass[pair.j.start] - mass[pair.k.start]
    return np.asarray(value)


def _naive_sweeps(field: Potentials, z: Array, Q: Array) -> Array:
    """(F-22), columns in turn."""
    Q = Q.copy()
    for _ in range(SWEEPS):
        for j in range(field.layout.n_columns):
            block = field.layout.block(j)
            own = z[:, block] + Q @ field.Phi[:, block]
            Q[:, block] = np.exp(own - _log_sum(own, axis=1)[:, None])
    return Q


def _naive(field: Potentials, z: Array, Q: Array) -> Array:
    """(F-24): naive log Z_v."""
    entropy = -np.sum(Q * np.log(np.maximum(Q, 1e-300)), axis=1)
    return np.asarray(np.sum(Q * z, axis=1) + 0.5 * np.einsum("ip,pq,iq->i", Q, field.Phi, Q) + entropy)


def _normalised(field: Potentials, b: Array) -> Array:
    """Beliefs from their logarithms, category by category."""
    Q = np.empty_like(b)
    for j in range(field.layout.n_columns):
        block = field.layout.block(j)
        Q[:, block] = np.exp(b[:, block] - _log_sum(b[:, block], axis=1)[:, None])
    return Q


def _log_sum(values: Array, axis: int) -> Array:
    return np.asarray(np.logaddexp.reduce(values, axis=axis))
