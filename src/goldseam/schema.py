"""What a model knows of a table: the kind, the states and the range of every column.

A table is modelled as two blocks side by side (`Blocks`): *numbers* (float64, in the table's own units, NaN where
nothing was observed) and *codes* (int32 positions into a column's `levels`, `MISSING` where nothing was observed,
`UNSEEN` where the reference never had the value). Which column goes where is the `Schema`'s business; reading and
writing real tables is that of `tables`.

Between a library's column and the blocks there is one neutral form per column, so that only a small part of the package
knows libraries:

=========  =====================================================  ===============================================
`Cells`    holds                                                  comes from
=========  =====================================================  ===============================================
`Numbers`  float64 values, NaN where nothing was observed         integers, floats, decimals, booleans
`Labels`   codes into a list of labels, `MISSING` where nothing   text, categoricals, enums, dictionaries, mixtures
`Opaque`   a word for what is there                               dates, times, binary, nested, foreign objects
=========  =====================================================  ===============================================
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "MISSING",
    "UNSEEN",
    "Blocks",
    "Cells",
    "Column",
    "Kind",
    "Labels",
    "Level",
    "Numbers",
    "Opaque",
    "Schema",
    "robust_scale",
    "weighted_quantile",
]

MISSING = -1
UNSEEN = -2
NOT_KNOWN = float("nan")

Level = str | int | float | bool


class Kind(StrEnum):
    """The kind of a column.

    >>> Kind("ordinal").value
    'ordinal'
    """

    CONTINUOUS = "continuous"
    INTEGER = "integer"
    CATEGORICAL = "categorical"
    ORDINAL = "ordinal"
    BOOLEAN = "boolean"
    PASSTHROUGH = "passthrough"


@dataclass(frozen=True)
class Column:
    """One column as the reference showed it.

    `levels` are the states of a column modelled as a category, in code order; the last one stands for all of
    `merged` (most frequent first) when there were more than the schema's limit. `center`, `scale`, `low` and `high`
    describe a column modelled as a number. `once`: the share of a category's cells whose level was seen no second time; so many
    cells of further rows will hold levels never seen (Good and Turing).
    """

    name: str
    kind: Kind
    levels: tuple[Level, ...] = ()
    merged: tuple[Level, ...] = ()
    center: float = 0.0
    scale: float = 1.0
    low: float = NOT_KNOWN
    high: float = NOT_KNOWN
    once: float = 0.0

    @property
    def modelled_as(self) -> Literal["number", "category", "nothing"]:
        """The block the column goes to; a small-integer column with `levels` is a category."""
        if self.kind is Kind.PASSTHROUGH:
            return "nothing"
        return "category" if self.levels else "number"


@dataclass(frozen=True)
class Schema:
    """The columns of the reference, in order, and what counts as missing.

    >>> schema = Schema((Column("age", Kind.INTEGER, center=40.0), Column("sex", Kind.CATEGORICAL, ("f", "m"))))
    >>> schema.number_positions, schema.category_positions
    ((0,), (1,))
    """

    columns: tuple[Column, ...]
    missing_values: tuple[str, ...] = ()
    _by_name: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_name", {column.name: i for i, column in enumerate(self.columns)})

    @property
    def names(self) -> tuple[str, ...]:
        """Column names in the order of the reference."""
        return tuple(column.name for column in self.columns)

    def position(self, name: str) -> int:
        """Position of a column in the reference."""
        return self._by_name[name]

    @cached_property
    def number_positions(self) -> tuple[int, ...]:
        """Columns of the numbers block, as positions in the schema."""
        return self._positions("number")

    @cached_property
    def category_positions(self) -> tuple[int, ...]:
        """Columns of the codes block, as positions in the schema."""
        return self._positions("category")

    @cached_property
    def modelled_positions(self) -> tuple[int, ...]:
        """All columns that are modelled, in table order."""
        return tuple(sorted(self.number_positions + self.category_positions))

    def _positions(self, block: str) -> tuple[int, ...]:
        return tuple(i for i, column in enumerate(self.columns) if column.modelled_as == block)

    @property
    def numbers(self) -> tuple[Column, ...]:
        """The columns of the numbers block."""
        return tuple(self.columns[i] for i in self.number_positions)

    @property
    def categories(self) -> tuple[Column, ...]:
        """The columns of the codes block."""
        return tuple(self.columns[i] for i in self.category_positions)

    def to_dict(self) -> dict[str, Any]:
        """A plain dict that JSON can hold; `from_dict` takes it back."""
        return {"columns": [_plain(column) for column in self.columns], "missing_values": list(self.missing_values)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Schema:
        """The schema that `to_dict` wrote.

        >>> schema = Schema((Column("a", Kind.CONTINUOUS, low=0.0, high=1.0),))
        >>> Schema.from_dict(schema.to_dict()) == schema
        True
        """
        return cls(tuple(_column(row) for row in data["columns"]), tuple(data["missing_values"]))


def _plain(column: Column) -> dict[str, Any]:
    """A column as JSON can hold it: lists for tuples, None for a range that is not known."""
    row = {name: None if value != value else value for name, value in vars(column).items()}
    return row | {"kind": column.kind.value, "levels": list(column.levels), "merged": list(column.merged)}


def _column(row: Mapping[str, Any]) -> Column:
    known = {name: value for name, value in row.items() if value is not None}
    return Column(**known | {"kind": Kind(row["kind"]), "levels": tuple(row["levels"]), "merged": tuple(row["merged"])})


@dataclass(frozen=True)
class Blocks:
    """The modelled cells of a table: numbers in their own units, categories as codes."""

    numbers: NDArray[np.float64]
    codes: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, rows: Iterable[int] | NDArray[Any] | slice) -> Blocks:
        """The same columns for some of the rows."""
        rows = rows if isinstance(rows, (slice, np.ndarray)) else np.fromiter(rows, dtype=np.int64)
        return Blocks(self.numbers[rows], self.codes[rows])

    def copy(self) -> Blocks:
        """Blocks that may be written to."""
        return replace(self, numbers=self.numbers.copy(), codes=self.codes.copy())


Form = Literal["float", "integer", "decimal", "boolean"]


@dataclass(frozen=True)
class Numbers:
    """Numeric cells; `form` is what the library stores."""

    values: NDArray[np.float64]
    form: Form

    @property
    def observed(self) -> NDArray[np.bool_]:
        """Where there is a value."""
        return ~np.isnan(self.values)

    def codes_for(self, levels: Sequence[Level]) -> NDArray[np.int32]:
        """Positions in a list of levels; those that are text match no number.

        >>> Numbers(np.array([3.0, np.nan, 1.0, 7.0]), "float").codes_for((1, 3))
        array([ 1, -1,  0, -2], dtype=int32)
        """
        values = np.array([np.nan if isinstance(level, str) else level for level in levels], dtype=np.float64)
        order = np.argsort(values).astype(np.int32)
        place = np.minimum(np.searchsorted(values[order], self.values), len(values) - 1)
        codes = np.where(values[order][place] == self.values, order[place], np.int32(UNSEEN))
        codes[~self.observed] = MISSING
        return codes


@dataclass(frozen=True)
class Labels:
    """Cells that are positions in a list of labels.

    `declared`: the library says these are categories (a text column does not). `ordered`: and that they have an order.
    `had_markers`: some cells held one of the user's strings for "missing".
    """

    codes: NDArray[np.int32]
    labels: tuple[Any, ...]
    declared: bool = False
    ordered: bool = False
    had_markers: bool = False

    @property
    def observed(self) -> NDArray[np.bool_]:
        """Where there is a value."""
        return self.codes != MISSING

    def codes_for(self, levels: Sequence[Level]) -> NDArray[np.int32]:
        """Positions in another list of levels.

        >>> Labels(np.array([1, -1, 0, 2]), ("a", "b", "c")).codes_for(("b", "a"))
        array([ 0, -1,  1, -2], dtype=int32)
        """
        known = {level: code for code, level in enumerate(levels)}
        codes = [known.get(label, UNSEEN) for label in self.labels]
        return np.array([*codes, MISSING], dtype=np.int32)[self.codes]  # MISSING is -1: takes the last

    def as_numbers(self) -> tuple[Numbers, int | None]:
        """Text read as numbers, and the first row that does not hold a finite number (None when all do).

        >>> Labels(np.array([0, -1, 1]), ("2.5", "n/a")).as_numbers()
        (Numbers(values=array([2.5, nan, nan]), form='float'), 2)
        """
        values = np.array([*map(_finite_number, self.labels), np.nan], dtype=np.float64)[self.codes]
        bad = np.flatnonzero(np.isnan(values) & self.observed)
        return Numbers(values, "float"), int(bad[0]) if bad.size else None


@dataclass(frozen=True)
class Opaque:
    """Cells that are not modelled; `first` is a value to show and its row."""

    what: str
    first: tuple[Any, int] | None = None


Cells = Numbers | Labels | Opaque


def _finite_number(label: Any) -> float:
    try:
        value = float(label)
    except ValueError:
        return float("nan")
    return value if np.isfinite(value) else float("nan")


def robust_scale(values: NDArray[np.floating[Any]], weights: NDArray[np.float64] | None = None) -> float:
    """Spread of the observed values: IQR, else standard deviation, else 1 (S9.3, S9.4).

    >>> robust_scale(np.array([0.0, 1.0, 2.0, 3.0, 4.0, np.nan]))
    2.0
    >>> robust_scale(np.array([0.0, 0.0, 0.0, 0.0, 0.0, 9.0])), robust_scale(np.array([7.0, 7.0]))
    (3.354..., 1.0)
    """
    finite = np.isfinite(values)
    seen = values[finite]
    if seen.size == 0 or np.all(seen == seen[0]):  # rounding would give equal values a tiny deviation
        return 1.0
    weights = None if weights is None else weights[finite]
    with np.errstate(over="ignore", invalid="ignore"):  # values near the end of float64 have no finite spread
        low, high = weighted_quantile(seen, (0.25, 0.75), weights)
        deviation = np.sqrt(np.average((seen - np.average(seen, weights=weights)) ** 2, weights=weights))
        spreads = (high - low, deviation)
    return next((float(spread) for spread in spreads if np.isfinite(spread) and spread > 0), 1.0)


def weighted_quantile(
    values: NDArray[np.floating[Any]], shares: Iterable[float], weights: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Quantiles with linear interpolation; a weight of 2 counts as two equal values.

    >>> weighted_quantile(np.array([1.0, 5.0, 9.0]), (0.5,), np.array([1.0, 1.0, 2.0]))
    array([7.])
    """
    at = np.asarray(tuple(shares), dtype=np.float64)
    if weights is None:
        return np.quantile(values, at)
    order = np.argsort(values, kind="stable")
    ordered, heaped = values[order], np.cumsum(weights[order])
    place = at * max(heaped[-1] - 1.0, 0.0)
    below = np.floor(place)
    last = len(ordered) - 1
    lower, upper = (ordered[np.minimum(np.searchsorted(heaped, p, side="right"), last)] for p in (below, below + 1.0))
    return lower + (place - below) * (upper - lower)
