"""The restorer as its users meet it: promises, records, invariance, bad input."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import goldseam as gs
from goldseam.conditional.boosted import Forest
from goldseam.corruption import overwrite_intervals
from goldseam.errors import (
    CalibrationWarning,
    InputError,
    MissingColumnError,
    ModelFileError,
    ParameterError,
    SchemaError,
)
from goldseam.restorer import Levels, Restorer

FAST: dict[str, Any] = {"method": ["conditional"], "audit": False, "random_state": 0}


def mixed_table(n: int, seed: int) -> pd.DataFrame:
    """Two factors behind five numbers, an integer and two categories."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, n))
    noise = 0.2 * rng.normal(size=(n, 6))
    return pd.DataFrame(
        {
            "x1": a + noise[:, 0],
            "x2": a - b + noise[:, 1],
            "x3": b + noise[:, 2],
            "count": np.rint(50 + 10 * (a + noise[:, 3])).astype(int),
            "x4": np.exp(0.5 * (b + noise[:, 4])),
            "band": np.where(a + noise[:, 5] > 0, "high", "low"),
            "x5": (a + b + noise[:, 0]).astype(np.float32),
            "side": pd.Categorical(np.where(b > 0.3, "left", np.where(b < -0.3, "right", "middle"))),
            "when": pd.date_range("2026-01-01", periods=n, freq="h"),
        }
    )


REFERENCE = mixed_table(400, 1)
CLEAN = mixed_table(300, 2)


@pytest.fixture(scope="module")
def restorer() -> Restorer:
    return Restorer(**FAST).fit(REFERENCE)


def damaged(frame: pd.DataFrame, seed: int = 3, rows: float = 0.5) -> tuple[pd.DataFrame, np.ndarray]:
    damage = overwrite_intervals(frame, share=(0.2, 0.4), random_state=seed, reference=REFERENCE, rows=rows)
    return damage.table, damage.cells


def test_damage_is_found_localised_and_mended(restorer: Restorer) -> None:
    table, cells = damaged(CLEAN)
    result = restorer.restore(table)
    hit = cells.any(axis=1)
    flagged = result.row_p_values <= 0.05
    assert flagged[hit].mean() > 0.8
    spread = np.sqrt(0.05 * 0.95 * (1 / (~hit).sum() + 1 / restorer.row_counts_["calibration"]))
    assert flagged[~hit].mean() < 0.05 + 3 * spread
    assert 2 * (result.suspect & cells).sum() / (result.suspect.sum() + cells.sum()) > 0.65
    numbers = ["x1", "x2", "x3", "x4", "x5"]
    before = ((table[numbers] - CLEAN[numbers]) ** 2).to_numpy().sum()
    after = ((result.table[numbers] - CLEAN[numbers]) ** 2).to_numpy().sum()
    assert after < 0.4 * before
    assert (result.table["side"] != CLEAN["side"]).sum() < (table["side"] != CLEAN["side"]).sum()


def test_untouched_cells_come_back_bit_identical_and_undo_is_exact(restorer: Restorer) -> None:
    table, _ = damaged(CLEAN)
    result = restorer.restore(table)
    touched = {(line["row"], line["column"]) for line in result.seam if line["observed"] != line["restored"]}
    assert list(result.table.columns) == list(table.columns)
    assert result.table.dtypes.tolist() == table.dtypes.tolist()
    for name in table.columns:
        rows = [row for row in range(len(table)) if (row, name) not in touched]
        pd.testing.assert_series_equal(result.table[name].iloc[rows], table[name].iloc[rows], check_exact=True)
    pd.testing.assert_frame_equal(result.undo(), table, check_exact=True)


def test_clean_rows_that_are_not_flagged_are_not_touched(restorer: Restorer) -> None:
    result = restorer.restore(CLEAN)
    quiet = result.row_p_values > 0.05
    pd.testing.assert_frame_equal(result.table[quiet], CLEAN[quiet], check_exact=True)
    assert not result.changed[quiet].any()


def test_gaps_are_filled_with_intervals_that_hold_the_truth(restorer: Restorer) -> None:
    table = CLEAN.copy()
    gaps = np.random.default_rng(0).random(len(table)) < 0.5
    table.loc[gaps, "x2"] = np.nan
    table.loc[gaps, "band"] = None
    result = restorer.restore(table)
    assert not result.table[["x2", "band"]].isna().any().any()
    lines = result.seam.to_polars().filter(pl.col("column") == "x2", pl.col("cause") == "missing")
    truth = CLEAN["x2"].to_numpy()[lines["row"].to_numpy()]
    inside = (lines["low"].to_numpy() <= truth) & (truth <= lines["high"].to_numpy())
    assert abs(inside.mean() - 0.9) < 0.1
    assert (result.table["band"] == CLEAN["band"])[gaps].mean() > 0.85


def test_every_line_of_the_seam_is_complete(restorer: Restorer) -> None:
    table, _ = damaged(CLEAN)
    frame = restorer.restore(table).seam.to_polars()
    corrupt = frame.filter(pl.col("cause") == "corrupt")
    assert corrupt.height > 50
    assert corrupt["p_value"].null_count() == 0
    assert corrupt["probability"].null_count() == 0
    assert corrupt["donors"].list.len().min() == 3
    assert corrupt["donors"].list.max().max() < len(REFERENCE)
    numbers = corrupt.filter(pl.col("kind") == "continuous")
    assert (numbers["low"] < numbers["high"]).all()
    assert frame.select("row", "column").is_unique().all()


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_every_library_gives_the_same_cells(restorer: Restorer, library: str) -> None:
    table, _ = damaged(CLEAN.drop(columns=["when", "side"]).assign(side=CLEAN["side"].astype(str), when=CLEAN["when"]))
    other: Any = pl.from_pandas(table) if library == "polars" else pl.from_pandas(table).to_arrow()
    ours, theirs = restorer.restore(table), restorer.restore(other)
    assert type(theirs.table) is type(other)
    assert theirs.seam.to_polars().equals(ours.seam.to_polars())


@settings(max_examples=15)
@given(order=st.permutations(range(40)), cut=st.integers(0, 40), n_jobs=st.sampled_from([None, 2]))
def test_a_row_is_judged_by_itself(order: list[int], cut: int, n_jobs: int | None) -> None:
    model = _FITTED.set_params(n_jobs=n_jobs)
    table = _DAMAGED.iloc[:40]
    levels = model.survey([table])
    whole = model.restore(table)
    parts = [model.restore(table.iloc[part], levels=levels) for part in (order[:cut], order[cut:])]
    p_values = np.concatenate([part.row_p_values for part in parts])
    assert np.array_equal(p_values, whole.row_p_values[order])
    joined = pd.concat([part.table for part in parts])
    pd.testing.assert_frame_equal(joined, whole.table.iloc[order], check_exact=True)


@pytest.mark.parametrize("method", [["tree", "field"], ["conditional", "boosted", "field", "tree"]])
def test_a_row_is_judged_by_itself_whatever_the_sources(method: list[str]) -> None:
    model = Restorer(**FAST | {"method": method}).fit(REFERENCE)
    table = _DAMAGED.drop(columns="when").reset_index(drop=True)
    table = table.mask(np.random.default_rng(0).random(table.shape) < 0.15)
    levels = model.survey([table])
    whole = model.restore(table, levels=levels)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(table))
        cuts = np.sort(rng.integers(0, len(table), 3))
        parts = [model.restore(table.iloc[part], levels=levels) for part in np.split(order, cuts) if part.size]
        joined = pd.concat([part.table for part in parts])
        pd.testing.assert_frame_equal(joined, whole.table.iloc[order], check_exact=True)
        assert np.array_equal(np.concatenate([part.row_p_values for part in parts]), whole.row_p_values[order])
        ends = np.concatenate([_ends(part) for part in parts])
        assert np.array_equal(np.sort(ends, axis=0), np.sort(_ends(whole), axis=0), equal_nan=True)


def test_single_precision_is_read_as_the_numbers_it_holds(restorer: Restorer) -> None:
    numbers = ["x1", "x2", "x3", "x4", "x5"]
    short = _DAMAGED.astype(dict.fromkeys(numbers, np.float32))
    long = short.astype(dict.fromkeys(numbers, np.float64))
    one, other = restorer.restore(short), restorer.restore(long)
    assert np.array_equal(one.row_p_values, other.row_p_values)
    assert np.array_equal(_ends(one), _ends(other), equal_nan=True)


def _ends(result: gs.Restoration) -> np.ndarray:
    return result.seam.to_polars()["low", "high", "probability"].to_numpy()


_FITTED = Restorer(**FAST).fit(REFERENCE)
_DAMAGED, _ = damaged(CLEAN)


def test_streams_number_their_rows(restorer: Restorer) -> None:
    table, _ = damaged(CLEAN)
    batches = [table.iloc[:100], table.iloc[100:]]
    parts = list(restorer.restore_stream(batches, levels=restorer.survey(batches)))
    whole = restorer.restore(table)
    assert gs.Seam.concat([part.seam for part in parts]) == whole.seam


def test_cell_scores_rank_damaged_cells_first(restorer: Restorer) -> None:
    """Over all columns of the reference, NaN where nothing is known; the same rows alone have the same scores."""
    table, cells = damaged(CLEAN)
    table.iloc[5, 0] = np.nan
    scores = restorer.cell_scores(table)
    assert scores.shape == (len(table), len(restorer.schema_.columns))
    assert np.isnan(scores[5, 0])
    np.testing.assert_array_equal(scores[:7], restorer.cell_scores(table.iloc[:7]))
    known = np.isfinite(scores)
    assert roc_auc_score(cells[known], scores[known]) > 0.8


def test_check_changes_nothing_but_says_what_it_would(restorer: Restorer) -> None:
    table, _ = damaged(CLEAN)
    found = restorer.check(table)
    pd.testing.assert_frame_equal(found.table, table, check_exact=True)
    assert found.seam == restorer.restore(table).seam


def test_fdr_control_holds_on_average() -> None:
    model = Restorer(**{**FAST, "error_control": "fdr", "alarm_rate": 0.2}).fit(REFERENCE)
    table, cells = damaged(CLEAN)
    result = model.restore(table)
    wrong = (result.suspect & ~cells).sum() / max(result.suspect.sum(), 1)
    assert (result.suspect & cells).sum() > 0.15 * cells.sum()
    assert wrong < 0.25
    with pytest.raises(ParameterError, match=r"needs levels for a stream. Hint: levels=restorer.survey"):
        next(model.restore_stream([table]))
    levels = model.survey([table.iloc[:150], table.iloc[150:]])
    streamed = list(model.restore_stream([table.iloc[:150], table.iloc[150:]], levels=levels))
    assert gs.Seam.concat([part.seam for part in streamed]) == result.seam


def test_a_false_discovery_rate_that_cannot_be_shown_is_said() -> None:
    model = Restorer(**{**FAST, "error_control": "fdr", "alarm_rate": 0.01})
    with pytest.warns(
        CalibrationWarning, match=r"rate of 0\.01 no damaged cell .*: 100 calibration rows .* Hint: give more"
    ):
        model.fit(REFERENCE)
    assert not model.check(damaged(CLEAN)[0]).suspect.any()


def test_a_contaminated_reference_keeps_its_promise() -> None:
    dirty, cells = damaged(REFERENCE, seed=8)
    few = np.arange(len(dirty)) % 5 == 0  # a fifth of the damaged half: a tenth of the rows
    reference = pd.concat([dirty[few], REFERENCE[~few]])
    model = Restorer(**{**FAST, "reference": "contaminated"}).fit(reference)
    assert model.row_counts_["distrusted"] > 0.5 * cells[few].any(axis=1).sum()
    assert (
        model.reference_trust_[: few.sum()][cells[few].any(axis=1)].mean()
        < model.reference_trust_[few.sum() :].mean() - 0.3
    )
    table, truth = damaged(CLEAN)
    flagged = model.restore(table).row_p_values <= 0.05
    assert flagged[truth.any(axis=1)].mean() > 0.75
    assert flagged[~truth.any(axis=1)].mean() < 0.12


@pytest.mark.parametrize("method", [["conditional"], ["conditional", "boosted"], ["field", "tree"]])
@pytest.mark.parametrize("observed", [1, 2, 3])
def test_columns_with_next_to_no_values_are_no_obstacle(method: list[str], observed: int) -> None:
    rare = REFERENCE.assign(rare=np.nan)
    rare.loc[np.linspace(5, 390, observed).astype(int), "rare"] = np.arange(observed) + 1.5
    model = Restorer(**{**FAST, "method": method}).fit(rare)
    result = model.restore(CLEAN.assign(rare=2.0))
    assert (result.table.drop(columns="rare").compare(CLEAN).shape[0]) < 0.15 * len(CLEAN)


@pytest.mark.parametrize("method", [["conditional"], ["field"]])
def test_a_level_that_no_row_to_learn_from_has_is_no_obstacle(method: list[str]) -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(size=300)
    table = pd.DataFrame({"a": z + 0.1 * rng.normal(size=300), "b": z, "flag": False, "c": np.where(z > 0, "x", "y")})
    learnt_from = Restorer(**FAST).fit(table.assign(flag=z > 0)).reference_rows_
    table.loc[np.setdiff1d(np.arange(300), learnt_from)[0], "flag"] = True
    model = Restorer(**FAST | {"method": method}).fit(table)
    assert model.mender_.denoiser is not None
    assert np.isfinite(model.mender_.denoiser.field.potentials.h).all()
    assert np.isfinite(model.score_samples(table)).all()


def test_fit_restore_judges_rows_by_models_that_have_not_seen_them() -> None:
    table, cells = damaged(CLEAN, rows=0.15)
    model = Restorer(**{**FAST, "reference": "contaminated"})
    result = model.fit_restore(table)
    flagged = result.row_p_values <= 0.05
    hit = cells.any(axis=1)
    assert flagged[hit].mean() > 0.5
    assert flagged[~hit].mean() < 0.15
    lines = result.seam.to_polars()
    assert all(row not in donors for row, donors in lines.select("row", "donors").iter_rows() if donors is not None)
    assert {line["status"] for line in result.facts["noise"].values()} == {"below_floor"}
    assert "noise" not in set(lines.filter(~pl.col("row").is_in(np.flatnonzero(flagged)))["cause"])


def test_fit_restore_holds_all_folds_to_the_threshold_on_record() -> None:
    table = CLEAN.copy()
    table.loc[::10, "x1"] = 30.0
    model = Restorer(**{**FAST, "reference": "contaminated", "error_control": "fdr", "alarm_rate": 0.2})
    result = model.fit_restore(table)
    limit = result.facts["levels"]["cell_p_value"]
    lines = result.seam.to_polars().filter(pl.col("cause") == "corrupt")
    assert len(lines) > 10
    assert lines["p_value"].max() <= limit


def test_constraints_policies_and_costs_are_respected() -> None:
    table, _ = damaged(CLEAN)
    table.loc[:20, "x1"] = 40.0
    bounded = Restorer(**{**FAST, "constraints": ["-0.5 <= x1 <= 0.5"]}).fit(REFERENCE).restore(table)
    lines = bounded.seam.to_polars().filter(pl.col("column") == "x1", pl.col("cause") == "corrupt")
    assert lines.height > 15
    assert lines["restored"].cast(pl.Float64).abs().max() <= 0.5
    flagged = Restorer(**{**FAST, "policy": {"x1": "flag"}}).fit(REFERENCE).restore(table)
    assert (flagged.table["x1"] == table["x1"]).all()
    assert set(flagged.seam.to_polars().filter(pl.col("column") == "x1")["cause"]) == {"refused"}
    aside = Restorer(**{**FAST, "policy": {"x1": "quarantine"}}).fit(REFERENCE).restore(table)
    pd.testing.assert_frame_equal(aside.table.iloc[:20], table.iloc[:20], check_exact=True)
    assert aside.facts["quarantined"] >= 18
    careful = Restorer(**{**FAST, "costs": 99.0}).fit(REFERENCE).restore(table)
    assert careful.changed.sum() < bounded.changed.sum()


def test_levels_the_reference_never_had_are_on_record_as_such_mended_or_not(restorer: Restorer) -> None:
    table = CLEAN.copy()
    table["band"] = table["band"].where(np.arange(len(table)) % 10 > 0, "hihg")
    result = restorer.restore(table)
    lines = result.seam.to_polars().filter(pl.col("column") == "band")
    odd = lines.filter(pl.col("row") % 10 == 0)
    assert odd.height == 30
    assert set(odd["cause"]) == {"unseen"}
    mended = (result.table["band"] != table["band"]).to_numpy()
    assert mended[::10].any()
    assert (result.table["band"] == CLEAN["band"])[mended & (np.arange(len(table)) % 10 == 0)].mean() > 0.8
    flagged = Restorer(**{**FAST, "policy": {"band": "flag"}}).fit(REFERENCE).restore(table)
    assert (flagged.table["band"] == table["band"]).all()


def test_whole_numbers_declared_so_are_numbers_however_few_values_they_take() -> None:
    """Ten times a count lies far outside; as a code it would only be one that was never seen."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=400)
    reference = pd.DataFrame({"x": a + 0.3 * rng.normal(size=400), "rooms": np.clip(np.rint(3 + a), 1, 5).astype(int)})
    table = reference.iloc[:40].copy()
    table.loc[::2, "rooms"] *= 10
    model = Restorer(**FAST, kinds={"rooms": "integer"}).fit(reference)
    result = model.restore(table)
    assert (result.table["rooms"].iloc[::2] <= 6).mean() >= 0.9
    assert result.table["rooms"].dtype == reference["rooms"].dtype
    assert Restorer(**FAST).fit(reference).schema_.columns[1].modelled_as == "category"
    assert model.schema_.columns[1].modelled_as == "number"


def test_whole_numbers_change_by_whole_steps_or_not_at_all(restorer: Restorer) -> None:
    table, _ = damaged(CLEAN)
    result = restorer.restore(table)
    lines = result.seam.to_polars().filter((pl.col("column") == "count") & pl.col("cause").is_in(["corrupt", "noise"]))
    assert lines.height > 10
    step = lines["restored"].cast(float) - lines["observed"].cast(float)
    assert (step.abs() >= 1.0).all()
    assert (step == step.round()).all()
    new, low, high = (lines[name].cast(float) for name in ("restored", "low", "high"))
    assert ((low <= new) & (new <= high) & (low == low.round()) & (high == high.round())).all()


def test_audit_measures_and_says_what_it_cannot_see() -> None:
    model = Restorer(**{**FAST, "audit": True}).fit(REFERENCE)
    report = model.audit_.to_dict()
    kinds = {line["kind"]: line for line in report["damage"]}
    assert kinds["interval"]["found"] > 0.7
    assert kinds["interval"]["restored"] > 0.5
    assert {line["name"] for line in report["columns"]} == set(REFERENCE.columns) - {"when"}
    assert [promise["name"] for promise in report["promises"]] == ["row alarm rate", "interval coverage"]
    assert report["rows"]["fit"] + report["rows"]["calibration"] + report["rows"]["audited"] == len(REFERENCE)
    text = str(model.audit_)
    assert "interval" in text
    assert "Cannot see here:" in text


def test_saved_models_decide_the_same(restorer: Restorer, tmp_path: Path) -> None:
    restorer.save(tmp_path / "model.seam")
    back = gs.load(tmp_path / "model.seam")
    table, _ = damaged(CLEAN)
    first, second = restorer.restore(table), back.restore(table)
    pd.testing.assert_frame_equal(first.table, second.table, check_exact=True)
    assert first.seam == second.seam
    assert np.array_equal(first.row_p_values, second.row_p_values)


def test_extra_columns_and_other_orders_pass(restorer: Restorer) -> None:
    table, _ = damaged(CLEAN)
    shuffled = table[table.columns[::-1]].assign(note="kept")
    result = restorer.restore(shuffled)
    assert list(result.table.columns) == list(shuffled.columns)
    assert (result.table["note"] == "kept").all()
    assert np.array_equal(result.row_p_values, restorer.restore(table).row_p_values)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"alarm_rate": 0.0}, "alarm_rate must lie strictly between 0 and 1; got 0.0"),
        ({"coverage": 1.5}, "coverage .* got 1.5"),
        ({"error_control": "cell"}, "error_control must be one of 'row', 'fdr'; got 'cell'"),
        ({"reference": "dirty"}, "reference .* got 'dirty'"),
        ({"method": ["forest"]}, "method .* got 'forest'"),
        ({"groups": {"a": ["x1", "nope"]}}, "Group 'a' names column 'nope'"),
        ({"groups": {"a": ["x1"], "b": ["x1"]}}, "Column 'x1' is in two groups, 'a' and 'b'"),
        ({"constraints": ["x1 >= 3", "x1 <= 1"]}, "'x1' must be at least 3 and at most 1"),
        ({"policy": {"x1": "ignore"}}, "policy of column 'x1' .* got 'ignore'"),
        ({"policy": {"y": "flag"}}, "policy names column 'y'"),
        ({"costs": -1.0}, "costs must be finite and at least 0; got -1"),
    ],
)
def test_bad_settings_are_named(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        Restorer(**{**FAST, **settings}).fit(REFERENCE)


def test_bad_tables_are_named(restorer: Restorer) -> None:
    with pytest.raises(InputError, match=r"at least 10 rows .* got 8"):
        Restorer(**FAST).fit(REFERENCE.iloc[:8])
    with pytest.raises(MissingColumnError, match="'x3'"):
        restorer.restore(CLEAN.drop(columns="x3"))
    with pytest.raises(SchemaError, match=r"'x1' .* 'oops' at row 2"):
        restorer.restore(CLEAN.assign(x1=["1.5", "2.5", "oops", *["1.0"] * 297]))
    with pytest.raises(InputError, match="modelled"):
        Restorer(**FAST).fit(pd.DataFrame({"when": REFERENCE["when"], "same": 1.0}))


@parametrize_with_checks([Restorer(method=["conditional"], audit=False, alarm_rate=0.2, random_state=0)])
def test_scikit_learn_contract(estimator: Restorer, check: Any) -> None:
    check(estimator)


def test_explanations_name_the_damaged_cell(restorer: Restorer) -> None:
    table = CLEAN.copy()
    table.loc[5, "x3"] = 25.0
    why = restorer.explain(table, row=5)
    worst = max(why.to_dict()["cells"], key=lambda cell: cell["probability"] or 0.0)
    assert why.flagged
    assert worst["column"] == "x3"
    assert worst["observed"] == 25.0
    assert worst["low"] < worst["expected"] < worst["high"]
    assert abs(worst["expected"] - CLEAN.loc[5, "x3"]) < 1.0
    assert "x3: 25, expected" in str(why)
    with pytest.raises(InputError, match="Row 300 was asked for, but the table has rows 0 to 299"):
        restorer.explain(table, row=300)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("order", lambda order: np.zeros_like(order), "order each of its 8 columns once"),
        ("stop", lambda stop: stop + 9, "ends of nodes leads outside: 17"),
        ("first_child", lambda child: child + 900, "number its 15 nodes breadth first"),
        ("parent", lambda parent: parent[:1], "15 entries in each"),
    ],
)
def test_trees_that_lead_outside_do_not_reach_the_kernels(restorer: Restorer, name: str, value: Any, says: str) -> None:
    tree = restorer.mender_.reference.tree
    tree.check_state()
    hostile = replace(tree, **{name: value(getattr(tree, name))})
    with pytest.raises(ModelFileError, match=says):
        hostile.check_state()


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("left", np.zeros(3, dtype=np.int64), "left children leads outside: 0"),  # a node that leads to itself: no end
        ("right", np.array([7, -1, -1]), "right children leads outside: 7"),
        ("trees", np.array([3]), "trees leads outside: 3"),
        ("value", np.zeros(2), "different lengths"),
    ],
)
def test_forests_that_lead_outside_do_not_reach_the_kernels(name: str, value: Any, says: str) -> None:
    leaves = {"threshold": np.zeros(3), "missing_left": np.zeros(3, dtype=bool), "value": np.zeros(3)}
    nodes = {"feature": np.array([0, -1, -1]), "left": np.array([1, -1, -1]), "right": np.array([2, -1, -1])}
    forest = Forest(trees=np.array([0]), tree_of_output=np.array([0, 1]), base=np.zeros(1), **nodes, **leaves)
    forest.check_state()
    hostile = replace(forest, **{name: value})
    with pytest.raises(ModelFileError, match=says):
        hostile.check_state()


def explained_causes(model: Restorer, table: pd.DataFrame, row: int) -> dict[str, str]:
    return {c["column"]: c["cause"] for c in model.explain(table, row).to_dict()["cells"] if c["cause"]}


@pytest.mark.parametrize(
    "settings", [{"error_control": "fdr", "alarm_rate": 0.2}, {"denoise": {"x1": 0.5, "x3": 0.5}, "alarm_rate": 0.1}]
)
def test_explain_says_what_restore_does(settings: dict[str, Any]) -> None:
    model = Restorer(**{**FAST, **settings}).fit(REFERENCE)
    table, _ = damaged(CLEAN.iloc[:60].reset_index(drop=True))
    result = model.restore(table)
    lines = result.seam.to_polars()
    for row in range(6):
        mine = lines.filter(pl.col("row") == row)
        assert explained_causes(model, table, row) == dict(zip(mine["column"], mine["cause"], strict=True))
        one = model.explain(table, row)
        if settings.get("error_control") == "fdr":
            assert one.flagged == result.suspect[row].any()
            assert f"cells with p up to {one.cell_limit:.3g} are suspect" in str(one)
    assert lines.filter(pl.col("row") < 6).height > 0


def test_explain_shows_levels_never_seen_and_the_oddest_segment() -> None:
    model = Restorer(**{**FAST, "method": ["conditional", "tree"]}).fit(REFERENCE)
    table = CLEAN.copy()
    table.loc[5, ["x1", "x2", "x3"]] = [25.0, 20.0, -30.0]
    table.loc[5, "band"] = "purple"
    why = model.explain(table, np.int64(5))
    report = why.to_dict()
    assert type(report["row"]) is int
    assert next(c for c in report["cells"] if c["column"] == "band")["observed"] == "purple"
    assert "band: 'purple' (never in the reference)" in str(why)
    assert report["path"][0]["columns"] == [name for name in REFERENCE.columns if name != "when"]
    assert set(report["path"][-1]["columns"]) <= {"x1", "x2", "x3", "count"}
    assert report["path"][-1]["p_value"] <= report["path"][0]["p_value"]
    assert "Oddest segment by the tree: x1 .. side (p =" in str(why)
    assert Restorer(**FAST).fit(REFERENCE).explain(table, 5).path == ()


def test_few_held_out_rows_are_damaged_several_times_each() -> None:
    model = Restorer(**{**FAST, "audit": True}).fit(REFERENCE.iloc[:250])
    report = model.audit_.to_dict()
    audited = report["rows"]["audited"]
    assert audited < 200
    (times,) = {line["times"] for line in report["damage"]}
    assert times == -(-200 // audited)
    for line in report["damage"]:
        assert 0.4 * audited * times <= line["rows"] <= 0.6 * audited * times  # half of the rows are damaged
    coverage = next(p for p in report["promises"] if p["name"] == "interval coverage")
    cells = sum(line["interval_cells"] for line in report["damage"] if line["kind"] != "noise")
    assert coverage["n"] == cells // times  # copies of a row do not make it surer


def test_an_audit_that_was_skipped_says_so() -> None:
    with pytest.warns(
        CalibrationWarning, match="150 reference rows, at least 200 are needed. Hint: give more"
    ) as caught:
        model = Restorer(**{**FAST, "audit": True}).fit(REFERENCE.iloc[:150])
    assert caught[0].filename == __file__
    assert str(model.audit_).startswith("Not audited: 150 reference rows, at least 200 are needed.")
    assert str(Restorer(**FAST).fit(REFERENCE.iloc[:150]).audit_) == "Not audited: audit=False."


def test_warnings_point_at_the_call() -> None:
    with pytest.warns(CalibrationWarning, match="calibration rows cannot show") as caught:
        Restorer(**FAST, alarm_rate=0.01).fit(REFERENCE.iloc[:60])
    assert caught[0].filename == __file__


def test_audits_of_numbers_hold_no_nan_and_count_distrusted_rows() -> None:
    numbers = REFERENCE[["x1", "x2", "x3"]]
    numbers = pd.concat([numbers, 9.0 * numbers.iloc[:20][::-1].reset_index(drop=True)])
    model = Restorer(**{**FAST, "audit": True, "reference": "contaminated"}).fit(numbers)
    report = model.audit_.to_dict()
    assert report["damage"][0]["categories"] is None
    assert "NaN" not in json.dumps(report)
    n = model.row_counts_["distrusted"]
    assert n > 0
    assert f"Distrusted and not learnt from: {n} of 420 reference rows." in str(model.audit_)


def test_verbose_says_what_fit_does(capsys: pytest.CaptureFixture[str]) -> None:
    Restorer(**FAST).fit(REFERENCE)
    assert capsys.readouterr().out == ""
    Restorer(**FAST, verbose=1).fit(REFERENCE)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("restorer: 400 reference rows, 0 distrusted, 300 to learn from (")
    assert lines[1].startswith("restorer: learnt by conditional; calibrated on 100 rows (")
    assert lines[2].startswith("restorer: audited on 0 rows (")


@pytest.mark.parametrize("dtype", [float, int, object])
def test_masked_arrays_are_refused(dtype: Any) -> None:
    table = np.ma.masked_array((10 * REFERENCE[["x1", "x2", "x3"]].to_numpy()).astype(dtype))
    model = Restorer(**FAST).fit(np.asarray(table))
    model.restore(table)
    table[0, 1] = np.ma.masked
    for use in (model.restore, model.transform, Restorer(**FAST).fit):
        with pytest.raises(InputError, match=r"Masked arrays are not read; 1 cells .* Hint: array.astype"):
            use(table)


@pytest.mark.parametrize("value", [1e9, 1e20, 1e160, -1.7e308])
def test_absurd_numbers_are_mended_as_large_ones_are(restorer: Restorer, value: float) -> None:
    table = CLEAN.iloc[:40].copy()
    table.loc[3, "x3"] = value
    result = restorer.restore(table)
    assert abs(result.table.loc[3, "x3"] - CLEAN.loc[3, "x3"]) < 1.0
    lines = result.seam.to_polars().filter(pl.col("row") == 3)
    large = restorer.restore(table.assign(x3=table["x3"].clip(-1e6, 1e6))).seam.to_polars().filter(pl.col("row") == 3)
    assert lines.select("column", "cause").rows() == large.select("column", "cause").rows()
    assert float(lines.filter(pl.col("column") == "x3")["observed"][0]) == value
    why = restorer.explain(table, 3)
    assert next(c for c in why.cells if c["column"] == "x3")["observed"] == value
    pd.testing.assert_frame_equal(result.undo(), table, check_exact=True)


@pytest.mark.parametrize("scale", [1e160, 1e300, 1e-310])
def test_columns_at_the_ends_of_float64_are_refused(scale: float) -> None:
    with pytest.raises(
        InputError, match=r"Column 'x3' .* below 1e\+150 and span at least 1e-300; it goes from .* Hint"
    ):
        Restorer(**FAST).fit(REFERENCE.assign(x3=REFERENCE["x3"] * scale))
    for fine in (1e140, 1e-290):
        model = Restorer(**FAST).fit(REFERENCE.assign(x3=REFERENCE["x3"] * fine))
        mended = model.restore(damaged(CLEAN.assign(x3=CLEAN["x3"] * fine))[0]).table
        assert np.isfinite(mended.select_dtypes("number").to_numpy()).all()


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_categorical_gains_a_level_only_for_a_repair_that_needs_it(restorer: Restorer, library: str) -> None:
    table = CLEAN[CLEAN["side"] != "middle"].head(40).reset_index(drop=True)
    table["side"] = pd.Categorical(table["side"].astype(str), ["left", "right"])
    table.loc[3, "x3"] = 40.0
    incoming: Any = table
    if library != "pandas":
        incoming = pl.from_pandas(table).with_columns(pl.col("side").cast(pl.Enum(["left", "right"])))
        incoming = incoming.to_arrow() if library == "pyarrow" else incoming
    result = restorer.restore(incoming)
    middle = "middle" in {line["restored"] for line in result.seam if line["column"] == "side"}
    assert not middle
    assert result.changed.any()
    if library == "pandas":
        assert result.table["side"].dtype == table["side"].dtype
    else:
        before, after = (
            part.schema if library == "polars" else part.schema.field("side") for part in (incoming, result.table)
        )
        assert before == after


def test_where_few_rows_are_damaged_the_same_is_flagged_and_less_of_what_is_rare_is_moved() -> None:
    """Incomes with a heavy tail beside columns that hardly tell of them: the rich are flagged, and were right."""
    rng = np.random.default_rng(0)
    wealth = rng.normal(size=(900, 1))
    table = np.exp(0.8 * wealth + 0.8 * rng.normal(size=(900, 4)))
    reference, clean = table[:450], table[450:]
    even, few = (Restorer(**FAST, denoise=False, damaged_share=share).fit(reference) for share in (0.5, 0.05))
    np.testing.assert_array_equal(even.p_values(clean), few.p_values(clean))
    moved = [np.abs(model.restore(clean).table - clean) for model in (even, few)]
    assert (moved[1] <= moved[0]).all()
    assert moved[1].sum() < 0.65 * moved[0].sum()


def heavy_tails(n: int, seed: int) -> np.ndarray:
    """Incomes with a heavy tail beside columns that hardly tell of them."""
    rng = np.random.default_rng(seed)
    return np.exp(0.8 * rng.normal(size=(n, 1)) + 0.8 * rng.normal(size=(n, 4)))


@pytest.fixture(scope="module")
def incomes() -> Restorer:
    return Restorer(**FAST, denoise=False).fit(heavy_tails(600, 0))


def test_a_table_tells_how_openly_it_is_damaged(incomes: Restorer) -> None:
    """Values drawn from the columns themselves leave the rich alone; where values are drawn from anywhere, repairs are bold."""
    clean, rng = heavy_tails(500, 1), np.random.default_rng(2)
    hit = (rng.random(clean.shape) < 0.15) & (rng.random((500, 1)) < 0.5)
    hidden, openly = clean.copy(), clean.copy()
    hidden[hit] = rng.permuted(clean, axis=0)[hit]
    openly[hit] = (rng.random(clean.shape) * clean.max(axis=0))[hit]
    few, many = (incomes.restore(table) for table in (hidden, openly))
    assert few.facts["levels"]["open_share"] < 0.03
    assert many.facts["levels"]["open_share"] > 0.1
    error = lambda table: ((table - clean) ** 2 / clean.var(axis=0)).sum()  # noqa: E731
    assert error(few.table) <= 1.02 * error(hidden)
    assert error(many.table) < 0.6 * error(openly)
    told = clone_of(incomes, damaged_share=0.5)
    assert told.restore(hidden).facts["levels"]["open_share"] is None
    np.testing.assert_array_equal(few.row_p_values, told.restore(hidden).row_p_values)
    assert error(few.table) < error(told.restore(hidden).table)


def clone_of(model: Restorer, **settings: Any) -> Restorer:
    return Restorer(**{**model.get_params(), **settings}).fit(heavy_tails(600, 0))


def test_few_rows_tell_nothing_of_their_table(incomes: Restorer) -> None:
    few = heavy_tails(19, 3)
    assert incomes.survey([few]).open_share is None
    assert incomes.survey([np.concatenate([few, few])]).open_share is not None
    np.testing.assert_array_equal(incomes.restore(few).table, incomes.transform(few))


def test_a_survey_is_the_same_however_a_table_is_cut(incomes: Restorer) -> None:
    table = heavy_tails(300, 4)
    assert incomes.survey([table]) == incomes.survey([table[:70], table[70:71], table[71:]])


def test_levels_with_an_impossible_share_are_refused(incomes: Restorer) -> None:
    with pytest.raises(
        ParameterError, match=r"levels must have a share of openly damaged rows between 0 and 1; got 1\.5"
    ):
        incomes.restore(heavy_tails(30, 5), levels=Levels(open_share=1.5))
    with pytest.raises(ParameterError, match=r"share of far rows between 0 and 1; got -1"):
        incomes.restore(heavy_tails(30, 5), levels=Levels(open_share=0.5, far_share=-1))


def test_without_a_reference_the_table_tells_too() -> None:
    table = heavy_tails(300, 6)
    result = Restorer(**FAST, reference="contaminated", denoise=False).fit_restore(table)
    assert 0.0 <= result.facts["levels"]["open_share"] < 0.1


def test_the_survey_of_openness_is_saved_with_the_model(incomes: Restorer, tmp_path: Path) -> None:
    incomes.save(tmp_path / "incomes.seam")
    again, table = gs.load(tmp_path / "incomes.seam"), heavy_tails(200, 7)
    assert again.survey([table]) == incomes.survey([table])
    np.testing.assert_array_equal(again.restore(table).table, incomes.restore(table).table)


def test_levels_never_seen_are_no_alarm_where_further_ones_are_to_be_expected() -> None:
    """A town that no reference row had was an alarm, in a table where every tenth row has such a town."""
    rng = np.random.default_rng(0)
    town = np.minimum(rng.zipf(1.4, size=900), 10_000)
    table = pd.DataFrame({"town": [f"t{k}" for k in town], "x": rng.normal(size=900), "y": rng.normal(size=900)})
    reference, incoming = table.iloc[:600], table.iloc[600:].reset_index(drop=True)
    model = Restorer(**FAST, kinds={"town": "categorical"}).fit(reference)
    new = ~incoming["town"].isin(reference["town"]).to_numpy()
    assert new.mean() > 0.09
    result = model.restore(incoming)
    assert result.flagged.mean() < 0.05 + 2.0 * np.sqrt(0.05 * 0.95 * (1 / 300 + 1 / model.row_counts_["calibration"]))
    assert result.flagged[new].mean() < 0.2
    few = Restorer(**FAST).fit(REFERENCE)  # of a column that has shown all it has
    assert few.restore(CLEAN.assign(band="?")).flagged.mean() > 0.9
