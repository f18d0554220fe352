"""What benchmarks share: a clock, a memory gauge, and one way to write results down."""

from __future__ import annotations

import json
import math
import os
import platform
import resource
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def seconds(call: Callable[[], Any], repeats: int = 3) -> float:
    """Best wall time of a call: the least disturbed of a few runs."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def peak_memory_mb() -> float:
    """Largest resident memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def machine() -> str:
    """The machine in a few words: figures mean little without it."""
    cpu = next(
        (
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if "model name" in line
        ),
        platform.processor(),
    )
    versions = [f"{name} {importlib_version(name)}" for name in ("numpy", "scikit-learn", "numba")]
    return f"{cpu}, {os.cpu_count()} cores, Python {platform.python_version()}, " + ", ".join(versions)


def importlib_version(name: str) -> str:
    from importlib.metadata import version

    return version(name)


def commit() -> str:
    """The commit that was measured, with a plus sign when the tree had changes."""
    run = lambda *words: subprocess.run(words, capture_output=True, text=True, check=False, cwd=RESULTS).stdout.strip()  # noqa: E731
    return run("git", "rev-parse", "--short", "HEAD") + (
        "+" if run("git", "status", "--porcelain", "--", "../../src") else ""
    )


def write_results(
    name: str, rows: Sequence[Mapping[str, Any]], *, title: str, notes: str = "", quick: bool = False
) -> None:
    """Print a table and keep it as `results/<name>.md` and `.json`; a quick run is only printed.

    `name` is `<room>-<benchmark>`. A row maps column titles to values; floats are shown with three decimals.
    """
    columns = list(dict.fromkeys(key for row in rows for key in row))
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(show(row.get(column)) for column in columns) + " |" for row in rows]
    text = f"# {title}\n\n" + "\n".join(lines) + "\n"
    text += f"\n{notes.strip()}\n" if notes else ""
    text += f"\nMeasured on {machine()}; commit {commit()}; {date.today().isoformat()}.\n"
    print(text, flush=True)
    if not quick:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"{name}.md").write_text(text)
        (RESULTS / f"{name}.json").write_text(
            json.dumps({"title": title, "rows": list(rows)}, indent=1, default=str) + "\n"
        )


def show(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else f"{value:.3f}" if abs(value) < 100 else f"{value:.0f}"
    return str(value)
