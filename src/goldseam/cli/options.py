"""Options that commands share, and the settings file.

A settings file (`--config goldseam.toml`) holds defaults: keys at the top are for every command that has the option,
a table named after a command is for that command. What is typed on the command line wins.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

__all__ = ["chosen", "memory_bytes", "model_option", "reading_options", "shared_options", "table_options"]

LEAST_MEMORY: Final = 480 * 10**6
F = TypeVar("F", bound=Callable[..., Any])


def _with_config(ctx: click.Context, parameter: click.Parameter, path: str | None) -> str | None:
    if path:
        ctx.default_map = {**(ctx.default_map or {}), **settings_for(ctx, Path(path))}
    return path


def settings_for(ctx: click.Context, path: Path) -> dict[str, Any]:
    """What a settings file says to one command."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise click.UsageError(f"Settings file {str(path)!r} does not exist. Hint: check --config.", ctx) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise click.UsageError(
            f"Settings file {path.name!r} is not TOML: {error}. Hint: key = value lines.", ctx
        ) from error
    own = data.get(ctx.command.name or "", {})
    everywhere = {key: value for key, value in data.items() if not isinstance(value, dict)}
    known = {name.lstrip("-"): p for p in ctx.command.params for name in p.opts if name.startswith("--")}
    unknown = sorted(set(own) - set(known))
    if unknown:
        raise click.UsageError(
            f"Settings file {path.name!r} sets {unknown[0]!r} for {ctx.command.name}, which has no such option. "
            f"Hint: it knows {', '.join(sorted(known))}.",
            ctx,
        )
    found = {**{key: value for key, value in everywhere.items() if key in known}, **own}
    return {known[key].name or key: _as_text(value) for key, value in found.items()}


def _as_text(value: Any) -> Any:
    """A TOML list stands for the comma-separated list of the command line."""
    return ",".join(map(str, value)) if isinstance(value, list) else value


def _together(*options: Callable[[F], F]) -> Callable[[F], F]:
    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


shared_options = _together(
    click.option(
        "--config",
        metavar="FILE",
        callback=_with_config,
        is_eager=True,
        expose_value=False,
        help="Defaults from a TOML file; a table per command.",
    ),
    click.option("--json", "as_json", is_flag=True, help="Machine-readable result on stdout."),
    click.option("--quiet", "-q", is_flag=True, help="Say nothing but errors and the result."),
    click.option("--debug", is_flag=True, help="Show the traceback of a failure."),
    click.option("--log-file", metavar="FILE", help="Append everything that is said, with the time, to a file."),
)

jobs_option = click.option(
    "--jobs",
    "-j",
    type=int,
    default=-1,
    show_default=True,
    metavar="N",
    help="Threads; -1 is all cores. The result does not depend on it.",
)
seed_option = click.option(
    "--seed", type=int, default=0, show_default=True, metavar="N", help="Seed of every random draw."
)
model_option = click.option("--model", "-m", required=True, metavar="MODEL", help="Model file (.seam) written by fit.")

reading_options = _together(
    click.option(
        "--format",
        "file_format",
        type=click.Choice(["auto", "csv", "jsonl", "parquet", "arrow"]),
        default="auto",
        show_default=True,
        help="Format of the input; auto goes by the suffix.",
    ),
    click.option(
        "--encoding",
        default="auto",
        show_default=True,
        metavar="NAME",
        help="Encoding of text files, for example latin-1.",
    ),
    click.option(
        "--delimiter",
        default="auto",
        show_default=True,
        metavar="CHAR",
        help="Delimiter of text files; 'tab' is a tab.",
    ),
    click.option(
        "--decimal",
        type=click.Choice(["auto", ".", ","]),
        default="auto",
        show_default=True,
        help="Decimal mark of text files.",
    ),
    click.option("--no-header", is_flag=True, help="The first line holds data; columns are column_1, column_2, ..."),
    click.option("--missing", metavar="LIST", help='Cells that mean "not observed", besides empty ones: "n/a,?".'),
    click.option(
        "--on-bad-line",
        type=click.Choice(["fail", "skip", "quarantine"]),
        default="fail",
        show_default=True,
        help="Lines that do not fit the header: stop, leave out, or leave out and keep in --bad-lines.",
    ),
    click.option(
        "--bad-lines", metavar="FILE", help="Where quarantined lines go (JSON Lines: file, line, problem, text)."
    ),
)

table_options = _together(
    click.option(
        "--kinds", metavar="LIST", help='Kinds of columns where the guess is wrong: "zip=categorical,id=passthrough".'
    ),
    click.option("--key", metavar="COLUMN", help="Column that identifies a row; it is not modelled."),
    click.option("--columns", metavar="LIST", help="Use only these columns; the others pass through."),
)

formula_safe_option = click.option(
    "--formula-safe",
    is_flag=True,
    help="In the file of --seam, an apostrophe before text that a spreadsheet would run as a formula.",
)

stream_options = _together(
    click.option(
        "--memory",
        default="1GB",
        show_default=True,
        metavar="SIZE",
        help="Memory to stay within, model included: 500MB, 2GB.",
    ),
    click.option(
        "--on-bad-cell",
        type=click.Choice(["fail", "mend"]),
        default="fail",
        show_default=True,
        help="Text in a column of numbers: stop, or treat as damage to restore.",
    ),
)


def memory_bytes(text: str) -> int:
    """A size such as 500MB or 2GB in bytes.

    >>> memory_bytes("1GB"), memory_bytes("512 MiB")
    (1000000000, 536870912)
    """
    units = {
        "": 1,
        "B": 1,
        "KB": 10**3,
        "MB": 10**6,
        "GB": 10**9,
        "TB": 10**12,
        "KIB": 2**10,
        "MIB": 2**20,
        "GIB": 2**30,
    }
    units |= {"K": 10**3, "M": 10**6, "G": 10**9}
    digits = text.strip().rstrip("kKmMgGtTiIbB ")
    unit = text.strip()[len(digits) :].strip().upper()
    try:
        size = int(float(digits) * units[unit])
    except (ValueError, KeyError) as error:
        raise click.UsageError(f"--memory must be a size such as 500MB or 2GB, but got {text!r}.") from error
    if size < LEAST_MEMORY:
        raise click.UsageError(
            f"--memory must be at least {LEAST_MEMORY // 10**6}MB, but got {text!r}. "
            "Hint: the libraries alone take about 410MB."
        )
    return size


def chosen(ctx: click.Context) -> dict[str, Any]:
    """The options of a call as they came out, for the record of a run."""
    return {key: value for key, value in sorted(ctx.params.items()) if value is not None}
