"""What the tests of the command line share: run it in this process, or as a real one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PROGRAM = [sys.executable, "-c", "from goldseam.cli import main; main()"]
STAND_IN = [sys.executable, str(Path(__file__).with_name("stand_in.py"))]
ENVIRONMENT = {
    **os.environ,
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "POLARS_MAX_THREADS": "1",
    "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]),
}


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def run(
    *words: str | Path,
    stdin: bytes | None = None,
    cwd: Path | None = None,
    program: list[str] = STAND_IN,
    **options: Any,
) -> Outcome:
    """Run `goldseam` as a process of its own, with the stand-in restorer unless told otherwise."""
    done = subprocess.run(
        [*program, *map(str, words)], input=stdin, capture_output=True, cwd=cwd, env=ENVIRONMENT, check=False, **options
    )
    return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())


def start(
    *words: str | Path, cwd: Path | None = None, program: list[str] = STAND_IN, **options: Any
) -> subprocess.Popen[bytes]:
    """Start `goldseam` and return while it runs."""
    return subprocess.Popen(
        [*program, *map(str, words)],
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


def expected(path: Path, medians: dict[str, str]) -> bytes:
    """What the stand-in makes of the damaged CSV: 99.5 and empty cells become the medians, all else stays."""
    lines = path.read_bytes().split(b"\n")
    for i, line in enumerate(lines[1:-1], 1):
        cells = line.split(b",")
        if cells[1] == b"99.5":
            cells[1] = medians["v"].encode()
        if cells[2] == b"":
            cells[2] = medians["k"].encode()
        lines[i] = b",".join(cells)
    return b"\n".join(lines)
