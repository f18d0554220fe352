"""`goldseam check`: is this table as the reference was?"""

from __future__ import annotations

from typing import Any

import click

from goldseam.cli.options import (
    formula_safe_option,
    jobs_option,
    model_option,
    reading_options,
    shared_options,
    stream_options,
)


@click.command("check", short_help="Find damage; exit code 1 when there is too much.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@model_option
@click.option(
    "--fail-over",
    type=click.FloatRange(0, 1),
    metavar="SHARE",
    help="Exit with 1 when more than this share of rows is suspect. Default: more than the model's alarm rate explains.",
)
@click.option("--seam", metavar="FILE", help="Write what would be touched (.parquet, .csv, .jsonl, .arrow).")
@formula_safe_option
@click.option("--rows", type=int, default=10, show_default=True, metavar="N", help="How many suspect rows to show.")
@click.option("--key", metavar="COLUMN", help="Column that identifies a row in the result.")
@click.option("--columns", metavar="LIST", help="Look at these columns only.")
@jobs_option
@stream_options
@reading_options
@shared_options
def command(files: tuple[str, ...], model: str, **options: Any) -> int:
    """Find cells that cannot be believed, without changing anything. Reads batch by batch, any size.

    Exit codes: 0 clean, 1 findings, 2 usage or bad input, 3 interrupted. A table is clean when no more rows are
    suspect than --fail-over allows; without it, than the alarm rate promised at fit explains (with chance allowed for).
    A model fitted with --error-control fdr allows none.

    \b
    Examples:
      goldseam check incoming.csv -m factory.seam
      goldseam check incoming.csv -m factory.seam --fail-over 0.02 && load-into-database incoming.csv
      goldseam check - -m factory.seam --json < incoming.csv | jq .suspect_rows
    """
    from goldseam.cli.checking import check_files

    return check_files(files, model, options)
