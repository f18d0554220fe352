"""Records and fields of delimited text: against the csv module, with and without quotes, cut anywhere."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldseam.cli.delimited import Limits, Records, blocks, read_header, scan_any, scan_unquoted
from goldseam.cli.dialect import Dialect, sniff
from goldseam.errors import InputError, ParameterError

SMALL = Limits(rows=7, text_bytes=64)
cell = st.text(st.sampled_from('ab1 ,;"\n\r'), max_size=6)


def written(rows: list[list[str]], newline: str = "\n") -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator=newline).writerows(rows)
    return text.getvalue()


def read(path: Path, n: int, limits: Limits = SMALL) -> list[Records]:
    return [records for records, _, _ in blocks(path, Dialect(), n, limits, 0, 1)]


def rows_of(parts: list[Records]) -> list[tuple[str | None, ...]]:
    names = [f"c{i}" for i in range(parts[0].n_columns)] if parts else []
    return [row for part in parts for row in part.frame(names).rows()]


def emptied(rows: list[list[str]]) -> list[tuple[str | None, ...]]:
    return [tuple(c or None for c in row) for row in rows]


@given(
    st.lists(st.lists(cell.filter(lambda c: "\r" not in c), min_size=3, max_size=3), max_size=25),
    st.sampled_from(["\n", "\r\n"]),
)
def test_reads_what_the_csv_module_writes(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]], newline: str
) -> None:
    path = tmp_path_factory.mktemp("t") / "a.csv"
    path.write_bytes(written(rows, newline).encode())
    found = [tuple(c or None for c in row) for row in rows_of(read(path, 3))]
    assert found == emptied(rows)


@given(st.text(st.sampled_from("a,\n\r1"), max_size=200))
def test_fast_path_equals_the_general_one(text: str) -> None:
    data = text.encode() + b"\n"
    fast, slow = scan_unquoted(data, Dialect(), 10**6), scan_any(data, Dialect(), True, 10**6)
    assert (fast.n_records, fast.consumed, fast.n_newlines) == (slow.n_records, slow.consumed, slow.n_newlines)
    for name in ("starts", "ends", "firsts"):
        np.testing.assert_array_equal(getattr(fast, name), getattr(slow, name))


def test_blocks_are_a_function_of_where_they_begin(tmp_path: Path, rng: np.random.Generator) -> None:
    rows = [[str(v), "x" * int(rng.integers(0, 30)), 'q"\n'] for v in rng.integers(0, 10**6, 200)]
    (tmp_path / "a.csv").write_text(written(rows))
    whole = list(blocks(tmp_path / "a.csv", Dialect(), 3, SMALL, 0, 1))
    for i, (_, position, line) in enumerate(whole[:-1]):
        again = [r.data for r, _, _ in blocks(tmp_path / "a.csv", Dialect(), 3, SMALL, position, line)]
        assert again == [r.data for r, _, _ in whole[i + 1 :]]


def test_patching_changes_only_the_cells_named(tmp_path: Path) -> None:
    text = 'id,v\n007,1.50\n008,"2,5"\n009, 3\n'
    (tmp_path / "a.csv").write_text(text)
    (part,) = [r for r, _, _ in blocks(tmp_path / "a.csv", Dialect(), 2, Limits(), 5, 2)]
    new = part.patched(np.array([0, 2]), np.array([1, 1]), ["9.25", 'a,"b'])
    assert new.decode() == '007,9.25\n008,"2,5"\n009,"a,""b"\n'
    assert part.patched(np.empty(0, np.int64), np.empty(0, np.int64), []).decode() == text[5:]


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_broken_and_blank_lines_are_told_apart_and_left_out(tmp_path: Path, ending: str) -> None:
    lines = ["1,2", "", "3", '4,"five', 'six"', "7,8,9", "10,11"]
    (tmp_path / "a.csv").write_bytes(ending.join(lines).encode())
    parts = read(tmp_path / "a.csv", 2, Limits())
    assert rows_of(parts) == [("1", "2"), ("4", f"five{ending}six"), ("10", "11")]
    bad = [b for part in parts for b in part.bad]
    assert [(b.line, b.problem, b.text) for b in bad] == [
        (3, "1 field where the header has 2", "3"),
        (6, "3 fields where the header has 2", "7,8,9"),
    ]
    assert sum(part.n_blank for part in parts) == 1
    new = b"".join(p.patched(np.array([1]), np.array([0]), ["X"]) for p in parts)
    assert new.decode() == f'1,2{ending}X,"five{ending}six"{ending}10,11{ending}'


def test_stray_quotes_are_text(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('1,5" pipe\n"ab"c,2\n')
    assert rows_of(read(tmp_path / "a.csv", 2, Limits())) == [("1", '5" pipe'), ('"ab"c', "2")]


def test_a_quote_that_is_never_closed_spoils_its_line_only(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('1,2\n3,"oops\n4,5\n6,7\n')
    parts = read(tmp_path / "a.csv", 2, Limits())
    assert rows_of(parts) == [("1", "2"), ("4", "5"), ("6", "7")]
    assert [(b.line, b.problem) for part in parts for b in part.bad] == [(2, "a quote is opened and not closed")]


def test_bytes_that_are_not_utf8_are_named_with_their_line(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"1,2\n3,caf\xe9\n")
    with pytest.raises(InputError, match=r"'a.csv' is not utf-8 text: line 2 holds the byte 0xE9.*--encoding latin-1"):
        read(tmp_path / "a.csv", 2)


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-8-sig", "cp1252"])
def test_other_encodings_read_the_same(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("name,v\ncafé,1\nnaïve,2\n".encode(encoding))
    given_name = "auto" if encoding in ("utf-16", "utf-8-sig") else encoding
    dialect = sniff(path.read_bytes(), name="a.csv", encoding=given_name)
    names, _, size = read_header(path, dialect)
    parts = [r for r, _, _ in blocks(path, dialect, 2, Limits(rows=1), size, 2)]
    assert names == ["name", "v"]
    assert rows_of(parts) == [("café", "1"), ("naïve", "2")]


@pytest.mark.parametrize(
    ("text", "delimiter", "decimal"),
    [
        ("a,b,c\n1,2,3\n", ",", "."),
        ("a;b\n1,5;2,5\n", ";", ","),
        ("a;b\n1.5;2,5\n", ";", "."),
        ("a\tb\n1,5\t2\n", "\t", ","),
        ("a|b\nx,y|z\n", "|", "."),
        ('a,b\n"x;y;z",1\n"p;q;r",2\n', ",", "."),
        ("one\n1.5\n2.5\n", ",", "."),
    ],
)
def test_dialect_is_sniffed(text: str, delimiter: str, decimal: str) -> None:
    found = sniff(text.encode(), name="t.csv")
    assert (found.delimiter, found.decimal) == (delimiter, decimal)


def test_dialect_errors_name_what_was_said() -> None:
    with pytest.raises(ParameterError, match="Encoding 'klingon' is unknown"):
        sniff(b"a\n", name="t.csv", encoding="klingon")
    with pytest.raises(ParameterError, match="one ASCII character, but got 'ab'"):
        sniff(b"a\n", name="t.csv", delimiter="ab")
    with pytest.raises(ParameterError, match="both ','"):
        sniff(b"a,b\n", name="t.csv", decimal=",")
    with pytest.raises(InputError, match="carriage returns only"):
        sniff(b"a,b\r1,2\r", name="t.csv")


def test_header_is_checked(tmp_path: Path) -> None:
    for text, message in (("", "'a.csv' is empty"), ("\n", "is empty"), ("a,b,a\n", "column name 'a' 2 times")):
        (tmp_path / "a.csv").write_text(text)
        with pytest.raises(InputError, match=message):
            read_header(tmp_path / "a.csv", Dialect())
    (tmp_path / "a.csv").write_text('"a, b",\n')
    assert read_header(tmp_path / "a.csv", Dialect())[0] == ["a, b", ""]
    assert read_header(tmp_path / "a.csv", Dialect(has_header=False))[0] == ["column_1", "column_2"]


def test_ten_thousand_columns(tmp_path: Path) -> None:
    n = 10_000
    (tmp_path / "a.csv").write_text(",".join(f"c{i}" for i in range(n)) + "\n" + ",".join(map(str, range(n))) + "\n")
    names, _, size = read_header(tmp_path / "a.csv", Dialect())
    (part,) = [r for r, _, _ in blocks(tmp_path / "a.csv", Dialect(), n, Limits(), size, 2)]
    assert part.frame(names).row(0)[-1] == "9999"
