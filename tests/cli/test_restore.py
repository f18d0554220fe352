"""`restore`: cells, formats, the run directory, resume, and what must never happen."""

from __future__ import annotations

import json
import signal
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import polars as pl
import pytest

from goldseam.cli.runs import file_hash
from goldseam.seam import Seam
from goldseam.summary import json_schema
from tests.cli.conftest import clean_table, damaged_table
from tests.cli.helpers import Outcome, call, expected, run, start

SMALL = ("--memory", "480MB")  # about 12,000 rows per batch


def medians() -> dict[str, str]:
    reference = clean_table()
    return {"v": str(reference["v"].median()), "k": str(int(np.rint(reference["k"].median())))}  # type: ignore[call-overload]


def test_csv_comes_back_byte_by_byte_except_for_the_seam(folder: Path, tmp_path: Path, capsys: Any) -> None:
    out = call(
        capsys, "restore", folder / "incoming.csv", "-m", folder / "model.seam", "-o", tmp_path / "out.csv", *SMALL
    )
    assert out.code == 0, out.err
    assert (tmp_path / "out.csv").read_bytes() == expected(folder / "incoming.csv", medians())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.csv", "out.run"]


def test_batch_size_and_jobs_do_not_matter(folder: Path, tmp_path: Path, capsys: Any) -> None:
    for name, options in (("a", SMALL), ("b", ("--memory", "2GB", "--jobs", "1"))):
        call(
            capsys,
            "restore",
            folder / "incoming.csv",
            "-m",
            folder / "model.seam",
            "-o",
            tmp_path / f"{name}.csv",
            *options,
        )
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    first, second = (pl.read_parquet(tmp_path / f"{name}.run" / "seam.parquet") for name in "ab")
    assert first.equals(second)


def test_the_run_directory_tells_everything(folder: Path, tmp_path: Path, capsys: Any) -> None:
    out = call(
        capsys, "restore", folder / "incoming.csv", "-m", folder / "model.seam", "-o", tmp_path / "out.csv", "--key", "id",
        "--seam", tmp_path / "seam.csv", "--report", tmp_path / "report.md", "--json", *SMALL,
    )  # fmt: skip
    run_dir = tmp_path / "out.run"
    assert sorted(p.name for p in run_dir.iterdir()) == [
        "out.csv",
        "report.html",
        "run.json",
        "seam.parquet",
        "summary.json",
    ]
    record = json.loads((run_dir / "run.json").read_text())
    assert record == out.json
    assert record["model"]["sha256"] == file_hash(folder / "model.seam")
    for about in record["outputs"].values():
        assert file_hash(run_dir / about["path"]) == about["sha256"]
    assert {"goldseam", "python", "polars"} <= set(record["versions"])
    summary = json.loads((run_dir / "summary.json").read_text())
    jsonschema.validate(summary, json_schema())
    assert summary["table"]["rows"] == 30_000 == record["counts"]["rows"]
    seam = pl.read_parquet(run_dir / "seam.parquet")
    damaged = damaged_table()
    n_damaged = int((damaged["v"] == 99.5).sum()) + damaged["k"].null_count()
    assert seam.height == summary["seam"]["lines"] == n_damaged
    assert seam["key"].to_list() == damaged["id"].gather(seam["row"].to_numpy()).to_list()
    assert seam["row"].is_sorted()
    assert len(Seam.read(run_dir / "seam.parquet")) == pl.read_csv(tmp_path / "seam.csv").height
    assert "Restoration of incoming" in (tmp_path / "report.md").read_text()
    assert (run_dir / "out.csv").samefile(tmp_path / "out.csv")


@pytest.mark.parametrize("suffix", [".parquet", ".jsonl", ".tsv", ".csv.gz", ".arrow"])
def test_other_formats_hold_the_same_table(folder: Path, tmp_path: Path, capsys: Any, suffix: str) -> None:
    source = folder / ("incoming.parquet" if suffix == ".jsonl" else "incoming.csv")
    target = tmp_path / f"out{suffix}"
    out = call(capsys, "restore", source, "-m", folder / "model.seam", "-o", target, *SMALL)
    assert out.code == 0, out.err
    read = {".parquet": pl.read_parquet, ".jsonl": pl.read_ndjson, ".arrow": pl.read_ipc}.get(suffix)
    text = {"id": pl.String}
    back = (
        read(target)
        if read
        else pl.read_csv(target, separator="\t" if suffix == ".tsv" else ",", schema_overrides=text)
    )
    want = damaged_table().with_columns(
        v=pl.when(pl.col("v") == 99.5).then(float(medians()["v"])).otherwise("v"),
        k=pl.col("k").fill_null(int(medians()["k"])),
    )
    assert back.equals(want)


def test_stdin_to_stdout(folder: Path, tmp_path: Path) -> None:
    data = (folder / "incoming.csv").read_bytes()
    out = run("restore", "-", "-m", folder / "model.seam", "-o", "-", "--quiet", stdin=data, cwd=tmp_path)
    assert out.code == 0, out.err
    assert out.out.encode() == expected(folder / "incoming.csv", medians())
    assert list(tmp_path.iterdir()) == []


def test_only_the_columns_named_are_mended(folder: Path, tmp_path: Path, capsys: Any) -> None:
    call(
        capsys,
        "restore",
        folder / "incoming.csv",
        "-m",
        folder / "model.seam",
        "-o",
        tmp_path / "out.csv",
        "--columns",
        "k",
    )
    assert (tmp_path / "out.csv").read_bytes() == expected(folder / "incoming.csv", {**medians(), "v": "99.5"})
    assert pl.read_parquet(tmp_path / "out.run" / "seam.parquet")["column"].unique().to_list() == ["k"]


def test_text_among_numbers_is_an_error_or_damage(folder: Path, tmp_path: Path, capsys: Any) -> None:
    source = tmp_path / "in.csv"
    source.write_text("id,v,k,c,flag\n1,10.5,3,red,true\n2,#REF!,4,blue,false\n3,9,n/a,red,false\n")
    out = call(capsys, "restore", source, "-m", folder / "model.seam", "-o", tmp_path / "out.csv")
    assert out.code == 2
    assert (
        "Column 'v' holds text, but the model learnt it as numbers. First bad value: '#REF!' at row 1 (line 3)"
        in out.err
    )
    assert not (tmp_path / "out.csv").exists()
    mend = ("--on-bad-cell", "mend", "--missing", "n/a")
    out = call(capsys, "restore", source, "-m", folder / "model.seam", "-o", tmp_path / "out.csv", *mend)
    assert out.code == 0, out.err
    m = medians()
    want = ["1,10.5,3,red,true", f"2,{m['v']},4,blue,false", f"3,9,{m['k']},red,false"]
    assert (tmp_path / "out.csv").read_text().splitlines()[1:] == want
    seam = pl.read_parquet(tmp_path / "out.run" / "seam.parquet")
    assert seam.select("row", "column", "cause", "observed").rows() == [
        (1, "v", "corrupt", "#REF!"),
        (2, "k", "missing", "n/a"),
    ]


def test_extra_columns_and_dialect_stay(folder: Path, tmp_path: Path, capsys: Any) -> None:
    source = tmp_path / "in.csv"
    text = 'note;k;id;flag;v;c\r\n"a;b ""c""";3;0007;TRUE;1,50;red\r\nd;;0008;;99,0;teal\r\n'
    source.write_bytes(b"\xef\xbb\xbf" + text.encode())
    out = call(capsys, "restore", source, "-m", folder / "model.seam", "-o", tmp_path / "out.csv")
    assert out.code == 0, out.err
    m = medians()
    first, second, *_ = text.split("\r\n")
    lines = (tmp_path / "out.csv").read_bytes().removeprefix(b"\xef\xbb\xbf").decode().split("\r\n")
    assert lines[0] == first
    assert lines[1] == second.replace("1,50", m["v"].replace(".", ","))  # 1.5 lies below the reference's range
    assert lines[2] == f"d;{m['k']};0008;FALSE;{m['v'].replace('.', ',')};blue"
    assert (tmp_path / "out.csv").read_bytes().startswith(b"\xef\xbb\xbf")


def test_bad_lines_fail_skip_quarantine(folder: Path, tmp_path: Path, capsys: Any) -> None:
    source = tmp_path / "in.csv"
    source.write_text("id,v,k,c,flag\n1,10,3,red,true\n2,11\n\n3,9,4,red,false,9\n4,9.0,5,blue,true\n")
    words = ("restore", source, "-m", folder / "model.seam", "-o", tmp_path / "out.csv", "--on-bad-line")
    out = call(capsys, *words, "fail")
    assert out.code == 2
    assert "Line 3 of 'in.csv' does not fit: 2 fields where the header has 5 ('2,11')" in out.err
    for policy in ("skip", "quarantine"):
        out = call(capsys, *words, policy)
        assert out.code == 0, out.err
        assert "2 lines did not fit and were left out (lines 3, 5)" in out.err
        assert "1 blank line passed over" in out.err
        assert (tmp_path / "out.csv").read_text().splitlines()[1:] == ["1,10,3,red,true", "4,9.0,5,blue,true"]
    kept = [json.loads(line) for line in (tmp_path / "out.run" / "bad-lines.jsonl").read_text().splitlines()]
    assert [(line["line"], line["text"]) for line in kept] == [(3, "2,11"), (5, "3,9,4,red,false,9")]


def test_the_seam_holds_the_text_of_the_file(folder: Path, tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "in.csv").write_text("id,v,k,c,flag\n1,099.50,3,red,true\n2,10,?,red,true\n")
    words = ("restore", tmp_path / "in.csv", "-m", folder / "model.seam", "-o", tmp_path / "out.csv", "--missing", "?")
    assert call(capsys, *words).code == 0
    seam = pl.read_parquet(tmp_path / "out.run" / "seam.parquet")
    m = medians()
    assert seam.select("column", "observed", "restored").rows() == [("v", "099.50", m["v"]), ("k", "?", m["k"])]


def test_ordered_rows_are_drawn_along_the_rows(folder: Path, tmp_path: Path, capsys: Any) -> None:
    words = ("restore", folder / "incoming.csv", "-m", folder / "model.seam", "-o", tmp_path / "out.csv", *SMALL)
    page = tmp_path / "out.run" / "report.html"
    assert call(capsys, *words).code == 0
    assert "Along the rows" not in page.read_text()
    assert call(capsys, *words, "--ordered").code == 0
    assert "Along the rows" in page.read_text()
    summary = json.loads((tmp_path / "out.run" / "summary.json").read_text())
    assert [line["name"] for line in summary["timelines"]["columns"]] == ["v", "k"]
    assert datetime.fromisoformat(summary["how"]["created"]).tzinfo is not None
    assert "Made" in page.read_text()


@pytest.mark.parametrize("command", ["restore", "check"])
def test_a_seam_for_spreadsheets(folder: Path, tmp_path: Path, capsys: Any, command: str) -> None:
    (tmp_path / "in.csv").write_text("id,v,k,c,flag\n=1+1,10,3,=HYPERLINK(1),true\n@SUM,-99,3,red,true\n")
    words = [command, tmp_path / "in.csv", "-m", folder / "model.seam", "--key", "id", "--seam", tmp_path / "seam.csv"]
    words += ["-o", tmp_path / "out.csv"] if command == "restore" else []
    for more, cells in (
        ((), [("=HYPERLINK(1)", "=1+1"), ("-99", "@SUM")]),
        (("--formula-safe",), [("'=HYPERLINK(1)", "'=1+1"), ("-99", "'@SUM")]),
    ):
        assert call(capsys, *words, *more).code in (0, 1)
        seam = pl.read_csv(tmp_path / "seam.csv", infer_schema=False)
        assert seam.select("observed", "key").rows() == cells
    if command == "restore":  # the run directory keeps the truth
        kept = pl.read_parquet(tmp_path / "out.run" / "seam.parquet")
        assert kept["observed"].to_list() == ["=HYPERLINK(1)", "-99"]


# ------------------------------------------------------------------------------------------- interrupted and resumed


def wait_for_batches(process: Any, work: Path, n: int) -> None:
    journal = work / "journal.jsonl"
    deadline = time.monotonic() + 60
    while not (journal.exists() and journal.read_bytes().count(b"\n") >= n):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("suffix", [".csv", pytest.param(".csv.gz", marks=pytest.mark.slow), ".parquet"])
def test_kill_9_leaves_no_output_and_resume_gives_the_same_bytes(
    folder: Path, tmp_path: Path, capsys: Any, suffix: str
) -> None:
    words = ("restore", folder / "incoming.csv", "-m", folder / "slow.seam", "--quiet", *SMALL)
    whole, cut = tmp_path / "whole" / f"out{suffix}", tmp_path / "cut" / f"out{suffix}"
    whole.parent.mkdir()
    cut.parent.mkdir()
    assert call(capsys, *words, "-o", whole).code == 0
    process = start(*words, "-o", cut)
    wait_for_batches(process, cut.parent / "out.run" / "work", 2)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not cut.exists()
    (cut.parent / f".{cut.name}.99999.part").write_text("what a kill leaves while parts are joined")
    resumed = call(capsys, *words, "-o", cut, "--resume")
    assert resumed.code == 0, resumed.err
    assert cut.read_bytes() == whole.read_bytes()
    for name in ("seam.parquet", "summary.json"):
        first, second = (path.parent / "out.run" / name for path in (whole, cut))
        if name == "summary.json":
            a, b = (json.loads(path.read_text()) for path in (first, second))
            assert {**a, "how": None} == {**b, "how": None}
        else:
            assert first.read_bytes() == second.read_bytes()
    assert not (cut.parent / "out.run" / "work").exists()
    assert [path.name for path in cut.parent.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_stop_at_a_batch_with_code_3(folder: Path, tmp_path: Path, capsys: Any, number: signal.Signals) -> None:
    words = ("restore", folder / "incoming.csv", "-m", folder / "slow.seam", "-o", tmp_path / "out.csv", *SMALL)
    process = start(*words)
    wait_for_batches(process, tmp_path / "out.run" / "work", 1)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 3
    assert f"Stopped by {number.name} after".encode() in err
    assert b"--resume goes on" in err
    assert not (tmp_path / "out.csv").exists()
    resumed = call(capsys, *words, "--resume")
    assert resumed.code == 0
    assert "going on after" in resumed.err
    assert (tmp_path / "out.csv").read_bytes() == expected(folder / "incoming.csv", medians())


def test_a_torn_journal_line_and_unjournalled_bytes_are_forgotten(folder: Path, tmp_path: Path, capsys: Any) -> None:
    words = ("restore", folder / "incoming.csv", "-m", folder / "slow.seam", "-o", tmp_path / "out.csv", *SMALL)
    process = start(*words)
    wait_for_batches(process, tmp_path / "out.run" / "work", 2)
    process.kill()
    process.communicate()
    with (tmp_path / "out.run" / "work" / "journal.jsonl").open("a") as journal:
        journal.write('{"mark": {"file": 0, "posi')
    with (tmp_path / ".out.csv.partial").open("ab") as partial:
        partial.write(b"half a ro")
    assert call(capsys, *words, "--resume").code == 0
    assert (tmp_path / "out.csv").read_bytes() == expected(folder / "incoming.csv", medians())


def test_resume_refuses_what_is_no_longer_the_same(folder: Path, tmp_path: Path, capsys: Any) -> None:
    words = ["restore", folder / "incoming.csv", "-m", folder / "slowest.seam", "-o", tmp_path / "out.csv", *SMALL]
    process = start(*words)
    wait_for_batches(process, tmp_path / "out.run" / "work", 1)
    second = call(capsys, *words, "--resume")
    assert second.code == 2
    assert "Another process is writing the run 'out.run'" in second.err
    process.kill()
    process.communicate()
    other = [*words[:3], folder / "model.seam", *words[4:]]
    out = call(capsys, *other, "--resume")
    assert out.code == 2
    assert "cannot be resumed: its model was" in out.err
    out = call(capsys, *words, "--resume", "--columns", "k")
    assert 'cannot be resumed: its columns was null, now it is "k"' in out.err
    (tmp_path / ".out.csv.partial").unlink()
    out = call(capsys, *words, "--resume")
    assert out.code == 2
    assert "'.out.csv.partial' is gone" in out.err


def test_resume_without_an_earlier_run_starts(folder: Path, tmp_path: Path, capsys: Any) -> None:
    words = ("restore", folder / "incoming.csv", "-m", folder / "model.seam", "-o", tmp_path / "out.csv", "--resume")
    out = call(capsys, *words)
    assert out.code == 0
    assert "nothing to resume" in out.err
    again = call(capsys, *words)
    assert (again.code, again.out) == (0, out.out)
    assert "this run is complete" in again.err
    assert (tmp_path / "out.csv").read_bytes() == expected(folder / "incoming.csv", medians())


def test_the_record_of_another_table_is_not_replaced(folder: Path, tmp_path: Path, capsys: Any) -> None:
    def restore(output: str, *more: str) -> Outcome:
        words = (folder / "incoming.csv", "-m", folder / "model.seam", "-o", f"{tmp_path}/{output}", "--quiet")
        return call(capsys, "restore", *words, *more)

    assert restore("out.csv").code == 0
    record = (tmp_path / "out.run" / "run.json").read_bytes()
    refused = restore("out.jsonl")
    assert refused.code == 2
    assert "is the record of" in refused.err
    assert "Hint: --run out.jsonl.run" in refused.err
    assert (tmp_path / "out.run" / "run.json").read_bytes() == record
    assert not (tmp_path / "out.jsonl").exists()
    assert restore("./out.csv").code == 0, "the same table, written again"
    assert restore("out.jsonl", "--run", str(tmp_path / "out.run")).code == 0, "asked for by name"
    (tmp_path / "out.jsonl").unlink()
    assert restore("out.csv").code == 0, "of a table that is gone nothing is to be kept"
