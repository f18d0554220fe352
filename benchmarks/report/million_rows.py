"""A million rows: summary, page and plots cost passes over the table, not a shape per row."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness import seconds, write_results
from benchmarks.report.ten_million import batch
from goldseam.report import render_html
from goldseam.report.displays.before_after import BeforeAfterDisplay
from goldseam.tables import Table


def measured(n_rows: int) -> dict[str, Any]:
    restoration = batch(np.random.default_rng(42), 0, n_rows, lines_per_row=1)
    summary = restoration.summary()
    encode = seconds(
        lambda: Table.read(restoration.incoming.native).named(restoration.schema.names).encode(restoration.schema)
    )
    whole = seconds(restoration.summary)
    page = seconds(lambda: render_html(summary, restoration.seam))
    columns = summary["columns"][:6]
    plot = seconds(lambda: BeforeAfterDisplay(columns).plot().figure_.canvas.draw())
    size = len(render_html(summary, restoration.seam).encode()) / 1e6
    return {
        "rows": f"{n_rows:,}",
        "columns": len(summary["columns"]),
        "changed cells": f"{len(restoration.seam):,}",
        "encode s": encode,
        "summary s": whole,
        "summary / encode": whole / encode,
        "page s": page,
        "page MB": size,
        "plot of 6 columns s": plot,
    }


def main(quick: bool) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["figure.max_open_warning"] = 0
    rows = [measured(n) for n in ((1000, 20_000) if quick else (1000, 100_000, 1_000_000))]
    write_results(
        "report-million_rows", rows, title="Summary, page and plots of a million rows", quick=quick,
        notes="The summary counts every column before and after over fixed bins; page and plots draw the counts. `encode` is "
        "one pass over the table, for comparison.",
    )  # fmt: skip
