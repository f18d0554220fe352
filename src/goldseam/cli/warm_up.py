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

__all__ = ["FIRST_FIT", "compiled_ahead", "is_first_fit", "mend_a_few_rows"]

FIRST_FIT = "first fit on this machine: its kernels are compiled, once, which takes about half a minute more"


@contextmanager
def compiled_ahead() -> Iterator[None]:
    """Let a helper compile while a fit runs; nothing to do when it was done before, or with a single core."""
    mark = _mark()
    if mark is None or not is_first_fit():
        yield
        return
    helper = _helper()
    try:
        yield
    finally:
        if helper is not None:
            helper.kill()  # what it has compiled is on disk, file by file
            helper.wait()
    mark.parent.mkdir(parents=True, exist_ok=True)
    mark.touch()


def is_first_fit() -> bool:
    """Whether no fit has ended since a source of kernels was changed."""
    import goldseam

    mark = _mark()
    if mark is None:
        return False
    sources = Path(goldseam.__file__).parent.rglob("*kernels.py")
    return not mark.exists() or mark.stat().st_mtime < max(path.stat().st_mtime for path in sources)


def _mark() -> Path | None:
    """The file that says so, where Numba keeps the kernels of the command line; None when it compiles nothing."""
    import numba

    from goldseam.cli.kernels import find_fields

    folder = find_fields.stats.cache_path if hasattr(find_fields, "stats") else None
    return Path(folder) / f"compiled-{sys.implementation.cache_tag}-{numba.__version__}" if folder else None


def _helper() -> subprocess.Popen[bytes] | None:
    from goldseam.engines.local import n_threads

    if n_threads(-1) == 1:
        return None
    # -P: a file of the user's folder that is called as a library must not be taken for it
    words = [sys.executable, "-P", "-m", __name__]
    nowhere = subprocess.DEVNULL
    return subprocess.Popen(words, stdin=nowhere, stdout=nowhere, stderr=nowhere)


def mend_a_few_rows() -> None:
    """Fit and restore a small mixed table with all that needs no field; noisy tables need the tree."""
    import numpy as np
    import polars as pl

    from goldseam.restorer import Restorer

    rng = np.random.default_rng(0)
    columns = 6  # enough for a run of cells that are wrong together
    numbers = rng.normal(size=(40, 1)) + 0.1 * rng.normal(size=(40, columns))
    clean = pl.DataFrame(numbers, schema=list("abcdef")).with_columns(g=np.where(numbers[:, 0] > 0, "high", "low"))
    damaged = clean[:20].with_columns(a=pl.lit(9.0), b=pl.lit(None, pl.Float64))
    for method in (["conditional", "boosted"], ["conditional", "tree"]):
        model = Restorer(method=method, denoise=False, audit=False, random_state=0).fit(clean)
        model.restore(damaged)
    model.mender_.evidence.marginals.scores_around(numbers, numbers)  # the scores of what a field predicts


if __name__ == "__main__":
    mend_a_few_rows()
