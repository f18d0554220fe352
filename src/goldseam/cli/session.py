"""What every command does first and last: open its inputs, know its limits, load its model."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from goldseam.cli.bad_lines import BadLines
from goldseam.cli.cells import inferred, split_kinds, split_list
from goldseam.cli.console import Console
from goldseam.cli.delimited import Limits
from goldseam.cli.sources import Inputs, Reading, open_inputs
from goldseam.errors import InputError, ModelFileError, ParameterError

__all__ = ["Session", "load_model", "opened", "whole_table"]


@dataclass(frozen=True)
class Session:
    """The opened inputs of a command and how it talks."""

    console: Console
    inputs: Inputs
    bad_lines: BadLines
    markers: tuple[str, ...]


@contextmanager
def opened(files: Sequence[str], options: dict[str, Any], bad_lines: Path | None = None) -> Iterator[Session]:
    """Open the inputs of a command as its options say."""
    console = Console(options.get("as_json", False), options.get("quiet", False), options.get("log_file"))
    reading = Reading(
        options.get("file_format", "auto"), options.get("encoding", "auto"), options.get("delimiter", "auto"),
        options.get("decimal", "auto"), not options.get("no_header", False),
    )  # fmt: skip
    with ExitStack() as stack:
        spool = stack.enter_context(tempfile.TemporaryDirectory(prefix="goldseam-")) if "-" in files else "."
        inputs = open_inputs(files, reading, Path(spool))
        given = options.get("bad_lines")
        kept = BadLines(options.get("on_bad_line", "fail"), Path(given) if given else bad_lines)
        stack.callback(kept.release)
        stack.callback(console.release)
        stack.enter_context(console.telling_warnings())
        yield Session(console, inputs, kept, split_list(options.get("missing")))
        kept.tell(console)


def whole_table(session: Session, kinds: dict[str, str]) -> tuple[pl.DataFrame, list[str]]:
    """All rows in memory, numbers parsed, and the columns that hold dates."""
    frames = [batch.frame for batch in session.bad_lines.watched(session.inputs.batches(Limits()))]
    names = session.inputs.names
    if not any(frame.height for frame in frames):
        raise InputError(no_rows(session.inputs))
    frame = pl.concat(frames, how="vertical_relaxed")
    unknown = sorted(set(kinds) - set(names))
    if unknown:
        raise ParameterError(f"Column {unknown[0]!r} is not in the table. Hint: it has {shown(names)}.")
    return inferred(frame, session.markers, decimal_of(session.inputs), kinds)


def check_rows(session: Session) -> None:
    """A table must have a row that fits; said before anything is written."""
    for batch in session.inputs.batches(Limits(1000, 1 << 18)):
        if batch.bad and session.bad_lines.policy == "fail":
            session.bad_lines.take(batch)  # names the line and stops
        if len(batch):
            return
    raise InputError(no_rows(session.inputs))


def no_rows(inputs: Inputs) -> str:
    """The message for a table without a row."""
    names = shown([path.name for path in inputs.paths], 3)
    what = "has a header, but no rows that fit" if inputs.are_text else "has columns, but no rows"
    return f"File {names} {what}; at least 1 is needed. Hint: is it the right file, and was it written to its end?"


def decimal_of(inputs: Inputs) -> str:
    """The decimal mark of text files."""
    return inputs.files[0].dialect.decimal if inputs.are_text else "."


def shown(names: Sequence[str], most: int = 8) -> str:
    """Some column names for a message."""
    return ", ".join(map(repr, names[:most])) + (f", ... ({len(names)} in all)" if len(names) > most else "")


def kinds_of(options: dict[str, Any], names: Sequence[str]) -> dict[str, str]:
    """Kinds as --kinds, --key and --columns say them."""
    kinds = split_kinds(options.get("kinds"))
    wanted = split_list(options.get("columns"))
    if wanted:
        kinds |= dict.fromkeys(set(names) - set(wanted), "passthrough")
    if options.get("key"):
        kinds[options["key"]] = "passthrough"
    known = set(names)
    unknown = [name for name in (*kinds, *wanted) if name not in known]
    if unknown:
        raise ParameterError(f"Column {unknown[0]!r} is not in the table. Hint: it has {shown(names)}.")
    return kinds


def load_model(path: str, wanted: type | tuple[type, ...] | None = None) -> Any:
    """The model in a file, of the class a command needs."""
    from goldseam.model_file import read

    place = Path(path)
    if not place.exists():
        raise InputError(f"Model file {path!r} does not exist. Hint: goldseam fit reference.csv -o {place.name}")
    if place.is_dir():
        raise InputError(f"{path!r} is a folder, but a model file is needed. Hint: goldseam fit writes one.")
    model = read(place)
    if isinstance(model, dict) and "table_classifier" in model:
        from goldseam.cli.classifier import TableClassifier

        model = TableClassifier.from_dict(model)
    if wanted is not None and not isinstance(model, wanted):
        names = " or ".join(_called(kind) for kind in ((wanted,) if isinstance(wanted, type) else wanted))
        raise ModelFileError(
            f"Model file {place.name!r} holds a {_called(type(model))}, but this command needs a {names}. "
            "Hint: fit makes models for check and restore, train makes them for predict."
        )
    return model


def check_output(output: str, inputs: Inputs) -> None:
    """An output must be a new place that can be written."""
    if output == "-":
        return
    path = Path(output)
    if path.is_dir():
        raise InputError(
            f"Output {output!r} is a folder, but a file name is needed. Hint: {output.rstrip('/')}/restored.csv"
        )
    for source in inputs.paths:
        if path.exists() and path.samefile(source):
            raise InputError(
                f"Output {output!r} is the input itself; the input is never overwritten. Hint: another name."
            )
    if not path.parent.is_dir():
        raise InputError(
            f"The folder of the output, {str(path.parent)!r}, does not exist. Hint: mkdir -p {path.parent}"
        )


def _called(kind: type) -> str:
    """What the command line calls a kind of model."""
    return {"Restorer": "restorer", "TableClassifier": "classifier"}.get(kind.__name__, kind.__name__)


def load_restorer(path: str, jobs: int | None = None) -> Any:
    """The restorer in a model file, set to so many threads."""
    from goldseam.restorer import Restorer

    return load_model(path, Restorer).set_params(n_jobs=jobs)


def grid_shape(text: str | None) -> tuple[int, int] | None:
    """A shape given as 16x16."""
    if text is None:
        return None
    height, _, width = text.lower().partition("x")
    if not (height.isdecimal() and width.isdecimal()):
        raise ParameterError(f"--grid must be height x width, but got {text!r}. Hint: --grid 16x16")
    return int(height), int(width)
