"""The scikit-learn contract, shown on the smallest estimator that uses it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import check_is_fitted

from goldseam.errors import InputError
from goldseam.schema import Blocks
from goldseam.validation import fit_blocks, new_blocks, restored


class Filler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Fills missing numbers with the median and missing categories with the first level."""

    def fit(self, X, y=None):
        _, self.schema_ = fit_blocks(self, X, constant="number")
        return self

    def transform(self, X):
        check_is_fitted(self)
        table, blocks = new_blocks(self, X, self.schema_)
        schema = self.schema_
        changed = np.zeros((len(blocks), len(schema.columns)), dtype=bool)
        changed[:, schema.number_positions] = np.isnan(blocks.numbers)
        changed[:, schema.category_positions] = blocks.codes < 0
        centers = np.array([column.center for column in schema.numbers])
        filled = Blocks(
            np.where(np.isnan(blocks.numbers), centers, blocks.numbers), np.maximum(blocks.codes, 0).astype(np.int32)
        )
        return restored(self, table, schema, filled, changed)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


@parametrize_with_checks([Filler()])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


ROWS = {"length": [1.5, None, 2.5, 4.0], "colour": ["red", "blue", None, "red"]}
FILLED = {"length": [1.5, 2.5, 2.5, 4.0], "colour": ["red", "blue", "blue", "red"]}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_frame_comes_back_as_it_came(make):
    filler = Filler().fit(make(ROWS))
    result = filler.transform(make(ROWS))
    assert type(result) is type(make(ROWS))
    assert {name: list(np.asarray(result[name])) for name in FILLED} == FILLED
    assert (filler.n_features_in_, filler.feature_names_in_.tolist()) == (2, ["length", "colour"])


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize(("output", "kind"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame)])
def test_set_output(make, output, kind):
    result = Filler().set_output(transform=output).fit(make(ROWS)).transform(make(ROWS))
    assert type(result) is kind
    assert {name: result[name].to_list() for name in FILLED} == FILLED


def test_arrays_and_lists_of_mixed_rows():
    rows = [list(row) for row in zip(*ROWS.values(), strict=True)]
    expected = [list(row) for row in zip(*FILLED.values(), strict=True)]
    assert Filler().fit(rows).transform(rows).tolist() == expected
    array = np.array(rows, dtype=object)
    assert Filler().fit(array).transform(array).tolist() == expected


def test_an_array_after_a_frame_is_read_by_position():
    filler = Filler().fit(pd.DataFrame(ROWS))
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        result = filler.transform(np.array([[None, "blue"]], dtype=object))
    assert result.tolist() == [[2.5, "blue"]]


def test_a_frame_after_an_array_is_read_by_position():
    filler = Filler().fit(pd.DataFrame(ROWS).to_numpy())
    with pytest.warns(UserWarning, match="X has feature names, but Filler was fitted without"):
        result = filler.transform(pd.DataFrame(ROWS))
    assert list(result.columns) == ["length", "colour"]
    assert result["length"].tolist() == FILLED["length"]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_columns_must_be_those_of_fit(make):
    filler = Filler().fit(make(ROWS))
    with pytest.raises(ValueError, match=r"unseen at fit time:\n- size"):
        filler.transform(make({"size": ROWS["length"], "colour": ROWS["colour"]}))


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_zero_rows(make):
    with pytest.raises(InputError, match=r"0 rows, but a minimum of 1"):
        Filler().fit(make(ROWS)[:0])
    assert Filler().fit(make(ROWS)).transform(make(ROWS)[:0]).shape == (0, 2)
    assert Filler().fit(np.eye(3)).transform(np.zeros((0, 3))).shape == (0, 3)


def test_infinite_numbers():
    with pytest.raises(InputError, match=r"Column 'x1' is infinite at row 2"):
        Filler().fit([[1.0, 2.0], [0.5, 3.0], [1.0, float("inf")]])


@pytest.mark.parametrize("method", ["fit", "transform"])
def test_equal_names_and_lazy_frames_are_refused(method):
    call = getattr(Filler().fit(pd.DataFrame(ROWS)), method)
    with pytest.raises(InputError, match=r"must be distinct as text, but 'length' occurs 2 times\. Hint"):
        call(pd.DataFrame(ROWS)[["length", "colour", "length"]])
    with pytest.raises(InputError, match=r"polars LazyFrame.*Hint: call \.collect\(\) first"):
        call(pl.LazyFrame(ROWS))


@pytest.mark.parametrize("make", [pd.DataFrame, lambda rows: np.array([rows["length"]]).T])
def test_what_comes_back_unchanged_is_the_callers_own(make):
    table = make({"length": [1.5, 2.5, 4.0]})
    result = Filler().fit(table).transform(table)
    assert np.array_equal(result, table)
    if isinstance(result, np.ndarray):
        result[0, 0] = 99.0
    else:
        result.loc[0, "length"] = 99.0
    assert np.asarray(table)[0, 0] == 1.5
