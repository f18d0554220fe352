"""The command line: `goldseam fit`, `check`, `restore`, ... on files of any size.

Importing this package costs next to nothing; a command's heavy parts are imported when it runs.
"""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """The entry point of the `goldseam` program."""
    from goldseam.cli.app import run

    run()
