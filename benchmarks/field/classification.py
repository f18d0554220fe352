"""What tables 1 and 2 share: accuracy of classifiers on damaged and on restored rows, beside the reference's and the paper's."""

from __future__ import annotations

import numpy as np
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC

from benchmarks.field.settings import SETS, damaged, dummies, hard, load, restore, standard_error
from benchmarks.harness import write_results
from benchmarks.peers import imputers

SLOW_REPEATS = {True: {"forest": 1, "miceforest": 1}, False: {"forest": 4, "miceforest": 1}}  # adult or not
ADULT_REPEATS = 10  # about 2 minutes of processor time each over tables 1 and 2


def classifiers(split):
    X = dummies(split, split.numbers, split.codes)
    svm = LinearSVC(C=1.0, dual=False).fit(X, split.labels)
    chosen = np.random.default_rng(5).permutation(len(X))[:10_000]
    return svm, KNeighborsClassifier(5).fit(X[chosen], split.labels[chosen])


def versions(split, models, X, y, tau, rho, repeat):
    """What the classifiers are given: damaged rows (mean and mode in the gaps), and restorations."""
    plain = imputers.mean_mode(split.numbers, split.codes, X, y, split.layout)
    out = {"no restoration" if rho == 0 else "mean/mode": dummies(split, *plain)}
    beliefs, by_values = restore(split.name, X, y, tau)
    out["field, hard"] = dummies(split, beliefs.mean, hard(split, beliefs.Q))
    out["field, soft"] = np.column_stack([beliefs.mean, beliefs.Q])
    out["field, soft, empirical"] = np.column_stack([by_values.mean, beliefs.Q])
    mean, _, Q = models["latent class"].posterior(X, y, tau, tau)
    out["latent class, hard"] = dummies(split, mean, hard(split, Q))
    out["latent class, soft"] = np.column_stack([mean, Q])
    if rho > 0:
        for name, filled in fillings(split, models, X, y, repeat):
            out[name] = dummies(split, *filled)
    return out


def few(split):
    """The rows that slow peers and KNN see (F11.2)."""
    return np.random.default_rng(123).permutation(len(split.test_labels))[:2000]


def fillings(split, models, X, y, repeat):
    """The imputers' answers; the slow ones only in the first repeats."""
    adult = split.name == "adult"
    yield "KNNI", imputers.knn(split.numbers, split.codes, X, y, split.layout)
    if not adult or repeat < 1:
        rng, rounds = np.random.default_rng(0), 2 if adult else 3
        yield "REMI", imputers.gaussian_em(split.numbers, split.codes, X, y, split.layout, rng, rounds)
    for name in ("MICE-LR", "forest", "IterativeImputer", "miceforest"):
        if repeat < SLOW_REPEATS[adult].get(name, 99):
            yield name, models[name].transform(X, y)


def accuracies(name, tau, rho, repeats, models, svm, knn):
    """Accuracy of every version in every repeat: {(version, classifier): [..]}."""
    split, found = load(name), {}
    some = few(split)
    for repeat in range(repeats):
        X, y = damaged(split, tau, rho, repeat)
        rows = slice(None)
        if name == "adult" and rho > 0:  # the slow peers see 2,000 rows
            X, y, rows = X[some], y[some], some
        labels = split.test_labels[rows]
        for version, features in versions(split, models, X, y, tau, rho, repeat).items():
            found.setdefault((version, "SVM"), []).append((svm.predict(features) == labels).mean())
            part = some if name == "adult" and rho == 0 else slice(None)
            found.setdefault((version, "KNN"), []).append((knn.predict(features[part]) == labels[part]).mean())
    return found


def prepared(name):
    split = load(name)
    limits = {"limit": 10_000} if name == "adult" else {}
    sizes = (64,) if name == "adult" else (4, 8, 16, 32)
    latent = imputers.LatentClasses(sizes, **limits).fit(split.numbers, split.codes, split.layout)
    models = {"latent class": latent} | imputers.fitted_fillers(split, name == "adult")
    return models, *classifiers(split)


def table(quick, settings, title, name, reference, baseline):
    rows = []
    for dataset in SETS[:1] if quick else SETS:
        repeats = 2 if quick else ADULT_REPEATS if dataset == "adult" else 10
        models, svm, knn = prepared(dataset)
        found = [accuracies(dataset, tau, rho, repeats, models, svm, knn) for tau, rho in settings]
        for version, classifier in found[-1]:
            row = {"set": dataset, "rows given": version, "classifier": classifier}
            for (tau, rho), part in zip(settings, found, strict=True):
                head = f"tau {tau:g}" if baseline == "no restoration" else f"rho {rho:g}"
                row[head] = float(np.mean(part[version, classifier]))
                if (tau, rho) == settings[-1]:
                    mine = np.array(part[version, classifier])
                    gain = mine - np.array(part[baseline, classifier])[: len(mine)]
                    error = f" ± {standard_error(gain):.3f}" if len(gain) > 1 else ", one repeat"
                    row["gain at the last ± s.e."] = f"{gain.mean():+.3f}{error}"
            if version == "field, hard" and classifier == "SVM":
                row["reference (paper), same settings"] = " / ".join(reference[dataset])
            rows.append(row)
            print(row, flush=True)
    notes = (
        "Noise known to field and latent class; clean training rows. SVM linear, C = 1; KNN K = 5. 10 repeats (forest 4, "
        f"miceforest 1), adult {ADULT_REPEATS} (REMI, forest and miceforest 1; see docs/maths/field.md for the reason) "
        "with all 15,060 test rows; KNN, and everything with gaps, on 2,000 of them as in the reference: the peers are "
        "slow. Peers as in F11.3: fitted on clean rows (adult: KNNI 3,000, REMI and forest 5,000, MICE-LR and "
        "IterativeImputer 10,000, miceforest 2,000 of them); IterativeImputer without a column's own dummies. Reference "
        "figures start at tau .1."
    )
    write_results(name, rows, title=title, notes=notes, quick=quick)
