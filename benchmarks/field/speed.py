"""Rows restored per second on one thread, against scikit-learn's IterativeImputer and miceforest on the same rows."""

from __future__ import annotations

import time

import numpy as np

from benchmarks.field.settings import damaged, fitted, load
from benchmarks.harness import peak_memory_mb, write_results
from benchmarks.peers import imputers
from goldseam.field.emission import empirical
from goldseam.field.inference import Noise, cell_precision, infer, leave_one_out
from goldseam.field.learning import fit_field
from goldseam.field.potentials import Layout, Potentials


def seconds(call, repeats=3):
    """Least processor time of a few calls: the machine is shared, everything here runs on one thread."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def restore(field, atoms, p0, X, y, tau, method="lbp"):
    noise = Noise(np.full(X.shape[1], tau), np.full(y.shape[1], tau))
    beliefs = infer(field, X, y, noise, method=method, frequencies=p0)
    return empirical(atoms, X, cell_precision(X, noise), beliefs)


def wide_field(rng, columns=100, states=10, share=0.1):
    """Sparse random field over many categories."""
    layout = Layout.of([states] * columns)
    T = layout.n_states
    Phi = np.zeros((T, T))
    for j in range(columns):
        for k in range(j + 1, columns):
            if rng.random() < share:
                Phi[layout.block(j), layout.block(k)] = rng.normal(size=(states, states)) * 0.3
    return Potentials(np.zeros((0, 0)), np.zeros(0), np.zeros((0, T)), rng.normal(size=T), Phi + Phi.T, layout.offsets)


def main(quick: bool) -> None:
    rows = []
    split = load("adult")
    start = time.process_time()
    learnt = fit_field(split.rows, "block", 0.4)
    fit_seconds = time.process_time() - start
    field, atoms, p0 = fitted("adult")[0].field, *fitted("adult")[1:]
    rows.append(
        {
            "what": "fit, adult 30,162 rows, c .4",
            "seconds": fit_seconds,
            "limit": "90 s; reference 439 s, not converged",
            "note": f"F {learnt.value:.4f} (reference 6.619), {learnt.n_iter} iterations, converged {learnt.converged}, "
            f"last gain {learnt.last_change:.1e} per iteration",
        }
    )
    X, y = damaged(split, 0.2, 0.0, 0)
    n = len(X)
    restore(field, atoms, p0, X[:50], y[:50], 0.2)
    ours = seconds(lambda: restore(field, atoms, p0, X, y, 0.2))
    rows.append(
        {"what": "restore adult test rows, tau .2", "rows/s": n / ours, "limit": ">= 20,000; plain 4,160 (6x2)"}
    )
    restore(field, atoms, p0, X[:50], y[:50], 0.2, "structured")
    old = seconds(lambda: restore(field, atoms, p0, X, y, 0.2, "structured"), 1)
    rows.append({"what": "the same, published loop", "rows/s": n / old, "limit": ""})
    half = seconds(lambda: restore(field, atoms, p0, X[: n // 2], y[: n // 2], 0.2))
    rows.append({"what": "half the rows: time relative to all", "ratio": half / ours, "limit": "about .5: linear"})
    Xg, yg = damaged(split, 0.2, 0.3, 0)
    ours_gaps = seconds(lambda: restore(field, atoms, p0, Xg, yg, 0.2))
    rows.append({"what": "restore adult, tau .2, rho .3", "rows/s": n / ours_gaps, "limit": ""})
    none = np.zeros(X.shape, dtype=bool), np.zeros(y.shape, dtype=bool)
    leave_one_out(field, split.test_numbers[:50], split.test_codes[:50], none[0][:50], none[1][:50])
    loo = seconds(lambda: leave_one_out(field, split.test_numbers, split.test_codes, *none))
    rows.append({"what": "every cell given the others, adult", "rows/s": n / loo, "limit": ""})
    few = slice(0, 300 if quick else 2000)
    gap_rng = np.random.default_rng(0)
    gappy = split.numbers[:2000].copy(), split.codes[:2000].copy()
    for part, blank in zip(gappy, (np.nan, -1), strict=True):
        part[gap_rng.random(part.shape) < 0.3] = blank
    whole = split.numbers[:2000], split.codes[:2000]
    for what, peer, train, limit in (
        ("IterativeImputer from complete rows (one round)", imputers.Iterative(fair=False), whole, ""),
        ("IterativeImputer from rows with gaps", imputers.Iterative(fair=False), gappy, ">= 10x"),
        ("miceforest", imputers.MiceForest(), whole, ">= 20x"),
    ):
        start = time.process_time()
        peer.fit(*train, split.layout)
        fitted_at = time.process_time()
        peer.transform(Xg[few], yg[few])
        end = time.process_time()
        for part, took in (("rows alone", end - fitted_at), ("fit on 2,000 rows included", end - start)):
            each = took / len(Xg[few])
            rows.append({"what": f"{what}, {part}", "rows/s": 1 / each, "ratio": each * n / ours_gaps, "limit": limit})
    rng = np.random.default_rng(0)
    wide = wide_field(rng)
    codes = rng.integers(0, 10, (400 if quick else 2000, 100)).astype(np.int32)
    empty = np.zeros((len(codes), 0))
    noise = Noise(np.zeros(0), np.full(100, 0.2))
    infer(wide, empty[:8], codes[:8], noise)
    took = seconds(lambda: infer(wide, empty, codes, noise))
    rows.append(
        {
            "what": "100 categories of 10 states, 10 % of the edges, tau .2",
            "rows/s": len(codes) / took,
            "limit": ">= 1,000",
        }
    )
    rows.append({"what": "peak memory, MB", "ratio": peak_memory_mb(), "limit": ""})
    for name in ("credit-approval", "australian", "german"):
        small = load(name)
        took = seconds(lambda small=small: fit_field(small.rows, "block", 0.4))
        rows.append({"what": f"fit, {name}", "seconds": took, "limit": "1 cpu s; reference .4-.7"})
    notes = (
        "One thread, processor time on a machine shared with other work. Default accuracy: belief propagation until no belief "
        "moves by 1e-3, training values included (F7)."
    )
    write_results("field-speed", rows, title="Speed of the field", notes=notes, quick=quick)
