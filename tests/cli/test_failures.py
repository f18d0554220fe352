"""What goes wrong: one sentence with a hint, exit code 2, the input untouched, no output under its name."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.cli.helpers import ENVIRONMENT, STAND_IN, call, run

IS_ROOT = os.geteuid() == 0


@pytest.fixture
def source(folder: Path, tmp_path: Path) -> Iterator[Path]:
    """A copy of the damaged table that must stay as it is."""
    path = tmp_path / "in.csv"
    shutil.copy(folder / "incoming.csv", path)
    before = path.read_bytes(), path.stat().st_mtime_ns
    yield path
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before


def fails(out: Any, *parts: str) -> None:
    assert out.code == 2, (out.out, out.err)
    lines = out.err.strip().splitlines()
    assert len(lines) == 2, out.err
    assert lines[0].startswith("goldseam: error: ")
    assert lines[1].startswith("Hint: ")
    for part in parts:
        assert part in out.err


def test_output_is_the_input(folder: Path, source: Path, tmp_path: Path, capsys: Any) -> None:
    fails(call(capsys, "restore", source, "-m", folder / "model.seam", "-o", source), "is the input itself")
    link = tmp_path / "link.csv"
    link.symlink_to(source)
    fails(call(capsys, "restore", source, "-m", folder / "model.seam", "-o", link), "link.csv", "is the input itself")


def test_disk_full(folder: Path, source: Path, tmp_path: Path) -> None:
    if not IS_ROOT:
        pytest.skip("mounting a small disk needs root")
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", disk], check=False).returncode:
        pytest.skip("this machine does not let tests mount a tmpfs")
    try:
        for name in ("out.csv", "out.parquet"):
            out = run("restore", source, "-m", folder / "model.seam", "-o", disk / name, "--quiet", "--memory", "480MB")
            fails(out, "No space left on device", "free some space")
            assert not (disk / name).exists()
            shutil.rmtree(disk / "out.run")
            (disk / f".{name}.partial").unlink(missing_ok=True)
    finally:
        subprocess.run(["umount", disk], check=True)


def test_file_size_limit(folder: Path, source: Path, tmp_path: Path) -> None:
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))  # noqa: E731
    out = run("restore", source, "-m", folder / "model.seam", "-o", tmp_path / "out.csv", "--quiet", preexec_fn=limit)
    fails(out, "File too large", "ulimit -f")
    assert not (tmp_path / "out.csv").exists()


def as_nobody(*words: str | Path) -> Any:
    """Run without root's rights; needs root, or is what the tests run as anyway."""
    drop = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if IS_ROOT else []
    done = subprocess.run([*drop, *STAND_IN, *map(str, words)], capture_output=True, env=ENVIRONMENT, check=False)
    if IS_ROOT and b"setpriv" in done.stderr:
        pytest.skip("setpriv cannot drop root's rights here")
    from tests.cli.helpers import Outcome

    return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.fixture
def public(folder: Path) -> Iterator[Path]:
    """A folder that everybody may enter, with the model and the table in it."""
    import tempfile

    path = Path(tempfile.mkdtemp(dir="/tmp"))
    path.chmod(0o755)
    for name in ("incoming.csv", "model.seam"):
        shutil.copy(folder / name, path)
        (path / name).chmod(0o644)
    yield path
    shutil.rmtree(path)


def test_unreadable_file_and_folder_without_permission(public: Path) -> None:
    if IS_ROOT and not shutil.which("setpriv"):
        pytest.skip("needs setpriv to drop root's rights")
    probe = as_nobody("--version")
    if probe.code != 0:
        pytest.skip("without root's rights this installation cannot be read")
    fails(
        as_nobody("restore", public / "incoming.csv", "-m", public / "model.seam", "-o", public / "out.csv"),
        "Permission denied",
    )
    (public / "incoming.csv").chmod(0o000)
    fails(
        as_nobody("check", public / "incoming.csv", "-m", public / "model.seam"),
        "incoming.csv': Permission denied",
        "ls -l",
    )


def test_read_only_disk(folder: Path, source: Path, tmp_path: Path) -> None:
    if not IS_ROOT:
        pytest.skip("mounting needs root")
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,ro", "tmpfs", disk], check=False).returncode:
        pytest.skip("this machine does not let tests mount a tmpfs")
    try:
        fails(run("restore", source, "-m", folder / "model.seam", "-o", disk / "out.csv"), "Read-only file system")
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_path_through_a_file(folder: Path, source: Path, tmp_path: Path, capsys: Any) -> None:
    fails(call(capsys, "restore", source, "-m", folder / "model.seam", "-o", source / "out.csv"), "does not exist")
    fails(call(capsys, "restore", source, "-m", folder / "model.seam", "-o", tmp_path / "no" / "out.csv"), "mkdir -p")
    fails(call(capsys, "restore", source, "-m", folder / "model.seam", "-o", tmp_path), "is a folder")


def test_models_that_do_not_fit(folder: Path, source: Path, tmp_path: Path, capsys: Any) -> None:
    other = tmp_path / "other.csv"
    other.write_text("a,b\n1,2\n")
    fails(
        call(capsys, "restore", other, "-m", folder / "model.seam", "-o", tmp_path / "out.csv"),
        "lacks the column 'id' (and 4 more) of the 5 columns the model learnt; it has 2: 'a', 'b'",
        "goldseam info",
    )
    assert other.read_text() == "a,b\n1,2\n"
    fails(call(capsys, "check", source, "-m", source), "'in.csv' is truncated or not a .seam file")
    broken = tmp_path / "broken.seam"
    data = bytearray((folder / "model.seam").read_bytes())
    data[-1] ^= 1
    broken.write_bytes(data)
    fails(call(capsys, "check", source, "-m", broken), "'broken.seam' does not match its checksum")
    fails(call(capsys, "check", source, "-m", tmp_path / "no.seam"), "no.seam' does not exist")
    fails(call(capsys, "check", source, "-m", tmp_path), "is a folder")


def test_empty_ragged_and_foreign_files(folder: Path, tmp_path: Path, capsys: Any) -> None:
    for content, part in (
        (b"", "'bad.csv' is empty"),
        (b"id,v,k,c,flag\n1,2\n", "Line 2 of 'bad.csv' does not fit: 2 fields where the header has 5"),
        (b"id,v,k,c,flag\n1,2,3,caf\xe9,true\n", "'bad.csv' is not utf-8 text: line 2 holds the byte 0xE9"),
        (b"id,v,k,c,flag,v\n", "column name 'v' 2 times"),
    ):
        (tmp_path / "bad.csv").write_bytes(content)
        fails(
            call(capsys, "restore", tmp_path / "bad.csv", "-m", folder / "model.seam", "-o", tmp_path / "out.csv"), part
        )
        assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.csv"]
        assert (tmp_path / "bad.csv").read_bytes() == content
    for command in ("fit", "train"):
        (tmp_path / "bad.csv").write_text("a,b\n")
        more = ("--target", "b") if command == "train" else ()
        fails(
            call(capsys, command, tmp_path / "bad.csv", "-o", tmp_path / "m.seam", *more), "has a header, but no rows"
        )


HEADER = "id,v,k,c,flag\n"


@pytest.mark.parametrize(
    ("name", "content", "more", "part"),
    [
        ("none.csv", HEADER, (), "File 'none.csv' has a header, but no rows"),
        ("none.csv", HEADER.strip(), (), "File 'none.csv' has a header, but no rows"),
        ("none.csv", HEADER + "\n\n", (), "File 'none.csv' has a header, but no rows"),
        ("none.csv", HEADER + "1,2\n", ("--on-bad-line", "skip"), "File 'none.csv' has a header, but no rows that fit"),
        ("none.csv", HEADER + "1,2\n", (), "Line 2 of 'none.csv' does not fit"),
        ("none.parquet", None, (), "File 'none.parquet' has columns, but no rows"),
        ("none.arrow", None, (), "File 'none.arrow' has columns, but no rows"),
        ("none.jsonl", "", (), "File 'none.jsonl' holds no JSON object"),
    ],
)
def test_header_only(
    folder: Path, tmp_path: Path, capsys: Any, name: str, content: str | None, more: tuple[str, ...], part: str
) -> None:
    path = tmp_path / name
    if content is None:
        empty = pl.DataFrame(schema=dict.fromkeys(HEADER.strip().split(","), pl.Float64))
        _ = empty.write_parquet(path) if path.suffix == ".parquet" else empty.write_ipc(path)
    else:
        path.write_text(content)
    model = tmp_path / "clf.seam"
    few = tmp_path / "few.csv"
    few.write_text(HEADER + "".join(f"{i},{i * 7 % 5},{i % 3},{'red' if i % 3 else 'blue'},true\n" for i in range(30)))
    assert call(capsys, "train", few, "-t", "c", "-o", model, "--columns", "v,k").code == 0
    few.unlink()
    before = path.read_bytes(), path.stat().st_mtime_ns
    for out in (tmp_path / "out.csv", tmp_path / "out.parquet"):
        fails(call(capsys, "restore", path, "-m", folder / "model.seam", "-o", out, *more), part)
        fails(call(capsys, "predict", path, "-m", model, "-o", out, *more), part)
    fails(call(capsys, "check", path, "-m", folder / "model.seam", "--seam", tmp_path / "seam.csv", *more), part)
    answer = call(capsys, "restore", path, "-m", folder / "model.seam", "-o", "-", *more)
    fails(answer, part)
    assert answer.out == ""
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(["clf.seam", name])


def test_a_file_without_rows_among_others_is_fine(folder: Path, tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "1.csv").write_text(HEADER)
    (tmp_path / "2.csv").write_text(HEADER + "1,10,4,red,true\n")
    words = ("restore", tmp_path / "1.csv", tmp_path / "2.csv", "-m", folder / "model.seam", "-o", tmp_path / "out.csv")
    assert call(capsys, *words).code == 0
    assert (tmp_path / "out.csv").read_text() == HEADER + "1,10,4,red,true\n"


def test_ten_thousand_columns_of_another_table(folder: Path, tmp_path: Path, capsys: Any) -> None:
    wide = tmp_path / "wide.csv"
    wide.write_text(",".join(f"column {i}" for i in range(10_000)) + "\n" + ",".join(["1"] * 10_000) + "\n")
    before = wide.read_bytes()
    out = call(capsys, "check", wide, "-m", folder / "model.seam")
    fails(out, "lacks the column 'id'", "it has 10000: 'column 0'")
    assert wide.read_bytes() == before
    assert len(out.err) < 500


def test_ten_thousand_more_columns_pass_through(folder: Path, tmp_path: Path, capsys: Any) -> None:
    names, cells = ",".join(f"x{i}" for i in range(10_000)), ",".join(["007"] * 10_000)
    (tmp_path / "wide.csv").write_text(f"id,v,k,c,flag,{names}\n1,99,4,red,true,{cells}\n")
    out = call(capsys, "restore", tmp_path / "wide.csv", "-m", folder / "model.seam", "-o", tmp_path / "out.csv")
    assert out.code == 0, out.err
    assert (tmp_path / "out.csv").read_text().endswith(f",4,red,true,{cells}\n")


def ten_thousand_columns(path: Path) -> None:
    values = np.random.default_rng(42).normal(size=(20, 10_000)).round(2)
    wide = pl.DataFrame(values, schema=[f"x{i}" for i in range(10_000)])
    wide.with_columns(pl.lit("1").alias("x1")).write_csv(path)  # constant: not to be learnt


def test_ten_thousand_columns_to_learn(tmp_path: Path, capsys: Any) -> None:
    ten_thousand_columns(tmp_path / "wide.csv")
    before = (tmp_path / "wide.csv").read_bytes()
    out = call(capsys, "fit", tmp_path / "wide.csv", "-o", tmp_path / "m.seam", "--quiet")
    fails(out, "has 9,999 columns to learn, but at most 2,000", "--columns a,b,c")
    assert not (tmp_path / "m.seam").exists()
    assert (tmp_path / "wide.csv").read_bytes() == before


@pytest.mark.slow
def test_some_of_ten_thousand_columns(tmp_path: Path, capsys: Any) -> None:
    ten_thousand_columns(tmp_path / "wide.csv")
    words = ("fit", tmp_path / "wide.csv", "-o", tmp_path / "m.seam", "--columns", "x0,x5000,x9999", "--json")
    out = call(capsys, *words)
    assert out.code == 0, out.err
    kinds = {column["name"]: column["kind"] for column in out.json["columns"]}
    assert [name for name, kind in kinds.items() if kind != "passthrough"] == ["x0", "x5000", "x9999"]
    out = call(capsys, "restore", tmp_path / "wide.csv", "-m", tmp_path / "m.seam", "-o", tmp_path / "out.csv")
    assert out.code == 0, out.err
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "wide.csv").read_bytes()


def test_options_that_name_nothing(folder: Path, source: Path, tmp_path: Path, capsys: Any) -> None:
    words = ("restore", source, "-m", folder / "model.seam", "-o", tmp_path / "out.csv")
    fails(call(capsys, *words, "--key", "nokey"), "--key names the column 'nokey'")
    fails(call(capsys, *words, "--columns", "v,w"), "--columns names the column 'w'")
    fails(call(capsys, *words, "--memory", "lots"), "--memory must be a size such as 500MB or 2GB, but got 'lots'")
    fails(call(capsys, *words, "--memory", "1MB"), "at least 480MB")
    fails(call(capsys, *words, "--report", "report.pdf"), ".html, .md or .json, but got 'report.pdf'")
    fails(call(capsys, *words, "--seam", "seam.xyz"), "'seam.xyz' has a suffix")
    fails(call(capsys, *words[:-1], "-", "--seam", "s.csv"), "--seam with the table on stdout needs a run directory")
    fails(call(capsys, "restore", "-", *words[2:], "--resume"), "--resume cannot read stdin again")
    (tmp_path / "out.run").mkdir()
    (tmp_path / "out.run" / "thesis.doc").touch()
    fails(call(capsys, *words), "is not empty and not a run")


def test_debug_shows_the_traceback(folder: Path, capsys: Any) -> None:
    out = call(capsys, "check", "absent.csv", "-m", folder / "model.seam", "--debug")
    assert out.code == 2
    assert "Traceback (most recent call last)" in out.err
    assert out.err.rstrip().endswith("Hint: check the spelling and the folder.")


def test_a_reader_that_leaves_early_is_no_error(folder: Path) -> None:
    script = f"{' '.join(STAND_IN)} restore incoming.csv -m model.seam -o - --quiet | head -n 2"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", script], cwd=folder, env=ENVIRONMENT, capture_output=True, check=False
    )
    assert done.stdout.count(b"\n") == 2
    assert done.stderr == b""


def test_a_signal_while_stdin_is_read(folder: Path, tmp_path: Path) -> None:
    environment = {**ENVIRONMENT, "TMPDIR": str(tmp_path)}
    words = [*STAND_IN, "check", "-", "-m", str(folder / "model.seam")]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
    assert process.stdin is not None
    process.stdin.write(b"id,v,k,c,flag\n" * 100_000)  # more than a pipe holds: it has begun to read
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 3
    assert err.decode() == "goldseam: interrupted: Stopped by SIGTERM.\n"
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("goldseam")] == []
