"""`goldseam audit`: what a model can and cannot see, as measured when it was fitted."""

from __future__ import annotations

from typing import Any

import click

from goldseam.cli.options import shared_options


@click.command("audit", short_help="What a model can and cannot see.")
@click.argument("model", metavar="MODEL")
@shared_options
def command(model: str, **options: Any) -> None:
    """Show what the self-audit measured at fit: damage found, localised and restored, by kind; what it cannot see.

    \b
    Examples:
      goldseam audit factory.seam
      goldseam audit factory.seam --json | jq '.damage[] | {kind, found}'
    """
    from goldseam.cli.console import Console
    from goldseam.cli.session import load_restorer
    from goldseam.errors import InputError
    from goldseam.summary import plain

    restorer = load_restorer(model)
    audit = getattr(restorer, "audit_", None)
    if audit is None:
        raise InputError(f"Model {model!r} was fitted without an audit. Hint: fit it again without --no-audit.")
    console = Console(options["as_json"], options["quiet"], options["log_file"])
    console.result(plain(audit.to_dict()), str(audit))
