from __future__ import annotations

import warnings
from copy import copy
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.utils.estimator_checks import parametrize_with_checks

from goldseam.errors import CalibrationWarning, InputError, MissingColumnError, ModelFileError, ParameterError
from goldseam.model_file import load, save
from goldseam.separation import AttributeTree, CorruptionSeparator

pytestmark = pytest.mark.filterwarnings("ignore::goldseam.errors.CalibrationWarning")


@parametrize_with_checks(
    [
        CorruptionSeparator(),
        CorruptionSeparator(ranked_fraction=0.5, refine="residuals", calibration="recursion", imputer="context-medoid"),
        CorruptionSeparator(rule="paper", scores="paper", refine=False, imputer="sibling-map", node_alarm_rate=0.05),
    ]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def waves(rng, n, d=32):
    return np.sin(np.arange(d) / 4 + rng.uniform(0, 6, (n, 1))) + 0.05 * rng.normal(size=(n, d))


def damaged(rng, n, d=32):
    clean = waves(rng, n, d)
    rows, mask = clean.copy(), np.zeros((n, d), dtype=bool)
    for i in range(0, n, 2):
        start = rng.integers(0, d - 8)
        mask[i, start : start + 8] = True
    rows[mask] = rng.uniform(-1, 1, mask.sum())
    return clean, rows, mask


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(42)
    return CorruptionSeparator(alarm_rate=0.1).fit(waves(rng, 600)), *damaged(rng, 200)


def test_finds_and_mends_runs(fitted):
    separator, clean, rows, mask = fitted
    result = separator.restore(rows)
    hit = mask.any(axis=1)
    assert result.flagged[hit].mean() > 0.95
    assert result.flagged[~hit].mean() < 0.2
    overlap = 2 * (result.cells & mask).sum() / (result.cells.sum() + mask.sum())
    assert overlap > 0.9
    before, after = (rows - clean)[hit], (result.table - clean)[hit]
    assert (after**2).sum() < 0.1 * (before**2).sum()


def test_cells_not_believed_are_the_only_ones_changed(fitted):
    separator, _, rows, _ = fitted
    result = separator.restore(rows)
    np.testing.assert_array_equal(result.table != rows, result.cells)
    np.testing.assert_array_equal(separator.separate(rows), result.cells)
    np.testing.assert_array_equal(separator.transform(rows), result.table)
    scaled = (result.table - rows) / separator.model_.reference.scale
    np.testing.assert_allclose(result.change, np.sqrt((scaled**2).sum(axis=1)))
    assert ((result.probability > 0.5) == result.cells).all()


def test_decisions_agree_with_each_other(fitted):
    separator, _, rows, _ = fitted
    result = separator.restore(rows)
    np.testing.assert_array_equal(separator.predict(rows) == -1, result.flagged)
    np.testing.assert_array_equal(separator.decision_function(rows) < 0, result.flagged)
    np.testing.assert_array_equal(separator.score_samples(rows) < separator.offset_, result.flagged)
    assert separator.p_values(rows)[result.flagged].max() <= separator.alarm_rate
    assert separator.node_p_values(rows).shape == (200, separator.model_.reference.tree.n_nodes)


@pytest.mark.parametrize(
    "settings_",
    [
        {"refine": "residuals"},
        {"refine": False},
        {"rule": "paper"},
        {"rule": "paper", "refine": False, "scores": "counted"},
        {"ranked_fraction": 0.5},
        {"calibration": "recursion", "alarm_rate": 0.3},
        {"node_alarm_rate": 0.01},
        {"imputer": "context-medoid"},
        {"imputer": "context-regression"},
        {"refine": False, "imputer": "sibling-nearest"},
        {"tree": (4, 8)},
        {"tree": AttributeTree.grid((2, 4, 4)).coarsened(2)},
        {"tree": "clustered"},
    ],
    ids=str,
)
def test_every_mode_finds_most_and_is_consistent(settings_):
    rng = np.random.default_rng(1)
    separator = CorruptionSeparator(**{"alarm_rate": 0.1, **settings_}).fit(waves(rng, 400))
    _, rows, mask = damaged(rng, 80)
    result = separator.restore(rows)
    assert result.flagged[mask.any(axis=1)].mean() > 0.5
    assert (result.cells & mask).sum() > 0.3 * mask.sum()
    np.testing.assert_array_equal(separator.predict(rows) == -1, result.flagged)
    np.testing.assert_array_equal(separator.decision_function(rows) < 0, result.flagged)
    parts = np.concatenate([separator.transform(rows[i : i + 1]) for i in range(len(rows))])
    np.testing.assert_array_equal(parts, result.table)


@settings(max_examples=15)
@given(st.randoms(use_true_random=False), st.sampled_from([1, 2, -1]), st.lists(st.integers(0, 200), max_size=4))
def test_any_order_split_and_number_of_threads_gives_the_same_bits(fitted, random, n_jobs, cuts):
    separator, _, rows, _ = fitted
    whole = separator.restore(rows)
    order = list(range(len(rows)))
    random.shuffle(order)
    other = clone(separator).set_params(n_jobs=n_jobs)
    other.__dict__.update({name: value for name, value in vars(separator).items() if name.endswith("_")})
    edges = sorted({0, *cuts, len(rows)})
    parts = [other.restore(rows[order[a:b]]) for a, b in pairwise(edges)]
    for name in ("table", "cells", "probability", "levels", "p_values", "donors", "change"):
        together = np.concatenate([getattr(part, name) for part in parts])
        np.testing.assert_array_equal(together, getattr(whole, name)[order])


def test_a_row_does_not_vouch_for_itself():
    rng = np.random.default_rng(0)
    X = waves(rng, 300)
    X[7, 4:14] = rng.uniform(-1, 1, 10)
    separator = CorruptionSeparator(alarm_rate=0.1, n_neighbors=1)
    leaked = separator.fit(X).transform(X)
    np.testing.assert_array_equal(leaked[7], X[7])  # its own row is at distance nil
    assert 7 in separator.reference_rows_
    assert (separator.fit_transform(X)[7] != X[7]).any()


def test_missing_cells_are_filled_and_do_not_count_as_damage(fitted):
    separator, clean, _, _ = fitted
    rows = clean.copy()
    rows[:, 10:14] = np.nan
    result = separator.restore(rows)
    assert not np.isnan(result.table).any()
    assert not result.cells[:, 10:14].any()
    assert result.flagged.mean() < 0.25
    assert np.abs(result.table[:, 10:14] - clean[:, 10:14]).mean() < 0.15


@pytest.mark.parametrize("scores", ["continuous", "counted", "paper"])
def test_a_node_without_an_observed_cell_is_normal(scores):
    X = waves(np.random.default_rng(18), 100)
    row = X[:1] + 5.0
    row[0, :8] = np.nan
    separator = CorruptionSeparator(scores=scores, alarm_rate=0.2).fit(X)
    tree, p = separator.model_.reference.tree, separator.node_p_values(row)[0]
    empty = np.array([np.isnan(row[0, tree.columns(node)]).all() for node in range(tree.n_nodes)])
    assert empty.sum() == 3
    assert (p[empty] == 1.0).all()
    assert (p[~empty] < 0.05).all()


def test_reference_with_gaps():
    rng = np.random.default_rng(3)
    X = waves(rng, 500)
    X[rng.random(X.shape) < 0.05] = np.nan
    separator = CorruptionSeparator(alarm_rate=0.1).fit(X)
    clean, rows, mask = damaged(rng, 100)
    result = separator.restore(rows)
    assert result.flagged[mask.any(axis=1)].mean() > 0.9
    assert (result.table[mask] - clean[mask]).std() < 0.3


def test_refuses_when_too_little_is_left(fitted):
    separator, clean, _, _ = fitted
    rows = clean[:2].copy()
    rows[0, 1:] = np.nan
    result = separator.restore(rows)
    assert result.refused.tolist() == [True, False]
    np.testing.assert_array_equal(result.table[0], rows[0])


def mixed(rng, n):
    kind = rng.integers(0, 3, n)
    frame = pd.DataFrame(
        {
            "colour": np.array(["red", "green", "blue"])[kind],
            "size": kind * 3 + rng.normal(size=n) * 0.2,
            "weight": kind * -2 + rng.normal(size=n) * 0.2,
            "shape": np.array(["round", "square", "flat"])[kind],
            "count": kind * 10 + rng.integers(0, 3, n),
            "place": np.array(["n", "s", "w"])[kind],
            "when": pd.date_range("2020-01-01", periods=n),
            "depth": kind + rng.normal(size=n) * 0.1,
        }
    )
    return frame, kind


def test_mixed_table_keeps_its_types():
    rng = np.random.default_rng(5)
    separator = CorruptionSeparator(alarm_rate=0.1).fit(mixed(rng, 500)[0])
    rows, kind = mixed(rng, 60)
    broken = rows.copy()
    broken.loc[3, ["colour", "size", "weight", "shape"]] = [
        rows.colour[4] if kind[4] != kind[3] else "red",
        40.0,
        9.0,
        "flat",
    ]
    result = separator.restore(broken)
    assert result.flagged[3]
    assert result.cells[3].sum() >= 2
    assert not result.cells[:, 6].any()  # dates pass through
    pd.testing.assert_series_equal(result.table.dtypes, rows.dtypes)
    assert result.table["when"].equals(rows["when"])
    assert abs(result.table.loc[3, "size"] - rows.loc[3, "size"]) < 1.5
    again = separator.restore(pl.from_pandas(broken))
    assert isinstance(again.table, pl.DataFrame)
    np.testing.assert_array_equal(again.cells, result.cells)


def test_groups_by_column_name():
    rng = np.random.default_rng(6)
    frame = pd.DataFrame(waves(rng, 300, 8), columns=list("abcdefgh"))
    tree = AttributeTree.groups([["a", "c", "e", "g"], ["b", "d", "f", "h"]])
    separator = CorruptionSeparator(tree).fit(frame)
    assert separator.model_.reference.tree.columns(1).tolist() == [0, 2, 4, 6]
    with pytest.raises(MissingColumnError, match="'h'"):
        CorruptionSeparator(tree).fit(frame.rename(columns={"h": "z"}))


def test_explanation_names_nodes_cells_and_donors(fitted):
    separator, _, rows, mask = fitted
    i = int(np.flatnonzero(mask.any(axis=1) & (separator.predict(rows) == -1))[0])
    why = separator.explain(rows[i])
    assert why.flagged
    assert why.decided_by is not None
    assert why.decided_by.pattern[0] == "1" or why.decided_by.pattern == "leaf 1"
    assert set(why.columns) == {f"x{j}" for j in np.flatnonzero(separator.separate(rows[i : i + 1])[0])}
    assert len(why.donors) == 10
    assert why.p_value == separator.p_values(rows[i : i + 1])[0]
    assert "flagged: level" in str(why)
    with pytest.raises(InputError, match="exactly 1 row, got 2"):
        separator.explain(rows[:2])


def test_fitted_imputers_see_holes(fitted):
    _, _, rows, _ = fitted
    rng = np.random.default_rng(8)
    X = waves(rng, 400)
    separator = CorruptionSeparator(alarm_rate=0.1, imputer=SimpleImputer().fit(X)).fit(X)
    result = separator.restore(rows)
    i, j = np.argwhere(result.cells)[0]
    assert result.table[i, j] == pytest.approx(X[:, j].mean())
    near = CorruptionSeparator(alarm_rate=0.1, imputer=KNNImputer(n_neighbors=10).fit(X)).fit(X)
    np.testing.assert_array_equal(near.transform(rows[:30]), near.transform(rows)[:30])


def test_evidence_for_other_sources(fitted):
    separator, _, rows, mask = fitted
    evidence = separator.evidence(rows)
    assert evidence.cell_levels.shape == rows.shape
    np.testing.assert_array_equal(evidence.cell_levels.min(axis=1), evidence.row_level)
    assert evidence.probability[mask].mean() > 0.8 > 0.1 > evidence.probability[~mask].mean()
    hit = mask.any(axis=1)
    assert np.median(evidence.segment_evidence[hit]) > np.quantile(evidence.segment_evidence[~hit], 0.9)


def test_trust_leaves_bad_reference_rows_out():
    rng = np.random.default_rng(9)
    _, dirty, mask = damaged(rng, 600)
    trust = np.where(mask.any(axis=1), 0.1, 0.9)
    separator = CorruptionSeparator(alarm_rate=0.1).fit(dirty, trust=trust)
    assert not mask[separator.reference_rows_].any()
    _, rows, hit = damaged(rng, 200)
    found = separator.predict(rows) == -1
    assert found[hit.any(axis=1)].mean() > 0.9
    with pytest.raises(InputError, match=r"trust must be 600 numbers in \[0, 1\]"):
        CorruptionSeparator().fit(dirty, trust=trust * 2)


def test_own_calibration_rows_and_cap_on_the_reference():
    rng = np.random.default_rng(10)
    X = waves(rng, 300)
    separator = CorruptionSeparator(max_reference=120, alarm_rate=0.1).fit(X, clean_rows=waves(rng, 99))
    assert len(separator.reference_rows_) == 120
    assert len(separator.calibration_rows_) == 0
    assert len(separator.calibration_.levels) == 99


def test_same_seed_same_model():
    X = waves(np.random.default_rng(11), 200)
    a, b, c = (CorruptionSeparator(random_state=seed).fit(X) for seed in (0, 0, 1))
    np.testing.assert_array_equal(a.reference_rows_, b.reference_rows_)
    assert a.offset_ == b.offset_
    assert not np.array_equal(a.reference_rows_, c.reference_rows_)


def test_constant_column_is_divided_by_one():
    rng = np.random.default_rng(12)
    X = np.c_[waves(rng, 300, 8), np.full(300, 5.0), waves(rng, 300, 7)]
    separator = CorruptionSeparator().fit(X)
    assert separator.model_.reference.scale[8] == 1.0
    row = X[:1].copy()
    row[0, 8] = 5.0 + 1e-9
    assert abs(separator.transform(row)[0, 8] - 5) < 1e-6


@pytest.mark.parametrize(
    ("settings_", "message"),
    [
        ({"ranked_fraction": 0.0}, r"ranked_fraction must be in \(0, 1\], got 0.0"),
        ({"ranked_fraction": 1.5}, r"ranked_fraction must be in \(0, 1\], got 1.5"),
        ({"ranked_fraction": (1.0, 0.0)}, r"ranked_fraction must be in \(0, 1\], got 0.0"),
        ({"ranked_fraction": ()}, "several of them, got none"),
        ({"alarm_rate": 0.0}, r"alarm_rate must be in \(0, 1\), got 0.0"),
        ({"n_neighbors": 60}, r"n_neighbors must be below the number of reference rows \(40, n_samples=60\), got 60"),
        ({"n_neighbors": 0}, "n_neighbors must be at least 1, got 0"),
        ({"tree": (4, 9)}, r"36 columns \(grid 4x9\).*32"),
        ({"tree": AttributeTree.interval(31)}, "31 columns.*32 modelled columns"),
        ({"leaf_size": 32}, "no split: leaf_size=32"),
        ({"rule": "papr"}, "rule must be one of.*got 'papr'"),
        ({"imputer": "mean"}, "imputer must be one of.*got 'mean'"),
        ({"imputer": "sibling-map"}, "needs refine=False; got refine=True"),
        (
            {"imputer": "sibling-map", "refine": False, "tree": AttributeTree.interval(32, arity=3)},
            "needs a binary tree",
        ),
        ({"node_alarm_rate": -0.1}, r"node_alarm_rate must be in \[0, 1\), got -0.1"),
        ({"tree": "grid"}, "got 'grid'"),
    ],
)
def test_bad_settings_say_what_and_how_much(settings_, message):
    X = waves(np.random.default_rng(13), 60)
    with pytest.raises(ParameterError, match=message):
        CorruptionSeparator(**settings_).fit(X)


def test_bad_tables_say_what_and_where():
    rng = np.random.default_rng(14)
    X = waves(rng, 60)
    with pytest.raises(InputError, match="at least 10 rows, got n_samples=9"):
        CorruptionSeparator().fit(X[:9])
    blank = X.copy()
    blank[:, 4] = np.nan
    with pytest.raises(InputError, match="'x4' is missing in all"):
        CorruptionSeparator().fit(blank)
    blank = X.copy()
    blank[17] = np.nan
    with pytest.raises(InputError, match="Row 17 has no observed cell"):
        CorruptionSeparator().fit(blank)
    separator = CorruptionSeparator(alarm_rate=0.2).fit(X)
    with pytest.raises(InputError, match="Row 17 has no observed cell"):
        separator.predict(blank)
    blank[17] = np.inf
    with pytest.raises(InputError, match="inf"):
        separator.predict(blank)
    with pytest.raises(ValueError, match="32 features"):
        separator.predict(X[:, :5])


def test_warns_with_numbers_when_the_rate_cannot_be_reached():
    X = waves(np.random.default_rng(15), 60)
    with pytest.warns(
        CalibrationWarning, match=r"alarm_rate=0.01 .* 20 calibration rows against 40 reference rows.*at least 99"
    ):
        separator = CorruptionSeparator(alarm_rate=0.01).fit(X)
    assert (separator.predict(X) == 1).all()
    with pytest.warns(CalibrationWarning, match="node_alarm_rate=0.001 is below the smallest score 0.016"):
        CorruptionSeparator(node_alarm_rate=0.001, scores="counted", refine=False).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CorruptionSeparator(alarm_rate=0.1).fit(X)


def test_paper_score_flags_at_level_nil_where_the_product_form_cannot():
    rng = np.random.default_rng(16)
    X, (_, rows, _) = waves(rng, 100), damaged(rng, 40)
    common = {"rule": "paper", "refine": False, "node_alarm_rate": 0.0}
    paper = CorruptionSeparator(scores="paper", **common).fit(X)
    product = CorruptionSeparator(scores="counted", **common).fit(X)
    assert (paper.predict(rows) == -1).any()
    assert (product.predict(rows) == 1).all()


@pytest.mark.parametrize(
    ("part", "change", "message"),
    [
        ("segments", {"block": np.full(32, 99)}, "grid cells leads outside: 99"),
        ("segments", {"spread": np.ones(3)}, r"shape \(32,\); got \(3,\)"),
        ("regression", {"precision": np.eye(4)}, r"shape \(32, 32\); got \(4, 4\)"),
        ("reference", {"scale": np.ones(5)}, "32 columns in rows, centre, scale and kinds"),
        ("members", {"above": np.ones((2, 2))}, r"got \(2, 2\)"),
    ],
)
def test_files_whose_parts_do_not_belong_together_are_refused(fitted, tmp_path, part, change, message):
    separator = fitted[0]
    broken = replace(getattr(separator.model_, part), **change)
    hostile = copy(separator)
    hostile.model_ = replace(separator.model_, **{part: broken})
    save(hostile, tmp_path / "hostile.seam")
    with pytest.raises(ModelFileError, match=message):
        load(tmp_path / "hostile.seam")
    save(separator, tmp_path / "sound.seam")
    _, _, rows, _ = fitted
    np.testing.assert_array_equal(load(tmp_path / "sound.seam").transform(rows), separator.transform(rows))


def test_of_several_ranked_fractions_the_rarest_score_counts(fitted, tmp_path):
    _, _, rows, _ = fitted
    X = waves(np.random.default_rng(17), 300)
    both = CorruptionSeparator(ranked_fraction=(1.0, 0.5), alarm_rate=0.1).fit(X)
    single = [CorruptionSeparator(ranked_fraction=a, alarm_rate=0.1).fit(X).node_p_values(rows) for a in (1.0, 0.5)]
    np.testing.assert_allclose(both.node_p_values(rows), np.minimum(*single), rtol=1e-6)  # what (S-30) may change
    save(both, tmp_path / "both.seam")
    np.testing.assert_array_equal(load(tmp_path / "both.seam").separate(rows), both.separate(rows))
    assert both.calibration_.rate <= 0.1
