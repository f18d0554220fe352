"""Nominal against measured alarm rate on held-out reference rows (S6.4), by conformal calibration.

With n calibration and m measured rows that are exchangeable and do not tie, the number flagged at rate a, where a (n + 1)
is a whole number, is beta-binomial: its mean is a m, and the sd of the share is sqrt(a (1 - a) (n + m + 1) / (m (n + 2))).
That counts the chance in the choice of the calibration rows as well as in that of the measured ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from benchmarks.harness import write_results
from goldseam import datasets
from goldseam.separation import CorruptionSeparator

RATES = (0.01, 0.05, 0.1, 0.2)
ROUND = 100  # n + 1 is a multiple, so that every rate can be attained


def tables() -> dict[str, tuple[pl.DataFrame, str | tuple[int, int]]]:
    usps = datasets.load_usps("train", digits=(0, 1))
    return {
        "usps 0 vs 1": (usps.frame(), (16, 16)),
        "wdbc": (datasets.load_wdbc().frame(), "interval"),
        "g241c": (datasets.load_g241c().frame(), "interval"),
        "german (mixed)": (datasets.load_german().frame(), "interval"),
    }


def cuts(n: int) -> tuple[int, int]:
    """Where calibration rows begin and end: half of the rows are measured, up to a fifth calibrates."""
    half = n // 2
    return half - (n // 5 // ROUND * ROUND or ROUND) + 1, half


def shares(frame: pl.DataFrame, tree: str | tuple[int, int], seed: int, **settings: Any) -> list[float]:
    """Share of clean rows flagged at every rate: one fit at the highest, whose p-values tell the others."""
    order, (a, b) = np.random.default_rng(seed).permutation(len(frame)), cuts(len(frame))
    separator = CorruptionSeparator(tree, alarm_rate=max(RATES), **settings)
    separator.fit(frame[order[:a]], clean_rows=frame[order[a:b]])
    measured = frame[order[b:]]
    p, flagged = separator.p_values(measured), separator.predict(measured) == -1
    return [float((flagged & (p <= rate + 1e-9)).mean()) for rate in RATES]


def share_sd(rate: float, n: int, m: int) -> float:
    """Standard deviation of the share of m rows that are flagged at a rate calibrated on n rows."""
    return float(np.sqrt(rate * (1 - rate) * (n + m + 1) / (m * (n + 2))))


def main(quick: bool) -> None:
    rows, n_splits = [], 2 if quick else 40
    for name, (frame, tree) in tables().items():
        a, b = cuts(len(frame))
        search = np.array([shares(frame, tree, seed, refine=False) for seed in range(n_splits)])
        product = np.array([shares(frame, tree, seed) for seed in range(n_splits)])
        for i, rate in enumerate(RATES):
            sd = share_sd(rate, b - a, len(frame) - b) / np.sqrt(n_splits)
            off = (search[:, i].mean() - rate) / sd
            row = {"table": name, "nominal": rate, "sd of the mean": float(sd)}
            row |= {"search alone": _shown(search[:, i]), "sds off": f"{off:+.1f}", "within 2 sd": _yes(abs(off) <= 2)}
            row |= {
                "product": _shown(product[:, i]),
                "at most nominal + 2 sd": _yes(product[:, i].mean() <= rate + 2 * sd),
            }
            rows.append(row)
            print(row, flush=True)
    write_results(
        "separation-alarms",
        rows,
        title="Promised and measured share of clean rows flagged",
        notes=(__doc__ or "")
        + f"\n{n_splits} random splits: half of the rows measured, 99, 199, ... up to 20 % for calibration, the rest is the "
        "reference; ± is the sd over splits. The search flags a row by its entry level alone: its rate is the nominal one. "
        "The product flags a row only if an outline can be drawn in it, so the promise is an upper limit: where outlines of "
        "clean rows come out empty more often than the rate allows, fewer rows are flagged. Of 16 cases .7 are expected "
        "outside 2 sd by chance.",
        quick=quick,
    )


def _shown(found: Any) -> str:
    return f"{np.mean(found):.3f} ± {np.std(found, ddof=1):.3f}"


def _yes(condition: Any) -> str:
    return "yes" if condition else "no"
