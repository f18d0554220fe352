"""Tables of any library <-> blocks of arrays.

The one place where dataframes come in and go out: pandas, polars, pyarrow and 2-D numpy arrays.

>>> import numpy as np
>>> table = Table.read(np.array([[1.5, 0.0], [2.25, 1.0], [np.nan, 0.0], [4.75, 1.0]]))
>>> schema = learn_schema(table)
>>> [(column.name, column.kind.value, column.modelled_as) for column in schema.columns]
[('x0', 'continuous', 'number'), ('x1', 'integer', 'category')]
>>> blocks = table.encode(schema)
>>> blocks.numbers.ravel(), blocks.codes.ravel()
(array([1.5 , 2.25,  nan, 4.75]), array([0, 1, 0, 1], dtype=int32))

To mend a cell, change the blocks and say which cells were changed; all others come back as they were.

>>> blocks.numbers[2, 0] = 3.0
>>> changed = np.zeros((4, 2), dtype=bool)
>>> changed[2, 0] = True
>>> table.decode(schema, blocks, changed)[:, 0]
array([1.5 , 2.25, 3.  , 4.75])

What happens to unusual tables:

==========================  =================================================================================
a table                     outcome
==========================  =================================================================================
without columns             `InputError`
without rows                no schema can be learnt (`InputError`); encodes to blocks without rows
with one row                every column is constant, so nothing is modelled
with two equal names        `InputError`
that lacks a column         `MissingColumnError`, with a near name when there is one (only for modelled columns)
with an extra column        kept in its place, passed through
with columns in new order   fine: columns are found by name
with text for numbers       `SchemaError` with the first bad value and its row
with booleans for numbers   `SchemaError`, unless the reference stays within 0 and 1
with a column of gaps only  fits every kind; filled, it has their type where its own cannot hold them
with an unseen category     code `UNSEEN`
with an infinite number     `InputError` with column and row
with an absurd number       read as a billion ranges outside; unchanged, it comes back as it came
==========================  =================================================================================
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from goldseam._frames import Frame, is_table, open_frame, refuse_masked
from goldseam.errors import InputError, MissingColumnError, ParameterError, SchemaError
from goldseam.schema import (
    MISSING,
    Blocks,
    Cells,
    Column,
    Kind,
    Labels,
    Level,
    Numbers,
    Opaque,
    Schema,
    robust_scale,
    weighted_quantile,
)

__all__ = ["Table", "batches_of", "learn_schema", "named_numbers", "refuse_masked"]

Weights = NDArray[np.float64]
REACH: Final = 1e9
LARGE: Final = 2.0**53  # from here on float64 does not hold every whole number
Constant = Literal["passthrough", "number"]


@dataclass(frozen=True, eq=False)
class Table:
    """A table of any library, with string names for its columns.

    >>> Table.read(np.zeros((3, 2))).names
    ('x0', 'x1')
    """

    frame: Frame
    names: tuple[str, ...]
    missing_values: tuple[str, ...] = ()
    is_snapshot: bool = False

    @classmethod
    def read(cls, X: Any, missing_values: Sequence[str] = ()) -> Table:
        """Look at a table without copying it. `missing_values`: strings that mean "not observed"."""
        frame = open_frame(X)
        names = tuple(str(label) for label in frame.labels)
        if not names:
            raise InputError("The table has no columns; at least 1 is needed. Hint: was the header read as data?")
        name, times = Counter(names).most_common(1)[0]
        if times > 1:
            raise InputError(
                f"Column names must be distinct as text, but {name!r} occurs {times} times. "
                "Hint: rename or drop one of them."
            )
        return cls(frame, names, _markers(missing_values))

    @property
    def native(self) -> Any:
        """The table as it came."""
        return self.frame.native

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.frame.n_rows

    def copy(self) -> Any:
        """The native table anew: what is written to the one is not seen in the other."""
        return self.frame.copied()

    def snapshot(self) -> Table:
        """The same over a copy that nobody else holds, and that is never handed out."""
        return (
            self
            if self.is_snapshot
            else replace(self, frame=open_frame(self.frame.copied(deep=True)), is_snapshot=True)
        )

    def named(self, names: Sequence[str]) -> Table:
        """The same columns under other names, by position; what is decoded still has the names it came with."""
        return replace(self, names=tuple(names))

    def cells(self, name: str, missing_values: Sequence[str] = ()) -> Cells:
        """One column in its neutral form (see `schema`)."""
        return self.frame.cells(self.names.index(name), (*self.missing_values, *missing_values))

    def texts(self, name: str, rows: NDArray[np.int64], missing_values: Sequence[str] = ()) -> list[str | None]:
        """Cells of one column as text that reads back exactly; None where nothing was observed."""
        cells = self.cells(name, missing_values)
        if isinstance(cells, Numbers):
            write = repr if cells.form in ("float", "decimal") else _whole if cells.form == "integer" else _yes_or_no
            texts = [None if value != value else write(value) for value in cells.values[rows].tolist()]
            large = np.abs(cells.values[rows]) >= LARGE if cells.form == "integer" else np.zeros(len(rows), dtype=bool)
            for i in np.flatnonzero(large):
                texts[i] = str(int(self.frame.item(self.names.index(name), int(rows[i]))))
            return texts
        if isinstance(cells, Labels):
            return [None if code == MISSING else str(cells.labels[code]) for code in cells.codes[rows].tolist()]
        raise InputError(f"Column {name!r} holds {cells.what}, which is passed through and has no cells to show.")

    def encode(self, schema: Schema) -> Blocks:
        """The modelled cells as arrays, after checking the table against the schema."""
        _check_names(self.names, schema)
        numbers = np.empty((self.n_rows, len(schema.numbers)), dtype=np.float64)
        codes = np.empty((self.n_rows, len(schema.categories)), dtype=np.int32)
        for j, column in enumerate(schema.numbers):
            numbers[:, j] = _encoded_numbers(column, self.cells(column.name, schema.missing_values))
        for j, column in enumerate(schema.categories):
            codes[:, j] = _encoded_codes(column, self.cells(column.name, schema.missing_values))
        return Blocks(numbers, codes)

    def decode(self, schema: Schema, blocks: Blocks, changed: NDArray[np.bool_]) -> Any:
        """The native table anew, with the changed cells taken from the blocks.

        `changed` is boolean, one column per column of the schema. Integers are rounded into their dtype's range,
        categories written as their level. NaN or `MISSING` in a changed cell writes a missing one; only then may a
        dtype change, where it cannot hold that (numpy integers become floats), or where a column of gaps only has a type,
        such as that of dates, which cannot hold what is filled in. A categorical gains a level only where a
        changed cell takes one that its dtype lacks.
        """
        _check_shapes(self, schema, blocks, changed)
        if not changed.any():
            return self.copy()
        columns = {}
        for position in np.flatnonzero(changed.any(axis=0)).tolist():
            column = schema.columns[position]
            rows = np.flatnonzero(changed[:, position])
            place = self.names.index(column.name)
            columns[place] = self.frame.written(place, rows, _new_values(schema, position, blocks, rows), column.kind)
        return self.frame.replaced(columns)


def named_numbers(names: Sequence[str], values: NDArray[np.float64]) -> Any:
    """Numbers as a dataframe with these names, for estimators that were fitted on one; pandas if it is there."""
    try:
        import pandas as library
    except ImportError:
        import polars as library
    return library.DataFrame({name: values[:, j] for j, name in enumerate(names)})


def batches_of(tables: Iterable[Any]) -> Iterable[Any]:
    """The batches of a table, after a look whether they are batches and not one table."""
    if is_table(tables) or isinstance(tables, (str, Mapping)) or not isinstance(tables, Iterable):
        raise InputError(
            f"Batches must be an iterable of tables, but they are one {type(tables).__name__!r}. Hint: [table]."
        )
    return tables


def _whole(value: float) -> str:
    return str(int(value))


def _yes_or_no(value: float) -> str:
    return str(bool(value))


# ---------------------------------------------------------------------------------------------------- learning


def learn_schema(
    table: Table,
    *,
    kinds: Mapping[str, str] | None = None,
    max_levels: int = 50,
    small_integers: int = 10,
    declared_numbers: bool = False,
    constant: Constant = "passthrough",
    missing_values: Sequence[str] = (),
    sample_weight: ArrayLike | None = None,
) -> Schema:
    """What the reference shows of every column.

    Parameters
    ----------
    table : Table
        The reference.
    kinds : mapping of column name to kind, optional
        Overrules what is inferred, for example ``{"zip": "categorical"}``.
    max_levels : int
        Most states of a category; rarer ones are merged into the last.
    small_integers : int
        Whole-number columns with at most that many distinct values are modelled as categories; 0: never.
    declared_numbers : bool
        Whether columns that `kinds` declares integer are modelled as numbers however few values they take.
    constant : {"passthrough", "number"}
        What becomes of numeric columns with one value.
    missing_values : sequence of str
        Strings that mean "not observed". A text column of numbers and such strings is numeric.
    sample_weight : array of shape (n_rows,), optional
        Weights of the rows in centres, scales and frequencies; rows of weight 0 are not seen.
    """
    kinds = {str(name): kind for name, kind in (kinds or {}).items()}
    _check_settings(table, kinds, max_levels, small_integers, constant)
    weights = _checked_weights(sample_weight, table.n_rows)
    seen = np.ones(table.n_rows, dtype=bool) if weights is None else weights > 0
    markers = _markers((*table.missing_values, *_markers(missing_values)))
    columns = []
    for name in table.names:
        wanted = _kind_named(kinds, name)
        few = 0 if declared_numbers and wanted is Kind.INTEGER else small_integers
        learner = _Learner(name, weights, seen, max_levels, few, constant)
        columns.append(learner.column(table.cells(name, markers), wanted))
    return Schema(tuple(columns), markers)


@dataclass(frozen=True)
class _Learner:
    """What is needed to describe one column."""

    name: str
    weights: Weights | None
    seen: NDArray[np.bool_]
    max_levels: int
    small_integers: int
    constant: Constant

    def column(self, cells: Cells, wanted: Kind | None) -> Column:
        if wanted is Kind.PASSTHROUGH or (wanted is None and isinstance(cells, Opaque)):
            return Column(self.name, Kind.PASSTHROUGH)
        if isinstance(cells, Opaque):
            self.impossible(cells.what, wanted, "a column of this type can only be passed through")
        if isinstance(cells, Labels):
            return self.of_labels(cells, wanted)
        return self.of_numbers(cells, wanted)

    def of_labels(self, cells: Labels, wanted: Kind | None) -> Column:
        numbers, bad_row = cells.as_numbers() if cells.had_markers or wanted in _NUMERIC else (None, None)
        if numbers is not None and bad_row is None and wanted not in _CATEGORY and not cells.declared:
            return self.of_numbers(numbers, wanted)
        if wanted in _NUMERIC:
            self.impossible("text", wanted, f"{_show(cells, bad_row)} is not a number")
        if wanted is Kind.BOOLEAN:
            self.impossible("text", wanted, "only booleans and columns of 0 and 1 can be boolean")
        counts = self.counts(cells.codes, len(cells.labels))
        observed = np.flatnonzero(counts > 0)
        kind = wanted or (Kind.ORDINAL if cells.ordered else Kind.CATEGORICAL)
        if len(observed) <= 1 or (wanted is None and self.is_identifier(cells, len(observed))):
            return Column(self.name, Kind.PASSTHROUGH)
        order = observed if kind is Kind.ORDINAL and cells.declared else _sorted(observed, cells.labels)
        return self.category(kind, [cells.labels[i] for i in order], counts[order])

    def is_identifier(self, cells: Labels, n_levels: int) -> bool:
        """Names, keys and free text: (nearly) every row says something else; or text and numbers are mixed."""
        if cells.declared:
            return False
        n_rows = int((cells.observed & self.seen).sum())
        mixed = not all(isinstance(label, str) for label in cells.labels)
        return mixed or n_levels == n_rows or (n_levels > self.max_levels and 2 * n_levels > n_rows)

    def of_numbers(self, cells: Numbers, wanted: Kind | None) -> Column:
        _check_finite(self.name, cells)
        values = cells.values[self.seen]
        observed = values[~np.isnan(values)]
        whole = cells.form == "integer" or _are_whole(observed)
        if wanted is Kind.BOOLEAN and not np.isin(observed, (0.0, 1.0)).all():
            self.impossible("numbers", wanted, f"{observed[~np.isin(observed, (0.0, 1.0))][0]} is neither 0 nor 1")
        if wanted is Kind.INTEGER and not whole:
            self.impossible("numbers", wanted, f"{observed[observed != np.rint(observed)][0]} is not whole")
        kind = wanted or _number_kind(cells, whole)
        if observed.size == 0 or np.all(observed == observed[0]):
            as_number = self.constant == "number" and kind in _NUMERIC
            return self.number(kind, values) if as_number else Column(self.name, Kind.PASSTHROUGH)
        if kind is Kind.BOOLEAN:
            return Column(self.name, kind, (False, True))
        if kind in _CATEGORY or (kind is Kind.INTEGER and self.is_small(observed)):
            return self.numeric_category(kind, cells.values, whole)
        return self.number(kind, values)

    def is_small(self, observed: NDArray[np.float64]) -> bool:
        few = np.unique(observed[:1000]).size <= self.small_integers  # spares most columns a full sort
        return few and np.unique(observed).size <= self.small_integers

    def numeric_category(self, kind: Kind, values: NDArray[np.float64], whole: bool) -> Column:
        levels, codes = np.unique(values, return_inverse=True)
        keep = ~np.isnan(levels)
        counts = self.counts(np.where(keep[codes], codes, MISSING), len(levels))[keep]
        named: list[Level] = [int(v) if whole else float(v) for v in levels[keep].tolist()]
        present = np.flatnonzero(counts > 0)
        return self.category(kind, [named[i] for i in present], counts[present])

    def number(self, kind: Kind, values: NDArray[np.float64]) -> Column:
        here = ~np.isnan(values)
        if not here.any():
            return Column(self.name, kind)
        weights = None if self.weights is None else self.weights[self.seen][here]
        values = values[here]
        center = float(weighted_quantile(values, (0.5,), weights)[0])
        scale = robust_scale(values, weights)
        return Column(self.name, kind, (), (), center, scale, float(values.min()), float(values.max()))

    def category(self, kind: Kind, levels: list[Level], counts: Weights) -> Column:
        """Keep the most frequent levels (of an order: the first ones) and merge the others into the last state."""
        once = float(counts[counts <= 1.0].sum() / counts.sum())
        if len(levels) <= self.max_levels:
            return Column(self.name, kind, tuple(levels), once=once)
        frequent = np.argsort(-counts, kind="stable").tolist()
        chosen = set(range(self.max_levels - 1) if kind is Kind.ORDINAL else frequent[: self.max_levels - 1])
        kept = [level for i, level in enumerate(levels) if i in chosen]
        merged = [levels[i] for i in frequent if i not in chosen]
        return Column(self.name, kind, (*kept, merged[0]), tuple(merged), once=once)

    def counts(self, codes: NDArray[Any], n_labels: int) -> Weights:
        here = (codes != MISSING) & self.seen
        weights = None if self.weights is None else self.weights[here]
        return np.bincount(codes[here], weights=weights, minlength=n_labels).astype(np.float64)

    def impossible(self, what: str, wanted: Kind | None, reason: str) -> NoReturn:
        raise ParameterError(
            f"kinds[{self.name!r}] is {str(wanted)!r}, but the column holds {what}: {reason}. "
            "Hint: leave the column out of kinds to see what is inferred, or name its markers in missing_values."
        )


_NUMERIC = (Kind.CONTINUOUS, Kind.INTEGER)
_CATEGORY = (Kind.CATEGORICAL, Kind.ORDINAL)


def _are_whole(values: NDArray[np.float64]) -> bool:
    """Whether floats are integers in disguise, as those of a column with gaps often are."""
    return bool(np.all(values == np.rint(values)) and np.all(np.abs(values) < LARGE))


def _number_kind(cells: Numbers, whole: bool) -> Kind:
    if cells.form == "boolean":
        return Kind.BOOLEAN
    return Kind.INTEGER if whole and cells.form != "decimal" else Kind.CONTINUOUS


def _sorted(observed: NDArray[np.int64], labels: tuple[Any, ...]) -> NDArray[np.int64]:
    """Positions of labels in the order of their values, numbers before text: independent of the order of rows."""
    return np.array(sorted(observed.tolist(), key=lambda i: (isinstance(labels[i], str), labels[i])), dtype=np.int64)


# ------------------------------------------------------------------------------------------------ encoding, decoding


def _encoded_numbers(column: Column, cells: Cells) -> NDArray[np.float64]:
    numbers = _as_numbers(column, cells)
    _check_finite(column.name, numbers)
    return _within_reach(column, numbers.values)


def _within_reach(column: Column, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Numbers a billion ranges outside the reference are read as that far: farther says no more, and squares overflow."""
    span = REACH * max(column.high - column.low, column.scale)
    if not np.isfinite(span):  # nothing was observed, or the range itself fills float64
        return values
    return np.clip(values, column.low - span, column.high + span)


def _as_numbers(column: Column, cells: Cells) -> Numbers:
    if isinstance(cells, Numbers):
        if cells.form == "boolean" and cells.observed.any() and not _is_yes_or_no(column):
            row = int(cells.observed.argmax())
            _wrong_type(column, "booleans", (bool(cells.values[row]), row))
        return cells
    if isinstance(cells, Opaque):
        _wrong_type(column, cells.what, cells.first)
    numbers, bad_row = cells.as_numbers()
    if bad_row is not None:
        _wrong_type(column, "text", (cells.labels[cells.codes[bad_row]], bad_row))
    return numbers


def _is_yes_or_no(column: Column) -> bool:
    """Whether booleans can hold what is put into the column."""
    states = column.levels or (column.low, column.high)
    return all(isinstance(state, str) or not (state < 0 or state > 1) for state in states)


def _encoded_codes(column: Column, cells: Cells) -> NDArray[np.int32]:
    codes = _label_cells(column, cells).codes_for(column.levels + column.merged)
    return np.minimum(codes, len(column.levels) - 1) if column.merged else codes


def _label_cells(column: Column, cells: Cells) -> Labels | Numbers:
    """The cells in a form that can be compared with the column's levels."""
    texts = [isinstance(level, str) for level in column.levels]
    if isinstance(cells, Labels) and (any(texts) or cells.declared or not cells.labels):
        return cells
    numbers = _as_numbers(column, cells)
    rows = np.flatnonzero(numbers.observed)
    if all(texts) and rows.size:
        _wrong_type(column, "numbers", (float(numbers.values[rows[0]]), int(rows[0])))
    _check_finite(column.name, numbers)
    return numbers


def _new_values(schema: Schema, position: int, blocks: Blocks, rows: NDArray[np.int64]) -> Any:
    """The values of changed cells: floats, or levels with None for missing."""
    column = schema.columns[position]
    if column.modelled_as == "nothing":
        raise InputError(
            f"Column {column.name!r} is passed through, but {len(rows)} of its cells are marked as changed. "
            "Hint: only modelled columns can change."
        )
    if column.modelled_as == "number":
        return blocks.numbers[rows, schema.number_positions.index(position)]
    codes = blocks.codes[rows, schema.category_positions.index(position)]
    wrong = np.flatnonzero((codes < MISSING) | (codes >= len(column.levels)))
    if wrong.size:
        raise InputError(
            f"Column {column.name!r} has {len(column.levels)} levels, but the code at row {rows[wrong[0]]} is "
            f"{codes[wrong[0]]}. Hint: a changed cell needs a code from 0 to {len(column.levels) - 1}, or MISSING."
        )
    lookup = [*column.levels, None]
    return [lookup[code] for code in codes.tolist()]


# ------------------------------------------------------------------------------------------------------ checks


def _markers(missing_values: Sequence[str]) -> tuple[str, ...]:
    listed = isinstance(missing_values, Iterable) and not isinstance(missing_values, str)
    if not listed or not all(isinstance(value, str) for value in missing_values):
        raise ParameterError(
            f"missing_values must be a sequence of strings, but it is {missing_values!r}. Hint: missing_values=['n/a']."
        )
    return tuple(dict.fromkeys(missing_values))


def _check_settings(
    table: Table, kinds: Mapping[str, str], max_levels: int, small_integers: int, constant: str
) -> None:
    if table.n_rows == 0:
        raise InputError(
            "The reference has 0 rows, but at least 1 is needed to learn its columns. Hint: check the filter."
        )
    for name, limit, value in (("max_levels", 2, max_levels), ("small_integers", 0, small_integers)):
        if value < limit:
            raise ParameterError(f"{name} must be at least {limit}, but it is {value}. Hint: the default is fine.")
    if constant not in ("passthrough", "number"):
        raise ParameterError(
            f"constant must be 'passthrough' or 'number', but it is {constant!r}. Hint: check the word."
        )
    for name in kinds:
        if name not in table.names:
            near = _near(name, table.names)
            hint = f"did you mean {near!r}?" if near else f"the table has {_listed(table.names)}."
            raise ParameterError(f"kinds names the column {name!r}, which the table does not have. Hint: {hint}")


def _kind_named(kinds: Mapping[str, str], name: str) -> Kind | None:
    wanted = kinds.get(name)
    if wanted is None or wanted in list(Kind):
        return None if wanted is None else Kind(wanted)
    raise ParameterError(
        f"kinds[{name!r}] must be one of {', '.join(Kind)}, but it is {wanted!r}. Hint: check the spelling."
    )


def _checked_weights(sample_weight: ArrayLike | None, n_rows: int) -> Weights | None:
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n_rows,) or not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
        raise InputError(
            f"sample_weight must hold {n_rows} finite weights >= 0, not all 0, but it has shape {weights.shape} and "
            f"starts {weights.ravel()[:3].tolist()}. Hint: one weight per row of the reference."
        )
    return weights


def _check_names(names: tuple[str, ...], schema: Schema) -> None:
    """Columns that are only passed through may be absent."""
    for position in schema.modelled_positions:
        name = schema.columns[position].name
        if name not in names:
            near = _near(name, [other for other in names if other not in schema.names])
            hint = f"was it renamed to {near!r}?" if near else f"the table has {_listed(names)}."
            raise MissingColumnError(f"Column {name!r} is missing from the incoming table. Hint: {hint}")


def _near(name: str, names: Sequence[str]) -> str | None:
    return next(iter(difflib.get_close_matches(name, names, n=1)), None)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:8])) + (", ..." if len(names) > 8 else "")


def _check_finite(name: str, cells: Numbers) -> None:
    rows = np.flatnonzero(np.isinf(cells.values))
    if rows.size:
        raise InputError(
            f"Column {name!r} is infinite at row {rows[0]} ({cells.values[rows[0]]}); numbers must be finite. "
            "Hint: replace infinite values by missing ones."
        )


def _check_shapes(table: Table, schema: Schema, blocks: Blocks, changed: NDArray[np.bool_]) -> None:
    _check_names(table.names, schema)
    wanted = (
        ("changed", changed.shape, (table.n_rows, len(schema.columns))),
        ("blocks.numbers", blocks.numbers.shape, (table.n_rows, len(schema.numbers))),
        ("blocks.codes", blocks.codes.shape, (table.n_rows, len(schema.categories))),
    )
    for name, got, want in wanted:
        if got != want:
            raise InputError(f"{name} must have shape {want}, but it has {got}. Hint: rows x columns of the schema.")


def _wrong_type(column: Column, what: str, first: tuple[Any, int] | None) -> NoReturn:
    value = f"First bad value: {first[0]!r} at row {first[1]}. " if first else ""
    marker = f"pass missing_values=[{first[0]!r}], or refit" if first and isinstance(first[0], str) else "refit"
    raise SchemaError(
        f"Column {column.name!r} of the incoming table holds {what}, but the model learnt it as {column.kind.value}. "
        f"{value}Hint: {marker}."
    )


def _show(cells: Labels, row: int | None) -> str:
    return "it" if row is None else f"{cells.labels[cells.codes[row]]!r} at row {row}"
