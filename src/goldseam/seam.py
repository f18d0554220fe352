"""The seam: the ledger of changed cells, and the restoration that carries it.

Kintsugi mends with gold so that the repair stays visible. Here every cell that a restoration touches, or would have
liked to touch, is one line of a `Seam`; a cell without a line comes back bit-identical.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl
import polars.selectors as cs
from numpy.typing import ArrayLike, NDArray

from goldseam.errors import InputError
from goldseam.schema import Blocks, Schema
from goldseam.summary import summarise
from goldseam.tables import Table

__all__ = ["CAUSES", "Restoration", "Seam"]

CAUSES: Final = ("missing", "corrupt", "noise", "unseen", "refused")

LEDGER: Final[dict[str, Any]] = {
    "row": pl.Int64,
    "column": pl.String,
    "kind": pl.String,
    "cause": pl.Enum(CAUSES),
    "observed": pl.String,
    "restored": pl.String,
    "low": pl.Float64,
    "high": pl.Float64,
    "p_value": pl.Float64,
    "probability": pl.Float64,
    "donors": pl.List(pl.Int64),
}
FORMULA_START: Final = r"^[=+\-@\t\r]"
NUMBER: Final = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"


@dataclass(frozen=True)
class Seam:
    """The ledger of a restoration: one line per cell, ordered by row and column.

    ==============  ====================================================================================
    ``row``         position of the row in the incoming table, from 0
    ``column``      name of the column
    ``kind``        kind of the column, as in the schema
    ``cause``       ``missing``, ``corrupt``, ``noise``, ``unseen`` or ``refused``
    ``observed``    what the cell held, as text that reads back exactly; null where it was empty
    ``restored``    what it holds now; equal to ``observed`` where the repair was refused
    ``low, high``   interval of the restored value, at the restorer's coverage; null for categories
    ``p_value``     how rare so odd a cell is among clean ones; null for empty cells
    ``probability``  that the cell was damaged; for a category that was empty, that of the restored level
    ``donors``      positions of the reference rows that vouch for the restored value
    ==============  ====================================================================================

    >>> seam = Seam.of(row=[3], column=["age"], kind=["integer"], cause=["corrupt"], observed=["910"], restored=["41"])
    >>> len(seam), seam.count_by_cause()["corrupt"]
    (1, 1)
    >>> seam.to_polars()["restored"].to_list()
    ['41']
    """

    frame: pl.DataFrame

    def __post_init__(self) -> None:
        lacking = [name for name in LEDGER if name not in self.frame.columns]
        if lacking:
            raise InputError(
                f"A seam needs the columns {', '.join(LEDGER)}; {', '.join(lacking)} not found among "
                f"{', '.join(self.frame.columns) or 'none'}. Hint: was this file written by Goldseam?"
            )
        ledger = self.frame.select(pl.col(name).cast(dtype) for name, dtype in LEDGER.items())
        finite = pl.when(cs.float().is_finite()).then(cs.float())  # what is not known, or not bounded, is null
        object.__setattr__(self, "frame", ledger.with_columns(finite))

    @classmethod
    def of(cls, **columns: ArrayLike | Sequence[Any]) -> Seam:
        """A seam from its columns; those not given are null."""
        n = len(next(iter(columns.values()), []))  # type: ignore[arg-type]
        return cls(pl.DataFrame([_series(name, columns.get(name, [None] * n)) for name in LEDGER]))

    @classmethod
    def of_cells(
        cls,
        before: Table,
        after: Table,
        schema: Schema,
        rows: NDArray[np.int64],
        positions: NDArray[np.int64],
        *,
        first_row: int = 0,
        donors: NDArray[np.int64] | None = None,
        **columns: ArrayLike,
    ) -> Seam:
        """A seam for the given cells, with their text read off the tables before and after.

        `positions` are columns of the schema; `columns` are further columns of the ledger, one value per cell; `donors`
        is a row of positions per cell, below 0 where there are fewer. The lines are ordered by row and column; rows are
        numbered from `first_row`.
        """
        order = np.lexsort((positions, rows))
        rows, positions = rows[order], positions[order]
        names = np.array(schema.names, dtype=object)
        kinds = np.array([column.kind.value for column in schema.columns], dtype=object)
        return cls.of(
            row=rows + first_row,
            column=names[positions],
            kind=kinds[positions],
            observed=_texts(before, schema, rows, positions),
            restored=_texts(after, schema, rows, positions),
            **({} if donors is None else {"donors": _lists(donors[order])}),
            **{name: np.asarray(values)[order] for name, values in columns.items()},
        )

    @classmethod
    def concat(cls, seams: Sequence[Seam]) -> Seam:
        """One ledger out of several, in the order given."""
        return cls(pl.concat([seam.frame for seam in seams])) if seams else cls.of(row=[])

    def __len__(self) -> int:
        return self.frame.height

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self.frame.iter_rows(named=True)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Seam) and self.frame.equals(other.frame, null_equal=True)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        causes = ", ".join(f"{n} {cause}" for cause, n in self.count_by_cause().items() if n)
        return f"<Seam: {len(self)} cells{f' ({causes})' if causes else ''}>"

    def count_by_cause(self) -> dict[str, int]:
        """How many lines each cause has, in the order of `CAUSES`."""
        counts = dict(self.frame["cause"].value_counts().iter_rows())
        return {cause: int(counts.get(cause, 0)) for cause in CAUSES}

    def filter(self, keep: NDArray[np.bool_]) -> Seam:
        """The lines for which `keep` is True."""
        return Seam(self.frame.filter(pl.Series(keep)))

    # --- out and in -------------------------------------------------------------------------------------------------

    def to_polars(self) -> pl.DataFrame:
        """The ledger as a polars frame."""
        return self.frame

    def to_pandas(self) -> Any:
        """The ledger as a pandas frame (needs pandas and pyarrow)."""
        return self.frame.to_pandas()

    def to_arrow(self) -> Any:
        """The ledger as a pyarrow table (needs pyarrow)."""
        return self.frame.to_arrow()

    def write(self, path: str | Path, *, formula_safe: bool = False) -> None:
        """Write the ledger as Parquet, CSV or JSON Lines, by suffix.

        `formula_safe` puts an apostrophe before text that a spreadsheet would run as a formula; such a file does not
        read back exactly, so it is not the default.
        """
        suffix = Path(path).suffix
        frame = self.frame.with_columns(defused(("column", "observed", "restored"))) if formula_safe else self.frame
        if suffix == ".parquet":
            frame.write_parquet(path)
        elif suffix == ".csv":
            frame.with_columns(pl.col("donors").cast(pl.List(pl.String)).list.join(" ")).write_csv(path)
        elif suffix in (".jsonl", ".ndjson"):
            frame.write_ndjson(path)
        else:
            raise InputError(_unknown_suffix(path))

    @classmethod
    def read(cls, path: str | Path) -> Seam:
        """The ledger that `write` wrote."""
        suffix = Path(path).suffix
        if suffix == ".parquet":
            return cls(pl.read_parquet(path))
        if suffix == ".csv":
            return cls(_read_csv(path))
        if suffix in (".jsonl", ".ndjson"):
            return cls(pl.read_ndjson(path, schema={**LEDGER, "cause": pl.String}))
        raise InputError(_unknown_suffix(path))


def _series(name: str, values: Any) -> pl.Series:
    """A column of the ledger; NumPy's object arrays go by way of lists, which polars reads as text."""
    if isinstance(values, np.ndarray) and values.dtype == object:
        values = values.tolist()
    return pl.Series(name, values, dtype=LEDGER[name])


def _lists(donors: NDArray[np.int64]) -> pl.Series:
    """Rows of positions as lists without those below 0; null where none is left."""
    lists = pl.Series(donors, dtype=pl.Array(pl.Int64, donors.shape[1])).arr.to_list()
    lists = lists.list.eval(pl.element().filter(pl.element() >= 0))
    return lists.set(lists.list.len() == 0, None)


def _texts(table: Table, schema: Schema, rows: NDArray[np.int64], positions: NDArray[np.int64]) -> NDArray[np.object_]:
    """The cells as text that reads back exactly; None where nothing was observed."""
    texts = np.full(len(rows), None, dtype=object)
    for position in np.unique(positions):
        of_column = positions == position
        texts[of_column] = table.texts(schema.columns[position].name, rows[of_column], schema.missing_values)
    return texts


def _unknown_suffix(path: str | Path) -> str:
    return (
        f"A seam is written to .parquet, .csv, .jsonl or .ndjson, not to {Path(path).suffix or 'a name without a suffix'!r} "
        f"(file {Path(path).name!r}). Hint: seam.parquet keeps every type."
    )


def defused(names: Sequence[str]) -> list[pl.Expr]:
    """Text columns with an apostrophe before what a spreadsheet would run as a formula."""
    risky = [pl.col(name).str.contains(FORMULA_START) & ~pl.col(name).str.contains(NUMBER) for name in names]
    return [
        pl.when(is_risky).then("'" + pl.col(name)).otherwise(pl.col(name)).alias(name)
        for name, is_risky in zip(names, risky, strict=True)
    ]


def _read_csv(path: str | Path) -> pl.DataFrame:
    types = {**LEDGER, "cause": pl.String, "donors": pl.String}
    numbers = pl.col("donors").str.split(" ").list.eval(pl.element().filter(pl.element() != "").cast(pl.Int64))
    return pl.read_csv(path, schema=types).with_columns(numbers)


@dataclass(frozen=True)
class Restoration:
    """What a restore returns: the restored table, the seam, and the way back.

    `table` is of the same library, with the same dtypes, index and column order as the incoming one, of which the
    restoration keeps a copy of its own. `suspect` says per row and column of the schema whether the cell was flagged;
    `flagged` per row whether it was, for its damage or its noise (not for noise that was declared, nor where clean rows seem as
    noisy: such rows are denoised without an alarm); `quarantined` whether it was set aside, and nothing in it changed.
    `row_p_values` are how rare so odd, or so noisy, a row is among clean ones. `facts` is what the restorer knows of the run:
    promises, noise levels, audit, versions.
    """

    incoming: Table
    schema: Schema
    blocks: Blocks
    changed: NDArray[np.bool_]
    suspect: NDArray[np.bool_]
    seam: Seam
    row_p_values: NDArray[np.float64] | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    rejected: Seam = field(default_factory=lambda: Seam.of(row=[]))
    flagged: NDArray[np.bool_] = None  # type: ignore[assignment]
    quarantined: NDArray[np.bool_] = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        own = {
            "incoming": self.incoming.snapshot(),
            "flagged": self.suspect.any(axis=1) if self.flagged is None else self.flagged,
            "quarantined": np.zeros(len(self.suspect), dtype=bool) if self.quarantined is None else self.quarantined,
        }
        for name, value in own.items():
            object.__setattr__(self, name, value)

    @cached_property
    def table(self) -> Any:
        """The restored table."""
        if not self.changed.any():
            return self.undo()
        return self.incoming.decode(self.schema, self.blocks, self.changed)

    def undo(self) -> Any:
        """The incoming table, exactly as it was when it was restored."""
        return self.incoming.copy()

    def apply(self, decisions: ArrayLike | Mapping[int, bool]) -> Restoration:
        """The restoration with only the accepted repairs; what was rejected stays on record in `rejected`.

        `decisions` says for every line of the seam whether it is accepted, or maps positions of lines to a decision
        (lines not named are accepted).
        """
        accepted = self._decided(decisions)
        changed = self.changed.copy()
        undone = self.seam.frame.filter(pl.Series(~accepted))
        positions = [self.schema.position(name) for name in undone["column"]]
        changed[undone["row"].to_numpy() - int(self.facts.get("first_row", 0)), positions] = False
        rejected = Seam.concat([self.rejected, self.seam.filter(~accepted)])
        return replace(self, changed=changed, seam=self.seam.filter(accepted), rejected=rejected)

    def _decided(self, decisions: ArrayLike | Mapping[int, bool]) -> NDArray[np.bool_]:
        n = len(self.seam)
        if isinstance(decisions, Mapping):
            accepted = np.ones(n, dtype=bool)
            for line, accept in decisions.items():
                if not isinstance(line, (int, np.integer)) or not 0 <= line < n:
                    raise InputError(
                        f"Decision for line {line!r}, but the seam has lines 0 to {n - 1}. Hint: len(seam)."
                    )
                if not isinstance(accept, (bool, np.bool_)):
                    raise InputError(
                        f"Decision for line {line} must be True or False; got {accept!r}. Hint: False rejects it."
                    )
                accepted[line] = accept
            return accepted
        accepted = np.asarray(decisions, dtype=None if n else bool)
        if accepted.shape != (n,) or accepted.dtype != np.bool_:
            raise InputError(
                f"Decisions must be {n} booleans, one per line of the seam; got {accepted.dtype} of shape "
                f"{accepted.shape}. Hint: pass a mapping {{line: False}} to reject single lines."
            )
        return accepted

    def summary(self) -> dict[str, Any]:
        """The restoration in figures: a plain dict, described by `summary.schema.json` in the package."""
        return summarise(self)

    def save_report(self, path: str | Path, **options: Any) -> None:
        """Write a report as HTML, Markdown or JSON, by suffix; options are those of `goldseam.report.write_report`."""
        from goldseam.report import write_report

        write_report(self, path, **options)

    def _repr_html_(self) -> str:
        from goldseam.report import short_html

        return short_html(self)

    def __repr__(self) -> str:
        return f"<Restoration: {int(self.changed.sum())} of {self.changed.size} cells changed; {self.seam!r}>"
