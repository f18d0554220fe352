"""How far to move, when to refuse, how far an interval reaches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

from goldseam.errors import ModelFileError
from goldseam.evidence.calibration import best_threshold, conformal_p_values
from goldseam.evidence.gains import N_CASES, Lesson, Offer, curve, gains_by_size, isotonic, lenders, rehearsed_quality
from goldseam.evidence.repair import LONE, TIMID, Repairer, fit_careful, fit_repairer, fit_switch, rivals


def test_isotonic_equals_scikit_learn(rng):
    values, weights = rng.normal(size=200) + np.linspace(0, 1, 200), rng.uniform(0.1, 2.0, 200)
    expected = IsotonicRegression().fit_transform(np.arange(200), values, sample_weight=weights)
    assert isotonic(values, weights) == pytest.approx(expected)


def test_gains_rise_in_a_straight_line_between_scores_that_were_seen():
    knots = np.arange(6.0)
    step = np.ones(4)
    wanted = np.array([0.0, 0.5, 1.0, 1.0])
    assert curve(knots, np.array([1.0, 3.0, 3.0, 5.0]), step, wanted) == pytest.approx(
        [0.0, 0.0, 0.375, 0.75, 0.875, 1.0]
    )
    assert curve(knots, np.array([3.0, 4.0]), step[:2], np.ones(2)).tolist() == [0.0, 0.0, 0.0, 1.0, 1.0, 1.0]


def offers(scores, step, width=0.6, natural=False, beyond=0.0, context=-3.0, absurd=False):
    """One cell per row, so that no row is taken for a noisy one."""
    fill = lambda value: np.broadcast_to(np.asarray(value), np.shape(scores)).reshape(-1, 1)  # noqa: E731
    return Offer(*(fill(part) for part in (scores, context, step, width, natural, beyond, absurd, natural)))


def lesson(wanted, hard=None):
    rows = len(wanted)
    clean = wanted.ravel() == 0
    return Lesson(wanted.reshape(-1, 1), clean, np.stack([~clean if hard is None else np.full(rows, hard)]))


def learnt(scores, step, wanted, n_rows=10_000, **more):
    offer = offers(scores, step, **more)
    return fit_repairer(offer, wanted.reshape(-1, 1), np.ones(offer.step.shape, dtype=bool), n_rows)


def careful(scores, step, wanted, n_rows=10_000, **more):
    offer = offers(scores, step, **more)
    return fit_careful(offer, lesson(wanted), np.ones(offer.step.shape, dtype=bool), n_rows)


def test_gain_is_the_share_of_steps_that_were_right(rng):
    scores = rng.uniform(-5, 10, 20_000)
    damaged = rng.random(scores.size) < 1 / (1 + np.exp(-scores))
    step = rng.choice((-3.0, 3.0), scores.size)
    repairer = learnt(scores, step, np.where(damaged, step, 0.0))
    at = np.array([-3.0, 0.0, 1.0, 4.0])
    gain = repairer.gain(offers(at, 3.0, context=0.0))[:, 0]
    assert gain[0] == 0.0  # abstains
    assert gain[1:] == pytest.approx(1 / (1 + np.exp(-at[1:])), abs=0.12)


def test_steps_are_shortened_until_hidden_damage_is_not_made_worse(rng):
    """Half of the steps are right for loud damage, none for damage that hides: it must not get worse by more than .02."""
    n = 4000
    loud = np.arange(n) < n // 2
    step = np.full(n, 3.0)
    wanted = np.where(loud, 3.0, -0.5)[:, None]
    offer = offers(np.full(n, 3.0), step)
    use = np.ones((n, 1), dtype=bool)
    hidden = Lesson(wanted, np.zeros(n, dtype=bool), ~loud[None])
    timid = fit_careful(offer, hidden, use, 10_000).gain(offer)
    bold = fit_repairer(offer, wanted, use, 10_000).gain(offer)
    assert bold.max() > 0.3
    assert rehearsed_quality(timid, offer, hidden, 10_000) >= -0.02
    assert rehearsed_quality(bold, offer, hidden, 10_000) < -0.02


def test_quality_by_hand():
    """A clean row moved by half a step of 2 costs 1; a damaged one with 4 to undo moved by half of it gains 4 - 1."""
    offer = offers(np.zeros(2), np.array([2.0, 2.0]))
    taught = Lesson(np.array([[0.0], [2.0]]), np.array([True, False]), np.array([[False, True]]))
    assert rehearsed_quality(np.full((2, 1), 0.5), offer, taught, 9) == pytest.approx((3.0 - 1.0) / 4.0)


def test_where_damage_hides_a_natural_value_is_moved_only_in_company_or_from_far(rng):
    n = 3000
    step = rng.choice((2.0, 3.0, 5.0, 9.0), n)
    repairer = careful(np.full(n, 2.0), step, step, natural=True)
    sizes = np.array([2.0, 3.0, 5.0, 9.0])
    gain = lambda **more: repairer.gain(offers(np.full(4, 2.0), sizes, natural=True, **more))[:, 0]  # noqa: E731
    assert gain(context=-3.0) == pytest.approx([0.0, 0.2, 0.4, 0.85], abs=0.01)
    assert (gain(context=0.0) > 0.9).all()
    assert gain(context=0.0, beyond=1.0) == pytest.approx([0.0, 0.0, 0.35, 0.35])
    sure = offers(np.full(4, 5.0), sizes, natural=True, beyond=1.0)
    assert repairer.gain(sure)[:, 0] == pytest.approx([0.0, 0.0, 0.35, 0.35])
    assert gain(beyond=5.0, absurd=True) == pytest.approx(np.ones(4))
    # the dearest car of all: its neighbours expect it
    expected = offers(np.full(4, -3.0), sizes, beyond=5.0, absurd=True)
    assert repairer.gain(expected).max() == 0.0


def test_a_natural_value_is_moved_as_rehearsal_says(rng):
    """Alone or not; beyond the range by the size of its step: there half of the steps of 5 were right, all of 9."""
    n = 400
    step = np.repeat((3.0, 5.0, 9.0), (5, n, n))
    right = np.repeat((True, False, True, True), (5, n // 2, n // 2, n))
    repairer = learnt(np.full(step.size, 2.0), step, np.where(right, step, 0.0), natural=True, beyond=1.0)
    assert repairer.outside == pytest.approx([0.0, 0.0, 0.0, 0.5, 1.0], abs=0.01)
    gain = lambda score, size, **more: repairer.gain(offers(np.array([score]), size, natural=True, **more))[0, 0]  # noqa: E731
    assert gain(9.0, 5.0, beyond=0.1) == gain(-2.0, 5.0, beyond=0.1) == repairer.outside[3]
    inside = learnt(np.full(n, 2.0), np.full(n, 3.0), np.full(n, 3.0), natural=True)
    alone, together = (inside.gain(offers(np.array([2.0]), 3.0, natural=True, context=c))[0, 0] for c in (-3.0, 0.0))
    assert alone == together > 0.9


def test_gains_by_size_by_hand():
    """Steps of 2 and 3 in one class: (4 + 0) / (4 + 9) of the squares were wanted; what was seen too seldom is 0."""
    step = np.repeat((2.0, 3.0, 9.0), (10, 10, 9))
    offer = offers(np.zeros(29), step)
    wanted = np.where(step == 3.0, 0.0, step)[:, None]
    assert gains_by_size(offer, wanted, step[:, None] < 2.5).tolist() == [0.0, 1.0, 0.0, 0.0, 0.0]
    both = gains_by_size(
        replace(offer, step=np.where(step == 2.0, 2.6, step)[:, None]), wanted, np.ones((29, 1), dtype=bool)
    )
    assert both == pytest.approx([0.0, 0.0, (2.0 / 2.6) * 2.6**2 / (2.6**2 + 9.0), 0.0, 0.0])


def test_a_row_whose_suspects_are_all_a_little_off_is_noisy():
    step = np.array([[0.5, 0.8, 0.4, 0.1], [0.5, 5.0, 0.4, 0.1], [0.5, 0.8, 0.4, 0.1]])
    scores = np.array([[1.0, 1.0, -1.0, -1.0], [1.0, 1.0, -1.0, -1.0], [-1.0, -1.0, -1.0, -1.0]])
    nothing = np.zeros(step.shape)
    offer = Offer(scores, nothing, step, nothing, nothing > 1, nothing, nothing > 1, nothing > 1)
    assert offer.noisy[:, 0].tolist() == [True, False, False]


def test_a_case_seldom_rehearsed_borrows_from_smaller_steps_and_wide_predictions(rng):
    scores, step = rng.normal(size=500), np.full(500, 3.0)
    gain = lambda repairer, step, context=0.0, **more: repairer.gain(  # noqa: E731
        offers(np.array([9.0]), step, context=context, **more)
    )[0, 0]
    wide = learnt(scores, step, step)
    assert min(gain(wide, size) for size in (3.0, 5.0, 8.0)) > 0.9  # larger steps
    assert gain(wide, 5.0, width=0.3) == 1.0  # narrow predictions; sure
    assert gain(wide, 2.0) == 0.0  # smaller steps lend, they do not borrow
    assert gain(wide, 5.0, natural=True, context=0.0) == 0.0  # nor do natural values
    assert gain(wide, 3.0, beyond=0.5) > 0.9
    assert gain(wide, 5.0, beyond=0.5) == 0.0  # nothing is lent beyond the range
    assert gain(wide, 5.0, width=0.3, beyond=0.5) == 1.0  # but to cells that are sure,
    assert gain(wide, 5.0, width=0.3, beyond=2.6) == 0.0  # short of giants, which may be real
    assert gain(wide, 5.0, width=0.3, beyond=0.5, natural=True, context=0.0) < 0.5
    narrow = learnt(scores, step, step, width=0.3)
    assert gain(narrow, 8.0) == 0.0  # wide predictions do not borrow from narrow ones
    wrong = learnt(scores, step, 0.0 * step, width=0.3)
    assert gain(wrong, 8.0, width=0.3) == 0.0


def test_cases_of_noisy_rows_borrow_nothing():
    for case in range(N_CASES // 2, N_CASES):
        assert lenders(case) == [[case]]


def test_odd_cells_are_suspect_rare_or_rather_wrong_in_rehearsal(rng):
    step = np.full(200, 3.0)
    repairer = learnt(rng.normal(size=200), step, step)
    suspect, gain = np.array([True, False, False, False]), np.array([0.2, 0.2, 0.2, 0.5])
    assert repairer.odd(suspect, np.array([1.0, 0.001, 0.01, 1.0]), gain).tolist() == [True, True, False, True]
    earlier = Repairer(np.zeros(1), np.zeros((1, 1)), np.inf, np.array([2.0]))
    assert not earlier.wrong(np.ones(1)).any()  # files that do not say so know no such numbers


def test_few_calibration_rows_make_timid(rng):
    scores, step = np.full(500, 3.0), np.full(500, 3.0)
    few, many = (learnt(scores, step, step, n_rows=n).gain(offers(scores[:1], 3.0))[0, 0] for n in (10, 100_000))
    assert few == pytest.approx(0.5 * many, abs=1e-3)


def test_unsure_steps_of_values_that_stand_alone_are_made_in_part():
    scores, step = np.full(500, 3.0), np.full(500, 3.0)
    for size, width, share in (
        (3.0, 1.0, TIMID),
        (3.0, 0.3, 1.0),
        (8.0, 1.0, 1.0),
    ):  # narrow ones and the largest in full
        repairer = replace(learnt(scores, step * size / 3.0, step * size / 3.0, width=width), timid=TIMID)
        alone, together = (
            repairer.gain(offers(scores[:1], size, width=width, context=context))[0, 0] for context in (-3.0, 0.0)
        )
        assert together > 0.9
        assert alone == pytest.approx(share * together)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5])
def test_where_damage_that_hides_is_mended_well_there_is_no_need_to_be_timid(share):
    """Wide predictions are right about the loud rows, and about a share of the hidden ones."""
    n = 4000
    loud, right = np.arange(n) < n // 2, np.arange(n) % 1000 < 1000 * share
    step = np.full(n, 3.0)
    wanted = np.where(loud | right, 3.0, 0.0)[:, None]
    offer, use = offers(np.where(loud, 6.0, np.where(right, 3.0, -6.0)), step), np.ones((n, 1), dtype=bool)
    taught = Lesson(wanted, np.zeros(n, dtype=bool), np.stack([~loud, np.zeros(n, dtype=bool)]))
    assert fit_careful(offer, taught, use, 100).timid == pytest.approx(1.0 if share else TIMID, abs=0.01)
    assert fit_careful(offer, taught, use, 10_000).timid > 0.98  # nor where rehearsal has seen many rows


@pytest.mark.parametrize("odds", [1.0 / 9.0, 1.0, 3.0])
def test_where_few_rows_are_damaged_unsure_steps_of_lone_values_are_shortened_by_the_odds(odds):
    """A natural giant that stands alone is moved by .85 at even odds; in company, or absurd, it makes no difference."""
    scores, step = np.full(500, 3.0), np.full(500, 9.0)
    repairer = replace(learnt(scores, step, step, natural=True), odds=odds, lone=np.array(LONE))
    alone, together = (offers(scores[:1], 9.0, natural=True, context=context) for context in (-3.0, 0.0))
    assert repairer.gain(alone)[0, 0] == pytest.approx(odds * 0.85 / (odds * 0.85 + 0.15))
    assert repairer.gain(together)[0, 0] == replace(repairer, odds=1.0).gain(together)[0, 0]
    absurd = offers(scores[:1], 9.0, natural=True, beyond=5.0, absurd=True, context=-3.0)
    assert repairer.gain(absurd)[0, 0] == 1.0


@pytest.mark.parametrize("odds", [0.0, -1.0, np.inf, np.nan])
def test_the_odds_of_damage_of_a_model_file_are_odds(rng, odds):
    repairer = replace(learnt(rng.normal(size=100), np.ones(100), np.ones(100)), odds=odds)
    with pytest.raises(ModelFileError, match="odds of damage must be positive; got"):
        repairer.check_state()


@pytest.mark.parametrize("share", [-0.1, 1.5, np.nan])
def test_the_share_of_unsure_steps_of_a_model_file_is_a_share(rng, share):
    repairer = replace(learnt(rng.normal(size=100), np.ones(100), np.ones(100)), timid=share)
    with pytest.raises(ModelFileError, match="unsure steps must lie between 0 and 1; got"):
        repairer.check_state()


@pytest.mark.parametrize("shares", [np.ones(4), np.full(5, 1.5), np.array([0.0, 0.0, -0.1, 0.0, 0.0])])
def test_natural_values_of_a_model_file_move_by_shares(rng, shares):
    repairer = learnt(rng.normal(size=100), np.ones(100), np.ones(100))
    for name in ("lone", "outside"):
        with pytest.raises(ModelFileError, match=r"natural values by 5 shares between 0 and 1; got \["):
            replace(repairer, **{name: shares}).check_state()


def test_gains_of_a_model_file_have_a_row_per_case(rng):
    repairer = learnt(rng.normal(size=100), np.ones(100), np.ones(100))
    repairer.check_state()
    with pytest.raises(ModelFileError, match=r"gains have shapes \(5, 81\)"):
        replace(repairer, gains=repairer.gains[:5]).check_state()
    with pytest.raises(ModelFileError, match=r"and \(3,\); "):
        replace(repairer, lent=repairer.lent[:3]).check_state()


def test_rivals_by_hand():
    """Level 1 stands with probability .2, level 2 is likeliest with .7: odds e^s .7 / (1 + e^s .2); unseen: nothing stands."""
    levels = np.array([[0.1, 0.2, 0.7], [0.5, 0.3, 0.2]])
    other, odds = rivals(np.array([[1], [-2]], dtype=np.int32), np.array([[1.0], [3.0]]), levels, np.array([0, 3]))
    assert other[:, 0].tolist() == [2, 0]
    expected = [np.log(np.e * 0.7 / (1 + np.e * 0.2)), 3.0 + np.log(0.5)]
    assert odds[:, 0] == pytest.approx(expected)


def test_categories_switch_where_it_did_good():
    odds = np.array([4.0, 3.0, 2.0, 1.0, 0.0])
    good = np.array([True, True, False, False, False])
    no = np.zeros(5, dtype=bool)
    assert fit_switch(odds, good, ~good, no) == 3.0
    assert fit_switch(odds, no, good, no) == np.inf
    assert fit_switch(np.empty(0), no[:0], no[:0], no[:0]) == np.inf


def test_categories_do_not_switch_where_hidden_damage_would_get_worse():
    odds = np.arange(6.0, 0.0, -1.0)
    good = np.array([True, False, True, True, True, True])
    hard = np.array([False, True, False, False, False, False])
    no = np.zeros(6, dtype=bool)
    assert fit_switch(odds, good, ~good, no) == 1.0
    assert fit_switch(odds, good, ~good, hard) == 6.0  # the second change harms a hard cell


def test_an_interval_holds_the_observed_value_up_to_a_score_and_reaches_by_how_the_cell_was_changed():
    stretch = np.arange(1.0, 21.0).reshape(4, 5)
    doubt = np.array([2.0, 2.0, 2.0, 2.0, 9.0])
    repairer = Repairer(np.zeros(1), np.zeros((1, 1)), np.inf, np.array([2.0]), stretch, doubt)
    scores, loss = np.array([1.0, 3.0, 3.0, 1.0, 1.0]), np.array([0, 0, 4, 1, 1])
    absurd = np.arange(5) == 3
    offer = offers(scores, 3.0, absurd=absurd, beyond=5.0 * absurd)
    doubted = repairer.doubted(offer, np.ones((5, 1)), loss)
    assert doubted[:, 0].tolist() == [True, False, True, False, True]
    missing = np.arange(5)[:, None] == 4
    assert repairer.widths(offer, missing, doubted, loss)[:, 0].tolist() == [22.0, 12.0, 30.0, 34.0, 4.0]


def test_a_model_without_doubts_holds_the_observed_value_of_half_moves():
    repairer = Repairer(np.zeros(1), np.zeros((1, 1)), np.inf, np.array([2.0]))
    repairer.check_state()
    gain, loss = np.array([[0.5], [0.95]]), np.array([0, 3])
    offer = offers(np.array([9.0, 0.0]), 3.0)
    doubted = repairer.doubted(offer, gain, loss)
    assert doubted[:, 0].tolist() == [True, False]
    assert repairer.widths(offer, gain < 0, doubted, loss).tolist() == [[2.0], [2.0]]


def test_intervals_of_a_model_file_have_a_column_per_class_of_loss(rng):
    repairer = learnt(rng.normal(size=100), np.ones(100), np.ones(100))
    with pytest.raises(ModelFileError, match=r"shapes \(3, 5\) and \(0,\)"):
        replace(repairer, stretch=np.ones((3, 5))).check_state()
    with pytest.raises(ModelFileError, match=r"shapes \(4, 5\) and \(2,\)"):
        replace(repairer, doubt=np.ones(2)).check_state()


def test_p_values_are_uniform_on_exchangeable_scores(rng):
    calibration = np.sort(rng.normal(size=999))
    p = conformal_p_values(rng.normal(size=4000), calibration)
    assert (p <= 0.05).mean() == pytest.approx(0.05, abs=0.02)
    assert p.min() >= 1 / 1000


def test_threshold_of_best_f1(rng):
    truth = rng.random(3000) < 0.3
    scores = truth * 4.0 + rng.normal(size=3000)
    assert best_threshold(scores, truth) == pytest.approx(2.2, abs=0.5)
    assert best_threshold(scores, np.zeros(3000, dtype=bool)) == 0.0
