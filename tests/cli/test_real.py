"""The commands with the real restorer and classifier, end to end."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.cli.helpers import PROGRAM, call, run
from tests.cli.test_restore import wait_for_batches

REAL = True  # not the stand-in


def correlated(n: int, seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(n, 2))
    mixing = np.array([[1.0, 0.5, -0.8, 0.2], [0.3, -1.0, 0.6, 0.9]])
    numbers = hidden @ mixing + 0.1 * rng.normal(size=(n, 4)) + 10
    site = np.array(["north", "south", "west"])[np.digitize(hidden[:, 0], [-0.5, 0.5])]
    columns = {f"x{j}": np.round(numbers[:, j], 3) for j in range(4)}
    return pl.DataFrame({"id": [f"{i:05d}" for i in range(n)], **columns, "site": site})


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("real")
    correlated(400, 7).write_csv(folder / "reference.csv")
    clean = correlated(2600, 8)
    clean.write_csv(folder / "clean.csv")
    hit = np.random.default_rng(1).random(clean.height) < 0.1
    clean.with_columns(x1=pl.when(pl.Series(hit)).then(77.0).otherwise("x1")).write_csv(folder / "damaged.csv")
    fit = ("fit", "reference.csv", "-o", "model.seam", "--key", "id", "--method", "conditional", "--no-audit")
    out = run(*fit, cwd=folder, program=PROGRAM)
    assert out.code == 0, out.err
    return folder


def test_damage_is_found_and_mended(work: Path, tmp_path: Path, capsys: Any) -> None:
    checked = call(capsys, "check", work / "damaged.csv", "-m", work / "model.seam", "--json")
    assert checked.code == 1, checked.err
    assert checked.json["by_column"]["x1"] > 200
    out = call(
        capsys, "restore", work / "damaged.csv", "-m", work / "model.seam", "-o", tmp_path / "out.csv", "--key", "id"
    )
    assert out.code == 0, out.err
    damaged, clean, restored = (
        pl.read_csv(path) for path in (work / "damaged.csv", work / "clean.csv", tmp_path / "out.csv")
    )
    hit = (damaged["x1"] == 77.0).to_numpy()
    error = np.abs(restored["x1"].to_numpy() - clean["x1"].to_numpy())[hit]
    assert np.median(error) < 0.3
    seam = pl.read_parquet(tmp_path / "out.run" / "seam.parquet")
    texts = [path.read_text().splitlines()[1:] for path in (work / "damaged.csv", tmp_path / "out.csv")]
    for row, (before, after) in enumerate(zip(*texts, strict=True)):
        if before != after:
            touched = seam.filter(pl.col("row") == row)["column"].to_list()
            for name, a, b in zip(damaged.columns, before.split(","), after.split(","), strict=True):
                assert a == b or name in touched


@pytest.mark.slow
def test_kill_9_and_resume_with_the_real_model(work: Path, tmp_path: Path) -> None:
    from tests.cli.helpers import start

    big = tmp_path / "big.csv"
    header, *lines = (work / "damaged.csv").read_text().splitlines()
    big.write_text("\n".join([header, *(lines * 10)]) + "\n")
    words = ("restore", big, "-m", work / "model.seam", "--memory", "480MB", "--quiet")
    process = start(*words, "-o", tmp_path / "cut.csv", program=PROGRAM)
    wait_for_batches(process, tmp_path / "cut.run" / "work", 1)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not (tmp_path / "cut.csv").exists()
    assert run(*words, "-o", tmp_path / "cut.csv", "--resume", program=PROGRAM).code == 0
    assert run(*words, "-o", tmp_path / "whole.csv", program=PROGRAM).code == 0
    assert (tmp_path / "cut.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert (tmp_path / "cut.run" / "seam.parquet").read_bytes() == (
        tmp_path / "whole.run" / "seam.parquet"
    ).read_bytes()


def test_other_commands_on_the_real_model(work: Path, capsys: Any) -> None:
    info = call(capsys, "info", work / "model.seam", "--json").json
    assert info["model"] == "Restorer"
    assert info["settings"]["alarm_rate"] == 0.05
    bench = call(capsys, "bench", work / "clean.csv", "-m", work / "model.seam", "--most", "300", "--json").json
    assert {row["kind"] for row in bench["damage"]} == {"scatter", "intervals", "units", "categories", "gaps"}
    assert next(row for row in bench["damage"] if row["kind"] == "scatter")["restored"] > 0.8
    out = call(capsys, "predict", work / "clean.csv", "-m", work / "model.seam")
    assert out.code == 2
    assert "holds a restorer, but this command needs a classifier" in out.err


def test_train_and_predict(work: Path, tmp_path: Path, capsys: Any) -> None:
    model = tmp_path / "clf.seam"
    out = call(
        capsys,
        "train",
        work / "reference.csv",
        "-t",
        "site",
        "-o",
        model,
        "--key",
        "id",
        "--trust",
        tmp_path / "t.csv",
        "--json",
    )
    assert out.code == 0, out.err
    assert out.json["classes"] == ["north", "south", "west"]
    assert pl.read_csv(tmp_path / "t.csv").columns == ["row", "id", "trust"]
    out = call(
        capsys,
        "predict",
        work / "clean.csv",
        "-m",
        model,
        "-o",
        tmp_path / "p.csv",
        "--probabilities",
        "--memory",
        "480MB",
    )
    assert out.code == 0, out.err
    table = pl.read_csv(tmp_path / "p.csv")
    assert float((table["prediction"] == table["site"]).mean()) > 0.8  # type: ignore[arg-type]
    assert table.columns[-5:] == [
        "prediction",
        "probability",
        "probability of north",
        "probability of south",
        "probability of west",
    ]
    assert (
        (tmp_path / "p.csv")
        .read_text()
        .splitlines()[1]
        .startswith((work / "clean.csv").read_text().splitlines()[1] + ",")
    )
    taken = call(capsys, "predict", tmp_path / "p.csv", "-m", model)
    assert "already has a column 'prediction'" in taken.err


@pytest.mark.slow
def test_demo_tells_the_whole_story(tmp_path: Path) -> None:
    out = run("demo", "-o", tmp_path / "demo", program=PROGRAM)
    assert out.code == 0, out.err
    steps = [f"$ goldseam {name}" for name in ("corrupt", "fit", "check", "restore")]
    for part in (*steps, "Audit on", "restored to", "Next, with your own table"):
        assert part in out.out
    assert (tmp_path / "demo" / "report.html").stat().st_size > 10_000
    assert json.loads((tmp_path / "demo" / "restored.run" / "run.json").read_text())["counts"]["rows"] == 169


def test_a_row_is_explained_as_it_is_restored(work: Path, tmp_path: Path, capsys: Any) -> None:
    row = int((pl.read_csv(work / "damaged.csv")["x1"] == 77.0).arg_true()[0])
    fit = (
        "fit",
        work / "reference.csv",
        "-o",
        tmp_path / "fdr.seam",
        "--key",
        "id",
        "--method",
        "conditional",
        "--no-audit",
    )
    assert call(capsys, *fit, "--error-control", "fdr", "--alarm-rate", "0.2").code == 0
    out = call(capsys, "explain", work / "damaged.csv", "-m", tmp_path / "fdr.seam", "--row", str(row), "--json")
    assert out.code == 0, out.err
    assert out.json["row"] == row
    assert out.json["flagged"]
    assert out.json["cell_limit"] > 0
    assert next(cell for cell in out.json["cells"] if cell["column"] == "x1")["cause"] == "corrupt"
