"""Summaries, reports and plots of a restoration."""

from __future__ import annotations

from goldseam.report.html import render_html
from goldseam.report.markdown import render_markdown
from goldseam.report.notebook import audit_html, short_html
from goldseam.report.write import render_json, write_report

__all__ = ["audit_html", "render_html", "render_json", "render_markdown", "short_html", "write_report"]
