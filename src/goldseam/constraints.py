"""What repairs must respect: bounds, whole numbers, allowed levels, and linear relations between columns.

A constraint is a line of text, so that it can stand in code and in a configuration file alike:

====================================  ==================================================
``0 <= age <= 120``, ``price >= 0``   bounds
``age integer``                       whole numbers
``status in {single, married}``       allowed levels
``total = net + tax``                 a linear relation; ``gross = 1.2*net - 3`` too
====================================  ==================================================

Names that are not plain words are quoted with backticks: ``\\`net amount\\` >= 0``.

Bounds of whole numbers are the whole numbers within: ``count < 5`` is at most 4. Real numbers have no last one below a
bound, so that for them ``<`` is read as ``<=``: a repair may lie on the bound.

Only repaired cells move. Relations are met by moving them in proportion to their variance (the Gaussian projection onto
the plane), within their bounds (`relations`); cells of a relation that cannot be met are refused. Lines that no row can
meet together are an error.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from goldseam.errors import ModelFileError, ParameterError
from goldseam.relations import System, broken, impossible, meet
from goldseam.schema import Blocks, Column, Kind, Schema

__all__ = ["Bounds", "Constraints", "Relation", "parse"]

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

NAMES: Final = {"f": "floats", "b": "booleans"}
TOKEN: Final = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|`(?P<quoted>[^`]+)`|(?P<word>[^\W\d][\w.]*)"
    r"|(?P<sign><=|>=|==|[-+*=<>{},]))"
)


@dataclass(frozen=True)
class Bounds:
    """A column stays within [low, high]; `above` and `below` say which of the two it must not touch."""

    column: str
    low: float
    high: float
    above: bool = field(default=False, repr=False)
    below: bool = field(default=False, repr=False)

    def in_whole_numbers(self) -> tuple[float, float]:
        """The least and the greatest whole number within.

        >>> Bounds("count", 1.5, 5.0, below=True).in_whole_numbers()
        (2.0, 4.0)
        """
        low, high = float(np.ceil(self.low)), float(np.floor(self.high))
        return low + (self.above and low == self.low), high - (self.below and high == self.high)


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
        sides, signs = sides[::-1], signs[::-1]
    named = [i for i, (coefficients, _) in enumerate(sides) if coefficients]
    if len({sign[0] for sign in signs}) != 1 or named not in ([[0], [1]] if len(sides) == 2 else [[1]]):
        raise _unreadable(text)
    at = named[0]
    coefficients, constant = sides[at]
    if len(sides) > 3 or list(coefficients.values()) != [1.0] or constant:
        raise _unreadable(text)
    low, above = (sides[at - 1][1], len(signs[at - 1]) == 1) if at > 0 else (-math.inf, False)
    high, below = (sides[at + 1][1], len(signs[at]) == 1) if at + 1 < len(sides) else (math.inf, False)
    return Bounds(next(iter(coefficients)), low, high, above, below)


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

    low: Floats
    high: Floats
    whole: Flags
    forbidden: tuple[tuple[int, int], ...]
    weights: Floats
    constants: Floats
    texts: tuple[str, ...]

    @classmethod
    def of(cls, lines: Iterable[str | Constraint], schema: Schema) -> Constraints:
        """Parse and resolve; contradictions and unknown columns are errors."""
        found = [parse(line) if isinstance(line, str) else line for line in lines]
        whole = _whole([one for one in found if isinstance(one, Integral)], schema)
        low, high = _within([one for one in found if isinstance(one, Bounds)], whole, schema)
        relations = [one for one in found if isinstance(one, Relation)]
        weights = np.array([_weights(one, schema) for one in relations]).reshape(len(relations), len(schema.numbers))
        constants, texts = np.array([one.constant for one in relations], dtype=float), [one.text for one in relations]
        forbidden = _forbidden([one for one in found if isinstance(one, Allowed)], schema)
        _check_possible(System(weights, constants, low, high, whole), texts, schema)
        return cls(low, high, whole, forbidden, weights, constants, tuple(texts))

    def check_state(self) -> None:
        """The arrays of a model file fit each other, and every relation has a column."""
        n, m = len(self.texts), self.low.size
        for what, array, shape, kind in (
            ("bounds", self.low, (m,), "f"), ("bounds", self.high, (m,), "f"), ("whole numbers", self.whole, (m,), "b"),
            ("relations", self.weights, (n, m), "f"), ("constants", self.constants, (n,), "f"),
        ):  # fmt: skip
            if array.shape != shape or array.dtype.kind != kind:
                raise ModelFileError(
                    f"The model file's {what} of the constraints must have shape {shape} and be {NAMES[kind]}; got "
                    f"{array.shape} of {array.dtype}."
                )
        known = np.isfinite(self.weights).all() and np.isfinite(self.constants).all()
        if not known or not (self.weights != 0.0).any(axis=1).all():
            raise ModelFileError(
                f"The model file's relations must be finite and name a column; they are {self.texts[:5]}."
            )

    def check_for(self, n_numbers: int, level_offsets: NDArray[np.int64]) -> None:
        """They are those of a table with so many numbers and levels."""
        sizes = np.diff(level_offsets)
        codes = [(j, code) for j, size in enumerate(sizes.tolist()) for code in range(size)]
        fits = set(self.forbidden) <= set(codes)
        if self.low.size != n_numbers or not fits:
            raise ModelFileError(
                f"The model file's constraints must be those of {n_numbers} numbers and {sizes.size} categories; they have "
                f"{self.low.size} numbers and forbid levels {self.forbidden[:5]}."
            )

    def shares(self, levels: Floats, offsets: NDArray[np.int64]) -> Floats:
        """Probabilities of levels, column j at offsets[j] : offsets[j + 1], when forbidden ones have none; 0 for all levels
        of a column where no other had any."""
        out = levels.copy()
        for j in {j for j, _ in self.forbidden}:
            part = out[:, offsets[j] : offsets[j + 1]]
            part[:, [code for i, code in self.forbidden if i == j]] = 0.0
            total = part.sum(axis=1, keepdims=True)
            part /= np.where(total > 0.0, total, 1.0)
        return out

    def hold(self, blocks: Blocks, changed: Flags, variance: Floats) -> tuple[Floats, Flags]:
        """Numbers whose changed cells respect the constraints, and the changed cells for which that was not possible.

        `changed` and `variance` are those of the numbers block. Cells that were not changed never move.
        """
        system = System(self.weights, self.constants, self.low, self.high, self.whole)
        numbers = np.where(changed & self.whole, np.rint(blocks.numbers), blocks.numbers)
        numbers = np.where(changed, np.clip(numbers, self.low, self.high), numbers)
        if not len(self.weights):
            return numbers, np.zeros_like(changed)
        numbers = meet(system, numbers, changed, variance)
        unmet = np.zeros_like(changed)
        for fails, weights in zip(broken(system, numbers).T, self.weights, strict=True):
            unmet |= fails[:, None] & (weights != 0.0)
        return numbers, unmet & changed


def _whole(lines: Iterable[Integral], schema: Schema) -> Flags:
    whole = np.array([column.kind is Kind.INTEGER for column in schema.numbers], dtype=bool)
    for line in lines:
        whole[_position(line.column, schema.numbers, schema, "whole numbers are for numbers")] = True
    return whole


def _within(lines: Iterable[Bounds], whole: Flags, schema: Schema) -> tuple[Floats, Floats]:
    low, high = np.full(whole.size, -np.inf), np.full(whole.size, np.inf)
    for line in lines:
        j = _position(line.column, schema.numbers, schema, "bounds are for numbers")
        least, most = line.in_whole_numbers() if whole[j] else (line.low, line.high)
        low[j], high[j] = max(low[j], least), min(high[j], most)
        if low[j] > high[j]:
            raise ParameterError(
                f"Constraints contradict each other: column {line.column!r} must be at least {low[j]:g} and at most "
                f"{high[j]:g}{', its bounds in whole numbers' if whole[j] else ''}. Hint: drop one of the bounds."
            )
    return low, high


def _weights(relation: Relation, schema: Schema) -> Floats:
    row = np.zeros(len(schema.numbers))
    for name, coefficient in relation.coefficients:
        row[_position(name, schema.numbers, schema, "relations are between numbers")] = coefficient
    return row


def _check_possible(system: System, texts: Sequence[str], schema: Schema) -> None:
    """Name the first relation that cannot be met beside those before it and the bounds."""
    if not impossible(system):
        return
    at = next(n for n in range(len(texts)) if impossible(system.first(n + 1)))
    ranges = [
        f"{column.name!r} {'whole ' if whole else ''}from {low:g} to {high:g}"
        for column, low, high, whole, weight in zip(
            schema.numbers, system.low, system.high, system.whole, system.weights[at], strict=True
        )
        if weight
    ]
    before = f", together with {'; '.join(map(repr, texts[:at]))}" if at else ""
    raise ParameterError(
        f"Constraints contradict each other: no row can meet {texts[at]!r} with {', '.join(ranges)}{before}. "
        "Hint: drop or loosen one of them."
    )


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


def _forbidden(lines: Sequence[Allowed], schema: Schema) -> tuple[tuple[int, int], ...]:
    forbidden: set[tuple[int, int]] = set()
    for line in lines:
        j = _position(line.column, schema.categories, schema, "allowed levels are for categories")
        known = [str(level) for level in schema.categories[j].levels]
        if not set(line.levels) & set(known):
            raise ParameterError(
                f"Constraint allows column {line.column!r} only {', '.join(line.levels)}, but the reference has "
                f"{', '.join(known[:10])}. Hint: at least one level must remain."
            )
        forbidden |= {(j, code) for code, level in enumerate(known) if level not in line.levels}
        if all((j, code) in forbidden for code in range(len(known))):
            sets = "; ".join(f"{{{', '.join(one.levels)}}}" for one in lines if one.column == line.column)
            raise ParameterError(
                f"Constraints contradict each other: column {line.column!r} may take levels of {sets}, which have none in "
                f"common. Hint: the reference has {', '.join(known[:10])}."
            )
    return tuple(sorted(forbidden))
