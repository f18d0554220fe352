"""`goldseam completion`: a script that lets the shell complete commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from goldseam.errors import ParameterError


@click.command("completion", short_help="Print a script for shell completion.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print a script that completes commands, options and file names.

    \b
    Examples:
      eval "$(goldseam completion bash)"                               # this shell
      goldseam completion zsh > ~/.zfunc/_goldseam                     # every zsh
      goldseam completion fish > ~/.config/fish/completions/goldseam.fish
    """
    from goldseam.cli.app import program

    completer = get_completion_class(shell)
    if completer is None:
        raise ParameterError(f"No completion is known for {shell!r}. Hint: bash, zsh or fish.")
    click.echo(completer(program, {}, "goldseam", "_GOLDSEAM_COMPLETE").source())
