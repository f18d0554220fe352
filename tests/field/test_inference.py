from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldseam.errors import InputError
from goldseam.field.beliefs import groups_of
from goldseam.field.inference import Noise, infer, leave_one_out, row_seeds, sample
from goldseam.field.potentials import Layout, Potentials
from tests.reference.field_enumeration import enumerate_row, random_field


def table(rng, field, n_rows, blank):
    numbers = rng.normal(size=(n_rows, field.n_numbers))
    codes = rng.integers(0, field.layout.sizes, (n_rows, field.layout.n_columns)).astype(np.int32)
    numbers[rng.random(numbers.shape) < blank] = np.nan
    codes[rng.random(codes.shape) < blank] = -1
    return numbers, codes


NOISES = [(0.0, 0.0), (0.3, 0.2), (0.3, 0.0), (0.0, 0.2)]


@pytest.mark.parametrize(("sigma", "flip"), NOISES)
def test_exact_on_trees(rng, sigma, flip):
    field = random_field(rng, 4, [2, 3, 4, 2, 3], tree=True)
    X, y = table(rng, field, 12, 0.4)
    noise = Noise(np.full(4, sigma), np.full(5, flip))
    got = infer(field, X, y, noise, max_sweeps=60, tol=1e-12)
    for i in range(12):
        Q, mean, _, _ = enumerate_row(field, X[i], y[i], noise.sigma, noise.flip)
        np.testing.assert_allclose(got.Q[i], Q, atol=1e-8)
        np.testing.assert_allclose(got.mean[i], mean, atol=1e-8)


def test_one_blank_category_is_exact_on_any_graph(rng):
    """With one unknown category there is nothing to approximate: mean, variance and probabilities equal enumeration."""
    field = random_field(rng, 5, [3, 2, 4, 2])
    X, y = table(rng, field, 16, 0.0)
    X[rng.random(X.shape) < 0.4] = np.nan
    y[np.arange(16), rng.integers(0, 4, 16)] = -1
    got = infer(field, X, y, Noise.nil(5, 4))
    for i in range(16):
        Q, mean, covariance, _ = enumerate_row(field, X[i], y[i], np.zeros(5), np.zeros(4))
        np.testing.assert_allclose(got.Q[i], Q, atol=1e-10)
        np.testing.assert_allclose(got.mean[i], mean, atol=1e-10)
        np.testing.assert_allclose(got.variance[i], np.diag(covariance), atol=1e-10)


@pytest.mark.parametrize(("sigma", "flip"), NOISES)
@pytest.mark.parametrize(("m", "sizes"), [(3, [2] * 10), (0, [2, 3, 4, 2]), (6, [3, 3, 2]), (4, [])])
def test_exact_inference_equals_enumeration_on_any_graph(rng, sigma, flip, m, sizes):
    """Up to ten categories, any Gaussian block; the reference goes through the combinations one by one."""
    field = random_field(rng, m, sizes, strength=0.7)
    X, y = table(rng, field, 4, 0.4)
    noise = Noise(np.full(m, sigma), np.full(len(sizes), flip))
    got = infer(field, X, y, noise, method="exact")
    for i in range(4):
        Q, mean, covariance, _ = enumerate_row(field, X[i], y[i], noise.sigma, noise.flip)
        np.testing.assert_allclose(got.Q[i], Q, atol=1e-10)
        np.testing.assert_allclose(got.mean[i], mean, atol=1e-10)
        np.testing.assert_allclose(got.variance[i], np.diag(covariance), atol=1e-10)


def test_twelve_unknown_categories_exactly(rng):
    field = random_field(rng, 2, [2] * 12, strength=0.5)
    X, y = np.array([[0.3, np.nan]]), np.full((1, 12), -1, dtype=np.int32)
    got = infer(field, X, y, Noise.nil(2, 12), method="exact")
    Q, mean, covariance, _ = enumerate_row(field, X[0], y[0], np.zeros(2), np.zeros(12))
    np.testing.assert_allclose(got.Q[0], Q, atol=1e-10)
    np.testing.assert_allclose(got.mean[0], mean, atol=1e-10)
    np.testing.assert_allclose(got.variance[0], np.diag(covariance), atol=1e-10)


def test_too_many_combinations_are_refused_with_their_number(rng):
    field = random_field(rng, 0, [10] * 7)
    with pytest.raises(InputError, match=r"at most 1,048,576 combinations.*a row has 10,000,000"):
        infer(field, np.zeros((1, 0)), np.full((1, 7), -1, dtype=np.int32), Noise.nil(0, 7), method="exact")


@pytest.mark.parametrize("method", ["lbp", "gibbs"])
def test_close_to_enumeration_on_loopy_graphs(rng, method):
    field = random_field(rng, 3, [2] * 10, strength=0.35)
    X, y = table(rng, field, 10, 0.3)
    noise = Noise(np.full(3, 0.5), np.full(10, 0.2))
    got = infer(field, X, y, noise, method=method, max_sweeps=100, tol=1e-10)
    exact = [enumerate_row(field, X[i], y[i], noise.sigma, noise.flip) for i in range(10)]
    error = np.abs(got.Q - np.array([e[0] for e in exact])).max()
    assert error < (0.03 if method == "lbp" else 0.15)
    np.testing.assert_allclose(got.mean, np.array([e[1] for e in exact]), atol=0.02 if method == "lbp" else 0.15)


def test_numbers_alone_equal_gaussian_conditioning(rng):
    field = random_field(rng, 6, [])
    X, y = table(rng, field, 8, 0.4)
    got = infer(field, X, y, Noise(np.full(6, 0.2), np.zeros(0)))
    prior_mean, prior = np.linalg.solve(field.B, field.a), np.linalg.inv(field.B)
    for x, mean, variance in zip(X, got.mean, got.variance, strict=True):
        o = ~np.isnan(x)
        gain = prior[:, o] @ np.linalg.inv(prior[np.ix_(o, o)] + 0.04 * np.eye(o.sum()))
        np.testing.assert_allclose(mean, prior_mean + gain @ (x[o] - prior_mean[o]), atol=1e-10)
        np.testing.assert_allclose(variance, np.diag(prior - gain @ prior[o]), atol=1e-10)


@pytest.mark.parametrize("method", ["lbp", "structured", "mean-field"])
def test_without_edges_each_cell_stands_alone(rng, method):
    layout = Layout.of([3, 2])
    h = rng.normal(size=5)
    field = Potentials(np.diag([1.0, 2.0]), np.array([0.5, 0.0]), np.zeros((2, 5)), h, np.zeros((5, 5)), layout.offsets)
    got = infer(
        field,
        np.array([[1.0, np.nan]]),
        np.array([[2, -1]], dtype=np.int32),
        Noise(np.full(2, 0.5), np.full(2, 0.3)),
        method=method,
    )
    np.testing.assert_allclose(got.mean[0], [(0.5 + 1 / 0.25) / (1 + 1 / 0.25), 0.0], atol=1e-9)
    like = np.exp(h[:3]) * np.array([0.15, 0.15, 0.7])
    np.testing.assert_allclose(got.Q[0, :3], like / like.sum(), atol=1e-9)
    np.testing.assert_allclose(got.Q[0, 3:], np.exp(h[3:]) / np.exp(h[3:]).sum(), atol=1e-9)


@pytest.mark.parametrize("method", ["lbp", "structured", "mean-field", "gibbs"])
@pytest.mark.parametrize("flip", [(0.1, 0.0, 0.3, 0.2), (0.0, 0.0, 0.0, 0.0)])
@given(st.integers(0, 2**32 - 1))
def test_a_row_does_not_see_its_neighbours(method, flip, seed):
    rng = np.random.default_rng(seed)
    field = random_field(np.random.default_rng(1), 4, [2, 3, 5, 2])
    X, y = table(rng, field, 23, 0.3)
    noise = Noise(np.array([0.2, 0.0, 0.5, 0.1]), np.array(flip))
    whole = infer(field, X, y, noise, method=method, frequencies=np.full(12, 0.3))
    rows = rng.permutation(23)[: rng.integers(1, 23)]
    part = infer(field, X[rows], y[rows], noise, method=method, frequencies=np.full(12, 0.3))
    for name in ("Q", "mean", "variance", "cavity_mean", "cavity_variance"):
        np.testing.assert_array_equal(getattr(part, name), getattr(whole, name)[rows])


def test_threads_and_chunks_change_nothing(rng, monkeypatch):
    field = random_field(rng, 3, [2, 4, 3])
    X, y = table(rng, field, 300, 0.3)
    noise = Noise(np.full(3, 0.2), np.full(3, 0.1))
    whole = infer(field, X, y, noise)
    monkeypatch.setattr("goldseam.field.inference.in_chunks.__defaults__", (37,))
    np.testing.assert_array_equal(infer(field, X, y, noise, n_jobs=2).Q, whole.Q)


@given(st.integers(0, 2**32 - 1))
def test_leave_one_out_of_a_row_does_not_see_its_neighbours(seed):
    rng = np.random.default_rng(seed)
    field = random_field(np.random.default_rng(1), 4, [2, 3, 5, 2])
    X, y = table(rng, field, 60, 0.0)
    hide_x, hide_y = rng.random(X.shape) < 0.2, rng.random(y.shape) < 0.2
    whole = leave_one_out(field, X, y, hide_x, hide_y)
    rows = rng.permutation(60)[: rng.integers(1, 60)]
    for part, all_rows in zip(leave_one_out(field, X[rows], y[rows], hide_x[rows], hide_y[rows]), whole, strict=True):
        np.testing.assert_array_equal(part, all_rows[rows])


@given(st.integers(0, 2**32 - 1))
def test_rows_are_grouped_by_their_precisions(seed):
    rng = np.random.default_rng(seed)
    precision = rng.choice([0.0, 4.0, np.inf], (40, 3))
    order, group, patterns = groups_of(precision)
    np.testing.assert_array_equal(patterns[group], precision)
    assert (np.diff(group[order]) >= 0).all()
    assert len(patterns) == len(np.unique(precision, axis=0))
    assert sorted(order) == list(range(40))


def test_leave_one_out_is_exact_when_numbers_or_one_category_are_hidden(rng):
    field = random_field(rng, 4, [2, 3, 2], strength=0.7)
    X, y = table(rng, field, 10, 0.0)
    hide_x, hide_y = rng.random(X.shape) < 0.3, np.zeros(y.shape, dtype=bool)
    hide_y[:5, 1] = True
    mean, variance, Q = leave_one_out(field, X, y, hide_x, hide_y)
    for i in range(10):
        for s in range(4):
            x = np.where(hide_x[i], np.nan, X[i])
            x[s] = np.nan
            v = np.where(hide_y[i], -1, y[i])
            _, m, C, _ = enumerate_row(field, x, v, np.zeros(4), np.zeros(3))
            np.testing.assert_allclose(mean[i, s], m[s], atol=1e-8)
            np.testing.assert_allclose(variance[i, s], C[s, s], atol=1e-8)
        for j in range(3):
            v = np.where(hide_y[i], -1, y[i])
            v[j] = -1
            q = enumerate_row(field, np.where(hide_x[i], np.nan, X[i]), v, np.zeros(4), np.zeros(3))[0]
            np.testing.assert_allclose(Q[i, field.layout.block(j)], q[field.layout.block(j)], atol=1e-8)


def test_leave_one_out_ignores_the_value_of_the_cell_itself(rng):
    field = random_field(rng, 4, [2, 3, 2], strength=0.5)
    X, y = table(rng, field, 6, 0.0)
    hide = rng.random(X.shape) < 0.2
    hide[:, 0] = False
    none = np.zeros(y.shape, dtype=bool)
    moved = X.copy()
    moved[:, 0] += 3.0
    np.testing.assert_allclose(
        leave_one_out(field, X, y, hide, none)[0][:, 0], leave_one_out(field, moved, y, hide, none)[0][:, 0], atol=1e-9
    )


def test_draws_have_the_posterior_moments(rng):
    field = random_field(rng, 2, [2, 3], strength=0.6)
    X, y = np.array([[np.nan, 0.4]]), np.array([[-1, 1]], dtype=np.int32)
    u, v = sample(field, X, y, Noise.nil(2, 2), 4000, every=2)
    Q, mean, covariance, _ = enumerate_row(field, X[0], y[0], np.zeros(2), np.zeros(2))
    assert (u[:, 0, 1] == 0.4).all()
    assert (v[:, 0, 1] == 1).all()
    assert u[:, 0, 0].mean() == pytest.approx(mean[0], abs=0.06)
    assert u[:, 0, 0].var() == pytest.approx(covariance[0, 0], rel=0.1)
    assert (v[:, 0, 0] == 1).mean() == pytest.approx(Q[1], abs=0.03)


def test_all_blank_rows_give_the_prior(rng):
    field = random_field(rng, 2, [2, 3], tree=True)
    got = infer(
        field, np.full((1, 2), np.nan), np.full((1, 2), -1, dtype=np.int32), Noise.nil(2, 2), tol=1e-12, max_sweeps=50
    )
    Q, mean, _, _ = enumerate_row(field, np.full(2, np.nan), np.full(2, -1), np.zeros(2), np.zeros(2))
    np.testing.assert_allclose(got.Q[0], Q, atol=1e-8)
    np.testing.assert_allclose(got.mean[0], mean, atol=1e-8)


def test_equal_rows_have_equal_seeds_whatever_the_table(rng):
    X, y = rng.normal(size=(5, 2)), np.zeros((5, 1), dtype=np.int32)
    assert (row_seeds(X, y, 7)[[3]] == row_seeds(X[[3]], y[[3]], 7)).all()
    assert len(np.unique(row_seeds(X, y, 7))) == 5
    assert (row_seeds(X, y, 7) != row_seeds(X, y, 8)).all()
