"""Ten million changed cells: seconds, memory and size of the report, read from a Parquet seam in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.harness import write_results
from goldseam.schema import Blocks, Column, Kind, Schema
from goldseam.seam import CAUSES, Restoration, Seam
from goldseam.summary import combine
from goldseam.tables import Table

N_COLUMNS = 40
BATCH = 100_000
LIMITS = {"seconds": 60.0, "memory MB": 1000.0, "size MB": 2.0}

MEASURED = """
import json, re, sys, time
from pathlib import Path
from goldseam.report import write_report
start, cpu = time.perf_counter(), time.process_time()
write_report(json.loads(Path(sys.argv[1]).read_text()), sys.argv[3], seam=sys.argv[2])
# VmHWM and not ru_maxrss, which a child process takes over from its parent.
peak = int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024
print(json.dumps({"seconds": time.perf_counter() - start, "CPU s": time.process_time() - cpu, "memory MB": peak}))
"""


def batch(rng: np.random.Generator, first_row: int, n_rows: int, lines_per_row: int) -> Restoration:
    """Rows of noise with so many changed cells each."""
    schema = Schema(tuple(Column(f"sensor {i}", Kind.CONTINUOUS, low=-4.0, high=4.0) for i in range(N_COLUMNS)))
    clean = rng.standard_normal((n_rows, N_COLUMNS))
    changed = rng.random((n_rows, N_COLUMNS)).argsort(axis=1) < lines_per_row
    dirty = np.where(changed, clean + 5 * rng.standard_normal(clean.shape), clean)
    rows, columns = np.nonzero(changed)
    n = len(rows)
    frame = pl.DataFrame(
        {
            "row": rows + first_row,
            "column": pl.Series(list(schema.names)).gather(columns),
            "kind": pl.repeat("continuous", n, eager=True),
            "cause": pl.Series(list(CAUSES)).gather(rng.choice(5, n, p=[0.1, 0.6, 0.2, 0.05, 0.05])),
            "observed": pl.Series(dirty[changed]).cast(pl.String),
            "restored": pl.Series(clean[changed]).cast(pl.String),
            "low": clean[changed] - 1,
            "high": clean[changed] + 1,
            "p_value": rng.random(n) / 20,
            "probability": 1 - rng.random(n) / 20,
            "donors": pl.Series(rng.integers(0, 10_000, (n, 3))).cast(pl.List(pl.Int64)),
        }
    )
    facts = {"first_row": first_row, "ordered": True}
    return Restoration(
        Table.read(dirty).named(schema.names), schema, Blocks(clean, np.zeros((n_rows, 0), np.int32)), changed, changed,
        Seam(frame), rng.random(n_rows), facts,
    )  # fmt: skip


def write_run(folder: Path, n_lines: int, lines_per_row: int) -> None:
    """The seam and the summary of a run, written batch by batch."""
    rng = np.random.default_rng(42)
    summaries, parts = [], []
    for first_row in range(0, n_lines // lines_per_row, BATCH):
        restoration = batch(rng, first_row, min(BATCH, n_lines // lines_per_row - first_row), lines_per_row)
        summaries.append(restoration.summary())
        parts.append(folder / f"part-{first_row}.parquet")
        restoration.seam.write(parts[-1])
    pl.scan_parquet(parts).sink_parquet(folder / "seam.parquet")
    (folder / "summary.json").write_text(json.dumps(combine(summaries)))


def measured(n_lines: int, lines_per_row: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_run(folder, n_lines, lines_per_row)
        files = [str(folder / file) for file in ("summary.json", "seam.parquet", "report.html")]
        command = [sys.executable, "-c", MEASURED, *files]
        figures = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        size = (folder / "report.html").stat().st_size / 1e6
    return {"changed cells": f"{n_lines:,}", "rows": f"{n_lines // lines_per_row:,}", **figures, "size MB": size}


def main(quick: bool) -> None:
    runs = [(200_000, 10)] if quick else [(100_000, 10), (1_000_000, 10), (10_000_000, 10), (10_000_000, 1)]
    rows: list[dict[str, Any]] = [measured(*run) for run in runs]
    rows.append({"changed cells": "limit", **LIMITS})
    write_results(
        "report-ten_million", rows, title="Report of ten million changed cells", quick=quick,
        notes="HTML report from a summary and a Parquet seam, in a fresh process. Memory is the largest resident set of that "
        "process, libraries included.",
    )  # fmt: skip
