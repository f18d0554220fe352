"""A report into a file; the suffix decides the form."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from goldseam.atomic import atomic_path
from goldseam.errors import InputError
from goldseam.report.html import render_html
from goldseam.report.markdown import render_markdown
from goldseam.seam import Restoration, Seam

__all__ = ["render_json", "write_report"]

FORMS = (".html", ".htm", ".md", ".json")


def render_json(summary: Mapping[str, Any]) -> str:
    """The summary as JSON, as `summary.schema.json` describes it."""
    return json.dumps(summary, indent=1, allow_nan=False) + "\n"


def write_report(
    restoration: Restoration | Mapping[str, Any],
    path: str | Path,
    *,
    seam: Seam | str | Path | None = None,
    title: str = "Restoration report",
    ordered: bool | None = None,
) -> None:
    """Write a report as HTML, Markdown or JSON, by suffix.

    `restoration` is a restoration, or a summary with its `seam` (an object or a file). `ordered` says that the rows of
    a restoration are a time series: its columns are then drawn along the rows. The file appears when it is complete.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in FORMS:
        raise InputError(
            f"A report is written to .html, .md or .json, not to {suffix or 'a name without a suffix'!r} "
            f"(file {Path(path).name!r}). Hint: report.html opens in any browser."
        )
    if ordered is not None and isinstance(restoration, Restoration):
        restoration = replace(restoration, facts={**restoration.facts, "ordered": ordered})
    summary, ledger = _parts(restoration, seam)
    if suffix == ".json":
        text = render_json(summary)
    else:
        render = render_markdown if suffix == ".md" else render_html
        text = render(summary, ledger, title=title)
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _parts(
    restoration: Restoration | Mapping[str, Any], seam: Seam | str | Path | None
) -> tuple[Mapping[str, Any], Seam | str | Path]:
    if isinstance(restoration, Restoration):
        return restoration.summary(), restoration.seam if seam is None else seam
    if seam is None:
        raise InputError(
            "A report of a summary needs its seam as well; got seam=None. "
            "Hint: pass seam='seam.parquet', or the restoration itself."
        )
    return restoration, seam
