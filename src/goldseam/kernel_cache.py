"""A place where compiled kernels may be kept.

Numba keeps them beside the source or in the user's cache folder, and refuses to import a kernel when it may write to
neither: a service account without a home, a read-only image. Then a private folder of the user's own is named, when
the package is imported.
"""

from __future__ import annotations

import os
import sys

__all__ = ["use_writable_cache"]

VARIABLE = "NUMBA_CACHE_DIR"


def use_writable_cache() -> None:
    """Name a cache folder where none would be found."""
    beside = os.path.join(os.path.dirname(__file__), "__pycache__")
    home = os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache"))
    if VARIABLE in os.environ or _can_write(beside) or _can_write(home):
        return
    os.environ[VARIABLE] = _private_folder()
    if "numba" in sys.modules:  # it has read its settings already
        sys.modules["numba"].config.CACHE_DIR = os.environ[VARIABLE]


def _can_write(place: str) -> bool:
    while not os.path.exists(place) and place != os.path.dirname(place):
        place = os.path.dirname(place)
    return os.path.isdir(place) and os.access(place, os.W_OK | os.X_OK)


def _private_folder() -> str:
    """A folder that nobody else can have filled: compiled code is run."""
    import stat
    import tempfile

    if not hasattr(os, "getuid"):  # Windows: temporary folders are the user's own
        return tempfile.mkdtemp(prefix="goldseam-kernels-")
    path = os.path.join(tempfile.gettempdir(), f"goldseam-kernels-{os.getuid()}")
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        about = os.lstat(path)
    except OSError:
        return tempfile.mkdtemp(prefix="goldseam-kernels-")
    is_ours = stat.S_ISDIR(about.st_mode) and about.st_uid == os.getuid() and not about.st_mode & 0o077
    return path if is_ours else tempfile.mkdtemp(prefix="goldseam-kernels-")
