"""Short HTML for notebooks: what a restoration or an audit shows of itself in a cell. Needs no other library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final

from goldseam.report import words
from goldseam.report.displays.palette import CAUSE_COLOURS, GOLD
from goldseam.report.text import cell, count, rate, visible
from goldseam.seam import Restoration

__all__ = ["audit_html", "short_html"]

LINES: Final = 8
CELL: Final = "padding:2px 14px 2px 0;text-align:left;border:0"
FRAME: Final = f"border-left:3px solid {GOLD};padding:2px 0 4px 14px;margin:4px 0;font-family:system-ui,sans-serif"


def short_html(restoration: Restoration) -> str:
    """A few lines of HTML: headline, causes and the first lines of the seam."""
    counts = restoration.seam.count_by_cause()
    causes = " &nbsp; ".join(
        f'<span style="white-space:nowrap"><span style="color:{CAUSE_COLOURS[cause]}">{saying.glyph}</span> '
        f"{count(counts[cause])} {cause}</span>"
        for cause, saying in words.CAUSE_WORDS.items()
        if counts[cause]
    )
    figures = _figures(restoration)
    lines = [_line(line) for line in restoration.seam.frame.head(LINES).to_dicts()]
    more = len(restoration.seam) - len(lines)
    return _framed(
        f"<b>{escape(words.headline(figures))}</b><br>{escape(words.lead(figures))}<br>{causes}",
        _table(("row", "column", "cause", "observed", "restored"), lines) if lines else "",
        f"<small>and {count(more)} more in <code>.seam</code>; the whole story: "
        "<code>.save_report('report.html')</code></small>"
        if more > 0
        else "",
    )


def audit_html(audit: Mapping[str, Any]) -> str:
    """The audit as a table: what was found, told, restored and covered, and what is not seen."""
    keys = ("found", "localised", "restored", "coverage")
    rows = [
        [
            escape(visible(row.get("kind", ""))),
            escape(visible(row.get("size") or "", 40)),
            *(rate(row.get(key)) for key in keys),
        ]
        for row in audit.get("damage") or []
    ]
    unseen = "".join(f"<li>{escape(visible(item, 300))}</li>" for item in audit.get("cannot_see") or [])
    return _framed(
        _table(("damage", "size", *keys), rows) if rows else "No damage was tried.",
        f"<b>What it cannot see here</b><ul>{unseen}</ul>" if unseen else "",
    )


def _figures(restoration: Restoration) -> dict[str, Any]:
    """The part of a summary that a headline needs, without a pass over the table."""
    changed, seam = restoration.changed, restoration.seam
    figures = {
        "lines": len(seam),
        "rows": seam.frame["row"].n_unique() if len(seam) else 0,
        "cells_changed": int(changed.sum()),
        "rows_changed": int(changed.any(axis=1).sum()),
        "by_cause": seam.count_by_cause(),
        "rejected": len(restoration.rejected),
    }
    mode = restoration.facts.get("mode") or ("check" if len(seam) and not changed.any() else "restore")
    return {"mode": mode, "table": {"rows": changed.shape[0], "columns": changed.shape[1]}, "seam": figures}


def _line(line: Mapping[str, Any]) -> list[str]:
    old, new = (escape(cell(line[key], line["kind"], 40)) for key in ("observed", "restored"))
    return [
        str(line["row"]),
        f"<bdi>{escape(visible(line['column'], 40))}</bdi>",
        line["cause"],
        f"<bdi>{old}</bdi>",
        f'<bdi style="border-bottom:2px solid {GOLD}">{new}</bdi>',
    ]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    top = "".join(f'<th style="{CELL}">{name}</th>' for name in head)
    body = "".join("<tr>" + "".join(f'<td style="{CELL}">{item}</td>' for item in row) + "</tr>" for row in rows)
    return f'<table style="margin:6px 0;border-collapse:collapse"><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>'


def _framed(*parts: str) -> str:
    return f'<div style="{FRAME}">' + "".join(parts) + "</div>"
