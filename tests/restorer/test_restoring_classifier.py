"""Restore-then-predict: damage costs less, clean rows cost nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from goldseam.corruption import overwrite_intervals
from goldseam.errors import ParameterError
from goldseam.restorer import Restorer
from goldseam.restoring_classifier import RestoringClassifier
from tests.restorer.test_restorer import mixed_table

RESTORER = Restorer(method=["conditional"], audit=False, random_state=0)


def test_restoring_wins_back_most_of_what_damage_cost(rng: np.random.Generator) -> None:
    X, y = load_breast_cancer(return_X_y=True)
    order = rng.permutation(len(X))
    train, test = order[:400], order[400:]
    damage = overwrite_intervals(X[test], rows=1.0, reference=X[train], random_state=0, kinds=None)
    plain = LogisticRegression(max_iter=2000, C=0.1)
    center, scale = np.median(X[train], axis=0), np.ptp(np.quantile(X[train], (0.25, 0.75), axis=0), axis=0)
    plain.fit((X[train] - center) / scale, y[train])
    hurt = plain.score((damage.table - center) / scale, y[test])
    clean = plain.score((X[test] - center) / scale, y[test])
    model = RestoringClassifier(RESTORER, LogisticRegression(max_iter=2000, C=0.1)).fit(X[train], y[train])
    assert model.score(damage.table, y[test]) > hurt + 0.5 * (clean - hurt)
    assert model.score(X[test], y[test]) > clean - 0.02


def test_damaged_copies_are_seen_in_training() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    model = RestoringClassifier(RESTORER, LogisticRegression(max_iter=2000), damaged_copies=2, random_state=0)
    model.fit(X[:200], y[:200])
    assert model.predict_proba(X[200:]).shape == (len(X) - 200, 2)
    with pytest.raises(ParameterError, match="got -1"):
        model.set_params(damaged_copies=-1).fit(X, y)


@pytest.mark.parametrize("soft", [True, False])
def test_levels_never_seen_are_guessed_from_the_rest_of_the_row(soft: bool) -> None:
    reference, rows = mixed_table(300, 1), mixed_table(100, 2)
    model = RestoringClassifier(RESTORER, LogisticRegression(max_iter=2000), soft=soft)
    model.fit(reference.drop(columns=["side", "when"]), reference["side"])
    rows["band"] = "never"
    assert model.score(rows.drop(columns=["side", "when"]), rows["side"]) > 0.7


@parametrize_with_checks(
    [
        RestoringClassifier(
            Restorer(method=["conditional"], audit=False, alarm_rate=0.2, random_state=0), LogisticRegression()
        )
    ]
)
def test_scikit_learn_contract(estimator: RestoringClassifier, check: Any) -> None:
    check(estimator)
