"""The helper that compiles the kernels of a first fit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from goldseam.cli import warm_up
from tests.cli.helpers import ENVIRONMENT, PROGRAM, run
from tests.cli.test_real import correlated

REAL = True
SLEEPER = [sys.executable, "-c", "import time; time.sleep(60)"]


@pytest.fixture
def mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a finished fit is noted, in a folder that is not there yet."""
    path = tmp_path / "cache" / "compiled"
    monkeypatch.setattr(warm_up, "_mark", lambda: path)
    return path


@pytest.fixture
def helpers(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """The helpers that were started, idle ones."""
    started: list[subprocess.Popen[bytes]] = []
    real = subprocess.Popen

    def start(words: list[str], **options: Any) -> subprocess.Popen[bytes]:
        assert words == [sys.executable, "-P", "-m", "goldseam.cli.warm_up"]
        started.append(real(SLEEPER, **options))
        return started[-1]

    monkeypatch.setattr(warm_up.subprocess, "Popen", start)
    monkeypatch.setattr("goldseam.engines.local.n_threads", lambda jobs: 2)
    return started


def test_a_helper_runs_beside_the_first_fit_and_ends_with_it(helpers: Any, mark: Path) -> None:
    with warm_up.compiled_ahead():
        assert [helper.poll() for helper in helpers] == [None]
    assert helpers[0].poll() is not None
    with warm_up.compiled_ahead():
        assert len(helpers) == 1, "the second fit needs none"
    os.utime(mark, (0, 0))  # as if the sources had been changed since
    with warm_up.compiled_ahead():
        assert len(helpers) == 2


def test_a_fit_that_fails_ends_the_helper_and_does_not_count(helpers: Any, mark: Path) -> None:
    def fail() -> None:
        with warm_up.compiled_ahead():
            raise KeyError("a fit that fails")

    with pytest.raises(KeyError):
        fail()
    assert helpers[0].poll() is not None
    assert warm_up.is_first_fit()


def test_no_helper_without_a_second_core(helpers: Any, mark: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goldseam.engines.local.n_threads", lambda jobs: 1)
    with warm_up.compiled_ahead():
        assert helpers == []
    assert not warm_up.is_first_fit()


@pytest.mark.slow
def test_the_helper_compiles_all_that_a_fit_needs_besides_the_field(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "kernels"
    monkeypatch.setitem(ENVIRONMENT, "NUMBA_CACHE_DIR", str(cache))
    subprocess.run([sys.executable, "-P", "-m", "goldseam.cli.warm_up"], env=ENVIRONMENT, check=True)
    by_helper = compiled(cache)
    assert {folder_of(name) for name in by_helper} >= {"conditional", "evidence", "separation"}
    correlated(400, 7).write_csv(tmp_path / "reference.csv")
    correlated(300, 8).write_csv(tmp_path / "incoming.csv")
    out = run("fit", "reference.csv", "-o", "model.seam", "--key", "id", cwd=tmp_path, program=PROGRAM)
    assert out.code == 0, out.err
    assert warm_up.FIRST_FIT in out.err
    out = run("restore", "incoming.csv", "-m", "model.seam", "-o", "out.csv", cwd=tmp_path, program=PROGRAM)
    assert out.code == 0, out.err
    assert {folder_of(name) for name in compiled(cache) - by_helper} <= {"field", "cli"}
    assert any(path.name.startswith("compiled-") for path in cache.rglob("*"))


def compiled(cache: Path) -> set[str]:
    return {str(path.relative_to(cache)) for path in cache.rglob("*.nbc")}


def folder_of(name: str) -> str:
    """The room of a compiled kernel: Numba adds a hash to the name of its folder."""
    return name.split("/", 1)[0].rpartition("_")[0]
