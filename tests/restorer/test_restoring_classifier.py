"""Restore-then-predict: damage costs less, clean rows cost nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
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


class Witness(LogisticRegression):
    """A classifier that remembers what it was shown."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        self.shown_ = np.asarray(X), np.asarray(y)
        return super().fit(X, y, sample_weight)


def test_damaged_copies_are_seen_in_training() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:100, :5], y[:100]
    model = RestoringClassifier(RESTORER, Witness(max_iter=2000), damaged_copies=2, random_state=0).fit(X, y)
    rows, labels = model.classifier_.shown_
    assert rows.shape == (300, 5)
    np.testing.assert_array_equal(labels, np.tile(y, 3))
    own, *copies = np.split(rows, 3)
    plain = RestoringClassifier(RESTORER, Witness(max_iter=2000), random_state=0).fit(X, y)
    np.testing.assert_array_equal(own, plain.classifier_.shown_[0])
    for copy in copies:
        assert (copy != own).any(axis=1).mean() > 0.2
    assert (copies[0] != copies[1]).any()
    assert (model.classifier_.coef_ != plain.classifier_.coef_).any()


def test_a_mended_category_is_soft_only_if_asked() -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(size=200)
    table = pd.DataFrame({"x": a, "y": a + 0.3 * rng.normal(size=200), "c": np.where(a > 0, "p", "q")})
    new = table.head(20).copy()
    new.loc[4, "c"] = None
    shown = {}
    for soft in (True, False):
        model = RestoringClassifier(RESTORER, LogisticRegression(), soft=soft).fit(table, a > 0)
        shown[soft] = model._rows(new)[:, 2:]
    assert np.isin(shown[False], (0.0, shown[False].max())).all()
    assert not np.isin(shown[True][4], (0.0, shown[False].max())).any()
    kept = np.arange(20) != 4
    np.testing.assert_array_equal(shown[True][kept], shown[False][kept])


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"damaged_copies": -1}, "damaged_copies must be a whole number of at least 0; got -1"),
        ({"damaged_copies": 1.5}, "got 1.5"),
        ({"damaged_copies": None}, "got None"),
        ({"damaged_copies": True}, "got True"),
        ({"restorer": LogisticRegression()}, r"restorer must be a Restorer; got LogisticRegression\(\)"),
        ({"restorer": None}, "got None"),
        ({"classifier": "logistic"}, "classifier must have fit and predict; got 'logistic'"),
        ({"soft": "yes"}, "soft must be True or False; got 'yes'"),
        ({"restorer": Restorer(missing_values="n/a")}, "missing_values .*'n/a'"),
    ],
)
def test_settings_outside_their_limits(settings: dict[str, Any], says: str) -> None:
    X, y = load_breast_cancer(return_X_y=True)
    model = RestoringClassifier(RESTORER, LogisticRegression()).set_params(**settings)
    with pytest.raises(ParameterError, match=says) as error:
        model.fit(X[:60], y[:60])
    assert "Hint: " in str(error.value)


def test_labels_of_another_length_are_refused_before_anything_is_learnt(capsys: pytest.CaptureFixture[str]) -> None:
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = RestoringClassifier(Restorer(audit=False, verbose=1), LogisticRegression())
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[60, 59\]"):
        model.fit(X, np.arange(59) % 2)
    assert capsys.readouterr().out == ""


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
