"""Columns that determine each other: allowed in a field, but they slow its learning (F1.3, F4.6).

Two columns determine each other when every value of one goes with a single value of the other, both ways, as adult's
education and education_num do, or when one number is a linear function of another. Two numbers are compared over rows
that differ: in a table that repeats whole rows any two numbers go together.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from goldseam.schema import Blocks, Schema

__all__ = ["dependent_pairs"]

MAX_ROWS = 4000  # rows that are looked at, evenly spaced
REPEATS = 2  # every value must be seen so often on average: unique values determine everything
LINEAR = 1e-9  # a correlation this close to one
Ids = NDArray[np.int64]


def dependent_pairs(blocks: Blocks, schema: Schema) -> list[tuple[str, str]]:
    """Names of the pairs of modelled columns that determine each other, in table order.

    >>> from goldseam.schema import Column, Kind
    >>> schema = Schema((Column("word", Kind.CATEGORICAL, ("a", "b")), Column("number", Kind.CONTINUOUS)))
    >>> dependent_pairs(Blocks(np.array([[1.5], [7.0]] * 4), np.array([[0], [1]] * 4, dtype=np.int32)), schema)
    [('word', 'number')]
    """
    part = blocks.take(slice(None, None, max(1, -(-len(blocks) // MAX_ROWS))))
    positions = list(schema.number_positions + schema.category_positions)
    ids = [_ids(part.numbers[:, s]) for s in range(part.numbers.shape[1])]
    ids += [part.codes[:, j].astype(np.int64) for j in range(part.codes.shape[1])]
    m = part.numbers.shape[1]
    once = np.unique(np.stack(ids, axis=1), axis=0, return_index=True)[1] if ids else np.zeros(0, dtype=np.int64)

    def dependent(a: int, b: int) -> bool:
        if b >= m:
            return _one_to_one(ids[a], ids[b])
        return _one_to_one(ids[a][once], ids[b][once]) or _linear(part.numbers[:, a], part.numbers[:, b])

    pairs = [(a, b) for a in range(len(ids)) for b in range(a + 1, len(ids)) if dependent(a, b)]
    found = [sorted((positions[a], positions[b])) for a, b in pairs]
    return [(schema.names[a], schema.names[b]) for a, b in sorted(found)]


def _ids(values: NDArray[np.float64]) -> Ids:
    """Equal values as equal whole numbers; -1 where blank."""
    _, ids = np.unique(values, return_inverse=True)
    return np.where(np.isnan(values), -1, ids.reshape(-1)).astype(np.int64)


def _one_to_one(a: Ids, b: Ids) -> bool:
    """Whether each value of one goes with a single value of the other, with values that repeat."""
    both = (a >= 0) & (b >= 0)
    a, b = a[both], b[both]
    n_a, n_b = len(np.unique(a)), len(np.unique(b))
    if n_a != n_b or n_a < 2 or len(a) < REPEATS * n_a:
        return False
    return len(np.unique(a * (b.max() + 1) + b)) == n_a


def _linear(a: NDArray[np.float64], b: NDArray[np.float64]) -> bool:
    both = ~(np.isnan(a) | np.isnan(b))
    if both.sum() < 4:
        return False
    a, b = (v[both] / np.abs(v[both]).max(initial=1e-300) for v in (a, b))
    a, b = a - a.mean(), b - b.mean()
    spread = float(a @ a) * float(b @ b)
    return spread > 0 and float(a @ b) ** 2 >= (1 - LINEAR) * spread
