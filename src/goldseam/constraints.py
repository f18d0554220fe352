"""What repairs must respect: bounds, whole numbers, allowed levels, and linear relations between columns.

A constraint is a line of text, so that it can stand in code and in a configuration file alike:

====================================  ==================================================
``0 <= age <= 120``, ``price >= 0``   bounds
``age integer``                       whole numbers
``status in {single, married}``       allowed levels
``total = net + tax``                 a linear relation; ``gross = 1.2*net - 3`` too
====================================  ==================================================

Names that are not plain words are quoted with backticks: ``\\`net amount\\` >= 0``.

Only repaired cells move. A relation is met by moving them in proportion to their variance (the Gaussian projection onto
the plane), within their bounds; what cannot be met is reported as not feasible, and the restorer refuses the repair.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from goldseam.errors import ParameterError
from goldseam.schema import Blocks, Column, Kind, Schema

__all__ = ["Bounds", "Constraints", "Relation", "parse"]

TOLERANCE: Final = 1e-9
TOKEN: Final = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|`(?P<quoted>[^`]+)`|(?P<word>[^\W\d][\w.]*)"
    r"|(?P<sign><=|>=|==|[-+*=<>{},]))"
)


@dataclass(frozen=True)
class Bounds:
    """A column stays within [low, high]."""

    column: str
    low: float
    high: float


@dataclass(frozen=True)
class Allowed:
    """A column takes only these levels."""

    column: str
    levels: tuple[str, ...]


@dataclass(frozen=True)
class Integral:
    """A column takes only whole numbers."""

    column: str


@dataclass(frozen=True)
class Relation:
    """The sum of coefficient times column, plus a constant, is zero."""

    coefficients: tuple[tuple[str, float], ...]
    constant: float
    text: str


Constraint = Bounds | Allowed | Integral | Relation


def parse(text: str) -> Constraint:
    """One line of text as a constraint.

    >>> parse("0 <= age <= 120")
    Bounds(column='age', low=0.0, high=120.0)
    >>> parse("total = net + 2*tax").coefficients
    (('total', 1.0), ('net', -1.0), ('tax', -2.0))
    """
    tokens = _tokens(text)
    words = [token for _, token in tokens]
    if len(tokens) == 2 and words[1] == "integer":
        return Integral(words[0])
    if len(tokens) > 3 and words[1] == "in" and words[2] == "{" and words[-1] == "}":
        return Allowed(words[0], tuple(word for word in words[3:-1] if word != ","))
    comparisons = [word for kind, word in tokens if kind == "sign" and word in ("<=", ">=", "<", ">")]
    if comparisons:
        return _bounds(tokens, text)
    if words.count("=") + words.count("==") == 1:
        return _relation(tokens, text)
    raise _unreadable(text)


def _unreadable(text: str) -> ParameterError:
    return ParameterError(
        f"Constraint {text!r} cannot be read. Hint: write '0 <= age <= 120', 'age integer', "
        "'status in {single, married}' or 'total = net + tax'; quote unusual names with backticks."
    )


def _tokens(text: str) -> list[tuple[str, str]]:
    found, position = [], 0
    while text[position:].strip():
        match = TOKEN.match(text, position)
        if match is None:
            raise _unreadable(text)
        kind = str(match.lastgroup)
        found.append(("word" if kind == "quoted" else kind, match[kind]))
        position = match.end()
    return found


def _bounds(tokens: Sequence[tuple[str, str]], text: str) -> Bounds:
    """`low <= name <= high`, `name <= high` or `low <= name`, in either direction."""
    sides = _linear_sides(tokens, ("<=", ">=", "<", ">"), text)
    signs = [word for _, word in tokens if word in ("<=", ">=", "<", ">")]
    if signs[0].startswith(">"):
        sides = sides[::-1]
    if len({sign[0] for sign in signs}) != 1 or len(sides) > 3:
        raise _unreadable(text)
    low, high, column = -math.inf, math.inf, ""
    for i, (coefficients, constant) in enumerate(sides):
        if coefficients:
            if column or list(coefficients.values()) != [1.0] or constant:
                raise _unreadable(text)
            column = next(iter(coefficients))
        elif i == 0:
            low = constant
        else:
            high = constant
    if not column:
        raise _unreadable(text)
    return Bounds(column, low, high)


def _relation(tokens: Sequence[tuple[str, str]], text: str) -> Relation:
    (left, left_constant), (right, right_constant) = _linear_sides(tokens, ("=", "=="), text)
    total = dict(left)
    for name, coefficient in right.items():
        total[name] = total.get(name, 0.0) - coefficient
    kept = tuple((name, coefficient) for name, coefficient in total.items() if coefficient)
    if not kept:
        raise _unreadable(text)
    return Relation(kept, left_constant - right_constant, text)


def _linear_sides(
    tokens: Sequence[tuple[str, str]], separators: Sequence[str], text: str
) -> list[tuple[dict[str, float], float]]:
    sides: list[list[tuple[str, str]]] = [[]]
    for token in tokens:
        if token[1] in separators and token[0] == "sign":
            sides.append([])
        else:
            sides[-1].append(token)
    return [_linear(side, text) for side in sides]


def _linear(tokens: Sequence[tuple[str, str]], text: str) -> tuple[dict[str, float], float]:
    """A sum of terms `[number *] name` and numbers."""
    coefficients: dict[str, float] = {}
    constant, position = 0.0, 0
    if not tokens:
        raise _unreadable(text)
    while position < len(tokens):
        sign, factor = 1.0, 1.0
        if position > 0 and tokens[position][1] not in ("+", "-"):
            raise _unreadable(text)
        while position < len(tokens) and tokens[position][1] in ("+", "-"):
            sign = -sign if tokens[position][1] == "-" else sign
            position += 1
        term = tokens[position : position + 3]
        kinds = [kind for kind, _ in term]
        if kinds == ["number", "sign", "word"] and term[1][1] == "*":
            factor, name, position = float(term[0][1]), term[2][1], position + 3
        elif kinds[:1] == ["word"]:
            name, position = term[0][1], position + 1
        elif kinds[:1] == ["number"]:
            constant, position = constant + sign * float(term[0][1]), position + 1
            continue
        else:
            raise _unreadable(text)
        coefficients[name] = coefficients.get(name, 0.0) + sign * factor
    return coefficients, constant


@dataclass(frozen=True)
class Constraints:
    """All constraints of a table, resolved against its schema; positions are those of the numbers and codes blocks."""

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    whole: NDArray[np.bool_]
    forbidden: tuple[tuple[int, int], ...]
    weights: NDArray[np.float64]
    constants: NDArray[np.float64]
    texts: tuple[str, ...]

    @classmethod
    def of(cls, lines: Iterable[str | Constraint], schema: Schema) -> Constraints:
        """Parse and resolve; contradictions and unknown columns are errors."""
        numbers, categories = schema.numbers, schema.categories
        low, high = np.full(len(numbers), -np.inf), np.full(len(numbers), np.inf)
        whole = np.array([column.kind is Kind.INTEGER for column in numbers], dtype=bool)
        forbidden: list[tuple[int, int]] = []
        rows, constants, texts = [], [], []
        for line in lines:
            constraint = parse(line) if isinstance(line, str) else line
            if isinstance(constraint, Allowed):
                forbidden += _forbidden(constraint, categories, schema)
            elif isinstance(constraint, Relation):
                row = np.zeros(len(numbers))
                for name, coefficient in constraint.coefficients:
                    row[_position(name, numbers, schema, "relations are between numbers")] = coefficient
                rows.append(row)
                constants.append(constraint.constant)
                texts.append(constraint.text)
            else:
                j = _position(constraint.column, numbers, schema, "bounds are for numbers")
                if isinstance(constraint, Integral):
                    whole[j] = True
                else:
                    low[j], high[j] = max(low[j], constraint.low), min(high[j], constraint.high)
        for column, lowest, highest in zip(numbers, low, high, strict=True):
            if lowest > highest:
                raise ParameterError(
                    f"Constraints contradict each other: column {column.name!r} must be at least {lowest:g} and at most "
                    f"{highest:g}. Hint: drop one of the bounds."
                )
        weights = np.array(rows).reshape(len(rows), len(numbers))
        return cls(low, high, whole, tuple(forbidden), weights, np.array(constants, dtype=float), tuple(texts))

    def hold(
        self, blocks: Blocks, changed: NDArray[np.bool_], variance: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Numbers whose changed cells respect the constraints, and the rows for which that was possible.

        `changed` and `variance` are those of the numbers block. Cells that were not changed never move.
        """
        numbers = blocks.numbers.copy()
        free = changed.copy()
        numbers = np.where(free & self.whole, np.rint(numbers), numbers)
        numbers = np.where(free, np.clip(numbers, self.low, self.high), numbers)
        for _ in range(len(self.low)):
            if not self._project(numbers, free, variance):
                break
        return numbers, self._feasible(numbers, changed)

    def _project(self, numbers: NDArray[np.float64], free: NDArray[np.bool_], variance: NDArray[np.float64]) -> bool:
        """Move the free cells onto each relation in turn; cells pushed out of bounds are clipped and held."""
        pushed = False
        for weights, constant in zip(self.weights, self.constants, strict=True):
            involved = np.flatnonzero(weights)
            gap = constant + _weighted_sum(numbers, weights, involved)
            scope = np.where(free[:, involved], np.maximum(variance[:, involved], TOLERANCE), 0.0)
            share = scope * weights[involved]
            total = _weighted_sum(share, weights[involved], range(len(involved)))
            step = np.divide(gap, total, out=np.zeros_like(gap), where=(total > 0) & np.isfinite(gap))
            moved = numbers[:, involved] - share * step[:, None]
            moved = np.where(free[:, involved] & self.whole[involved], np.rint(moved), moved)
            inside = np.clip(moved, self.low[involved], self.high[involved])
            hit = free[:, involved] & (inside != moved)
            numbers[:, involved] = np.where(free[:, involved], inside, numbers[:, involved])
            free[:, involved] &= ~hit
            pushed |= bool(hit.any()) or len(self.weights) > 1
        return pushed

    def _feasible(self, numbers: NDArray[np.float64], changed: NDArray[np.bool_]) -> NDArray[np.bool_]:
        feasible = np.ones(len(numbers), dtype=bool)
        for weights, constant in zip(self.weights, self.constants, strict=True):
            involved = np.flatnonzero(weights)
            gap = np.abs(constant + _weighted_sum(numbers, weights, involved))
            size = 1.0 + np.abs(numbers[:, involved]).max(axis=1)
            feasible &= (gap <= 1e-6 * size) | ~changed[:, involved].any(axis=1) | np.isnan(gap)
        return feasible


def _weighted_sum(
    values: NDArray[np.float64], weights: NDArray[np.float64], positions: Iterable[int]
) -> NDArray[np.float64]:
    """Sum over a few columns, term by term: the same for a row whatever the batch."""
    total = np.zeros(len(values))
    for j in positions:
        total = total + weights[j] * values[:, j]
    return total


def _position(name: str, columns: Sequence[Column], schema: Schema, what: str) -> int:
    for i, column in enumerate(columns):
        if column.name == name:
            return i
    if name in schema.names:
        kind = schema.columns[schema.position(name)].kind.value
        raise ParameterError(f"Constraint on column {name!r}: {what}, but the column is {kind}.")
    raise ParameterError(
        f"Constraint names column {name!r}, which the reference does not have. Columns: {', '.join(schema.names[:20])}."
    )


def _forbidden(constraint: Allowed, categories: Sequence[Column], schema: Schema) -> list[tuple[int, int]]:
    position = _position(constraint.column, categories, schema, "allowed levels are for categories")
    known = [str(level) for level in categories[position].levels]
    if not set(constraint.levels) & set(known):
        raise ParameterError(
            f"Constraint allows column {constraint.column!r} only {', '.join(constraint.levels)}, but the reference has "
            f"{', '.join(known[:10])}. Hint: at least one level must remain."
        )
    return [(position, code) for code, level in enumerate(known) if level not in constraint.levels]
