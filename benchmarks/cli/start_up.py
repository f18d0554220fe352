"""How long `goldseam --help` takes, beside a bare Python and beside what it must not import."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.harness import seconds, write_results

CASES = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "import click": [sys.executable, "-c", "import click"],
    "goldseam --help": [sys.executable, "-c", "from goldseam.cli import main; main()", "--help"],
    "goldseam restore --help": [sys.executable, "-c", "from goldseam.cli import main; main()", "restore", "--help"],
    "import polars": [sys.executable, "-c", "import polars"],
}


def main(quick: bool) -> None:
    repeats = 3 if quick else 15
    rows = []
    for name, words in CASES.items():
        run = lambda words=words: subprocess.run(words, stdout=subprocess.DEVNULL, check=True)  # noqa: E731
        limit = 0.3 if name == "goldseam --help" else None
        rows.append({"call": name, "seconds": seconds(run, repeats), "limit": limit})
    write_results("cli-start_up", rows, title="Start-up of the command line", quick=quick, notes=f"Best of {repeats}.")
