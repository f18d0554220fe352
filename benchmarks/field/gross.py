"""Gross errors: flags and repairs at 5 and 15 %, uniform over the range or valid values of the column (F8, F12.10)."""

from __future__ import annotations

import numpy as np
from sklearn.metrics import roc_auc_score

from benchmarks.field.settings import SETS, fitted, load
from benchmarks.harness import write_results
from goldseam.datasets import load_wdbc
from goldseam.field.emission import Atoms, estimate_gross_rate, gross_errors
from goldseam.field.inference import Noise
from goldseam.field.learning import fit_field
from goldseam.field.objective import Rows
from goldseam.field.potentials import Layout

REFERENCE = {
    ("german", 0.05): ".432 -> .367, AUC .94",
    ("german", 0.15): ".758 -> .523, AUC .94",
    ("credit-approval", 0.05): "1.18 -> .394, AUC .93",
    ("credit-approval", 0.15): "2.11 -> .535, AUC .92",
}


def tables():
    for name in SETS[:3]:
        split = load(name)
        learnt, atoms, _ = fitted(name)
        yield name, learnt.field, atoms, split.numbers, split.test_numbers, split.test_codes, split.sizes
    data = load_wdbc().data
    train, test = data[:380], data[380:]
    u, v = (train - train.mean(axis=0)) / train.std(axis=0), (test - train.mean(axis=0)) / train.std(axis=0)
    rows = Rows.of(u, np.zeros((len(u), 0), dtype=np.int32), Layout.of([]))
    field = fit_field(rows, "block", 0.4).field
    yield "wdbc", field, Atoms.of(u, rows.weights), u, v, np.zeros((len(v), 0), dtype=np.int32), np.zeros(0, dtype=int)


def damage(rng, train, u, codes, sizes, rate, kind):
    """Cells overwritten at the rate: uniform over the training range, or by another row's value of the column."""
    hit = rng.random(u.shape) < rate
    if kind == "uniform":
        new = train.min(axis=0) + np.ptp(train, axis=0) * rng.random(u.shape)
    else:
        new = np.column_stack([rng.choice(train[:, s], len(u)) for s in range(u.shape[1])])
    flips = rng.random(codes.shape) < rate
    shift = rng.integers(1, np.maximum(sizes, 2), codes.shape) if codes.shape[1] else np.zeros(codes.shape, dtype=int)
    wrong = np.where(flips, (codes + shift) % np.maximum(sizes, 1), codes) if codes.shape[1] else codes
    return np.where(hit, new, u), wrong.astype(np.int32), hit & (new != u), flips


def main(quick: bool) -> None:
    rows = []
    for name, field, atoms, train, u, codes, sizes in tables():
        for kind in ("uniform", "valid values"):
            for rate in (0.05, 0.15):
                parts = []
                for repeat in range(1 if quick else 3):
                    rng = np.random.default_rng(100 * repeat + int(100 * rate))
                    X, y, hit, _ = damage(rng, train, u, codes, sizes, rate, kind)
                    nil = Noise.nil(X.shape[1], y.shape[1])
                    found = gross_errors(field, atoms, X, y, nil, rate)
                    mended = np.where(found.probability > 0.5, found.fill, X)
                    area = roc_auc_score(hit.ravel(), found.probability.ravel())
                    guess = estimate_gross_rate(field, atoms, X, y, nil)
                    parts.append((np.sqrt(np.mean((X - u) ** 2)), np.sqrt(np.mean((mended - u) ** 2)), area, guess))
                raw, after, area, guess = np.mean(parts, axis=0)
                rows.append(
                    {
                        "set": name,
                        "errors": kind,
                        "rate": rate,
                        "RMSE damaged": float(raw),
                        "RMSE restored": float(after),
                        "AUC of the flag": float(area),
                        "rate estimated": float(guess),
                        "reference": REFERENCE.get((name, rate), "") if kind == "uniform" else "",
                    }
                )
                print(rows[-1], flush=True)
    notes = (
        "Rate known to the restoration; numbers only (categories are flipped at the same rate). 'Valid values' are values of the "
        "column from other rows: much harder, as nothing gives them away but the rest of the row."
    )
    write_results("field-gross", rows, title="Gross errors", notes=notes, quick=quick)
