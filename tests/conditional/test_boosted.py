"""Flat trees answer as scikit-learn's do, and masked training lets them answer from what remains."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from goldseam.conditional.boosted import _trees, fit_boosted, flatten
from goldseam.conditional.layout import Layout
from goldseam.conditional.marginals import fit_marginals
from goldseam.conditional.masking import draw_masks
from goldseam.schema import Blocks


def with_gaps(rng, n=500, p=5):
    x = rng.normal(size=(n, p))
    x[rng.random((n, p)) < 0.2] = np.nan
    return x


def values(outputs, x):
    forest = flatten([o[0] for o in outputs], [o[1] for o in outputs])
    return forest.values(x, np.zeros(x.shape, dtype=bool), np.arange(len(x)))


def test_regression_equals_scikit_learn_to_the_bit(rng):
    x = with_gaps(rng)
    y = np.nan_to_num(x[:, 0]) ** 2 + np.nan_to_num(x[:, 1])
    model = HistGradientBoostingRegressor(max_iter=30).fit(x, y)
    assert np.array_equal(values(_trees(model, np.arange(5)), x)[:, 0], model.predict(x))


@pytest.mark.parametrize("levels", [2, 4])
def test_classification_equals_scikit_learn_to_the_bit(rng, levels):
    x = with_gaps(rng)
    y = np.digitize(np.nan_to_num(x[:, 0]), np.linspace(-0.5, 0.5, levels - 1))
    model = HistGradientBoostingClassifier(max_iter=15).fit(x, y)
    raw = values(_trees(model, np.arange(5)), x)
    assert np.array_equal(raw, model.decision_function(x).reshape(raw.shape))


def test_a_withheld_input_is_a_missing_input(rng):
    x = with_gaps(rng)
    model = HistGradientBoostingRegressor(max_iter=10).fit(x, np.nan_to_num(x[:, 2]))
    outputs = _trees(model, np.arange(5))
    forest = flatten([o[0] for o in outputs], [o[1] for o in outputs])
    hidden = rng.random(x.shape) < 0.5
    answer = forest.values(x, hidden, np.arange(len(x)))
    assert np.array_equal(answer[:, 0], model.predict(np.where(hidden, np.nan, x)))


def test_a_nonlinear_table_is_learnt(rng):
    n = 900
    a = rng.uniform(-2, 2, n)
    b = a**2 + 0.1 * rng.normal(size=n)
    code = (np.abs(a) > 1).astype(np.int32)
    blocks = Blocks(np.column_stack([a, b]), code[:, None])
    marginals = fit_marginals(blocks, np.array([2]))
    scores = marginals.score(blocks)
    expert = fit_boosted(scores.take(slice(0, 600)), np.array([2]), Layout(np.array([0, 1]), np.array([2])), rng)
    rows = np.arange(600, 900)
    nothing = np.zeros((300, 3), dtype=bool)
    answer = expert.predict(expert.prepare(blocks, scores), nothing, rows)
    assert np.mean((answer.mean[:, 1] - scores.z[rows, 1]) ** 2) < 0.1
    assert (answer.levels.argmax(1) == code[rows]).mean() > 0.95
    assert answer.levels.sum(1) == pytest.approx(np.ones(300))
    nothing[:, 0] = True  # b without a: the class alone tells the half
    masked = expert.predict(expert.prepare(blocks, scores), nothing, rows)
    assert np.mean((masked.mean[:, 1] - scores.z[rows, 1]) ** 2) < 0.5
    assert masked.width[:, 1].mean() > 2 * answer.width[:, 1].mean()


def test_masks_are_scattered_or_one_run(rng):
    masks = draw_masks(2000, 30, rng)
    assert masks.mean() == pytest.approx(0.3, abs=0.02)
    edges = np.abs(np.diff(np.pad(masks, ((0, 0), (1, 1))).astype(int), axis=1)).sum(1)
    assert 0.45 < (edges <= 2).mean() < 0.65
