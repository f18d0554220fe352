"""Normal scores, ties, tails and back again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri

from goldseam.conditional.kernels import guided, guides, normal_quantile, places
from goldseam.conditional.marginals import UNSEEN_SLAB, fit_marginals
from goldseam.schema import MISSING, UNSEEN, Blocks

NO_LEVELS = np.empty(0, dtype=np.int64)


def numbers(*columns):
    values = np.array(columns, dtype=np.float64).T.copy()
    return Blocks(values, np.empty((len(values), 0), dtype=np.int32))


@given(st.floats(1e-12, 1 - 1e-12))
def test_the_quantile_is_that_of_scipy(u):
    assert normal_quantile(u) == pytest.approx(ndtri(u), abs=1e-13)


def test_scores_of_a_small_column_by_hand():
    marginals = fit_marginals(numbers(np.arange(30.0)), NO_LEVELS)
    scores = marginals.score(numbers([0.0, 14.5, 29.0]))
    assert scores.z[:, 0] == pytest.approx([ndtri(1 / 31), 0.0, ndtri(30 / 31)])
    assert np.isnan(scores.low).all()  # no ties: a density, not a probability


def test_a_tie_has_the_bounds_of_its_mass(rng):
    column = np.where(rng.random(400) < 0.6, 0.0, rng.gamma(2.0, 3.0, 400))
    marginals = fit_marginals(numbers(column), NO_LEVELS)
    scores = marginals.score(numbers([0.0, 5.0]))
    share = (column == 0.0).sum() / 401
    assert ndtr(scores.high[0, 0]) - ndtr(scores.low[0, 0]) == pytest.approx(share)
    assert np.isnan(scores.low[1, 0])


def test_scores_are_normal_and_rise(rng):
    column = rng.lognormal(size=1000)
    marginals = fit_marginals(numbers(column), NO_LEVELS)
    z = marginals.score(numbers(np.sort(column))).z[:, 0]
    assert abs(z.mean()) < 0.01
    assert z.std() == pytest.approx(1.0, abs=0.02)
    assert (np.diff(z) > 0).all()
    beyond = marginals.score(numbers(column.max() * np.array([1.0, 1.1, 2.0, 10.0]))).z[:, 0]
    assert (np.diff(beyond) > 0).all()


def test_there_and_back(rng):
    column = rng.gamma(2.0, size=500)
    marginals = fit_marginals(numbers(column), NO_LEVELS)
    z = marginals.score(numbers(column)).z
    assert marginals.unscore(z, np.zeros(z.shape)) == pytest.approx(column[:, None], rel=1e-6)
    assert marginals.value_at(z) == pytest.approx(column[:, None], rel=1e-6)


def test_a_tied_value_comes_back_to_the_bit():
    column = np.concatenate([np.full(60, -1.1), np.linspace(0.1, 3.7, 40)])
    marginals = fit_marginals(numbers(column), NO_LEVELS)
    within = np.linspace(-4.0, 0.2, 50)[:, None]
    assert (marginals.value_at(within) == -1.1).all()
    assert (marginals.value_at(np.full((1, 1), 6.0)) == 3.7).all()


def test_the_expectation_of_the_whole_column_is_its_mean(rng):
    column = rng.gamma(2.0, size=2000)
    marginals = fit_marginals(numbers(column), NO_LEVELS)
    assert marginals.unscore(np.zeros((1, 1)), np.ones((1, 1)))[0, 0] == pytest.approx(column.mean(), rel=0.03)


def test_uniform_against_marginal_is_large_where_the_reference_is_thin(rng):
    column = rng.exponential(size=2000)
    scores = fit_marginals(numbers(column), NO_LEVELS).score(numbers([0.1, 0.95 * column.max()]))
    assert scores.even[0, 0] < 0.5
    assert scores.even[1, 0] > 10.0


def test_density_of_a_normal_column_is_found_to_a_third(rng):
    column = rng.normal(size=4000)
    x = np.linspace(-2.5, 2.5, 41)
    even = fit_marginals(numbers(column), NO_LEVELS).score(numbers(x)).even[:, 0]
    density = 1.0 / (column.max() - column.min()) / even
    assert np.abs(np.log(density / (np.exp(-x * x / 2) / np.sqrt(2 * np.pi)))).max() < 0.35


def test_skewed_columns_have_a_heavy_side_and_even_ones_not(rng):
    skewed, even = rng.exponential(size=300), rng.normal(size=300)
    marginals = fit_marginals(numbers(skewed, even), NO_LEVELS)
    rows = numbers([1.5 * skewed.max(), -1.0], [2.0 * even.max(), 2.0 * even.min()]).numbers
    assert marginals.on_heavy_side(rows).tolist() == [[True, False], [False, False]]


def test_distance_beyond_the_range(rng):
    marginals = fit_marginals(numbers(np.arange(101.0)), NO_LEVELS)
    rows = numbers([50.0, 100.0, 150.0, -100.0, np.nan]).numbers
    assert marginals.beyond_range(rows)[:, 0].tolist() == [0.0, 0.0, 1.0, 2.0, 0.0]


def test_absurd_is_far_in_ranges_and_in_standard_deviations():
    marginals = fit_marginals(numbers(np.r_[np.zeros(60), np.arange(41.0)]), NO_LEVELS)  # the median is the lower end
    rows = numbers([-1.0, -100.0, 40.0, 100.0, 300.0, np.nan]).numbers
    assert marginals.absurd(rows)[:, 0].tolist() == [False, True, False, False, True, False]


def test_a_giant_in_company_is_not_lone():
    marginals = fit_marginals(numbers(*[np.linspace(-1.0, 1.0, 101)] * 5), NO_LEVELS)
    giant, little, gap = 9.0, 1.2, np.nan
    rows = np.array(
        [
            [giant, 0.0, 0.0, 0.0, 0.0],
            [giant, little, 0.0, 0.0, 0.0],
            [giant, giant, giant, giant, giant],  # giants are no company for each other
            [giant, 0.0, gap, gap, gap],
            [giant, gap, gap, gap, gap],
            [3.0, 0.0, 0.0, 0.0, 0.0],
        ]
    )
    assert marginals.lone_giants(rows).sum(axis=1).tolist() == [1, 0, 5, 1, 1, 0]


def test_missing_numbers_say_nothing_and_an_empty_column_is_no_crash():
    marginals = fit_marginals(numbers([np.nan] * 12, np.arange(12.0)), NO_LEVELS)
    scores = marginals.score(numbers([np.nan, 3.0], [np.nan, 4.0]))
    assert np.isnan(scores.z[0]).all()
    assert scores.even[0].tolist() == [1.0, 1.0]
    assert np.isfinite(scores.z[1]).all()


def test_categories_missing_unseen_and_rare():
    codes = np.array([[0]] * 90 + [[1]] * 9, dtype=np.int32)
    marginals = fit_marginals(Blocks(np.empty((99, 0)), codes), np.array([2]))
    ratio = marginals.code_ratio(np.array([[0], [1], [MISSING], [UNSEEN]], dtype=np.int32))[:, 0]
    assert ratio[:2] == pytest.approx([100 / 90.5 / 2, 100 / 9.5 / 2])
    assert ratio[2] == 1.0
    assert ratio[3] == pytest.approx(UNSEEN_SLAB * 100)


@given(st.integers(0, 2**32 - 1))
def test_scores_around_are_those_of_the_whole_judgement(seed):
    rng = np.random.default_rng(seed)
    marginals = fit_marginals(
        numbers(rng.normal(size=100), rng.integers(0, 5, 100), np.exp(rng.normal(size=100))), NO_LEVELS
    )
    rows = numbers(*(3.0 * rng.normal(size=(3, 50))))
    rows.numbers[0] = [np.nan, 2.0, 1e6]
    sd = rng.exponential(size=rows.numbers.shape)
    z, low, high = (marginals.score(numbers(*(rows.numbers + shift * sd).T)).z for shift in (0.0, -1.0, 1.0))
    center, width = marginals.scores_around(rows.numbers, sd)
    np.testing.assert_array_equal(center, z)
    np.testing.assert_array_equal(width, (high - low) / 2.0)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=40, unique=True), st.data())
def test_guides_lead_to_the_knot_at_or_below_a_value(values, data):
    knots = np.sort(values)
    guide, scale = guides(knots, np.array([0, len(knots)]))
    x = data.draw(st.one_of(st.sampled_from(knots), st.floats(knots[0], knots[-1])))
    assert guided(knots, 0, len(knots), guide, scale[0], x) == np.searchsorted(knots, x, side="right") - 1


@given(st.lists(st.floats(allow_nan=False), max_size=40), st.lists(st.floats(), max_size=20))
def test_places_among_knots_with_ties_are_those_of_a_search(knots, values):
    knots, values = np.sort(np.array(knots, dtype=np.float64)), np.array(values, dtype=np.float64)
    found = np.empty(len(values), dtype=np.int64)
    places(knots, values, found)
    expected = np.where(np.isnan(values), -1, np.searchsorted(knots, values, side="right") - 1)
    np.testing.assert_array_equal(found, expected)
