"""The program: its commands by name, loaded when they are asked for."""

from __future__ import annotations

import sys
from difflib import get_close_matches
from importlib import import_module
from typing import Final

import click

from goldseam import __version__
from goldseam.cli.exits import Guard

__all__ = ["COMMANDS", "program", "run"]

COMMANDS: Final = (
    "demo", "fit", "check", "restore", "explain", "report", "audit", "train", "predict", "bench", "corrupt", "info",
    "completion",
)  # fmt: skip


class LazyGroup(click.Group):
    """A group whose commands live in modules of the same name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order a newcomer needs them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"goldseam.cli.commands.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that was named; a slip of the finger gets a suggestion."""
        near = get_close_matches(args[0], COMMANDS, 1) if args[0] not in COMMANDS else []
        if near:
            raise click.UsageError(f"No such command {args[0]!r}. Hint: did you mean {near[0]}?", ctx)
        return super().resolve_command(ctx, args)


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, "-V", "--version", prog_name="goldseam")
def program() -> None:
    """Restore damaged tables: find the cells that cannot be believed, mend them, keep every change on record.

    \b
    First time:
      goldseam demo
    \b
    The main job:
      goldseam fit reference.csv -o factory.seam
      goldseam check incoming.csv -m factory.seam
      goldseam restore incoming.csv -m factory.seam -o restored.csv

    Exit codes: 0 done or clean, 1 findings (check), 2 usage or bad input, 3 interrupted.
    """


def run(arguments: list[str] | None = None) -> None:
    """Run the program and exit with its code."""
    words = sys.argv[1:] if arguments is None else arguments
    with Guard(debug="--debug" in words, as_json="--json" in words) as guard:
        result = program.main(words, prog_name="goldseam", standalone_mode=False)
        guard.code = result if isinstance(result, int) else 0
    sys.exit(guard.code)
