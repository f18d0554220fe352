"""`goldseam corrupt`: damage a table on purpose, and keep the truth."""

from __future__ import annotations

from typing import Any, Final

import click

from goldseam.cli.options import reading_options, seed_option, shared_options

# The word on the command line, the simulator, and what --rate means to it (None: it has no rate).
DAMAGE: Final = {
    "scatter": ("scatter_errors", "rate"),
    "intervals": ("overwrite_intervals", None),
    "gaps": ("make_gaps", "rate"),
    "noise": ("add_noise", "strength"),
    "categories": ("flip_categories", "rate"),
    "swap": ("swap_cells", None),
    "units": ("mistake_units", "rate"),
    "sensors": ("fail_sensors", None),
}


@click.command("corrupt", short_help="Damage a table on purpose.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--output",
    "-o",
    required=True,
    metavar="FILE",
    help="The damaged table; the suffix decides the format, - is stdout.",
)
@click.option(
    "--kind",
    type=click.Choice(list(DAMAGE)),
    default="scatter",
    show_default=True,
    help="What happens to a damaged row.",
)
@click.option("--rows", type=float, default=None, metavar="SHARE", help="Share of rows that are damaged.")
@click.option(
    "--rate",
    type=float,
    default=None,
    metavar="SHARE",
    help="Share of a damaged row's cells (scatter, gaps, categories, units), or strength in standard deviations (noise).",
)
@click.option("--columns", metavar="LIST", help="Damage only these columns.")
@click.option("--kinds", metavar="LIST", help="Kinds of columns where the guess is wrong.")
@click.option(
    "--truth",
    metavar="FILE",
    help="Where to write which cells were changed: row, column, clean, damaged (.parquet, .csv, .jsonl).",
)
@seed_option
@reading_options
@shared_options
def command(files: tuple[str, ...], output: str, truth: str | None, **options: Any) -> None:
    """Damage a table on purpose, to see what a model would find. Cells that are not hit stay as they are.

    \b
    Kinds of damage:
      scatter     single cells overwritten by gross values
      intervals   runs of neighbouring columns overwritten
      gaps        cells emptied
      noise       every number of a row shaken
      categories  categories replaced by others
      swap        two numbers of a row exchanged
      units       numbers in the wrong unit (times 1000)
      sensors     groups of columns that fail for a stretch of rows
    \b
    Examples:
      goldseam corrupt clean.csv -o damaged.csv --kind scatter --rows 0.05 --truth truth.parquet
      goldseam corrupt clean.parquet -o damaged.parquet --kind gaps --rate 0.1 --seed 7
    """
    import tempfile
    from pathlib import Path

    from goldseam.cli.cells import split_kinds
    from goldseam.cli.console import place
    from goldseam.cli.session import check_output, opened, whole_table
    from goldseam.cli.sinks import all_or_nothing, open_sink, save_frame

    with opened(files, options) as session, tempfile.TemporaryDirectory(prefix="goldseam-") as work:
        check_output(output, session.inputs)
        kinds = split_kinds(options["kinds"])
        clean, _ = whole_table(session, kinds)
        damage = _damaged(clean, kinds, options)
        with all_or_nothing(open_sink(output, session.inputs, Path(work), clean.schema, session.markers)) as sink:
            _write(session, clean, damage, sink)
        if truth:
            save_frame(_truth(clean, damage), Path(truth))
        data = {
            "output": output,
            "rows": clean.height,
            "rows_damaged": int(damage.rows.sum()),
            "cells_damaged": int(damage.cells.sum()),
            "kind": options["kind"],
            "seed": options["seed"],
            "truth": truth,
        }
        text = (
            f"{data['cells_damaged']:,} cells in {data['rows_damaged']:,} of {data['rows']:,} rows damaged "
            f"({options['kind']}); written to {place(output)}"
        )
        session.console.result(data, text, stdout_is_taken=output == "-")


def _damaged(clean: Any, kinds: dict[str, str], options: dict[str, Any]) -> Any:
    import goldseam.corruption
    from goldseam.cli.cells import split_list
    from goldseam.errors import ParameterError

    name, rate_name = DAMAGE[options["kind"]]
    settings: dict[str, Any] = {"random_state": options["seed"], "kinds": kinds or None}
    if options["rows"] is not None:
        settings["rows"] = options["rows"]
    if options["rate"] is not None:
        if rate_name is None:
            raise ParameterError(
                f"--rate means nothing to --kind {options['kind']}. Hint: --rows sets the share of rows."
            )
        settings[rate_name] = options["rate"]
    wanted = split_list(options["columns"])
    unknown = [column for column in wanted if column not in clean.columns]
    if unknown:
        raise ParameterError(f"Column {unknown[0]!r} is not in the table. Hint: --columns takes names of the header.")
    return getattr(goldseam.corruption, name)(clean, columns=list(wanted) or None, **settings)


def _write(session: Any, clean: Any, damage: Any, sink: Any) -> None:
    """Read the files again and replace what was hit."""
    import numpy as np

    from goldseam.cli.batches import Changes
    from goldseam.cli.cells import spelling, text_of
    from goldseam.cli.delimited import Limits
    from goldseam.cli.session import decimal_of

    decimal = decimal_of(session.inputs)
    truths: dict[str, tuple[str, str]] = {}
    for batch in session.inputs.batches(Limits()):
        hit = damage.cells[batch.first_row : batch.first_row + len(batch)]
        rows = {clean.columns[j]: np.flatnonzero(hit[:, j]) for j in np.flatnonzero(hit.any(axis=0)).tolist()}
        values = {name: damage.table[name].gather(at + batch.first_row) for name, at in rows.items()}
        for name in values:
            if name not in truths and session.inputs.are_text:
                truths[name] = spelling(batch.frame[name])
        texts = {name: text_of(new, decimal, truths.get(name, ("true", "false"))) for name, new in values.items()}
        sink.write(batch, Changes(rows, values), texts)


def _truth(clean: Any, damage: Any) -> Any:
    """The ledger of the damage, row by row."""
    import numpy as np
    import polars as pl

    from goldseam.cli.cells import text_of

    parts = []
    for j in np.flatnonzero(damage.cells.any(axis=0)).tolist():
        name, rows = clean.columns[j], np.flatnonzero(damage.cells[:, j])
        before, after = (text_of(frame[name].gather(rows)) for frame in (clean, damage.table))
        parts.append(pl.DataFrame({"row": rows, "column": [name] * len(rows), "clean": before, "damaged": after}))
    empty = pl.DataFrame(schema={"row": pl.Int64, "column": pl.String, "clean": pl.String, "damaged": pl.String})
    return pl.concat([empty, *parts]).sort("row", maintain_order=True)
