"""`goldseam explain`: why a row was judged as it was."""

from __future__ import annotations

from typing import Any

import click

from goldseam.cli.options import model_option, reading_options, shared_options


@click.command("explain", short_help="Why a row was judged as it was.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@model_option
@click.option("--row", type=click.IntRange(min=0), metavar="N", help="The row, counted from 0 as in the seam.")
@click.option("--key", nargs=2, metavar="COLUMN VALUE", help="The first row that has this value in this column.")
@click.option(
    "--on-bad-cell",
    type=click.Choice(["fail", "mend"]),
    default="mend",
    show_default=True,
    help="Text in a column of numbers.",
)
@reading_options
@shared_options
def command(files: tuple[str, ...], model: str, row: int | None, key: tuple[str, str] | None, **options: Any) -> None:
    """Show which evidence speaks against the cells of one row, and what would stand there instead.

    \b
    Examples:
      goldseam explain incoming.csv --row 17 -m factory.seam
      goldseam explain incoming.csv --key id A-1007 -m factory.seam --json
    """
    from dataclasses import replace

    from goldseam.cli.cells import table_for
    from goldseam.cli.delimited import Limits
    from goldseam.cli.restoring import Job
    from goldseam.cli.session import load_restorer, opened
    from goldseam.errors import ParameterError
    from goldseam.summary import plain

    if (row is None) == (key is None):
        raise ParameterError("Name the row by --row or by --key, not by both or none. Hint: --row 17")
    restorer = load_restorer(model)
    with opened(files, options) as session:
        batch = _one_row(session, row, key)
        table, _ = table_for(batch, restorer.schema_, session.markers, options["on_bad_cell"])
        job = Job(restorer, session.markers, options["on_bad_cell"])
        job.survey(session.inputs, Limits())  # the row is judged as one of its table
        explanation = replace(restorer.explain(table, row=0, levels=job.levels), row=batch.first_row)
        session.console.result(plain(explanation.to_dict()), str(explanation))


def _one_row(session: Any, row: int | None, key: tuple[str, str] | None) -> Any:
    """The row as a batch of its own."""
    import polars as pl

    from goldseam.cli.delimited import Limits
    from goldseam.cli.restoring import no_such_column
    from goldseam.errors import InputError, ParameterError

    if key is not None and key[0] not in session.inputs.names:
        raise ParameterError(no_such_column("--key", key[0], session.inputs.names))
    last = 0
    for batch in session.bad_lines.watched(session.inputs.batches(Limits())):
        last = batch.first_row + len(batch)
        if row is not None and row < last:
            return _cut(batch, row - batch.first_row)
        if key is not None:
            hits = (batch.frame[key[0]].cast(pl.String) == key[1]).fill_null(value=False).arg_true()
            if len(hits):
                return _cut(batch, int(hits[0]))
    what = f"row {row}" if key is None else f"{key[0]} = {key[1]!r}"
    raise InputError(f"The table has {last:,} rows, but no {what}. Hint: rows are counted from 0.")


def _cut(batch: Any, row: int) -> Any:
    from dataclasses import replace

    return replace(batch, frame=batch.frame.slice(row, 1), first_row=batch.first_row + row, raw=None)
