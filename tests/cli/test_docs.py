"""The docs say what the code does."""

from __future__ import annotations

import re
from pathlib import Path

from goldseam.cli.app import COMMANDS
from goldseam.cli.reference import reference_page

DOCS = Path(__file__).parents[2] / "docs"


def test_the_reference_is_current() -> None:
    have = (DOCS / "reference" / "cli.md").read_text()
    assert have.strip() == reference_page().strip(), "run: python -m goldseam.cli.reference > docs/reference/cli.md"


def test_the_how_to_uses_options_that_exist() -> None:
    page, known = (DOCS / "how-to" / "command-line.md").read_text(), reference_page()
    for option in set(re.findall(r"--[a-z][a-z-]+", page)):
        assert option in known, option
    for command in set(re.findall(r"goldseam ([a-z]+) ", page)):
        assert command in COMMANDS, command
