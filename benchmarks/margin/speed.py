"""Fit times of `GEMMEDClassifier` as ratios against the pieces it is made of, taken in one run."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors
from sklearn.svm import SVC, LinearSVC

from benchmarks.harness import peak_memory_mb, seconds, write_results
from goldseam.datasets.ring import make_ring
from goldseam.margin import GEMMEDClassifier


def shifted_classes(n: int, p: int, seed: int = 0) -> tuple[Any, Any, Any]:
    """Two Gaussian classes (Bayes error 8.99 %), 20 % of the rows on a sphere of radius 30 (G5.5)."""
    rng = np.random.default_rng(seed)
    y = rng.choice([-1, 1], n)
    X = rng.normal(size=(n, p))
    X[:, :2] += np.outer(y, (1.2, -0.6))
    bad = rng.random(n) < 0.2
    direction = rng.normal(size=(int(bad.sum()), p))
    X[bad] = 30 * direction / np.linalg.norm(direction, axis=1, keepdims=True)
    return X, y, bad


def linear_row(n: int, p: int, repeats: int) -> dict[str, Any]:
    X, y, _ = shifted_classes(n, p)
    svm = seconds(lambda: LinearSVC(loss="hinge", random_state=0).fit(X, y), repeats)
    neighbours = seconds(lambda: NearestNeighbors(n_neighbors=5, algorithm="brute").fit(X).kneighbors(X), 1)
    ours = seconds(lambda: GEMMEDClassifier(random_state=0).fit(X, y), repeats)
    limit = 4 * svm + neighbours
    return {"case": f"linear, n = {n}, p = {p}", "seconds": ours, "LinearSVC": svm, "brute kNN": neighbours,
            "limit": limit, "of limit": ours / limit}  # fmt: skip


def small_row() -> dict[str, Any]:
    study = make_ring(0)
    X = study.train.data / 10
    GEMMEDClassifier(random_state=0).fit(X, study.train.target)
    ours = seconds(lambda: GEMMEDClassifier(random_state=0).fit(X, study.train.target), 5)
    return {"case": "linear, ring, n = 200, p = 2", "seconds": ours, "limit": 0.1, "of limit": ours / 0.1}


def radial_row(n: int, p: int) -> dict[str, Any]:
    X, y, _ = shifted_classes(n, p)
    svm = seconds(lambda: SVC(gamma=0.1).fit(X, y), 2)
    ours = seconds(lambda: GEMMEDClassifier("rbf", gamma=0.1, random_state=0).fit(X, y), 2)
    return {
        "case": f"rbf, n = {n}, p = {p}",
        "seconds": ours,
        "SVC": svm,
        "limit": 6 * svm,
        "of limit": ours / (6 * svm),
    }


def large_rows(sizes: tuple[int, ...]) -> list[dict[str, Any]]:
    """Fits of ever more rows, one process: time per row must stay, `peak MB` is the largest so far (VmHWM)."""
    rows: list[dict[str, Any]] = []
    for n in sizes:
        X, y, bad = shifted_classes(n, 10)
        test, truth, sphere = shifted_classes(20_000, 10, seed=1)
        models: list[Any] = []
        before = time.process_time()
        taken = seconds(lambda X=X, y=y, models=models: models.append(GEMMEDClassifier(random_state=0).fit(X, y)), 1)
        spent = time.process_time() - before
        flagged = models[0].sample_trust_ < 0.5
        error = 100 * np.mean(models[0].predict(test[~sphere]) != truth[~sphere])
        row = {"case": f"linear, n = {n}, p = 10", "seconds": taken, "processor seconds": spent}
        row |= {"us per row": 1e6 * spent / n, "error %": error, "flagged": flagged.mean(), "FA": flagged[~bad].mean()}
        row |= {"det": flagged[bad].mean(), "peak MB": peak_memory_mb(), "solver": models[0].linear_solver_}
        if rows:
            row["times the row above"] = spent / rows[-1]["processor seconds"]
        rows.append(row)
        print(row, flush=True)
    return rows


def main(quick: bool) -> None:
    warnings.simplefilter("ignore")
    GEMMEDClassifier(random_state=0).fit(*shifted_classes(300, 3)[:2])
    rows = [
        small_row(),
        linear_row(1000 if quick else 10_000, 50, 1 if quick else 2),
        radial_row(500 if quick else 2000, 10),
    ]
    rows += large_rows((10_000,) if quick else (10_000, 100_000, 1_000_000))
    notes = (
        "Limits: n = 10 000 linear 4 LinearSVC + one brute-force kNN; n = 200 0.1 s; rbf 6 SVC; 10^5 rows 60 s; 10^6 rows 8 GB, "
        "ten times the time of 10^5. One core, other work on the machine: 'us per row' and 'times the row above' are of "
        "processor time. Reference for 10^4/10^5/10^6 rows: error 8.79/8.74/8.94, flagged .200-.205, 3.9/41.9/155 s."
    )
    write_results("margin-speed", rows, title="Fit times", notes=notes, quick=quick)
