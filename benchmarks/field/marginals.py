"""Training values as marginals (F7) on sets that played no part in their design: noise removed, intervals, no harm."""

from __future__ import annotations

import numpy as np

from benchmarks.harness import write_results
from goldseam.datasets import load_digits, load_ida_heart, load_new_thyroid, load_pima_diabetes, load_wdbc, load_wine
from goldseam.field.emission import Atoms, empirical
from goldseam.field.inference import Noise, cell_precision, infer
from goldseam.field.learning import fit_field
from goldseam.field.objective import Rows
from goldseam.field.potentials import Layout

LOADERS = {
    "wine": load_wine,
    "wdbc": load_wdbc,
    "digits": load_digits,
    "heart": load_ida_heart,
    "thyroid": load_new_thyroid,
    "pima": load_pima_diabetes,
}


def abalone_like(rng, n_rows=1500):
    """Shells: lengths read off in steps of .005, weights that grow with the cube of the length, whole rings."""
    age = rng.gamma(6.0, 1.7, n_rows) + 1.0
    size = 0.65 * (1 - np.exp(-0.25 * age)) * np.exp(0.12 * rng.standard_normal(n_rows))
    spread = lambda sd: np.exp(sd * rng.standard_normal(n_rows))  # noqa: E731
    lengths = [np.round(size * ratio * spread(0.04) / 0.005) * 0.005 for ratio in (1.0, 0.79, 0.27)]
    whole = 6.5 * size**3 * spread(0.15)
    weights = [np.round(whole * share * spread(0.18) / 0.0005) * 0.0005 for share in (1.0, 0.43, 0.22, 0.29)]
    return np.column_stack([*lengths, *weights, np.round(age)])


def tables():
    for name, loader in LOADERS.items():
        yield name, np.asarray(loader().frame().to_numpy(), dtype=float)
    yield "abalone-like", abalone_like(np.random.default_rng(0))


def main(quick: bool) -> None:
    rows = []
    for name, data in tables():
        data = data[np.random.default_rng(0).permutation(len(data))]
        data = data[~np.isnan(data).any(axis=1)]
        cut = 2 * len(data) // 3
        keep = data[:cut].std(axis=0) > 1e-9
        train, test = data[:cut, keep], data[cut:, keep]
        mean, sd = train.mean(axis=0), train.std(axis=0)
        u, clean = (train - mean) / sd, (test - mean) / sd
        table = Rows.of(u, np.zeros((len(u), 0), dtype=np.int32), Layout.of([]))
        field, atoms = fit_field(table, "block", 0.4).field, Atoms.of(u, table.weights)
        for tau in (0.1, 0.2, 0.5):
            truth = np.concatenate([clean] * (1 if quick else 5))  # five draws of the noise
            X = truth + tau * np.random.default_rng(int(100 * tau)).standard_normal(truth.shape)
            noise = Noise(np.full(X.shape[1], tau), np.zeros(0))
            beliefs = infer(field, X, np.zeros((len(X), 0), dtype=np.int32), noise)
            shaped = empirical(atoms, X, cell_precision(X, noise), beliefs)
            rmse = lambda a, truth=truth: float(np.sqrt(np.mean((a - truth) ** 2)))  # noqa: E731
            columns = np.sqrt(np.mean((shaped.mean - truth) ** 2, axis=0)) / np.sqrt(np.mean((X - truth) ** 2, axis=0))
            inside = np.abs(shaped.mean - truth) <= 1.645 * np.sqrt(shaped.variance)
            rows.append(
                {
                    "set": name,
                    "columns": X.shape[1],
                    "tau": tau,
                    "RMSE damaged": rmse(X),
                    "field alone": rmse(beliefs.mean),
                    "with training values": rmse(shaped.mean),
                    "worst column / damaged": float(columns.max()),
                    "90 % coverage": float(inside.mean()),
                }
            )
            print(rows[-1], flush=True)
    notes = (
        "Noise known, two thirds of the rows for training, five draws of the noise. 'Worst column': RMSE relative to leaving the "
        "column alone. 'abalone-like' is generated: shells measured in steps of .005."
    )
    write_results("field-marginals", rows, title="Training values as marginals on other sets", notes=notes, quick=quick)
