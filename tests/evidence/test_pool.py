"""The pool of experts against scipy, and its weights."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from goldseam.conditional.marginals import Scores, fit_marginals
from goldseam.conditional.source import CellPrediction
from goldseam.evidence.pool import SCALES, Pool, fit_pool, fit_weights, stack
from goldseam.schema import Blocks


def scores_of(z, low=None, high=None, codes=None, even=None):
    blank = np.full(z.shape, np.nan)
    codes = np.empty((len(z), 0), dtype=np.int32) if codes is None else codes
    ones = np.ones(z.shape)
    return Scores(
        z, blank if low is None else low, blank if high is None else high, ones, ones, codes, np.ones(codes.shape)
    )


def test_density_is_a_mixture_of_normals(rng):
    z, mean, width = rng.normal(size=(7, 2)), rng.normal(size=(7, 2)), rng.uniform(0.2, 1.0, (7, 2))
    weights = rng.dirichlet(np.ones(len(SCALES) + 1), 2)
    pool = Pool(weights, np.empty((0, 2)), np.empty(0), np.zeros(1, dtype=np.int64))
    got, _ = pool.log_ratio(scores_of(z), np.arange(7), [CellPrediction(mean, width, np.empty((7, 0)))])
    parts = [norm.pdf(z, mean, width * scale) / norm.pdf(z) for scale in SCALES]
    expected = sum(weights[:, k] * part for k, part in enumerate(parts)) + weights[:, -1]
    assert got == pytest.approx(np.log(expected))


def test_a_tie_has_a_probability(rng):
    low, high = np.array([[-40.0], [0.3], [1.0]]), np.array([[-0.5], [0.9], [40.0]])
    mean, width = rng.normal(size=(3, 1)), rng.uniform(0.2, 1.0, (3, 1))
    weights = np.zeros((1, len(SCALES) + 1))
    weights[0, 2] = 1.0
    pool = Pool(weights, np.empty((0, 2)), np.empty(0), np.zeros(1, dtype=np.int64))
    got, _ = pool.log_ratio(
        scores_of(np.zeros((3, 1)), low, high), np.arange(3), [CellPrediction(mean, width, np.empty((3, 0)))]
    )
    mass = norm.cdf(high, mean, width) - norm.cdf(low, mean, width)
    assert got == pytest.approx(np.log(mass / (norm.cdf(high) - norm.cdf(low))))


def test_the_better_expert_gets_the_weight(rng):
    z = rng.normal(size=(400, 1))
    good = CellPrediction(z + 0.1 * rng.normal(size=z.shape), np.full(z.shape, 0.1), np.empty((400, 0)))
    bad = CellPrediction(rng.normal(size=z.shape), np.full(z.shape, 0.5), np.empty((400, 0)))
    blocks = Blocks(z, np.empty((400, 0), dtype=np.int32))
    marginals = fit_marginals(blocks, np.empty(0, dtype=np.int64))
    pool = fit_pool(marginals.score(blocks), np.arange(400), [good, bad], marginals)
    by_expert = pool.number_weights[0, :-1].reshape(3, len(SCALES)).sum(1)
    assert by_expert[1] < 0.05
    center, width = pool.moments([good, bad])
    assert np.abs(center - z).mean() < 0.2
    assert (width > 0).all()


def test_weights_sum_to_one_and_none_is_nil(rng):
    weights = fit_weights(rng.gamma(1.0, size=(50, 3, 4)))
    assert weights.sum(1) == pytest.approx(np.ones(3))
    assert weights.min() > 0.0


def test_the_average_of_experts_is_weighted_by_precision():
    one = CellPrediction(np.array([[0.0]]), np.array([[1.0]]), np.empty((1, 0)))
    two = CellPrediction(np.array([[1.0]]), np.array([[0.5]]), np.empty((1, 0)))
    mean, width = stack([one, two])
    assert mean[2, 0, 0] == pytest.approx(0.8)
    assert width[2, 0, 0] == pytest.approx(np.sqrt(2 / 5))
