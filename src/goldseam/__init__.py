"""Goldseam restores damaged tables.

>>> import goldseam as gs
>>> gs.__version__ == __version__
True

Public names are imported when they are first used, so that `import goldseam` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "Restoration": "goldseam.seam",
    "Seam": "goldseam.seam",
}

__all__ = [*_HOMES, "__version__"]

if TYPE_CHECKING:
    from goldseam.seam import Restoration as Restoration
    from goldseam.seam import Seam as Seam


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'goldseam' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
