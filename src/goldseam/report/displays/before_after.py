"""Columns before and after a restoration, with the reference behind."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from goldseam.errors import InputError
from goldseam.report.displays.palette import BEHIND, GOLD, INK, require_matplotlib
from goldseam.report.text import clipped, visible

if TYPE_CHECKING:
    from goldseam.seam import Restoration

__all__ = ["BeforeAfterDisplay"]

PANELS: Final = 6
LEVELS: Final = 8


class BeforeAfterDisplay:
    """Distributions of columns before (dashed) and after (gold) a restoration; the reference is filled.

    Everything is counted over fixed bins first, so that a million rows cost no more to draw than a hundred.

    Parameters
    ----------
    columns : sequence of dict
        Columns of a summary (`Restoration.summary()["columns"]`).

    Attributes
    ----------
    ax_ : matplotlib Axes or array of Axes
    figure_ : matplotlib Figure
    artists_ : dict of column name -> list of artists

    Examples
    --------
    >>> counts = {"counts": [1, 3], "below": 0, "above": 1, "missing": 0, "smallest": 0.1, "largest": 9.0}
    >>> display = BeforeAfterDisplay([{"name": "x", "edges": [0.0, 1.0, 2.0], "levels": None, "before": counts,
    ...                                "after": counts | {"above": 0}, "reference": [2, 2]}])
    >>> sorted(display.plot().artists_)
    ['x']
    """

    def __init__(self, columns: Sequence[Mapping[str, Any]]) -> None:
        self.columns = columns

    @classmethod
    def from_restoration(
        cls, restoration: Restoration, *, columns: Sequence[str] | None = None, ax: Any = None
    ) -> BeforeAfterDisplay:
        """Draw the named columns of a restoration, or those with most changes."""
        drawable = [column for column in restoration.summary()["columns"] if column["before"] is not None]
        if columns is None:
            chosen = sorted(drawable, key=lambda column: -sum(column["by_cause"].values()))[:PANELS]
        else:
            chosen = [_named(drawable, name) for name in columns]
        return cls(chosen).plot(ax=ax)

    def plot(self, ax: Any = None) -> BeforeAfterDisplay:
        """Draw into `ax` (an Axes, or one per column), or into a new figure."""
        plt = require_matplotlib()
        if ax is None:
            across = min(3, max(1, len(self.columns)))
            down = max(1, math.ceil(len(self.columns) / across))
            _, ax = plt.subplots(down, across, figsize=(3.6 * across, 2.5 * down), squeeze=False, layout="constrained")
        axes = np.ravel(np.asarray(ax, dtype=object))
        if len(axes) < len(self.columns):
            raise InputError(
                f"{len(self.columns)} columns need as many axes, but got {len(axes)}. Hint: pass columns=[...], or ax=None."
            )
        self.artists_ = {c["name"]: _draw(c, axes[i]) for i, c in enumerate(self.columns)}
        for empty in axes[len(self.columns) :]:
            empty.set_axis_off()
        self.ax_ = axes if len(axes) > 1 else axes[0]
        self.figure_ = axes[0].figure
        return self


def _named(columns: Sequence[Mapping[str, Any]], name: str) -> Mapping[str, Any]:
    for column in columns:
        if column["name"] == name:
            return column
    raise InputError(
        f"Column {name!r} cannot be drawn: it is not among the {len(columns)} modelled columns. "
        "Hint: columns that pass through unchanged have no distribution."
    )


def _draw(column: Mapping[str, Any], ax: Any) -> list[Any]:
    artists = _draw_numbers(column, ax) if column["edges"] else _draw_levels(column, ax)
    ax.set_title(_literal(visible(column["name"], 40)), fontsize=10, loc="left", color=INK)
    ax.spines[["top", "right", "left"]].set_visible(False)
    return artists


def _literal(text: str) -> str:
    """Text that matplotlib does not read as a formula."""
    return text.replace("$", r"\$")


def _shares(counts: Sequence[float]) -> Any:
    return np.asarray(counts, dtype=np.float64) / max(1.0, float(np.sum(counts)))


def _draw_numbers(column: Mapping[str, Any], ax: Any) -> list[Any]:
    edges = column["edges"]
    artists = []
    if column["reference"]:
        artists.append(ax.stairs(_shares(column["reference"]), edges, fill=True, color=BEHIND, label="reference"))
    artists.append(ax.stairs(_shares(column["before"]["counts"]), edges, color=INK, linestyle="--", label="before"))
    artists.append(ax.stairs(_shares(column["after"]["counts"]), edges, color=GOLD, linewidth=2, label="after"))
    beyond = [column[when]["below"] + column[when]["above"] for when in ("before", "after")]
    if any(beyond):
        ax.set_xlabel(f"beyond the axis: {beyond[0]:,} before, {beyond[1]:,} after", fontsize=8)
    ax.set_yticks([])
    return artists


def _draw_levels(column: Mapping[str, Any], ax: Any) -> list[Any]:
    after = _shares(column["after"]["counts"])
    shown = np.sort(np.argsort(-after, kind="stable")[:LEVELS])
    places = np.arange(len(shown))
    artists = []
    if column["reference"]:
        artists.append(ax.barh(places, _shares(column["reference"])[shown], 0.9, color=BEHIND, label="reference"))
    artists.append(ax.barh(places - 0.2, _shares(column["before"]["counts"])[shown], 0.3, color=INK, label="before"))
    artists.append(ax.barh(places + 0.2, after[shown], 0.3, color=GOLD, label="after"))
    ax.set_yticks(places, [_literal(clipped(column["levels"][i], 14)) for i in shown], fontsize=8)
    ax.invert_yaxis()
    return artists
