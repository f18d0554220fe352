from __future__ import annotations

import numpy as np
import pytest

from goldseam.field import newton
from goldseam.field.objective import Objective, Rows, effective_rows, penalty_level, start
from goldseam.field.optimiser import minimise, shrink
from goldseam.field.potentials import Layout, make_definite
from tests.reference.field_fista import fista


@pytest.fixture
def rows(rng):
    layout = Layout.of([2, 3, 4])
    codes = np.column_stack([rng.integers(0, L, 120) for L in layout.sizes]).astype(np.int32)
    codes[:, 1] = np.where(rng.random(120) < 0.6, codes[:, 0], codes[:, 1])
    numbers = rng.normal(size=(120, 3)) + 0.7 * codes[:, [0, 1, 2]]
    numbers[:, 1] += 0.5 * numbers[:, 0]
    return Rows.of((numbers - numbers.mean(0)) / numbers.std(0), codes, layout)


@pytest.mark.parametrize("kind", ["block", "pseudo"])
@pytest.mark.parametrize("weighted", [False, True])
def test_gradient_equals_central_differences(rows, rng, kind, weighted):
    rows = Rows.of(rows.numbers, rows.codes, rows.layout, rng.random(120) if weighted else None)
    objective = Objective(rows, kind, 0.1)
    x = objective.pack(start(rows)) + 0.05 * rng.normal(size=objective.size)
    _, gradient = objective.value_and_gradient(x)
    numeric = np.empty_like(gradient)
    for i in range(len(x)):
        step = np.zeros_like(x)
        step[i] = 1e-6
        numeric[i] = (objective.value(x + step) - objective.value(x - step)) / 2e-6
    np.testing.assert_allclose(gradient, numeric, atol=1e-7, rtol=1e-6)


def test_hessian_of_the_newton_block_equals_differences_of_the_gradient(rows, rng):
    objective = Objective(rows, "block", 0.1)
    x = objective.pack(start(rows)) + 0.05 * rng.normal(size=objective.size)
    H = newton.hessian(objective, x)
    for i in range(objective.first_pair):
        step = np.zeros_like(x)
        step[i] = 1e-5
        up, down = objective.value_and_gradient(x + step)[1], objective.value_and_gradient(x - step)[1]
        np.testing.assert_allclose(H[i], ((up - down) / 2e-5)[: objective.first_pair], atol=1e-7)


def test_block_value_by_hand():
    """One number, one two-state category: -log p(u|v) - log P(v|u) written out."""
    layout = Layout.of([2])
    rows = Rows.of(np.array([[0.5], [-1.0]]), np.array([[0], [1]], dtype=np.int32), layout)
    objective = Objective(rows, "block", 0.0)
    B, a, R, h = 2.0, 0.3, np.array([0.4, -0.2]), np.array([0.1, 0.0])
    x = np.concatenate([[B], [a], R, h])
    expected = 0.0
    for u, v in ((0.5, 0), (-1.0, 1)):
        mean = (a + R[v]) / B
        normal = 0.5 * np.log(B / (2 * np.pi)) - 0.5 * B * (u - mean) ** 2
        z = h + R * u
        expected -= 0.5 * (normal + 0.5 * np.log(2 * np.pi) + z[v] - np.log(np.exp(z).sum()))
    assert objective.value(x) == pytest.approx(expected, rel=1e-12)


def test_minimise_reaches_the_optimum_of_the_published_method(rows):
    objective = Objective(rows, "block", penalty_level(0.4, 6, 120))
    x = objective.pack(start(rows))
    slow = fista(objective, x, 3000, 1e-12)
    fast = minimise(objective, x, 500, 1e-8)
    assert fast.converged
    assert fast.value <= slow.value + 1e-6
    np.testing.assert_array_equal(objective.norms(fast.x) == 0, objective.norms(slow.x) == 0)


def test_pseudo_form_is_minimised_too(rows):
    objective = Objective(rows, "pseudo", penalty_level(0.4, 6, 120))
    x = objective.pack(start(rows))
    assert minimise(objective, x, 500, 1e-8).value <= fista(objective, x, 3000, 1e-12).value + 1e-6


def test_a_heavy_penalty_leaves_independent_columns(rows):
    objective = Objective(rows, "block", 10.0)
    fit = minimise(objective, objective.pack(start(rows)), 200, 1e-8)
    field = objective.unpack(fit.x)
    assert not field.R.any()
    assert not field.Phi.any()
    np.testing.assert_allclose(field.B, np.eye(3), atol=1e-3)


def test_shrink_is_the_proximal_step_by_hand():
    layout = Layout.of([2])
    rows = Rows.of(np.array([[1.0], [-1.0]]), np.array([[0], [1]], dtype=np.int32), layout)
    objective = Objective(rows, "block", 0.5)
    x = np.array([1.0, 0.0, 3.0, 4.0, 0.0, 0.0])  # B, a, R (norm 5), h; g = sqrt(½), w = 1
    out = shrink(objective, x, np.full(6, 2.0))
    np.testing.assert_allclose(out[2:4], np.array([3.0, 4.0]) * (1 - 2 * 0.5 * np.sqrt(0.5) / 5))


def test_a_row_of_weight_two_is_two_rows(rows):
    weights = np.ones(120)
    weights[:40] = 2.0
    twice = Rows.of(
        np.concatenate([rows.numbers, rows.numbers[:40]]), np.concatenate([rows.codes, rows.codes[:40]]), rows.layout
    )
    weighted = Rows.of(rows.numbers, rows.codes, rows.layout, weights)
    x = Objective(twice, "block", 0.1).pack(start(twice))
    assert Objective(twice, "block", 0.1).total(x) == pytest.approx(
        Objective(weighted, "block", 0.1).total(x), rel=1e-12
    )
    assert effective_rows(np.ones(7)) == 7


def test_make_definite_only_when_needed():
    bad = np.array([[1.0, 2.0], [2.0, 1.0]])
    mended, changed = make_definite(bad)
    assert changed
    assert np.linalg.eigvalsh(mended)[0] == pytest.approx(0.05)
    assert make_definite(np.eye(2))[1] is False
