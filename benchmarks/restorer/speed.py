"""What the restorer costs on one core: fitting 10,000 mixed rows of 15 columns with its audit, restoring 100,000."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.harness import write_results

METHODS = (["tree", "field"], ["conditional"], ["tree", "conditional"], ["conditional", "boosted"], "auto")
LIMIT_ROWS, LIMIT_FIT, LIMIT_MEMORY = 15_000, 60, 1000
RESTORES = 5  # a machine shared with others changes its speed within minutes: the median of these counts


def table(n: int, seed: int) -> pd.DataFrame:
    """Three factors behind nine numbers, two integers and four categories."""
    rng = np.random.default_rng(seed)
    factors = rng.normal(size=(n, 3))
    load = np.random.default_rng(0).normal(size=(3, 15))
    values = factors @ load + 0.5 * rng.normal(size=(n, 15))
    out = {f"number {j}": values[:, j] for j in range(9)}
    out |= {f"count {j}": np.rint(20 + 5 * values[:, j]).astype(int) for j in (9, 10)}
    for j in range(11, 15):
        out[f"kind {j}"] = np.array(["a", "b", "c", "d"])[np.digitize(values[:, j], [-1.5, 0.0, 1.5])]
    return pd.DataFrame(out)


def measure(method: object, n_rows: int) -> dict[str, float]:
    """In a process of its own, so that memory is this method's alone."""
    import time

    from goldseam import Restorer

    model = Restorer(method=method, random_state=0)
    Restorer(method=method, random_state=0).fit(table(500, 3)).restore(table(600, 4))  # kernels are compiled
    start = time.perf_counter()
    model.fit(table(10_000, 1))
    fitted = time.perf_counter() - start
    incoming = table(n_rows, 2)
    rng = np.random.default_rng(5)
    for row in rng.permutation(n_rows)[: n_rows // 20]:
        incoming.iloc[row, int(rng.integers(9))] += 8.0
    seconds = []
    for _ in range(RESTORES):
        start = time.perf_counter()
        model.restore(incoming)
        seconds.append(time.perf_counter() - start)
    status = Path("/proc/self/status").read_text().splitlines()
    peak = next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))
    rates = n_rows / np.array(seconds)
    return {
        "fit s": fitted,
        "rows per s": float(np.median(rates)),
        "slowest rows per s": float(rates.min()),
        "fastest rows per s": float(rates.max()),
        "peak MB": peak,
    }


def main(quick: bool) -> None:
    n_rows = 5_000 if quick else 100_000
    rows = []
    for method in METHODS:
        code = f"from benchmarks.restorer.speed import measure; import json; print(json.dumps(measure({method!r}, {n_rows})))"
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        figures = json.loads(run.stdout.splitlines()[-1])
        rows.append(
            {
                "method": method if isinstance(method, str) else " + ".join(method),
                **figures,
                "limit / fit": LIMIT_FIT / figures["fit s"],
                "rows / limit": figures["rows per s"] / LIMIT_ROWS,
                "limit / peak": LIMIT_MEMORY / figures["peak MB"],
            }
        )
        print(rows[-1], flush=True)
    notes = f"""One thread; a ratio above 1 passes. Limits: fit with audit {LIMIT_FIT} s, {LIMIT_ROWS:,} rows per s with tree and
field, {LIMIT_MEMORY} MB. A twentieth of the rows has one wrong cell. Rows per s are the median of
{RESTORES} restores in a row, its slowest and fastest beside it."""
    write_results("restorer-speed", rows, title="Speed of the restorer, 15 mixed columns", notes=notes, quick=quick)
