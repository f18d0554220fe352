from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import goldseam
from goldseam import kernel_cache

CODE = """
import os
import numpy as np
from goldseam.separation.search import entry_levels
from goldseam.separation.tree import AttributeTree
print(entry_levels(AttributeTree.interval(2), np.array([[0.1, 0.2, 0.3]]))[1].tolist(), os.environ["NUMBA_CACHE_DIR"])
"""


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    monkeypatch.setattr(kernel_cache, "_can_write", lambda place: False)
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setitem(sys.modules, "numba", SimpleNamespace(config=SimpleNamespace(CACHE_DIR="")))
    yield tmp_path
    os.environ.pop("NUMBA_CACHE_DIR", None)


def test_a_cache_that_can_be_written_is_left_alone(monkeypatch):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    kernel_cache.use_writable_cache()
    assert "NUMBA_CACHE_DIR" not in os.environ


def test_without_one_a_private_folder_is_named(nowhere):
    kernel_cache.use_writable_cache()
    folder = Path(os.environ["NUMBA_CACHE_DIR"])
    assert folder.parent == nowhere
    assert folder.stat().st_mode & 0o777 == 0o700
    assert str(folder) == sys.modules["numba"].config.CACHE_DIR
    kernel_cache.use_writable_cache()
    assert os.environ["NUMBA_CACHE_DIR"] == str(folder)


def test_a_folder_that_others_can_fill_is_not_used(nowhere):
    if not hasattr(os, "getuid"):
        pytest.skip("no user numbers here")
    open_to_all = nowhere / f"goldseam-kernels-{os.getuid()}"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    kernel_cache.use_writable_cache()
    assert Path(os.environ["NUMBA_CACHE_DIR"]) != open_to_all


def test_what_can_be_written_is_judged_by_the_nearest_folder_that_exists(tmp_path):
    assert kernel_cache._can_write(str(tmp_path / "a" / "b"))
    (tmp_path / "file").touch()
    assert not kernel_cache._can_write(str(tmp_path / "file"))


@pytest.mark.skipif(sys.platform == "win32", reason="needs /dev/null")
def test_kernels_work_where_nothing_can_be_written(tmp_path):
    """Nothing beside the package and no home: numba alone would refuse to import the kernels."""
    package = tmp_path / "goldseam"
    shutil.copytree(Path(goldseam.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in (package, *(path for path in package.rglob("*") if path.is_dir())):
        (folder / "__pycache__").touch()  # a file in its place stops even the administrator
    kept = {k: v for k, v in os.environ.items() if k not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    (tmp_path / "tmp").mkdir()
    places = {"HOME": "/dev/null", "PYTHONPATH": str(tmp_path), "TMPDIR": str(tmp_path / "tmp")}
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, env=kept | places, check=False)
    assert done.returncode == 0, done.stderr
    assert "[[0.2, 0.3]]" in done.stdout
    folder = Path(done.stdout.split()[-1])
    assert folder.parent == tmp_path / "tmp"
    assert any(folder.rglob("*.nbi"))
