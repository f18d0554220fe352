"""Files in, files out: every format, batches in order, cells that are not changed come back as they were."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from goldseam.cli.batches import Changes, Mark
from goldseam.cli.delimited import Limits
from goldseam.cli.sinks import open_sink, save_frame
from goldseam.cli.sources import Inputs, Reading, format_of, open_inputs
from goldseam.errors import InputError

NOTHING = Changes({}, {})
SMALL = Limits(rows=10, text_bytes=200)


def frame(n: int = 35) -> pl.DataFrame:
    return pl.DataFrame(
        {"id": [f"{i:03d}" for i in range(n)], "v": [i / 4 for i in range(n)], "k": [i % 3 for i in range(n)]},
        schema_overrides={"v": pl.Float64},
    ).with_columns(pl.when(pl.col("k") != 1).then(pl.col("v")).alias("v"))


def opened(*paths: Path) -> Inputs:
    return open_inputs([str(path) for path in paths], Reading(), paths[0].parent)


def saved(folder: Path, suffix: str, n: int = 35) -> Path:
    path = folder / f"in{suffix}"
    if suffix.endswith(".gz"):
        plain = saved(folder, suffix.removesuffix(".gz"), n)
        path.write_bytes(gzip.compress(plain.read_bytes()))
    elif suffix == ".tsv":
        frame(n).write_csv(path, separator="\t", check_extension=False)
    else:
        save_frame(frame(n), path)
    return path


SUFFIXES = [".csv", ".tsv", ".csv.gz", ".jsonl", ".jsonl.gz", ".parquet", ".arrow", ".feather"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_batches_hold_all_rows_in_order_and_can_start_anywhere(tmp_path: Path, suffix: str) -> None:
    inputs = opened(saved(tmp_path, suffix))
    batches = list(inputs.batches(SMALL))
    assert len(batches) > 2
    assert [b.first_row for b in batches] == np.cumsum([0, *(len(b) for b in batches)])[:-1].tolist()
    whole = pl.concat([b.frame for b in batches], how="vertical_relaxed").with_columns(
        pl.col("v").cast(pl.Float64), pl.col("k").cast(pl.Int64)
    )
    assert_frame_equal(whole, frame())
    for i, batch in enumerate(batches[:-1]):
        again = list(inputs.batches(SMALL, batch.after))
        assert [(b.first_row, b.frame.rows(), b.after) for b in again] == [
            (b.first_row, b.frame.rows(), b.after) for b in batches[i + 1 :]
        ]
    share = inputs.done(batches[-1].after)
    assert np.isnan(share) if suffix.endswith(".gz") else share == pytest.approx(1.0)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_text_without_changes_is_written_back_byte_by_byte(tmp_path: Path, suffix: str) -> None:
    source = saved(tmp_path, suffix)
    source.write_bytes(source.read_bytes().replace(b"2.5", b"2.500"))
    target = tmp_path / f"out{suffix}"
    copy(opened(source), target)
    assert target.read_bytes() == source.read_bytes()


def copy(inputs: Inputs, target: Path, changes: dict[int, Changes] | None = None) -> None:
    types = (
        pl.concat([b.frame for b in inputs.batches(SMALL)]).schema
        if inputs.files[0].path.suffix == ".parquet"
        else frame().schema
    )
    sink = open_sink(str(target), inputs, target.parent / "work", types)
    for batch in inputs.batches(SMALL):
        here = (changes or {}).get(batch.first_row, NOTHING)
        sink.write(batch, here, {name: values.cast(pl.String) for name, values in here.values.items()})
        assert not target.exists()
    sink.close()


@pytest.mark.parametrize("source", [".csv", ".jsonl", ".parquet"])
@pytest.mark.parametrize("target", SUFFIXES)
def test_every_format_into_every_other(tmp_path: Path, source: str, target: str) -> None:
    inputs = opened(saved(tmp_path, source))
    changes = Changes(
        {"v": np.array([1, 4]), "id": np.array([0])}, {"v": pl.Series([9.5, 8.25]), "id": pl.Series(["a,b"])}
    )
    copy(inputs, tmp_path / f"out{target}", {0: changes})
    back = pl.concat([b.frame for b in opened(tmp_path / f"out{target}").batches(SMALL)], how="vertical_relaxed")
    want = changes.applied(frame())
    assert_frame_equal(back.with_columns(pl.col("v").cast(pl.Float64), pl.col("k").cast(pl.Int64)), want)


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".jsonl", ".parquet"])
def test_resumed_output_is_the_same_bytes(tmp_path: Path, suffix: str) -> None:
    inputs = opened(saved(tmp_path, ".csv"))
    whole, parts = tmp_path / f"whole{suffix}", tmp_path / f"parts{suffix}"
    copy(inputs, whole)
    first = open_sink(str(parts), inputs, tmp_path / "work2", frame().schema)
    batches = list(inputs.batches(SMALL))
    first.write(batches[0], NOTHING, {})
    size = first.size
    first.write(batches[1], NOTHING, {})  # not in the journal: written again
    if suffix != ".parquet":
        first._file.close()
    second = open_sink(str(parts), inputs, tmp_path / "work2", frame().schema)
    second.resume(size)
    for batch in inputs.batches(SMALL, batches[0].after):
        second.write(batch, NOTHING, {})
    second.close()
    assert parts.read_bytes() == whole.read_bytes()


def test_several_files_are_one_table(tmp_path: Path) -> None:
    for name, part in (("a", frame()[:20]), ("b", frame()[20:])):
        part.write_csv(tmp_path / f"{name}.csv")
    inputs = open_inputs([str(tmp_path / "*.csv")], Reading(), tmp_path)
    batches = list(inputs.batches(SMALL))
    assert sum(map(len, batches)) == 35
    assert batches[-1].after == Mark(1, batches[-1].after.position, 17, 35)
    copy(inputs, tmp_path / "out.tsv")
    assert pl.read_csv(tmp_path / "out.tsv", separator="\t", schema_overrides={"id": pl.String}).equals(frame())
    frame().rename({"k": "other"}).write_csv(tmp_path / "c.csv")
    with pytest.raises(InputError, match=r"'c.csv' does not have the columns of 'a.csv': column 'other'"):
        open_inputs([str(tmp_path / "*.csv")], Reading(), tmp_path)


def test_encoding_and_mark_of_the_input_are_kept(tmp_path: Path) -> None:
    for encoding in ("utf-16", "utf-8-sig"):
        source, target = tmp_path / "in.csv", tmp_path / f"{encoding}.csv"
        source.write_bytes("id,v,k\nä,1,2\n".encode(encoding))
        copy(opened(source), target)
        assert target.read_bytes() == source.read_bytes()


def test_json_lines_keep_lines_without_a_change(tmp_path: Path) -> None:
    lines = ['{"a": 1.50, "b": "x"}', '{"b": "y", "a": 2}', '{"a": 3.0, "b": null, "n": {"deep": [1]}}']
    (tmp_path / "in.jsonl").write_text("\n".join(lines) + "\n")
    copy(
        opened(tmp_path / "in.jsonl"),
        tmp_path / "out.jsonl",
        {0: Changes({"a": np.array([1])}, {"a": pl.Series([9.0])})},
    )
    assert (tmp_path / "out.jsonl").read_text().splitlines() == [lines[0], '{"b":"y","a":9.0}', lines[2]]


def test_bad_json_lines_are_numbered(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"a": 1}\n{"a": \n\n[1]\n{"a": 2}\n')
    (batch,) = opened(tmp_path / "in.jsonl").batches(Limits())
    assert [(b.line, b.problem.split(" (")[0]) for b in batch.bad] == [(2, "not JSON"), (4, "not a JSON object")]
    assert len(batch) == 2


def test_messages_of_files_that_cannot_be_used(tmp_path: Path) -> None:
    for name, content, message in (
        ("a.xyz", b"", "'a.xyz' has a suffix that names no table format"),
        ("a.parquet", b"PAR1garbage", "'a.parquet' is not a whole parquet file"),
        ("a.arrow", b"garbage", "'a.arrow' is not a whole arrow file"),
        ("e.parquet", b"", "'e.parquet' is empty"),
        ("a.csv.gz", b"no gzip", "'a.csv.gz' is not a whole gzip file"),
        ("a.jsonl", b"\n", "'a.jsonl' holds no JSON object"),
        ("a.csv", b"", "'a.csv' is empty"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=message):
            opened(tmp_path / name)
    with pytest.raises(InputError, match=r"does not exist"):
        opened(tmp_path / "absent.csv")
    with pytest.raises(InputError, match="No file matches"):
        opened(tmp_path / "x*.csv")
    with pytest.raises(InputError, match="is a folder"):
        opened(tmp_path)


def test_a_number_column_never_loses_text_in_a_typed_output(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("id,v,k\na,n/a,1\n")
    inputs = opened(tmp_path / "in.csv")
    with pytest.raises(InputError, match=r"Column 'v' is written as numbers, but it holds 'n/a'"):
        copy(inputs, tmp_path / "out.parquet")
    sink = open_sink(str(tmp_path / "out.parquet"), inputs, tmp_path / "w", frame().schema, ("n/a",))
    for batch in inputs.batches(SMALL):
        sink.write(batch, NOTHING, {})
    sink.close()
    assert pl.read_parquet(tmp_path / "out.parquet")["v"].to_list() == [None]


def test_format_by_suffix() -> None:
    with pytest.raises(InputError, match="suffix"):
        format_of(Path("a.parquet.gz"))
