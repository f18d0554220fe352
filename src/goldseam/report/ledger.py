"""What a report shows of a seam: one pass in blocks of lines, so that memory does not grow with the ledger.

A seam in memory and a Parquet file are read alike. Three things are gathered on the way: how many lines each block of
the cell map holds per cause, the rows with most damage, and the lines worth a look. The pass reads four columns only;
a second look fetches the chosen rows in full.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from goldseam.seam import CAUSES, LEDGER, Seam

__all__ = ["CellMap", "Ledger", "RowStory", "read_ledger"]

BLOCK: Final = 500_000
ROW_BANDS: Final = 240
COLUMN_BANDS: Final = 48
WORST_ROWS: Final = 16
CELLS_PER_ROW: Final = 8
LINES: Final = 400
SCANNED: Final = ("row", "column", "cause", "p_value")
DONORS: Final = 3


@dataclass(frozen=True)
class CellMap:
    """Lines per cause over bands of rows and columns: `counts` is (causes, row bands, column bands)."""

    counts: NDArray[np.int64]
    row_edges: NDArray[np.int64]
    column_edges: NDArray[np.int64]
    names: Sequence[str]

    causes: Sequence[str] = CAUSES

    def leading(self) -> NDArray[np.int64]:
        """The cause that a block is coloured by: noise only where nothing harder happened."""
        hard, noise = self.counts.copy(), self.causes.index("noise")
        hard[noise] = 0
        return np.where(hard.any(axis=0), hard.argmax(axis=0), noise)

    def shares(self) -> NDArray[np.float64]:
        """Share of the cells of a block that have a line."""
        size = np.outer(np.diff(self.row_edges), np.diff(self.column_edges))
        return self.counts.sum(axis=0) / np.maximum(size, 1)

    @property
    def is_aggregated(self) -> bool:
        """Whether a block stands for more than one cell."""
        return len(self.row_edges) - 1 < self.row_edges[-1] - self.row_edges[0] or len(self.column_edges) - 1 < len(
            self.names
        )


@dataclass(frozen=True)
class RowStory:
    """One row of the table with what happened to it."""

    row: int
    by_cause: Mapping[str, int]
    lines: list[dict[str, Any]]
    p_value: float | None
    neighbouring: bool
    donors: list[int]

    @property
    def n_lines(self) -> int:
        """Lines of the seam in this row."""
        return sum(self.by_cause.values())


@dataclass(frozen=True)
class Ledger:
    """The seam as a report shows it."""

    n_lines: int
    cell_map: CellMap
    rows: list[RowStory]
    lines: list[dict[str, Any]]


def read_ledger(seam: Seam | str | Path, names: Sequence[str], n_rows: int, first_row: int = 0) -> Ledger:
    """Gather what a report shows of a seam: an object, or a file (Parquet is read in blocks)."""
    lines = _lazy(seam)
    n_lines = int(lines.select(pl.len()).collect().item())
    gathered = _Gathered(_empty_map(names, n_rows, first_row))
    for block in _blocks(lines.select(SCANNED), n_lines):
        gathered.add(block)
    worst, odd = gathered.worst_rows(), gathered.odd_lines()
    chosen = {*worst, *odd["row"]}
    found = (
        lines.filter(pl.col("row").is_in(list(chosen))).collect(engine="streaming")
        if chosen
        else lines.head(0).collect()
    )
    return Ledger(n_lines, gathered.cell_map, _stories(found, worst, names), _shown(found, odd, n_lines))


def _lazy(seam: Seam | str | Path) -> pl.LazyFrame:
    if isinstance(seam, Seam):
        return seam.frame.lazy()
    if Path(seam).suffix == ".parquet":
        return pl.scan_parquet(seam).select(pl.col(name).cast(dtype) for name, dtype in LEDGER.items())
    return Seam.read(seam).frame.lazy()


def _blocks(lines: pl.LazyFrame, n_lines: int) -> Iterator[pl.DataFrame]:
    for start in range(0, n_lines, BLOCK):
        yield lines.slice(start, BLOCK).collect()


def _empty_map(names: Sequence[str], n_rows: int, first_row: int) -> CellMap:
    row_edges = first_row + _band_edges(n_rows, ROW_BANDS)
    column_edges = _band_edges(len(names), COLUMN_BANDS)
    counts = np.zeros((len(CAUSES), len(row_edges) - 1, len(column_edges) - 1), dtype=np.int64)
    return CellMap(counts, row_edges, column_edges, names)


def _band_edges(n: int, n_bands: int) -> NDArray[np.int64]:
    """Bands of the same width, the last one perhaps narrower.

    >>> _band_edges(10, 4).tolist(), _band_edges(3, 4).tolist()
    ([0, 3, 6, 9, 10], [0, 1, 2, 3])
    """
    width = max(1, -(-n // n_bands))
    return np.append(np.arange(0, n, width), n).astype(np.int64)


@dataclass
class _Gathered:
    """What has been read so far."""

    cell_map: CellMap
    rows: list[pl.DataFrame] = field(default_factory=list)
    odd: list[pl.DataFrame] = field(default_factory=list)

    def add(self, block: pl.DataFrame) -> None:
        self._count(block)
        self.rows.append(_candidate_rows(block))
        self.odd.append(_odd_lines(block))
        if len(self.odd) >= 8:
            self.rows, self.odd = [pl.concat(self.rows)], [_odd_lines(pl.concat(self.odd))]

    def _count(self, block: pl.DataFrame) -> None:
        grid = self.cell_map
        position = {name: i for i, name in enumerate(grid.names)}
        columns = block["column"].replace_strict(position, default=-1, return_dtype=pl.Int64).to_numpy()
        bands = [
            np.searchsorted(edges, places, side="right") - 1
            for edges, places in ((grid.row_edges, block["row"].to_numpy()), (grid.column_edges, columns))
        ]
        n_rows, n_columns = grid.counts.shape[1:]
        inside = (bands[0] >= 0) & (bands[0] < n_rows) & (bands[1] >= 0) & (bands[1] < n_columns)
        at = (block["cause"].to_physical().to_numpy()[inside], bands[0][inside], bands[1][inside])
        flat = np.ravel_multi_index(at, grid.counts.shape)
        grid.counts.ravel()[:] += np.bincount(flat, minlength=grid.counts.size)

    def worst_rows(self) -> list[int]:
        """Rows with most damage: noise counts least, the smaller p-value breaks ties."""
        if not self.rows:
            return []
        whole = pl.concat(self.rows).group_by("row").agg(pl.sum("hard", "soft"), pl.min("p_value"))
        return _ranked(whole).head(WORST_ROWS)["row"].to_list()

    def odd_lines(self) -> pl.DataFrame:
        """The lines worth a look."""
        return _odd_lines(pl.concat(self.odd)) if self.odd else pl.DataFrame(schema=["row", "column"])


def _candidate_rows(block: pl.DataFrame) -> pl.DataFrame:
    """The worst rows of a block, and those at its ends, which the next block may continue."""
    soft = pl.col("cause") == "noise"
    rows = block.group_by("row").agg(hard=(~soft).sum(), soft=soft.sum(), p_value=pl.col("p_value").min())
    ends = rows.filter(pl.col("row").is_in([block["row"][0], block["row"][-1]]))
    return pl.concat([_ranked(rows).head(WORST_ROWS), ends]).unique()


def _ranked(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.sort("hard", "soft", "p_value", "row", descending=[True, True, False, False], nulls_last=True)


def _odd_lines(block: pl.DataFrame) -> pl.DataFrame:
    """The lines of each cause with the smallest p-values; all lines when they are few."""
    if block.height <= LINES:
        return block
    present = block["cause"].unique().to_list()
    quota = LINES // max(1, len(present))
    picked = [block.filter(pl.col("cause") == cause) for cause in present]
    return pl.concat([_oddest(part, quota) for part in picked])


def _oddest(lines: pl.DataFrame, quota: int) -> pl.DataFrame:
    return (
        lines.with_columns(_key=pl.col("p_value").fill_null(2.0))
        .bottom_k(quota, by=["_key", "row", "column"])
        .drop("_key")
    )


# --------------------------------------------------------------------------------------------------- rows


def _shown(found: pl.DataFrame, odd: pl.DataFrame, n_lines: int) -> list[dict[str, Any]]:
    """Every line of a short seam, in its order; else the oddest of every cause."""
    if n_lines <= LINES:
        return found.to_dicts()
    lines = found.join(odd.select("row", "column"), on=["row", "column"], how="semi")
    return lines.sort("p_value", "row", "column", nulls_last=True).to_dicts()


def _stories(found: pl.DataFrame, rows: Sequence[int], names: Sequence[str]) -> list[RowStory]:
    position = {name: i for i, name in enumerate(names)}
    return [_story(row, found.filter(pl.col("row") == row), position) for row in rows]


def _story(row: int, lines: pl.DataFrame, position: Mapping[str, int]) -> RowStory:
    counts = dict(lines["cause"].value_counts().iter_rows())
    corrupt = lines.filter(pl.col("cause") == "corrupt")
    places = sorted(position.get(name, -1) for name in corrupt["column"])
    order = lines.with_columns(_soft=pl.col("cause") == "noise").sort(
        "_soft", "p_value", nulls_last=True, maintain_order=True
    )
    donors = lines["donors"].explode().drop_nulls().value_counts(sort=True)
    return RowStory(
        row=row,
        by_cause={cause: int(counts.get(cause, 0)) for cause in CAUSES},
        lines=order.drop("_soft").head(CELLS_PER_ROW).to_dicts(),
        p_value=lines["p_value"].min(),  # type: ignore[arg-type]
        neighbouring=len(places) > 1 and places[-1] - places[0] + 1 == len(places),
        donors=sorted(donors.sort(["count", "donors"], descending=[True, False])["donors"].head(DONORS).to_list()),
    )
