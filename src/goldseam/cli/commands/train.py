"""`goldseam train`: a classifier that learns which training rows not to believe."""

from __future__ import annotations

from typing import Any

import click

from goldseam.cli.options import jobs_option, reading_options, seed_option, shared_options, table_options


@click.command("train", short_help="Train a classifier in spite of corrupt rows.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--target", "-t", required=True, metavar="COLUMN", help="The column to predict.")
@click.option("--output", "-o", required=True, metavar="MODEL", help="The model file to write (.seam).")
@click.option(
    "--kernel", type=click.Choice(["linear", "rbf"]), default="linear", show_default=True, help="Shape of the boundary."
)
@click.option(
    "--cost",
    "-C",
    type=float,
    default=1.0,
    show_default=True,
    metavar="C",
    help="Cost of an error on a row with full trust.",
)
@click.option("--balanced", is_flag=True, help="Let every class count the same, however many rows it has.")
@click.option("--trust", metavar="FILE", help="Write the trust of every row: row, trust (and the key).")
@table_options
@seed_option
@jobs_option
@reading_options
@shared_options
def command(files: tuple[str, ...], target: str, output: str, trust: str | None, **options: Any) -> None:
    """Train a classifier (GEM-MED) on a table some of whose rows come from failed sensors, nobody knows which.

    Every row gets a trust between 0 and 1. Mixed columns are scaled and encoded by what the table shows.

    \b
    Examples:
      goldseam train train.csv --target y -o clf.seam
      goldseam train train.parquet -t label -o clf.seam --kernel rbf --trust trust.csv --key id
    """
    import polars as pl

    from goldseam.cli.classifier import TableClassifier
    from goldseam.cli.progress import working
    from goldseam.cli.session import check_output, kinds_of, opened, shown, whole_table
    from goldseam.errors import InputError, ParameterError
    from goldseam.model_file import save

    with opened(files, options) as session:
        names = session.inputs.names
        if target not in names:
            raise ParameterError(f"The target column {target!r} is not in the table. Hint: it has {shown(names)}.")
        check_output(output, session.inputs)
        kinds = kinds_of({**options, "columns": options["columns"] and f"{options['columns']},{target}"}, names)
        frame, dates = whole_table(session, kinds)
        labelled = frame.with_row_index("goldseam row").filter(pl.col(target).is_not_null())
        unlabelled = frame.height - labelled.height
        if unlabelled:
            session.console.warn(f"{unlabelled:,} rows without a {target!r} take no part in the training.")
        if labelled[target].n_unique() < 2:
            raise InputError(
                f"The target {target!r} has {labelled[target].n_unique()} classes; at least 2 are needed. Hint: another --target."
            )
        settings = {
            "kernel": options["kernel"],
            "C": options["cost"],
            "random_state": options["seed"],
            "n_jobs": options["jobs"],
            "class_weight": "balanced" if options["balanced"] else None,
        }
        what = f"learning {target!r} from {labelled.height:,} rows"
        with working(what, quiet=options["quiet"], say=session.console.note):
            model = TableClassifier.train(
                labelled.drop("goldseam row"), target, {**dict.fromkeys(dates, "passthrough"), **kinds}, settings
            )
        save(model.to_dict(), output)
        if trust:
            _write_trust(model, labelled, options["key"], trust)
        _tell(session, model, labelled, output, unlabelled)


def _write_trust(model: Any, labelled: Any, key: str | None, path: str) -> None:
    from pathlib import Path

    import polars as pl

    from goldseam.cli.sinks import save_frame

    columns = [
        labelled["goldseam row"].alias("row"),
        *([labelled[key]] if key else []),
        pl.Series("trust", model.trust),
    ]
    save_frame(pl.DataFrame(columns), Path(path))


def _tell(session: Any, model: Any, labelled: Any, output: str, unlabelled: int) -> None:
    import numpy as np

    from goldseam.summary import plain

    distrusted = np.flatnonzero(model.trust < 0.5)
    worst = distrusted[np.argsort(model.trust[distrusted], kind="stable")][:10]
    data = {
        "model": output,
        "rows": labelled.height,
        "rows_without_target": unlabelled,
        "classes": plain(model.classes),
        "columns_used": [model.schema.columns[i].name for i in model.schema.modelled_positions],
        "distrusted_rows": len(distrusted),
        "least_trusted": [
            {"row": int(labelled["goldseam row"][int(i)]), "trust": float(model.trust[i])} for i in worst
        ],
    }
    rows = ", ".join(str(item["row"]) for item in data["least_trusted"])
    text = (
        f"Trained on {data['rows']:,} rows and {len(data['columns_used'])} columns, classes "
        f"{', '.join(map(str, data['classes']))}.\n"
        f"{len(distrusted):,} rows are not trusted{f' (least: row {rows})' if rows else ''}.\nModel written to {output}"
    )
    session.console.result(data, text)
