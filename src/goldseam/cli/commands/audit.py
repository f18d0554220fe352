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
    audit = restorer.audit_
    if not audit.to_dict()["damage"]:
        raise InputError(
            f"Model {model!r} was fitted without an audit (--no-audit, or fewer than 200 rows). Hint: fit it again."
        )
    console = Console(options["as_json"], options["quiet"], options["log_file"])
    console.result(plain(audit.to_dict()), str(audit))
