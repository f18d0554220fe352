"""A reference that may hold damaged rows: what the rows make of each other, and ranks that allow for what remains."""

import numpy as np
import pytest

from goldseam.contamination import judge_each_other
from goldseam.evidence import Prior, fit_evidence
from goldseam.evidence.doubt import as_many_as_clean, damage_probabilities, damaged_share, offset
from goldseam.schema import Blocks, Column, Kind, Schema

SCHEMA = Schema(tuple(Column(f"x{j}", Kind.CONTINUOUS) for j in range(6)))


def draw(rng, n):
    numbers = rng.normal(size=(n, 1)) + 0.5 * rng.normal(size=(n, 6))
    return Blocks(numbers, np.empty((n, 0), dtype=np.int32))


def spoilt(rng, n, share):
    """Rows of which a share has one cell drawn anew from its range, and which those are."""
    blocks = draw(rng, n)
    hit = rng.permutation(n) < round(share * n)
    rows = np.flatnonzero(hit)
    blocks.numbers[rows, rng.integers(6, size=rows.size)] = rng.uniform(-3.5, 3.5, rows.size)
    return blocks, hit


def gaussian_scores(rng, n, share, shift=2.5):
    """Log likelihood ratios N(shift, 1) : N(0, 1), less a constant."""
    hit = rng.random(n) < share
    x = rng.normal(size=n) + shift * hit
    return shift * x - shift**2 / 2 - 0.7, hit


def test_the_offset_is_what_scores_lack():
    rng = np.random.default_rng(0)
    rehearsed, _ = gaussian_scores(rng, 200_000, 1.0)
    assert offset(rehearsed) == pytest.approx(0.7, abs=0.05)
    assert offset(np.empty(0)) == 0.0


@pytest.mark.parametrize("share", [0.0, 0.1, 0.2])
def test_the_share_is_near_the_truth_and_seldom_above(share):
    rng = np.random.default_rng(1)
    found = [damaged_share(gaussian_scores(rng, 1000, share)[0] + 0.7) for _ in range(40)]
    assert np.mean(np.array(found) > share + 0.002) <= 0.1
    assert np.mean(found) >= 0.65 * share  # about two standard deviations of 0.0125 are taken off


def test_ranks_among_the_kept_rows_are_those_of_clean_rows():
    rng = np.random.default_rng(2)
    scores, hit = gaussian_scores(rng, 20_000, 0.1)
    kept = as_many_as_clean(scores, damage_probabilities(scores + 0.7, 0.1))
    for rate in (0.01, 0.05, 0.1):
        above = np.quantile(scores[kept], 1 - rate)
        assert np.mean(scores[~hit] > above) == pytest.approx(rate, rel=0.15)
        assert np.mean(scores[~hit] > np.quantile(scores, 1 - rate)) < 0.5 * rate  # not without


def test_all_rows_are_kept_when_none_is_damaged():
    scores = np.random.default_rng(3).normal(size=1000)
    assert as_many_as_clean(scores, damage_probabilities(scores, 0.0)).all()


def test_rows_judge_each_other():
    blocks, hit = spoilt(np.random.default_rng(4), 800, 0.1)
    belief = judge_each_other(blocks, SCHEMA, Prior(), np.random.default_rng(4))
    assert belief.trust[hit].mean() < belief.trust[~hit].mean() - 0.3
    assert belief.used[~hit].mean() > 0.995
    assert belief.sure[~hit].mean() > 0.97
    left = hit[belief.used].mean()
    assert 0.25 * left < belief.damaged < 1.3 * left


def test_a_clean_reference_is_hardly_distrusted():
    blocks, _ = spoilt(np.random.default_rng(5), 800, 0.0)
    belief = judge_each_other(blocks, SCHEMA, Prior(), np.random.default_rng(5))
    assert belief.damaged < 0.02
    assert belief.sure.mean() > 0.98


def test_few_rows_can_judge_each_other():
    belief = judge_each_other(draw(np.random.default_rng(6), 24), SCHEMA, Prior(), np.random.default_rng(6))
    assert belief.trust.shape == (24,)


def test_ranks_allow_for_damaged_calibration_rows():
    rng = np.random.default_rng(7)
    calibration, _ = spoilt(rng, 600, 0.1)
    reference, clean = draw(rng, 800), draw(rng, 3000)
    alarms = [
        fit_evidence(
            reference, calibration, SCHEMA, boosted=False, damaged=share, rng=np.random.default_rng(7)
        ).judge(clean).flagged.mean()
        for share in (0.0, 0.1)
    ]  # fmt: skip
    assert alarms[0] < 0.03
    assert 0.03 < alarms[1] < 0.07
