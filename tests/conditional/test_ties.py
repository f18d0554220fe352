"""Levels from what goes with them: sums over believed cells, counts without the row itself, weights of cells that repeat."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import approx_fprime

from goldseam.conditional.layout import Layout
from goldseam.conditional.marginals import fit_marginals
from goldseam.conditional.ties import HEARD, PENALTY, PRIOR, SMOOTHING, _tie, fit_heard, fit_ties, lift, slips
from goldseam.errors import ModelFileError
from goldseam.schema import MISSING, UNSEEN, Blocks
from tests.reference.conditional_ties import left_out, level_probabilities


def learnt(blocks, layout, n_levels, seed=0):
    marginals = fit_marginals(blocks, np.array(n_levels))
    return fit_ties(marginals.score(blocks), marginals, layout, np.random.default_rng(seed)), marginals


def mixed(rng, n=400, noise=0.3):
    """A hidden number behind one number, one of few values, a category of three levels and one of two."""
    hidden = rng.normal(size=n)
    numbers = np.column_stack([hidden + noise * rng.normal(size=n), np.round(hidden + noise * rng.normal(size=n))])
    codes = np.column_stack([np.digitize(hidden, [-0.5, 0.5]), hidden + noise * rng.normal(size=n) > 0.0])
    return Blocks(numbers, codes.astype(np.int32)), Layout(np.array([0, 2]), np.array([1, 3])), [3, 2]


def test_the_lift_of_a_value_by_hand():
    """A value of share .25, in three of four rows of a level: (3 + 8 / 4) / ((4 + 8) / 4)."""
    assert lift(np.array(3.0), np.array(4.0), np.array(0.25)) == pytest.approx(np.log(5.0 / 3.0))


@pytest.mark.parametrize("size", [1, 2, 3, 9])
def test_slips_lose_nothing(size):
    assert slips(size).sum(0) == pytest.approx(np.ones(size))
    assert slips(size) == pytest.approx(slips(size).T)


@given(st.integers(0, 10_000))
def test_probabilities_equal_the_plain_sum(seed):
    rng = np.random.default_rng(seed)
    blocks, layout, n_levels = mixed(rng, 60)
    blocks.numbers[rng.random(blocks.numbers.shape) < 0.1] = np.nan
    blocks.codes[rng.random(blocks.codes.shape) < 0.1] = MISSING
    ties, marginals = learnt(blocks, layout, n_levels)
    values, withheld = ties.values(marginals.score(blocks)), rng.random((60, 4)) < 0.3
    found = ties.levels(values, withheld, np.arange(60))
    for i in range(60):
        plain = level_probabilities(values[i], withheld[i], ties.base, ties.table, ties.level_offsets)
        assert found[i] == pytest.approx(plain)


@given(st.integers(0, 10_000), st.integers(1, 5), st.integers(1, 4))
def test_a_row_is_left_out_of_its_own_counts(seed, size, levels):
    rng = np.random.default_rng(seed)
    value, level = rng.integers(size, size=30), rng.integers(levels, size=30)
    said = _tie(value, level, size, levels, number=False).said(value, level, np.zeros(30, dtype=bool))
    assert said == pytest.approx(left_out(value, level, size, levels, SMOOTHING))


def test_weights_are_where_the_slope_is_zero(rng):
    said, level, base = rng.normal(size=(50, 3, 4)), rng.integers(3, size=50), np.log([0.5, 0.3, 0.2])

    def loss(weights):
        odds = base + said @ weights
        fit = (np.log(np.exp(odds).sum(1)) - odds[np.arange(50), level]).sum()
        return fit + PENALTY / 2.0 * ((weights - PRIOR) ** 2).sum()

    weights = fit_heard(said, level, base)
    assert np.abs(approx_fprime(weights, loss)).max() < 1.0
    assert loss(weights) <= min(loss(weights + step) for step in 0.1 * rng.normal(size=(20, 4)))


def test_cells_that_repeat_each_other_share_one_weight(rng):
    level = rng.integers(2, size=2000)
    once = np.where(rng.random(2000) < 0.8, level, 1 - level)
    said = _tie(once, level, 2, 2, number=False).said(once, level, np.zeros(2000, dtype=bool))
    alone = fit_heard(said[:, :, None], level, np.log([0.5, 0.5]))
    twice = fit_heard(np.stack([said, said], axis=2), level, np.log([0.5, 0.5]))
    assert alone == pytest.approx([1.0], abs=0.1)
    assert twice == pytest.approx([0.5, 0.5], abs=0.05)


def test_a_cell_does_not_speak_for_itself(rng):
    blocks, layout, n_levels = mixed(rng)
    ties, marginals = learnt(blocks, layout, n_levels)
    other = Blocks(blocks.numbers, blocks.codes.copy())
    other.codes[:, 0] = (other.codes[:, 0] + 1) % 3
    nothing, rows = np.zeros((400, 4), dtype=bool), np.arange(400)
    first, second = (ties.levels(ties.values(marginals.score(one)), nothing, rows) for one in (blocks, other))
    assert np.array_equal(first[:, :3], second[:, :3])
    assert not np.array_equal(first[:, 3:], second[:, 3:])
    assert (first[:, :3].argmax(1) == blocks.codes[:, 0]).mean() > 0.75


def test_missing_and_unseen_cells_are_withheld_cells(rng):
    blocks, layout, n_levels = mixed(rng)
    ties, marginals = learnt(blocks, layout, n_levels)
    gone = Blocks(blocks.numbers.copy(), blocks.codes.copy())
    gone.numbers[:, 0] = np.nan
    gone.codes[::2, 0], gone.codes[1::2, 0] = MISSING, UNSEEN
    withheld = np.tile([True, True, False, False], (400, 1))
    known = ties.levels(ties.values(marginals.score(blocks)), withheld, np.arange(400))
    blank = ties.levels(ties.values(marginals.score(gone)), np.zeros((400, 4), dtype=bool), np.arange(400))
    assert np.array_equal(known, blank)


def test_a_row_does_not_depend_on_its_batch(rng):
    blocks, layout, n_levels = mixed(rng)
    ties, marginals = learnt(blocks, layout, n_levels)
    withheld = rng.random((400, 4)) < 0.3
    whole = ties.levels(ties.values(marginals.score(blocks)), withheld, np.arange(400))
    for i in (0, 17, 399):
        one = ties.values(marginals.score(blocks.take(np.array([i]))))
        assert np.array_equal(ties.levels(one, withheld[i : i + 1], np.zeros(1, dtype=np.int64))[0], whole[i])


def test_nothing_to_learn_from_leaves_the_frequencies(rng):
    """One level only, a column that was never observed, a table of one category."""
    codes = np.column_stack([np.zeros(20), np.full(20, MISSING), rng.integers(2, size=20)]).astype(np.int32)
    blocks, layout = Blocks(np.full((20, 1), np.nan), codes), Layout(np.array([0]), np.array([1, 2, 3]))
    for one, place, n_levels in (
        (blocks, layout, [1, 2, 2]),
        (Blocks(np.empty((20, 0)), codes[:, 2:]), Layout(np.empty(0, np.int64), np.array([0])), [2]),
    ):
        ties, marginals = learnt(one, place, n_levels)
        nothing = np.zeros((20, place.n_cells), dtype=bool)
        found = ties.levels(ties.values(marginals.score(one)), nothing, np.arange(20))
        assert found == pytest.approx(np.tile(marginals.frequency, (20, 1)), abs=1e-6)


def test_a_column_hears_the_cells_that_tell_most(rng):
    level = rng.integers(2, size=300)
    codes = rng.integers(2, size=(300, HEARD + 10)).astype(np.int32)
    codes[:, 0], codes[:, -1] = level, np.where(rng.random(300) < 0.9, level, 1 - level)
    cells = np.arange(HEARD + 10)
    ties, _ = learnt(Blocks(np.empty((300, 0)), codes), Layout(np.empty(0, np.int64), cells), [2] * len(cells))
    says = np.abs(ties.table[:, :2]).reshape(-1, 2, 2).max((1, 2))
    assert (says > 0.0).sum() == HEARD
    assert says.argmax() == HEARD + 9


def test_ties_that_lead_outside_are_refused(rng):
    blocks, layout, n_levels = mixed(rng)
    ties, _ = learnt(blocks, layout, n_levels)
    ties.check_state()
    for wrong, what in (
        ({"table": ties.table[:-1]}, "values of ties"),
        ({"table": ties.table[:, :-1]}, "table of ties"),
        ({"edges": ties.edges[:-1]}, "edges of ties"),
        ({"starts": np.sort(np.append(ties.starts[[0, 2, 3, 4]], 1))}, "other values"),
    ):
        with pytest.raises(ModelFileError, match=what):
            replace(ties, **wrong).check_state()
    with pytest.raises(ModelFileError, match="other levels"):
        ties.check_for(layout, np.array([2, 3]))
