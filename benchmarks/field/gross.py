"""Gross errors: flags and repairs at 5 and 15 %, uniform over the range or valid values of the column (F8, F12.10)."""

from __future__ import annotations

import numpy as np
from sklearn.metrics import roc_auc_score

from benchmarks.field.settings import PENALTY, SETS, fitted, load
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
        floor = rate_floor(split.rows, PENALTY[name], learnt.field)
        yield name, learnt.field, atoms, split.numbers, split.test_numbers, split.test_codes, split.sizes, floor
    data = load_wdbc().data
    train, test = data[:380], data[380:]
    u, v = (train - train.mean(axis=0)) / train.std(axis=0), (test - train.mean(axis=0)) / train.std(axis=0)
    rows = Rows.of(u, np.zeros((len(u), 0), dtype=np.int32), Layout.of([]))
    field = fit_field(rows, "block", 0.4).field
    none, atoms = np.zeros((len(v), 0), dtype=np.int32), Atoms.of(u, rows.weights)
    yield "wdbc", field, atoms, u, v, none, np.zeros(0, dtype=int), rate_floor(rows, 0.4, field)


def rate_floor(rows, c, begin, splits=8):
    """The largest rate estimated on clean held-out training rows (F6.4)."""
    rng, found = np.random.default_rng(0), []
    for _ in range(splits):
        order = rng.permutation(len(rows.numbers))
        train, rest = rows.take(order[: 3 * len(order) // 4]), order[3 * len(order) // 4 :]
        field = fit_field(train, "block", c, begin=begin, tol=1e-5).field
        X, y = rows.numbers[rest], rows.codes[rest]
        nil = Noise.nil(X.shape[1], y.shape[1])
        found.append(estimate_gross_rate(field, Atoms.of(train.numbers, train.weights), X, y, nil))
    return max(found)


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
    for name, field, atoms, train, u, codes, sizes, floor in tables():
        for kind in ("uniform", "valid values"):
            for rate in (0.05, 0.15):
                parts = []
                for repeat in range(1 if quick else 10):
                    rng = np.random.default_rng(100 * repeat + int(100 * rate))
                    X, y, hit, _ = damage(rng, train, u, codes, sizes, rate, kind)
                    nil = Noise.nil(X.shape[1], y.shape[1])
                    found = gross_errors(field, atoms, X, y, nil, rate)
                    mended = np.where(found.probability > 0.5, found.fill, X)
                    area = roc_auc_score(hit.ravel(), found.probability.ravel())
                    guess = estimate_gross_rate(field, atoms, X, y, nil)
                    product = X
                    if guess > floor:
                        again = gross_errors(field, atoms, X, y, nil, guess)
                        product = np.where(again.probability > 0.5, again.fill, X)
                    errors = [np.sqrt(np.mean((a - u) ** 2)) for a in (X, mended, product)]
                    parts.append((*errors, area, guess, guess <= floor))
                raw, after, product_rmse, area, guess, refused = np.mean(parts, axis=0)
                rows.append(
                    {
                        "set": name,
                        "errors": kind,
                        "rate": rate,
                        "RMSE damaged": float(raw),
                        "RMSE restored": float(after),
                        "AUC of the flag": float(area),
                        "rate estimated": float(guess),
                        "floor": float(floor),
                        "refused": f"{refused:.0%}",
                        "RMSE, rate estimated": float(product_rmse),
                        "reference": REFERENCE.get((name, rate), "") if kind == "uniform" else "",
                    }
                )
                print(rows[-1], flush=True)
    notes = (
        "Numbers only (categories are flipped at the same rate). 'RMSE restored' knows the rate; 'RMSE, rate estimated' takes "
        "the rate from the table and leaves the table alone when the rate is below its floor ('refused'). 'Valid values' are "
        "values of the column from other rows: much harder, as nothing gives them away but the rest of the row. 10 repeats."
    )
    write_results("field-gross", rows, title="Gross errors", notes=notes, quick=quick)
