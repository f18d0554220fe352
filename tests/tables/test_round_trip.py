"""Generated tables of every library and dtype: untouched cells come back as they were, changed ones as written."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goldseam.schema import MISSING, Blocks, Kind
from goldseam.tables import Table, learn_schema

FLOATS = st.floats(allow_infinity=False, width=32)
WORDS = st.sampled_from(["red", "green", "blue", "", "ünï", "n/a"])
TIMES = st.datetimes(dt.datetime(1990, 1, 1), dt.datetime(2030, 1, 1)).map(lambda t: t.replace(microsecond=0))
SPANS = st.integers(0, 10**6).map(lambda s: dt.timedelta(seconds=s))
DECIMALS = st.integers(-99999, 99999).map(lambda i: Decimal(i).scaleb(-2))
WHOLE = st.integers(-120, 120)
GRADES = st.integers(0, 3)
NATURAL = st.integers(0, 255)
ENUM = ["", "blue", "green", "n/a", "red", "spare", "ünï"]

# name -> (strategy of a cell, native dtype, whether the dtype has a missing state)
PANDAS: dict[str, tuple[Any, Any, bool]] = {
    "float64": (FLOATS, "float64", True),
    "float32": (FLOATS, "float32", True),
    "float16": (st.floats(-100, 100, width=16), "float16", True),
    "nullable float": (st.floats(-9, 9, width=32), "Float32", True),
    "int64": (st.integers(-(2**53), 2**53), "int64", False),
    "int8": (WHOLE, "int8", False),
    "grades": (GRADES, "int64", False),
    "nullable int": (WHOLE, "Int16", True),
    "nullable uint": (NATURAL, "UInt8", True),
    "arrow int": (WHOLE, pd.ArrowDtype(pa.int64()), True),
    "bool": (st.booleans(), "bool", False),
    "nullable bool": (st.booleans(), "boolean", True),
    "arrow bool": (st.booleans(), pd.ArrowDtype(pa.bool_()), True),
    "object bool": (st.booleans(), "object", True),
    "str": (WORDS, "str", True),
    "string": (WORDS, "string", True),
    "object text": (WORDS, "object", True),
    "arrow text": (WORDS, pd.ArrowDtype(pa.string()), True),
    "category": (WORDS, pd.CategoricalDtype(ENUM), True),
    "ordered": (WORDS, pd.CategoricalDtype(ENUM[::-1], ordered=True), True),
    "category of numbers": (GRADES, pd.CategoricalDtype([3, 2, 1, 0, 9]), True),
    "arrow dictionary": (WORDS, pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string())), True),
    "decimal": (DECIMALS, "object", True),
    "arrow decimal": (DECIMALS, pd.ArrowDtype(pa.decimal128(9, 2)), True),
    "datetime": (TIMES, "datetime64[us]", True),
    "zoned": (TIMES, "datetime64[us, UTC]", True),
    "timedelta": (SPANS, "timedelta64[us]", True),
    "date": (TIMES.map(lambda t: t.date()), "object", True),
    "object numbers": (WHOLE, "object", True),
    "mixture": (WHOLE | WORDS, "object", True),
    "lists": (st.lists(GRADES, max_size=2), "object", True),
}
POLARS: dict[str, tuple[Any, Any, bool]] = {
    "float64": (FLOATS, pl.Float64, True),
    "float32": (FLOATS, pl.Float32, True),
    "int64": (st.integers(-(2**53), 2**53), pl.Int64, True),
    "int8": (WHOLE, pl.Int8, True),
    "uint64": (st.integers(0, 2**53), pl.UInt64, True),
    "grades": (GRADES, pl.Int32, True),
    "bool": (st.booleans(), pl.Boolean, True),
    "text": (WORDS, pl.String, True),
    "categorical": (WORDS, pl.Categorical, True),
    "enum": (WORDS, pl.Enum(ENUM), True),
    "decimal": (DECIMALS, pl.Decimal(9, 2), True),
    "date": (TIMES.map(lambda t: t.date()), pl.Date, True),
    "datetime": (TIMES, pl.Datetime("us"), True),
    "duration": (SPANS, pl.Duration("us"), True),
    "time": (TIMES.map(lambda t: t.time()), pl.Time, True),
    "binary": (st.binary(max_size=3), pl.Binary, True),
    "list": (st.lists(GRADES, max_size=2), pl.List(pl.Int64), True),
    "struct": (GRADES.map(lambda g: {"a": g}), pl.Struct({"a": pl.Int64}), True),
    "null": (st.none(), pl.Null, True),
}
ARROW: dict[str, tuple[Any, Any, bool]] = {
    "float64": (FLOATS, pa.float64(), True),
    "float32": (FLOATS, pa.float32(), True),
    "int64": (st.integers(-(2**53), 2**53), pa.int64(), True),
    "int8": (WHOLE, pa.int8(), True),
    "uint8": (NATURAL, pa.uint8(), True),
    "grades": (GRADES, pa.int32(), True),
    "bool": (st.booleans(), pa.bool_(), True),
    "text": (WORDS, pa.string(), True),
    "large text": (WORDS, pa.large_string(), True),
    "dictionary": (WORDS, pa.dictionary(pa.int8(), pa.string()), True),
    "ordered": (WORDS, pa.dictionary(pa.int32(), pa.string(), ordered=True), True),
    "unsigned dictionary": (WORDS, pa.dictionary(pa.uint8(), pa.large_string()), True),
    "decimal": (DECIMALS, pa.decimal128(9, 2), True),
    "date": (TIMES.map(lambda t: t.date()), pa.date32(), True),
    "timestamp": (TIMES, pa.timestamp("us", "UTC"), True),
    "duration": (SPANS, pa.duration("us"), True),
    "binary": (st.binary(max_size=3), pa.binary(), True),
    "list": (st.lists(GRADES, max_size=2), pa.list_(pa.int64()), True),
    "null": (st.none(), pa.null(), True),
}
NUMPY: dict[str, tuple[Any, Any, bool]] = {
    "float64": (FLOATS, np.float64, True),
    "float32": (FLOATS, np.float32, True),
    "int64": (st.integers(-(2**53), 2**53), np.int64, False),
    "uint8": (NATURAL, np.uint8, False),
    "bool": (st.booleans(), np.bool_, False),
    "text": (WORDS, np.str_, False),
    "object": (WORDS, np.object_, True),
    "date": (TIMES, "datetime64[us]", False),
}


def pandas_table(columns: list[tuple[Any, list[Any]]], draw: Any) -> pd.DataFrame:
    n_rows = len(columns[0][1])
    index = draw(st.lists(st.sampled_from(["i", "j"]), min_size=n_rows, max_size=n_rows))
    series = [pd.Series(values, index=pd.Index(index, dtype="object"), dtype=dtype) for dtype, values in columns]
    table = pd.concat(series, axis=1) if series else pd.DataFrame()
    table.columns = draw(st.sampled_from([[f"c{i}" for i in range(len(columns))], list(range(len(columns)))]))
    table.attrs["unit"] = "mm"
    return table


def polars_table(columns: list[tuple[Any, list[Any]]], draw: Any) -> pl.DataFrame:
    return pl.DataFrame([pl.Series(f"c{i}", values, dtype=dtype) for i, (dtype, values) in enumerate(columns)])


def arrow_table(columns: list[tuple[Any, list[Any]]], draw: Any) -> pa.Table:
    cut = draw(st.integers(0, len(columns[0][1])))  # two chunks
    chunked = [
        pa.chunked_array([arrow_array(values[:cut], dtype), arrow_array(values[cut:], dtype)])
        for dtype, values in columns
    ]
    fields = [pa.field(f"c{i}", dtype, metadata={"unit": "mm"}) for i, (dtype, _) in enumerate(columns)]
    return pa.table(chunked, schema=pa.schema(fields, metadata={"made": "here"}))


def arrow_array(values: list[Any], dtype: pa.DataType) -> pa.Array:
    if not pa.types.is_dictionary(dtype):
        return pa.array(values, dtype)
    labels = sorted({value for value in values if value is not None})
    codes = pa.array([None if value is None else labels.index(value) for value in values], dtype.index_type)
    return pa.DictionaryArray.from_arrays(codes, pa.array(labels, dtype.value_type), ordered=dtype.ordered)


def numpy_table(columns: list[tuple[Any, list[Any]]], draw: Any) -> np.ndarray:
    dtype = columns[0][0]
    array = np.empty((len(columns[0][1]), len(columns)), dtype="<U5" if dtype is np.str_ else dtype)
    for j, (_, values) in enumerate(columns):
        array[:, j] = values
    return array


LIBRARIES = {
    "pandas": (PANDAS, pandas_table),
    "polars": (POLARS, polars_table),
    "pyarrow": (ARROW, arrow_table),
    "numpy": (NUMPY, numpy_table),
}


def generated(draw: Any, library: str, names: list[str], n_rows: int) -> Any:
    """A table whose cells come from a few values per column, so that categories repeat."""
    dtypes, make = LIBRARIES[library]
    columns = []
    for name in names:
        cell, dtype, gaps = dtypes[name]
        pool = draw(st.lists(cell, min_size=1, max_size=5)) + [None] * gaps
        picks = draw(st.lists(st.integers(0, len(pool) - 1), min_size=n_rows, max_size=n_rows))
        columns.append((dtype, [pool[i] for i in picks]))
    return make(columns, draw)


def described(native: Any) -> tuple[Any, list[list[str]]]:
    """Everything that must not change: types, names, index, metadata; and every cell in full precision."""
    if isinstance(native, pd.DataFrame):
        labels = (list(native.columns), list(native.index), native.index.dtype, native.attrs, native.dtypes.tolist())
        return labels, [[repr(v) for v in native.iloc[:, i].tolist()] for i in range(native.shape[1])]
    if isinstance(native, pl.DataFrame):
        return native.schema, [[repr(v) for v in column.to_list()] for column in native.get_columns()]
    if isinstance(native, pa.Table):
        fields = [(field, field.metadata) for field in native.schema]
        return (fields, native.schema.metadata), [[repr(v) for v in column.to_pylist()] for column in native.columns]
    return (native.dtype, native.shape), [[repr(v) for v in column] for column in native.T.tolist()]


def other_values(draw: Any, schema: Any, blocks: Blocks) -> Blocks:
    """New values for all modelled cells, within what the reference showed."""
    numbers, codes = blocks.numbers.copy(), blocks.codes.copy()
    for j, column in enumerate(schema.numbers):
        numbers[:, j] = draw(st.sampled_from([column.low, column.high, column.center]))
    for j, column in enumerate(schema.categories):
        codes[:, j] = draw(st.integers(0, len(column.levels) - 1))
    return Blocks(numbers, codes)


@pytest.mark.parametrize("library", LIBRARIES)
@given(data=st.data())
@settings(max_examples=250)
def test_round_trip(library, data):
    dtypes = st.sampled_from(list(LIBRARIES[library][0]))
    alike = dtypes.flatmap(lambda name: st.integers(1, 4).map(lambda times: [name] * times))
    names = data.draw(alike if library == "numpy" else st.lists(dtypes, min_size=1, max_size=5, unique=True))
    native = generated(data.draw, library, names, data.draw(st.sampled_from([0, 1, 2, 5, 9])))
    check_table(data.draw, native)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
@given(data=st.data())
@settings(max_examples=10)
def test_every_dtype_at_once(library, data):
    check_table(data.draw, generated(data.draw, library, list(LIBRARIES[library][0]), 12))


def check_table(draw, native):
    before = described(native)
    table = Table.read(native)
    if table.n_rows == 0:
        check_without_rows(native, before)
        return
    schema = learn_schema(table, max_levels=8)
    blocks = table.encode(schema)
    untouched = np.zeros((table.n_rows, len(schema.columns)), dtype=bool)
    assert described(table.decode(schema, blocks, untouched)) == before
    check_rewritten(table, schema, blocks, before)
    check_changed(draw, table, schema, blocks, before)
    assert described(native) == before, "the incoming table itself was written to"


def check_without_rows(native, before):
    """A schema from another table of the same names; nothing to encode, nothing to lose."""
    names = Table.read(native).names
    schema = learn_schema(Table.read(pl.DataFrame({name: [0.5, 1.25] for name in names})))
    blocks = Table.read(native).encode(schema)
    assert blocks.numbers.shape == (0, len(names))
    assert described(Table.read(native).decode(schema, blocks, np.zeros((0, len(names)), dtype=bool))) == before


def check_rewritten(table, schema, blocks, before):
    """Every observed cell written again with its own value: the table must not change."""
    rewritten = np.zeros((table.n_rows, len(schema.columns)), dtype=bool)
    rewritten[:, schema.number_positions] = ~np.isnan(blocks.numbers)
    rewritten[:, schema.category_positions] = blocks.codes != MISSING
    labels, cells = described(table.decode(schema, blocks, rewritten))
    assert labels == before[0]
    assert positive_zeros(cells) == positive_zeros(before[1])


def positive_zeros(cells):
    """A category of numbers knows one zero only."""
    return [["0.0" if cell == "-0.0" else cell for cell in column] for column in cells]


def check_changed(draw, table, schema, blocks, before):
    """Some cells changed: dtypes stay, the other cells stay, the new values are there."""
    changed = np.zeros((table.n_rows, len(schema.columns)), dtype=bool)
    seed = draw(st.integers(0, 2**32 - 1))
    modelled = list(schema.modelled_positions)
    changed[:, modelled] = np.random.default_rng(seed).random((table.n_rows, len(modelled))) < 0.4
    wanted = other_values(draw, schema, blocks)
    result = table.decode(schema, wanted, changed)
    labels, cells = described(result)
    assert labels == before[0]
    for j in range(len(schema.columns)):
        kept = np.flatnonzero(~changed[:, j])
        assert [cells[j][i] for i in kept] == [before[1][j][i] for i in kept]
    found = Table.read(result).encode(schema)
    for j, position in enumerate(schema.number_positions):
        rows, column = changed[:, position], schema.columns[position]
        tolerance = 0.5 if column.kind is Kind.INTEGER else 0.006 + 1e-3 * abs(wanted.numbers[rows, j])
        assert np.all(np.abs(found.numbers[rows, j] - wanted.numbers[rows, j]) <= tolerance)
    for j, position in enumerate(schema.category_positions):
        rows = changed[:, position]
        np.testing.assert_array_equal(found.codes[rows, j], wanted.codes[rows, j])
