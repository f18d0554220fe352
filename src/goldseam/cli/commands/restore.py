"""`goldseam restore`: mend a table of any size and keep every change on record."""

from __future__ import annotations

from typing import Any

import click

from goldseam.cli.options import (
    chosen,
    formula_safe_option,
    jobs_option,
    model_option,
    reading_options,
    shared_options,
    stream_options,
)


@click.command("restore", short_help="Mend a table; every change is on record.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@model_option
@click.option(
    "--output",
    "-o",
    required=True,
    metavar="FILE",
    help="The restored table; the suffix decides the format, - is stdout.",
)
@click.option("--seam", metavar="FILE", help="A copy of the seam (.parquet, .csv, .jsonl, .arrow).")
@formula_safe_option
@click.option("--report", metavar="FILE", help="A copy of the report (.html, .md, .json).")
@click.option("--run", "run_dir", metavar="DIR", help="The run directory; by default OUTPUT.run beside the output.")
@click.option("--resume", is_flag=True, help="Go on with a run that was interrupted.")
@click.option("--key", metavar="COLUMN", help="Column that identifies a row; it is added to the seam.")
@click.option("--columns", metavar="LIST", help="Mend these columns only.")
@click.option("--ordered", is_flag=True, help="The rows are a time series: the report draws columns along them.")
@jobs_option
@stream_options
@reading_options
@shared_options
@click.pass_context
def command(ctx: click.Context, /, files: tuple[str, ...], model: str, output: str, **options: Any) -> None:
    """Mend what cannot be believed, batch by batch: the file may be larger than memory.

    Cells that are not in the seam come back exactly as they were; of a CSV, byte by byte. The output appears under its
    name when it is complete. Ctrl-C stops after the current batch, and --resume goes on from there with the same
    result. The run directory keeps the seam, the summary, a report, the command, the model's hash and all versions.

    \b
    Examples:
      goldseam restore incoming.csv -m factory.seam -o restored.csv
      goldseam restore day-*.parquet -m factory.seam -o restored.parquet --seam seam.csv --report report.html
      zcat big.csv.gz | goldseam restore - -m factory.seam -o restored.csv.gz --memory 2GB
    """
    from goldseam.cli.restore_run import restore_files

    restore_files(files, model, output, options, chosen(ctx))
