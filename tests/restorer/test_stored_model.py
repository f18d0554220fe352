"""A model file written by an earlier version still loads and decides the same: `python -m tests.restorer.test_stored_model`
writes it anew, which only a new format version may need."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd

import goldseam as gs

FILES = Path(__file__).parent / "data"
MODEL, ANSWERS = FILES / "model-0.1.seam", FILES / "model-0.1.json"


def table(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n)
    return pd.DataFrame(
        {
            "level": a + 0.1 * rng.normal(size=n),
            "flow": 10 * a + rng.normal(size=n),
            "count": np.rint(50 + 10 * a).astype(int),
            "state": np.where(a > 0, "open", "shut"),
        }
    )


def incoming() -> pd.DataFrame:
    out = table(40, 2)
    out.loc[3, "flow"] = 400.0
    out.loc[5, "level"] = np.nan
    out.loc[9, "state"] = "shut" if out.loc[9, "state"] == "open" else "open"
    return out


def test_a_model_written_earlier_decides_the_same() -> None:
    answers = json.loads(ANSWERS.read_text())
    model = gs.load(MODEL)
    result = model.restore(incoming())
    assert result.row_p_values.tolist() == answers["p_values"]
    assert result.table["state"].tolist() == answers["state"]
    np.testing.assert_allclose(result.table["flow"], answers["flow"], rtol=1e-9)
    np.testing.assert_allclose(result.table["level"], answers["level"], rtol=1e-9)
    assert result.seam.count_by_cause() == answers["causes"]


def test_intervals_of_a_model_written_earlier_are_built_as_it_says() -> None:
    """Its file does not say up to which score an observed value is held: that of a number moved by halves is."""
    model = gs.load(MODEL)
    repairer = model.mender_.evidence.repairer
    assert repairer.doubt.size == 0
    assert (repairer.stretch == 1.0).all()
    result = model.restore(incoming())
    lines = result.seam.to_polars()
    lines = lines.filter(lines["low"].is_not_null())
    assert lines.height > 0
    for row, column, low, high in lines.select("row", "column", "low", "high").iter_rows():
        assert low <= result.table[column][row] <= high


def _write() -> None:
    FILES.mkdir(exist_ok=True)
    model = gs.Restorer(method=["conditional", "tree"], audit=False, random_state=0).fit(table(150, 1))
    model.save(MODEL)
    result = model.restore(incoming())
    answers = {
        "p_values": result.row_p_values.tolist(),
        "causes": result.seam.count_by_cause(),
        **{name: result.table[name].tolist() for name in ("state", "flow", "level")},
    }
    ANSWERS.write_text(json.dumps(answers) + "\n")


if __name__ == "__main__":
    _write()
