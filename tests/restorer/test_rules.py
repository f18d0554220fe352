"""Constraints, policies and the record of a restoration, as users meet them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.impute import SimpleImputer

import goldseam as gs
from goldseam.errors import ModelFileError, ParameterError
from goldseam.evidence import Repairs
from goldseam.restorer import Restorer
from goldseam.schema import Blocks
from goldseam.seam import Restoration

FAST: dict[str, Any] = {"method": ["conditional"], "audit": False, "random_state": 0, "denoise": False}


def bills(n: int, seed: int) -> pd.DataFrame:
    """Net and tax make the total; the band follows the net, in three levels."""
    rng = np.random.default_rng(seed)
    net = rng.uniform(20.0, 120.0, n)
    tax = 0.2 * net + rng.normal(size=n)
    return pd.DataFrame(
        {
            "net": net,
            "tax": tax,
            "total": net + tax,
            "count": np.rint(net / 2 + rng.normal(size=n)).astype(float),
            "band": np.where(net < 50, "low", np.where(net < 90, "mid", "high")),
            "side": rng.choice(["left", "right"], n),
        }
    )


REFERENCE, CLEAN = bills(400, 1), bills(60, 2)


def fitted(**settings: Any) -> Restorer:
    return Restorer(**{**FAST, **settings}).fit(REFERENCE)


def lines(result: Restoration, column: str) -> pl.DataFrame:
    frame = result.seam.to_polars()
    return frame.filter(frame["column"] == column)


# --- constraints ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [{}, {"repairer": SimpleImputer()}, {"denoise": {"net": 5.0, "band": 0.3}}],
    ids=["own", "other", "noise"],
)
def test_gaps_and_repairs_take_allowed_levels_only(settings: dict[str, Any]) -> None:
    table = CLEAN.copy()
    table.loc[::2, "band"] = None
    table.loc[1::4, "band"] = "never"
    free = fitted(**settings).restore(table)
    bound = fitted(**settings, constraints=["band in {high, low}"]).restore(table)
    assert (lines(free, "band")["restored"] == "mid").any()
    assert set(bound.table["band"][bound.changed[:, 4]]) == {"high", "low"}
    assert bound.table["band"][::2].notna().all()


def test_a_forbidden_choice_gives_way_to_the_likeliest_allowed_level() -> None:
    """Levels high, low, mid; then left and right. All four rows would become mid, with what stands: low, low, mid, nothing."""
    mender = fitted(constraints=["band in {high, low}"]).mender_
    blocks = Blocks(np.ones((4, 4)), np.array([[1, 0], [1, 0], [2, 0], [-1, 0]], dtype=np.int32))
    levels = [[0.3, 0.1, 0.6, 1, 0], [0.1, 0.3, 0.6, 1, 0], [0.1, 0.3, 0.6, 1, 0], [0.0, 0.0, 1.0, 1, 0]]
    chosen = Blocks(blocks.numbers, np.array([[2, 0], [2, 0], [2, 0], [2, 0]], dtype=np.int32))
    cells, numbers = np.zeros((4, 6)), np.zeros((4, 4))
    changed = cells > 0
    changed[:, 4] = True
    repairs = Repairs(chosen, changed, cells > 0, cells, numbers, numbers, np.array(levels))
    found = mender._permitted(blocks, repairs)
    assert found.blocks.codes[:, 0].tolist() == [0, 1, 1, -1]
    assert found.changed[:, 4].tolist() == [True, False, True, False]
    assert found.refused[:, 4].tolist() == [False, True, False, True]
    np.testing.assert_allclose(found.levels[0], [0.75, 0.25, 0.0, 1.0, 0.0])


def test_what_cannot_be_met_is_refused_and_the_gap_stays() -> None:
    table = CLEAN.copy()
    table.loc[:9, "total"] = np.nan
    table.loc[:9, "side"] = None
    result = fitted(constraints=["total = net + tax", "total <= 50"]).restore(table)
    small = (CLEAN["net"] + CLEAN["tax"] <= 50)[:10].to_numpy()
    assert 0 < small.sum() < 10
    found = lines(result, "total")
    causes = dict(zip(found["row"], found["cause"], strict=True))
    assert [causes[i] for i in range(10)] == np.where(small, "missing", "refused").tolist()
    np.testing.assert_allclose(
        result.table["total"][:10][small], (result.table["net"] + result.table["tax"])[:10][small]
    )
    assert result.table["total"][:10][~small].isna().all()
    assert result.table["side"][:10].notna().all()  # takes no part


def test_intervals_lie_within_the_bounds_and_hold_the_value() -> None:
    table = CLEAN.copy()
    table.loc[:19, "tax"] = np.nan
    table.loc[10:29, "count"] = np.nan
    result = fitted(constraints=["0 <= tax <= 9", "20.5 < count < 40.5"]).restore(table)
    for column, low, high in (("tax", 0.0, 9.0), ("count", 21.0, 40.0)):
        found = lines(result, column).filter(pl.col("cause") == "missing")
        value = found["restored"].cast(pl.Float64)
        assert found.height == 20
        assert ((found["low"] <= value) & (value <= found["high"])).all()
        assert found["low"].min() >= low
        assert found["high"].max() <= high
    assert (found["low"] == found["low"].round()).all()


@pytest.mark.parametrize(
    ("constraints", "says"),
    [
        (["total = net + tax", "total = net + tax + 5"], "no row can meet"),
        (["count >= 40.2", "count <= 40.8", "count integer"], "at least 41 and at most 40"),
        (["band in {high}", "band in {low}"], "'band' may take levels of {high}; {low}"),
        (["net <= 3 <= 5"], "cannot be read"),
    ],
)
def test_contradictions_are_errors_at_fit(constraints: list[str], says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        fitted(constraints=constraints)


# --- policies ---------------------------------------------------------------------------------------------------------


def damaged() -> pd.DataFrame:
    table = CLEAN.copy()
    table.loc[:9, "tax"] = 400.0
    table.loc[5:14, "net"] = np.nan
    table.loc[5:14, "side"] = None
    return table


def test_nothing_in_a_quarantined_row_is_changed_and_it_can_be_found() -> None:
    table = damaged()
    result = fitted(policy={"tax": "quarantine"}).restore(table)
    assert result.quarantined[:10].all()
    assert result.quarantined.sum() == result.facts["quarantined"]
    pd.testing.assert_frame_equal(result.table[result.quarantined], table[result.quarantined])
    assert result.table.loc[10:14, ["net", "side"]].notna().all().all()
    gaps = lines(result, "net").filter(pl.col("row").is_in(range(5, 10)))
    assert gaps["cause"].to_list() == ["refused"] * 5


def test_nothing_in_a_flagged_column_is_changed_gaps_included() -> None:
    table = damaged()
    result = fitted(policy={"side": "flag", "net": "flag"}).restore(table)
    pd.testing.assert_frame_equal(result.table[["net", "side"]], table[["net", "side"]])
    assert lines(result, "side").filter(pl.col("cause") == "refused")["row"].to_list()[:10] == list(range(5, 15))
    assert (result.table["tax"][:5] < 100).all()


def test_which_rows_are_flagged() -> None:
    by_row = fitted().restore(damaged())
    np.testing.assert_array_equal(by_row.flagged, by_row.row_p_values <= 0.05)
    by_cell = fitted(error_control="fdr", alarm_rate=0.2).restore(damaged())
    assert by_cell.flagged[:10].any()
    np.testing.assert_array_equal(by_cell.flagged, by_cell.suspect.any(axis=1))
    noisy = fitted(denoise={"net": 5.0}).restore(
        CLEAN
    )  # noise that was declared is no alarm, what it does not explain is
    assert noisy.changed.any(axis=1).mean() > 0.9
    np.testing.assert_array_equal(noisy.flagged, (noisy.row_p_values <= 0.05) | noisy.suspect.any(axis=1))
    assert noisy.flagged.mean() < 0.15
    assert not noisy.quarantined.any()


# --- record -----------------------------------------------------------------------------------------------------------


def test_decisions_count_rows_from_the_first_of_the_batch() -> None:
    table = damaged()
    result = fitted().restore(table.iloc[5:20], first_row=25)
    at = int(np.flatnonzero((result.seam.frame["row"] == 31) & (result.seam.frame["column"] == "net"))[0])
    decided = result.apply({at: False})
    assert np.isnan(decided.table["net"].iloc[6])
    assert decided.changed.sum() == result.changed.sum() - 1
    np.testing.assert_array_equal(decided.flagged, result.flagged)


@pytest.mark.parametrize("as_", ["pandas", "numpy", "polars", "arrow"])
@pytest.mark.parametrize("is_damaged", [True, False])
def test_the_restoration_owns_what_it_holds(as_: str, is_damaged: bool) -> None:
    frame = REFERENCE[["net", "tax", "total"]]
    values = damaged()[["net", "tax", "total"]].to_numpy() if is_damaged else np.tile(frame.median().to_numpy(), (9, 1))
    model = Restorer(**FAST).fit(_as(frame.to_numpy(), as_))
    incoming = _as(values.copy(), as_)
    result = model.restore(incoming)
    assert result.changed.any() == is_damaged
    table = np.asarray(result.table).copy()
    for other in (incoming, result.table, result.undo()):
        assert other is not result.undo()
        _spoil(other, as_)
        np.testing.assert_array_equal(np.asarray(result.undo()), values)
    assert result.table is not incoming
    again = model.restore(_as(values, as_))
    np.testing.assert_array_equal(np.asarray(again.table), table)


def _as(values: np.ndarray, library: str) -> Any:
    names = [f"x{i}" for i in range(values.shape[1])]
    columns = {name: values[:, i].copy() for i, name in enumerate(names)}
    makers = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table, "numpy": lambda _: values.copy()}
    return makers[library](columns)


def _spoil(table: Any, library: str) -> None:
    if library == "pandas":
        table.iloc[0, 0] = table.iloc[1, 2] = -7.0
    elif library == "numpy":
        table[0, 0] = table[1, 2] = -7.0
    elif library == "polars":
        table[0, "x0"] = -7.0
        table[1, "x2"] = -7.0


def test_filled_categories_say_how_likely_their_level_is() -> None:
    table = CLEAN.copy()
    table.loc[:29, ["band", "side"]] = None
    table.loc[30:39, "net"] = np.nan
    result = fitted().restore(table)
    bands, sides = (lines(result, name).filter(pl.col("cause") == "missing") for name in ("band", "side"))
    assert bands["probability"].null_count() == 0
    assert bands["probability"].is_between(1 / 3, 1.0).all()
    assert sides["probability"].is_between(0.5, 0.7).all()  # nothing tells the side
    assert lines(result, "net").filter(pl.col("cause") == "missing")["probability"].null_count() == 10
    one = fitted(constraints=["side in {left}"]).restore(table)
    assert set(lines(one, "side").filter(pl.col("cause") == "missing")["probability"]) == {1.0}


def test_a_model_file_with_foreign_rules_is_refused(tmp_path: Any) -> None:
    model = fitted(constraints=["side in {left}", "total = net + tax"], policy={"net": "flag"})
    model.save(tmp_path / "model.seam")
    again = gs.load(tmp_path / "model.seam")
    assert again.mender_.constraints.forbidden == model.mender_.constraints.forbidden
    object.__setattr__(model.mender_.policy, "flag", model.mender_.policy.flag[:3])
    model.save(tmp_path / "broken.seam")
    with pytest.raises(ModelFileError, match="policy must have one entry per cell"):
        gs.load(tmp_path / "broken.seam")
