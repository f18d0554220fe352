"""A place where compiled kernels may be kept.

Numba keeps them beside the source or in the user's cache folder, and refuses to import a kernel when it may write to
neither: a service account without a home, a read-only image. Then a private folder of the user's own is named.
"""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

__all__ = ["use_writable_cache"]

VARIABLE = "NUMBA_CACHE_DIR"


def use_writable_cache() -> None:
    """Name a cache folder where none would be found."""
    places = (Path(__file__).parent, Path(os.environ.get("XDG_CACHE_HOME", Path("~/.cache").expanduser())))
    if VARIABLE not in os.environ and not any(_can_write(place) for place in places):
        os.environ[VARIABLE] = str(_private_folder())


def _can_write(place: Path) -> bool:
    nearest = next((p for p in (place, *place.parents) if os.path.exists(p)), None)
    return nearest is not None and nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)


def _private_folder() -> Path:
    """A folder that nobody else can have filled: compiled code is run."""
    if not hasattr(os, "getuid"):  # Windows: temporary folders are the user's own
        return Path(tempfile.mkdtemp(prefix="goldseam-kernels-"))
    path = Path(tempfile.gettempdir()) / f"goldseam-kernels-{os.getuid()}"
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        about = path.lstat()
    except OSError:
        return Path(tempfile.mkdtemp(prefix="goldseam-kernels-"))
    is_ours = stat.S_ISDIR(about.st_mode) and about.st_uid == os.getuid() and not about.st_mode & 0o077
    return path if is_ours else Path(tempfile.mkdtemp(prefix="goldseam-kernels-"))
