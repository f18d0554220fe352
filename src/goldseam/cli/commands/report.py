"""`goldseam report`: the report of a finished run, again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from goldseam.cli.options import shared_options

if TYPE_CHECKING:
    from pathlib import Path


@click.command("report", short_help="Write the report of a run again.")
@click.argument("sources", nargs=-1, required=True, metavar="RUN_OR_FILES...")
@click.option(
    "--output",
    "-o",
    metavar="FILE",
    help="The report (.html, .md, .json); by default report.html beside the summary.",
)
@click.option("--title", metavar="TEXT", help="The title of the report.")
@shared_options
def command(sources: tuple[str, ...], output: str | None, title: str | None, **options: Any) -> None:
    """Write the report of a run: from its directory, from the table it wrote, or from a summary (.json) and a seam.

    \b
    Examples:
      goldseam report restored.run
      goldseam report restored.csv -o report.md --title "Line 4, week 12"
      goldseam report summary.json seam.parquet -o report.html
    """
    from pathlib import Path

    from goldseam.cli.console import Console
    from goldseam.report import write_report

    summary, seam, name = _parts([Path(source) for source in sources])
    path = Path(output) if output else summary.parent / "report.html"
    write_report(_read_summary(summary), path, seam=seam, title=title or f"Restoration of {name}")
    console = Console(options["as_json"], options["quiet"], options["log_file"])
    console.result({"sources": list(sources), "report": str(path)}, f"report written to {path}")


def _parts(paths: list[Path]) -> tuple[Path, Path, str]:
    """The summary, the seam, and what was restored."""
    from goldseam.errors import InputError

    for path in paths:
        if not path.exists():
            raise InputError(f"{str(path)!r} does not exist. Hint: check the spelling and the folder.")
    if len(paths) == 1:
        return _parts_of_run(paths[0])
    summaries = [path for path in paths if path.suffix == ".json"]
    if len(paths) != 2 or len(summaries) != 1:
        raise InputError(
            f"A report is made of one summary (.json) and one seam, but got {len(paths)} files, {len(summaries)} of "
            "them .json. Hint: goldseam report summary.json seam.parquet"
        )
    (seam,) = (path for path in paths if path not in summaries)
    return summaries[0], seam, summaries[0].parent.resolve().name


def _parts_of_run(path: Path) -> tuple[Path, Path, str]:
    from pathlib import Path

    from goldseam.cli.runs import read_run, run_folder
    from goldseam.errors import InputError

    folder = path if path.is_dir() else run_folder(str(path), None, path)
    if folder is None or not folder.is_dir():
        raise InputError(
            f"There is no run directory {str(folder)!r} beside {path.name!r}. "
            "Hint: name the directory itself, or a summary and a seam."
        )
    name = Path(read_run(folder)["inputs"][0]["path"]).name
    return folder / "summary.json", folder / "seam.parquet", name


def _read_summary(path: Path) -> dict[str, Any]:
    import json

    from goldseam.errors import InputError
    from goldseam.summary import VERSION

    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"File {path.name!r} is not JSON: {error}. Hint: restore writes summary.json.") from error
    version = data.get("version") if isinstance(data, dict) and "seam" in data else None
    if version != VERSION:
        raise InputError(
            f"File {path.name!r} is not a summary of version {VERSION}, but {version or 'something else'}. "
            "Hint: restore writes summary.json, and so does --report summary.json."
        )
    return dict(data)
