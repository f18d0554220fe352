"""`goldseam predict`: classes for the rows of a file."""

from __future__ import annotations

from typing import Any

import click

from goldseam.cli.options import model_option, reading_options, shared_options, stream_options


@click.command("predict", short_help="Predict with a trained classifier.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@model_option
@click.option(
    "--output",
    "-o",
    default="-",
    show_default=True,
    metavar="FILE",
    help="The table with predictions; the suffix decides the format, - is stdout.",
)
@click.option("--probabilities", is_flag=True, help="Also a column per class with its probability.")
@click.option("--only", is_flag=True, help="Write the predictions without the columns of the input.")
@stream_options
@reading_options
@shared_options
def command(files: tuple[str, ...], model: str, output: str, **options: Any) -> int:
    """Add the columns `prediction` and `probability` to a table, batch by batch: the file may be larger than memory.

    \b
    Examples:
      goldseam predict new.csv -m clf.seam -o out.csv
      cat new.csv | goldseam predict - -m clf.seam --only
    """
    import tempfile
    from pathlib import Path

    from goldseam.cli.classifier import TableClassifier
    from goldseam.cli.console import place
    from goldseam.cli.memory import limits_for
    from goldseam.cli.options import memory_bytes
    from goldseam.cli.progress import Progress
    from goldseam.cli.session import check_output, check_rows, load_model, opened
    from goldseam.cli.sinks import all_or_nothing, open_frames_sink

    classifier = load_model(model, TableClassifier)
    counts: dict[str, int] = {}
    with opened(files, options) as session, tempfile.TemporaryDirectory(prefix="goldseam-") as work:
        check_output(output, session.inputs)
        check_rows(session)
        limits = limits_for(session.inputs, memory_bytes(options["memory"]), Path(model))
        sink = open_frames_sink(output, session.inputs, Path(work), limits)
        n_rows = 0
        with all_or_nothing(sink), Progress("predicted", quiet=options["quiet"], say=session.console.note) as progress:
            for batch in session.bad_lines.watched(session.inputs.batches(limits)):
                new = _predictions(classifier, batch, session.markers, options)
                for name, n in new["prediction"].cast(str).value_counts().iter_rows():
                    counts[name] = counts.get(name, 0) + n
                sink.add(new if options["only"] else batch.frame.hstack(new))
                n_rows += len(batch)
                progress.update(n_rows, session.inputs.done(batch.after))
        data: dict[str, Any] = {"output": output, "rows": n_rows, "predictions": dict(sorted(counts.items()))}
        shares = ", ".join(f"{name} {n:,}" for name, n in data["predictions"].items())
        session.console.result(
            data, f"{n_rows:,} rows predicted: {shares}; written to {place(output)}", stdout_is_taken=output == "-"
        )
    return 0


def _predictions(classifier: Any, batch: Any, markers: tuple[str, ...], options: dict[str, Any]) -> Any:
    """The new columns of a batch."""
    import polars as pl

    from goldseam.cli.cells import table_for
    from goldseam.errors import InputError

    taken = [name for name in ("prediction", "probability") if name in batch.frame.columns and not options["only"]]
    if taken:
        raise InputError(f"The table already has a column {taken[0]!r}. Hint: --only writes the predictions alone.")
    table, _ = table_for(batch, classifier.schema, markers, options["on_bad_cell"])
    labels, probabilities = classifier.predict(table)
    columns = [
        pl.Series("prediction", labels, dtype=None if labels else pl.String),
        pl.Series("probability", probabilities.max(axis=1) if len(probabilities) else [], dtype=pl.Float64),
    ]
    if options["probabilities"]:
        columns += [pl.Series(f"probability of {c}", probabilities[:, i]) for i, c in enumerate(classifier.classes)]
    return pl.DataFrame(columns)
