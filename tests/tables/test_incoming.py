"""Tables that are not as expected: each has its documented outcome, and the message names what is wrong."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from goldseam.errors import InputError, MissingColumnError, SchemaError
from goldseam.schema import MISSING, UNSEEN, Blocks
from goldseam.tables import Table, learn_schema

REFERENCE = pd.DataFrame(
    {"temp_3": np.linspace(0.0, 1.0, 30) + 0.01, "colour": ["red", "green", "blue"] * 10, "grade": [1, 2, 3] * 10}
)
SCHEMA = learn_schema(Table.read(REFERENCE))
MAKERS = {"pandas": lambda table: table, "polars": pl.from_pandas, "pyarrow": pa.Table.from_pandas}
library = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())


def with_text(value: str, row: int) -> pd.DataFrame:
    cells = [str(x) for x in REFERENCE["temp_3"]]
    cells[row] = value
    return REFERENCE.assign(temp_3=cells)


@library
def test_text_for_numbers_names_the_first_bad_value_and_its_row(make):
    message = (
        r"Column 'temp_3' of the incoming table holds text, but the model learnt it as continuous\. "
        r"First bad value: 'n/a' at row 17\. Hint: pass missing_values=\['n/a'\], or refit\."
    )
    with pytest.raises(SchemaError, match=message):
        Table.read(make(with_text("n/a", 17))).encode(SCHEMA)


def test_text_among_python_objects_is_found_too():
    table = REFERENCE.astype({"temp_3": object})
    table.loc[4, "temp_3"] = "broken"
    with pytest.raises(SchemaError, match=r"'temp_3'.*continuous.*'broken' at row 4"):
        Table.read(table).encode(SCHEMA)


@library
def test_text_that_holds_numbers_and_markers_is_read(make):
    table = make(with_text("n/a", 17))
    blocks = Table.read(table, missing_values=["n/a"]).encode(SCHEMA)
    assert np.isnan(blocks.numbers[17, 0])
    np.testing.assert_array_equal(np.delete(blocks.numbers[:, 0], 17), np.delete(REFERENCE["temp_3"].to_numpy(), 17))


@pytest.mark.parametrize("word", ["inf", "nan", "1e999"])
def test_words_that_python_would_read_as_numbers_are_text(word):
    with pytest.raises(SchemaError, match=f"'{word}' at row 3"):
        Table.read(with_text(word, 3)).encode(SCHEMA)


@library
def test_numbers_for_a_category(make):
    with pytest.raises(SchemaError, match=r"'colour'.*holds numbers.*learnt it as categorical.*3\.5 at row 0"):
        Table.read(make(REFERENCE.assign(colour=3.5))).encode(SCHEMA)


@pytest.mark.parametrize(("name", "kind"), [("temp_3", "continuous"), ("colour", "categorical"), ("grade", "integer")])
@library
def test_dates_for_anything(make, name, kind):
    dates = [None, None] + [dt.datetime(2024, 5, 17)] * 28
    with pytest.raises(SchemaError, match=rf"'{name}'.*Datetime.*learnt it as {kind}.*2024.*at row 2"):
        Table.read(make(REFERENCE.assign(**{name: dates}))).encode(SCHEMA)


@library
def test_a_missing_column_suggests_the_new_name(make):
    with pytest.raises(MissingColumnError, match=r"Column 'temp_3' is missing.*renamed to 'temp3'\?"):
        Table.read(make(REFERENCE.rename(columns={"temp_3": "temp3"}))).encode(SCHEMA)


def test_a_missing_column_without_a_near_name_lists_what_is_there():
    with pytest.raises(KeyError, match=r"Column 'temp_3' is missing.*the table has 'colour', 'grade'\."):
        Table.read(REFERENCE[["colour", "grade"]]).encode(SCHEMA)


def test_a_column_that_is_only_passed_through_may_be_absent():
    schema = learn_schema(Table.read(REFERENCE), kinds={"grade": "passthrough"})
    assert Table.read(REFERENCE[["colour", "temp_3"]]).encode(schema).codes.shape == (30, 1)


@library
def test_extra_columns_and_another_order_come_back_in_place(make):
    table = make(REFERENCE.assign(note=[f"free {i}" for i in range(30)])[["note", "grade", "temp_3", "colour"]])
    blocks = Table.read(table).encode(SCHEMA)
    np.testing.assert_array_equal(blocks.numbers, Table.read(REFERENCE).encode(SCHEMA).numbers)
    changed = np.zeros((30, 3), dtype=bool)
    changed[5, [0, 1]] = True
    blocks.numbers[5, 0], blocks.codes[5, 0] = 7.25, SCHEMA.columns[1].levels.index("blue")
    result = Table.read(table).decode(SCHEMA, blocks, changed)
    expected = REFERENCE.assign(note=[f"free {i}" for i in range(30)])[["note", "grade", "temp_3", "colour"]]
    expected.loc[5, ["temp_3", "colour"]] = [7.25, "blue"]
    pd.testing.assert_frame_equal(result if isinstance(result, pd.DataFrame) else result.to_pandas(), expected)


@library
def test_unseen_values_have_a_code_of_their_own(make):
    table = REFERENCE.assign(colour=["mauve", None, "red"] * 10, grade=[9.0, np.nan, 2.0] * 10)
    codes = Table.read(make(table)).encode(SCHEMA).codes
    assert codes[:3].tolist() == [[UNSEEN, UNSEEN], [MISSING, MISSING], [2, 1]]


@library
def test_a_column_without_any_value_fits_every_kind(make):
    table = make(REFERENCE.assign(temp_3=None, colour=None, grade=None))
    blocks = Table.read(table).encode(SCHEMA)
    assert np.isnan(blocks.numbers).all()
    assert (blocks.codes == MISSING).all()
    changed = np.zeros((30, 3), dtype=bool)
    changed[4] = True
    filled = Table.read(table).decode(SCHEMA, Blocks(np.full((30, 1), 0.5), np.zeros((30, 2), np.int32)), changed)
    again = Table.read(filled).encode(SCHEMA)
    assert (again.numbers[4, 0], again.codes[4].tolist()) == (0.5, [0, 0])
    assert (again.codes[[3, 5]] == MISSING).all()


GAPS = {
    "datetime": pd.Series([None] * 30, dtype="datetime64[us]"),
    "zoned": pd.Series([None] * 30, dtype="datetime64[us, UTC]"),
    "timedelta": pd.Series([None] * 30, dtype="timedelta64[ns]"),
    "period": pd.Series([None] * 30, dtype="period[D]"),
    "boolean": pd.Series([None] * 30, dtype="boolean"),
    "polars null": pl.Series([None] * 30),
    "polars date": pl.Series([None] * 30, dtype=pl.Date),
    "polars boolean": pl.Series([None] * 30, dtype=pl.Boolean),
    "polars list": pl.Series([None] * 30, dtype=pl.List(pl.Int64)),
    "arrow null": pa.nulls(30),
    "arrow timestamp": pa.nulls(30, pa.timestamp("us")),
}


@pytest.mark.parametrize("gaps", GAPS.values(), ids=GAPS.keys())
@pytest.mark.parametrize(
    ("name", "cells", "values"),
    [("temp_3", 0, [0.25, 0.75]), ("count", 1, [7, 90]), ("colour", 0, ["blue", "red"]), ("grade", 1, [1, 3])],
)
def test_gaps_of_a_type_that_cannot_hold_what_is_filled_in_take_its_type(gaps, name, cells, values):
    reference = REFERENCE.assign(count=range(30))
    schema = learn_schema(Table.read(reference))
    make = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}[type(gaps).__module__.split(".")[0]]
    table = Table.read(make({n: gaps if n == name else reference[n].to_numpy() for n in reference.columns}))
    blocks = table.encode(schema)
    if name in ("temp_3", "count"):
        blocks.numbers[[4, 9], cells] = values
    else:
        blocks.codes[[4, 9], cells] = [0, 2]
    changed = np.zeros((30, 4), dtype=bool)
    changed[[4, 9], schema.position(name)] = True
    filled = listed(table.decode(schema, blocks, changed)[name])
    assert [filled[4], filled[9]] == values
    assert isinstance(filled[4], type(values[0])) or (isinstance(gaps, pd.Series) and isinstance(filled[4], float))
    assert pd.isna(pd.Series(filled[:4], dtype=object)).all()


@pytest.mark.parametrize(("name", "kind"), [("temp_3", "continuous"), ("grade", "integer")])
@library
def test_booleans_for_numbers(make, name, kind):
    table = make(REFERENCE.assign(**{name: pd.array([None, True] * 15, dtype="boolean")}))
    with pytest.raises(SchemaError, match=rf"'{name}'.*holds booleans.*learnt it as {kind}.*True at row 1"):
        Table.read(table).encode(SCHEMA)


def test_booleans_for_zeros_and_ones_are_read_and_written():
    schema = learn_schema(Table.read(np.tile([[0.0], [1.0], [0.0]], (10, 1))), small_integers=0)
    table = Table.read(np.array([[True], [False], [True]]))
    blocks = table.encode(schema)
    assert blocks.numbers.ravel().tolist() == [1.0, 0.0, 1.0]
    blocks.numbers[:2, 0] = [0.2, 0.8]
    assert table.decode(schema, blocks, np.array([[True], [True], [False]])).ravel().tolist() == [False, True, True]


@library
def test_infinite_numbers_name_column_and_row(make):
    cells = REFERENCE["temp_3"].to_numpy().copy()
    cells[11] = -np.inf
    table = make(REFERENCE.assign(temp_3=cells))
    with pytest.raises(InputError, match=r"Column 'temp_3' is infinite at row 11 \(-inf\)"):
        Table.read(table).encode(SCHEMA)
    with pytest.raises(InputError, match=r"Column 'temp_3' is infinite at row 11 \(-inf\)"):
        learn_schema(Table.read(table))


def test_infinite_numbers_among_python_objects():
    table = REFERENCE.astype({"temp_3": object})
    table.loc[4, "temp_3"] = np.inf
    with pytest.raises(InputError, match=r"Column 'temp_3' is infinite at row 4"):
        Table.read(table).encode(SCHEMA)


def test_infinite_numbers_in_a_category_of_numbers():
    with pytest.raises(InputError, match=r"Column 'grade' is infinite at row 2"):
        Table.read(REFERENCE.assign(grade=[1.0, 2.0, np.inf] * 10)).encode(SCHEMA)


@pytest.mark.parametrize(("labels", "name"), [(["a", "b", "a"], "a"), ([1, "1", "b"], "1")])
def test_duplicate_names(labels, name):
    with pytest.raises(InputError, match=rf"distinct as text, but '{name}' occurs 2 times"):
        Table.read(REFERENCE.set_axis(labels, axis=1))


def test_duplicate_names_of_arrow():
    with pytest.raises(InputError, match=r"'a' occurs 2 times"):
        Table.read(pa.table([[1], [2]], names=["a", "a"]))


@pytest.mark.parametrize("table", [pd.DataFrame(index=range(3)), pl.DataFrame(), pa.table({}), np.zeros((3, 0))])
def test_no_columns(table):
    with pytest.raises(InputError, match="has no columns; at least 1"):
        Table.read(table)


@library
def test_zero_rows(make):
    table = Table.read(make(REFERENCE[:0]))
    with pytest.raises(InputError, match="has 0 rows, but at least 1"):
        learn_schema(table)
    blocks = table.encode(SCHEMA)
    assert (blocks.numbers.shape, blocks.codes.shape) == ((0, 1), (0, 2))
    assert table.decode(SCHEMA, blocks, np.zeros((0, 3), dtype=bool)).shape == (0, 3)


@library
def test_one_row(make):
    table = Table.read(make(REFERENCE[:1]))
    assert {column.kind.value for column in learn_schema(table).columns} == {"passthrough"}
    assert len(table.encode(SCHEMA)) == 1


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pl.LazyFrame({"a": [1]}), r"polars LazyFrame.*\.collect\(\)"),
        ([[1, 2]], "but it is 'list'"),
        (pd.Series([1.0]), "but it is 'Series'"),
        ({"a": [1]}, "but it is 'dict'"),
        (np.zeros(3), "the array has 1"),
        (np.zeros((2, 2, 2)), "the array has 3"),
        (np.zeros(3, dtype=[("length", float), ("width", float)]), r"structured.*\['length', 'width'\]"),
        (np.zeros((2, 2), dtype=complex), "array is complex"),
    ],
)
def test_things_that_are_no_tables(table, message):
    with pytest.raises(InputError, match=message):
        Table.read(table)


def test_complex_column():
    with pytest.raises(InputError, match="column 'phase' is complex"):
        learn_schema(Table.read(pd.DataFrame({"phase": [1j, 2.0]})))


# ------------------------------------------------------------------------------------------------------ decoding


def changed_at(*cells: tuple[int, int]) -> np.ndarray:
    changed = np.zeros((30, 3), dtype=bool)
    for row, position in cells:
        changed[row, position] = True
    return changed


@pytest.mark.parametrize("code", [UNSEEN, 3])
def test_a_changed_category_needs_a_level(code):
    table = Table.read(REFERENCE)
    blocks = table.encode(SCHEMA)
    blocks.codes[8, 0] = code
    with pytest.raises(InputError, match=rf"'colour' has 3 levels, but the code at row 8 is {code}"):
        table.decode(SCHEMA, blocks, changed_at((8, 1)))


def test_passthrough_cells_cannot_change():
    schema = learn_schema(Table.read(REFERENCE), kinds={"colour": "passthrough"})
    table = Table.read(REFERENCE)
    with pytest.raises(InputError, match="'colour' is passed through, but 2 of its cells"):
        table.decode(schema, table.encode(schema), changed_at((1, 1), (2, 1)))


def test_shapes_must_fit():
    table = Table.read(REFERENCE)
    with pytest.raises(InputError, match=r"changed must have shape \(30, 3\), but it has \(29, 3\)"):
        table.decode(SCHEMA, table.encode(SCHEMA), changed_at()[1:])
    with pytest.raises(InputError, match=r"blocks.numbers must have shape \(30, 1\), but it has \(3, 1\)"):
        table.decode(SCHEMA, table.encode(SCHEMA).take(range(3)), changed_at())


def test_pandas_keeps_its_index_and_the_incoming_table():
    native = REFERENCE.set_axis([5, 5, *range(28)], axis=0).rename_axis("id")
    before = native.copy()
    table = Table.read(native)
    blocks = table.encode(SCHEMA)
    blocks.numbers[1] = 0.75
    result = table.decode(SCHEMA, blocks, changed_at((1, 0)))
    pd.testing.assert_frame_equal(native, before)
    before.iloc[1, 0] = 0.75
    pd.testing.assert_frame_equal(result, before)


@library
def test_untouched_columns_share_their_memory(make):
    native = make(REFERENCE)
    table = Table.read(native)
    blocks = table.encode(SCHEMA)
    result = table.decode(SCHEMA, blocks, changed_at((3, 2)))
    address = {
        "DataFrame": lambda frame: frame["temp_3"].to_numpy().ctypes.data,
        "Table": lambda frame: frame["temp_3"].chunk(0).buffers()[1].address,
    }[type(native).__name__]
    assert address(result) == address(native)


def test_not_a_number_payload_and_sign_of_zero_survive():
    bits = np.array([0x7FC00123, 0x3FC00000, 0x80000000, 0x40200000], dtype=np.uint32)
    for native in (pd.DataFrame({"a": bits.view(np.float32)}), bits.view(np.float32).reshape(-1, 1)):
        table = Table.read(native)
        schema = learn_schema(table)
        blocks = table.encode(schema)
        blocks.numbers[1] = 9.0
        result = np.asarray(table.decode(schema, blocks, np.arange(4)[:, None] == 1))
        assert result.dtype == np.float32
        assert result[:, 0].view(np.uint32)[[0, 2, 3]].tolist() == bits[[0, 2, 3]].tolist()
        assert result[1, 0] == 9.0


def test_polars_keeps_null_and_not_a_number_apart():
    native = pl.DataFrame({"a": [None, float("nan"), 1.5, 2.5]})
    table = Table.read(native)
    schema = learn_schema(table)
    blocks = table.encode(schema)
    assert np.isnan(blocks.numbers[:2, 0]).all()
    blocks.numbers[3] = 4.5
    assert repr(table.decode(schema, blocks, np.arange(4)[:, None] == 3)["a"].to_list()) == "[None, nan, 1.5, 4.5]"


@pytest.mark.parametrize(
    ("native", "written", "expected"),
    [
        (pl.DataFrame({"a": pl.Series([0, 100, 50], dtype=pl.Int8)}), 300.4, 127),
        (pl.DataFrame({"a": pl.Series([0, 200, 50], dtype=pl.UInt8)}), -3.0, 0),
        (pd.DataFrame({"a": np.array([0, 2**40, 7])}), 1e30, 2**63 - 1024),
        (pd.DataFrame({"a": pd.array([0, None, 70, 9], dtype="Int16")}), 12.6, 13),
        (pd.DataFrame({"a": [0.0, np.nan, 70.0, 9.0]}), 12.6, 13.0),
        (pa.table({"a": pa.array([Decimal("1.10"), Decimal("2.20")])}), 1.239, Decimal("1.24")),
        (pa.table({"a": pa.array([Decimal("1.10"), Decimal("2.20")])}), -1e9, Decimal("-9.99")),
        (pl.DataFrame({"a": pl.Series([0.5, 1.5], dtype=pl.Float32)}), 1e300, float(np.finfo(np.float32).max)),
        (pd.DataFrame({"a": [Decimal("1.100"), None, Decimal("2.200")]}), 1.23949, Decimal("1.239")),
        (pl.DataFrame({"a": ["1.5", "?", "2.5"]}), 3.25, "3.25"),
        (pd.DataFrame({"a": ["15", "?", "25"]}, dtype=object), 19.7, "20"),
    ],
)
def test_numbers_are_written_as_the_column_holds_them(native, written, expected):
    table = Table.read(native, missing_values=["?"])
    schema = learn_schema(table, small_integers=0)
    blocks = table.encode(schema)
    blocks.numbers[0, 0] = written
    result = table.decode(schema, blocks, np.arange(table.n_rows)[:, None] == 0)
    assert listed(result["a"])[0] == expected
    assert repr(listed(result["a"])[1:]) == repr(listed(native["a"])[1:])
    assert type_of(result["a"]) == type_of(native["a"])


def listed(column):
    return column.to_pylist() if isinstance(column, pa.ChunkedArray) else column.to_list()


def type_of(column):
    return column.type if isinstance(column, pa.ChunkedArray) else column.dtype


@pytest.mark.parametrize(
    "colours",
    [
        pd.Series(pd.Categorical(["red"] * 30)),
        pl.Series(["red"] * 30, dtype=pl.Enum(["red"])),
        pa.array(["red"] * 30).dictionary_encode(),
    ],
)
def test_a_level_that_an_incoming_categorical_lacks_is_added(colours):
    make = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}[type(colours).__module__.split(".")[0]]
    native = make({"temp_3": REFERENCE["temp_3"].to_numpy(), "colour": colours, "grade": REFERENCE["grade"].to_numpy()})
    table = Table.read(native)
    blocks = table.encode(SCHEMA)
    blocks.codes[2, 0] = SCHEMA.columns[1].levels.index("blue")
    result = Table.read(table.decode(SCHEMA, blocks, changed_at((2, 1))))
    np.testing.assert_array_equal(result.encode(SCHEMA).codes, blocks.codes)


@library
def test_cells_can_be_emptied(make):
    table = Table.read(make(REFERENCE))
    blocks = table.encode(SCHEMA)
    blocks.numbers[6], blocks.codes[6] = np.nan, MISSING
    emptied = Table.read(table.decode(SCHEMA, blocks, changed_at((6, 0), (6, 1), (6, 2)))).encode(SCHEMA)
    np.testing.assert_array_equal(emptied.numbers, blocks.numbers)
    np.testing.assert_array_equal(emptied.codes, blocks.codes)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(12).reshape(6, 2) % 5,
        np.arange(12).reshape(6, 2) % 3 == 0,
        np.array([["a", "b"], ["b", "a"], ["a", "b"]]),
        np.array([["a", 1], ["b", 2], ["a", 2]], dtype=object),
    ],
)
def test_cells_of_arrays_can_be_emptied(array):
    array = np.vstack([array, array[:1]])
    table = Table.read(array)
    schema = learn_schema(table, kinds={"x0": "categorical"} if array.dtype.kind == "i" else None)
    blocks = table.encode(schema)
    position = schema.category_positions[0]
    blocks.codes[1, 0] = MISSING
    changed = np.zeros(array.shape, dtype=bool)
    changed[1, position] = True
    emptied = table.decode(schema, blocks, changed)
    np.testing.assert_array_equal(Table.read(emptied).encode(schema).codes, blocks.codes)
    assert [str(v) for v in np.delete(emptied, 1, axis=0).ravel()] == [
        str(float(v)) if emptied.dtype.kind == "f" else str(v) for v in np.delete(array, 1, axis=0).ravel()
    ]


def test_a_longer_word_widens_a_text_array():
    array = np.array([["a", "x"], ["b", "y"], ["a", "y"], ["b", "x"]])
    schema = learn_schema(Table.read(np.where(array == "a", "a longer word", array)))
    table = Table.read(array)
    blocks = table.encode(schema)
    blocks.codes[1, 0] = schema.columns[0].levels.index("a longer word")
    changed = np.zeros((4, 2), dtype=bool)
    changed[1, 0] = True
    assert table.decode(schema, blocks, changed)[1].tolist() == ["a longer word", "y"]


def test_column_labels_that_are_no_strings_come_back():
    native = REFERENCE.set_axis([(1, "a"), (1, "b"), (2, "a")], axis=1)
    native.columns = pd.MultiIndex.from_tuples(native.columns)
    table = Table.read(native)
    schema = learn_schema(table)
    blocks = table.encode(schema)
    blocks.numbers[0] = 5.5
    result = table.decode(schema, blocks, changed_at((0, 0)))
    assert result.columns.equals(native.columns)
    assert result.iloc[0, 0] == 5.5


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"x0": [2**62 + 1, 7]}),
        pd.DataFrame({"x0": pd.array([2**62 + 1, 7], dtype="Int64")}),
        pl.DataFrame({"x0": [2**62 + 1, 7]}),
        pa.table({"x0": [2**62 + 1, 7]}),
        np.array([[2**62 + 1], [7]]),
        np.array([[2**62 + 1], [7]], dtype=object),
    ],
)
def test_whole_numbers_beyond_those_of_float64_are_shown_exactly(table):
    assert Table.read(table).texts("x0", np.array([0, 1])) == [str(2**62 + 1), "7"]
