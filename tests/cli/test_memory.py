"""`--memory` is kept, with the real restorer and a file much larger than what is left for rows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from tests.cli.helpers import ENVIRONMENT, PROGRAM, run
from tests.cli.test_real import correlated

REAL = True
ROWS = 120_000
NOTE = 900  # bytes of text per row that only pass through
LIMIT = 500_000_000
GAUGE = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(0 if done.returncode in (0, 1) else 2)
"""


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model, and a table of 110 MB as CSV and as Parquet; every kernel is compiled when they are there."""
    folder = tmp_path_factory.mktemp("memory")
    text = "".join(np.random.default_rng(0).choice(list("abcdefghij klmnop"), 4096))
    for name, rows in (("reference", 400), ("small", 500), ("in", ROWS)):
        cuts = np.random.default_rng(rows).integers(0, len(text) - NOTE, rows).tolist()
        frame = correlated(rows, rows).with_columns(note=pl.Series([text[cut : cut + NOTE] for cut in cuts]))
        hit = pl.Series(np.random.default_rng(1).random(rows) < (0 if name == "reference" else 0.05))
        frame = frame.with_columns(x1=pl.when(hit).then(77.0).otherwise("x1"))
        frame.write_csv(folder / f"{name}.csv")
    frame.write_parquet(folder / "in.parquet")
    frame.write_ndjson(folder / "in.jsonl")
    fit = ("fit", "reference.csv", "-o", "model.seam", "--key", "id", "--kinds", "note=passthrough")
    for words in (
        (*fit, "--method", "conditional", "--no-audit"),
        ("restore", "small.csv", "-m", "model.seam", "-o", "out.csv"),
    ):
        out = run(*words, cwd=folder, program=PROGRAM)
        assert out.code == 0, out.err
    return folder


def peak_bytes(*words: str, cwd: Path) -> int:
    """Peak memory of a command, started by a small process: a new program inherits the peak of the one that starts it."""
    done = subprocess.run(
        [sys.executable, "-c", GAUGE, *PROGRAM, *words], cwd=cwd, env=ENVIRONMENT, capture_output=True, check=True
    )
    return int(done.stdout.split()[-1]) * 1024


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "target"),
    [("in.csv", "a.parquet"), ("in.csv", "d.arrow"), ("in.parquet", "b.parquet"), ("in.jsonl", "c.jsonl")],
)
def test_a_restore_keeps_within_the_memory(work: Path, source: str, target: str) -> None:
    words = ("restore", source, "-m", "model.seam", "-o", target, "--memory", "500MB", "--quiet")
    assert peak_bytes(*words, cwd=work) <= LIMIT
    read = {"parquet": pl.read_parquet, "arrow": pl.read_ipc, "jsonl": pl.read_ndjson}[target.rpartition(".")[2]]
    before, after = pl.read_parquet(work / "in.parquet"), read(work / target)
    seam = pl.read_parquet(work / f"{target[0]}.run" / "seam.parquet").filter(pl.col("cause") != "refused")
    assert seam.height > 0.04 * ROWS
    touched = {name: rows["row"].to_numpy() for (name,), rows in seam.group_by("column")}
    for name in before.columns:
        same = np.ones(ROWS, bool)
        same[touched.get(name, np.empty(0, np.int64))] = False
        assert_frame_equal(after.select(name).filter(same), before.select(name).filter(same))


@pytest.mark.slow
@pytest.mark.parametrize("source", ["in.csv", "in.parquet"])
def test_a_check_keeps_within_the_memory(work: Path, source: str) -> None:
    words = ("check", source, "-m", "model.seam", "--seam", "check.csv", "--memory", "500MB", "--quiet", "--rows", "0")
    assert peak_bytes(*words, cwd=work) <= LIMIT
