"""`goldseam info`: what is in a model file."""

from __future__ import annotations

from typing import Any

import click

from goldseam.cli.options import shared_options


@click.command("info", short_help="Show what is in a model file.")
@click.argument("model", metavar="MODEL")
@shared_options
def command(model: str, **options: Any) -> None:
    """Show the kind of a model, its columns, the version that wrote it and its hash.

    \b
    Examples:
      goldseam info factory.seam
      goldseam info factory.seam --json | jq '.columns[].name'
    """
    from pathlib import Path

    from goldseam.cli.console import Console
    from goldseam.cli.runs import file_hash
    from goldseam.cli.session import load_model

    loaded = load_model(model)
    path = Path(model)
    data = {
        "file": path.name,
        "model": type(loaded).__name__,
        "bytes": path.stat().st_size,
        "sha256": file_hash(path),
        **_header(path),
        "settings": _settings(loaded),
        "columns": _columns(loaded),
    }
    Console(options["as_json"], options["quiet"], options["log_file"]).result(data, _text(data))


def _header(path: Any) -> dict[str, Any]:
    """What the file says about itself, without its arrays."""
    import json

    with path.open("rb") as file:
        metadata = json.loads(file.read(int.from_bytes(file.read(8), "little")))["__metadata__"]
    return {"format_version": int(metadata["format_version"]), "goldseam": metadata["goldseam"]}


def _settings(model: Any) -> dict[str, Any]:
    from goldseam.summary import plain

    parameters = model.get_params(deep=False) if hasattr(model, "get_params") else {}
    return {name: plain(value) for name, value in parameters.items()}


def _columns(model: Any) -> list[dict[str, Any]]:
    schema = getattr(model, "schema_", None) or getattr(model, "schema", None)
    if schema is None:
        return []
    return [
        {"name": c.name, "kind": c.kind.value, "modelled_as": c.modelled_as, "levels": len(c.levels) or None}
        for c in schema.columns
    ]


def _text(data: dict[str, Any]) -> str:
    from goldseam.cli.console import count, table

    head = [
        f"{data['file']}: {data['model']}, {data['bytes']:,} bytes, written by Goldseam {data['goldseam']} "
        f"(format {data['format_version']})",
        f"sha256 {data['sha256']}",
    ]
    settings = ", ".join(f"{name}={value!r}" for name, value in data["settings"].items() if value is not None)
    head += [f"settings: {settings}"] if settings else []
    rows = [[c["name"], c["kind"], c["modelled_as"], c["levels"] or ""] for c in data["columns"][:50]]
    if rows:
        head += ["", table(["column", "kind", "modelled as", "levels"], rows, right=[3])]
    hidden = len(data["columns"]) - len(rows)
    return "\n".join(head + ([f"... and {count(hidden, 'more column')}"] if hidden > 0 else []))
