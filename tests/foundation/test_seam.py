"""The ledger and the restoration: what is written reads back, what is undone is gone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldseam.errors import InputError
from goldseam.schema import Blocks
from goldseam.seam import CAUSES, LEDGER, Restoration, Seam
from goldseam.tables import Table, learn_schema

texts = st.none() | st.text(st.characters(codec="utf-8", exclude_characters="\x00"))
numbers = st.none() | st.floats(allow_nan=False)
lines = st.fixed_dictionaries(
    {
        "row": st.integers(0, 2**62),
        "column": st.text(st.characters(codec="utf-8"), min_size=1),
        "kind": st.sampled_from(["continuous", "categorical"]),
        "cause": st.sampled_from(CAUSES),
        "observed": texts,
        "restored": texts,
        "low": numbers,
        "high": numbers,
        "p_value": numbers,
        "probability": numbers,
        "donors": st.none() | st.lists(st.integers(0, 2**40), min_size=1, max_size=3),
    }
)


def seam_of(rows: list[dict[str, object]]) -> Seam:
    return Seam.of(**{name: pl.Series([row[name] for row in rows], dtype=dtype) for name, dtype in LEDGER.items()})


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".jsonl"])
@given(rows=st.lists(lines, max_size=5))
def test_files_read_back_exactly(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, rows: list[dict[str, object]]
) -> None:
    seam = seam_of(rows)
    path = tmp_path_factory.mktemp("seam") / f"seam{suffix}"
    seam.write(path)
    assert Seam.read(path) == seam


def test_other_libraries_get_the_same_cells() -> None:
    seam = Seam.of(
        row=[1, 2], column=["a", "b"], cause=["missing", "noise"], observed=[None, "3.5"], donors=[[1, 2], None]
    )
    assert isinstance(seam.to_pandas(), pd.DataFrame)
    assert seam.to_pandas()["row"].tolist() == [1, 2]
    assert seam.to_arrow()["observed"].to_pylist() == [None, "3.5"]
    assert [line["donors"] for line in seam] == [[1, 2], None]


def test_formula_safe_csv_defuses_formulas_but_not_numbers(tmp_path: Path) -> None:
    dangerous = ["=cmd()", "+SUM(A1)", "-1.5e3", "@x", "plain", "\tx", "-x"]
    seam = Seam.of(row=range(7), column=["=a"] * 7, cause=["corrupt"] * 7, observed=dangerous)
    seam.write(tmp_path / "safe.csv", formula_safe=True)
    back = Seam.read(tmp_path / "safe.csv").to_polars()
    assert back["observed"].to_list() == ["'=cmd()", "'+SUM(A1)", "-1.5e3", "'@x", "plain", "'\tx", "'-x"]
    assert back["column"].to_list() == ["'=a"] * 7


def test_unknown_suffix_and_foreign_file_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"not to '\.xlsx' \(file 'seam\.xlsx'\)"):
        Seam.of(row=[]).write(tmp_path / "seam.xlsx")
    with pytest.raises(InputError, match="not to 'a name without a suffix'"):
        Seam.read(tmp_path / "seam")
    pl.DataFrame({"row": [1], "cause": ["noise"]}).write_parquet(tmp_path / "other.parquet")
    with pytest.raises(InputError, match="column, kind, observed"):
        Seam.read(tmp_path / "other.parquet")


@pytest.fixture
def restoration() -> Restoration:
    frame = pd.DataFrame(
        {"age": [31, 910, 45, 28], "sex": ["f", "m", None, "f"], "when": pd.date_range("2026-01-01", periods=4)},
        index=[7, 7, 3, 1],
    )
    table = Table.read(frame)
    schema = learn_schema(table, kinds={"age": "continuous"})
    before = table.encode(schema)
    blocks = Blocks(before.numbers.copy(), before.codes.copy())
    blocks.numbers[1, 0], blocks.codes[2, 0] = 41.0, 0
    changed = np.zeros((4, 3), dtype=bool)
    changed[1, 0] = changed[2, 1] = True
    after = Table.read(table.decode(schema, blocks, changed))
    rows, positions = np.nonzero(changed)
    seam = Seam.of_cells(table, after, schema, rows, positions, cause=["corrupt", "missing"], p_value=[0.001, np.nan])
    return Restoration(table, schema, blocks, changed, changed, seam)


def test_cells_are_written_as_text(restoration: Restoration) -> None:
    frame = restoration.seam.to_polars()
    assert frame["observed"].to_list() == ["910", None]
    assert frame["restored"].to_list() == ["41", "f"]
    assert frame["column"].to_list() == ["age", "sex"]


def test_table_has_the_repairs_and_undo_takes_them_back(restoration: Restoration) -> None:
    assert restoration.table["age"].tolist() == [31, 41, 45, 28]
    assert restoration.table["sex"].tolist() == ["f", "m", "f", "f"]
    assert restoration.table.index.tolist() == [7, 7, 3, 1]
    assert restoration.undo()["age"].tolist() == [31, 910, 45, 28]


@pytest.mark.parametrize("decisions", [{0: False}, [False, True]])
def test_rejected_repairs_are_undone_and_stay_on_record(restoration: Restoration, decisions: object) -> None:
    decided = restoration.apply(decisions)
    assert decided.table["age"].tolist() == [31, 910, 45, 28]
    assert decided.table["sex"].tolist() == ["f", "m", "f", "f"]
    assert len(decided.seam) == 1
    assert decided.rejected.to_polars()["column"].to_list() == ["age"]
    assert restoration.table["age"].tolist() == [31, 41, 45, 28]  # the first restoration is untouched


def test_no_decisions_are_enough_for_a_seam_without_lines(restoration: Restoration) -> None:
    nothing = restoration.apply([False, False])
    assert len(nothing.apply([]).rejected) == 2


def test_bad_decisions_are_named(restoration: Restoration) -> None:
    with pytest.raises(InputError, match="line 9, but the seam has lines 0 to 1"):
        restoration.apply({9: True})
    with pytest.raises(InputError, match="line 'weight', but the seam has lines 0 to 1"):
        restoration.apply({"weight": False})
    with pytest.raises(InputError, match="line 1 must be True or False; got 'reject'"):
        restoration.apply({1: "reject"})
    with pytest.raises(InputError, match=r"2 booleans.*got int64 of shape \(3,\)"):
        restoration.apply([1, 0, 1])
