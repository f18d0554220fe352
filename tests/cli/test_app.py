"""The program as a whole: help, version, settings file, log file, completion, train and predict, corrupt."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import polars as pl
import pytest

from goldseam.cli.app import COMMANDS, program
from goldseam.cli.exits import Guard, Interrupted
from tests.cli.conftest import clean_table, damaged_table
from tests.cli.helpers import ENVIRONMENT, PROGRAM, STAND_IN, call, run

HEAVY = {"numpy", "polars", "scipy", "sklearn", "numba", "rich", "goldseam.tables", "goldseam.seam"}


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); "
        "from goldseam.cli.app import run; run(['--help'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=ENVIRONMENT, check=True)
    assert set(done.stderr.split()) & HEAVY == set()
    for name in COMMANDS:
        assert f"\n  {name} " in done.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_examples(name: str, capsys: Any) -> None:
    out = call(capsys, name, "--help")
    assert out.code == 0
    assert "Examples:" in out.out
    assert "Hint" not in out.err


def test_every_option_is_explained() -> None:
    with click.Context(program) as ctx:
        for name in COMMANDS:
            for parameter in program.get_command(ctx, name).params:  # type: ignore[union-attr]
                if isinstance(parameter, click.Option):
                    assert parameter.help, (name, parameter.name)


def test_usage_errors_are_one_sentence_and_code_2(capsys: Any) -> None:
    for words, part in (
        (("frobnicate",), "No such command 'frobnicate'"),
        (("restor", "a.csv"), "did you mean restore?"),
        (("check",), "Missing argument 'FILE...'"),
        (("check", "a.csv"), "Missing option '--model'"),
        (("restore", "a.csv", "-m", "m", "-o", "b.csv", "--on-bad-line", "ignore"), "'ignore' is not one of"),
    ):
        out = call(capsys, *words)
        assert out.code == 2
        assert part in out.err
        assert len(out.err.splitlines()) == 2


def test_a_signal_inside_compiled_code_is_an_interruption(capsys: Any) -> None:
    with Guard() as guard:
        raise SystemError("<kernel> returned a result with an exception set") from Interrupted("Stopped by SIGTERM.")
    assert guard.code == 3
    assert capsys.readouterr().err == "goldseam: interrupted: Stopped by SIGTERM.\n"
    with Guard() as guard:
        raise SystemError("something else")
    assert guard.code == 2
    assert "Unexpected SystemError: something else" in capsys.readouterr().err


def test_version_and_completion(capsys: Any) -> None:
    from goldseam import __version__

    assert call(capsys, "--version").out.strip() == f"goldseam, version {__version__}"
    for shell in ("bash", "zsh", "fish"):
        assert "_GOLDSEAM_COMPLETE" in call(capsys, "completion", shell).out
    environment = {**ENVIRONMENT, "_GOLDSEAM_COMPLETE": "bash_complete", "COMP_WORDS": "goldseam re", "COMP_CWORD": "1"}
    done = subprocess.run(PROGRAM, capture_output=True, text=True, env=environment, check=False)
    assert {"plain,restore", "plain,report"} <= set(done.stdout.split())


# ------------------------------------------------------------------------------------------------- settings, log


def test_settings_come_from_a_file_and_the_command_line_wins(folder: Path, tmp_path: Path, capsys: Any) -> None:
    config = tmp_path / "goldseam.toml"
    config.write_text(
        'missing = ["n/a", "?"]\nquiet = true\n[check]\nfail-over = 0.0\nrows = 2\n[restore]\nmemory = "480MB"\n'
    )
    out = call(capsys, "check", folder / "incoming.csv", "-m", folder / "model.seam", "--config", config, "--json")
    assert (out.code, len(out.json["listed_rows"]), out.json["fail_over"]) == (1, 2, 0.0)
    out = call(
        capsys, "check", folder / "incoming.csv", "-m", folder / "model.seam", "--config", config, "--fail-over", "1"
    )
    assert out.code == 0
    (tmp_path / "in.csv").write_text("id,v,k,c,flag\n1,?,3,red,true\n")
    out = call(
        capsys,
        "restore",
        tmp_path / "in.csv",
        "-m",
        folder / "model.seam",
        "-o",
        tmp_path / "o.csv",
        "--config",
        config,
    )
    assert out.code == 0, out.err


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("[check]\nfail_over = 1\n", "sets 'fail_over' for check, which has no such option"),
        ("oops", "is not TOML"),
        (None, "does not exist"),
    ],
)
def test_bad_settings_files(folder: Path, tmp_path: Path, capsys: Any, text: str | None, part: str) -> None:
    config = tmp_path / "goldseam.toml"
    if text is not None:
        config.write_text(text)
    out = call(capsys, "check", folder / "incoming.csv", "-m", folder / "model.seam", "--config", config)
    assert out.code == 2
    assert part in out.err


def test_log_file_and_quiet(folder: Path, tmp_path: Path, capsys: Any) -> None:
    log = tmp_path / "log.txt"
    for _ in range(2):
        out = call(capsys, "check", folder / "incoming.csv", "-m", folder / "model.seam", "--quiet", "--log-file", log)
    assert out.err == ""
    lines = log.read_text().splitlines()
    assert sum("rows suspect" in line for line in lines) == 2
    assert lines[0][:2] == "20"


# ------------------------------------------------------------------------------------------------- other commands


def test_fit_says_what_it_learnt(folder: Path, tmp_path: Path, capsys: Any) -> None:
    out = call(
        capsys,
        "fit",
        folder / "reference.csv",
        "-o",
        tmp_path / "m.seam",
        "--key",
        "id",
        "--kinds",
        "k=continuous",
        "--json",
    )
    assert out.code == 0, out.err
    kinds = {column["name"]: column["kind"] for column in out.json["columns"]}
    assert kinds == {"id": "passthrough", "v": "continuous", "k": "continuous", "c": "categorical", "flag": "boolean"}
    info = call(capsys, "info", tmp_path / "m.seam", "--json").json
    assert info["model"] == "StandIn"
    assert [column["kind"] for column in info["columns"]] == list(kinds.values())
    assert "Sees what is out of range" in call(capsys, "audit", tmp_path / "m.seam").out


def test_fit_reads_types_from_text(folder: Path, tmp_path: Path, capsys: Any) -> None:
    rows = [
        f"{i:03d};{i / 4:.2f}".replace(".", ",") + f";{i % 2 == 0};2024-01-{i % 28 + 1:02d};{i};?" for i in range(60)
    ]
    (tmp_path / "r.csv").write_text("zip;price;ok;day;n;gap\n" + "\n".join(rows) + "\n")
    out = call(capsys, "fit", tmp_path / "r.csv", "-o", tmp_path / "m.seam", "--missing", "?", "--json")
    assert out.code == 0, out.err
    kinds = {column["name"]: column["kind"] for column in out.json["columns"]}
    passed = dict.fromkeys(["zip", "day", "gap"], "passthrough")
    assert kinds == {"price": "continuous", "ok": "boolean", "n": "integer", **passed}


def test_nearly_numeric_columns_must_be_decided(tmp_path: Path, folder: Path, capsys: Any) -> None:
    (tmp_path / "r.csv").write_text("a,b\n" + "".join(f"{i},{i * 2}\n" for i in range(50)) + "oops,3\n")
    out = call(capsys, "fit", tmp_path / "r.csv", "-o", tmp_path / "m.seam")
    assert out.code == 2
    assert "Column 'a' holds numbers, except for 1 of 51 cells, for example 'oops'" in out.err
    assert "--missing 'oops'" in out.err
    assert call(capsys, "fit", tmp_path / "r.csv", "-o", tmp_path / "m.seam", "--missing", "oops").code == 0


def test_explain_a_row_by_number_and_by_key(folder: Path, capsys: Any) -> None:
    row = int((damaged_table()["v"] == 99.5).arg_true()[5])
    for name in (("--row", str(row)), ("--key", "id", f"{row:06d}")):
        out = call(capsys, "explain", folder / "incoming.csv", "-m", folder / "model.seam", *name, "--json")
        assert out.json["row"] == row
        assert out.json["text"] == "suspect: v"
    out = call(capsys, "explain", folder / "incoming.csv", "-m", folder / "model.seam", "--row", "99999999")
    assert out.code == 2
    assert "The table has 30,000 rows, but no row 99999999" in out.err


def test_report_again(folder: Path, tmp_path: Path, capsys: Any) -> None:
    call(capsys, "restore", folder / "incoming.csv", "-m", folder / "model.seam", "-o", tmp_path / "out.csv")
    out = call(capsys, "report", tmp_path / "out.run", "-o", tmp_path / "r.html", "--title", "Line 4 & 5")
    assert out.code == 0, out.err
    assert "Line 4 &amp; 5" in (tmp_path / "r.html").read_text()
    out = call(capsys, "report", tmp_path)
    assert out.code == 2
    assert "holds no run.json" in out.err


def test_report_of_the_output_and_of_files(folder: Path, tmp_path: Path, capsys: Any) -> None:
    words = ("restore", folder / "incoming.csv", "-m", folder / "model.seam", "-o", tmp_path / "out.csv")
    assert call(capsys, *words, "--seam", tmp_path / "seam.csv").code == 0
    run = tmp_path / "out.run"
    pages = []
    for i, sources in enumerate(
        [
            (run,),
            (tmp_path / "out.csv",),
            (run / "summary.json", run / "seam.parquet"),
            (tmp_path / "seam.csv", run / "summary.json"),
        ]
    ):
        out = call(capsys, "report", *sources, "-o", tmp_path / f"{i}.html", "--title", "Same", "--json")
        assert out.code == 0, out.err
        assert out.json["report"] == str(tmp_path / f"{i}.html")
        pages.append((tmp_path / f"{i}.html").read_text())
    assert len(set(pages)) == 1
    assert call(capsys, "report", run / "summary.json", run / "seam.parquet").code == 0


@pytest.mark.parametrize(
    ("names", "part"),
    [
        (("absent.run",), "absent.run' does not exist"),
        (("alone.csv",), "no run directory"),
        (("a.json", "b.json"), "2 files, 2 of them .json"),
        (("a.json", "alone.csv"), "'a.json' is not a summary of version 1.0, but something else"),
        (("b.json", "alone.csv"), "'b.json' is not JSON"),
        (("a.json", "b.json", "alone.csv"), "3 files"),
    ],
)
def test_report_says_what_it_needs(tmp_path: Path, capsys: Any, names: tuple[str, ...], part: str) -> None:
    (tmp_path / "a.json").write_text("[1]")
    (tmp_path / "b.json").write_text("{")
    (tmp_path / "alone.csv").write_text("a\n1\n")
    out = call(capsys, "report", *(tmp_path / name for name in names))
    assert out.code == 2
    assert part in out.err
    assert len(out.err.splitlines()) == 2


def test_warnings_are_told_once_in_one_line(folder: Path, tmp_path: Path, capsys: Any) -> None:
    rows = "".join(f"{i % 7},{i % 5},{'ab'[i % 9 == 0]}\n" for i in range(60))
    (tmp_path / "train.csv").write_text("x,y,label\n" + rows)
    out = call(capsys, "train", tmp_path / "train.csv", "-t", "label", "-o", tmp_path / "m.seam", "--quiet")
    assert out.code == 0, out.err
    lines = out.err.splitlines()
    assert lines
    assert all(line.startswith("goldseam: warning: ") for line in lines)
    assert len(lines) == len(set(lines))


@pytest.mark.parametrize("kind", ["scatter", "intervals", "gaps", "noise", "categories", "swap", "units", "sensors"])
def test_corrupt_changes_what_it_says(folder: Path, tmp_path: Path, capsys: Any, kind: str) -> None:
    clean = clean_table(300)
    clean.write_csv(tmp_path / "in.csv")
    words = ("corrupt", tmp_path / "in.csv", "-o", tmp_path / "out.csv", "--kind", kind, "--truth", tmp_path / "t.csv")
    out = call(capsys, *words, "--json", "--seed", "3", "--rows", "0.2")
    assert out.code == 0, out.err
    before, after = ((tmp_path / name).read_text().splitlines() for name in ("in.csv", "out.csv"))
    truth = pl.read_csv(tmp_path / "t.csv", infer_schema=False)
    assert truth.height == out.json["cells_damaged"] > 0
    hit = {(int(row), name) for row, name in truth.select("row", "column").rows()}
    for row, (old, new) in enumerate(zip(before[1:], after[1:], strict=True)):
        for name, a, b in zip(clean.columns, old.split(","), new.split(","), strict=True):
            assert (a != b) == ((row, name) in hit)


def test_corrupt_says_what_it_cannot_do(tmp_path: Path, capsys: Any) -> None:
    clean_table(20).write_csv(tmp_path / "in.csv")
    words = ("corrupt", tmp_path / "in.csv", "-o", tmp_path / "out.csv")
    assert "--rate means nothing to --kind swap" in call(capsys, *words, "--kind", "swap", "--rate", "0.1").err
    assert "Column 'w' is not in the table" in call(capsys, *words, "--columns", "w").err
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.slow
def test_stdout_of_a_process_is_only_the_table(folder: Path, tmp_path: Path) -> None:
    out = run("corrupt", folder / "reference.csv", "-o", "-", "--kind", "gaps", "--json")
    assert out.out.startswith("id,v,k,c,flag\n")
    assert json.loads(out.err)["rows"] == 30_000


# ------------------------------------------------------------------------------------------------- progress


def test_plain_progress_lines_off_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    import goldseam.cli.progress as progress

    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    said: list[str] = []
    with progress.Progress("restored", say=said.append) as bar:
        bar.update(100, 0.5)
        bar.update(200, float("nan"))
    assert said[0].startswith("restored 100 rows (50 %), ")
    assert said[0].endswith(" left")
    assert said[1].startswith("restored 200 rows, ")
    with progress.Progress("restored", quiet=True, say=said.append) as bar:
        bar.update(100, 0.5)
    assert len(said) == 2


def on_a_terminal(*words: str | Path) -> bytes:
    """What a process shows on a terminal."""
    import pty

    leader, follower = pty.openpty()
    environment = {**ENVIRONMENT, "COLUMNS": "120", "TERM": "xterm"}
    process = subprocess.Popen(
        [*STAND_IN, *map(str, words)], stdout=subprocess.DEVNULL, stderr=follower, env=environment
    )
    shown = b""
    while process.poll() is None or select.select([leader], [], [], 0)[0]:
        if select.select([leader], [], [], 0.1)[0]:
            shown += os.read(leader, 4096)
    os.close(leader)
    os.close(follower)
    return shown


def test_a_bar_on_a_terminal(folder: Path, tmp_path: Path) -> None:
    shown = on_a_terminal("check", folder / "incoming.csv", "-m", folder / "slow.seam", "--memory", "480MB")
    assert b"rows/s" in shown
    assert "━".encode() in shown


def test_a_spinner_while_a_model_learns(folder: Path, tmp_path: Path, capsys: Any) -> None:
    shown = on_a_terminal("fit", folder / "reference.csv", "-o", tmp_path / "m.seam")
    assert b"learning from 30,000 rows and 5 columns" in shown
    assert b"0:00:0" in shown
    plain = call(capsys, "fit", folder / "reference.csv", "-o", tmp_path / "m.seam")
    assert plain.err == "learning from 30,000 rows and 5 columns ...\n"
    assert on_a_terminal("fit", folder / "reference.csv", "-o", tmp_path / "m.seam", "--quiet") == b""
