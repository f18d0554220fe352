"""What it costs to turn a table into blocks and back: time against `to_numpy`, memory against the table itself.

A million rows of 20 mixed columns: 6 float64, 2 float32, 3 int64, 2 small int64, 2 boolean, 4 text, 1 date. One run
encodes the table, then decodes it with 5 % of the cells changed in half of the columns. Its time is divided by that of
one `to_numpy` per column; its peak of resident memory (a fresh process, peak reset before the run) by the table's size.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars

from benchmarks.harness import seconds, write_results
from goldseam.tables import Table, learn_schema

LIBRARIES = ("pandas", "polars", "pyarrow")
TIME_LIMIT, MEMORY_LIMIT = 5.0, 4.0
CHANGED_SHARE = 0.05
WORDS = np.array([f"{stem}-{i:02d}" for i in range(10) for stem in ("north", "south")])


def mixed_table(n_rows: int, library: str) -> Any:
    rng = np.random.default_rng(42)
    data: dict[str, Any] = {f"float_{i}": rng.normal(size=n_rows) for i in range(6)}
    data |= {f"single_{i}": rng.normal(size=n_rows).astype(np.float32) for i in range(2)}
    data |= {f"count_{i}": rng.integers(0, 10_000, n_rows) for i in range(3)}
    data |= {f"grade_{i}": rng.integers(0, 8, n_rows) for i in range(2)}
    data |= {f"flag_{i}": rng.random(n_rows) < 0.3 for i in range(2)}
    data |= {f"word_{i}": polars.Series(WORDS.tolist())[rng.integers(0, len(WORDS), n_rows)] for i in range(4)}
    data["day"] = np.datetime64("2024-01-01", "ms") + rng.integers(0, 366, n_rows).astype("timedelta64[D]")
    for name in ("float_0", "float_1", "single_0"):
        data[name][rng.random(n_rows) < 0.02] = np.nan
    table = polars.DataFrame(data)
    return {"polars": lambda: table, "pandas": table.to_pandas, "pyarrow": table.to_arrow}[library]()


def one_run(native: Any) -> Callable[[], Any]:
    """Encode and decode; schema and mask are made beforehand, for they belong to the model and to the detector."""
    schema = learn_schema(Table.read(native))
    rng = np.random.default_rng(7)
    changed = np.zeros((Table.read(native).n_rows, len(schema.columns)), dtype=bool)
    half = schema.modelled_positions[::2]
    assert len(half) == len(schema.columns) // 2
    changed[:, half] = rng.random((len(changed), len(half))) < CHANGED_SHARE
    centers = np.array([column.center for column in schema.numbers])

    def run() -> Any:
        table = Table.read(native)
        blocks = table.encode(schema)
        for j, position in enumerate(schema.number_positions):
            blocks.numbers[changed[:, position], j] = centers[j]
        for j, position in enumerate(schema.category_positions):
            blocks.codes[changed[:, position], j] = 0
        return table.decode(schema, blocks, changed)

    return run


def to_numpy(native: Any) -> Callable[[], Any]:
    names = native.column_names if hasattr(native, "column_names") else list(native.columns)
    return lambda: [native[name].to_numpy() for name in names]


def table_bytes(native: Any) -> int:
    if hasattr(native, "memory_usage"):
        return int(native.memory_usage(deep=True).sum())
    return int(native.nbytes if hasattr(native, "nbytes") else native.estimated_size())


def status_bytes(field: str) -> int:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) * 1024


def measure_memory(library: str, n_rows: int) -> None:
    """Runs in a process of its own; prints the table's bytes and the peak above what was there before."""
    native = mixed_table(n_rows, library)
    run = one_run(native)
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # Linux: forget the peak so far
    before = status_bytes("VmRSS")
    run()
    print(json.dumps({"table": table_bytes(native), "extra": status_bytes("VmHWM") - before}))


def row(library: str, n_rows: int) -> dict[str, Any]:
    native = mixed_table(n_rows, library)
    ours, theirs = seconds(one_run(native), 5), seconds(to_numpy(native), 5)
    words = [sys.executable, "-m", "benchmarks.tables.encode_decode", library, str(n_rows)]
    memory = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
    return {
        "library": library,
        "rows": n_rows,
        "encode + decode, s": ours,
        "to_numpy per column, s": theirs,
        "time ratio": ours / theirs,
        "time limit": TIME_LIMIT,
        "table, MB": memory["table"] / 2**20,
        "peak above the table, MB": memory["extra"] / 2**20,
        "memory ratio": memory["extra"] / memory["table"],
        "memory limit": MEMORY_LIMIT,
    }


def main(quick: bool) -> None:
    rows = [row(library, 50_000 if quick else 1_000_000) for library in LIBRARIES]
    notes = (
        "Each library with its default types (pandas: `str` held in arrow). The time of `to_numpy` is nearly all spent on "
        "the 4 text columns, which become Python strings; number columns cost it nothing or one copy."
    )
    write_results("tables-encode_decode", rows, title="Tables to blocks and back", notes=notes, quick=quick)


if __name__ == "__main__":
    measure_memory(sys.argv[1], int(sys.argv[2]))
