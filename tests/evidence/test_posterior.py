"""The joint posterior against enumeration, and the rounds of beliefs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldseam.errors import ParameterError
from goldseam.evidence import kernels
from goldseam.evidence.posterior import init, start_again
from goldseam.evidence.prior import Prior
from tests.reference.evidence_enumeration import enumerate_posterior, pattern_probability


def draw(seed, p=5):
    rng = np.random.default_rng(seed)
    clean, scatter, rates, segment, runs, _ = Prior().arrays(p)
    runs = np.array([1.5, 2.5, 0.2, 0.3])
    like = np.exp(2.0 * rng.normal(size=(3, p)))
    usable = rng.random(p) < 0.8
    return like, usable, clean, scatter, rates, segment, runs, rng.permutation(p)


def posterior(like, prior):
    """Log odds of the row, P(damaged) of its cells."""
    kinds, p = like.shape
    on, off = np.empty(p), np.empty(p)
    scratch = kernels.posterior_scratch(kinds, p, len(prior[2]))
    odds = kernels.row_posterior(like, *prior, scratch, on, off)
    return odds, on / (on + off)


@given(st.integers(0, 10_000))
def test_posterior_is_that_of_enumeration(seed):
    like, usable, *rest = draw(seed)
    odds, damaged = posterior(np.where(usable, like, 1.0), rest)
    slow_odds, slow = enumerate_posterior(like, usable, *rest)
    assert odds == pytest.approx(slow_odds, abs=1e-9)
    assert damaged[usable] == pytest.approx(slow[usable], abs=1e-9)


@given(st.integers(0, 10_000))
def test_weight_of_a_candidate_is_prior_times_likelihood(seed):
    slab, usable, clean, scatter, rates, segment, runs, order = draw(seed)
    rng = np.random.default_rng(seed + 1)
    kappa = rng.normal(size=slab.shape[1])
    mask = (rng.random(slab.shape[1]) < 0.5) & usable
    count, free = mask.sum(), usable.sum()
    chain = pattern_probability(mask, usable, runs, order)
    expected = clean * (count == 0)
    for s in range(3):
        drawn = np.prod(slab[s, mask])
        expected += segment[s] * chain * drawn
        expected += sum(scatter[k, s] * r**count * (1 - r) ** (free - count) * drawn for k, r in enumerate(rates))
    prior = clean, scatter, rates, segment, runs, order
    got = kernels.candidate_weight(slab, kappa, mask, usable, *prior, np.empty(len(rates) + 1))
    assert got == pytest.approx(np.log(expected) + kappa[usable & ~mask].sum(), abs=1e-9)


def test_patterns_sum_to_one():
    runs, order = np.array([1.5, 3.0, 0.2, 0.25]), np.arange(4)
    usable = np.ones(4, dtype=bool)
    patterns = ((np.arange(16)[:, None] >> np.arange(4)) & 1).astype(bool)
    total = sum(np.exp(kernels.pattern_log_prior(mask, usable, runs, order)) for mask in patterns)
    assert total == pytest.approx(1.0)


def test_neighbours_of_a_run_are_drawn_in_and_a_lone_cell_is_not():
    arrays = Prior().arrays(20)
    like = np.full((3, 20), 0.3)
    like[:, 5:11] = 30.0
    like[:, 7] = 1.0  # a cell inside the run that says nothing itself
    damaged = posterior(like, arrays)[1]
    assert damaged[7] > 0.5 > max(damaged[3], damaged[13])


def test_extreme_evidence_stays_finite():
    arrays = Prior().arrays(300)
    for value in (1e15, 1e-15):
        odds, damaged = posterior(np.full((3, 300), value), arrays)
        assert np.isfinite(odds)
        assert ((damaged >= 0.0) & (damaged <= 1.0)).all()
        assert (damaged.min() > 0.99) if value > 1.0 else (damaged.max() < 1e-9)


def kappa_of_normals(covariance, x, j, given):
    """log N(x_j | x_given) - log N(x_j) when all is jointly normal with unit variances."""
    given = list(given)
    pull = np.linalg.solve(covariance[np.ix_(given, given)], covariance[given, j]) if given else np.empty(0)
    mean, variance = pull @ x[given], 1.0 - pull @ covariance[given, j]
    return 0.5 * (x[j] ** 2 - (x[j] - mean) ** 2 / variance - np.log(variance))


@given(st.integers(0, 10_000))
def test_two_cells_share_what_the_joint_density_says(seed):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(4, 6))
    covariance = root @ root.T
    scale = np.sqrt(np.diag(covariance))
    covariance /= np.outer(scale, scale)
    x = 2.0 * rng.normal(size=4)
    first = np.array([[kappa_of_normals(covariance, x, j, set(range(4)) - {j}) for j in range(4)]])
    alone = np.array([[kappa_of_normals(covariance, x, j, {2, 3} - {j}) for j in range(4)]])
    withheld = np.array([[True, True, False, False]])
    shared = kernels.shared_support(first, alone, np.array([0]), np.ones((1, 4), dtype=bool), withheld)[0]
    joint = alone[0, 0] + first[0, 1]  # log p(x0, x1 | x2, x3) by the chain rule, over the marginals
    assert first[0, :2].sum() - shared == pytest.approx(joint, abs=1e-8)


def test_shared_support_by_hand():
    first, kappa = np.array([[9.0] * 5, [5.0, 4.0, 3.0, 2.0, 1.0]]), np.array([[1.0, 1.0, 0.0, 7.0, 7.0], [7.0] * 5])
    withheld = np.array([[False] * 5, [True, True, True, False, False]])
    usable = np.ones((2, 5), dtype=bool)
    three = (4.0 + 3.0 + 3.0) * 5.0 / 12.0  # (1 + 1/4 + 0) / 3 of the lack is left when a cell's turn comes
    assert kernels.shared_support(first, kappa, np.array([1, 0]), usable, withheld) == pytest.approx([three, 0.0])
    usable[1, 1:3] = False
    assert kernels.shared_support(first, kappa, np.array([1, 0]), usable, withheld).tolist() == [0.0, 0.0]


def test_a_second_start_is_for_rare_cells_of_one_run():
    slab, nothing = np.ones((3, 2, 10)), np.zeros((2, 10), dtype=bool)
    slab[1, 0, [3, 5]] = slab[1, 1, [0, 9]] = 9.0
    rows: Any = SimpleNamespace(slab=slab, missing=nothing, unusable=nothing)

    def started(order):
        state = init(rows, SimpleNamespace(deepest=0))  # type: ignore[arg-type]
        state.off[:] = 1.0
        again = start_again(state, rows, np.array(order))
        return again.active.tolist(), [np.flatnonzero(row).tolist() for row in again.withheld]

    assert started(range(10)) == ([0], [[3, 5], []])
    assert started([0, 9, *range(1, 9)]) == ([0, 1], [[3, 5], [0, 9]])


def test_a_prior_that_cannot_be():
    with pytest.raises(ParameterError, match=r"got 0\.9 and 0\.2"):
        Prior(clean=0.9, segment=0.2)
    with pytest.raises(ParameterError, match="each of the 3 modelled columns once; got 2"):
        Prior(order=(0, 1)).arrays(3)
