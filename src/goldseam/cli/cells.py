"""Text cells <-> the values a model works with.

A file of text holds '1.50', '007' or '1,5'; a model wants numbers. The text is parsed for the model only: cells that
do not change are written back from the file's own bytes, and only changed cells are spelled anew (`spelled`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from goldseam.cli.batches import Batch, Changes
from goldseam.errors import InputError, SchemaError
from goldseam.schema import Column, Kind, Schema

__all__ = ["BadCells", "changes_of", "inferred", "spelled", "spellings", "table_for", "text_of"]

TRUE_FALSE: Final = (("true", "false"), ("True", "False"), ("TRUE", "FALSE"))
WHOLE: Final = r"^[+-]?(0|[1-9]\d{0,17})$"
ZEROS: Final = r"^[+-]?0\d"
DATE: Final = r"^\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?$"
MOSTLY: Final = 0.9


@dataclass(frozen=True)
class BadCells:
    """Cells with text where the model learnt a number: rows in the batch and the text, by column."""

    rows: Mapping[str, NDArray[np.int64]]
    texts: Mapping[str, pl.Series]

    def __bool__(self) -> bool:
        return bool(self.rows)

    def __len__(self) -> int:
        return sum(len(rows) for rows in self.rows.values())


# ------------------------------------------------------------------------------------------------- for a known schema


def table_for(
    batch: Batch, schema: Schema, markers: Sequence[str], on_bad_cell: str = "fail"
) -> tuple[pl.DataFrame, BadCells]:
    """The columns of the schema, as a model wants them: numbers parsed, markers empty.

    Text in a column of numbers is an error, or (`on_bad_cell="mend"`) an empty cell to be restored.
    """
    have = set(batch.frame.columns)
    lacking = [name for name in schema.names if name not in have]
    if lacking:
        raise SchemaError(_lacking(lacking, schema, batch.frame.columns))
    frame = batch.frame.select(schema.names)
    marked, types = (*schema.missing_values, *markers), frame.schema
    parsed = frame.with_columns(_parsed(column, types[column.name], marked, batch.decimal) for column in schema.columns)
    bad = _bad_cells(frame, parsed, schema, marked)
    if bad and on_bad_cell == "fail":
        raise SchemaError(_text_for_number(batch, bad))
    return _without_infinite(parsed, bad), bad


def _lacking(lacking: Sequence[str], schema: Schema, have: Sequence[str]) -> str:
    others = f" (and {len(lacking) - 1} more)" if len(lacking) > 1 else ""
    known = ", ".join(map(repr, have[:5])) + (", ..." if len(have) > 5 else "")
    return (
        f"The table lacks the column {lacking[0]!r}{others} of the {len(schema.names)} columns the model learnt; it has "
        f"{len(have)}: {known}. Hint: is this the model for this table? goldseam info MODEL shows its columns."
    )


def _is_numeric(column: Column) -> bool:
    """Whether cells of the column are numbers (or booleans) for the model."""
    if column.kind is Kind.PASSTHROUGH:
        return False
    return column.modelled_as == "number" or not any(isinstance(level, str) for level in column.levels)


def _parsed(column: Column, dtype: pl.DataType, markers: Sequence[str], decimal: str) -> pl.Expr:
    cell = pl.col(column.name)
    if dtype != pl.String or column.kind is Kind.PASSTHROUGH:
        return cell
    if not _is_numeric(column):
        return _emptied(cell, ("", *markers))
    return _number(_emptied(cell, markers), decimal, column.kind)


def _emptied(cell: pl.Expr, markers: Sequence[str]) -> pl.Expr:
    return pl.when(~cell.is_in(list(markers))).then(cell) if markers else cell


def _number(cell: pl.Expr, decimal: str, kind: Kind | None = None) -> pl.Expr:
    text = cell.str.strip_chars()
    if decimal == ",":
        text = text.str.replace(",", ".", literal=True)
    if kind is Kind.BOOLEAN:
        text = text.str.to_lowercase().replace({"true": "1", "false": "0"})
    return text.cast(pl.Float64, strict=False)


def _bad_cells(frame: pl.DataFrame, parsed: pl.DataFrame, schema: Schema, markers: Sequence[str]) -> BadCells:
    types = frame.schema
    names = [c.name for c in schema.columns if _is_numeric(c) and types[c.name] == pl.String]
    if not names:
        return BadCells({}, {})
    wrong = parsed.select(
        ((pl.col(name).is_null() & _holds_text(frame[name], markers)) | pl.col(name).is_infinite()).alias(name)
        for name in names
    )
    found = [name for name in names if wrong[name].any()]
    rows = {name: wrong[name].arg_true().to_numpy().astype(np.int64) for name in found}
    return BadCells(rows, {name: frame[name].gather(rows[name]) for name in found})


def _holds_text(cells: pl.Series, markers: Sequence[str]) -> pl.Series:
    stripped = cells.str.strip_chars()
    return (cells.is_not_null() & (stripped != "") & ~cells.is_in(list(markers))).fill_null(value=False)


def _without_infinite(parsed: pl.DataFrame, bad: BadCells) -> pl.DataFrame:
    gone = [parsed[name].scatter(rows, [None] * len(rows)) for name, rows in bad.rows.items()]
    return parsed.with_columns(gone) if gone else parsed


def _text_for_number(batch: Batch, bad: BadCells) -> str:
    name, row = min(((name, int(rows[0])) for name, rows in bad.rows.items()), key=lambda pair: pair[1])
    line = batch.line_of(row)
    where = f"row {batch.first_row + row}" + (f" (line {line})" if line else "")
    text = bad.texts[name][0]
    return (
        f"Column {name!r} holds text, but the model learnt it as numbers. First bad value: {text!r} at {where}. "
        f"Hint: --missing {text!r} if it means an empty cell, --on-bad-cell mend to restore such cells."
    )


def changes_of(restored: pl.DataFrame, schema: Schema, changed: NDArray[np.bool_]) -> Changes:
    """The cells that a restoration changed, by column."""
    rows, values = {}, {}
    for position in np.flatnonzero(changed.any(axis=0)).tolist():
        name = schema.columns[position].name
        rows[name] = np.flatnonzero(changed[:, position])
        values[name] = restored[name].gather(rows[name])
    return Changes(rows, values)


# ----------------------------------------------------------------------------------------------------- text of values


def spellings(frame: pl.DataFrame, schema: Schema) -> dict[str, tuple[str, str]]:
    """How each boolean column of a text file spells true and false, from its first rows."""
    types = frame.schema
    return {
        column.name: spelling(frame[column.name])
        for column in schema.columns
        if column.kind is Kind.BOOLEAN and types.get(column.name) == pl.String
    }


def spelling(cells: pl.Series) -> tuple[str, str]:
    """How a column of text spells true and false."""
    seen = set(cells.unique().to_list())
    return next((pair for pair in TRUE_FALSE if seen & set(pair)), ("1", "0"))


def spelled(column: Column, values: pl.Series, decimal: str, truth: tuple[str, str] = ("true", "false")) -> pl.Series:
    """Values as a text file holds them."""
    if column.kind is Kind.BOOLEAN and values.dtype != pl.String:
        return text_of(values.cast(pl.Boolean), decimal, truth)
    if _holds_whole_numbers(column) and values.dtype != pl.String:
        return text_of(values.cast(pl.Int64), decimal)
    return text_of(values, decimal)


def text_of(values: pl.Series, decimal: str = ".", truth: tuple[str, str] = ("true", "false")) -> pl.Series:
    """Typed values as text.

    >>> text_of(pl.Series([1.5, None]), ",").to_list(), text_of(pl.Series([True]), truth=("T", "F")).to_list()
    (['1,5', None], ['T'])
    """
    if values.dtype == pl.Boolean:
        return values.replace_strict({True: truth[0], False: truth[1]}, return_dtype=pl.String)
    text = values.cast(pl.String)
    return text.str.replace(".", ",", literal=True) if decimal == "," and values.dtype.is_float() else text


def _holds_whole_numbers(column: Column) -> bool:
    if column.modelled_as == "category":
        return all(isinstance(level, int) for level in column.levels)
    return column.kind is Kind.INTEGER


# ------------------------------------------------------------------------------------------------- for a new schema


def inferred(
    frame: pl.DataFrame, markers: Sequence[str], decimal: str, kinds: Mapping[str, str]
) -> tuple[pl.DataFrame, list[str]]:
    """A frame of text with numbers and booleans parsed, and the columns that hold dates.

    A column is numeric when every cell that is not empty is a number; one that nearly is must be decided by the user.
    """
    new, dates = [], []
    texts = [name for name, dtype in frame.schema.items() if dtype == pl.String]
    for cells in frame.select(_emptied(pl.col(name), ("", *markers)) for name in texts).get_columns():
        wanted = kinds.get(cells.name)
        if wanted is None and _all_match(cells, DATE):
            dates.append(cells.name)
        new.append(cells if wanted in ("categorical", "passthrough") else _inferred(cells, decimal, wanted))
    return frame.with_columns(new), dates


def _all_match(cells: pl.Series, pattern: str) -> bool:
    seen = cells.drop_nulls()
    return len(seen) > 0 and bool(seen.str.contains(pattern).all())


def _inferred(cells: pl.Series, decimal: str, wanted: str | None) -> pl.Series:
    seen = cells.drop_nulls()
    if len(seen) == 0 or seen.str.contains(ZEROS).any():
        return cells
    if seen.str.to_lowercase().is_in(["true", "false"]).all():
        return cells.str.to_lowercase() == "true"
    numbers = cells.to_frame().select(_number(pl.col(cells.name), decimal))[cells.name]
    share = float(numbers.gather(cells.is_not_null().arg_true()).is_not_null().mean() or 0.0)  # type: ignore[arg-type]
    if share == 1.0:
        whole = seen.str.strip_chars().str.contains(WHOLE).all()
        return cells.str.strip_chars().cast(pl.Int64) if whole else numbers
    if share >= MOSTLY and wanted is None:
        raise InputError(_nearly_numeric(cells, numbers))
    return cells


def _nearly_numeric(cells: pl.Series, numbers: pl.Series) -> str:
    odd = cells.filter(cells.is_not_null() & numbers.is_null())
    shown = ",".join(odd.unique(maintain_order=True).head(3).to_list())
    return (
        f"Column {cells.name!r} holds numbers, except for {len(odd)} of {len(cells)} cells, for example {odd[0]!r}. "
        f"Hint: --missing {shown!r} if they mean empty cells, or --kinds {cells.name}=categorical."
    )


def split_list(text: str | None) -> tuple[str, ...]:
    """The parts of a list such as "n/a,?"; a doubled comma stands for none.

    >>> split_list("n/a, ?"), split_list(None)
    (('n/a', '?'), ())
    """
    return tuple(part.strip() for part in text.split(",") if part.strip()) if text else ()


def split_kinds(text: str | None) -> dict[str, str]:
    """Kinds given as "age=integer,zip=categorical".

    >>> split_kinds("age=integer, zip=categorical")
    {'age': 'integer', 'zip': 'categorical'}
    """
    pairs: dict[str, Any] = {}
    for part in split_list(text):
        name, _, kind = part.rpartition("=")
        if not re.fullmatch(r".+", name) or kind not in list(Kind):
            raise InputError(
                f"--kinds is a list of column=kind with the kinds {', '.join(Kind)}, but got {part!r}. "
                "Hint: --kinds zip=categorical,age=integer"
            )
        pairs[name] = kind
    return pairs
