"""Text from a table is data: it is never run, never hidden, and never breaks out of its place."""

from __future__ import annotations

import csv
import json
import re
import xml.etree.ElementTree as ET
from importlib.resources import files
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from goldseam.report import render_html, render_json, render_markdown, short_html
from goldseam.report.text import in_markdown, visible
from goldseam.schema import Column, Kind, Schema
from goldseam.seam import CAUSES, Restoration, Seam
from goldseam.tables import Table
from tests.report.inert import executable

SCRIPT = files("goldseam.report").joinpath("templates", "script.js").read_text(encoding="utf-8")

HOSTILE = [
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "</style></title><svg onload=alert(1)>",
    "</text></svg><img src=x onerror=alert(1)>",
    '"><b onmouseover="alert(1)">',
    "' onfocus=alert(1) autofocus='",
    "`alert(1)`",
    "[click](javascript:alert(1))",
    "![x](https://evil.example/x.png)",
    "<https://evil.example>",
    "https://evil.example www.evil.example me@evil.example",
    "| a | b |\n|---|---|\n| c |",
    "```\ncode\n# heading\n- list\n> quote",
    "{{ 7 * 7 }} {% raw %} ${7*7}",
    "\u202egnp.exe\u202c \u200f \u2066x\u2069",
    "nul\x00inside \x1b[31mred \x07",
    "👩‍🔧🔥 é ﷽",
    "=HYPERLINK(\"http://evil\",\"x\")",
    "+1+cmd|' /C calc'!A0",
    "@SUM(1)",
    "-2+3",
    "\tx",
    "&lt;script&gt; &amp;",
    "<!--",
    "]]>",
    "x" * 1_000_000,
    "<b>" * 300_000,
]  # fmt: skip


def restoration_of(names: list[str], cells: list[str], causes: list[str]) -> Restoration:
    """A restoration whose names, levels and lines are the given texts."""
    n = len(cells)
    table = pl.DataFrame(dict.fromkeys(names, cells))
    levels = tuple(dict.fromkeys(cells))
    schema = Schema(tuple(Column(name, Kind.CATEGORICAL, levels) for name in names))
    incoming = Table.read(table)
    seam = Seam.of(
        row=list(range(n)), column=[names[i % len(names)] for i in range(n)], kind=["categorical"] * n, cause=causes,
        observed=cells, restored=cells[::-1], p_value=[0.01] * n, donors=[[1, 2]] * n,
    )  # fmt: skip
    facts = {
        "promises": [{"name": cells[0], "scope": cells[-1], "nominal": 0.1, "measured": 0.2}],
        "noise": {names[0]: {"value": 0.5, "unit": cells[0], "status": cells[-1]}},
        "audit": {
            "damage": [{"kind": cells[0], "size": cells[-1]}], "cannot_see": cells[:3],
            "sources": [{"name": cells[0], "gain": cells[-1], "seconds": cells[0]}], "rows": {cells[0]: cells[-1]},
            "methods": [{"name": cells[0], "worth": 0.5, "used": True}],
        },
        "reference": {"rows": 3, "trust": {"edges": [0, 1], "counts": [3]}},
        "how": {"call": cells[0], "seed": cells[-1], "model": cells[0], "versions": {cells[0]: cells[-1]}, "created": cells[0]},
    }  # fmt: skip
    changed = np.ones((n, len(names)), dtype=bool)
    return Restoration(incoming, schema, incoming.encode(schema), changed, changed, seam, None, facts)


def check_inert(restoration: Restoration) -> None:
    summary = restoration.summary()
    html = render_html(summary, restoration.seam, title=restoration.schema.names[0])
    assert executable(html, SCRIPT) == []
    assert not re.search("[\x00-\x08\x0b\x0e-\x1f\u200e\u200f\u202a-\u202e\u2066-\u2069]", html)
    for picture in re.findall(r"<svg.*?</svg>", html, flags=re.DOTALL):
        ET.fromstring(picture)
    for text in (
        short_html(restoration),
        MarkdownIt("gfm-like", {"html": True, "linkify": False}).render(render_markdown(summary, restoration.seam)),
    ):
        assert executable(text) == []
    assert json.loads(render_json(summary)) == summary


@pytest.fixture(scope="module")
def hostile() -> Restoration:
    names = [text[:2000] + str(i) for i, text in enumerate(HOSTILE)]
    return restoration_of(names, HOSTILE, [CAUSES[i % 5] for i in range(len(HOSTILE))])


def test_hostile_cells_and_names_are_inert(hostile: Restoration) -> None:
    check_inert(hostile)


def test_hostile_tables_stay_small(hostile: Restoration) -> None:
    summary = hostile.summary()
    assert len(render_html(summary, hostile.seam).encode()) < 2_000_000
    assert len(render_markdown(summary, hostile.seam).encode()) < 500_000
    assert len(short_html(hostile)) < 20_000


def test_hostile_text_is_shown_as_text(hostile: Restoration) -> None:
    html = render_html(hostile.summary(), hostile.seam)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "⟨U+202E⟩gnp.exe" in html
    assert "nul␀inside ␛[31mred ␇" in html
    assert "👩‍🔧🔥" in html
    assert "(1,000,000 characters)" in html
    assert "{{ 7 * 7 }}" in html


def test_markdown_keeps_its_shape(hostile: Restoration) -> None:
    """No text from the table adds a row, a heading, a link, an image, code or HTML."""
    tokens = MarkdownIt("gfm-like", {"html": True, "linkify": False}).parse(
        render_markdown(hostile.summary(), hostile.seam)
    )
    inner = [child.type for token in tokens for child in token.children or []]
    assert not {"link_open", "image", "html_inline", "code_inline", "s_open", "em_open"} & set(inner)
    assert not {"html_block", "fence", "code_block", "blockquote_open"} & {token.type for token in tokens}
    titles = [tokens[i + 1].content for i, token in enumerate(tokens) if token.type == "heading_open"]
    assert titles[1:] == [
        "Promised and measured",
        "What this cannot see here",
        "Rows changed most",
        "Columns",
        "Changes",
        "Audit",
        "How it was made",
    ]
    text = [child.content for token in tokens for child in token.children or [] if child.type == "text"]
    assert any("<script>alert(1)</script>" in line for line in text)


def test_the_seam_as_csv_is_formula_safe_on_request(hostile: Restoration, tmp_path: Path) -> None:
    hostile.seam.write(tmp_path / "safe.csv", formula_safe=True)
    csv.field_size_limit(10_000_000)
    with open(tmp_path / "safe.csv", newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == len(HOSTILE)
    risky = [line[key] for line in lines for key in ("column", "observed", "restored") if line[key][:1] in "=+-@\t\r"]
    assert all(re.fullmatch(r"[+-]?\d+(\.\d+)?", text) for text in risky), risky
    assert any(line["observed"].startswith("'=HYPERLINK") for line in lines)
    hostile.seam.write(tmp_path / "exact.csv")
    assert Seam.read(tmp_path / "exact.csv") == hostile.seam


TEXTS = (
    st.text(max_size=40)
    | st.sampled_from([text[:200] for text in HOSTILE])
    | st.text("<>'\"`&/=;:!-[](){}|\\*_~#. \n", max_size=30)
)


@settings(max_examples=40)
@given(
    names=st.lists(TEXTS, min_size=1, max_size=4, unique=True),
    cells=st.lists(TEXTS, min_size=1, max_size=6),
    data=st.data(),
)
def test_random_tables_are_inert(names: list[str], cells: list[str], data: st.DataObject) -> None:
    causes = data.draw(st.lists(st.sampled_from(CAUSES), min_size=len(cells), max_size=len(cells)))
    check_inert(restoration_of(names, cells, causes))


@given(TEXTS)
def test_visible_text_hides_nothing_and_keeps_plain_text(text: str) -> None:
    shown = visible(text, 100)
    assert not re.search("[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029]", shown)
    assert shown == text or not text.isprintable() or "\u200d" in text or len(text) > 100


@given(TEXTS)
def test_markdown_gives_the_text_back(text: str) -> None:
    shown = visible(text, 200)
    tokens = MarkdownIt("gfm-like", {"html": True, "linkify": False}).parse(
        "| a |\n|---|\n| x" + in_markdown(text, 200) + "x |"
    )
    inline = [token for token in tokens if token.type == "inline"][1]
    assert "".join(child.content for child in inline.children or []) == f"x{shown}x"


def test_lone_surrogates_do_not_break_the_page() -> None:
    assert visible("a\ud800b") == "a⟨U+D800⟩b"
