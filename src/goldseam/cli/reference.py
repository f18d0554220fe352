"""The reference of all commands, written from the code: `python -m goldseam.cli.reference > docs/reference/cli.md`."""

from __future__ import annotations

import inspect
import re
from typing import Final

import click

from goldseam.cli.app import COMMANDS, program

__all__ = ["reference_page"]

HEAD: Final = """# Command line

This page is written from the code by `python -m goldseam.cli.reference`; a test fails when it is not current.
How to do things with it: [Work with files on the command line](../how-to/command-line.md).

| exit code | meaning |
|---|---|
| 0 | done; for `check`: clean |
| 1 | `check` found more damage than allowed |
| 2 | wrong usage, unusable input, or a failure: one sentence and a hint on stderr, a traceback with `--debug` |
| 3 | interrupted by Ctrl-C or SIGTERM; `restore --resume` goes on |

With `--json` the result is one JSON object on stdout and notes go to stderr; a failure is
`{"error": {"type": ..., "message": ..., "hint": ...}}`. The result of `check` is described by
[a JSON schema](#json-of-check).
"""


def reference_page() -> str:
    """The whole page."""
    parts = [HEAD]
    with click.Context(program, info_name="goldseam") as ctx:
        for name in COMMANDS:
            command = program.get_command(ctx, name)
            assert command is not None
            parts.append(_section(command, ctx))
    return "\n".join([*parts, _check_schema()])


def _section(command: click.Command, parent: click.Context) -> str:
    with click.Context(command, info_name=command.name, parent=parent) as ctx:
        usage = " ".join(["goldseam", command.name or "", *command.collect_usage_pieces(ctx)])
        lines = [f"## goldseam {command.name}", "", f"```\n{usage}\n```", "", _prose(command.help or "")]
        rows = [_row(p, ctx) for p in command.params if isinstance(p, click.Option)]
        if rows:
            lines += ["", "| option | meaning |", "|---|---|", *rows]
    return "\n".join(lines) + "\n"


def _prose(text: str) -> str:
    """Help text as Markdown: what click keeps as it is becomes a code block."""
    blocks = re.split(r"\n\s*\n|\n(?=\x08)", inspect.cleandoc(text))
    return "\n\n".join(_block(block) for block in blocks)


def _block(block: str) -> str:
    if not block.startswith("\b"):
        return " ".join(block.split())
    lines = block.removeprefix("\b").strip("\n").split("\n")
    if lines[0].endswith(":"):
        return f"{lines[0]}\n\n```\n{inspect.cleandoc(chr(10).join(lines[1:]))}\n```"
    return "```\n" + "\n".join(lines) + "\n```"


def _row(option: click.Option, ctx: click.Context) -> str:
    record = option.get_help_record(ctx)
    assert record is not None
    names, text = (part.replace("|", "\\|") for part in record)
    return f"| `{names}` | {' '.join(text.split())} |"


def _check_schema() -> str:
    from importlib.resources import files

    text = files("goldseam.cli").joinpath("check.schema.json").read_text(encoding="utf-8")
    return f"## JSON of check\n\n```json\n{text.strip()}\n```"


if __name__ == "__main__":
    print(reference_page())
