"""Clean rows come back bit for bit: the estimator on the clean test rows of the four real sets (F9.4, F12.9)."""

from __future__ import annotations

import time
import warnings

import numpy as np
import polars as pl

from benchmarks.field.settings import PENALTY, SETS, load_frames
from benchmarks.harness import write_results
from goldseam import RandomMixedField
from goldseam.errors import DataWarning


def untouched(before: pl.DataFrame, after: pl.DataFrame) -> float:
    """Share of cells that are the same to the last bit."""
    same = [_bits(before[name]) == _bits(after[name]) for name in before.columns]
    return float(np.mean(np.concatenate(same)))


def _bits(column: pl.Series) -> np.ndarray:
    return column.to_numpy().view(np.uint64) if column.dtype == pl.Float64 else column.to_numpy()


def main(quick: bool) -> None:
    rows = []
    for name in SETS[:1] if quick else SETS:
        train, test = load_frames(name)
        field = RandomMixedField(
            PENALTY[name], noise="estimate", gross_error_rate="estimate", random_state=0, max_levels=60
        )
        start = time.process_time()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            field.fit(train)
        seconds = time.process_time() - start
        plain = field.transform(test)
        found = field.estimate_noise(test)
        after = found.transform(test)
        words = sorted({level["status"] for level in found.noise_.values()})
        rows.append(
            {
                "set": name,
                "test rows": len(test),
                "noise nil: cells untouched": untouched(test, plain),
                "noise estimated: cells untouched": untouched(test, after),
                "status": ", ".join(words),
                "gross errors": found.levels_.gross_status,
                "dtypes kept": str(after.schema == test.schema),
                "fit with floors, s": seconds,
                "warned of": "; ".join(str(w.message).split(". ")[0] for w in caught if w.category is DataWarning),
            }
        )
        print(rows[-1], flush=True)
    notes = (
        "Complete test rows of F11.2, clean. 'Noise estimated': `estimate_noise` on the very rows, noise and gross "
        "errors, floors included; below_floor means that nothing was acted on. At least .999 of the cells must stay "
        "untouched; 1 is bit-identity."
    )
    write_results("field-abstention", rows, title="Clean rows come back", notes=notes, quick=quick)
