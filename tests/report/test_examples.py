"""The examples run, mend more than they break, and leave a report."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from goldseam.seam import Restoration
from goldseam.summary import json_schema
from goldseam.tables import Table
from tests.report.inert import executable
from tests.report.test_html import SCRIPT

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name: str, folder: Path, **settings: Any) -> tuple[Restoration, Any]:
    return runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"](folder, **settings)


def errors(result: Restoration, truth: Any) -> tuple[float, float]:
    """Mean error of the numbers before and after, in the columns' spreads; an empty cell counts as one spread."""
    schema = result.schema
    right = Table.read(truth).encode(schema).numbers
    spread = np.array([column.scale for column in schema.numbers])
    tables = (result.incoming.native, result.table)
    gaps = [
        np.nan_to_num(np.abs(Table.read(table).encode(schema).numbers - right) / spread, nan=1.0) for table in tables
    ]
    return float(gaps[0].mean()), float(gaps[1].mean())


@pytest.mark.parametrize(
    ("name", "page", "shown", "left"),
    [
        ("mixed_table", "mixed", "map", 0.5),
        pytest.param("sensors", "sensors", "time", 0.5, marks=pytest.mark.slow),
        pytest.param("images", "images", "images", 0.8, marks=pytest.mark.slow),
    ],
)
def test_examples(
    name: str,
    page: str,
    shown: str,
    left: float,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    result, truth = run(name, tmp_path)
    before, after = errors(result, truth)
    assert after < left * before
    jsonschema.validate(result.summary(), json_schema())
    html = (tmp_path / f"{page}.html").read_text()
    assert f'id="{shown}"' in html
    assert executable(html, SCRIPT) == []
    assert len(html.encode()) < 2_000_000
    assert "cells changed" in capsys.readouterr().out
    assert (tmp_path / "seam.parquet").exists()
