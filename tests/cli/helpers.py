"""What the tests of the command line share: run it in this process, or as a real one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROGRAM = [sys.executable, "-c", "from goldseam.cli import main; main()"]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def run(*words: str | Path, stdin: bytes | None = None, cwd: Path | None = None, **options: Any) -> Outcome:
    """Run `goldseam` as a process of its own."""
    done = subprocess.run(
        [*PROGRAM, *map(str, words)], input=stdin, capture_output=True, cwd=cwd, env=ENVIRONMENT, check=False, **options
    )
    return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())


def start(*words: str | Path, cwd: Path | None = None, **options: Any) -> subprocess.Popen[bytes]:
    """Start `goldseam` and return while it runs."""
    return subprocess.Popen(
        [*PROGRAM, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=cwd,
        env=ENVIRONMENT,
        **options,
    )


def call(capsys: Any, *words: str | Path) -> Outcome:
    """Run `goldseam` in this process: fast, but without signals and pipes."""
    from goldseam.cli.app import run as run_here

    capsys.readouterr()
    code = 0
    try:
        run_here([str(word) for word in words])
    except SystemExit as end:
        code = int(end.code or 0)
    captured = capsys.readouterr()
    return Outcome(code, captured.out, captured.err)
