"""Goldseam restores damaged tables.

>>> import goldseam as gs
>>> gs.__version__ == __version__
True

Public names are imported when they are first used, so that `import goldseam` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from goldseam.kernel_cache import use_writable_cache

__version__ = "0.1.0"

_HOMES = {
    "AttributeTree": "goldseam.separation",
    "CorruptionSeparator": "goldseam.separation",
    "GEMMEDClassifier": "goldseam.margin",
    "RandomMixedField": "goldseam.field",
    "Restoration": "goldseam.seam",
    "Restorer": "goldseam.restorer",
    "RestoringClassifier": "goldseam.restoring_classifier",
    "Seam": "goldseam.seam",
    "SensorFusionClassifier": "goldseam.margin",
    "TrustWeighter": "goldseam.margin",
    "load": "goldseam.model_file",
}

__all__ = [*_HOMES, "__version__"]

use_writable_cache()

if TYPE_CHECKING:
    from goldseam.field import RandomMixedField as RandomMixedField
    from goldseam.margin import GEMMEDClassifier as GEMMEDClassifier
    from goldseam.margin import SensorFusionClassifier as SensorFusionClassifier
    from goldseam.margin import TrustWeighter as TrustWeighter
    from goldseam.model_file import load as load
    from goldseam.restorer import Restorer as Restorer
    from goldseam.restoring_classifier import RestoringClassifier as RestoringClassifier
    from goldseam.seam import Restoration as Restoration
    from goldseam.seam import Seam as Seam
    from goldseam.separation import AttributeTree as AttributeTree
    from goldseam.separation import CorruptionSeparator as CorruptionSeparator


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'goldseam' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
