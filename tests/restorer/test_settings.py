"""Settings and requests that cannot be met are refused with what, limit, value and hint."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.impute import KNNImputer

from goldseam.errors import InputError, ParameterError
from goldseam.mending import Levels
from goldseam.restorer import Restorer
from tests.restorer.test_restorer import CLEAN, FAST, REFERENCE

PIXELS = np.random.default_rng(0).normal(size=(60, 9))


@pytest.fixture(scope="module")
def restorer() -> Restorer:
    return Restorer(**FAST).fit(REFERENCE)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"alarm_rate": "a"}, r"alarm_rate must lie strictly between 0 and 1; got 'a'\. Hint: 0\.05"),
        ({"alarm_rate": None}, "alarm_rate .* got None"),
        ({"coverage": None}, r"coverage .* got None\. Hint: 0\.9"),
        (
            {"damaged_share": 0},
            r"damaged_share must lie strictly between 0 and 1; got 0\. Hint: 0\.1 is one row in ten",
        ),
        ({"damaged_share": "few"}, r"damaged_share must be one of 'auto'; got 'few'\. Hint: check the spelling"),
        ({"method": None}, r"method must be 'auto' or a list of sources; got None\. Hint: 'auto', or a list"),
        ({"method": "conditional"}, "method .* got 'conditional'. Hint: 'auto', or a list"),
        ({"method": ["tree"]}, r"besides the tree; got \['tree'\]. Hint"),
        ({"kinds": 3}, r"kinds must be a mapping; got 3\. Hint: kinds={'zip'"),
        ({"groups": [["x1"]]}, r"groups must be a mapping; got \[\['x1'\]\]"),
        ({"groups": {"a": "x1"}}, r"groups\['a'\] must be a list of columns; got 'x1'"),
        ({"groups": {"a": ["x1", "x1"]}}, "Column 'x1' is twice in group 'a'"),
        ({"groups": {"a": ["x1"]}, "grid_shape": (2, 4)}, "groups and grid_shape cannot be given together"),
        ({"max_levels": "a"}, "max_levels must be a whole number of at least 2; got 'a'"),
        ({"max_levels": 1}, "max_levels .* got 1"),
        ({"missing_values": None}, "missing_values must be a sequence of strings; got None"),
        ({"missing_values": "n/a"}, r"missing_values .* got 'n/a'\. Hint: missing_values=\['n/a'\]"),
        ({"constraints": None}, "constraints must be a sequence of strings; got None"),
        ({"constraints": "0 <= x1"}, "constraints .* got '0 <= x1'"),
        ({"constraints": [3]}, r"constraints .* got \[3\]"),
        ({"costs": "a"}, "costs must be a number, or numbers by column; got 'a'"),
        ({"costs": {"x1": None}}, "costs .* got None"),
        ({"n_jobs": "a"}, "n_jobs must be a whole number; got 'a'"),
        ({"n_jobs": 0}, "n_jobs must not be 0"),
        ({"verbose": "loud"}, "verbose must be a whole number; got 'loud'"),
        ({"denoise": True}, "denoise must be one of 'auto', False; got True"),
        ({"denoise": {"zz": 1.0}}, "column 'zz', which is not in the table"),
        ({"denoise": {"x1": -1.0}}, "column 'x1' must be a number of at least 0; got -1.0"),
        ({"denoise": {"band": 2.0}}, "category 'band' is a flip rate and must be below 1; got 2"),
        ({"denoise": {"x1": "a"}}, "column 'x1' must be a number of at least 0; got 'a'"),
    ],
)
def test_bad_settings_are_named(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        Restorer(**{**FAST, **settings}).fit(REFERENCE)


@pytest.mark.parametrize("shape", [(3,), (-3, -3), 9, "ab", (3.0, 3.0), (1, 3, 3)])
def test_grids_need_two_whole_sides(shape: Any) -> None:
    with pytest.raises(ParameterError, match="grid_shape must be two whole numbers above 0; got"):
        Restorer(**FAST, grid_shape=shape).fit(PIXELS)


def test_grids_have_as_many_pixels_as_columns() -> None:
    with pytest.raises(ParameterError, match=r"of the 9 modelled columns; got \(4, 4\)\. Hint: .* 16 pixels"):
        Restorer(**FAST, grid_shape=(4, 4)).fit(PIXELS)


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (1.5, "row must be a whole number; got 1.5"),
        ("a", "row must be a whole number; got 'a'"),
        (300, "Row 300 was asked for, but the table has rows 0 to 299"),
    ],
)
def test_rows_that_are_none_cannot_be_explained(restorer: Restorer, row: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        restorer.explain(CLEAN, row)


def test_tables_without_rows_cannot_be_explained(restorer: Restorer) -> None:
    with pytest.raises(InputError, match="Row 0 was asked for, but the table has no rows"):
        restorer.explain(CLEAN.iloc[:0], 0)


@pytest.mark.parametrize("n_folds", [0, 1, 2.5, 41, "a"])
def test_folds_are_whole_and_no_more_than_rows(n_folds: Any) -> None:
    with pytest.raises(ParameterError, match=f"n_folds must be a whole number from 2 to .* 40; got {n_folds!r}"):
        Restorer(**FAST).fit_restore(CLEAN.iloc[:40], n_folds=n_folds)


def test_one_table_is_no_batches(restorer: Restorer) -> None:
    for one in (CLEAN, CLEAN.to_numpy(), 3):
        with pytest.raises(InputError, match=rf"iterable of tables, but they are one '{type(one).__name__}'. Hint: \["):
            restorer.survey(one)
        with pytest.raises(InputError, match="iterable of tables"):
            next(restorer.restore_stream(one))


def test_levels_must_be_those_of_such_a_model(restorer: Restorer) -> None:
    with pytest.raises(ParameterError, match=r"levels must be those of a survey; got 3. Hint: levels=restorer.survey"):
        restorer.restore(CLEAN, levels=3)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match=r"levels under error_control='row' must not .* got 0.01"):
        restorer.check(CLEAN, levels=Levels(0.01))
    by_cell = Restorer(**{**FAST, "error_control": "fdr", "alarm_rate": 0.2}).fit(REFERENCE)
    for levels in (Levels(), restorer.survey([CLEAN])):
        with pytest.raises(ParameterError, match=r"levels under error_control='fdr' need a p-value .* got None"):
            by_cell.restore(CLEAN, levels=levels)
    narrow = Restorer(**FAST).fit(REFERENCE[["x1", "x2", "x3"]])
    with pytest.raises(ParameterError, match=r"noise of 3 numbers and 0 categories; got \(6, 2\)"):
        narrow.restore(CLEAN, levels=restorer.survey([CLEAN]))


def test_markers_of_fit_are_those_of_the_table() -> None:
    table = pd.DataFrame({"a": ["1.5", "n/a", "2.5", *["3.5", "4.25"] * 20], "b": np.arange(43.0)})
    model = Restorer(**FAST, missing_values=["n/a"], alarm_rate=0.2).fit(table)
    assert model.schema_.missing_values == ("n/a",)


@pytest.mark.parametrize(
    "settings",
    [
        {"kinds": {2: "integer"}}, {"groups": {"pair": [0, 2]}}, {"policy": {0: "flag"}}, {"costs": {1: 3.0}},
        {"denoise": {0: 0.1}},
    ],
)  # fmt: skip
def test_columns_are_named_by_their_labels_or_as_text(settings: dict[str, Any]) -> None:
    table = pd.DataFrame({0: PIXELS[:, 0], 1: PIXELS[:, 1], 2: np.rint(PIXELS[:, 2])})
    ((name, by_label),) = settings.items()
    as_text = {str(key): [str(c) for c in value] if name == "groups" else value for key, value in by_label.items()}
    damaged = table.head(20).copy()
    damaged.loc[3, 0] = 40.0
    results = [Restorer(**FAST | {name: given}).fit(table).restore(damaged) for given in (by_label, as_text)]
    assert results[0].seam == results[1].seam
    other = {"pair": [9]} if name == "groups" else {9: next(iter(by_label.values()))}
    with pytest.raises(ParameterError, match=r"names (the )?column '9'"):
        Restorer(**FAST | {name: other}).fit(table)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"repairer": "knn"}, r"repairer must have fit and transform, .* got 'knn'\. Hint: an imputer itself"),
        ({"repairer": KNNImputer}, r"repairer must have fit and transform, .* got <class .*KNNImputer'>\. Hint"),
        ({"constraints": ["x9 >= 0"]}, "Constraint names column 'x9'"),
        ({"constraints": ["x1 >= 3", "x1 <= 2"]}, "Constraints contradict each other: column 'x1'"),
        ({"policy": {"x1": "mend"}}, "policy of column 'x1' must be one of repair, flag, quarantine; got 'mend'"),
        ({"costs": -1.0}, "costs must be finite and at least 0; got -1"),
    ],
)
def test_rules_and_repairers_are_refused_before_anything_is_learnt(
    settings: dict[str, Any], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ParameterError, match=says):
        Restorer(**FAST, verbose=1, **settings).fit(REFERENCE)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"denoise": {"x1": 1.0}}, r"{'x1': 1\.0}, but the model was fitted without a denoiser\. Hint: fit it again"),
        ({"denoise": "never"}, "denoise must be one of 'auto', False; got 'never'"),
        ({"n_jobs": "all"}, "n_jobs must be a whole number; got 'all'"),
    ],
)
def test_settings_given_after_the_fit_are_checked_too(settings: dict[str, Any], says: str) -> None:
    model = Restorer(**FAST, denoise=False).fit(REFERENCE).set_params(**settings)
    for act in (model.restore, model.check, model.transform):
        with pytest.raises(ParameterError, match=says):
            act(CLEAN)


def test_explanations_name_the_rate_that_rows_were_judged_by() -> None:
    model = Restorer(**FAST).fit(REFERENCE).set_params(alarm_rate=0.4)
    assert model.explain(CLEAN, 3).alarm_rate == 0.05
