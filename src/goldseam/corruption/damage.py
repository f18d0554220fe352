"""What a simulator returns, and the plumbing that all of them share.

A simulator is written as a pure draw, `draw(sheet, rows, rng, **options) -> values`: it sees a `Sheet` and the numbers of
the rows to damage, and returns the new matrix, or `Drawn` when it has more to say of each row. `@simulator` turns it into
a function of a table: it reads the table, chooses rows and columns, draws, writes the table back in its own library, and
finds out which cells really changed.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldseam.corruption.sheet import Matrix, Sheet, from_blocks, to_blocks
from goldseam.errors import InputError, ParameterError
from goldseam.schema import Blocks, Schema
from goldseam.tables import Table, learn_schema

__all__ = ["Damage", "Drawn", "check_share", "choose_rows", "differs", "simulator"]

Rows = float | NDArray[np.bool_]
Draw = Callable[..., "Matrix | Drawn"]

_SHARED = """
    The table may be pandas, polars, pyarrow or a 2-D numpy array; the result is of the same library. Keyword arguments
    that all simulators share: `rows`, the probability that a row is damaged, or a boolean mask of the rows to damage
    (default {rows}); `columns`, names or numbers of the columns that may be damaged (default: all that are modelled);
    `reference`, a table that gives ranges, marginals and standard deviations (default: the table itself); `kinds`, as in
    `learn_schema`, for example to let a column of whole numbers take fractions (``{{"x0": "continuous"}}``; else whole
    stays whole); `random_state`, an int or a Generator.

    Returns a `Damage`."""


@dataclass(frozen=True, eq=False)
class Drawn:
    """New values, and what was done to each row."""

    values: Matrix
    kind: NDArray[np.str_]


@dataclass(frozen=True, eq=False)
class Damage:
    """A damaged table and the truth about it.

    Attributes
    ----------
    table : table of the library that was given
    cells : bool (n_rows, n_columns)
        True where the value is not what it was; columns as in the table.
    kind : str (n_rows,)
        What was done to each row; empty where nothing changed.
    """

    table: Any
    cells: NDArray[np.bool_]
    kind: NDArray[np.str_]

    @property
    def rows(self) -> NDArray[np.bool_]:
        """True for rows with at least one changed cell."""
        return np.asarray(self.cells.any(axis=1))

    def __repr__(self) -> str:
        kinds = ", ".join(sorted(set(self.kind.tolist()) - {""})) or "nothing"
        return f"Damage({kinds}: {int(self.cells.sum())} of {self.cells.size} cells in {int(self.rows.sum())} rows)"


def simulator(kind: str, *, rows: float = 0.5) -> Callable[[Draw], Callable[..., Damage]]:
    """Make a function of a table out of a draw; `rows` is the default share of damaged rows."""

    def decorate(draw: Draw) -> Callable[..., Damage]:
        @functools.wraps(draw)
        def damage(
            table: Any,
            *,
            rows: Rows = rows,
            columns: Sequence[str | int] | None = None,
            reference: Any = None,
            kinds: Mapping[str, str] | None = None,
            random_state: int | np.random.Generator | None = None,
            **options: Any,
        ) -> Damage:
            rng = np.random.default_rng(random_state)
            read = Table.read(table)
            trusted = read if reference is None else Table.read(reference)
            schema = _schema(trusted, kinds)
            before = read.encode(schema)
            sheet = from_blocks(before, schema, before if reference is None else trusted.encode(schema))
            chosen = choose_rows(rows, read.n_rows, rng)
            drawn = _drawn(draw, kind, sheet, columns, chosen, rng, options)
            return _written(read, schema, before, drawn)

        damage.__signature__ = _signature(draw, damage)  # type: ignore[attr-defined]
        damage.__doc__ = _documented(draw, rows)
        return damage

    return decorate


def _schema(table: Table, kinds: Mapping[str, str] | None) -> Schema:
    """Integers stay numbers, so that noise and units apply to them; rare categories stay apart."""
    return learn_schema(table, kinds=kinds, small_integers=0, max_levels=1000, constant="number")


def _drawn(
    draw: Draw,
    kind: str,
    sheet: Sheet,
    columns: Sequence[str | int] | None,
    rows: NDArray[np.int64],
    rng: np.random.Generator,
    options: Mapping[str, Any],
) -> Drawn:
    positions = range(len(sheet.names)) if columns is None else sorted({sheet.position(name) for name in columns})
    if not positions:
        raise InputError("The table has no column that can be damaged: none is numeric or categorical with two levels.")
    active = sheet.columns(list(positions))
    drawn = draw(active, rows, rng, **options)
    if not isinstance(drawn, Drawn):
        drawn = Drawn(drawn, np.full(len(drawn), kind))
    values = sheet.values.copy()
    values[:, list(positions)] = np.where(active.whole, np.rint(drawn.values), drawn.values)
    return replace(drawn, values=values)


def _written(table: Table, schema: Schema, before: Blocks, drawn: Drawn) -> Damage:
    """Write the new values, then look at the result again: a dtype may have swallowed a change."""
    old = from_blocks(before, schema).values
    native = table.decode(schema, to_blocks(drawn.values, schema), _in_schema(differs(old, drawn.values), schema))
    new = from_blocks(Table.read(native).encode(schema), schema).values
    cells = np.zeros((table.n_rows, len(table.names)), dtype=bool)
    places = [table.names.index(schema.columns[i].name) for i in schema.modelled_positions]
    cells[:, places] = differs(old, new)
    return Damage(native, cells, np.where(cells.any(axis=1), drawn.kind, ""))


def _in_schema(cells: NDArray[np.bool_], schema: Schema) -> NDArray[np.bool_]:
    changed = np.zeros((len(cells), len(schema.columns)), dtype=bool)
    changed[:, list(schema.modelled_positions)] = cells
    return changed


def differs(old: Matrix, new: Matrix) -> NDArray[np.bool_]:
    """True where two cells are not the same; two gaps are the same.

    >>> differs(np.array([1.0, np.nan, np.nan]), np.array([1.0, np.nan, 2.0]))
    array([False, False,  True])
    """
    return np.asarray((old != new) & ~(np.isnan(old) & np.isnan(new)))


def choose_rows(rows: Rows, n_rows: int, rng: np.random.Generator, name: str = "rows") -> NDArray[np.int64]:
    """Numbers of the rows to damage: each with probability `rows`, or where the mask is True."""
    if np.ndim(rows) == 0:
        return np.flatnonzero(rng.random(n_rows) < check_share(name, float(rows)))
    mask = np.asarray(rows)
    if mask.dtype != bool or mask.shape != (n_rows,):
        raise ParameterError(
            f"{name} must be a share in (0, 1] or a boolean mask of the {n_rows} rows; got {mask.dtype} of shape "
            f"{mask.shape}. Hint: np.isin(np.arange({n_rows}), numbers) makes a mask of row numbers."
        )
    return np.flatnonzero(mask)


def check_share(name: str, value: float) -> float:
    """A share above 0 and at most 1."""
    if not 0 < value <= 1:
        raise ParameterError(f"{name} must be above 0 and at most 1; got {value!r}.")
    return float(value)


def _documented(draw: Draw, rows: float) -> str:
    """The draw's own text, the shared part, then the examples."""
    text, mark, examples = (inspect.getdoc(draw) or "").partition("\n\n>>>")
    return f"{text}\n\n{inspect.cleandoc(_SHARED).format(rows=rows)}{mark}{examples}\n"


def _signature(draw: Draw, damage: Callable[..., Damage]) -> inspect.Signature:
    """The table, the draw's own options, then the shared ones."""
    keyword_only = inspect.Parameter.KEYWORD_ONLY
    shared = list(inspect.Signature.from_callable(damage, follow_wrapped=False).parameters.values())
    own = list(inspect.signature(draw).parameters.values())[3:]
    parameters = [shared[0], *(p.replace(kind=keyword_only) for p in own), *shared[1:-1]]
    return inspect.Signature(parameters, return_annotation=Damage)
