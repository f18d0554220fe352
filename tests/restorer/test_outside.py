"""Imputers from elsewhere as repairers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.impute import KNNImputer, SimpleImputer

from goldseam.errors import ModelFileError, ParameterError
from goldseam.restorer import Restorer
from tests.restorer.test_restorer import CLEAN, FAST, REFERENCE, damaged

NUMBERS = ["x1", "x2", "x3", "x4"]


def test_an_unfitted_imputer_fills_suspects_and_gaps_of_mixed_tables() -> None:
    model = Restorer(**FAST, repairer=KNNImputer(), denoise=False).fit(REFERENCE)
    table, _ = damaged(CLEAN)
    table.loc[7, "x1"] = np.nan
    table.loc[8, "band"] = None
    result = model.restore(table)
    assert result.table["band"].isin(["high", "low"]).all()
    assert not result.table["x1"].isna().any()
    before = ((table[NUMBERS] - CLEAN[NUMBERS]) ** 2).to_numpy()
    after = ((result.table[NUMBERS] - CLEAN[NUMBERS]) ** 2).to_numpy()
    assert np.nansum(after) < 0.6 * np.nansum(before)
    lines = result.seam.to_polars().drop_nulls("low")
    middle = (lines["low"] + lines["high"]) / 2
    restored = lines["restored"].cast(float, strict=False)
    assert np.nanmax(np.abs((middle - restored).to_numpy())) < 0.6  # counts are rounded


def test_what_a_mean_imputer_fills_is_the_mean() -> None:
    model = Restorer(**FAST, repairer=SimpleImputer(), denoise=False).fit(REFERENCE[NUMBERS])
    table = CLEAN[NUMBERS].copy()
    table.loc[3, "x2"] = np.nan
    filled = model.restore(table).table.loc[3, "x2"]
    fitting = REFERENCE["x2"].iloc[model.reference_rows_]
    assert filled == pytest.approx(fitting.mean(), abs=1e-9)


def test_a_fitted_imputer_sees_the_columns_as_they_are() -> None:
    fitted = SimpleImputer(strategy="constant", fill_value=123.0).fit(REFERENCE[NUMBERS].to_numpy())
    model = Restorer(**FAST, repairer=fitted, denoise=False).fit(REFERENCE[NUMBERS])
    table = CLEAN[NUMBERS].copy()
    table.loc[3, "x2"] = np.nan
    assert model.restore(table).table.loc[3, "x2"] == 123.0


def test_bad_repairers_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"repairer must have fit and transform, .* got 3"):
        Restorer(**FAST, repairer=3).fit(REFERENCE)
    fitted = SimpleImputer().fit(REFERENCE[NUMBERS].to_numpy())
    with pytest.raises(ParameterError, match=r"can only be used where all columns are numbers; 'band' is a category"):
        Restorer(**FAST, repairer=fitted).fit(REFERENCE)
    with pytest.raises(ParameterError, match=r"was fitted on 4 columns, but 2 are modelled. Hint: give it unfitted"):
        Restorer(**FAST, repairer=fitted).fit(REFERENCE[["x1", "x2"]])
    model = Restorer(**FAST, repairer=clone(fitted)).fit(REFERENCE[NUMBERS])
    with pytest.raises((ParameterError, ModelFileError), match="SimpleImputer"):
        model.save(tmp_path / "model.seam")
    assert not list(tmp_path.iterdir())


def test_a_fitted_imputer_sees_its_columns_by_name() -> None:
    means = REFERENCE[NUMBERS].mean()
    fitted = SimpleImputer().fit(REFERENCE[NUMBERS[::-1]])
    model = Restorer(**FAST, repairer=fitted, denoise=False).fit(REFERENCE[NUMBERS])
    table = CLEAN[NUMBERS].copy()
    table.loc[3, "x1"] = table.loc[4, "x4"] = np.nan
    filled = model.restore(table).table
    assert filled.loc[3, "x1"] == pytest.approx(means["x1"], abs=1e-9)
    assert filled.loc[4, "x4"] == pytest.approx(means["x4"], abs=1e-9)
    other = SimpleImputer().fit(REFERENCE[NUMBERS].rename(columns={"x4": "y"}))
    with pytest.raises(ParameterError, match="fitted on column 'y', which is not among those modelled: x1, x2, x3, x4"):
        Restorer(**FAST, repairer=other).fit(REFERENCE[NUMBERS])
