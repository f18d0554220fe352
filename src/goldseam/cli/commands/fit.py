"""`goldseam fit`: learn from a reference table."""

from __future__ import annotations

from typing import Any, Final

import click

from goldseam.cli.options import jobs_option, reading_options, seed_option, shared_options, table_options

MOST_COLUMNS: Final = 2000


@click.command("fit", short_help="Learn from a reference table.")
@click.argument("files", nargs=-1, required=True, metavar="REFERENCE...")
@click.option("--output", "-o", required=True, metavar="MODEL", help="The model file to write (.seam).")
@click.option(
    "--alarm-rate", type=float, default=0.05, show_default=True, metavar="SHARE", help="Clean rows that may be flagged."
)
@click.option(
    "--damaged-share", type=float, metavar="SHARE",
    help="Rows to come that are expected to be damaged; with few, unsure repairs are shortened.  [default: each table tells]",
)  # fmt: skip
@click.option(
    "--error-control",
    type=click.Choice(["row", "fdr"]),
    default="row",
    show_default=True,
    help="What is promised: alarms among clean rows, or errors among changed cells.",
)
@click.option(
    "--reference",
    "trusted",
    type=click.Choice(["clean", "contaminated"]),
    default="clean",
    show_default=True,
    help="Whether the reference itself may hold damaged rows.",
)
@click.option(
    "--method",
    type=click.Choice(["auto", "conditional", "boosted"]),
    default="auto",
    show_default=True,
    help="Sources of evidence; conditional is fast, boosted adds trees for nonlinear dependence.",
)
@click.option("--grid", metavar="HxW", help="The columns are the pixels of an image, row by row: 16x16.")
@click.option("--no-denoise", is_flag=True, help="Leave rows that are noisy throughout as they are.")
@click.option("--no-audit", is_flag=True, help="Skip the self-audit (faster; nothing is known of the quality).")
@table_options
@seed_option
@jobs_option
@reading_options
@shared_options
def command(files: tuple[str, ...], output: str, **options: Any) -> None:
    """Learn what rows look like from a reference: rows believed (mostly) clean.

    At the end the model damages held-out rows of the reference on purpose and measures what it finds and restores;
    `goldseam audit MODEL` shows it again.

    \b
    Examples:
      goldseam fit reference.parquet -o factory.seam
      goldseam fit 2024-*.csv -o factory.seam --key id --missing "n/a,?" --kinds zip=categorical
    """
    from goldseam.cli.progress import working
    from goldseam.cli.session import check_output, grid_shape, kinds_of, opened, whole_table
    from goldseam.cli.warm_up import FIRST_FIT, compiled_ahead, is_first_fit
    from goldseam.restorer import Restorer

    with opened(files, options) as session:
        check_output(output, session.inputs)
        kinds = kinds_of(options, session.inputs.names)
        frame, dates = whole_table(session, kinds)
        kinds = {**dict.fromkeys(dates, "passthrough"), **kinds}
        _check_width(frame, kinds, session.markers)
        share = options["damaged_share"]
        restorer = Restorer(
            alarm_rate=options["alarm_rate"], damaged_share="auto" if share is None else share,
            error_control=options["error_control"], reference=options["trusted"],
            kinds=kinds or None, grid_shape=grid_shape(options["grid"]),
            audit=not options["no_audit"], missing_values=session.markers, n_jobs=options["jobs"],
            denoise=False if options["no_denoise"] else "auto", random_state=options["seed"], method=methods(options["method"]),
        )  # fmt: skip
        if is_first_fit():
            session.console.note(FIRST_FIT)
        what = f"learning from {frame.height:,} rows and {frame.width:,} columns"
        with working(what, quiet=options["quiet"], say=session.console.note), compiled_ahead():
            restorer.fit(frame)
        restorer.save(output)
        _tell(session, restorer, frame, output)


def _check_width(frame: Any, kinds: dict[str, str], markers: tuple[str, ...]) -> None:
    """Every column is judged by all others, which takes time with the square of their number: better said than begun."""
    from goldseam.errors import InputError
    from goldseam.tables import Table, learn_schema

    if sum(kinds.get(name) != "passthrough" for name in frame.columns) <= MOST_COLUMNS:
        return
    schema = learn_schema(Table.read(frame, markers), kinds=kinds, missing_values=markers)
    if (n := len(schema.modelled_positions)) > MOST_COLUMNS:
        raise InputError(
            f"The reference has {n:,} columns to learn, but at most {MOST_COLUMNS:,} can be learnt in reasonable time "
            "(1,000 take minutes, 10,000 would take hours). "
            "Hint: --columns a,b,c names those that matter; the others pass through."
        )


def methods(word: str) -> str | list[str]:
    """What the restorer is told."""
    if word == "auto":
        return word
    return ["conditional"] if word == "conditional" else ["conditional", "boosted"]


def _tell(session: Any, restorer: Any, frame: Any, output: str) -> None:
    from goldseam.summary import plain

    schema = restorer.schema_
    audit = restorer.audit_ if restorer.audit_.to_dict()["damage"] else None
    data = {
        "model": output,
        "rows": frame.height,
        "columns": [{"name": c.name, "kind": c.kind.value} for c in schema.columns],
        "audit": plain(audit.to_dict()) if audit is not None else None,
    }
    passed = [c.name for c in schema.columns if c.modelled_as == "nothing"]
    text = f"Learnt {len(schema.modelled_positions)} columns from {frame.height:,} rows."
    text += f" Passed through: {', '.join(passed[:8])}{', ...' if len(passed) > 8 else ''}." if passed else ""
    text += f"\n\n{audit}" if audit is not None else ""
    session.console.result(data, f"{text}\n\nModel written to {output}")
