"""The embedded engine: threads over row blocks.

Compiled kernels release the interpreter's lock, so that threads give real parallelism without copies. A row's result
must not depend on the block it falls into; the callers' tests see to that.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from goldseam.errors import ParameterError

__all__ = ["map_row_blocks", "n_threads", "rows_per_block"]

CELLS_PER_BLOCK = 120_000  # few enough for the caches, many enough that the calls cost little

Result = TypeVar("Result")


def n_threads(n_jobs: int | None) -> int:
    """Number of threads for scikit-learn's `n_jobs`: None is one, -1 all cores, -2 all but one.

    >>> n_threads(None), n_threads(3)
    (1, 3)
    """
    if n_jobs is None:
        return 1
    if n_jobs == 0:
        raise ParameterError("n_jobs must not be 0. Hint: None or 1 for one thread, -1 for all cores.")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return n_jobs if n_jobs > 0 else max(1, cores + 1 + n_jobs)


def rows_per_block(n_columns: int) -> int:
    """How many rows of so many columns to take at a time.

    >>> rows_per_block(15), rows_per_block(256), rows_per_block(100_000)
    (8000, 468, 256)
    """
    return min(8192, max(256, CELLS_PER_BLOCK // max(n_columns, 1)))


def map_row_blocks(
    work: Callable[[slice], Result], n_rows: int, *, n_jobs: int | None = None, block: int = 1024
) -> list[Result]:
    """`work` on consecutive slices of at most `block` rows, results in order; no rows give one empty slice.

    >>> map_row_blocks(lambda rows: (rows.start, rows.stop), 5, block=2)
    [(0, 2), (2, 4), (4, 5)]
    """
    slices = [slice(start, min(start + block, n_rows)) for start in range(0, max(n_rows, 1), block)]
    threads = min(n_threads(n_jobs), len(slices))
    if threads == 1:
        return [work(rows) for rows in slices]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, slices))
