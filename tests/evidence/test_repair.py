"""How far to move, when to refuse, how far an interval reaches."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

from goldseam.evidence.calibration import best_threshold, conformal_p_values
from goldseam.evidence.repair import Repairer, fit_gain, fit_reach, fit_switch, isotonic


def test_isotonic_equals_scikit_learn(rng):
    values, weights = rng.normal(size=200) + np.linspace(0, 1, 200), rng.uniform(0.1, 2.0, 200)
    expected = IsotonicRegression().fit_transform(np.arange(200), values, sample_weight=weights)
    assert isotonic(values, weights) == pytest.approx(expected)


def test_gain_is_the_share_of_steps_that_were_right(rng):
    scores = rng.uniform(-5, 10, 20_000)
    damaged = rng.random(scores.size) < 1 / (1 + np.exp(-scores))
    step = rng.choice((-1.5, 1.5), scores.size)
    wanted = np.where(damaged, step, 0.0)
    width, way = np.full(scores.size, 0.3), np.zeros(scores.size, dtype=np.int64)
    no = np.zeros(scores.size, dtype=bool)
    repairer = Repairer(*fit_gain(scores, step, width, no, wanted, way), np.inf, np.empty(0))
    at = np.array([-3.0, 0.0, 1.0, 4.0])
    gain = repairer.gain(at, np.full(4, 1.5), np.full(4, 0.3), no[:4])
    assert gain[0] == 0.0  # abstains
    assert gain[1:] == pytest.approx(1 / (1 + np.exp(-at[1:])), abs=0.12)


def test_one_kind_of_damage_that_repairs_would_harm_holds_them_back(rng):
    scores = np.full(2000, 3.0)
    way = np.repeat([0, 1], 1000)
    step = np.full(2000, 1.5)
    wanted = np.where(way == 0, 1.5, 0.0)
    knots, gains = fit_gain(scores, step, np.full(2000, 0.3), np.zeros(2000, dtype=bool), wanted, way)
    both = Repairer(knots, gains, np.inf, np.empty(0)).gain(
        np.array([3.0]), np.array([1.5]), np.array([0.3]), np.array([False])
    )
    assert both[0] == pytest.approx(0.25)  # half of the common 0.5 and of the least, 0


def test_a_case_never_rehearsed_is_left_alone(rng):
    scores, few = rng.normal(size=500), np.full(500, 0.3)
    knots, gains = fit_gain(scores, few, few, few > 1, few, np.zeros(500, dtype=np.int64))
    assert (
        Repairer(knots, gains, np.inf, np.empty(0)).gain(
            np.array([9.0]), np.array([8.0]), np.array([0.3]), np.array([False])
        )[0]
        == 0.0
    )


def test_categories_switch_where_it_did_good():
    scores = np.array([4.0, 3.0, 2.0, 1.0, 0.0])
    good = np.array([True, True, False, False, False])
    assert fit_switch(scores, good, ~good) == 3.0
    assert fit_switch(scores, ~good & False, good) == np.inf
    assert fit_switch(np.empty(0), np.empty(0, dtype=bool), np.empty(0, dtype=bool)) == np.inf


def test_reach_covers_what_it_says(rng):
    distance, column = np.abs(rng.normal(size=5000)), rng.integers(0, 2, 5000)
    assert fit_reach(distance, column, 3, 0.9) == pytest.approx([1.645, 1.645, 1.645], abs=0.08)


def test_p_values_are_uniform_on_exchangeable_scores(rng):
    calibration = np.sort(rng.normal(size=999))
    p = conformal_p_values(rng.normal(size=4000), calibration)
    assert (p <= 0.05).mean() == pytest.approx(0.05, abs=0.02)
    assert p.min() >= 1 / 1000


def test_threshold_of_best_f1(rng):
    truth = rng.random(3000) < 0.3
    scores = truth * 4.0 + rng.normal(size=3000)
    assert best_threshold(scores, truth) == pytest.approx(2.2, abs=0.5)
    assert best_threshold(scores, np.zeros(3000, dtype=bool)) == 0.0
