"""One column of any library <-> neutral cells (`schema.Cells`). Only `tables` uses this module.

`Frame` is what `tables` sees of a library: `DataFrame` (pandas, polars and pyarrow, through narwhals) and `ArrayFrame`
(numpy). `cells` reads a column; text is turned into codes by the library's own engine. `written` copies a column,
keeps its dtype and touches the given rows only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Protocol

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from goldseam.errors import InputError
from goldseam.schema import MISSING, Cells, Form, Kind, Labels, Numbers, Opaque

__all__ = ["ArrayFrame", "DataFrame", "Frame", "is_table", "open_frame", "refuse_masked"]

Rows = NDArray[np.int64]
_NO_VALUE = ("NAType", "NaTType")  # pandas.NA and NaT, by name: pandas need not be installed


class Frame(Protocol):
    """What `tables` needs of a library."""

    native: Any
    n_rows: int
    labels: list[Any]

    def cells(self, position: int, markers: Sequence[str]) -> Cells:
        """One column in its neutral form."""

    def item(self, position: int, row: int) -> Any:
        """One cell as the library has it."""

    def written(self, position: int, rows: Rows, values: Sequence[Any], kind: Kind) -> Any:
        """A copy of one column with new values in some rows; None or NaN writes a missing cell."""

    def replaced(self, columns: Mapping[int, Any]) -> Any:
        """The native table with some columns exchanged, the others untouched."""

    def copied(self, *, deep: bool = False) -> Any:
        """The native table anew; `deep` where others may hold its memory, otherwise as the library shares it safely."""


def is_table(table: Any) -> bool:
    """Whether this is one table of a supported library."""
    return nw.dependencies.is_into_dataframe(table) or (isinstance(table, np.ndarray) and table.ndim < 3)


def refuse_masked(table: Any) -> None:
    """Masked cells would be uncovered on the way: numpy's functions look at the values beneath."""
    if isinstance(table, np.ma.MaskedArray) and np.ma.getmaskarray(table).any():
        raise InputError(
            f"Masked arrays are not read; {int(np.ma.getmaskarray(table).sum())} cells of the table are masked. "
            "Hint: array.astype(float).filled(numpy.nan) marks them as missing."
        )


def open_frame(table: Any) -> Frame:
    """The frame for a table of any supported library."""
    refuse_masked(table)
    if isinstance(table, np.ndarray):
        return ArrayFrame(table)
    if nw.dependencies.is_into_dataframe(table):
        return DataFrame(table)
    if hasattr(table, "collect") and nw.dependencies.is_polars_lazyframe(table):
        raise InputError(
            "The table is a polars LazyFrame, but only eager tables are read. Hint: call .collect() first."
        )
    raise InputError(
        f"The table must be a pandas, polars or pyarrow table or a 2-D numpy array, but it is {type(table).__name__!r}. "
        "Hint: a list of rows can be passed as numpy.array(rows), one column as a table with one column."
    )


# ---------------------------------------------------------------------------------------------- frames of columns


class DataFrame:
    """A pandas, polars or pyarrow table."""

    def __init__(self, native: Any) -> None:
        self.native = native
        self.is_pandas = hasattr(native, "iloc")
        self.n_rows, _ = native.shape
        self.labels = list(native.columns) if self.is_pandas else list(_field_names(native))

    def series(self, position: int) -> nw.Series[Any]:
        """One column as narwhals sees it."""
        if self.is_pandas:
            return nw.from_native(self.native.iloc[:, position], series_only=True)
        return nw.from_native(self.native, eager_only=True).get_column(self.labels[position])

    def cells(self, position: int, markers: Sequence[str]) -> Cells:
        series = self.series(position)
        dtype = series.dtype
        if dtype.is_numeric() or dtype == nw.Boolean:
            return Numbers(_floats(series), _form(dtype))
        if dtype == nw.String and dtype_of(series) != np.dtype(object):
            return without_markers(_factorised(series.to_native()), markers)
        if dtype in (nw.Categorical, nw.Enum):
            return without_markers(_declared_labels(series), markers)
        if dtype in (nw.Object, nw.String):
            return cells_of_objects(series.to_numpy(), markers)
        if getattr(dtype_of(series), "kind", "") == "c":
            raise InputError(f"Complex data not supported: column {series.name!r} is complex. Hint: pass its parts.")
        return _opaque(f"values of type {dtype}", series, np.flatnonzero(~series.is_null().to_numpy()))

    def item(self, position: int, row: int) -> Any:
        return self.series(position)[row]

    def written(self, position: int, rows: Rows, values: Sequence[Any], kind: Kind) -> Any:
        series = self.series(position)
        if self.is_pandas:
            return _written_pandas(series, rows, values, kind)
        write = _written_polars if series.implementation.is_polars() else _written_arrow
        return write(series, rows, values, kind)

    def replaced(self, columns: Mapping[int, Any]) -> Any:
        if self.is_pandas:
            table = self.copied()
            for position, column in columns.items():
                table.isetitem(position, column)
            return table
        if hasattr(self.native, "with_columns"):
            return self.native.with_columns(list(columns.values()))
        table = self.native
        for position, column in columns.items():
            table = table.set_column(position, table.schema.field(position).with_type(column.type), column)
        return table

    def copied(self, *, deep: bool = False) -> Any:
        if self.is_pandas:
            return self.native.copy(deep=deep or not _copies_on_write())
        return self.native.clone() if hasattr(self.native, "clone") else self.native.slice(0)


class ArrayFrame:
    """A 2-D numpy array; its columns are called x0, x1, ..."""

    def __init__(self, native: NDArray[Any]) -> None:
        if native.dtype.names is not None:
            raise InputError(
                f"The table is a structured numpy array with fields {list(native.dtype.names)}, which are not read. "
                "Hint: pass pandas.DataFrame(array) or a 2-D array."
            )
        if native.ndim != 2:
            raise InputError(
                f"The table must have two dimensions, but the array has {native.ndim}. "
                "Hint: reshape(-1, 1) makes a table of one column, reshape(1, -1) one of a single row."
            )
        if native.dtype.kind == "c":
            raise InputError("Complex data not supported: the array is complex. Hint: pass real and imaginary parts.")
        self.native = native
        self.n_rows = len(native)
        self.labels = [f"x{i}" for i in range(native.shape[1])]

    def cells(self, position: int, markers: Sequence[str]) -> Cells:
        column = self.native[:, position]
        if column.dtype.kind in "fiub":
            form: Form = {"f": "float", "b": "boolean"}.get(column.dtype.kind, "integer")  # type: ignore[assignment]
            return Numbers(column.astype(np.float64), form)
        if column.dtype.kind in "UT":
            labels, codes = np.unique(column, return_inverse=True)
            return without_markers(Labels(codes.astype(np.int32), tuple(labels.tolist())), markers)
        if column.dtype.kind == "O":
            return cells_of_objects(column, markers)
        seen = np.flatnonzero(~np.isnat(column) if column.dtype.kind in "mM" else np.ones(len(column), dtype=bool))
        return _opaque(f"values of dtype {column.dtype}", column, seen)

    def item(self, position: int, row: int) -> Any:
        return self.native[row, position]

    def written(self, position: int, rows: Rows, values: Sequence[Any], kind: Kind) -> NDArray[Any]:
        return _written_array(self.native[:, position], rows, values, kind)

    def replaced(self, columns: Mapping[int, Any]) -> NDArray[Any]:
        dtype = np.result_type(self.native.dtype, *(column.dtype for column in columns.values()))
        array = self.native.astype(dtype, copy=True)
        for position, column in columns.items():
            array[:, position] = column
        return array

    def copied(self, *, deep: bool = False) -> NDArray[Any]:
        return self.native.copy(order="K")


def _copies_on_write() -> bool:
    """Whether pandas copies shared columns when they are written to; before its version 3 it was an option."""
    import pandas

    return int(pandas.__version__.split(".")[0]) >= 3 or pandas.options.mode.copy_on_write is True


def dtype_of(series: nw.Series[Any]) -> Any:
    """The library's own dtype (arrow calls it type, and never needs asking)."""
    return getattr(series.to_native(), "dtype", None)


def _field_names(native: Any) -> list[str]:
    return native.columns if hasattr(native, "with_columns") else native.column_names


# ------------------------------------------------------------------------------------------------------- reading


def _form(dtype: Any) -> Form:
    if dtype == nw.Boolean:
        return "boolean"
    if dtype == nw.Decimal:
        return "decimal"
    return "integer" if dtype.is_integer() else "float"


def _floats(series: nw.Series[Any]) -> NDArray[np.float64]:
    native = series.to_native()
    if series.implementation.is_pyarrow():  # a safe cast would refuse integers beyond 2**53
        return native.cast("float64", safe=False).to_numpy()
    return np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)


def _factorised(native: Any) -> Labels:
    """Codes and labels of a text column, by the library's own engine."""
    if hasattr(native, "factorize"):
        codes, labels = native.factorize()
        return Labels(codes.astype(np.int32), tuple(labels.tolist()))
    if hasattr(native, "dictionary_encode"):
        return _labels_of_dictionary(native.dictionary_encode())
    import polars

    labels = native.unique().drop_nulls()
    codes = native.cast(polars.Enum(labels)).to_physical().cast(polars.Int32)
    return Labels(codes.fill_null(MISSING).to_numpy(), tuple(labels.to_list()))


def _labels_of_dictionary(native: Any) -> Labels:
    array = _one_array(native)
    codes = array.indices.fill_null(MISSING).to_numpy(zero_copy_only=False)
    return Labels(codes.astype(np.int32), tuple(array.dictionary.to_pylist()), ordered=array.type.ordered)


def _one_array(chunked: Any) -> Any:
    """A dictionary-encoded column as one array with one dictionary."""
    return chunked.unify_dictionaries().combine_chunks() if hasattr(chunked, "chunks") else chunked


def _declared_labels(series: nw.Series[Any]) -> Labels | Opaque:
    """Codes and labels of a column that is a categorical by declaration."""
    native = series.to_native()
    if series.implementation.is_polars():
        found = _polars_labels(native)
    elif series.implementation.is_pyarrow():
        found = _labels_of_dictionary(_signed(native))
    elif hasattr(native.dtype, "categories"):
        labels = tuple(native.cat.categories.tolist())
        found = Labels(native.cat.codes.to_numpy().astype(np.int32), labels, ordered=bool(native.cat.ordered))
    else:  # pandas holding an arrow dictionary
        found = _factorised(native)
    if not all(isinstance(label, (str, int, float, bool)) for label in found.labels):
        return Opaque(f"categories of type {type(found.labels[0]).__name__}")
    return Labels(found.codes, found.labels, declared=True, ordered=found.ordered)


def _signed(chunked: Any) -> Any:
    """Dictionary indices that can hold -1."""
    import pyarrow

    kind = chunked.type
    if not pyarrow.types.is_dictionary(kind):
        return chunked.dictionary_encode()
    return chunked.cast(pyarrow.dictionary(pyarrow.int32(), kind.value_type, ordered=kind.ordered))


def _polars_labels(native: Any) -> Labels:
    import polars

    if native.dtype == polars.Enum:
        codes = native.to_physical().cast(polars.Int32).fill_null(MISSING).to_numpy()
        return Labels(codes, tuple(native.dtype.categories.to_list()))
    return _factorised(native.cast(polars.String))


def _opaque(what: str, column: Any, seen: Rows) -> Cells:
    """A column that is not modelled; without a single value in it, it fits every kind."""
    if seen.size == 0:
        return Labels(np.full(len(column), MISSING, np.int32), ())
    return Opaque(what, (column[int(seen[0])], int(seen[0])))


def is_missing(value: Any) -> bool:
    """Whether a Python object stands for "not observed": None, NaN, NaT, pandas.NA."""
    return (
        value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value)
    )


def cells_of_objects(values: NDArray[np.object_], markers: Sequence[str]) -> Cells:
    """The form of a column of Python objects: by the types that occur in it."""
    items = values.tolist()
    foreign = [kind for kind in set(map(type, items)) if not _is_plain(kind)]
    if foreign:
        row = next(i for i, item in enumerate(items) if type(item) in foreign)
        return Opaque(f"values of type {foreign[0].__name__}", (items[row], row))
    position: dict[Any, int] = {}
    keys = [(type(item), item) for item in items] if bool in set(map(type, items)) else items
    codes = np.array([position.setdefault(key, len(position)) for key in keys], dtype=np.int32)
    labels = tuple(key[1] for key in position) if keys is not items else tuple(position)
    return _settled(without_markers(Labels(codes, labels), markers))


def _is_plain(kind: type) -> bool:
    return issubclass(kind, (str, int, float, Decimal, np.number, np.bool_, type(None))) or kind.__name__ in _NO_VALUE


def _settled(cells: Labels) -> Cells:
    """Objects that turn out to be numbers or booleans, as such."""
    kinds = {type(label) for label in cells.labels}
    if not kinds or any(issubclass(kind, str) for kind in kinds):
        return cells
    boolean = {issubclass(kind, (bool, np.bool_)) for kind in kinds}
    if boolean == {True, False}:
        return Opaque("a mixture of booleans and numbers", (cells.labels[0], 0))
    form: Form = "boolean" if True in boolean else "float"
    if all(issubclass(kind, (int, np.integer)) for kind in kinds) and form != "boolean":
        form = "integer"
    if any(issubclass(kind, Decimal) for kind in kinds):
        form = "decimal"
    return Numbers(np.array([*map(float, cells.labels), np.nan])[cells.codes], form)


def without_markers(cells: Cells, markers: Sequence[str]) -> Any:
    """Labels that mean "missing" become `MISSING`."""
    if not isinstance(cells, Labels):
        return cells
    marked = np.array([label in markers if isinstance(label, str) else False for label in cells.labels], dtype=bool)
    absent = marked | np.array([is_missing(label) for label in cells.labels], dtype=bool)
    if not absent.any():
        return cells
    renumbered = np.where(absent, MISSING, np.cumsum(~absent) - 1).astype(np.int32)
    codes = np.append(renumbered, np.int32(MISSING))[cells.codes]
    labels = tuple(label for label, gone in zip(cells.labels, absent, strict=True) if not gone)
    found = bool(marked[np.unique(cells.codes[cells.codes >= 0])].any())
    return Labels(codes, labels, cells.declared, cells.ordered, had_markers=found)


# ------------------------------------------------------------------------------------------------------- writing


def _written_pandas(series: nw.Series[Any], rows: Rows, values: Sequence[Any], kind: Kind) -> Any:
    native = series.to_native()
    if not hasattr(native.dtype, "pyarrow_dtype") and _gives_way(series, values, kind):
        numeric = _natural(values, kind).is_numeric()
        gaps = np.full(len(native), np.nan) if numeric else native.to_numpy(dtype=object)
        native = type(native)(gaps, index=native.index, name=native.name, dtype=gaps.dtype)
    if isinstance(native.dtype, np.dtype):
        array = _written_array(native.to_numpy(), rows, values, kind)
    elif hasattr(native.dtype, "pyarrow_dtype"):  # not by pandas: it loses the gaps of dictionaries
        column = nw.from_native(native.array.__arrow_array__(), series_only=True)
        array = type(native.array)(_written_arrow(column, rows, values, kind))
    else:
        items = list(_fitting(values, series.dtype, kind))
        array = native.array.copy()
        if hasattr(array, "add_categories"):
            array = array.add_categories(_new_labels(items, array.categories))
        array[rows] = items
    return type(native)(array, index=native.index, name=native.name, dtype=array.dtype, copy=False)


def _written_polars(series: nw.Series[Any], rows: Rows, values: Sequence[Any], kind: Kind) -> Any:
    import polars

    series = _with_room(series, values, kind)
    native = series.to_native()
    items = _fitting(values, series.dtype, kind)
    if native.dtype == polars.Enum and (new := _new_labels(items, native.dtype.categories)):
        native = native.cast(polars.Enum([*native.dtype.categories, *new]))
    return native.clone().scatter(rows, polars.Series(items, dtype=native.dtype))


def _written_arrow(series: nw.Series[Any], rows: Rows, values: Sequence[Any], kind: Kind) -> Any:
    import pyarrow
    from pyarrow import compute

    series = _with_room(series, values, kind)
    native = series.to_native()
    items = _fitting(values, series.dtype, kind)
    mask = np.zeros(len(native), dtype=bool)
    mask[rows] = True
    if pyarrow.types.is_dictionary(native.type):
        return _written_dictionary(native, mask, items)
    return compute.replace_with_mask(native, pyarrow.array(mask), pyarrow.array(items, type=native.type))


def _with_room(series: nw.Series[Any], values: Sequence[Any], kind: Kind) -> nw.Series[Any]:
    """The column itself, or as many gaps of a type that holds the values."""
    if not _gives_way(series, values, kind):
        return series
    return nw.new_series(series.name, [None] * len(series), _natural(values, kind), backend=series.implementation)


def _gives_way(series: nw.Series[Any], values: Sequence[Any], kind: Kind) -> bool:
    """Whether a column has no value of its own that would need its type, and that type cannot hold the new ones."""
    dtype, natural = series.dtype, _natural(values, kind)
    if dtype in (nw.String, nw.Object) or (dtype.is_numeric() and natural != nw.String):
        return False
    if dtype in (nw.Categorical, nw.Enum):
        levels = not isinstance(values, np.ndarray) and series.implementation.is_pandas_like()
        holds = levels or natural == nw.String
    else:
        holds = dtype == natural
    return not holds and bool(series.is_null().all())


def _natural(values: Sequence[Any], kind: Kind) -> Any:
    """The type that values have by nature: numbers come as an array, levels as a list."""
    if isinstance(values, np.ndarray):
        return nw.Int64() if kind is Kind.INTEGER else nw.Float64()
    example = next((value for value in values if value is not None), None)
    kinds = ((bool, nw.Boolean), (int, nw.Int64), (float, nw.Float64))
    return next((dtype for type_, dtype in kinds if isinstance(example, type_)), nw.String)()


def _written_dictionary(native: Any, mask: NDArray[np.bool_], items: Sequence[Any]) -> Any:
    """Arrow cannot replace in dictionary columns, so the indices are replaced."""
    import pyarrow
    from pyarrow import compute

    array = _one_array(native)
    labels = array.dictionary.to_pylist()
    labels += _new_labels(items, labels)
    position = {label: i for i, label in enumerate(labels)} | {None: None}
    new = pyarrow.array([position[item] for item in items], type=array.indices.type)
    indices = compute.replace_with_mask(array.indices, pyarrow.array(mask), new)
    dictionary = pyarrow.array(labels, type=array.dictionary.type)
    kind = native.type
    joined = pyarrow.DictionaryArray.from_arrays(indices, dictionary, ordered=kind.ordered)
    return pyarrow.chunked_array([joined.cast(kind)])


def _written_array(column: NDArray[Any], rows: Rows, values: Sequence[Any], kind: Kind) -> NDArray[Any]:
    """Write into a numpy column; the dtype grows only when it cannot hold a missing cell or a longer text."""
    if column.dtype.kind == "O":
        items: Any = _fitting_objects(values, column, kind)
    elif column.dtype.kind in "UT":
        items = [_text(value, kind) for value in values]
    else:
        items = _fitting(values, _NUMPY_DTYPES[column.dtype.kind](column.dtype), kind)
    new = np.asarray(items) if not isinstance(items, list) or None not in items else np.array(items, dtype=object)
    array = column.astype(_grown(column.dtype, new), copy=True)
    array[rows] = new
    return array


_NUMPY_DTYPES: dict[str, Any] = {
    "f": lambda dtype: nw.Float32() if dtype == np.float32 else nw.Float64(),
    "b": lambda dtype: nw.Boolean(),
    "i": lambda dtype: getattr(nw, f"Int{8 * dtype.itemsize}")(),
    "u": lambda dtype: getattr(nw, f"UInt{8 * dtype.itemsize}")(),
}


def _grown(dtype: np.dtype[Any], new: NDArray[Any]) -> np.dtype[Any]:
    """The dtype that holds the old cells and the new ones."""
    if dtype.kind == new.dtype.kind == "U":
        return np.promote_types(dtype, new.dtype)
    if new.dtype.kind not in "OU" or (dtype.kind == "T" and new.dtype.kind == "U"):
        return dtype
    numeric = not any(isinstance(item, str) for item in new.tolist())
    if numeric and dtype.kind in "fiu":  # a missing number: NaN, as pandas does it
        return dtype if dtype.kind == "f" else np.dtype(np.float64)
    return np.dtype(object)


def _fitting(values: Sequence[Any], dtype: Any, kind: Kind) -> Any:
    """Values as the dtype wants them: a list (None where missing), or an array when none is missing."""
    if isinstance(values, np.ndarray) or not any(isinstance(value, str) for value in values):
        if dtype.is_integer():
            return _whole(_float_array(values), dtype)
        if dtype.is_float():
            return _with_none(_clipped(_rounded(_float_array(values), kind), np.finfo(str(dtype).lower()).max))
        if dtype == nw.Decimal:
            largest = 10.0 ** (dtype.precision - dtype.scale) - 10.0**-dtype.scale
            floats = _clipped(_rounded(_float_array(values), kind), largest)
            return [_decimal(value, dtype.scale) for value in floats.tolist()]
        if dtype == nw.Boolean:
            return [None if is_missing(value) else bool(round(value)) for value in values]
    if dtype == nw.String:
        return [_text(value, kind) for value in values]
    return [None if is_missing(value) else value for value in values]


def _float_array(values: Sequence[Any]) -> NDArray[np.float64]:
    if isinstance(values, np.ndarray):
        return values.astype(np.float64)
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _rounded(values: NDArray[np.float64], kind: Kind) -> NDArray[np.float64]:
    return np.rint(values) if kind is Kind.INTEGER else values


def _clipped(values: NDArray[np.float64], largest: Any) -> NDArray[np.float64]:
    """Into the range of a narrower dtype: better its largest number than an infinite one."""
    return np.clip(values, -float(largest), float(largest))


def _with_none(values: NDArray[np.float64]) -> Any:
    if not np.isnan(values).any():
        return values
    return [None if value != value else value for value in values.tolist()]


def _whole(values: NDArray[np.float64], dtype: Any) -> Any:
    """Rounded and clipped into an integer dtype's range."""
    name = str(dtype).lower()
    limits = np.iinfo(np.dtype("int64" if name == "int128" else "uint64" if name == "uint128" else name))
    top = float(limits.max) if float(limits.max) <= limits.max else float(np.nextafter(float(limits.max), 0.0))
    whole = np.clip(np.rint(values), float(limits.min), top)
    if not np.isnan(whole).any():
        return whole.astype(limits.dtype)
    return [None if value != value else int(value) for value in whole.tolist()]


def _decimal(value: float, scale: int) -> Decimal | None:
    return None if value != value else Decimal(repr(float(value))).quantize(Decimal(1).scaleb(-scale))


def _text(value: Any, kind: Kind) -> str | None:
    """How a value is written into a text column."""
    if isinstance(value, str) or is_missing(value):
        return value if isinstance(value, str) else None
    return str(round(value)) if kind is Kind.INTEGER else repr(float(value))


def _fitting_objects(values: Sequence[Any], column: NDArray[np.object_], kind: Kind) -> NDArray[np.object_]:
    """Values as Python objects of the type the column already holds."""
    seen = [item for item in column.tolist() if not is_missing(item)]
    example = next((item for item in seen if not isinstance(item, str)), seen[0] if seen else None)
    items = np.empty(len(values), dtype=object)
    items[:] = [None if is_missing(value) else _like(value, example, kind) for value in values]
    return items


def _like(value: Any, example: Any, kind: Kind) -> Any:
    if isinstance(value, str) or isinstance(example, str):
        return _text(value, kind)
    if isinstance(example, Decimal):
        return _decimal(float(value), max(0, -int(example.as_tuple().exponent)))
    if isinstance(example, bool):
        return bool(round(value))
    if isinstance(example, (int, np.integer)) or (example is None and kind is Kind.INTEGER):
        return round(float(value))
    return value if example is None else float(value)


def _new_labels(items: Sequence[Any], known: Any) -> list[Any]:
    """Labels that a categorical does not have yet, in order of appearance."""
    have = set(known)
    return [item for item in dict.fromkeys(items) if item is not None and item not in have]
