"""One batch through a restorer: cells parsed, judged, and handed on as changes, texts and lines of the seam."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from goldseam.cli.batches import Batch, Changes
from goldseam.cli.cells import BadCells, changes_of, spelled, spellings, table_for
from goldseam.cli.delimited import Limits
from goldseam.cli.session import shown
from goldseam.cli.sources import Inputs
from goldseam.errors import ParameterError
from goldseam.schema import Column, Kind, Schema
from goldseam.seam import LEDGER, Restoration, Seam

__all__ = ["Job", "Piece", "output_types"]

SURVEYED: Final = 64


@dataclass(frozen=True)
class Piece:
    """A batch with what the restorer made of it."""

    batch: Batch
    restoration: Restoration
    changes: Changes
    texts: dict[str, pl.Series]
    seam: pl.DataFrame
    n_bad_cells: int


@dataclass
class Job:
    """A restorer and how its batches are to be treated."""

    restorer: Any
    markers: tuple[str, ...] = ()
    on_bad_cell: str = "fail"
    columns: tuple[str, ...] = ()
    key: str | None = None
    is_ordered: bool = False
    levels: Any = None
    _truths: dict[str, tuple[str, str]] | None = None

    @property
    def schema(self) -> Schema:
        """What the model knows of the columns."""
        schema: Schema = self.restorer.schema_
        return schema

    @property
    def ledger(self) -> dict[str, Any]:
        """Columns of the seam file."""
        return {**LEDGER, "key": pl.String} if self.key else dict(LEDGER)

    def check_names(self, names: Sequence[str]) -> None:
        """Options that name columns must name columns of the table."""
        for option, wanted in (("--key", (self.key,) if self.key else ()), ("--columns", self.columns)):
            for name in wanted:
                if name not in names:
                    raise ParameterError(no_such_column(option, name, names))

    def survey(self, inputs: Inputs, limits: Limits) -> None:
        """Learn what belongs to the table as a whole, from batches spread over it."""
        self.levels = self.restorer.survey(self._tables(inputs, limits))

    def _tables(self, inputs: Inputs, limits: Limits) -> Iterator[pl.DataFrame]:
        for batch in inputs.sample(limits, SURVEYED):
            if len(batch):
                yield self._table(batch)[0]

    def _table(self, batch: Batch) -> tuple[pl.DataFrame, BadCells]:
        return table_for(batch, self.schema, self.markers, self.on_bad_cell)

    def restore(self, batch: Batch) -> Piece:
        """Mend a batch."""
        return self._piece(batch, "restore")

    def check(self, batch: Batch) -> Piece:
        """Judge a batch and change nothing."""
        return self._piece(batch, "check")

    def _piece(self, batch: Batch, mode: str) -> Piece:
        table, bad = self._table(batch)
        act = self.restorer.restore if mode == "restore" else self.restorer.check
        found = act(table, levels=self.levels, first_row=batch.first_row)
        if self.is_ordered:
            found = replace(found, facts={**found.facts, "ordered": True})
        found = self._chosen(self._marked(found, bad, batch.first_row))
        changes = changes_of(found.table, self.schema, found.changed)
        texts = self._texts(batch, changes)
        lines = as_in_file(found.seam.frame, batch, changes, texts)
        if self.key:
            rows = lines["row"].to_numpy() - batch.first_row
            lines = lines.with_columns(batch.frame[self.key].gather(rows).cast(pl.String).alias("key"))
        return Piece(batch, found, changes, texts, lines, len(bad))

    def _texts(self, batch: Batch, changes: Changes) -> dict[str, pl.Series]:
        if self._truths is None:
            self._truths = spellings(batch.frame, self.schema)
        return {
            name: spelled(
                self._column(name), values, batch.decimal, self._truths.get(name, ("true", "false"))
            )
            for name, values in changes.values.items()
        }  # fmt: skip

    def _column(self, name: str) -> Column:
        return self.schema.columns[self.schema.position(name)]

    def _chosen(self, found: Restoration) -> Restoration:
        """Only the columns the user wants to be touched."""
        if not self.columns:
            return found
        keep = found.seam.frame["column"].is_in(list(self.columns)).to_numpy()
        changed, suspect = found.changed.copy(), found.suspect.copy()
        wanted = set(self.columns)
        others = [i for i, name in enumerate(self.schema.names) if name not in wanted]
        changed[:, others] = suspect[:, others] = False
        return replace(found, changed=changed, suspect=suspect, seam=found.seam.filter(keep))

    def _marked(self, found: Restoration, bad: BadCells, first_row: int) -> Restoration:
        """Text in a column of numbers is damage: the seam says what it was."""
        if not bad:
            return found
        texts = pl.concat(
            pl.DataFrame({"row": rows + first_row, "column": [name] * len(rows), "text": bad.texts[name]})
            for name, rows in bad.rows.items()
        )
        lines = found.seam.frame.join(texts, on=["row", "column"], how="left", maintain_order="left")
        was_text = pl.col("text").is_not_null()
        mended = was_text & (pl.col("cause") != "refused")
        lines = lines.with_columns(
            observed=pl.coalesce("text", "observed"),
            restored=pl.when(was_text & ~mended).then("text").otherwise("restored"),
            cause=pl.when(mended).then(pl.lit("corrupt", LEDGER["cause"])).otherwise("cause"),
        ).drop("text")
        silent = texts.join(lines, on=["row", "column"], how="anti")
        more = Seam.of(
            row=silent["row"], column=silent["column"], kind=[self._column(c).kind.value for c in silent["column"]],
            cause=["refused"] * silent.height, observed=silent["text"], restored=silent["text"],
        )  # fmt: skip
        order = {name: i for i, name in enumerate(self.schema.names)}
        both = pl.concat([lines.select(list(LEDGER)), more.frame])
        place = both["column"].replace_strict(order, return_dtype=pl.Int64).alias("place")
        both = both.with_columns(place).sort("row", "place", maintain_order=True).drop("place")
        suspect = found.suspect.copy()
        for name, rows in bad.rows.items():
            suspect[rows, self.schema.position(name)] = True
        return replace(found, seam=Seam(both), suspect=suspect, flagged=found.flagged | suspect.any(axis=1))


def as_in_file(lines: pl.DataFrame, batch: Batch, changes: Changes, texts: Mapping[str, pl.Series]) -> pl.DataFrame:
    """Lines of the seam that say, for columns of text, what the file held and holds now, letter by letter."""
    rows = lines["row"].to_numpy() - batch.first_row
    observed, restored, types = lines["observed"].clone(), lines["restored"].clone(), batch.frame.schema
    for (name,), found in lines.select("column").with_row_index("at").group_by("column", maintain_order=True):
        if types[str(name)] != pl.String:
            continue
        at = found["at"].to_numpy()
        observed = observed.scatter(at, batch.frame[name].gather(rows[at]))
        if name in changes.rows:
            known = at[np.isin(rows[at], changes.rows[name])]
            place = np.searchsorted(changes.rows[name], rows[known])
            restored = restored.scatter(known, texts[name].gather(place))
    return lines.with_columns(observed.alias("observed"), restored.alias("restored"))


def no_such_column(option: str, name: str, names: Sequence[str]) -> str:
    """The message for an option that names an unknown column."""
    return f"{option} names the column {name!r}, which the table does not have. Hint: it has {shown(names)}."


def output_types(batch: Batch, schema: Schema) -> dict[str, Any]:
    """The column types of a columnar output, from the first batch and the schema."""
    types: dict[str, Any] = {}
    known = {column.name: column for column in schema.columns}
    for name, dtype in batch.frame.schema.items():
        column = known.get(name)
        types[name] = dtype
        if dtype in (pl.String, pl.Null) and column is not None and batch.raw is not None:
            types[name] = _type_of_text(batch.frame[name], column)
        elif dtype == pl.Null:
            types[name] = pl.String
        elif dtype == pl.Int64 and column is not None and column.kind is Kind.CONTINUOUS and batch.raw is not None:
            types[name] = pl.Float64
    return types


def _type_of_text(cells: pl.Series, column: Column) -> Any:
    numeric = column.modelled_as == "number" or (column.levels and not any(isinstance(v, str) for v in column.levels))
    if not numeric:
        return pl.String
    seen = cells.cast(pl.String).str.strip_chars().str.to_lowercase().drop_nulls()
    if column.kind is Kind.BOOLEAN and seen.is_in(["true", "false"]).all():
        return pl.Boolean
    whole = column.kind is not Kind.CONTINUOUS and _whole_share(seen) == 1.0
    return pl.Int64 if whole else pl.Float64


def _whole_share(seen: pl.Series) -> float:
    hits: NDArray[np.bool_] = seen.str.contains(r"^[+-]?\d{1,18}$|^$").to_numpy()
    return float(hits.mean()) if len(hits) else 1.0
