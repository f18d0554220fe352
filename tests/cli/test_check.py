"""`check` as shells see it: exit codes, JSON on stdout, notes on stderr."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import polars as pl
import pytest

from goldseam.cli.checking import allowed_rows, result_schema
from tests.cli.conftest import clean_table, damaged_table
from tests.cli.helpers import ENVIRONMENT, STAND_IN, call
from tests.cli.stand_in import StandIn


def test_a_clean_table_is_0_and_a_damaged_one_1(folder: Path, tmp_path: Path, capsys: Any) -> None:
    clean = call(capsys, "check", folder / "reference.csv", "-m", folder / "model.seam", "--fail-over", "0")
    assert (clean.code, clean.out.split(":")[0]) == (0, "clean")
    n_bad = int((damaged_table()["v"] == 99.5).sum())
    damaged = call(capsys, "check", folder / "incoming.csv", "-m", folder / "model.seam", "--fail-over", "0.02")
    assert damaged.code == 1
    assert damaged.out.startswith(f"damaged: {n_bad} of 30,000 rows suspect")
    assert call(capsys, "check", folder / "incoming.csv", "-m", folder / "model.seam", "--fail-over", "0.5").code == 0


def test_without_a_limit_the_alarm_rate_decides(folder: Path, tmp_path: Path, capsys: Any) -> None:
    assert allowed_rows(100, 0.05, None) == 13  # P(Binomial(100, .05) > 13) < .001
    assert allowed_rows(0, 0.05, None) == 0
    for share, code in ((0.05, 0), (0.2, 1)):
        table = (
            clean_table(1000)
            .with_row_index()
            .with_columns(v=pl.when(pl.col("index") < 1000 * share).then(99.0).otherwise("v"))
        )
        table.drop("index").write_csv(tmp_path / "in.csv")
        assert call(capsys, "check", tmp_path / "in.csv", "-m", folder / "model.seam").code == code


def test_a_model_that_controls_false_discoveries_allows_none(folder: Path, tmp_path: Path, capsys: Any) -> None:
    StandIn(kinds={"id": "passthrough"}, error_control="fdr").fit(clean_table()).save(str(tmp_path / "m.seam"))
    one = clean_table(100).with_row_index().with_columns(v=pl.when(pl.col("index") == 7).then(99.0).otherwise("v"))
    one.drop("index").write_csv(tmp_path / "in.csv")
    out = call(capsys, "check", tmp_path / "in.csv", "-m", tmp_path / "m.seam")
    assert out.code == 1
    assert out.out.startswith("damaged: 1 of 100 rows suspect (1.0%); up to 0 are allowed (without --fail-over)")


def test_json_is_pinned_by_a_schema(folder: Path, capsys: Any) -> None:
    out = call(
        capsys,
        "check",
        folder / "incoming.parquet",
        "-m",
        folder / "model.seam",
        "--json",
        "--key",
        "id",
        "--rows",
        "3",
    )
    jsonschema.validate(out.json, result_schema())
    assert out.err == ""
    assert out.json["exit_code"] == out.code == 0
    assert out.json["by_column"] == {"v": out.json["suspect_cells"]}
    assert len(out.json["listed_rows"]) == 3
    first = out.json["listed_rows"][0]
    assert damaged_table()["id"][first["row"]] == first["key"]
    jsonschema.Draft202012Validator.check_schema(result_schema())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**out.json, "more": 1}, result_schema())


def test_the_seam_of_a_check(folder: Path, tmp_path: Path, capsys: Any) -> None:
    call(capsys, "check", folder / "incoming.csv", "-m", folder / "model.seam", "--seam", tmp_path / "s.parquet")
    assert pl.read_parquet(tmp_path / "s.parquet")["cause"].value_counts().height == 2


@pytest.mark.parametrize(("limit", "code"), [("0", 1), ("1", 0)])
def test_in_a_shell_pipeline(folder: Path, tmp_path: Path, limit: str, code: int) -> None:
    program = " ".join(STAND_IN)
    check = f"{program} check - -m model.seam --json --fail-over {limit}"
    script = f"cat incoming.csv | {check} > {tmp_path}/result.json && echo passed"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", script], cwd=folder, env=ENVIRONMENT, capture_output=True, check=False
    )
    assert done.returncode == code, done.stderr
    assert done.stdout == (b"" if code else b"passed\n")
    jsonschema.validate(json.loads((tmp_path / "result.json").read_text()), result_schema())


def test_an_error_in_json_mode_is_json_too(folder: Path, capsys: Any) -> None:
    out = call(capsys, "check", "absent.csv", "-m", folder / "model.seam", "--json")
    assert out.code == 2
    assert out.json == {
        "error": {
            "type": "InputError",
            "message": "File 'absent.csv' does not exist.",
            "hint": "check the spelling and the folder.",
        }
    }
    assert out.err == "goldseam: error: File 'absent.csv' does not exist.\nHint: check the spelling and the folder.\n"
