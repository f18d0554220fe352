"""The report as Markdown, for issues, pull requests and notes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from goldseam.report import words
from goldseam.report.ledger import read_ledger
from goldseam.report.text import cell, count, figure, in_markdown, p_value, rate
from goldseam.seam import Seam

__all__ = ["render_markdown"]

COLUMNS: Final = 60
LINES: Final = 100
SENTENCE: Final = 300
SEPARATOR: Final = "|"


def render_markdown(summary: Mapping[str, Any], seam: Seam | str | Path, *, title: str = "Restoration report") -> str:
    """The restoration as a Markdown page; text from the table stays text."""
    table = summary["table"]
    ledger = read_ledger(seam, [column["name"] for column in summary["columns"]], table["rows"], table["first_row"])
    parts = [
        f"# {in_markdown(title)}: {words.headline(summary)}",
        words.lead(summary),
        _causes(summary),
        _promises(summary["promises"]),
        _cannot_see(summary["audit"]),
        _rows(ledger.rows),
        _columns(summary["columns"]),
        _lines(ledger.lines, ledger.n_lines),
        _audit(summary["audit"]),
        _how(summary["how"]),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], right: int = 0) -> str:
    """A table whose last `right` columns hold figures."""
    marks = ["---"] * (len(head) - right) + ["---:"] * right
    return "\n".join("| " + " | ".join(line) + " |" for line in (head, marks, *rows))


def _causes(summary: Mapping[str, Any]) -> str:
    counts = summary["seam"]["by_cause"]
    rows = [(name, saying.meaning, count(counts[name])) for name, saying in words.CAUSE_WORDS.items()]
    return _table(("cause", "meaning", "cells"), rows, right=1)


def _promises(promises: Sequence[Mapping[str, Any]]) -> str:
    if not promises:
        return "No promise was measured in this run."
    rows = [
        (
            in_markdown(promise["name"]),
            in_markdown(promise.get("scope") or "", SENTENCE),
            words.kept(promise),
            *(rate(promise.get(key)) for key in ("nominal", "measured")),
        )
        for promise in promises
    ]
    return "## Promised and measured\n\n" + _table(
        ("promise", "scope", "verdict", "promised", "measured"), rows, right=2
    )


def _cannot_see(audit: Mapping[str, Any] | None) -> str:
    title = "## What this cannot see here\n\n"
    if audit is None:
        return title + "No audit was made, so it is not known what this run misses."
    items = audit.get("cannot_see") or []
    if not items:
        least = [f"- seen least: {in_markdown(item, SENTENCE)}" for item in words.hardest(audit)]
        return title + words.nothing_unseen(audit) + ("\n\n" + "\n".join(least) if least else "")
    return title + "\n".join(f"- {in_markdown(item, SENTENCE)}" for item in items)


def _rows(stories: Sequence[Any]) -> str:
    if not stories:
        return ""
    return "## Rows changed most\n\n" + "\n".join(
        f"- **Row {count(story.row)}**: {in_markdown(words.reason(story), SENTENCE)}" for story in stories
    )


def _columns(columns: Sequence[Mapping[str, Any]]) -> str:
    ranked = sorted(columns, key=lambda column: -sum(column["by_cause"].values()))[:COLUMNS]
    causes = list(words.CAUSE_WORDS)
    noise = [in_markdown(words.noise_level(column["noise"])) for column in ranked]
    rows = [
        (
            in_markdown(column["name"]),
            column["kind"],
            *((level,) if any(noise) else ()),
            *(count(column["by_cause"][cause]) for cause in causes),
        )
        for column, level in zip(ranked, noise, strict=True)
    ]
    head = ("column", "kind", *(("noise",) if any(noise) else ()), *causes)
    more = f"\n\nThe {COLUMNS} columns touched most, of {count(len(columns))}." if len(columns) > COLUMNS else ""
    return "## Columns\n\n" + _table(head, rows, right=len(causes)) + more


def _lines(lines: Sequence[Mapping[str, Any]], n_lines: int) -> str:
    if not lines:
        return ""
    rows = [
        (
            in_markdown(line["column"], 40),
            line["cause"],
            _change(line),
            "" if line["low"] is None else f"{figure(line['low'], 4)} … {figure(line['high'], 4)}",
            count(line["row"]),
            p_value(line["p_value"]).replace("<", "&lt;"),
        )
        for line in lines[:LINES]
    ]
    shown = f"{count(len(rows))} of {count(n_lines)} lines.\n\n" if n_lines > len(rows) else ""
    return "## Changes\n\n" + shown + _table(("column", "cause", "change", "interval", "row", "p-value"), rows, right=2)


def _change(line: Mapping[str, Any]) -> str:
    old, new = (in_markdown(cell(line[key], line["kind"])) for key in ("observed", "restored"))
    return f"{old} stays" if line["observed"] == line["restored"] else f"{old} → {new}"


def _audit(audit: Mapping[str, Any] | None) -> str:
    if not audit or not audit.get("damage"):
        return ""
    keys = ("found", "localised", "restored", "coverage")
    rows = [
        (in_markdown(row["kind"]), in_markdown(row.get("size") or ""), *(rate(row.get(key)) for key in keys))
        for row in audit["damage"]
    ]
    text = "## Audit\n\n" + _table(("damage", "size", *keys), rows, right=len(keys))
    sources = [_source(source) for source in audit.get("sources") or []]
    text = f"{text}\n\n{_table(('source', 'used', 'gain', 'seconds'), sources, right=2)}" if sources else text
    methods = [
        (in_markdown(row["name"]), "yes" if row.get("used") else "no", figure(row.get("worth"), 3))
        for row in audit.get("methods") or []
    ]
    return f"{text}\n\n{_table(('method', 'used', 'worth'), methods, right=1)}" if methods else text


def _source(source: Mapping[str, Any]) -> tuple[str, ...]:
    figures = [source.get(key) for key in ("gain", "seconds")]
    shown = [figure(v, 3) if v is None or isinstance(v, (int, float)) else in_markdown(v) for v in figures]
    return (in_markdown(source["name"]), "yes" if source.get("used") else "no", *shown)


def _how(how: Mapping[str, Any]) -> str:
    if not how:
        return ""
    versions = ", ".join(f"{name} {number}" for name, number in (how.get("versions") or {}).items())
    facts = {**{key: how.get(key) for key in ("call", "seed", "model", "created")}, "versions": versions}
    facts["openly damaged"] = words.openness(how.get("open_damage"))
    return "## How it was made\n\n" + "\n".join(
        f"- {name}: {in_markdown(value, 4000)}" for name, value in facts.items() if value not in (None, "")
    )
