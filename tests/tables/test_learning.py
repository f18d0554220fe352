"""What a schema says of the reference: kinds, levels, centres, and how they can be overruled."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from goldseam.errors import InputError, ParameterError
from goldseam.schema import Column, Kind, Schema, robust_scale, weighted_quantile
from goldseam.tables import Table, learn_schema


def learnt(values, **settings) -> Column:
    native = values if isinstance(values, (np.ndarray, pl.DataFrame, pa.Table)) else pd.DataFrame({"a": values})
    return learn_schema(Table.read(native), **settings).columns[0]


def ordered_dictionary(labels: list[str]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(range(len(labels))), pa.array(labels), ordered=True)


@pytest.mark.parametrize(
    ("values", "kind", "modelled_as"),
    [
        ([0.5, 1.5, 2.5], "continuous", "number"),
        ([1.0, 2.0, None, 1.0], "integer", "category"),
        (range(11), "integer", "number"),
        (range(10), "integer", "category"),
        ([2**62, 1, 5, *range(20)], "integer", "number"),
        ([1e300, 2.0, 3.0], "continuous", "number"),
        ([True, False, None], "boolean", "category"),
        (["x", "y", "x"], "categorical", "category"),
        (pd.Categorical(["x", "y", "z"]), "categorical", "category"),
        (pd.Categorical(["x", "y", "z"], ordered=True), "ordinal", "category"),
        ([Decimal("1"), Decimal("2"), Decimal("1")], "continuous", "number"),
        ([1, "x", 1, "x"], "passthrough", "nothing"),
        ([True, 2, False], "passthrough", "nothing"),
        (["x", "y", "z"], "passthrough", "nothing"),
        (["x", "x", "x"], "passthrough", "nothing"),
        ([3.5, 3.5], "passthrough", "nothing"),
        ([None, None], "passthrough", "nothing"),
        ([np.nan, np.nan], "passthrough", "nothing"),
        ([dt.date(2024, 1, 1), dt.date(2024, 1, 2)], "passthrough", "nothing"),
        ([pd.Timestamp(0), pd.NaT], "passthrough", "nothing"),
        ([pd.Timedelta(1), pd.Timedelta(2)], "passthrough", "nothing"),
        ([b"x", b"y", b"x"], "passthrough", "nothing"),
        ([[1], [2], [1]], "passthrough", "nothing"),
        (pd.cut([1, 2, 3, 1], 2), "passthrough", "nothing"),
        (np.array([["x"], ["y"], ["x"]], dtype=np.dtypes.StringDType()), "categorical", "category"),
        (pl.DataFrame({"a": pl.Series(["x", "y", "x"], dtype=pl.Enum(["y", "x"]))}), "categorical", "category"),
        (pl.DataFrame({"a": [dt.time(1), dt.time(2)]}), "passthrough", "nothing"),
        (pl.DataFrame({"a": pl.Series([None, None], dtype=pl.Null)}), "passthrough", "nothing"),
        (pa.table({"a": pa.array([1.5, None, 2.5], pa.float32())}), "continuous", "number"),
        (pa.table({"a": [2**62 + 1, *range(20)]}), "integer", "number"),
        (pa.table({"a": pa.array(["x", "y"]).dictionary_encode()}), "categorical", "category"),
        (pa.table({"a": ordered_dictionary(["x", "y"])}), "ordinal", "category"),
    ],
)
def test_kinds(values, kind, modelled_as):
    column = learnt(values)
    assert (column.kind.value, column.modelled_as) == (kind, modelled_as)


def test_identifiers_are_passed_through():
    half_distinct = [f"key {i}" for i in range(60)] + ["key 0"] * 59
    assert learnt(half_distinct).kind is Kind.PASSTHROUGH
    assert learnt([*half_distinct, "key 0"]).kind is Kind.CATEGORICAL  # exactly half: still a category
    assert learnt(half_distinct, max_levels=60).kind is Kind.CATEGORICAL


def test_levels_do_not_depend_on_the_order_of_rows():
    assert learnt(["b", "a", "c", "a"]).levels == learnt(["c", "a", "a", "b"]).levels == ("a", "b", "c")
    assert learnt([3, 1, 2, 1]).levels == (1, 2, 3)
    assert learnt([False, True]).levels == (False, True)


def test_ordinals_keep_their_order_and_only_the_levels_that_occur():
    values = pd.Categorical(["high", "low", "high"], categories=["low", "middle", "high"], ordered=True)
    assert learnt(values).levels == ("low", "high")
    enum = pl.Series(["y", "x", "y"], dtype=pl.Enum(["y", "x"]))
    assert learnt(pl.DataFrame({"a": enum}), kinds={"a": "ordinal"}).levels == ("y", "x")


def test_rare_levels_are_merged_most_frequent_first():
    values = list("aaaaa" + "bbbb" + "c" + "ddd" + "ee")
    column = learnt(values, max_levels=3)
    assert (column.levels, column.merged) == (("a", "b", "d"), ("d", "e", "c"))
    schema = Schema((column,))
    codes = Table.read(pd.DataFrame({"a": [*"abcde", "z", None]})).encode(schema).codes[:, 0]
    assert codes.tolist() == [0, 1, 2, 2, 2, -2, -1]


def test_merged_numbers_and_orders():
    column = learnt([1, 1, 1, 2, 3, 3, 4, 4, 4], max_levels=3)
    assert (column.levels, column.merged) == ((1, 4, 3), (3, 2))
    codes = Table.read(pd.DataFrame({"a": [4, 3, 2, 1, 9]})).encode(Schema((column,))).codes[:, 0]
    assert codes.tolist() == [1, 2, 2, 0, -2]
    ordered = pd.Categorical(list("lmmhhhx"), categories=list("lmhx"), ordered=True)
    column = learnt(ordered, max_levels=3)
    assert (column.levels, column.merged) == (("l", "m", "h"), ("h", "x"))


def test_a_category_of_text_and_numbers_takes_either():
    schema = Schema((learnt([1, "x", 1, "x"], kinds={"a": "categorical"}),))
    for values, codes in (([1, 1, 2], [0, 0, -2]), (["x", "y"], [1, -2]), (["x", 1.0, None], [1, 0, -1])):
        assert Table.read(pd.DataFrame({"a": values})).encode(schema).codes[:, 0].tolist() == codes


def test_center_scale_and_range():
    column = learnt([0.5, 1.5, 2.5, 3.5, 100.0, None])
    assert (column.center, column.scale, column.low, column.high) == (2.5, 2.0, 0.5, 100.0)


def test_small_integers_and_constants_can_stay_numbers():
    assert learnt([1, 2, 2], small_integers=0).modelled_as == "number"
    assert learnt([1, 2, 2], declared_numbers=True).modelled_as == "category"
    assert learnt([1, 2, 2], kinds={"a": "integer"}, declared_numbers=True).modelled_as == "number"
    assert learnt([1, 2, 2], kinds={"a": "ordinal"}, declared_numbers=True).modelled_as == "category"
    column = learnt([7, 7], constant="number")
    assert (column.modelled_as, column.center, column.scale, column.low) == ("number", 7.0, 1.0, 7.0)
    assert learnt([np.nan, np.nan], constant="number").modelled_as == "number"
    assert learnt(["x", "x"], constant="number").modelled_as == "nothing"


def test_markers_make_text_numeric():
    values = ["1.5", "n/a", "2.5", "?", "1.5"]
    assert learnt(values).kind is Kind.CATEGORICAL
    column = learnt(values, missing_values=["n/a", "?"])
    assert (column.kind, column.center) == (Kind.CONTINUOUS, 1.5)
    assert learnt(["x", "n/a", "y", "x"], missing_values=["n/a"]).levels == ("x", "y")
    assert learnt(["01", "02", "01"], missing_values=["n/a"]).kind is Kind.CATEGORICAL  # no marker occurs: text
    kept = learnt(values, missing_values=["n/a", "?"], kinds={"a": "categorical"})
    assert kept.levels == ("1.5", "2.5")


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        ([101, 102, 101, 250], "categorical", (101, 102, 250)),
        ([0.5, 1.5, 0.5], "ordinal", (0.5, 1.5)),
        (["x", "y", "z"], "categorical", ("x", "y", "z")),
        (["low", "high", "low"], "ordinal", ("high", "low")),
        ([0, 1, 1], "boolean", (False, True)),
        ([0.0, 1.0, None], "boolean", (False, True)),
        ([1, 2, 2], "continuous", ()),
        (["1", "2", "4"], "continuous", ()),
        ([1, 2, 2], "passthrough", ()),
        ([1, "x", 1, "x"], "categorical", (1, "x")),
    ],
)
def test_kinds_can_be_overruled(values, kind, expected):
    column = learnt(values, kinds={"a": kind})
    assert (column.kind.value, column.levels) == (kind, expected)


@pytest.mark.parametrize(
    ("values", "kind", "message"),
    [
        (["1", "red", "2"], "continuous", r"kinds\['a'\] is 'continuous', but .* text: 'red' at row 1"),
        ([1.0, 2.5], "integer", r"kinds\['a'\] is 'integer', .*: 2\.5 is not whole"),
        ([0, 1, 7], "boolean", r"kinds\['a'\] is 'boolean', .*: 7\.0 is neither 0 nor 1"),
        (["no", "yes", "no"], "boolean", r"kinds\['a'\] is 'boolean', .* text"),
        ([dt.date(2024, 1, 1)] * 2, "categorical", r"kinds\['a'\] is 'categorical', .* type date"),
        ([1, 2], "nominal", r"kinds\['a'\] must be one of continuous, .*, but it is 'nominal'"),
    ],
)
def test_impossible_kinds(values, kind, message):
    with pytest.raises(ParameterError, match=message):
        learnt(values, kinds={"a": kind})


def test_kinds_of_unknown_columns():
    table = Table.read(pd.DataFrame({"temperature": [0.5, 1.5], "place": ["x", "y"]}))
    with pytest.raises(ParameterError, match=r"column 'temprature'.*did you mean 'temperature'"):
        learn_schema(table, kinds={"temprature": "continuous"})
    with pytest.raises(ParameterError, match=r"column 'zip'.*the table has 'temperature', 'place'"):
        learn_schema(table, kinds={"zip": "categorical"})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_levels": 1}, "max_levels must be at least 2, but it is 1"),
        ({"small_integers": -1}, "small_integers must be at least 0, but it is -1"),
        ({"constant": "drop"}, "constant must be 'passthrough' or 'number', but it is 'drop'"),
        ({"missing_values": "n/a"}, "missing_values must be a sequence of strings, but it is 'n/a'"),
        ({"missing_values": [-999]}, r"missing_values must be a sequence of strings, but it is \[-999\]"),
    ],
)
def test_settings_have_limits(settings, message):
    with pytest.raises(ParameterError, match=message):
        learnt([1, 2], **settings)


# ------------------------------------------------------------------------------------------------------- weights


@given(
    values=hnp.arrays(np.float64, st.integers(1, 9), elements=st.floats(-50, 50, width=16)),
    data=st.data(),
)
def test_a_weight_counts_as_repeats(values, data):
    weights = data.draw(hnp.arrays(np.int64, len(values), elements=st.integers(0, 4)).filter(np.any))
    repeated = np.repeat(values, weights)
    found = weighted_quantile(values[weights > 0], (0.1, 0.5, 0.75), weights[weights > 0].astype(float))
    np.testing.assert_allclose(found, np.quantile(repeated, (0.1, 0.5, 0.75)), rtol=1e-12, atol=1e-12)
    scale = robust_scale(values[weights > 0], weights[weights > 0].astype(float))
    np.testing.assert_allclose(scale, robust_scale(repeated), rtol=1e-6)


def test_equal_values_have_scale_one_in_spite_of_rounding():
    values = np.full(3, 0.1)
    assert values.std() > 0
    assert robust_scale(values) == 1.0


def test_huge_values_have_a_finite_scale():
    assert robust_scale(np.array([0.0] * 9 + [1e300])) == 1.0
    assert robust_scale(np.array([-1.7e308, 1.7e308])) == 1.0


def test_rows_of_weight_zero_are_not_seen():
    table = Table.read(pd.DataFrame({"a": [1.5, 2.5, 3.75, 99.5], "b": ["x", "y", "x", "z"]}))
    schema = learn_schema(table, sample_weight=[1, 1, 1, 0])
    assert (schema.columns[0].center, schema.columns[0].high) == (2.5, 3.75)
    assert schema.columns[1].levels == ("x", "y")


def test_weights_decide_which_levels_stay():
    column = learnt(list("aabbbc" * 2), max_levels=2, sample_weight=[1, 1, 1, 1, 1, 20] * 2)
    assert (column.levels, column.merged) == (("c", "b"), ("b", "a"))


@pytest.mark.parametrize("weights", [[1.0], [1.0, -1.0], [0.0, 0.0], [np.nan, 1.0]])
def test_bad_weights(weights):
    with pytest.raises(InputError, match=rf"must hold 2 finite weights.*shape \({len(weights)},\)"):
        learnt([1, 2], sample_weight=weights)


def test_a_schema_survives_json():
    table = pd.DataFrame({"n": [0.5, 1.5, 9.0], "k": ["x", "y", "x"], "g": [1, 2, 1], "b": [True, False, True]})
    schema = learn_schema(Table.read(table), missing_values=["?"])
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict(), allow_nan=False))) == schema
