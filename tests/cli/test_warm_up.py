"""The helper that compiles the kernels of a first fit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from goldseam.cli import warm_up
from goldseam.separation.kernels import nearest_rows
from tests.cli.helpers import ENVIRONMENT, PROGRAM, run
from tests.cli.test_real import correlated

REAL = True
SLEEPER = [sys.executable, "-c", "import time; time.sleep(60)"]


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


def test_a_helper_is_started_once_and_ended_with_the_block(helpers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm_up, "is_compiled", lambda kernel: False)
    states = []

    def fail() -> None:
        with warm_up.compiled_ahead():
            states.extend(helper.poll() for helper in helpers)
            raise KeyError("a fit that fails")

    with pytest.raises(KeyError):
        fail()
    assert states == [None]
    assert [helper.poll() is not None for helper in helpers] == [True]


@pytest.mark.parametrize(("compiled", "cores"), [(True, 2), (False, 1)])
def test_no_helper_without_need_or_a_second_core(
    helpers: Any, monkeypatch: pytest.MonkeyPatch, compiled: bool, cores: int
) -> None:
    monkeypatch.setattr(warm_up, "is_compiled", lambda kernel: compiled)
    monkeypatch.setattr("goldseam.engines.local.n_threads", lambda jobs: cores)
    with warm_up.compiled_ahead():
        assert helpers == []


def test_a_kernel_is_compiled_when_its_index_is_newer_than_its_source(tmp_path: Path) -> None:
    kernel = SimpleNamespace(py_func=nearest_rows.py_func, stats=SimpleNamespace(cache_path=str(tmp_path)))
    assert not warm_up.is_compiled(kernel)
    version = f"py{sys.version_info.major}{sys.version_info.minor}"
    index = tmp_path / f"kernels.nearest_rows-12.{version}.nbi"
    index.touch()
    assert warm_up.is_compiled(kernel)
    os.utime(index, (0, 0))
    assert not warm_up.is_compiled(kernel)


@pytest.mark.slow
def test_the_helper_compiles_all_that_a_fit_needs_besides_the_field(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "kernels"
    monkeypatch.setitem(ENVIRONMENT, "NUMBA_CACHE_DIR", str(cache))
    subprocess.run([sys.executable, "-P", "-m", "goldseam.cli.warm_up"], env=ENVIRONMENT, check=True)
    by_helper = compiled(cache)
    assert any("nearest_rows" in name for name in by_helper)
    correlated(400, 7).write_csv(tmp_path / "reference.csv")
    correlated(300, 8).write_csv(tmp_path / "incoming.csv")
    out = run("fit", "reference.csv", "-o", "model.seam", "--key", "id", cwd=tmp_path, program=PROGRAM)
    assert out.code == 0, out.err
    assert warm_up.FIRST_FIT not in out.err
    out = run("restore", "incoming.csv", "-m", "model.seam", "-o", "out.csv", cwd=tmp_path, program=PROGRAM)
    assert out.code == 0, out.err
    rest = {folder for folder, _ in (name.split("/", 1) for name in compiled(cache) - by_helper)}
    assert {folder.rpartition("_")[0] for folder in rest} <= {"field", "cli"}


def compiled(cache: Path) -> set[str]:
    return {str(path.relative_to(cache)) for path in cache.rglob("*.nbc")}
