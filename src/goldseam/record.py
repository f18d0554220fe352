"""What goes on record about a restoration: a line per touched cell, and the facts that a report is made from."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from goldseam import __version__
from goldseam.conditional.layout import Layout
from goldseam.mending import Levels, Mended
from goldseam.schema import Blocks, Schema
from goldseam.seam import CAUSES, Seam
from goldseam.tables import Table

__all__ = ["facts_of", "histograms", "promise", "seam_of"]

Floats = NDArray[np.float64]
HISTOGRAM_BINS: Final = 30


def seam_of(before: Table, after: Table, mended: Mended, layout: Layout, schema: Schema, first_row: int) -> Seam:
    """One line per cell that was touched or should have been."""
    rows, cells = np.nonzero(mended.cause >= 0)
    number_of = np.full(mended.cause.shape[1], -1)
    number_of[layout.number_cells] = np.arange(mended.low.shape[1])
    column = number_of[cells]
    low, high = (_of_numbers(side, rows, column) for side in (mended.low, mended.high))
    probability = np.where(np.isnan(mended.filled), mended.probabilities, mended.filled)[rows, cells]
    return Seam.of_cells(
        before, after, schema, rows, np.asarray(schema.modelled_positions)[cells], first_row=first_row,
        cause=np.array(CAUSES, dtype=object)[mended.cause[rows, cells]], low=low, high=high,
        p_value=mended.p_values[rows, cells], probability=probability,
        donors=mended.donors[rows],
    )  # fmt: skip


def facts_of(restorer: Any, levels: Levels, first_row: int, **more: Any) -> dict[str, Any]:
    """What a report needs to know besides the table and the seam; plain values only."""
    noise = {} if levels.noise is None else levels.noise.described(restorer.schema_)
    return {
        "promises": [dict(one) for one in restorer.audit_.promises],
        "levels": {
            "cell_p_value": levels.cell_p_value,
            "open_share": levels.open_share,
            "far_share": levels.far_share,
        },
        "noise": noise,
        "audit": restorer.audit_.to_dict(),
        "reference": {
            "rows": restorer.row_counts_["reference"],
            "columns": restorer.histograms_,
            "trust": _trust_counts(restorer),
        },
        "grid_shape": list(restorer.grid_shape) if restorer.grid_shape else None,
        "first_row": first_row,
        "how": {
            "call": repr(restorer),
            "model": restorer.fingerprint_,
            "seed": restorer.random_state if isinstance(restorer.random_state, int) else None,
            "open_damage": levels.open_share,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "versions": {"goldseam": __version__, "python": platform.python_version(), "numpy": np.__version__},
        },
        **more,
    }


def _trust_counts(restorer: Any) -> dict[str, Any] | None:
    """How far the rows of a contaminated reference are trusted, for pictures."""
    if restorer.reference == "clean":
        return None
    counts, edges = np.histogram(restorer.reference_trust_, bins=20, range=(0.0, 1.0))
    return {"edges": edges.tolist(), "counts": counts.tolist(), "distrusted": restorer.row_counts_["distrusted"]}


def promise(name: str, nominal: float, measured: float, n: int, scope: str) -> dict[str, Any]:
    """A promised rate beside the measured one."""
    sd = float(np.sqrt(nominal * (1.0 - nominal) / max(n, 1)))
    return {"name": name, "nominal": nominal, "measured": measured, "sd": sd, "n": n, "scope": scope}


def histograms(blocks: Blocks, schema: Schema) -> dict[str, dict[str, list[Any]]]:
    """How the reference's columns are distributed, for pictures."""
    out: dict[str, dict[str, list[Any]]] = {}
    for j, column in enumerate(schema.numbers):
        seen = blocks.numbers[:, j]
        counts, edges = np.histogram(seen[~np.isnan(seen)], bins=HISTOGRAM_BINS)
        out[column.name] = {"edges": edges.tolist(), "counts": counts.tolist()}
    for j, column in enumerate(schema.categories):
        codes = blocks.codes[:, j]
        counts = np.bincount(codes[codes >= 0], minlength=len(column.levels))
        out[column.name] = {"levels": [str(level) for level in column.levels], "counts": counts.tolist()}
    return out


def _of_numbers(values: Floats, rows: NDArray[np.int64], column: NDArray[np.int64]) -> Floats:
    """Values of number cells; NaN for cells of categories (column -1)."""
    out = np.full(rows.size, np.nan)
    known = column >= 0
    out[known] = values[rows[known], column[known]]
    return out
