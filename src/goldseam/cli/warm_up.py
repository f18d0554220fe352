"""The first fit on a new machine: two processes compile the kernels, each another half.

Numba compiles one function at a time in a process, and keeps the result on disk, where every process finds it. The
first fit compiles the mixed field's kernels first; meanwhile a helper process, this module, mends a table of a few rows
without a field, and with that compiles the kernels of the experts and of their evidence.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["FIRST_FIT", "compiled_ahead", "is_compiled", "is_first_fit", "mend_a_few_rows"]

FIRST_FIT = "first fit on this machine: its kernels are compiled, once, which takes about half a minute more"


@contextmanager
def compiled_ahead() -> Iterator[None]:
    """Let a helper compile while the block runs; nothing to do when it was done before, or with a single core."""
    from goldseam.engines.local import n_threads

    if n_threads(-1) == 1 or not is_first_fit():
        yield
        return
    # -P: a file of the user's folder that is called as a library must not be taken for it
    helper = subprocess.Popen(
        [sys.executable, "-P", "-m", __name__], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )  # fmt: skip
    try:
        yield
    finally:
        helper.kill()  # what it has compiled is on disk, file by file
        helper.wait()


def is_first_fit() -> bool:
    """Whether the kernels have to be compiled, as the last that the helper needs tells."""
    from goldseam.separation.kernels import nearest_rows

    return not is_compiled(nearest_rows)


def is_compiled(kernel: Any) -> bool:
    """Whether an earlier process left a kernel on disk, compiled from the source as it is now."""
    source = Path(kernel.py_func.__code__.co_filename)
    version = f"py{sys.version_info.major}{sys.version_info.minor}"
    indexes = Path(kernel.stats.cache_path).glob(f"{source.stem}.{kernel.py_func.__name__}-*.{version}.nbi")
    return any(index.stat().st_mtime > source.stat().st_mtime for index in indexes)


def mend_a_few_rows() -> None:
    """Fit and restore a small mixed table with the experts that need no field."""
    import numpy as np
    import polars as pl

    from goldseam.restorer import Restorer

    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(40, 1)) + 0.1 * rng.normal(size=(40, 3))
    clean = pl.DataFrame(numbers, schema=["a", "b", "c"]).with_columns(d=np.where(numbers[:, 0] > 0, "high", "low"))
    damaged = clean[:20].with_columns(a=pl.lit(9.0), b=pl.lit(None, pl.Float64))
    restorer = Restorer(method=["conditional", "boosted"], denoise=False, audit=False, random_state=0)
    restorer.fit(clean).restore(damaged)


if __name__ == "__main__":
    mend_a_few_rows()
