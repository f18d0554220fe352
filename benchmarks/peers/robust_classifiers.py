"""Other ways to train a classifier on damaged rows (G6): what GEM-MED is measured against.

Each function takes training rows, labels -1/+1 and a function that fits the inner SVM, and returns `Rival`: a predictor
and an anomaly score per training row (large is suspicious). ROD is the alternating form, a local method: the original
semidefinite program is not usable at these sizes, so the figures may understate it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2
from sklearn.covariance import EllipticEnvelope
from sklearn.ensemble import GradientBoostingClassifier, IsolationForest, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import RobustScaler, StandardScaler
from sklearn.svm import SVC

Floats = NDArray[np.float64]
Fit = Callable[[Floats, NDArray[Any]], Any]


@dataclass(frozen=True)
class Rival:
    predict: Callable[[Floats], NDArray[Any]]
    score: Floats | None = None


def libsvm(X: Floats, y: NDArray[Any], C: float = 1.0, **settings: Any) -> Any:
    """The MED baseline: LIBSVM, linear unless told otherwise."""
    settings = {"kernel": "linear", "max_iter": 200_000, **settings}
    return SVC(C=C, **settings).fit(X, y)


def _score(model: Any, X: Floats, y: NDArray[Any]) -> Floats:
    return 1.0 - y * model.decision_function(X)


def plain_svm(X: Floats, y: NDArray[Any], fit: Fit = libsvm) -> Rival:
    model = fit(X, y)
    return Rival(model.predict, _score(model, X, y))


def rod(X: Floats, y: NDArray[Any], removable: float, fit: Fit = libsvm, rounds: int = 15) -> Rival:
    """Alternating trimmed hinge: refit without the `removable` share of rows that fit worst, until that set repeats."""
    n_drop = round(removable * len(y))
    kept = np.ones(len(y), dtype=bool)
    model = fit(X, y)
    seen = {kept.tobytes()}
    for _ in range(rounds):
        new = np.ones(len(y), dtype=bool)
        new[np.argsort(-_score(model, X, y), kind="stable")[:n_drop]] = False
        if new.tobytes() in seen or len(np.unique(y[new])) < 2:
            break
        seen.add(new.tobytes())
        kept, model = new, fit(X[new], y[new])
    return Rival(model.predict, _score(model, X, y))


def ramp(X: Floats, y: NDArray[Any], fit: Fit = libsvm, rounds: int = 15) -> Rival:
    """Ramp loss by CCCP: refit on the rows with y f >= -1 until they stay the same."""
    kept, model = np.ones(len(y), dtype=bool), fit(X, y)
    for _ in range(rounds):
        new = y * model.decision_function(X) >= -1
        if np.array_equal(new, kept) or len(np.unique(y[new])) < 2:
            break
        kept, model = new, fit(X[new], y[new])
    return Rival(model.predict, _score(model, X, y))


def filtered(
    X: Floats, y: NDArray[Any], detector: Callable[[Floats], tuple[NDArray[np.bool_], Floats]], fit: Fit = libsvm
) -> Rival:
    """Drop what a detector, fitted per class, calls an outlier; then fit."""
    kept, score = np.ones(len(y), dtype=bool), np.empty(len(y))
    for label in np.unique(y):
        rows = np.flatnonzero(y == label)
        kept[rows], score[rows] = detector(X[rows])
    return Rival(fit(X[kept], y[kept]).predict, score)


def lof(X: Floats) -> tuple[NDArray[np.bool_], Floats]:
    model = LocalOutlierFactor(n_neighbors=min(20, len(X) - 1))
    return model.fit_predict(X) == 1, -model.negative_outlier_factor_


def isolation_forest(X: Floats) -> tuple[NDArray[np.bool_], Floats]:
    model = IsolationForest(n_estimators=50, random_state=0).fit(X)
    return model.predict(X) == 1, -model.score_samples(X)


def elliptic_envelope(X: Floats) -> tuple[NDArray[np.bool_], Floats]:
    model = EllipticEnvelope(contamination=0.1, random_state=0).fit(X)
    distance = model.mahalanobis(X)
    return distance <= chi2.ppf(0.975, X.shape[1]), distance


def robust_rbf(X: Floats, y: NDArray[Any]) -> Rival:
    return Rival(make_pipeline(RobustScaler(), SVC(gamma="scale", C=1.0)).fit(X, y).predict)


def forest(X: Floats, y: NDArray[Any]) -> Rival:
    return Rival(RandomForestClassifier(100, random_state=0).fit(X, y).predict)


def boosting(X: Floats, y: NDArray[Any]) -> Rival:
    return Rival(GradientBoostingClassifier(random_state=0).fit(X, y).predict)


def logistic(X: Floats, y: NDArray[Any]) -> Rival:
    return Rival(LogisticRegression(max_iter=1000).fit(X, y).predict)


def modified_huber(X: Floats, y: NDArray[Any]) -> Rival:
    model = SGDClassifier(loss="modified_huber", alpha=0.01, max_iter=500, tol=None, random_state=0)
    return Rival(make_pipeline(StandardScaler(), model).fit(X, y).predict)


RIVALS: dict[str, Callable[[Floats, NDArray[Any]], Rival]] = {
    "SVM C=1": plain_svm,
    "ROD-.02": lambda X, y: rod(X, y, 0.02),
    "ROD-.2": lambda X, y: rod(X, y, 0.2),
    "ROD-.6": lambda X, y: rod(X, y, 0.6),
    "ramp CCCP": ramp,
    "LOF + SVM": lambda X, y: filtered(X, y, lof),
    "IsolationForest + SVM": lambda X, y: filtered(X, y, isolation_forest),
    "EllipticEnvelope + SVM": lambda X, y: filtered(X, y, elliptic_envelope),
    "RBF SVM, robust scaled": robust_rbf,
    "random forest": forest,
    "boosting": boosting,
    "logistic": logistic,
    "modified Huber": modified_huber,
}
