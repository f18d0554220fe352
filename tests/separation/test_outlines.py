from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t as student

from goldseam.separation import refine, segments
from goldseam.separation.reference import Reference
from goldseam.separation.segment_kernels import box_posterior, boxes_posterior, cell_odds, workspace
from goldseam.separation.tree import AttributeTree
from tests.reference import separation_naive as naive


def posterior(evidence, temper=0.5, log_none=0.0):
    shape = (1,) * (3 - evidence.ndim) + evidence.shape
    out, odds = np.empty(evidence.size), np.exp(temper * evidence.ravel())
    score = box_posterior(odds, shape, log_none, workspace(shape), out)
    return out.reshape(evidence.shape), score


@given(st.integers(0, 10_000), st.integers(1, 5), st.integers(1, 7))
def test_box_posterior_equals_listing_all_boxes(seed, rows, columns):
    evidence = np.random.default_rng(seed).normal(0, 3, (rows, columns))
    out, score = posterior(evidence)
    expected, expected_score = naive.box_posterior(evidence, 0.5)
    np.testing.assert_allclose(out, expected, atol=1e-12)
    assert score == pytest.approx(expected_score, abs=1e-12)


@given(st.integers(0, 10_000), st.integers(2, 4), st.integers(1, 4), st.integers(1, 4))
def test_box_posterior_of_three_axes_equals_listing_all_boxes(seed, layers, rows, columns):
    evidence = np.random.default_rng(seed).normal(0, 3, (layers, rows, columns))
    out, score = posterior(evidence)
    expected, expected_score = naive.box_posterior(evidence, 0.5)
    np.testing.assert_allclose(out, expected, atol=1e-12)
    assert score == pytest.approx(expected_score, abs=1e-12)


@pytest.mark.parametrize("columns", [15, 16, 17, 33])
def test_box_posterior_around_whole_vectors(rng, columns):
    evidence = rng.normal(0, 2, (3, columns))
    np.testing.assert_allclose(posterior(evidence)[0], naive.box_posterior(evidence, 0.5)[0], atol=1e-12)


def test_box_posterior_beyond_the_range_of_floats():
    """Products of the odds of 900 sure cells have no place in float64; the box is found all the same."""
    evidence = np.full((40, 40), -8.0)
    evidence[5:35, 4:34] = 8.0
    out, score = posterior(evidence)
    np.testing.assert_array_equal(out > 0.5, evidence > 0)
    assert np.isfinite(score)


def test_box_posterior_of_one_cell_by_hand():
    out, score = posterior(np.array([[2.0]]), temper=1.0)
    assert out[0, 0] == pytest.approx(np.exp(2) / (1 + np.exp(2)))
    assert score == pytest.approx(2.0)


def test_two_separate_boxes_are_both_found():
    evidence = np.full((12, 12), -2.0)
    evidence[1:4, 1:5] = evidence[8:11, 6:11] = 3.0
    shape, out, extra = (1, 12, 12), np.empty(144), np.empty(144)
    boxes_posterior(np.exp(0.5 * evidence.ravel()), shape, 3, 6.0, workspace(shape), extra, out)
    np.testing.assert_array_equal(out.reshape(12, 12) > 0.5, evidence > 0)


def test_odds_are_the_root_of_a_likelihood_ratio():
    reference = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 1.0], [np.nan, 1.0]])
    row, out = np.array([4.0, 1.0]), np.empty(2)
    donors, levels, work = np.arange(4), np.array([0, 3]), np.empty((3, 2))
    slab = np.array([np.exp(-1.0), 1 / 3])
    cell_odds(row, donors, reference, np.array([0.5, 1.0]), slab, levels, 1e9, work, out)
    scale = np.sqrt(2 / 3 + 0.25)
    assert 2 * np.log(out[0]) == pytest.approx(-1.0 - student(4, loc=1.0, scale=scale).logpdf(4.0))
    assert 2 * np.log(out[1]) == pytest.approx(-np.log(3) - np.log((2 + 1 / 3) / 5))
    cell_odds(row * np.nan, donors, reference, np.ones(2), np.ones(2), levels, 1e9, work, out)
    assert out.tolist() == [1, 1]
    cell_odds(np.array([1e150, 1.0]), donors, reference, np.ones(2), np.ones(2), levels, 50.0, work, out)
    assert out[0] == 50.0


def space(rng, shape=(6, 6), n=150):
    d = int(np.prod(shape))
    tree = AttributeTree.grid(shape) if len(shape) > 1 else AttributeTree.interval(d)
    values = np.sin(np.arange(d) / 3 + rng.uniform(0, 6, (n, 1))) + 0.05 * rng.normal(size=(n, d))
    return Reference(values, tree.pruned(2), np.zeros(d), np.ones(d), np.zeros(d, dtype=bool))


@pytest.mark.parametrize("shape", [(36,), (6, 6), (4, 3, 3), (2, 2, 3, 3)])
def test_outline_finds_a_box_from_a_wrong_seed(rng, shape):
    reference = space(rng, shape)
    evidence = segments.learn_evidence(reference)
    row = reference.values[:1].copy()
    truth = np.zeros(shape, dtype=bool)
    truth[tuple(slice(0, max(1, side // 2)) for side in shape)] = True
    row[0, truth.ravel()] += 2.5
    seed = np.zeros(row.shape, dtype=bool)
    seed[0, np.flatnonzero(truth.ravel())[0]] = True
    found = segments.outline(reference, evidence, row, seed, members=np.array([0]))
    assert (found.mask[0] == truth.ravel()).mean() > 0.9
    clean = segments.outline(
        reference, evidence, reference.values[:30], np.zeros((30, 36), bool), members=np.arange(30)
    )
    assert found.evidence[0] > clean.evidence.max()


def test_a_clean_row_loses_its_seed(rng):
    reference = space(rng, (36,))
    evidence = segments.learn_evidence(reference)
    row = reference.values[:20]
    seed = np.zeros(row.shape, dtype=bool)
    seed[:, 4:8] = True
    found = segments.outline(reference, evidence, row, seed, members=np.arange(20))
    assert found.mask.any(axis=1).mean() < 0.3


def test_long_lines_are_taken_in_blocks(rng, monkeypatch):
    monkeypatch.setattr(segments, "MAX_BOXES", 100)
    grid, block = segments._blocks((1, 36, 1))
    assert grid == (1, 9, 1)
    assert block.tolist() == [j // 4 for j in range(36)]


def plain_refinement(reference, profile, row, mask, own):
    """(S-21) for one row on a line, spelt out."""
    order = reference.tree.order
    x = row[order]
    for _ in range(2):
        hidden = mask[order]
        if (~hidden).sum() < 2 or not hidden.any():
            return mask
        gaps = ((reference.values[:, order] - x) ** 2)[:, ~hidden].sum(axis=1)
        gaps[own] = np.inf
        near = np.argsort(gaps, kind="stable")[:10]
        ratio = np.abs(x - np.median(reference.values[near][:, order], axis=0)) / profile.scale[order]
        padded = np.concatenate((ratio[:1], ratio, ratio[-1:]))
        smooth = np.convolve(padded, np.ones(3) / 3, "valid")
        reach = max(1, len(x) // 16)
        wide = np.array([hidden[max(0, j - reach) : j + reach + 1].any() for j in range(len(x))])
        new = (hidden & (smooth > profile.low[order])) | (wide & (smooth > profile.high[order]))
        mask = np.empty_like(mask)
        mask[order] = new
    return mask


def test_residual_refinement_equals_the_plain_one(rng):
    d = 36
    values = np.sin(np.arange(d) / 3 + rng.uniform(0, 6, (80, 1))) + 0.05 * rng.normal(size=(80, d))
    tree = AttributeTree.interval(d, order=rng.permutation(d)).pruned(2)
    reference = Reference(values, tree, np.zeros(d), np.ones(d), np.zeros(d, dtype=bool))
    profile = refine.learn_residuals(reference, values, np.arange(80))
    rows, masks = values[:15].copy(), rng.random((15, d)) < 0.2
    rows[:, tree.order[5:12]] += 1.0
    masks[0] = False
    found = refine.refined_mask(reference, profile, rows, masks, np.arange(15))
    for i in range(15):
        np.testing.assert_array_equal(found[i], plain_refinement(reference, profile, rows[i], masks[i], i))
    assert not found[0].any()  # refinement never adds rows


def test_residual_profile_on_a_grid_has_floors(rng):
    reference = space(rng)
    profile = refine.learn_residuals(reference, reference.values, np.arange(len(reference)))
    assert profile.low.min() == pytest.approx(np.quantile(profile.low, 0.0))
    assert (profile.high >= profile.low).all()
    assert (profile.scale >= 0.05 * np.ptp(reference.values)).all()
    assert len(np.unique(profile.low)) < len(profile.low)  # some cells are at the common floor


def test_dilation_is_a_diamond():
    tree = AttributeTree.grid((7, 7))
    mask = np.zeros((1, 49), dtype=bool)
    mask[0, 24] = True
    grown = refine._dilate(tree, mask).reshape(7, 7)
    distance = np.abs(np.arange(7) - 3)[:, None] + np.abs(np.arange(7) - 3)
    np.testing.assert_array_equal(grown, distance <= 2)
