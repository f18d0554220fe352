"""The summary: counts that can be checked by hand, a published schema, and batches that add up."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import jsonschema
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goldseam.errors import InputError
from goldseam.schema import Blocks
from goldseam.seam import CAUSES, Restoration, Seam
from goldseam.summary import CAUSES as SUMMARY_CAUSES
from goldseam.summary import _binned, _picture, combine, json_schema, plain, summarise
from goldseam.tables import Table, learn_schema
from tests.report import samples

VALIDATOR = jsonschema.Draft202012Validator(json_schema())


def unchanged(restoration: Restoration) -> Restoration:
    nothing = np.zeros_like(restoration.changed)
    return dataclasses.replace(restoration, changed=nothing)


def empty() -> Restoration:
    clean, _ = samples.mixed_tables(30)
    return samples.restored(clean, clean, {})


REAL: dict[str, Callable[[], Restoration]] = {
    "mixed": samples.mixed,
    "images": samples.images,
    "series": samples.series,
    "clean": empty,
    "no facts": lambda: samples.mixed(facts={}),
    "check": lambda: unchanged(samples.mixed()),
}


@pytest.mark.parametrize("name", REAL)
def test_real_summaries_follow_the_published_schema(name: str) -> None:
    summary = REAL[name]().summary()
    VALIDATOR.validate(summary)
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary


def test_the_schema_itself_is_valid_and_refuses_a_wrong_summary() -> None:
    jsonschema.Draft202012Validator.check_schema(json_schema())
    wrong = samples.mixed().summary() | {"version": "0.1"}
    with pytest.raises(jsonschema.ValidationError, match=r"'1\.0' was expected"):
        VALIDATOR.validate(wrong)
    wrong = samples.mixed().summary()
    wrong["columns"][0]["by_cause"].pop("noise")
    with pytest.raises(jsonschema.ValidationError, match="'noise' is a required property"):
        VALIDATOR.validate(wrong)


def test_causes_are_those_of_the_seam() -> None:
    assert SUMMARY_CAUSES == CAUSES


def test_figures_by_hand() -> None:
    clean = pl.DataFrame({"x": [float(i) for i in range(25)], "c": ["a", "b", "b", "a", "b"] * 5})
    damaged = clean.with_columns(
        pl.Series("x", [99.0, None, *map(float, range(2, 25))]), pl.Series("c", ["z", "b", "b", None, *clean["c"][4:]])
    )
    summary = samples.restored(clean, damaged, {}).summary()
    assert summary["table"] == {"rows": 25, "columns": 2, "first_row": 0}
    assert summary["seam"]["by_cause"] == {"missing": 2, "corrupt": 1, "noise": 0, "unseen": 1, "refused": 0}
    assert (summary["seam"]["cells_changed"], summary["seam"]["rows_changed"], summary["seam"]["lines"]) == (4, 3, 4)
    x, c = summary["columns"]
    assert (x["edges"][0], x["edges"][-1], len(x["edges"])) == (0.0, 24.0, 25)
    assert x["before"]["counts"] == [0, 0, *[1] * 21, 2]
    assert (x["before"]["above"], x["before"]["below"], x["before"]["missing"], x["before"]["largest"]) == (
        1,
        0,
        1,
        99.0,
    )
    assert (x["after"]["above"], x["after"]["missing"], x["after"]["largest"]) == (0, 0, 24.0)
    assert dict(zip(c["levels"], c["before"]["counts"], strict=True)) == {"a": 8, "b": 15}
    assert (c["before"]["unseen"], c["before"]["missing"], c["after"]["unseen"]) == (1, 1, 0)
    assert summary["mode"] == "restore"


@given(low=st.floats(-1e6, 1e6), width=st.floats(1e-3, 1e6), seed=st.integers(0, 1000))
def test_bins_of_one_width_are_counted_as_any_others(low: float, width: float, seed: int) -> None:
    edges = np.linspace(low, low + width, 25)
    inside = np.random.default_rng(seed).uniform(low - width / 5, low + 1.2 * width, 500)
    values = np.concatenate([inside, edges, np.nextafter(edges, -np.inf), np.nextafter(edges, np.inf)])
    expected = [int(((a <= values) & (values < b)).sum()) for a, b in pairwise(edges)]
    expected[-1] += int((values == edges[-1]).sum())
    assert _binned(values, edges).tolist() == expected == np.histogram(values, bins=edges)[0].tolist()


def test_a_check_changes_nothing_and_says_so() -> None:
    summary = unchanged(samples.mixed()).summary()
    assert summary["mode"] == "check"
    assert summary["seam"]["cells_changed"] == 0 < summary["seam"]["lines"]
    assert all(column["before"] == column["after"] for column in summary["columns"])


def test_the_reference_stands_on_its_own_bins() -> None:
    facts = {
        "reference": {
            "rows": 3,
            "columns": {"age": {"edges": [0, 50, 100], "counts": [2, 1]}, "city": {"levels": ["Nara"], "counts": [7]}},
        }
    }
    columns = {column["name"]: column for column in samples.mixed(facts=facts).summary()["columns"]}
    assert columns["age"]["edges"] == [0.0, 50.0, 100.0]
    assert columns["age"]["reference"] == [2, 1]
    assert len(columns["age"]["after"]["counts"]) == 2
    assert dict(zip(columns["city"]["levels"], columns["city"]["reference"], strict=True))["Nara"] == 7
    assert columns["income"]["reference"] is None


def test_examples_are_the_rows_with_most_damage() -> None:
    examples = samples.images().summary()["examples"]
    assert [example["damage"] for example in examples] == sorted((e["damage"] for e in examples), reverse=True)
    first = examples[0]
    assert first["row"] % 5 == 0
    assert np.sum(first["touched"]) == first["damage"] == 64
    difference = np.array(first["before"]) != np.array(first["after"])
    assert (difference == (np.array(first["touched"]) > 0)).all()


def test_large_pictures_are_shrunk_to_means() -> None:
    image = np.arange(130.0 * 64).reshape(130, 64)
    image[0, 0] = np.nan
    shrunk = _picture(image.ravel(), (130, 64))
    assert np.shape(shrunk) == (44, 64)
    assert shrunk[0][0] is None
    assert shrunk[1][5] == pytest.approx(image[3:6, 5].mean(), rel=1e-4)


def test_timelines_keep_the_extremes_of_long_tables() -> None:
    restoration = samples.series(5000)
    times = restoration.summary()["timelines"]
    assert times["rows_per_bin"] == 16
    assert len(times["bins"]) == 313
    pressure = times["columns"][0]
    values = Table.read(restoration.incoming.native).encode(restoration.schema).numbers[:, 0]
    assert pressure["before"]["high"][2] == np.nanmax(values[32:48])
    assert sum(pressure["changed"]) == restoration.changed[:, 0].sum()


# ------------------------------------------------------------------------------------------------- batches


def batch(restoration: Restoration, start: int, stop: int) -> Restoration:
    rows = slice(start, stop)
    native = restoration.incoming.native[rows]
    lines = restoration.seam.frame.filter(pl.col("row").is_between(start, stop - 1))
    return Restoration(
        Table.read(native), restoration.schema, Blocks(restoration.blocks.numbers[rows], restoration.blocks.codes[rows]),
        restoration.changed[rows], restoration.suspect[rows], Seam(lines), restoration.row_p_values[rows],
        {**restoration.facts, "first_row": start},
    )  # fmt: skip


@pytest.fixture(scope="module")
def wholes() -> dict[str, Restoration]:
    return {"mixed": samples.mixed(120), "series": samples.series(1500), "images": samples.images(30, 8)}


@pytest.mark.parametrize("name", ["mixed", "series", "images"])
@settings(max_examples=20)
@given(cuts=st.lists(st.integers(1, 119), max_size=4, unique=True))
def test_any_partition_adds_up_to_the_whole(wholes: dict[str, Restoration], name: str, cuts: list[int]) -> None:
    whole = wholes[name]
    n = len(whole.changed)
    edges = [0, *sorted({max(1, cut * n // 120) for cut in cuts}), n]
    parts = [batch(whole, a, b).summary() for a, b in pairwise(edges)]
    assert combine(parts) == whole.summary()


def test_summaries_of_different_tables_do_not_add_up() -> None:
    with pytest.raises(InputError, match="2 sets of columns"):
        combine([samples.mixed().summary(), samples.series().summary()])
    with pytest.raises(InputError, match="no summary"):
        combine([])


def test_plain_keeps_figures_and_turns_the_rest_into_text() -> None:
    class Odd:
        def __str__(self) -> str:
            return "odd"

    assert plain({1: np.int32(3), "x": [Odd(), float("inf"), np.bool_(True), None]}) == {
        "1": 3,
        "x": ["odd", None, True, None],
    }


def test_a_table_without_rows(tmp_path: Any) -> None:
    clean, _ = samples.mixed_tables(30)
    schema = learn_schema(Table.read(clean))
    incoming = Table.read(clean.head(0))
    nothing = np.zeros((0, 4), dtype=bool)
    restoration = Restoration(
        incoming, schema, incoming.encode(schema), nothing, nothing, Seam.of(row=[]), np.zeros(0), {"ordered": True}
    )
    summary = summarise(restoration)
    VALIDATOR.validate(summary)
    from goldseam.report import write_report

    write_report(restoration, tmp_path / "report.html")
    assert "Nothing to mend in 0 rows" in (tmp_path / "report.html").read_text()


def test_pictures_show_flat_and_small_integer_pixels_too() -> None:
    """Pixels that never change pass through, and pixels with few values are categories; both belong to the picture."""
    rng = np.random.default_rng(42)
    clean = np.column_stack([np.zeros(40), rng.integers(0, 3, 40), rng.normal(size=40), rng.normal(size=40)])
    damaged = clean.copy()
    damaged[3] = [0.0, 9.0, 50.0, clean[3, 3]]
    restoration = samples.restored(clean, damaged, {"grid_shape": [2, 2]})
    assert len(restoration.schema.number_positions) == 2
    (example,) = restoration.summary()["examples"]
    assert example["row"] == 3
    assert example["before"] == [[0.0, 9.0], [50.0, pytest.approx(clean[3, 3], rel=1e-4)]]
    assert np.allclose(example["after"], clean[3].reshape(2, 2), rtol=1e-4)
    assert example["touched"] == [[0.0, 1.0], [1.0, 0.0]]
