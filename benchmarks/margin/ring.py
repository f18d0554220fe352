"""The ring study (G7.1-G7.3): test error and detection, both geometries, four ways to label the ring, all rivals.

Seeds 0-49; of these 0-14 were used to choose defaults, so seeds 1000-1049 are run as well for the default.
`ring_figures.py` draws what is found here.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score

from benchmarks.harness import write_results
from benchmarks.peers.robust_classifiers import RIVALS, Rival, libsvm
from goldseam.datasets.ring import make_ring
from goldseam.margin import GEMMEDClassifier

CELLS = ((15, 0.2), (35, 0.2), (55, 0.2), (75, 0.2), (55, 0.3), (55, 0.4), (55, 0.5), (55, 0.0))
PAPER = "GEM paper mode (literal, Gibbs T200)"
DEFAULT = "GEM defaults (robust scaling)"
RUNS = 50

# G7.2 and G7.3; columns R15 .2, R35 .2, R55 .2, R75 .2, R55 .3, R55 .4, R55 .5, clean
REFERENCE: dict[tuple[str, str], tuple[float | None, ...]] = {
    ("separable", "SVM C=1"): (1.85, 2.20, 20.9, 41.3, 25.8, 18.7, 32.3, 1.85),
    ("separable", "ROD-.02"): (1.85, 2.08, 6.9, 22.2, 42.7, 35.8, 41.6),
    ("separable", "ROD-.2"): (1.84, 2.10, 4.1, 8.1, 8.3, 6.2, 16.7),
    ("separable", "ROD-.6"): (1.88, 2.27, 24.4, 46.0, 29.8, 22.4, 34.0),
    ("separable", "ramp CCCP"): (2.16, 2.34, 2.40, 2.66, 4.4, 9.5, 26.5),
    ("separable", "LOF + SVM"): (2.13, 2.08, 2.08, 2.08, 2.27, 2.46, 24.5),
    ("separable", "EllipticEnvelope + SVM"): (1.94, 1.94, 1.94, 1.90, 2.05, 1.92, 2.08),
    ("separable", "IsolationForest + SVM"): (2.15, 1.97, 1.94),
    ("separable", "RBF SVM, robust scaled"): (2.26, 1.85, 1.80, 1.77, 1.80, 1.81, 2.20),
    ("separable", "random forest"): (4.2, 3.3, 3.3, 3.2, 3.4, 3.1, 4.0),
    ("separable", "boosting"): (5.4, 4.6, 4.5),
    ("separable", "logistic"): (2.2, 4.1, 7.6, 12.2, 14.4, 15.2, 31.6),
    ("separable", "modified Huber"): (6.0, 24.6, 36.4),
    ("separable", PAPER): (4.2, 2.6, 2.65, 2.57),
    ("separable", "GEM field, Gibbs T200"): (2.95, 2.60, 2.48, 2.07, 2.35, 3.56, 2.51),
    ("separable", "GEM field, Gibbs T800"): (None, None, None, 2.26, 1.88, 2.28, 2.21),
    ("separable", "GEM gap, raw, LIBSVM"): (1.98, 1.90, 1.90, 1.92, 1.98, 2.01, 2.13, 1.90),
    ("separable", "GEM auto, raw, LIBSVM"): (2.08, 1.96, 1.97, 1.99, 2.02, 2.02, 2.15, 1.92),
    ("separable", DEFAULT): (1.89, 1.81, 1.83, 1.82, 1.86, 1.78, 1.85),
    ("separable", "oracle, same scaling"): (1.82, 1.80, 1.80, 1.80, 1.85, 1.80, 1.85),
    ("printed", "SVM C=1"): (24.3, 24.4, 29.4, 36.2, 33.1, 34.9, 31.6),
    ("printed", "ROD-.02"): (24.4, 24.4, 27.0, 36.9, 40.8, 41.2, 37.2),
    ("printed", "ROD-.2"): (24.5, 24.5, 24.7, 24.9, 24.8, 26.8, 27.6),
    ("printed", "ROD-.6"): (24.3, 24.4, 30.1, 37.5, 34.9, 34.8, 32.3),
    ("printed", "ramp CCCP"): (24.7, 24.7, 24.7, 24.8, 24.8, 28.3, 31.2),
    ("printed", "LOF + SVM"): (24.4, 24.3, 24.3, 24.3, 24.5, 24.5, 29.7),
    ("printed", "RBF SVM, robust scaled"): (24.4, 24.3, 24.2, 24.2, 24.3, 24.4, 24.5),
    ("printed", "random forest"): (29.8, 28.8, 28.7, 28.7, 28.1, 27.7, 28.8),
    ("printed", PAPER): (24.5, 24.1, 24.1, 24.1),
    ("printed", "GEM field, Gibbs T200"): (24.0, 24.0, 24.0, 24.0, 23.9, 24.0, 24.0),
    ("printed", "GEM gap, raw, LIBSVM"): (24.42, 24.34, 24.35, 24.34, 24.31, 24.33, 24.63),
    ("printed", "GEM auto, raw, LIBSVM"): (24.46, 24.41, 24.42, 24.42, 24.35, 24.34, 24.64),
    ("printed", DEFAULT): (24.34, 24.31, 24.36, 24.37, 24.26, 24.24, 24.29),
}
LABEL_REFERENCE = {
    "SVM C=1": (29.2, 72.6, 34.4),
    "ROD-.2": (9.6, 50.0, 8.5),
    "ramp CCCP": (5.1, 72.6, 3.0),
    "LOF + SVM": (2.25, 4.05, 2.76),
    "EllipticEnvelope + SVM": (1.87, 1.88, 2.11),
    "RBF SVM, robust scaled": (1.84, 1.82, 2.11),
    "GEM gap, raw, LIBSVM": (1.83, 1.85, 2.02),
    "GEM field, Gibbs T200": (2.25, 2.10, 2.10),
}


def gem(X: Any, y: Any, *, scale: bool = False, **settings: Any) -> Rival:
    """A GEM-MED fit as a rival; the score is the distrust."""
    center = np.median(X, axis=0) if scale else np.zeros(X.shape[1])
    spread = 1.4826 * np.median(np.abs(X - center), axis=0) if scale else np.ones(X.shape[1])
    model = GEMMEDClassifier(random_state=0, **settings).fit((X - center) / spread, y)
    return Rival(lambda new: model.predict((new - center) / spread), 1 - model.sample_trust_)


RAW = {"linear_solver": "libsvm"}
METHODS: dict[str, Callable[..., Rival]] = {
    **RIVALS,
    PAPER: lambda X, y: gem(X, y, solver="gibbs", entropy="bipartite", threshold="literal"),
    "GEM field, Gibbs T200": lambda X, y: gem(X, y, solver="gibbs"),
    "GEM field, Gibbs T800": lambda X, y: gem(X, y, solver="gibbs", max_iter=800),
    "GEM gap, raw, LIBSVM": lambda X, y: gem(X, y, threshold="gap", **RAW),
    "GEM auto, raw, LIBSVM": lambda X, y: gem(X, y, **RAW),
    DEFAULT: lambda X, y: gem(X, y, scale=True),
}


def run(name: str, cell: tuple[int, float], geometry: str, labels: str, seeds: range) -> dict[str, Any]:
    """Errors in %, average precision, false alarms and detections of one method in one cell."""
    errors, precision, alarms, found = [], [], [], []
    for seed in seeds:
        study = make_ring(seed, radius=cell[0], anomalies=cell[1], geometry=geometry, labels=labels)
        X, y, bad = study.train.data, study.train.target, study.train.details["anomalous"]
        rival = oracle(X, y, bad, name) if name.startswith("oracle") else METHODS[name](X, y)
        errors.append(100 * np.mean(rival.predict(study.test.data) != study.test.target))
        if rival.score is not None and bad.any():
            precision.append(average_precision_score(bad, rival.score))
        if name.startswith("GEM"):
            alarms.append(np.mean(rival.score[~bad] > 0.5))
            found.append(np.mean(rival.score[bad] > 0.5) if bad.any() else np.nan)
    mean = lambda values: float(np.mean(values)) if values else None  # noqa: E731
    return {
        "error": mean(errors), "sd": float(np.std(errors)), "worst": float(np.max(errors)),
        "AP": mean(precision), "FA": mean(alarms), "det": mean(found), "runs": len(seeds),
    }  # fmt: skip


def oracle(X: Any, y: Any, bad: Any, name: str) -> Rival:
    """The same SVM on the truly clean rows."""
    if name == "oracle, raw, LIBSVM":
        return Rival(libsvm(X[~bad], y[~bad]).predict)
    center = np.median(X, axis=0)
    spread = 1.4826 * np.median(np.abs(X - center), axis=0)
    model = GEMMEDClassifier(
        field_strength=0.0, loss_strength=0.0, trust_prior=1 - 1e-9, random_state=0, repetition=False, isolation=False
    )
    model.fit((X[~bad] - center) / spread, y[~bad])
    return Rival(lambda new: model.predict((new - center) / spread))


def show(result: dict[str, Any], reference: float | None) -> str:
    beside = "" if reference is None else f" [{reference:g}]"
    return f"{result['error']:.2f}±{result['sd']:.2f}{beside}"


def title_of(cell: tuple[int, float]) -> str:
    return f"R{cell[0]} {cell[1]:g}" if cell[1] else "clean"


def main(quick: bool) -> None:
    warnings.simplefilter("ignore")
    runs = 1 if quick else RUNS
    names = [*METHODS, "oracle, raw, LIBSVM", "oracle, same scaling"]
    results: dict[tuple[str, str, str, int], dict[str, Any]] = {}
    for geometry in ("separable", "printed"):
        for name in names:
            for i, cell in enumerate(CELLS):
                results[geometry, "replace", name, i] = run(name, cell, geometry, "replace", range(runs))
            print(
                geometry, name, [round(results[geometry, "replace", name, i]["error"], 2) for i in range(8)], flush=True
            )
    fresh = {i: run(DEFAULT, CELLS[i], "separable", "replace", range(1000, 1000 + runs)) for i in range(len(CELLS))}
    fresh_oracle = {
        i: run("oracle, same scaling", CELLS[i], "separable", "replace", range(1000, 1000 + runs))
        for i in range(len(CELLS))
    }
    write_errors(results, names, fresh, fresh_oracle, quick)
    write_detection(results, names, quick)
    write_labels(names, quick)


def write_errors(results: Any, names: list[str], fresh: Any, fresh_oracle: Any, quick: bool) -> None:
    rows = []
    for geometry in ("separable", "printed"):
        for name in names:
            reference = REFERENCE.get((geometry, name), ())
            cells = {
                title_of(cell): show(
                    results[geometry, "replace", name, i], reference[i] if i < len(reference) else None
                )
                for i, cell in enumerate(CELLS)
            }
            found = results[geometry, "replace", name, 0]
            worst = max(results[geometry, "replace", name, i]["worst"] for i in range(len(CELLS)))
            rows.append({"geometry": geometry, "method": name, **cells, "worst run": worst, "runs": found["runs"]})
    for name, found in ((f"{DEFAULT}, seeds 1000-1049", fresh), ("oracle, seeds 1000-1049", fresh_oracle)):
        cells = {title_of(cell): show(found[i], None) for i, cell in enumerate(CELLS)}
        worst = max(result["worst"] for result in found.values())
        rows.append({"geometry": "separable", "method": name, **cells, "worst run": worst, "runs": found[0]["runs"]})
    notes = (
        "Test error in %, mean±sd over runs, reference figures of the specification in brackets. Separable: Bayes error "
        "1.69 %; printed: 23.98 %. Defaults were chosen on seeds 0-14, the significance of "
        "the gap with sight of seeds 0-24; seeds 1000-1049 are held out. ROD is the alternating form and may understate the "
        "original. Paper mode is the printed model: it is expected to fail to detect; at R15 the printed gap rule keeps one to "
        "three rows of a class in about half of the runs."
    )
    write_results("margin-ring", rows, title="Ring study: test error", notes=notes, quick=quick)


def write_detection(results: Any, names: list[str], quick: bool) -> None:
    rows = []
    for geometry in ("separable", "printed"):
        for name in names:
            found = [results[geometry, "replace", name, i] for i in range(len(CELLS))]
            if found[0]["AP"] is None:
                continue
            row = {"geometry": geometry, "method": name}
            row |= {f"AP {title_of(CELLS[i])}": found[i]["AP"] for i in range(7)}
            if found[0]["FA"] is not None:
                row |= {f"FA {title_of(CELLS[i])}": found[i]["FA"] for i in (0, 2, 7)}
                row |= {f"det {title_of(CELLS[i])}": found[i]["det"] for i in (0, 2)}
            rows.append(row)
    notes = (
        "AP: average precision with anomalies as the positive class, by 1 - trust (GEM) or the method's score. FA, det: "
        "flagged fractions of clean and of anomalous rows. Reference, separable, R 15/35/55/75: gap .906/1/1/1, auto "
        ".915/.990/.993/.995, LOF .948/1/1/1, ROD .62/.59/.58/.54-.58, paper mode .433/.374/.397/.395; clean FA .03-.04."
    )
    write_results("margin-ring-detection", rows, title="Ring study: detection", notes=notes, quick=quick)


def write_labels(names: list[str], quick: bool) -> None:
    rows = []
    for name in names:
        seeds = range(1 if quick else RUNS)
        reference = LABEL_REFERENCE.get(name, (None, None, None))
        row: dict[str, Any] = {"method": name}
        for labels, expected in zip(("random", "adversarial", "one-class"), reference, strict=True):
            row[labels] = show(run(name, (55, 0.2), "separable", labels, seeds), expected)
        rows.append({**row, "runs": len(seeds)})
    notes = "Separable geometry, R 55, r_a .2; labels of the ring drawn anew, always wrong, or ring in one class only."
    write_results("margin-ring-labels", rows, title="Ring study: labels of the ring", notes=notes, quick=quick)
