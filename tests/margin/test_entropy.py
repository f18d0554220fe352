import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from goldseam.margin import entropy, thresholds
from goldseam.margin.entropy import EuclideanRows, GramRows, Neighbourhood, neighbour_sums
from tests.reference.margin_entropy import auto_rule, hump, sums_by_sorting


def test_sums_of_three_points_on_a_line():
    rows = np.array([[0.0], [1.0], [3.0]])
    assert neighbour_sums(rows, Neighbourhood.of(rows), 1, own=np.arange(3)).tolist() == [1.0, 1.0, 2.0]


@pytest.mark.parametrize("k", [2, 7, 39])
@pytest.mark.parametrize("share_missing", [0.0, 0.3])
def test_sums_equal_sorting(rng, k, share_missing):
    rows = rng.normal(size=(40, 5))
    rows[rng.random(rows.shape) < share_missing] = np.nan
    fast = EuclideanRows(rows).sums(np.arange(40), np.arange(40), k)
    slow = sums_by_sorting(rows, rows, k, [{i} for i in range(40)])
    np.testing.assert_allclose(fast, slow, rtol=1e-12)


def test_rows_without_shared_column_are_no_neighbours():
    rows = np.array([[1.0, np.nan], [np.nan, 1.0], [2.0, np.nan], [4.0, np.nan]])
    sums = neighbour_sums(rows, Neighbourhood.of(rows), 2, own=np.arange(4))
    assert np.isinf(sums[1])
    assert sums[0] == pytest.approx((1 + 3) * np.sqrt(2))


def test_rows_of_one_group_are_no_neighbours(rng):
    rows, groups = rng.normal(size=(30, 3)), np.repeat(np.arange(10), 3)
    fast = EuclideanRows(rows, groups).sums(np.arange(30), np.arange(30), 5)
    slow = sums_by_sorting(rows, rows, 5, [set(np.flatnonzero(groups == g)) for g in groups])
    np.testing.assert_allclose(fast, slow, rtol=1e-12)


@given(arrays(np.float64, (25, 2), elements=st.integers(-3, 3).map(float)), st.integers(1, 24))
def test_sums_with_ties_equal_sorting(rows, k):
    fast = EuclideanRows(rows).sums(np.arange(25), np.arange(25), k)
    np.testing.assert_allclose(fast, sums_by_sorting(rows, rows, k, [{i} for i in range(25)]), rtol=1e-12)


def test_sums_from_a_kernel_matrix_equal_sums_from_rows(rng):
    rows = rng.normal(size=(30, 4))
    which, reference = np.arange(10, 30), np.arange(0, 25)
    np.testing.assert_allclose(
        GramRows(rows @ rows.T).sums(which, reference, 6), EuclideanRows(rows).sums(which, reference, 6), rtol=1e-9
    )


def test_bits_do_not_depend_on_batch_or_threads(rng):
    rows, reference = rng.normal(size=(5000, 3)), Neighbourhood.of(rng.normal(size=(300, 3)))
    whole = neighbour_sums(rows, reference, 40, n_jobs=2)
    parts = np.concatenate([neighbour_sums(rows[i : i + 1], reference, 40) for i in range(0, 5000, 97)])
    assert np.array_equal(whole[::97], parts)


def test_too_few_reference_rows_give_infinity(rng):
    assert np.isinf(neighbour_sums(rng.normal(size=(2, 2)), Neighbourhood.of(rng.normal(size=(3, 2))), 4)).all()


def test_bipartite_looks_across_the_split_only(rng):
    rows = np.array([[0.0], [1.0], [10.0], [12.0]])
    sums, sizes = entropy.bipartite_sums(EuclideanRows(rows), np.arange(4), 2, rng)
    halves = {frozenset(pair) for pair in ((0, 1), (0, 2), (0, 3))}
    expected = {
        half: [sum(abs(rows[i, 0] - rows[j, 0]) for j in range(4) if (j in half) != (i in half)) for i in range(4)]
        for half in halves
    }
    assert sums.tolist() in expected.values()
    assert sizes.tolist() == [2, 2, 2, 2]


def test_distinct_rows_ignore_order_sign_of_zero_and_kind_of_nan(rng):
    rows = np.array([[0.0, np.nan], [-0.0, np.nan], [1.0, 2.0], [1.0, 2.0], [2.0, 1.0]])
    found = entropy.distinct_rows(rows)
    assert len(found.first) == 3
    assert np.array_equal(found.inverse[[0, 2]], found.inverse[[1, 3]])
    order = rng.permutation(5)
    again = entropy.distinct_rows(rows[order])
    np.testing.assert_array_equal(rows[found.first] + 0.0, rows[order][again.first] + 0.0)


def test_distinct_rows_survive_a_bad_hash(monkeypatch):
    monkeypatch.setattr(entropy, "_hash", lambda bits, seed: np.zeros(len(bits), dtype=np.uint64))
    found = entropy.distinct_rows(np.array([[1.0], [2.0], [1.0]]))
    assert len(found.first) == 2
    assert found.inverse[0] == found.inverse[2] != found.inverse[1]


def test_zero_sums_are_raised_to_half_the_smallest():
    ell, floor = entropy.log_sums(np.array([0.0, 4.0, 2.0]))
    assert floor == 1.0
    np.testing.assert_allclose(ell, np.log([1.0, 4.0, 2.0]))


def test_entropy_constant_of_the_plane():
    # d = 2: c_d = pi; (k - 1) / (M pi) with k = 5, M = 50
    assert entropy.entropy_offset(5, np.array([50]), 2.0)[0] == pytest.approx(np.log(4 / (50 * np.pi)))


@pytest.mark.parametrize("n", [5, 6, 17, 100, 101])
def test_auto_rule_equals_the_written_rule(rng, n):
    for _ in range(60):
        ell = np.concatenate([rng.normal(size=n - n // 4), rng.normal(rng.uniform(0, 8), 1, n // 4)])
        assert thresholds.auto_kept(np.sort(ell)) == auto_rule(ell)


def test_a_meaningless_gap_costs_a_twentieth_at_most(rng):
    two_clusters = np.sort(np.concatenate([rng.normal(0, 1, 60), rng.normal(2.2, 0.5, 40)]))
    assert thresholds.auto_kept(two_clusters) >= 95
    apart = np.sort(np.concatenate([rng.normal(0, 1, 60), rng.normal(9.0, 0.5, 40)]))
    assert thresholds.auto_kept(apart) == 60


def test_hump_statistic_equals_all_chords(rng):
    for n in (3, 10, 30):
        values = np.sort(rng.normal(size=n))
        assert thresholds.hump_statistic(values) == pytest.approx(hump(values), abs=1e-12)


def test_one_population_seldom_has_a_second_hump(rng):
    humps = [thresholds.hump_statistic(np.sort(rng.normal(size=100))[40:]) for _ in range(400)]
    assert np.mean(np.array(humps) >= thresholds.HUMP) < 0.1


def test_failures_at_several_distances_are_all_cut_off(rng):
    """Clumps of failures leave wide gaps among themselves: the widest gap alone would keep most of them."""
    clumps = [rng.normal(centre, 0.05, 8) for centre in (5.0, 5.8, 7.0, 8.0, 12.0)]
    ell = np.sort(np.concatenate([rng.normal(0, 1, 60), *clumps]))
    assert thresholds.gap_kept(ell) == 92
    assert thresholds.auto_kept(ell) == 60


def test_gap_rule_never_looks_below_forty_percent():
    ell = np.array([0.0, 50.0, 51.0, 52.0, 53.0, 54.0, 57.0, 58.0, 59.0, 60.0])
    assert thresholds.gap_kept(ell) == 6
    assert thresholds.literal_kept(ell) == 1
    assert thresholds.literal_kept(ell, lowest=4) == 6


def test_cut_lies_in_the_gap_and_scale_has_a_floor():
    found = thresholds.cut(np.array([1.0, 1.0, 1.0, 5.0]), 3)
    assert (found.threshold, found.scale) == (3.0, thresholds.SMALLEST_SCALE)
    everything = thresholds.cut(np.array([1.0, 2.0, 3.0]), 3)
    assert everything.threshold == pytest.approx(2 + 3 * 1.4826)


def test_many_rows_use_quantiles(rng):
    ell = np.concatenate([rng.normal(size=16_000), rng.normal(20, 1, 4_000)])
    found = thresholds.find_cut(ell, "auto")
    assert 15_950 <= found.n_kept <= 16_050
    assert 3.5 < found.threshold < 17
