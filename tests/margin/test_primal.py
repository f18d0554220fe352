"""The primal solver against liblinear's optimum of the same problem, and its certificate."""

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from goldseam.errors import ConvergenceWarning
from goldseam.margin import GEMMEDClassifier, fitting
from goldseam.margin.primal import fit_primal
from tests.margin.test_estimator import messages


def overlapping(rng, n=400, p=3):
    signs = np.where(rng.random(n) < 0.4, -1.0, 1.0)
    return rng.normal(size=(n, p)) + 0.7 * signs[:, None], signs, rng.uniform(0.2, 2.0, n)


def value(theta, rows, signs, costs):
    margins = signs * (rows @ theta[:-1] + theta[-1])
    return 0.5 * theta @ theta + np.sum(costs * np.maximum(1 - margins, 0))


def test_optimum_is_that_of_liblinear(rng):
    rows, signs, costs = overlapping(rng)
    found = fit_primal(rows, signs, costs, gap=1e-6)
    exact = LinearSVC(loss="hinge", C=1.0, tol=1e-10, max_iter=10_000_000, random_state=0)
    exact.fit(rows, signs, sample_weight=costs)
    best = value(np.append(exact.coef_[0], exact.intercept_[0]), rows, signs, costs)
    mine = value(found.theta, rows, signs, costs)
    assert best <= mine <= best * (1 + 1e-6)
    assert found.gap <= 1e-6


def test_the_gap_is_a_certificate(rng):
    rows, signs, costs = overlapping(rng)
    rough, fine = fit_primal(rows, signs, costs, gap=1e-2), fit_primal(rows, signs, costs, gap=1e-6)
    best = value(fine.theta, rows, signs, costs)
    assert value(rough.theta, rows, signs, costs) * (1 - rough.gap) <= best


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_any_scale_of_a_column_is_solved(rng, scale):
    rows, signs, costs = overlapping(rng)
    rows[:, 1] *= scale
    assert fit_primal(rows, signs, costs).gap <= 1e-4


def test_a_warm_start_ends_at_the_same_point(rng):
    rows, signs, costs = overlapping(rng)
    cold = fit_primal(rows, signs, costs)
    warm = fit_primal(rows, signs, costs, start=fit_primal(rows, signs, np.ones(len(signs))).theta)
    np.testing.assert_allclose(warm.theta, cold.theta, atol=2e-2)


def test_rows_without_cost_and_separable_rows(rng):
    rows, signs, costs = overlapping(rng)
    kept = np.arange(400) < 300
    without = fit_primal(rows[kept], signs[kept], costs[kept])
    zero = fit_primal(rows, signs, np.where(kept, costs, 0.0))
    np.testing.assert_allclose(zero.theta, without.theta, atol=1e-9)
    apart = rng.normal(size=(60, 2)) + 9 * np.repeat([[-1.0], [1.0]], 30, axis=0)
    hard = fit_primal(apart, np.repeat([-1.0, 1.0], 30), np.full(60, 1e3))
    assert hard.gap <= 1e-4
    assert np.all(np.repeat([-1.0, 1.0], 30) * (apart @ hard.theta[:-1] + hard.theta[-1]) > 0.999)


def test_many_rows_use_it_and_say_so(rng):
    rows, signs, _ = overlapping(rng, n=2500)
    model = GEMMEDClassifier(random_state=0).fit(rows, signs)
    other = GEMMEDClassifier(random_state=0, linear_solver="liblinear").fit(rows, signs)
    assert model.linear_solver_ == "primal"
    assert np.mean(model.predict(rows) == other.predict(rows)) > 0.995
    np.testing.assert_allclose(model.sample_trust_, other.sample_trust_, atol=0.05)
    assert model.objective_[-1] <= other.objective_[-1] * (1 + 1e-4)
    assert np.all(np.diff(model.objective_) <= 1e-4 * model.objective_[:-1])


def test_a_gap_that_stays_open_is_said(rng, monkeypatch):
    rows, signs, _ = overlapping(rng)
    monkeypatch.setattr(fitting, "PRIMAL_GAP", 1e-15)
    found = messages(lambda: GEMMEDClassifier(random_state=0, linear_solver="primal").fit(rows, signs))
    assert any(kind is ConvergenceWarning and "above the optimum, 1e-15 was wanted" in said for kind, said in found)
