"""One palette for every picture: a colour per cause (after Okabe and Ito, safe for colour-blind readers), gold for repairs."""

from __future__ import annotations

from typing import Any, Final

from goldseam.errors import MissingDependencyError

__all__ = ["BACKGROUND", "BEHIND", "CAUSE_COLOURS", "CLEAN", "GOLD", "INK", "require_matplotlib"]

GOLD: Final = "#E69F00"
INK: Final = "#1B1B1B"
CLEAN: Final = "#0072B2"
BACKGROUND: Final = "#F4F1EA"
BEHIND: Final = "#DDD3BF"  # the reference, filled, behind what is compared with it

CAUSE_COLOURS: Final[dict[str, str]] = {
    "corrupt": "#D55E00",
    "missing": "#56B4E9",
    "noise": "#009E73",
    "unseen": "#CC79A7",
    "refused": "#555555",
}


def require_matplotlib() -> Any:
    """`matplotlib.pyplot`, or an error that names the extra."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise MissingDependencyError(
            "Plots need matplotlib, which is not installed. Hint: pip install 'goldseam[plot]'."
        ) from error
    return plt
