"""When a category changes: the terms of Bayes' rule and what they weigh."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from goldseam.conditional.layout import layout_of
from goldseam.errors import ModelFileError
from goldseam.evidence.repair import Repairer, rivals
from goldseam.evidence.switching import BAYES, fit_terms, log_odds, terms
from goldseam.schema import Column, Kind, Schema

LAYOUT = layout_of(Schema((Column("x", Kind.CONTINUOUS), Column("a", Kind.CATEGORICAL, ("p", "q", "r")))))
OFFSETS = np.array([0, 3])


def cells():
    """Two rows, one number and one category of three levels; the second row's level was never seen."""
    return {
        "codes": np.array([[1], [-2]], dtype=np.int32),
        "scores": np.array([[3.0, 1.0], [-1.0, -2.0]]),
        "levels": np.array([[0.1, 0.2, 0.7], [0.5, 0.3, 0.2]]),
        "all_told": np.array([[0.3, 0.3, 0.4], [0.6, 0.2, 0.2]]),
    }


def test_terms_by_hand():
    other, parts = terms(**cells(), context=np.array([[2.0], [-5.0]]), offsets=OFFSETS)
    assert other[:, 0].tolist() == [2, 0]
    log = np.log
    assert parts[0, 0] == pytest.approx([0.0, 2.0, log(0.2), log(0.3), log(0.7), log(3.0), 1.0, 1.0])
    assert parts[1, 0] == pytest.approx([-3.0, 0.0, log(0.002), log(0.002), log(0.5), log(3.0), 0.0, 1.0])


def test_bayes_rule_from_the_joint_distribution():
    """A level drawn by q, replaced with odds e^c by any of K: the odds of v : x given x, by enumeration."""
    q, damaged = np.array([0.05, 0.25, 0.7]), 1.0 / (1.0 + np.exp(-1.5))
    observed = 0
    joint = q * (damaged / 3.0 + (1.0 - damaged) * (np.arange(3) == observed))
    share = q[None]
    _, parts = terms(np.array([[observed]], np.int32), np.zeros((1, 1)), np.array([[1.5]]), share, share, OFFSETS)
    sound = (1.0 - damaged) * q[observed]  # (E-11) leaves out that damage may draw the right level
    assert log_odds(parts, np.array(BAYES))[0, 0] == pytest.approx(np.log(joint[2] / sound))


def drawn(rng, weights, n=4000):
    parts = np.column_stack([rng.normal(size=(n, 7)), np.ones(n)])
    return parts, rng.random(n) < 1.0 / (1.0 + np.exp(-parts @ weights))


def test_without_a_penalty_the_weights_are_those_of_logistic_regression(rng):
    parts, good = drawn(rng, np.array([0.5, 0.2, -0.8, -0.3, 0.6, -1.0, -2.0, -0.5]))
    weight = rng.uniform(0.5, 2.0, len(good))
    expected = LogisticRegression(C=1e9, tol=1e-8, max_iter=1000).fit(parts[:, :7], good, sample_weight=weight)
    found = fit_terms(parts, good, weight, prior=0.0)
    assert found[:7] == pytest.approx(expected.coef_[0], abs=1e-3)
    assert found[7] == pytest.approx(expected.intercept_[0], abs=1e-3)


def test_few_cells_leave_bayes_rule_alone(rng):
    parts, good = drawn(rng, np.zeros(8))
    far = np.abs(fit_terms(parts, good, np.ones(len(good)), prior=1.0) - BAYES)
    near = np.abs(fit_terms(parts[:20], good[:20], np.ones(20), prior=1e4) - BAYES)
    assert far[[0, 1, 4, 5]].min() > 0.8
    assert near[:7].max() < 0.01
    assert near[7] < 0.3  # the constant is free to move
    assert fit_terms(parts, np.zeros(len(good), bool), np.ones(len(good)), 1.0) == pytest.approx(BAYES)
    assert fit_terms(parts[:0], good[:0], np.empty(0), 1.0) == pytest.approx(BAYES)


def test_a_level_that_cannot_be_foretold_has_constant_terms(rng):
    """All columns have two levels, and no row is suspect: two terms do not vary."""
    parts, good = drawn(rng, np.array(BAYES))
    parts[:, 5:7] = np.log(2.0), 0.0
    assert np.isfinite(fit_terms(parts, good, np.ones(len(good)), prior=1.0)).all()


def test_earlier_files_keep_their_rule():
    old = Repairer(np.zeros(1), np.zeros((1, 1)), 0.5, np.empty(0))
    given, context = cells(), np.array([[0.0, 2.0], [0.0, -5.0]])
    told = old.rivals(**given, context=context, layout=LAYOUT, offsets=OFFSETS)
    expected = rivals(given["codes"], given["scores"][:, 1:], given["levels"], OFFSETS)
    assert all(np.array_equal(one, two) for one, two in zip(told, expected, strict=True))
    new = replace(old, weights=np.array(BAYES))
    parts = terms(**given, context=context[:, 1:], offsets=OFFSETS)[1]
    found = new.rivals(**given, context=context, layout=LAYOUT, offsets=OFFSETS)[1]
    assert found == pytest.approx(parts @ np.array(BAYES))


def test_weights_of_other_terms_are_refused():
    blank = Repairer(np.zeros(1), np.zeros((1, 1)), 0.5, np.empty(0))
    blank.check_state()
    with pytest.raises(ModelFileError, match=r"weighs \(3,\) terms"):
        replace(blank, weights=np.ones(3)).check_state()
