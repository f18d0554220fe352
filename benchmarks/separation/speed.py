"""Speed (S11): kernels per pair, `transform` against a k-NN imputer that is told the mask, growth, threads, start-up.

Processor time of one thread, not wall time, so that other work on the machine does not count; ratios are taken in one
run. Threads are compared by wall time, best of several.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.impute import KNNImputer

from benchmarks.harness import peak_memory_mb, seconds, write_results
from benchmarks.separation.measures import usps_trial
from goldseam import datasets
from goldseam.corruption.protocols import square_protocol
from goldseam.separation import AttributeTree, CorruptionSeparator
from goldseam.separation.reference import Reference


def processor_seconds(call: Callable[[], Any], repeats: int = 5) -> float:
    """Least processor time of this process over a few runs."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def space(n: int, d: int, alpha: float, leaf: int = 4) -> Reference:
    rows = np.random.default_rng(0).random((n, d))
    return Reference(
        rows, AttributeTree.interval(d).pruned(leaf), np.zeros(d), np.ones(d), np.zeros(d, dtype=bool), alpha
    )


def pair_rows(quick: bool) -> list[dict[str, Any]]:
    rows = []
    queries = np.random.default_rng(1).random((20 if quick else 100, 256))
    for alpha, limit, plain in ((1.0, 0.15, 0.80), (0.5, 1.2, 12.2)):
        reference = space(1000, 256, alpha)
        reference.radii(queries[:2], 5)
        spent = processor_seconds(lambda used=reference: used.radii(queries, 5), 7) / len(queries) / 1000 * 1e6
        rows.append(
            {
                "what": f"all 127 nodes, α={alpha}, N=1000, d=256, µs per pair",
                "measured": spent,
                "limit": limit,
                "plain implementation": plain,
            }
        )
    return rows


def in_turns(calls: list[Callable[[], Any]], repeats: int) -> list[float]:
    """Least processor time of each call; they take turns, so that a change of the machine meets all of them."""
    times = [[processor_seconds(call, 1) for call in calls] for _ in range(repeats)]
    return [min(column) for column in zip(*times, strict=True)]


def growth_rows(quick: bool) -> list[dict[str, Any]]:
    rows = []
    queries = np.random.default_rng(1).random((32, 256))
    for alpha in (1.0, 0.5):
        few, many = (space(n, 256, alpha) for n in (1000, 4000))
        calls = [
            lambda few=few: few.radii(queries[:8], 5),
            lambda many=many: many.radii(queries[:8], 5),
            lambda few=few: few.radii(queries, 5),
        ]
        in_turns(calls, 1)
        one, references, queried = in_turns(calls, 10 if quick else 60)
        rows += [
            {"what": f"time N=4000 : N=1000, α={alpha}", "measured": references / one, "limit": "3.5 to 4.5"},
            {"what": f"time 32 rows : 8 rows, α={alpha}", "measured": queried / one, "limit": "3.5 to 4.5"},
        ]
    return rows


def transform_rows(quick: bool) -> list[dict[str, Any]]:
    trial = usps_trial(200)
    clean = np.vstack([trial.clean] * 9)[: 500 if quick else 5000]
    damage = square_protocol(clean, np.random.default_rng(0))
    told = np.where(damage.overwritten, np.nan, damage.values)
    peer = KNNImputer(n_neighbors=10).fit(trial.reference)
    separators = {
        title: CorruptionSeparator((16, 16), **settings).fit(trial.reference, clean_rows=trial.calibration)
        for title, settings in {"default": {}, "context-mean": {"imputer": "context-mean"}}.items()
    }
    for separator in separators.values():
        separator.transform(damage.values[:64])
    ours = [lambda used=used: used.transform(damage.values) for used in separators.values()]
    base, *spent = in_turns([lambda: peer.transform(told), *ours], 4)
    rows = [{"what": f"KNNImputer(10).transform, {len(clean)} rows, mask given, s", "measured": base}]
    for title, seconds_ in zip(separators, spent, strict=True):
        rows.append({"what": f"transform ({title}), same rows, nothing given, s", "measured": seconds_})
        rows.append({"what": f"KNNImputer : transform ({title})", "measured": base / seconds_, "limit": ">= 3"})
    return rows


def large_rows(quick: bool) -> list[dict[str, Any]]:
    rng = np.random.default_rng(2)
    n = 4000 if quick else 25_000
    waves = np.sin(np.arange(64) / 5 + rng.uniform(0, 6, (n, 1))) + 0.1 * rng.normal(size=(n, 64))
    start = time.process_time()
    separator = CorruptionSeparator().fit(waves)
    fitted = time.process_time() - start
    start = time.process_time()
    separator.transform(waves[:5000])
    restored = time.process_time() - start
    return [
        {"what": f"fit, N={len(separator.reference_rows_)}, d=64, s", "measured": fitted},
        {"what": "transform of 5000 rows against it, s", "measured": restored},
        {"what": "peak memory of the whole benchmark, MB", "measured": peak_memory_mb(), "limit": "< 2000"},
    ]


def thread_rows(quick: bool) -> list[dict[str, Any]]:
    reference, queries = space(1000, 256, 1.0), np.random.default_rng(1).random((400 if quick else 4000, 256))
    one = seconds(lambda: reference.radii(queries, 5, n_jobs=1), 9)
    two = seconds(lambda: reference.radii(queries, 5, n_jobs=2), 9)
    wall, process = time.perf_counter(), time.process_time()
    reference.radii(queries, 5, n_jobs=2)
    busy = (time.process_time() - process) / (time.perf_counter() - wall)
    return [
        {
            "what": "two threads : one (wall time; meaningless on a busy machine)",
            "measured": one / two,
            "limit": ">= 1.7",
        },
        {"what": "cores that the two threads got", "measured": busy},
    ]


def startup_rows(quick: bool) -> list[dict[str, Any]]:
    """Later processes find Python's and numba's compiled code of the first, also where the former is switched off here."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    code = (
        "import time; clock = time.process_time; a = clock(); import numpy as np, sklearn.base; b = clock();"
        "from goldseam.separation import CorruptionSeparator; X = np.random.default_rng(0).random((60, 40)); c = clock();"
        "CorruptionSeparator(alarm_rate=.2).fit(X).transform(X); print(b - a, c - b, clock() - c)"
    )
    words = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment).stdout
        for _ in range(2 if quick else 6)
    ]
    others, own, first = np.array([line.split() for line in words], dtype=float).min(axis=0)
    return [
        {"what": "new process: import of numpy and scikit-learn, s", "measured": float(others)},
        {"what": "then import of the separation, numba included, s", "measured": float(own)},
        {"what": "then first fit and transform, compiled code from the cache, s", "measured": float(first)},
        {
            "what": "the separation's own share before its first result, s",
            "measured": float(own + first),
            "limit": "< 1",
        },
    ]


def vector_rows() -> list[dict[str, Any]]:
    """Instructions in the compiled scan: packed ones do the work. Compiled anew, because cached code shows none."""
    code = (
        "import re; from numba import njit, boolean, float32, int64; from goldseam.separation import kernels;"
        "row = float32[::1];"
        "f = njit((row, row, boolean, row, *[int64] * 5, row, int64))(kernels._leaf_sums.py_func);"
        "code = next(iter(f.inspect_asm().values()));"
        "print(', '.join(f'{w} {len(re.findall(w, code))}' for w in ('vsubps', 'vminps', 'vaddps', 'vsubss', 'vaddss')))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    return [{"what": f"instructions of the scan: {found}"}]


def main(quick: bool) -> None:
    datasets.load_usps("test", digits=(0, 1))  # fail early without the data
    rows = [*pair_rows(quick), *growth_rows(quick), *transform_rows(quick), *startup_rows(quick), *thread_rows(quick)]
    rows += large_rows(quick) + vector_rows()
    write_results("separation-speed", rows, title="Speed of the separation", notes=__doc__ or "", quick=quick)
