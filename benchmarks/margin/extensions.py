"""Several classes, new rows, probabilities, copies, other estimators: the remaining figures of G8."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, brier_score_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from benchmarks.harness import write_results
from goldseam.datasets.ring import make_ring
from goldseam.margin import GEMMEDClassifier, TrustWeighter


def robust(X: Any) -> tuple[Any, Any]:
    center = np.median(X, axis=0)
    return center, 1.4826 * np.median(np.abs(X - center), axis=0)


def digits(split: int) -> tuple[float, float, float]:
    """G5.1: plain and GEM error, AP; N(0, 25^2) added to three pixel rows of 20 % of the training rows."""
    X, y = load_digits(return_X_y=True)
    A, T, a, t = train_test_split(X, y, test_size=0.5, random_state=split, stratify=y)
    rng = np.random.default_rng(split)
    bad = rng.random(len(A)) < 0.2
    for i in np.flatnonzero(bad):
        start = 8 * rng.integers(6)
        A[i, start : start + 24] += 25 * rng.standard_normal(24)
    scaler = StandardScaler().fit(A)
    A, T = scaler.transform(A), scaler.transform(T)
    plain = LinearSVC(C=0.1, loss="hinge", random_state=0, max_iter=5000).fit(A, a)
    gem = GEMMEDClassifier(C=0.1, loss_strength=10.0, threshold="gap", random_state=0).fit(A, a)
    error = lambda model: 100 * float(np.mean(model.predict(T) != t))  # noqa: E731
    return error(plain), error(gem), average_precision_score(bad, -gem.sample_trust_)


def new_rows(seed: int) -> tuple[float, float]:
    """G5.3: AP and false alarms on clean test rows and a fresh ring, R 35."""
    study, other = make_ring(seed, radius=35.0), make_ring(seed + 500, radius=35.0)
    model = GEMMEDClassifier(random_state=0).fit(study.train.data / 5, study.train.target)
    ring = other.train.data[other.train.details["anomalous"]]
    score = model.trust_score(np.vstack([study.test.data, ring]) / 5)
    bad = np.arange(len(score)) >= len(study.test.data)
    return average_precision_score(bad, -score), float(np.mean(score[~bad] < 0))


def brier(seed: int) -> tuple[float, float]:
    """G5.4: Brier score of the trust-weighted curve and of the plain sigmoid, printed geometry, R 35, rate .3."""
    study = make_ring(seed, radius=35.0, anomalies=0.3, geometry="printed")
    out = []
    for probability in ("platt", "sigmoid"):
        model = GEMMEDClassifier(probability=probability, linear_solver="libsvm", random_state=0)
        chance = model.fit(study.train.data, study.train.target).predict_proba(study.test.data)[:, 1]
        out.append(brier_score_loss(study.test.target == 1, chance))
    return out[0], out[1]


def copies(seed: int) -> float:
    """G9: five anomalies of class -1 present 31 times each."""
    study = make_ring(seed)
    five = np.flatnonzero(study.train.details["anomalous"] & (study.train.target == -1))[:5]
    rows = np.concatenate([np.arange(200), np.repeat(five, 30)])
    center, spread = robust(study.train.data)
    model = GEMMEDClassifier(random_state=0).fit((study.train.data[rows] - center) / spread, study.train.target[rows])
    return 100 * float(np.mean(model.predict((study.test.data - center) / spread) != study.test.target))


def weighted(seed: int) -> float:
    study = make_ring(seed)
    model = TrustWeighter(LogisticRegression(), random_state=0).fit(study.train.data, study.train.target)
    return 100 * float(np.mean(model.predict(study.test.data) != study.test.target))


def main(quick: bool) -> None:
    warnings.simplefilter("ignore")
    few = 1 if quick else 10
    classes = np.mean([digits(split) for split in range(1 if quick else 3)], axis=0)
    fresh = np.mean([new_rows(seed) for seed in range(few)], axis=0)
    copied = np.mean([copies(seed) for seed in range(few)])
    scores = np.mean([brier(seed) for seed in range(few)], axis=0)
    rows = [
        {"figure": "digits, ten classes: plain error %", "measured": classes[0], "reference": 8.34},
        {"figure": "digits, ten classes: GEM error %", "measured": classes[1], "reference": 5.64, "limit": 6.0},
        {"figure": "digits, ten classes: AP", "measured": classes[2], "reference": 1.0, "limit": 0.99},
        {"figure": "new rows, ring R 35: AP", "measured": fresh[0], "reference": 1.0, "limit": 0.999},
        {"figure": "new rows, ring R 35: false alarms", "measured": fresh[1], "reference": 0.0, "limit": 0.01},
        {"figure": "Brier, trust-weighted curve", "measured": scores[0], "reference": 0.1698, "limit": 0.175},
        {"figure": "Brier, plain sigmoid", "measured": scores[1], "reference": 0.1655},
        {"figure": "copied anomalies: error %", "measured": copied, "reference": 1.9, "limit": 2.5},
        {"figure": "TrustWeighter + logistic, R 55: error %", "measured": np.mean([weighted(s) for s in range(2 * few)]),
         "reference": 1.79, "limit": 1.95},
    ]  # fmt: skip
    write_results("margin-extensions", rows, title="Several classes, new rows, probabilities, copies", quick=quick)
