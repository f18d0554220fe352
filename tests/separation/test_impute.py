from __future__ import annotations

import numpy as np
import pytest

from goldseam.separation import impute, regression
from goldseam.separation.reference import Reference
from goldseam.separation.tree import AttributeTree


def line(values, categories=None, alpha=1.0, leaf=1):
    d = values.shape[1]
    kinds = np.zeros(d, dtype=bool) if categories is None else categories
    return Reference(values, AttributeTree.interval(d).pruned(leaf), np.zeros(d), np.ones(d), kinds, alpha)


def test_context_mean_by_hand():
    reference = line(np.array([[0.0, 0, 10], [0, 1, 20], [9, 9, 99], [5, 5, 55]]))
    row, mask = np.array([[0.0, 0.4, 7.0]]), np.array([[False, False, True]])
    filled = impute.fill_from_context(reference, row, mask, 2)
    assert filled.values[0].tolist() == [0.0, 0.4, 15.0]
    assert filled.donors[0].tolist() == [0, 1]
    own = impute.fill_from_context(reference, row, mask, 2, members=np.array([0]))
    assert own.donors[0].tolist() == [1, 3]
    trusted = impute.fill_from_context(reference, row, mask, 2, trust=np.array([1.0, 0.25, 1, 1]))
    assert trusted.values[0, 2] == pytest.approx(12.0)


def test_context_mean_takes_the_most_frequent_category():
    values = np.array([[0.0, 0, 2], [0, 0.1, 1], [0, 0.2, 1], [9, 9, 0]])
    reference = line(values, np.array([False, False, True]))
    filled = impute.fill_from_context(reference, np.array([[0.0, 0, np.nan]]), np.zeros((1, 3), dtype=bool), 3)
    assert filled.values[0, 2] == 1


def test_medoid_copies_a_real_combination():
    values = np.array([[0.0, 0, 1, 1], [0, 0.1, 2, 2.5], [0, 0.2, 9, 0], [0, 9, 9, 9]])
    filled = impute.fill_from_context(
        line(values), np.array([[0.0, 0, 7, 7]]), np.array([[False, False, True, True]]), 3, medoid=True
    )
    assert filled.values[0].tolist() == [0, 0, 2, 2.5]
    assert filled.donors[0].tolist() == [1, -1, -1]


def test_sibling_map_takes_the_densest_of_the_near_rows():
    values = np.array([[0.0, 5.0], [0.1, 1.0], [0.2, 1.1], [0.3, 1.05], [7.0, 7.0]])
    reference = line(values)
    radii = reference.radii(values, 2, members=np.arange(5))
    row, nodes = np.array([[0.0, 40.0]]), np.array([[False, False, True]])
    near = impute.fill_from_siblings(reference, radii, row, nodes, 3, nearest=True)
    assert near.values[0].tolist() == [0.0, 5.0]
    best = impute.fill_from_siblings(reference, radii, row, nodes, 4)
    chosen = np.argmin(radii[:4, 0])
    assert best.values[0, 1] == values[chosen, 1]
    assert best.donors[0, 0] == chosen


def test_all_nodes_are_filled_from_the_observed_row():
    values = np.arange(20.0).reshape(5, 4)
    reference = line(values, leaf=2)
    radii = reference.radii(values, 1, members=np.arange(5))
    row = np.array([[0.0, 1.0, 18.0, 19.0]])
    both = impute.fill_from_siblings(reference, radii, row, np.array([[False, True, True]]), 1, nearest=True)
    assert both.values[0].tolist() == [16.0, 17.0, 2.0, 3.0]


def test_refusal_leaves_the_row_alone():
    reference = line(np.random.default_rng(0).normal(size=(20, 60)))
    row, mask = np.zeros((2, 60)), np.ones((2, 60), dtype=bool)
    mask[0, :2] = False  # 3 cells are needed
    mask[1, :3] = False
    filled = impute.fill_from_context(reference, row, mask, 5)
    assert filled.refused.tolist() == [True, False]
    np.testing.assert_array_equal(filled.values[0], row[0])


def two_gaussians(mu, n, repeats, k):
    """S12.6: the second attribute imputed from the first, leave-one-out."""
    errors, hits = {"nearest": [], "map": []}, {"nearest": [], "map": []}
    for seed in range(repeats):
        rng = np.random.default_rng(seed)
        sign = np.repeat([1.0, -1.0], n // 2)
        X = sign[:, None] * np.array(mu) + rng.normal(size=(n, 2))
        reference = line(X)
        radii = reference.radii(X, k, members=np.arange(n))
        nodes = np.tile([False, False, True], (n, 1))
        for name in errors:
            filled = impute.fill_from_siblings(
                reference, radii, X, nodes, k, nearest=name == "nearest", members=np.arange(n)
            )
            errors[name].append(((filled.values[:, 1] - X[:, 1]) ** 2).mean())
            hits[name].append(((filled.values @ np.array(mu)) * sign > 0).mean())
    return {name: (np.mean(errors[name]), np.mean(hits[name])) for name in errors}


def test_two_gaussians_of_the_specification():
    found = two_gaussians((1.0, 1.0), 200, 25, 10)
    assert found["nearest"][0] == pytest.approx(2.96, abs=0.2)
    assert found["map"][0] < 0.65 * found["nearest"][0]
    assert found["map"][1] - found["nearest"][1] > 0.035


def test_regression_is_the_conditional_mean_corrected_on_the_donors(rng):
    X = rng.normal(size=(2000, 8)) @ rng.normal(size=(8, 8)) + 3.0
    reference = line(X)
    fitted = regression.learn_regression(reference, 10)
    assert fitted.weight == 1.0
    hidden = np.array([[True, False, True, False, False, False, False, False]])
    o, m = ~hidden[0], hidden[0]
    covariance = np.cov(X, rowvar=False) + 0.1 * np.median(X.var(axis=0, ddof=1)) * np.eye(8)

    def expected(row):
        return X.mean(axis=0)[m] + covariance[np.ix_(m, o)] @ np.linalg.solve(
            covariance[np.ix_(o, o)], (row - X.mean(axis=0))[o]
        )

    donors = np.array([[5, 7, 11, -1]])
    filled = reference.completed(X[:1], hidden, donors)
    corrected = expected(X[0]) + np.mean([X[s][m] - expected(X[s]) for s in (5, 7, 11)], axis=0)
    found = regression.regressed(reference, fitted, filled, hidden, donors)
    np.testing.assert_allclose(found[0][m], corrected, rtol=1e-7)
    np.testing.assert_array_equal(found[0][o], X[0][o])
    trust = np.ones(2000)
    trust[[5, 7]] = 0.0
    alone = regression.regressed(
        reference, fitted, reference.completed(X[:1], hidden, donors, trust), hidden, donors, trust
    )
    np.testing.assert_allclose(alone[0][m], expected(X[0]) + X[11][m] - expected(X[11]), rtol=1e-7)


def test_regression_stays_within_the_range_of_the_reference(rng):
    X = rng.normal(size=(200, 1)) * np.ones(6) + 0.01 * rng.normal(size=(200, 6))
    reference = line(X)
    fitted = regression.learn_regression(reference, 5)
    row, hidden = np.full((1, 6), 50.0), np.arange(6)[None, :] < 2
    donors = np.argsort(-X[:, 5])[None, :5]
    filled = reference.completed(row, hidden, donors)
    np.testing.assert_allclose(
        regression.regressed(reference, fitted, filled, hidden, donors)[0, :2], X.max(axis=0)[:2]
    )


def test_regression_abstains_where_columns_are_independent(rng):
    reference = line(rng.normal(size=(60, 40)))
    fitted = regression.learn_regression(reference, 20)
    assert fitted.weight == 0.0
    filled, hidden = rng.normal(size=(1, 40)), np.arange(40)[None, :] < 5
    np.testing.assert_array_equal(
        regression.regressed(reference, fitted, filled, hidden, np.arange(4)[None, :]), filled
    )


def test_the_smaller_weight_is_taken_unless_the_larger_is_better_by_a_standard_error(rng):
    misfit = rng.normal(size=(100, 3))
    assert regression.best_weight(misfit, -misfit) == 1.0
    assert regression.best_weight(misfit, -2 * misfit) == 0.5
    assert regression.best_weight(misfit, misfit) == 0.0
    mixed = np.where(np.arange(100)[:, None] < 51, -misfit, 2 * misfit)  # half of the rows gain, half lose
    assert regression.best_weight(misfit, mixed) == 0.0


def test_regression_is_left_out_above_its_number_of_columns(rng, monkeypatch):
    monkeypatch.setattr(regression, "MOST_COLUMNS", 3)
    assert regression.learn_regression(line(rng.normal(size=(60, 1)) * np.ones(4)), 5).weight == 0.0
