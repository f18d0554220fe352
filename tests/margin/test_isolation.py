import math

import numpy as np
import pytest

from goldseam.margin import GEMMEDClassifier
from goldseam.margin.isolation import SECOND, _second_population, _upper_limit, learn_isolation
from goldseam.model_file import load, save
from tests.reference.margin_isolation import second_population, upper_limit


def test_limit_lies_in_the_first_gap_that_is_wide_enough():
    # 16 values, quartiles 3.75 and 11.25, so a gap of 3.75 or more; the tail before it is 4 values over 4 units, r = 3:
    # scale 4 / log(1 + 4 / 3) = 4.72, times log(16) / 3 = 4.36
    column = np.array([*range(13), 16.3, 30.0, 31.0])
    assert _upper_limit(column) == (16.3 + 30.0) / 2
    column[13] = 16.4
    assert _upper_limit(column) == (12 + 16.4) / 2
    assert -_upper_limit(-column) == -math.inf


def test_limits_equal_the_written_rule(rng):
    for n in (3, 4, 5, 30, 171):
        for shape in (
            rng.normal(size=n),
            rng.standard_t(2, n),
            rng.uniform(size=n),
            rng.integers(0, 5, n).astype(float),
        ):
            far = np.where(rng.random(n) < 0.1, shape + rng.uniform(1, 6, n), shape)
            assert _upper_limit(far) == pytest.approx(upper_limit(far))


def test_a_column_without_spread_and_missing_cells(rng):
    assert _upper_limit(np.r_[np.zeros(30), 5.0, 9.0]) == math.inf
    column = rng.normal(size=100)
    assert _upper_limit(np.r_[column, np.full(40, np.nan), 50.0]) == _upper_limit(np.r_[column, 50.0])
    rows = rng.uniform(size=(80, 6))
    rows[:10] += 7
    found = learn_isolation(rows, np.zeros(80, dtype=np.int64), np.array([True]))
    gappy = rows[:10].copy()
    gappy[:, :2] = np.nan
    np.testing.assert_array_equal(found.evidence(rows[:10]), 5)
    np.testing.assert_array_equal(found.evidence(gappy), 3)


def test_second_population_equals_all_chords(rng):
    for _ in range(40):
        evidence = np.r_[rng.geometric(0.5, 60) - 1, rng.integers(3, 12, rng.integers(0, 30))].astype(float)
        assert _second_population(evidence) == second_population(evidence, SECOND)


def test_one_population_of_counts_seldom_looks_like_two(rng):
    assert np.mean([_second_population(rng.geometric(0.15, 60) - 1.0) < math.inf for _ in range(400)]) < 0.1


def test_clean_rows_of_many_shapes_are_left_alone(rng):
    for rows in (rng.normal(size=(150, 25)), rng.exponential(size=(150, 25)), rng.standard_t(3, (150, 25))):
        found = learn_isolation(rows, np.arange(150) % 2, np.array([True, True]))
        assert np.all(found.scores(rows) >= 0)


def test_a_class_that_lies_apart_as_a_whole_is_believed(rng):
    rows, codes = rng.uniform(size=(300, 8)), (np.arange(300) < 40).astype(np.int64)
    rows[:40] += 5
    found = learn_isolation(rows, codes, np.array([True, True]))
    assert found.evidence(rows)[:40].min() == 7
    assert found.cuts[1] == math.inf
    assert found.scores(rows)[1].min() > 0


def test_small_classes_learn_from_all_rows_and_parted_ones_stay(rng):
    rows, codes = rng.uniform(size=(330, 12)), np.repeat([0, 1], [300, 30])
    failed = np.r_[0:60, 300:309]
    rows[failed, 4:] = rng.uniform(1.6, 4.0, size=(69, 1))
    both = learn_isolation(rows, codes, np.array([True, True]))
    assert np.flatnonzero(both.scores(rows)[codes, np.arange(330)] < 0).tolist() == failed.tolist()
    one = learn_isolation(rows, codes, np.array([False, True]))
    assert np.isinf(one.cuts).tolist() == [True, False]


def test_isolation_is_stored_with_the_model(rng, tmp_path):
    loudness = np.exp(rng.normal(0, 0.5, size=(300, 1)))
    X, y = np.clip(0.5 * loudness * rng.normal(size=(300, 20)), -1, 1), np.arange(300) % 2
    X[:60, 12:] = rng.uniform(1.5, 3.0, size=(60, 1))
    model = GEMMEDClassifier(random_state=0).fit(X, y)
    assert np.isfinite(model._fields.isolation.cuts).all()
    save(model, tmp_path / "model.seam")
    np.testing.assert_array_equal(load(tmp_path / "model.seam").trust(X), model.trust(X))
