"""Intervals of changed numbers hold the truth as often as promised: of damaged cells and of fine ones, each apart."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldseam.conditional.marginals import fit_marginals
from goldseam.evidence.intervals import (
    BEYOND,
    DOUBTED,
    FILLED,
    REPLACED,
    Changes,
    bounds,
    distances,
    fit_intervals,
    quantiles,
)
from goldseam.schema import Blocks

SIZES = np.array([0.5, 1.0, 1.0, 2.0, 4.0])  # how much wider than said predictions err, by what is lost of the row


def test_bounds_are_where_the_end_of_an_interval_comes_to_hold_a_value():
    """0 has two thirds of the mass, 1 .. 5 share the rest: 0 is held by every upper end, and by lower ends within its mass."""
    column = np.concatenate([np.zeros(20), np.repeat(np.arange(1.0, 6.0), 2)])
    marginals = fit_marginals(Blocks(column[:, None], np.empty((30, 0), dtype=np.int32)), np.empty(0, dtype=np.int64))
    values = Blocks(np.array([[0.0], [3.0], [5.0]]), np.empty((3, 0), dtype=np.int32))
    least, greatest = (end[:, 0] for end in bounds(marginals, values))
    grid = np.linspace(-4.0, 4.0, 8001)
    reached = marginals.value_at(grid[:, None])[:, 0]
    for value, low, high in zip(values.numbers[:, 0], least, greatest, strict=True):
        assert max(low, -4.0) == pytest.approx(grid[np.argmax(reached >= value)], abs=2e-3)
        assert min(high, 4.0) == pytest.approx(grid[np.flatnonzero(reached <= value)[-1]], abs=2e-3)


def test_distances_by_hand():
    """A value 1 from the center, at width .5: 2 widths; one held from .25 on: half a width; one that holds the center: none."""
    ends = np.array([1.0, -2.0, -2.0, -1.0]), np.array([1.0, -0.25, 0.5, -1.0])
    spared = np.array([False, False, False, True])
    assert distances(ends, np.zeros(4), np.full(4, 0.5), spared).tolist() == [2.0, 0.5, 0.0, 0.0]
    assert distances(ends, np.zeros(4), np.full(4, 0.5))[3] == 2.0


def test_quantiles_by_hand():
    """Of 1 .. 9 and nine times 0: the 18th of 18 is 9; of each group the 9th; 9 cells of its own count against 50."""
    values = np.concatenate([np.arange(1.0, 10.0), np.zeros(9)])
    expected = [9.0, (9 * 0.0 + 50 * 9.0) / 59, 9.0]
    assert quantiles(values, np.repeat([0, 1], 9), 3, 0.9, unknown=7.0) == pytest.approx(expected)
    assert quantiles(values[:0], np.empty(0, dtype=np.int64), 2, 0.9, unknown=7.0).tolist() == [7.0, 7.0]


@given(st.floats(0.05, 0.95), st.integers(0, 2**32 - 1))
def test_quantiles_hold_what_they_say(coverage, seed):
    values = np.random.default_rng(seed).normal(size=200)
    assert (values <= quantiles(values, np.zeros(200, dtype=np.int64), 1, coverage, unknown=0.0)[0]).mean() >= coverage


def drawn(rng, n, fine):
    """Changed numbers of which a share is fine. Fine ones have lower scores, the more is lost of the row the higher; the ends
    held anyway spare a quarter of the damaged values that are replaced, half of those that are doubted. Predictions for values
    outside the range err twice as much."""
    loss, damaged = rng.integers(0, 5, n), rng.random(n) >= fine
    outside = damaged & (rng.random(n) < 0.3)
    raw = np.abs(rng.normal(size=n)) * SIZES[loss] * np.where(np.arange(n) % 2, 1.0, 2.0) * (1.0 + outside)
    luck = rng.random(n)
    return Changes(
        column=np.arange(n) % 2,
        loss=loss,
        scores=rng.normal(size=n) + loss + 2.0 * damaged,
        outside=outside,
        damaged=damaged,
        distance=np.stack([raw, np.where(luck < 0.25, 0.0, raw), np.where(luck < 0.5, 0.0, raw)]),
        observed=rng.uniform(0.0, 20.0, n),
    )


def covered(fitted, changes):
    """Whether the interval as it is built holds the truth: the true value of damaged cells, the observed one of fine ones."""
    doubted = changes.scores <= fitted.doubt[changes.loss]
    end = np.where(doubted, DOUBTED, REPLACED)
    way = np.where(~doubted & changes.outside, BEYOND, end)
    reach = fitted.reach[changes.column] * fitted.stretch[way, changes.loss]
    held = changes.distance[end, np.arange(end.size)] <= reach
    return np.where(changes.damaged, held, doubted | (changes.observed <= reach))


@pytest.mark.parametrize("fine", [0.02, 0.3, 0.9])
def test_coverage_does_not_depend_on_how_many_cells_were_fine(rng, fine):
    fitted = fit_intervals(drawn(rng, 20_000, 0.3), 2, 0.9)
    changes = drawn(rng, 20_000, fine)
    inside = covered(fitted, changes)
    assert inside.mean() == pytest.approx(0.9, abs=0.02)
    assert inside[changes.damaged].mean() == pytest.approx(0.9, abs=0.02)


def test_coverage_does_not_depend_on_whether_values_were_outside_the_range(rng):
    fitted = fit_intervals(drawn(rng, 20_000, 0.3), 2, 0.9)
    changes = drawn(rng, 20_000, 0.3)
    replaced = changes.scores > fitted.doubt[changes.loss]
    assert covered(fitted, changes)[replaced & changes.outside].mean() == pytest.approx(0.9, abs=0.02)
    assert (fitted.stretch[BEYOND] > 1.5 * fitted.stretch[REPLACED]).all()


def test_coverage_does_not_depend_on_what_is_lost_of_the_row(rng):
    fitted = fit_intervals(drawn(rng, 20_000, 0.3), 2, 0.9)
    changes = drawn(rng, 20_000, 0.3)
    inside = covered(fitted, changes)
    for k in range(5):
        part = changes.loss == k
        assert inside[part & changes.damaged].mean() == pytest.approx(0.9, abs=0.03)
        assert inside[part & ~changes.damaged].mean() == pytest.approx(0.9, abs=0.05)


def test_gaps_reach_farther_than_cells_of_which_an_end_is_held(rng):
    changes = drawn(rng, 20_000, 0.3)
    changes.outside[:] = False
    stretch = fit_intervals(changes, 2, 0.9).stretch
    assert (stretch[FILLED] > stretch[DOUBTED]).all()


def test_absurd_values_are_never_held(rng):
    changes = drawn(rng, 1000, 0.5)
    changes.scores[:200] = np.inf
    fitted = fit_intervals(changes, 2, 0.9)
    assert np.isfinite(fitted.doubt).all()


def test_without_rehearsed_changes_the_observed_value_is_held():
    nothing, none = np.empty(0), np.empty(0, dtype=np.int64)
    no = nothing > 0
    fitted = fit_intervals(Changes(none, none, nothing, no, no, np.empty((3, 0)), nothing), 4, 0.9)
    assert fitted.reach.tolist() == [2.0] * 4
    assert (fitted.stretch == 1.0).all()
    assert (fitted.doubt == np.inf).all()


def test_columns_whose_predictions_are_always_right_need_no_reach(rng):
    changes = drawn(rng, 1000, 0.5)
    changes.distance[:] = 0.0
    fitted = fit_intervals(changes, 2, 0.9)
    assert fitted.reach.tolist() == [0.0, 0.0]
    assert np.isfinite(fitted.stretch).all()
