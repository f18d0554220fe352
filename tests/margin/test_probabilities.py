"""Curves from scores to probabilities against scikit-learn, and what trust changes about them."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss

from goldseam.datasets.ring import make_ring
from goldseam.margin import GEMMEDClassifier
from goldseam.margin.probabilities import fit_platt, fit_temperature, platt_probabilities


def test_platt_curve_is_weighted_logistic_regression(rng):
    scores, weights = rng.normal(size=300), rng.uniform(0, 1, 300)
    positive = rng.random(300) < 1 / (1 + np.exp(-2 * scores + 0.7))
    expected = LogisticRegression(C=100.0, tol=1e-10, max_iter=1000).fit(scores[:, None], positive, weights)
    slope, offset = fit_platt(scores, positive, weights)
    assert slope == pytest.approx(expected.coef_[0, 0], rel=1e-4)
    assert offset == pytest.approx(expected.intercept_[0], rel=1e-4)


def test_temperature_is_the_likeliest(rng):
    scores, weights = rng.normal(size=(200, 4)), rng.uniform(0, 1, 200)
    codes = np.argmax(1.7 * scores + rng.gumbel(size=(200, 4)), axis=1)

    def loss(slope):
        likelihood = log_softmax(slope[0] * scores, axis=1)[np.arange(200), codes]
        return -np.sum(weights * likelihood) + slope[0] ** 2 / 200

    assert fit_temperature(scores, codes, weights) == pytest.approx(minimize(loss, [1.0], tol=1e-10).x[0], rel=1e-4)


def test_the_likelier_class_is_the_predicted_one(rng):
    scores = np.append(rng.normal(size=200), 0.0)[:, None]
    for slope, offset in ((1.0, -2.0), (0.3, 5.0)):
        chance = platt_probabilities(scores, slope, offset)
        assert np.array_equal(chance[:, 1] > chance[:, 0], scores[:, 0] > 0)


def test_distrusted_rows_do_not_bend_the_curve():
    """G5.4: with all rows alike the Brier score in the printed geometry is .225, weighted by trust .170."""
    found = []
    for seed in range(5):
        study = make_ring(seed, radius=35.0, anomalies=0.3, geometry="printed")
        model = GEMMEDClassifier(linear_solver="libsvm", random_state=0).fit(study.train.data, study.train.target)
        scores, positive = model.decision_function(study.train.data), study.train.target == 1
        alike = platt_probabilities(
            model.decision_function(study.test.data)[:, None], *fit_platt(scores, positive, np.ones(200))
        )
        chances = (model.predict_proba(study.test.data)[:, 1], alike[:, 1])
        found.append([brier_score_loss(study.test.target == 1, chance) for chance in chances])
    weighted, unweighted = np.mean(found, axis=0)
    assert weighted < 0.175 < 0.2 < unweighted
