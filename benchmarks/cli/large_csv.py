"""Restore a large mixed CSV: memory, and speed beside reading and writing it with polars plus the model's own time.

`python -m benchmarks cli/large_csv` makes a table of GOLDSEAM_CSV_MB megabytes (2000 unless told otherwise) in a temporary
folder: eight modelled columns that depend on each other, an identifier and a text note, 5 % of the rows damaged. The
restore runs as a process of its own, so that its memory can be measured; its output is compared with the input, cell by cell.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.harness import write_results

PROGRAM = [sys.executable, "-c", "from goldseam.cli import main; main()"]
NUMBERS = ("a", "b", "c", "d", "e")
GAUGE = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""
REFERENCE_ROWS = 4000
CHUNK = 100_000
SAMPLED = 120_000
MODELS: dict[str, list[str]] = {"default": [], "fast": ["--method", "conditional", "--no-audit"]}
NOTE = 900


def chunk(n: int, rng: np.random.Generator, first: int) -> pl.DataFrame:
    """Rows whose columns hang together: two hidden factors."""
    hidden = rng.normal(size=(n, 2))
    mix = np.array([[1.0, 0.2], [0.8, -0.5], [-0.3, 1.0], [0.5, 0.5], [0.1, -0.9]])
    numbers = hidden @ mix.T + 0.3 * rng.normal(size=(n, len(NUMBERS)))
    note = "".join(rng.choice(list("abcdefghij klmnop"), 4096))
    cuts = rng.integers(0, 4096 - NOTE, n)
    return pl.DataFrame(
        {
            "id": [f"{i:010d}" for i in range(first, first + n)],
            **{name: np.round(10 + 3 * numbers[:, j], 3) for j, name in enumerate(NUMBERS)},
            "count": np.maximum(0, np.rint(20 + 8 * hidden[:, 0])).astype(np.int64),
            "site": np.array(["north", "south", "west"])[np.digitize(hidden[:, 1], [-0.5, 0.5])],
            "ok": hidden.sum(axis=1) > 0,
            "note": [note[c : c + NOTE] for c in cuts.tolist()],
        }
    )


def damaged(frame: pl.DataFrame, rng: np.random.Generator) -> pl.DataFrame:
    """One cell of every twentieth row far off, or empty."""
    hit = rng.random(frame.height) < 0.05
    which = rng.integers(0, len(NUMBERS), frame.height)
    new = []
    for j, name in enumerate(NUMBERS):
        here = hit & (which == j)
        empty = here & (rng.random(frame.height) < 0.2)
        new.append(
            pl.when(pl.Series(empty)).then(None).when(pl.Series(here)).then(99.0).otherwise(pl.col(name)).alias(name)
        )
    return frame.with_columns(new)


def generate(path: Path, megabytes: int) -> int:
    rng = np.random.default_rng(0)
    n_rows = 0
    with path.open("wb") as file:
        while file.tell() < megabytes * 10**6:
            damaged(chunk(CHUNK, rng, n_rows), rng).write_csv(file, include_header=n_rows == 0)
            n_rows += CHUNK
    return n_rows


def timed(words: list[str]) -> tuple[float, float]:
    """Seconds and peak memory (MB) of a process, started by a small one: a program inherits the peak of its starter."""
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", GAUGE, *words], stdout=subprocess.PIPE, check=True)
    return time.perf_counter() - start, float(done.stdout.split()[-1]) / 1024


def polars_seconds(source: Path, target: Path) -> float:
    """Reading and writing the same file with polars, streaming, types inferred."""
    code = f"import polars as pl; pl.scan_csv({str(source)!r}).sink_csv({str(target)!r})"
    return timed([sys.executable, "-c", code])[0]


def model_seconds(model: Path, source: Path, n_rows: int) -> float:
    """The restorer's own time per table, measured on some batches of typed rows in memory; all cores, as in the run."""
    from goldseam.model_file import load

    restorer = load(model).set_params(n_jobs=-1)
    rows = min(n_rows, SAMPLED)
    frame = pl.read_csv(source, n_rows=rows, schema_overrides={"id": pl.String})
    levels = restorer.survey([frame])
    restorer.restore(frame[:100], levels=levels)
    start = time.perf_counter()
    for first in range(0, rows, 30_000):
        restorer.restore(frame[first : first + 30_000], levels=levels, first_row=first)
    return (time.perf_counter() - start) * n_rows / rows


def verify(source: Path, target: Path, seam: Path) -> tuple[int, int]:
    """Rows, order and untouched cells: the output differs from the input in the cells of the seam and nowhere else."""
    lines = pl.scan_parquet(seam).filter(pl.col("cause") != "refused").select("row", "column").collect()
    of_row: dict[int, set[str]] = {}
    for row, column in lines.iter_rows():
        of_row.setdefault(row, set()).add(column)
    n_rows = n_changed = 0
    with source.open("rb") as before, target.open("rb") as after:
        names = before.readline().decode().strip().split(",")
        assert after.readline().decode().strip().split(",") == names
        for row, (old, new) in enumerate(zip(before, after, strict=True)):
            n_rows += 1
            if old != new:
                pairs = zip(names, old.split(b","), new.split(b","), strict=True)
                different = {name for name, a, b in pairs if a != b}
                assert different <= of_row.get(row, set()), (row, different)
                n_changed += len(different)
    return n_rows, n_changed


def measured(folder: Path, name: str, options: list[str], n_rows: int, plain: float) -> dict[str, Any]:
    """One model: its fit, the restore as a process of its own, the model's time in this one, and the outcome verified."""
    source, target, model = folder / "in.csv", folder / f"{name}.csv", folder / f"{name}.seam"
    fit = ["fit", str(folder / "reference.csv"), "-o", str(model), "--key", "id", "--kinds", "note=passthrough"]
    timed([*PROGRAM, *fit, *options, "--quiet"])
    before = model_seconds(model, source, n_rows)
    whole, memory = timed(
        [*PROGRAM, "restore", str(source), "-m", str(model), "-o", str(target), "--memory", "1GB", "--quiet"]
    )
    own = (before + model_seconds(model, source, n_rows)) / 2  # machines change their speed
    checked, changed = verify(source, target, folder / f"{name}.run" / "seam.parquet")
    assert checked == n_rows
    target.unlink()
    return {
        "model": name,
        "file (MB)": round(source.stat().st_size / 10**6),
        "rows": n_rows,
        "polars read + write (s)": plain,
        "model's own time (s)": own,
        "goldseam restore (s)": whole,
        "speed ratio": (plain + own) / whole,
        "ratio at least": 0.6,
        "peak memory (MB)": memory,
        "memory at most": 1000 * 10**6 / 2**20,
        "cells changed": changed,
    }


def main(quick: bool) -> None:
    megabytes = 20 if quick else int(os.environ.get("GOLDSEAM_CSV_MB", "2000"))
    with tempfile.TemporaryDirectory(prefix="goldseam-large-") as name:
        folder = Path(name)
        chunk(REFERENCE_ROWS, np.random.default_rng(9), 0).write_csv(folder / "reference.csv")
        n_rows = generate(folder / "in.csv", megabytes)
        plain = polars_seconds(folder / "in.csv", folder / "copy.csv")
        (folder / "copy.csv").unlink()
        rows = [measured(folder, model, options, n_rows, plain) for model, options in MODELS.items()]
    notes = (
        "Ratio = (polars + model) / restore, one machine, one run. The model's own time is that of `Restorer.restore` on "
        f"{min(n_rows, SAMPLED):,} typed rows in memory, scaled to all rows, before and after the restore; the restore's own "
        "survey of the table does not count for it. `default` is what `goldseam fit` makes, `fast` the cheapest model "
        "(`--method conditional`), beside which reading and writing weigh most. Rows, order and all cells outside the seam "
        "were compared with the input."
    )
    write_results("cli-large_csv", rows, title="A large CSV on the command line", notes=notes, quick=quick)
