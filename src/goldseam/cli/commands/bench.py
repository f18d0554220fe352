"""`goldseam bench`: how well and how fast a model does on a clean table of yours."""

from __future__ import annotations

from typing import Any

import click

from goldseam.cli.options import jobs_option, model_option, reading_options, seed_option, shared_options


@click.command("bench", short_help="Measure a model on a clean table.")
@click.argument("files", nargs=-1, required=True, metavar="CLEAN...")
@model_option
@click.option(
    "--rows", type=float, default=0.3, show_default=True, metavar="SHARE", help="Share of rows that are damaged."
)
@click.option(
    "--most", type=int, default=5000, show_default=True, metavar="N", help="Use at most this many rows of the table."
)
@seed_option
@jobs_option
@reading_options
@shared_options
def command(files: tuple[str, ...], model: str, **options: Any) -> None:
    """Damage a clean table in several ways, restore it, and compare with the truth.

    \b
    found      share of damaged rows that are flagged
    alarms     share of undamaged rows that are flagged
    localised  F1 of the suspected cells
    restored   1 - squared error after / before, over numbers, in units of the column's spread (0: nothing gained)
    categories share of wrong categories put right, less those put wrong
    rows/s     speed of the restore on this machine
    \b
    Examples:
      goldseam bench held-out.csv -m factory.seam
      goldseam bench held-out.parquet -m factory.seam --rows 0.1 --json
    """
    from goldseam.cli.benching import bench_model
    from goldseam.cli.session import load_restorer, opened

    restorer = load_restorer(model, options["jobs"])
    with opened(files, options) as session:
        bench_model(session, restorer, options)
