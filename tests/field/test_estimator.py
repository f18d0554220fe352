from __future__ import annotations

import copy
import warnings
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goldseam.errors import ConvergenceWarning, DataWarning, InputError, ParameterError
from goldseam.field import RandomMixedField, pool
from goldseam.field.levels import given_levels


def make_table(rng, n_rows=200):
    kind = rng.choice(["a", "b", "c"], n_rows, p=[0.5, 0.3, 0.2])
    level = np.select([kind == "a", kind == "b"], [0.0, 2.0], 4.0)
    size = np.round(level + rng.normal(size=n_rows) * 0.5, 1)
    return pd.DataFrame(
        {
            "size": size,
            "kind": kind,
            "count": (10 + 5 * level + rng.integers(0, 6, n_rows)).astype(np.int64),
            "flag": level + rng.normal(size=n_rows) > 1.5,
            "weight": np.round(2 * size + rng.normal(size=n_rows), 1),
        }
    )


@pytest.fixture(scope="module")
def reference():
    return make_table(np.random.default_rng(42))


@pytest.fixture(scope="module")
def field(reference):
    return RandomMixedField(penalty=0.4, random_state=0).fit(reference)


def with_gaps(table, rng, share=0.2):
    out = table.astype({"count": "Int64", "flag": "boolean"})
    for column in out.columns:
        out.loc[rng.random(len(out)) < share, column] = None
    return out


def test_gaps_are_filled_and_the_rest_is_bit_identical(field, rng):
    table = with_gaps(make_table(rng, 50), rng)
    filled = field.transform(table)
    assert not filled.isna().any().any()
    assert (filled.dtypes == table.dtypes).all()
    assert set(filled["kind"]) <= {"a", "b", "c"}
    for column in table.columns:
        seen = table[column].notna()
        pd.testing.assert_series_equal(filled.loc[seen, column], table.loc[seen, column])


def test_a_complete_table_without_noise_comes_back_the_same_to_the_bit(field, reference):
    result = field.transform(reference)
    assert result is not reference
    pd.testing.assert_frame_equal(result, reference, check_exact=True)


def test_blanks_are_better_than_the_mean_and_mode(field, rng):
    truth = make_table(rng, 300)
    gaps = truth.assign(kind=None, size=np.nan)
    gaps["kind"] = gaps["kind"].astype(object)
    filled = field.transform(gaps)
    assert (filled["kind"] == truth["kind"]).mean() > 0.75
    assert np.sqrt(np.mean((filled["size"] - truth["size"]) ** 2)) < 0.6 * truth["size"].std()


def test_polars_in_polars_out(field, rng):
    table = pl.from_pandas(with_gaps(make_table(rng, 20), rng))
    filled = field.transform(table)
    assert isinstance(filled, pl.DataFrame)
    assert filled.schema == table.schema
    assert filled.null_count().sum_horizontal().item() == 0


@settings(max_examples=15)
@given(st.integers(0, 2**32 - 1))
def test_a_row_is_restored_alike_in_any_table(field, seed):
    rng = np.random.default_rng(seed)
    noisy = copy.copy(field)
    noisy.levels_ = given_levels(field.schema_, {"size": 0.3, "count": 1.5, "weight": 0.6, "kind": 0.1, "flag": 0.1})
    table = with_gaps(make_table(rng, 30), rng)
    rows = rng.permutation(30)[: rng.integers(1, 30)]
    for model in (field, noisy):
        pd.testing.assert_frame_equal(model.transform(table).iloc[rows], model.transform(table.iloc[rows]))
        for whole, part in zip(model.sample(table, 2), model.sample(table.iloc[rows], 2), strict=True):
            pd.testing.assert_frame_equal(whole.iloc[rows], part)


def test_threads_do_not_change_the_result(reference, rng):
    table = with_gaps(make_table(rng, 100), rng)
    one = RandomMixedField(penalty=0.4, random_state=0, noise={"size": 0.3, "kind": 0.1}).fit(reference)
    two = RandomMixedField(penalty=0.4, random_state=0, noise={"size": 0.3, "kind": 0.1}, n_jobs=2).fit(reference)
    pd.testing.assert_frame_equal(one.transform(table), two.transform(table))


def test_given_noise_is_removed(reference, rng):
    truth = make_table(rng, 400)
    hurt = truth.assign(size=truth["size"] + 0.8 * rng.normal(size=400))
    flip = rng.random(400) < 0.2
    hurt.loc[flip, "kind"] = rng.choice(["a", "b", "c"], flip.sum())
    field = RandomMixedField(penalty=0.4, random_state=0, noise={"size": 0.8, "kind": 0.2}).fit(reference)
    mended = field.transform(hurt)
    assert np.std(mended["size"] - truth["size"]) < 0.75 * 0.8
    assert (mended["kind"] != truth["kind"]).mean() < 0.7 * (hurt["kind"] != truth["kind"]).mean()
    pd.testing.assert_series_equal(mended["weight"], hurt["weight"])
    assert field.noise_["size"]["status"] == "given"
    assert field.noise_["weight"]["status"] == "nil"


def test_values_beyond_the_training_range_survive(reference):
    field = RandomMixedField(penalty=0.4, random_state=0, noise={"size": 0.1}).fit(reference)
    wild = reference.iloc[:3].copy()
    wild.loc[0, "size"] = 60.0
    assert field.transform(wild).loc[0, "size"] == pytest.approx(60.0, abs=0.5)


def test_unseen_categories_stay_or_are_replaced(reference, field):
    odd = reference.iloc[:2].copy()
    odd.loc[0, "kind"] = "never"
    assert field.transform(odd).loc[0, "kind"] == "never"
    assert field.posterior(odd).unseen[:, 0].tolist() == [True, False]
    noisy = RandomMixedField(penalty=0.4, random_state=0, noise={"kind": 0.1}).fit(reference)
    assert noisy.transform(odd).loc[0, "kind"] in {"a", "b", "c"}


def test_estimated_noise_refuses_clean_rows_and_finds_real_noise(rng):
    field = RandomMixedField(penalty=0.4, noise="estimate", random_state=0).fit(make_table(rng, 400))
    clean = make_table(rng, 300)
    quiet = field.estimate_noise(clean)
    assert {level["status"] for level in quiet.noise_.values()} == {"below_floor"}
    pd.testing.assert_frame_equal(quiet.transform(clean), clean, check_exact=True)
    hurt = clean.copy()
    hurt["size"] += 1.0 * rng.normal(size=300)
    hurt["weight"] += 2.0 * rng.normal(size=300)
    hurt["count"] = np.round(hurt["count"] + 5.0 * rng.normal(size=300)).astype(np.int64)
    loud = field.estimate_noise(hurt)
    assert loud.noise_["size"]["status"] == "estimated"
    assert 0.3 < loud.noise_["size"]["value"] < 2.0
    assert field.noise_["size"]["status"] == "nil"  # the field itself is not touched
    assert np.std(loud.transform(hurt)["size"] - clean["size"]) < np.std(hurt["size"] - clean["size"])


def test_gross_errors_are_flagged_and_replaced(reference, rng):
    truth = make_table(rng, 300)
    hurt = truth.copy()
    hit = rng.random(300) < 0.1
    hurt.loc[hit, "size"] = rng.uniform(truth["size"].min(), truth["size"].max(), hit.sum())
    field = RandomMixedField(penalty=0.4, gross_error_rate=0.05, random_state=0).fit(reference)
    wrong = hit & (np.abs(hurt["size"] - truth["size"]) > 2.0).to_numpy()
    p = field.posterior(hurt).corruption_probability["size"]
    assert np.median(p[wrong]) > 0.5 > np.quantile(p[~hit], 0.95)
    mended = field.transform(hurt)
    assert np.std(mended["size"] - truth["size"]) < np.std(hurt["size"] - truth["size"])
    kept = p <= 0.5
    assert (mended["size"][kept] == hurt["size"][kept]).all()


def test_posterior_in_the_units_of_the_table(field, rng):
    table = with_gaps(make_table(rng, 40), rng)
    posterior = field.posterior(table)
    low, high = posterior.intervals(0.9)
    blank = table["size"].isna().to_numpy()
    assert (low[blank, 0] < high[blank, 0]).all()
    assert (low[~blank, 0] == high[~blank, 0]).all()
    np.testing.assert_allclose(posterior.category_probabilities["kind"].sum(axis=1), 1.0)
    assert np.isnan(posterior.corruption_probability["kind"][table["kind"].isna()]).all()
    assert posterior.credible_states("kind", 0.9).any(axis=1).all()
    assert field.transform(table, soft=True).shape == (40, len(field.soft_feature_names_out()))


def test_intervals_of_blanks_cover_what_they_promise(field, rng):
    truth = make_table(rng, 600)
    for column in ("size", "weight"):
        posterior = field.posterior(truth.assign(**{column: np.nan}))
        at = posterior.numbers.index(column)
        low, high = posterior.intervals(0.9)
        inside = (low[:, at] <= truth[column]) & (truth[column] <= high[:, at])
        assert 0.85 < inside.mean() < 0.97


def test_a_wrong_cell_stands_out_from_its_row(field, rng):
    table = make_table(rng, 60)
    table.loc[0, ["kind", "size", "count", "weight", "flag"]] = ["a", 4.0, 31, 8.0, True]
    cells = field.predict_cells(table)
    assert cells.corruption_probability["kind"][0] > 0.95
    withheld = np.zeros(table.shape, dtype=bool)
    withheld[0, 1] = True
    again = field.predict_cells(table, withheld)
    at = cells.numbers.index("size")
    assert abs(again.mean[0, at] - 4.0) < abs(cells.mean[0, at] - 4.0)


def test_draws_differ_only_in_the_gaps_and_pool(field, rng):
    table = with_gaps(make_table(rng, 60), rng)
    draws = field.sample(table, 5)
    blank = table["size"].isna()
    assert any((a["size"][blank] != b["size"][blank]).any() for a, b in pairwise(draws))
    for draw in draws:
        pd.testing.assert_series_equal(draw.loc[~blank, "size"], table.loc[~blank, "size"])
    means = [draw["size"].mean() for draw in draws]
    pooled = field.pool(means, [draw["size"].var() / 60 for draw in draws])
    assert pooled.estimate == pytest.approx(np.mean(means))
    assert 0 < pooled.missing_share < 1


def test_draws_replace_gross_errors(reference, rng):
    field = RandomMixedField(penalty=0.4, gross_error_rate=0.05, random_state=0).fit(reference)
    hurt = make_table(rng, 40)
    hurt.loc[0, ["size", "kind", "weight"]] = [-1.0, "c", 8.0]
    flagged = field.posterior(hurt).corruption_probability["size"] > 0.5
    assert flagged[0]
    draws = field.sample(hurt, 4)
    assert len({draw.loc[0, "size"] for draw in draws} | {-1.0}) > 2
    for draw in draws:
        pd.testing.assert_series_equal(draw.loc[~flagged, "size"], hurt.loc[~flagged, "size"])


@settings(max_examples=10)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["nil", "noise", "gross"]))
def test_whatever_comes_in_categories_are_levels_and_integers_whole(field, seed, mode):
    rng = np.random.default_rng(seed)
    table = with_gaps(make_table(rng, 20), rng, 0.4)
    table.loc[0, "kind"] = "never"
    table.loc[1, "size"] = 1e300
    model = copy.copy(field)
    given_ = {"size": 0.4, "count": 3.0, "kind": 0.2, "flag": 0.2} if mode == "noise" else {}
    model.levels_ = given_levels(field.schema_, given_, 0.1 if mode == "gross" else 0.0)
    for out in (model.transform(table), *model.sample(table, 2)):
        assert (out.dtypes == table.dtypes).all()
        assert not out.isna().any().any()
        assert set(out["kind"]) <= {"a", "b", "c"} | ({"never"} if mode == "nil" else set())
        assert np.isfinite(out["size"].to_numpy(dtype=float)).all()


def test_rare_levels_are_merged_and_come_back_as_they_were(rng):
    """F1.3: one state stands for the rare levels; seen, they stay; a gap gets the most frequent of them."""
    share = 1.0 / np.arange(1, 201)
    code = rng.choice(200, 3000, p=share / share.sum())
    table = pd.DataFrame(
        {"shop": [f"s{c}" for c in code], "sales": np.where(code < 10, 0.0, 5.0) + rng.normal(size=3000)}
    )
    field = RandomMixedField(penalty=0.4, max_levels=12, random_state=0).fit(table)
    column = field.schema_.columns[0]
    assert len(column.levels) == 12
    assert len(column.merged) > 100
    incoming = pd.DataFrame({"shop": [column.merged[-1], None, "s0"], "sales": [np.nan, 5.5, 0.0]})
    out = field.transform(incoming)
    assert out["shop"].tolist() == [column.merged[-1], column.merged[0], "s0"]
    assert out.loc[0, "sales"] == pytest.approx(5.0, abs=0.7)


def test_ordered_categories_have_a_mean(rng):
    stars = rng.integers(1, 6, 300)
    table = pd.DataFrame({"stars": stars, "price": 10.0 * stars + rng.normal(size=300) * 8})
    field = RandomMixedField(penalty=0.4, random_state=0).fit(table)
    hidden = pd.DataFrame({"stars": pd.array([None, None], dtype="Int64"), "price": [12.0, 48.0]})
    posterior = field.posterior(hidden)
    low, high = posterior.level_means["stars"]
    assert 1.0 < low < 2.2 < 4.0 < high < 5.0
    p = posterior.category_probabilities["stars"]
    np.testing.assert_allclose(
        posterior.level_means["stars"], p @ np.array(field.schema_.columns[0].levels, dtype=float)
    )


def test_wide_tables_are_learnt_and_restored(rng):
    """120 columns, sparse: each category is one number in three steps."""
    numbers = rng.normal(size=(300, 60))
    table = pd.DataFrame(numbers, columns=[f"u{s}" for s in range(60)])
    steps = np.digitize(numbers + 0.3 * rng.normal(size=numbers.shape), [-0.6, 0.6])
    words = pd.DataFrame(np.array(["low", "mid", "high"])[steps], columns=[f"v{s}" for s in range(60)])
    whole = pd.concat([table, words], axis=1)
    field = RandomMixedField(penalty=1.2, random_state=0).fit(whole)
    assert len(field.edges_) < 0.2 * 120 * 119 / 2
    assert {(e.first, e.second) for e in field.edges_ if e.kind == "cd" and e.strength > 0.8} >= {
        ("u0", "v0"),
        ("u59", "v59"),
    }
    hidden = whole.mask(rng.random(whole.shape) < 0.1)
    filled = field.transform(hidden)
    blank = hidden[words.columns].isna().to_numpy()
    assert (filled[words.columns].to_numpy() == words.to_numpy())[blank].mean() > 0.7


def test_pool_by_hand():
    pooled = pool([1.0, 3.0], [0.5, 1.5])
    assert (pooled.estimate, pooled.variance) == (2.0, 1.0 + 1.5 * 2.0)
    with pytest.raises(ParameterError, match=r"at least 2 draws; got shapes \(1,\)"):
        pool([1.0], [1.0])


def test_training_rows_may_have_blanks(rng):
    table = with_gaps(make_table(rng, 300), rng, 0.15)
    field = RandomMixedField(penalty=0.4, random_state=0).fit(table)
    truth = make_table(rng, 200)
    hidden = truth.assign(kind=None)
    hidden["kind"] = hidden["kind"].astype(object)
    assert (field.transform(hidden)["kind"] == truth["kind"]).mean() > 0.75


def test_rows_of_weight_nought_are_not_seen(reference, rng):
    strange = make_table(rng, 50).assign(size=99.0)
    both = pd.concat([reference, strange], ignore_index=True)
    weights = np.r_[np.ones(len(reference)), np.zeros(50)]
    a = RandomMixedField(penalty=0.4, random_state=0).fit(both, sample_weight=weights)
    b = RandomMixedField(penalty=0.4, random_state=0).fit(reference)
    np.testing.assert_allclose(a.potentials_.B, b.potentials_.B, rtol=1e-6)


def test_score_prefers_rows_like_the_reference(field, rng):
    table = make_table(rng, 100)
    shuffled = table.assign(kind=rng.permutation(table["kind"]))
    assert field.score(table) > field.score(shuffled) + 0.5
    with pytest.warns(DataWarning, match="leaves out 1 of 100 rows"):
        field.score(table.assign(size=table["size"].mask(table.index == 3)))
    with pytest.raises(InputError, match="all 2 have blanks"):
        field.score(table.iloc[:2].assign(size=np.nan))


def test_edges_name_the_dependent_columns(field):
    strongest = {kind: next(e for e in field.edges_ if e.kind == kind) for kind in ("cc", "cd")}
    assert {strongest["cc"].first, strongest["cc"].second} == {"size", "weight"}
    assert strongest["cd"].second == "kind"


def test_auto_penalty_chooses_a_candidate(reference):
    assert RandomMixedField(random_state=0).fit(reference).penalty_ in (0.2, 0.4, 0.8, 1.2)


@pytest.mark.parametrize(
    "settings_",
    [{"inference": "structured"}, {"inference": "mean-field"}, {"inference": "gibbs"}, {"inference": "exact"}],
)
def test_other_inference_agrees_roughly(reference, field, rng, settings_):
    table = make_table(rng, 80).assign(size=np.nan)
    other = RandomMixedField(penalty=0.4, random_state=0, **settings_).fit(reference)
    np.testing.assert_allclose(other.transform(table)["size"], field.transform(table)["size"], atol=0.4)


def test_paper_mode_estimates_noise_by_em(reference, rng):
    field = RandomMixedField(
        penalty=0.4, marginals="gaussian", inference="structured", noise="estimate", random_state=0
    )
    field.fit(reference)
    found = field.estimate_noise(make_table(rng, 100))
    assert found.noise_["size"]["source"] == "em"
    assert np.isfinite(found.posterior(reference.iloc[:5]).mean).all()


@pytest.mark.parametrize(
    ("settings_", "message"),
    [
        ({"penalty": -1}, "penalty must be 'auto' or a number above 0; got -1"),
        ({"objective": "full"}, "objective must be one of 'block', 'pseudo'; got 'full'"),
        ({"noise": "some"}, "noise must be 'none', 'estimate' or a mapping; got 'some'"),
        ({"noise": {"size": -0.1}}, r"noise of column 'size' must be a number of at least 0; got -0.1"),
        ({"noise": {"size": "much"}}, r"noise of column 'size' must be a number of at least 0; got 'much'"),
        ({"noise": {"size": float("nan")}}, r"must be a number of at least 0; got nan"),
        ({"noise": {"kind": 1.5}}, r"noise of category 'kind' is a flip rate and must be below 1; got 1.5"),
        ({"noise": {"nope": 0.1}}, "noise names column 'nope'"),
        ({"gross_error_rate": 0.7}, r"gross_error_rate must be 'estimate' or lie in \[0, .5\); got 0.7"),
        ({"max_iter": 0}, "max_iter must be a whole number above 0; got 0"),
        ({"tol": -1.0}, "tol must be a number above 0; got -1.0"),
        ({"inference": "guess"}, "inference must be one of 'lbp', .*, 'exact'; got 'guess'"),
        ({"marginals": "beta"}, "marginals must be one of 'empirical', 'gaussian'; got 'beta'"),
    ],
)
def test_bad_settings_are_named(reference, settings_, message):
    with pytest.raises(ParameterError, match=message):
        RandomMixedField(**settings_).fit(reference)


def test_too_few_iterations_warn_with_figures(reference):
    with pytest.warns(ConvergenceWarning, match="ended after max_iter=2 iterations.*tol is 1e-06"):
        assert not RandomMixedField(penalty=0.4, max_iter=2).fit(reference).converged_


def test_columns_that_determine_each_other_are_named(reference, rng):
    code = reference["kind"].map({"a": 3.5, "b": 11.25, "c": 2.0})
    table = reference.assign(code=code, double=2 * reference["size"] - 1, unique=rng.normal(size=len(reference)))
    with pytest.warns(DataWarning, match="'size' and 'double', 'kind' and 'code'. The field keeps them") as caught:
        field = RandomMixedField(penalty=0.4, random_state=0, kinds={"code": "continuous"}).fit(table)
    assert len(caught) == 1
    hidden = table.assign(kind=None)
    hidden["kind"] = hidden["kind"].astype(object)
    assert (field.transform(hidden)["kind"] == table["kind"]).mean() > 0.98


def test_repeated_rows_do_not_make_columns_dependent(rng):
    few = pd.DataFrame(rng.normal(size=(20, 3)), columns=list("abc"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RandomMixedField(penalty=0.4, random_state=0).fit(pd.concat([few] * 5, ignore_index=True))


def test_rows_that_do_not_settle_warn_with_figures(field, reference):
    """A frustrated loop: three categories, each of which wants to differ strongly from the others."""
    rng = np.random.default_rng(0)
    words = pd.DataFrame({name: rng.choice(["a", "b"], 80) for name in "xyz"})
    loop = RandomMixedField(penalty=0.4, random_state=0).fit(words)
    P = loop.potentials_
    apart = -6.0 * np.kron(1 - np.eye(3), np.eye(2))
    tilted = replace(P, Phi=apart, h=np.array([0.3, 0.0, -0.1, 0.0, 0.2, 0.0]))
    loop.field_ = replace(loop.field_, potentials=tilted)
    hidden = pd.DataFrame({name: [None] * 5 for name in "xyz"}, dtype=object)
    with pytest.warns(
        ConvergenceWarning, match=r"Beliefs of 5 of 5 rows still moved .* by up to 0\.\d+; settled means"
    ):
        posterior = loop.posterior(hidden)
    assert not posterior.settled.any()
    assert (posterior.change > 1e-3).all()


@pytest.mark.parametrize("method", ["lbp", "structured", "mean-field"])
def test_the_evidence_of_rows_can_be_followed(reference, rng, method):
    field = RandomMixedField(penalty=0.4, random_state=0, inference=method, noise={"kind": 0.2, "size": 0.3})
    field.fit(reference)
    table = with_gaps(make_table(rng, 40), rng)
    trace = field.evidence_trace(table, 10)
    assert trace.shape == (10, 40)
    assert np.abs(np.diff(trace, axis=0)[-1]).max() < 0.05 * max(np.abs(np.diff(trace, axis=0)[0]).max(), 1e-3)
    if method == "mean-field":
        assert (np.diff(trace, axis=0) > -1e-9).all()
    with pytest.raises(ParameterError, match="n_steps must be at least 1; got 0"):
        field.evidence_trace(table, 0)


def test_estimate_noise_needs_floors(field, reference):
    with pytest.raises(ParameterError, match="this field has noise='none'"):
        field.estimate_noise(reference)


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t[["size"]],
        lambda t: t[["kind"]],
        lambda t: t.assign(one=1.0, word="same"),
        lambda t: t.assign(copy=t["kind"], number=t["kind"].map({"a": 0.0, "b": 1.25, "c": 7.5})),
        lambda t: t.iloc[:4],
        lambda t: t.assign(nothing=np.nan),
        lambda t: t.assign(size=t["size"].where(t.index != 0, 1e300)),
    ],
    ids=["one column", "one category", "constant", "dependent", "few rows", "all missing", "1e300"],
)
def test_awkward_references_give_finite_results(reference, rng, change):
    table = change(reference)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # dependent columns
        field = RandomMixedField(penalty=0.4, random_state=0).fit(table)
    hidden = table.copy()
    for column in hidden.columns:
        hidden[column] = hidden[column].astype(object).mask(rng.random(len(hidden)) < 0.3)
    hidden = hidden.convert_dtypes() if "nothing" not in hidden else table
    filled = field.transform(hidden)
    for column in (set(field.schema_.names) - {"nothing", "one", "word"}) & set(filled.columns):
        assert not filled[column].isna().any()


@pytest.mark.parametrize("rows", [1, 3])
def test_constant_columns_come_back_as_they_are(reference, rows):
    """Nothing can be learnt of a column with one value, so nothing is restored in it either (F1.3)."""
    same = pd.concat([reference.iloc[:1]] * rows, ignore_index=True)
    field = RandomMixedField(penalty=0.4, random_state=0).fit(same)
    hidden = reference.iloc[:2].assign(size=[np.nan, 1.0])
    pd.testing.assert_frame_equal(field.transform(hidden), hidden, check_exact=True)
    assert field.edges_ == ()
    assert field.transform(hidden, soft=True).shape == (2, 0)


def test_1e300_among_the_incoming_does_no_harm(field, reference):
    wild = reference.iloc[:4].copy()
    wild.loc[0, "size"] = 1e300
    wild.loc[0, "kind"] = None
    out = field.transform(wild)
    assert out.loc[0, "size"] == 1e300
    assert out.loc[0, "kind"] in {"a", "b", "c"}


def test_the_graph_is_drawn(field):
    plt = pytest.importorskip("matplotlib.pyplot")
    from goldseam.report.displays.mixed_graph import MixedGraphDisplay

    display = MixedGraphDisplay.from_estimator(field, max_edges=3)
    assert len(display.lines_) == min(3, len(field.edges_))
    assert display.ax_.figure is display.figure_
    assert {text.get_text() for text in display.ax_.texts} == set(field.schema_.names)
    plt.close(display.figure_)
    with pytest.raises(ParameterError, match="max_edges must be at least 1; got 0"):
        display.plot(max_edges=0)
