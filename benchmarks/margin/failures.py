"""Real data with injected failures (G7.5) and more: dead, stuck and noisy channels, wrong labels, several classes."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from benchmarks.harness import write_results
from benchmarks.peers.robust_classifiers import filtered, libsvm, lof, rod
from goldseam import datasets
from goldseam.corruption.protocols import failure_protocol
from goldseam.errors import DatasetNotFoundError
from goldseam.margin import GEMMEDClassifier

RUNS = {"cancer": 8, "digits 3/8": 8, "g241c": 8}
"""Splits; 8 as in the reference, where the splits of the small sets differ too much for so few."""
FRESH_RUNS = {"g241c": 8}
HELD_OUT = 200
"""From this split on none was looked at while rules and constants were chosen."""
KINDS = ("clean", "noise", "saturate", "dead", "stuck", "label")
# G7.5: SVM, GEM, oracle, AP of the reference
REFERENCE: dict[tuple[str, str], tuple[float | None, ...]] = {
    ("cancer", "clean"): (2.98, 3.03, None, None), ("cancer", "noise"): (4.87, 3.16, 2.81, 0.998),
    ("cancer", "saturate"): (7.41, 3.68, 3.51, 1.0), ("cancer", "dead"): (4.39, 4.12, 2.94, 0.64),
    ("cancer", "label"): (6.93, 6.32, 2.85, 0.29), ("digits 3/8", "clean"): (1.68, 1.75, None, None),
    ("digits 3/8", "noise"): (3.91, 3.28, 3.07, 0.996), ("digits 3/8", "saturate"): (2.58, 2.51, 2.44, 1.0),
    ("digits 3/8", "dead"): (2.72, 2.72, 2.58, 0.52), ("digits 3/8", "label"): (17.0, 17.2, 2.6, 0.35),
}  # fmt: skip


def blocks(p: int, n_groups: int) -> list[Any]:
    return [part for part in np.array_split(np.arange(p), n_groups) if part.size]


def tables() -> dict[str, tuple[Any, Any, list[Any], float]]:
    """Rows, labels -1/+1, groups of features and C of each set; sets that are not on this machine are left out."""
    found = {}
    cancer = datasets.load_wdbc()
    found["cancer"] = (np.asarray(cancer.data), signs(cancer.target), blocks(30, 3), 1.0)
    digits = datasets.load_digits()
    chosen = np.isin(digits.target, (3, 8))
    pairs = [np.arange(8 * i, 8 * i + 16) for i in range(7)]
    found["digits 3/8"] = (
        np.asarray(digits.data)[chosen],
        np.where(np.asarray(digits.target)[chosen] == 3, 1, -1),
        pairs,
        1.0,
    )
    for name, n_groups in (("ionosphere", 4), ("sonar", 4), ("g241c", 6), ("german", 4)):
        try:
            data = getattr(datasets, f"load_{name}")()
        except DatasetNotFoundError as error:
            print(error)
            continue
        X = numbers(data)
        found[name] = (X, signs(data.target), blocks(X.shape[1], n_groups), 0.01 if name == "g241c" else 0.1)
    return found


def signs(target: Any) -> Any:
    codes = np.unique(np.asarray(target), return_inverse=True)[1]
    return np.where(codes == 1, 1, -1)


def numbers(data: Any) -> Any:
    """Numeric columns as they are, text columns one-hot."""
    columns = (
        data.data.T
        if isinstance(data.data, np.ndarray)
        else [data.data[name].to_numpy() for name in data.feature_names]
    )
    out = []
    for column in columns:
        try:
            out.append(np.asarray(column, dtype=float)[:, None])
        except (TypeError, ValueError):
            levels = np.unique(np.asarray(column, dtype=str))
            out.append((np.asarray(column, dtype=str)[:, None] == levels).astype(float))
    return np.hstack(out)


def damage(X: Any, y: Any, groups: list[Any], kind: str, seed: int) -> tuple[Any, Any, Any]:
    """Damaged rows, labels and which rows are bad; 'stuck' repeats the readings of one fixed row per group."""
    rng = np.random.default_rng(seed)
    if kind == "clean":
        return X, y, np.zeros(len(X), dtype=bool)
    if kind != "stuck":
        found = failure_protocol(X, y, groups, kind, rng)
        return found.values, found.labels, found.failed
    failed = rng.random(len(X)) < 0.3
    held = [X[rng.integers(len(X))] for _ in groups]
    new = X.copy()
    for i in np.flatnonzero(failed):
        k = rng.integers(len(groups))
        new[i, groups[k]] = held[k][groups[k]]
    return new, y, failed


def one_run(
    X: Any, y: Any, groups: list[Any], kind: str, seed: int, C: float, *, rivals: bool = True, **kernel: Any
) -> dict[str, float]:
    """Everything measured on one split; the machines are linear unless `kernel` says otherwise."""
    A, T, a, t = train_test_split(X, y, test_size=0.5, random_state=seed, stratify=y)
    A, a, bad = damage(A, a, groups, kind, seed)
    scaler = StandardScaler().fit(A)
    A, T = scaler.transform(A), scaler.transform(T)
    error = lambda model: 100 * float(np.mean(model.predict(T) != t))  # noqa: E731
    fit = lambda rows, labels: libsvm(rows, labels, C=C, **kernel)  # noqa: E731
    settings: dict[str, Any] = {"linear_solver": "libsvm", "C": C, "random_state": 0, **kernel}
    gem = GEMMEDClassifier(**settings).fit(A, a)
    flagged = gem.sample_trust_ < 0.5
    out = {"SVM": error(fit(A, a)), "GEM": error(gem), "FA": float(flagged[~bad].mean())}
    if rivals:
        out["GEM auto loss"] = error(GEMMEDClassifier(loss_strength="auto", **settings).fit(A, a))
        out |= {"ROD-.2": error(rod(A, a, 0.2, fit)), "LOF + SVM": error(filtered(A, a, lof, fit))}
    if bad.any():
        out |= {"oracle": error(fit(A[~bad], a[~bad])), "det": float(flagged[bad].mean())}
        out |= {"AP": average_precision_score(bad, -gem.field_)}
        out |= {"AP by trust": average_precision_score(bad, -gem.sample_trust_)}
    return out


def lag(runs: list[dict[str, float]]) -> tuple[float, float | None]:
    """GEM minus oracle (on clean rows the SVM), paired by split, and its standard error."""
    return gain(runs, "GEM", "oracle" if "oracle" in runs[0] else "SVM")


def gain(runs: list[dict[str, float]], ours: str, theirs: str) -> tuple[float, float | None]:
    """Mean difference of two errors, paired by split, and its standard error."""
    found = [run[ours] - run[theirs] for run in runs]
    return float(np.mean(found)), float(np.std(found, ddof=1) / np.sqrt(len(runs))) if len(runs) > 1 else None


def main(quick: bool) -> None:
    warnings.simplefilter("ignore")
    rows = []
    for name, (X, y, groups, C) in tables().items():
        n_runs = 1 if quick else RUNS.get(name, 40)
        for kind in KINDS:
            runs = [one_run(X, y, groups, kind, seed, C) for seed in range(n_runs)]
            row: dict[str, Any] = {"data": name, "failure": kind}
            for key in (
                "SVM",
                "ROD-.2",
                "LOF + SVM",
                "GEM",
                "GEM auto loss",
                "oracle",
                "AP",
                "AP by trust",
                "FA",
                "det",
            ):
                row[key] = float(np.mean([run[key] for run in runs])) if key in runs[0] else None
            row["GEM - oracle"], row["standard error"] = lag(runs)
            if kind in ("clean", "noise", "saturate"):
                splits = range(HELD_OUT, HELD_OUT + (1 if quick else FRESH_RUNS.get(name, 120)))
                fresh = [one_run(X, y, groups, kind, split, C, rivals=False) for split in splits]
                row["GEM - oracle, held out"], row["standard error, held out"] = lag(fresh)
            reference = REFERENCE.get((name, kind))
            if reference is not None:
                row["reference SVM/GEM/oracle/AP"] = "/".join("-" if v is None else f"{v:g}" for v in reference)
            rows.append({**row, "runs": n_runs})
        print(name, "done", flush=True)
    notes = (
        "Test error in %; AP by `field_`. Linear, LIBSVM, C = 1 (0.1 for ionosphere, sonar and german, 0.01 for g241c), standard "
        "scaling fitted on the damaged training part. Feature groups: cancer 3, digits 7 pairs of pixel rows, the others equal "
        "consecutive blocks (ionosphere, sonar, german 4, g241c 6). Splits 0-7, or 0-39 ('runs'). 'GEM auto loss' is "
        "loss_strength='auto'; its two constants were chosen on cancer and digits. Not held out: the constants of repetition, "
        "of isolation and of the gap's significance were chosen by looking at splits below 200 of cancer, digits, ionosphere and "
        "sonar (and ring seeds), and flip rates and repetition false alarms were looked at on g241c and german too. "
        "'GEM - oracle' is paired by split (on clean rows the oracle is the SVM); 'held out' are splits 200-319 (g241c "
        "200-207), never looked at while rules were chosen, but of the same sets."
    )
    write_results("margin-failures", rows, title="Real data with injected failures", notes=notes, quick=quick)
