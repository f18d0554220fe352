"""Exact conditioning for any mask, and the shrunk covariance."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.covariance import LedoitWolf

from goldseam.conditional import kernels
from goldseam.conditional.gaussian import fit_gaussian, shrunk_covariance
from goldseam.conditional.layout import Layout
from goldseam.conditional.marginals import fit_marginals
from goldseam.errors import InputError
from goldseam.schema import MISSING, Blocks
from tests.reference.evidence_gaussian import conditional_cells


def test_covariance_is_ledoit_wolf(rng):
    x = rng.normal(size=(60, 12)) @ rng.normal(size=(12, 12))
    x -= x.mean(0)
    assert shrunk_covariance(x) == pytest.approx(LedoitWolf(assume_centered=True).fit(x).covariance_)


@given(st.integers(0, 10_000), st.lists(st.integers(1, 3), min_size=2, max_size=7))
def test_every_cell_given_the_believed_others(seed, sizes):
    rng = np.random.default_rng(seed)
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    dims, p = int(starts[-1]), len(sizes)
    root = rng.normal(size=(dims, dims + 3))
    covariance = root @ root.T
    x = rng.normal(size=(1, dims))
    withheld = rng.random((1, p)) < 0.4
    precision = np.linalg.inv(covariance)
    everything, first = np.ones(p, dtype=bool), np.zeros(1, dtype=np.int64)
    mean, variance = kernels.gaussian_cells(x, precision, starts, withheld, first, everything)
    slow_mean, slow_variance = conditional_cells(x[0], covariance, starts, withheld[0])
    assert mean[0] == pytest.approx(slow_mean, abs=1e-6)
    one = np.repeat(np.array(sizes) == 1, sizes) & ~np.repeat(withheld[0], sizes)
    assert variance[0, one] == pytest.approx(slow_variance[one], abs=1e-6)
    lone = withheld[0].sum() <= 1 and np.repeat(withheld[0], sizes)
    if np.any(lone):
        assert variance[0, lone] == pytest.approx(slow_variance[lone], abs=1e-6)


def mixed(rng, n=600):
    hidden = rng.normal(size=n)
    numbers = np.column_stack([hidden + 0.3 * rng.normal(size=n), np.exp(hidden + 0.3 * rng.normal(size=n))])
    codes = (hidden + 0.3 * rng.normal(size=n) > 0).astype(np.int32)[:, None]
    return Blocks(numbers, codes)


def fitted(blocks):
    layout = Layout(np.array([0, 2]), np.array([1]))
    marginals = fit_marginals(blocks, np.array([2]))
    scores = marginals.score(blocks)
    return fit_gaussian(scores, marginals, layout), scores


def test_categories_follow_numbers_and_back(rng):
    blocks = mixed(rng)
    gaussian, scores = fitted(blocks)
    prepared = gaussian.prepare(blocks, scores)
    everything = np.arange(len(blocks))
    answer = gaussian.predict(prepared, np.zeros((len(blocks), 3), dtype=bool), everything)
    assert answer.levels.sum(1) == pytest.approx(np.ones(len(blocks)))
    assert (answer.levels.argmax(1) == blocks.codes[:, 0]).mean() > 0.85
    assert np.corrcoef(answer.mean[:, 0], scores.z[:, 0])[0, 1] > 0.9


def test_a_missing_cell_is_a_withheld_cell(rng):
    blocks = mixed(rng)
    gaussian, scores = fitted(blocks)
    gone = Blocks(blocks.numbers.copy(), blocks.codes.copy())
    gone.numbers[:, 0] = np.nan
    gone.codes[::2] = MISSING
    marginals = fit_marginals(blocks, np.array([2]))
    withheld = np.zeros((len(blocks), 3), dtype=bool)
    withheld[:, 0] = True
    withheld[::2, 1] = True
    rows = np.arange(len(blocks))
    known = gaussian.predict(gaussian.prepare(blocks, scores), withheld, rows)
    blank = gaussian.predict(gaussian.prepare(gone, marginals.score(gone)), withheld, rows)
    assert known.mean == pytest.approx(blank.mean, abs=1e-9)
    assert known.levels == pytest.approx(blank.levels, abs=1e-9)


def test_too_many_dimensions_are_refused_in_one_sentence(rng):
    blocks = Blocks(rng.normal(size=(3, 2001)), np.empty((3, 0), dtype=np.int32))
    marginals = fit_marginals(blocks, np.empty(0, dtype=np.int64))
    layout = Layout(np.arange(2001), np.empty(0, dtype=np.int64))
    with pytest.raises(InputError, match=r"at most 2,000 dimensions.*got 2,001\. Hint"):
        fit_gaussian(marginals.score(blocks), marginals, layout)
