"""`goldseam demo`: the whole story on a table that ships with scikit-learn."""

from __future__ import annotations

from typing import Any

import click

from goldseam.cli.options import shared_options


@click.command("demo", short_help="The whole story in a minute.")
@click.option("--output", "-o", default="goldseam-demo", show_default=True, metavar="DIR", help="Where the files go.")
@shared_options
def command(output: str, **options: Any) -> None:
    """Damage a table on purpose, learn from clean rows, find and mend the damage, look at every change.

    The table is Wisconsin breast cancer (569 rows, ten measures and a diagnosis), which ships with scikit-learn. The
    commands are those of every day, with their defaults, and are printed as they run.

    \b
    Examples:
      goldseam demo
      goldseam demo -o /tmp/demo --json
    """
    from pathlib import Path

    from goldseam.cli.console import Console
    from goldseam.cli.story import tell_story

    tell_story(Path(output), Console(options["as_json"], options["quiet"], options["log_file"]))
