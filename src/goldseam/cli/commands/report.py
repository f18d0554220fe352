"""`goldseam report`: the report of a finished run, again."""

from __future__ import annotations

from typing import Any

import click

from goldseam.cli.options import shared_options


@click.command("report", short_help="Write the report of a run again.")
@click.argument("run", metavar="RUN")
@click.option(
    "--output",
    "-o",
    metavar="FILE",
    help="The report (.html, .md, .json); by default report.html in the run directory.",
)
@click.option("--title", metavar="TEXT", help="The title of the report.")
@shared_options
def command(run: str, output: str | None, title: str | None, **options: Any) -> None:
    """Write the report of a run from its summary and seam.

    \b
    Examples:
      goldseam report restored.run
      goldseam report restored.run -o report.md --title "Line 4, week 12"
    """
    import json
    from pathlib import Path

    from goldseam.cli.console import Console
    from goldseam.cli.runs import read_run
    from goldseam.report import write_report

    folder = Path(run)
    record = read_run(folder)
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    path = Path(output) if output else folder / "report.html"
    name = Path(record["inputs"][0]["path"]).name
    write_report(summary, path, seam=folder / "seam.parquet", title=title or f"Restoration of {name}")
    console = Console(options["as_json"], options["quiet"], options["log_file"])
    console.result({"run": run, "report": str(path)}, f"report written to {path}")
