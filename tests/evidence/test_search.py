"""The search for the few cells without which the rest of a row agrees (E-14)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldseam.evidence import fit_evidence, kernels, posterior
from goldseam.evidence.prior import Prior
from goldseam.schema import Blocks, Column, Kind, Schema

P = 6
SCHEMA = Schema(tuple(Column(f"x{j}", Kind.CONTINUOUS) for j in range(P)))


def blocks(values):
    return Blocks(values, np.empty((len(values), 0), dtype=np.int32))


def two_factors(n, rng):
    """Every column is a sum of two factors: any cell follows from two others, but for a little noise."""
    load = np.random.default_rng(3).normal(size=(2, P))
    return rng.normal(size=(n, 2)) @ load + 0.05 * rng.normal(size=(n, P))


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    return fit_evidence(blocks(two_factors(300, rng)), blocks(two_factors(150, rng)), SCHEMA, boosted=False, rng=rng)


def damaged(n, cells, seed):
    """Rows of which so many cells, anywhere, hold values of other rows."""
    rng = np.random.default_rng(seed)
    values, other = two_factors(n, rng), two_factors(n, rng)
    wrong = np.argsort(rng.random((n, P)), axis=1) < cells
    return np.where(wrong, other, values), wrong


def f1(model, values, wrong):
    suspect = model.judge(blocks(values)).suspect
    return 2.0 * (suspect & wrong).sum() / (suspect.sum() + wrong.sum())


@pytest.mark.parametrize(("cells", "least", "gain"), [(1, 0.85, 0.0), (2, 0.77, 0.05)])
def test_wrong_cells_that_contradict_all_others_are_found(fitted, cells, least, gain):
    values, wrong = damaged(600, cells, seed=1)
    found = f1(fitted, values, wrong)
    assert found > least
    assert found > f1(replace(fitted, deepest=0), values, wrong) + gain


def test_a_row_that_is_not_odd_is_not_searched(fitted):
    values = np.concatenate([two_factors(100, np.random.default_rng(5)), damaged(20, 1, seed=5)[0]])
    rows = fitted.rows(blocks(values))
    experts = posterior.Experts(fitted.sources, fitted.pool, fitted.prior, fitted.layout, fitted.deepest)
    state = posterior.init(rows, experts)
    state = posterior.step(state, 0, rows, experts)
    count = state.count.copy()
    posterior.search(state, rows, experts)
    odd = state.odds > posterior.ODD
    assert odd.any()
    assert not odd.all()
    assert np.array_equal(state.count > count, odd)


def test_what_is_found_does_not_depend_on_the_rows_beside_it(fitted):
    values, _ = damaged(40, 2, seed=2)
    together = fitted.judge(blocks(values)).cell_scores
    apart = np.concatenate([fitted.judge(blocks(values[[i]])).cell_scores for i in range(40)])
    assert np.array_equal(together, apart)


def test_missing_cells_are_neither_tried_nor_suspect(fitted):
    values, _ = damaged(60, 1, seed=4)
    values[:, [1, 4]] = np.nan
    found = fitted.judge(blocks(values))
    assert not found.suspect[:, [1, 4]].any()
    assert np.isfinite(found.cell_scores[:, [0, 2, 3, 5]]).all()


@given(st.integers(0, 10_000))
def test_the_most_contradicted_cells_come_first(seed):
    rng = np.random.default_rng(seed)
    drawn, kappa, settled = rng.normal(size=(5, 4)), rng.normal(size=(5, 4)), rng.random((5, 4)) < 0.4
    row_of = rng.permutation(5)[:3]
    least = -0.5
    got = kernels.most_contradicted(drawn, kappa, row_of, settled, least, 3)
    for r, cells in zip(row_of, got, strict=True):
        llr = drawn[r] - kappa[r]
        order = [j for j in np.argsort(-llr) if not settled[r, j] and llr[j] > least][:3]
        assert cells.tolist() == order + [-1] * (3 - len(order))


def test_a_candidate_counts_once_however_often_it_is_weighed():
    rng = np.random.default_rng(7)
    n, p = 2, 4
    slab, kappa = np.exp(rng.normal(size=(3, n, p))), rng.normal(size=(n, p))
    cells = slab, np.log(slab.mean(0)), np.ones((n, p), dtype=bool)
    sums = [np.zeros(n), np.zeros((n, p)), np.zeros((n, p)), np.zeros((n, p)), np.zeros(n)]
    state = (np.zeros((n, 9), dtype=np.uint64), np.zeros(n, dtype=np.int64), np.full(n, -np.inf), *sums)
    masks = np.array([[True, False, False, False], [False, True, True, False]])
    prior = Prior().arrays(p)
    first = kernels.weigh_candidates(masks, kappa, np.arange(n), cells, state, prior)
    before = [part.copy() for part in state]
    again = kernels.weigh_candidates(masks, kappa, np.arange(n), cells, state, prior)
    assert np.array_equal(first, again)
    assert all(np.array_equal(old, new) for old, new in zip(before, state, strict=True))
    expected = [
        kernels.candidate_weight(slab[:, i], kappa[i], masks[i], cells[2][i], *prior, np.empty(4)) for i in range(n)
    ]
    assert first == pytest.approx(expected)
