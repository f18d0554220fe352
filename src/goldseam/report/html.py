"""The report as one HTML file: no network, no library, readable without scripts.

Figures come from the summary, single cells from the ledger; the template only lays them out. A policy in the page's
head allows this package's own style and script by their hashes and nothing else, so that no text from a table could
run even if it slipped through the escaping.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from goldseam.errors import MissingDependencyError
from goldseam.report import pictures, words
from goldseam.report.ledger import COLUMN_BANDS, LINES, Ledger, read_ledger
from goldseam.report.svg import Markup
from goldseam.report.text import cell, count, figure, p_value, rate, visible
from goldseam.seam import Seam

__all__ = ["render_html", "require_jinja2"]

DISTRIBUTIONS: Final = 18
PIXELS: Final = 6  # columns that are cells of a picture say little on their own
COLUMN_ROWS: Final = 120
SHOWN_TIMELINES: Final = 8
AUDIT_ROWS: Final = 40
SENTENCE: Final = 300


def require_jinja2() -> Any:
    """The jinja2 module, or an error that names the extra."""
    try:
        import jinja2
    except ImportError as error:
        raise MissingDependencyError(
            "HTML reports need jinja2, which is not installed. Hint: pip install 'goldseam[report]', or write .md or .json."
        ) from error
    return jinja2


def render_html(summary: Mapping[str, Any], seam: Seam | str | Path, *, title: str = "Restoration report") -> str:
    """A self-contained HTML page, below 2 MB however large the table.

    `seam` is the ledger or the name of a file that holds it; Parquet files are read in blocks.
    """
    jinja2 = require_jinja2()
    loader = jinja2.FileSystemLoader(str(files("goldseam.report").joinpath("templates")))
    environment = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"visible": visible, "count": count, "rate": rate, "figure": figure, "p": p_value}
    return environment.get_template("report.html.j2").render(_page(summary, seam, title))


def _page(summary: Mapping[str, Any], seam: Seam | str | Path, title: str) -> dict[str, Any]:
    table = summary["table"]
    ledger = read_ledger(seam, [column["name"] for column in summary["columns"]], table["rows"], table["first_row"])
    style, script = _asset("style.css"), _asset("script.js")
    page = {
        "title": title,
        "style": style,
        "script": script,
        "policy": f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src {_hash(script)}",
        "headline": words.headline(summary),
        "lead": words.lead(summary),
        "crack": pictures.crack(str(summary["how"].get("model", ""))),
        "summary": summary,
        "causes": _causes(summary),
        "promises": _promises(summary["promises"]),
        "cannot_see": _cannot_see(summary["audit"]),
        "hardest": words.hardest(summary["audit"]),
        "nothing_unseen": words.nothing_unseen(summary["audit"] or {}),
        "map": _map(ledger) if table["rows"] and summary["columns"] else None,
        "rows": [_row(story) for story in ledger.rows],
        "columns": _columns(summary["columns"], PIXELS if summary["examples"] else DISTRIBUTIONS),
        "pairs": _pairs(summary["examples"]),
        "timelines": _timelines(summary["timelines"]),
        "lines": [_line(line) for line in ledger.lines],
        "n_lines": ledger.n_lines,
        "limit": LINES,
        "p_values": _p_values(summary["row_p_values"]),
        "trust": _trust(summary["reference"]),
        "audit": _audit(summary["audit"]),
        "how": _how(summary["how"], summary["version"]),
    }
    return page | {"contents": _contents(page)}


def _asset(name: str) -> Markup:
    return Markup(files("goldseam.report").joinpath("templates", name).read_text(encoding="utf-8"))


def _hash(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def _contents(page: Mapping[str, Any]) -> list[tuple[str, str]]:
    parts = [
        ("promises", "Promised and measured", True),
        ("map", "Where", page["map"]),
        ("images", "Pictures", page["pairs"]),
        ("time", "Along the rows", page["timelines"]),
        ("rows", "Rows changed most", page["rows"]),
        ("columns", "Columns", page["columns"]["pictures"] or page["columns"]["table"]),
        ("changes", "Every change", page["lines"]),
        ("audit", "What it can and cannot see", True),
        ("reference", "The reference", page["trust"] or page["p_values"]),
        ("how", "How it was made", True),
    ]
    return [(key, name) for key, name, present in parts if present]


# ------------------------------------------------------------------------------------------------ the parts


def _causes(summary: Mapping[str, Any]) -> list[dict[str, Any]]:
    counts = summary["seam"]["by_cause"]
    cells = summary["table"]["rows"] * summary["table"]["columns"]
    return [
        {"key": key, "count": counts[key], "share": counts[key] / cells if cells else 0.0, **saying._asdict()}
        for key, saying in words.CAUSE_WORDS.items()
    ]


def _promises(promises: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            **{key: promise.get(key) for key in ("name", "nominal", "measured", "sd", "n", "scope")},
            "picture": pictures.promise(promise.get("nominal"), promise.get("measured"), promise.get("sd")),
            "verdict": words.kept(promise),
        }
        for promise in promises[:AUDIT_ROWS]
    ]


def _cannot_see(audit: Mapping[str, Any] | None) -> list[str] | None:
    return None if audit is None else [visible(item, SENTENCE) for item in audit.get("cannot_see") or []][:AUDIT_ROWS]


def _map(ledger: Ledger) -> dict[str, Any]:
    cells = ledger.cell_map
    return {
        "picture": pictures.cell_map(cells),
        "is_aggregated": cells.is_aggregated,
        "rows_per_block": int(cells.row_edges[1] - cells.row_edges[0]),
        "columns_per_block": int(cells.column_edges[1] - cells.column_edges[0]),
        "is_wide": len(cells.names) > COLUMN_BANDS,
    }


def _row(story: Any) -> dict[str, Any]:
    return {
        "row": story.row,
        "reason": words.reason(story),
        "cells": [_line(line) for line in story.lines],
        "more": story.n_lines - len(story.lines),
    }


def _line(line: Mapping[str, Any]) -> dict[str, Any]:
    kind = line["kind"]
    interval = None
    if line["low"] is not None and line["high"] is not None:
        interval = f"{figure(line['low'], 4)} … {figure(line['high'], 4)}"
    return {
        "row": line["row"],
        "column": visible(line["column"], 40),
        "cause": line["cause"],
        "glyph": words.CAUSE_WORDS[line["cause"]].glyph,
        "observed": None if line["observed"] is None else cell(line["observed"], kind),
        "restored": None if line["restored"] is None else cell(line["restored"], kind),
        "stays": line["observed"] == line["restored"],
        "interval": interval,
        "p_value": line["p_value"],
        "probability": line["probability"],
        "donors": ", ".join(map(str, (line["donors"] or [])[:3])),
    }


def _columns(columns: Sequence[Mapping[str, Any]], n_drawn: int) -> dict[str, Any]:
    ranked = sorted(columns, key=lambda column: -_touched(column))
    drawn = [(column, pictures.before_after(column)) for column in ranked[:n_drawn] if _touched(column)]
    return {
        "pictures": [_column_card(column, image) for column, image in drawn if image],
        "table": [{**column, "noise": words.noise_level(column["noise"])} for column in ranked[:COLUMN_ROWS]],
        "has_noise": any(words.noise_level(column["noise"]) for column in ranked[:COLUMN_ROWS]),
        "n": len(columns),
    }


def _touched(column: Mapping[str, Any]) -> int:
    return sum(column["by_cause"].values())


def _column_card(column: Mapping[str, Any], image: Markup) -> dict[str, Any]:
    return {"name": column["name"], "kind": column["kind"], "picture": image, "notes": _column_notes(column)}


def _column_notes(column: Mapping[str, Any]) -> list[str]:
    causes = column["by_cause"]
    notes = [f"{words.CAUSE_WORDS[cause].glyph} {count(n)} {cause}" for cause, n in causes.items() if n]
    beyond = [sum(column[when].get(end, 0) for end in ("below", "above")) for when in ("before", "after")]
    if any(beyond):
        notes.append(f"beyond the axis: {count(beyond[0])} before, {count(beyond[1])} after")
    level = words.noise_level(column["noise"])
    return [*notes, f"noise: {level}"] if level else notes


def _pairs(examples: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    seen = [value for example in examples for row in example["after"] for value in row if value is not None]
    low, high = (min(seen), max(seen)) if seen else (0.0, 1.0)
    return [{**example, "picture": pictures.grid_pair(example, low, high)} for example in examples]


def _timelines(timelines: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    if not timelines or not timelines["bins"]:
        return []
    ranked = sorted(timelines["columns"], key=lambda line: -sum(line["changed"]))[:SHOWN_TIMELINES]
    return [
        {
            "name": line["name"],
            "changed": sum(line["changed"]),
            "picture": pictures.timeline(line, timelines["bins"], timelines["rows_per_bin"]),
        }
        for line in ranked
    ]


def _p_values(counts: Sequence[int] | None) -> Markup | None:
    if not counts or not sum(counts):
        return None
    return pictures.bars(counts, "Rows by p-value: clean rows are spread evenly", "0: odd rows", "1: ordinary rows")


def _trust(reference: Mapping[str, Any]) -> dict[str, Any] | None:
    trust = reference.get("trust")
    if not trust or not trust.get("counts"):
        return None
    edges = trust.get("edges") or [0.0, 1.0]
    image = pictures.bars(
        trust["counts"], "Reference rows by trust", f"{figure(edges[0], 3)}: distrusted", figure(edges[-1], 3)
    )
    return {"picture": image, "distrusted": trust.get("distrusted"), "rows": reference.get("rows")}


SHARES: Final = {
    "found": "found", "localised": "localised", "restored": "restored", "categories": "categories", "coverage": "covered",
}  # fmt: skip
PEERS: Final = {"do_nothing": "leave as is", "column_mean": "column mean", "knn": "nearest rows"}


def _audit(audit: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if audit is None:
        return None
    damage = (audit.get("damage") or [])[:AUDIT_ROWS]
    shares = [key for key in SHARES if any(row.get(key) is not None for row in damage)]
    peers = [key for key in PEERS if any(row.get(key) for row in damage)]  # what gains nothing anywhere says nothing
    return {
        "shares": [SHARES[key] for key in shares],
        "peers": [PEERS[key] for key in peers],
        "damage": [
            {
                "kind": row.get("kind", ""),
                "size": row.get("size") or "",
                "shares": [pictures.share_bar(row.get(key)) for key in shares],
                "peers": [rate(row.get(key)) for key in peers],
            }
            for row in damage
        ],
        "sources": (audit.get("sources") or [])[:AUDIT_ROWS],
        "methods": [{**row, "worth": figure(row.get("worth"), 3)} for row in (audit.get("methods") or [])[:AUDIT_ROWS]],
        "rows": {str(key).replace("_", " "): value for key, value in list((audit.get("rows") or {}).items())[:12]},
    }


def _how(how: Mapping[str, Any], version: str) -> list[tuple[str, str, bool]]:
    """Name, value and whether it is code."""
    versions = how.get("versions") or {}
    known = [
        ("Call", visible(how.get("call", ""), 4000), True),
        ("Seed", visible(how.get("seed", "")), False),
        ("Model", visible(how.get("model", ""), 200), True),
        ("Openly damaged", words.openness(how.get("open_damage")), False),
        ("Versions", visible(", ".join(f"{name} {number}" for name, number in versions.items()), 1000), False),
        ("Made", visible(how.get("created", "")), False),
        ("Summary", f"version {version}", False),
    ]
    return [(name, value, is_code) for name, value, is_code in known if value]
