"""The graph of a mixed field: which columns depend on each other given the rest, and how strongly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from goldseam.errors import ParameterError
from goldseam.field.potentials import Edge
from goldseam.report.displays.palette import CLEAN, GOLD, INK, require_matplotlib

__all__ = ["MixedGraphDisplay"]


class MixedGraphDisplay:
    """Columns on a circle, numbers as discs and categories as squares; the width of an edge is its strength.

    Strengths of number-number, number-category and category-category edges have different units, so each kind is scaled
    by its own largest.

    >>> from goldseam.field import Edge
    >>> display = MixedGraphDisplay([Edge("age", "job", "cd", 0.8)], numbers=["age"], categories=["job"])
    >>> len(display.edges)
    1
    """

    def __init__(self, edges: Sequence[Edge], *, numbers: Sequence[str], categories: Sequence[str]) -> None:
        self.edges = tuple(edges)
        self.numbers = tuple(numbers)
        self.categories = tuple(categories)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, max_edges: int = 60) -> Self:
        """Draw the graph of a fitted `RandomMixedField`."""
        names = [[column.name for column in part] for part in (estimator.schema_.numbers, estimator.schema_.categories)]
        return cls(estimator.edges_, numbers=names[0], categories=names[1]).plot(ax=ax, max_edges=max_edges)

    def plot(self, ax: Any = None, *, max_edges: int = 60) -> Self:
        """Draw the strongest edges; the artists stay in `ax_`, `figure_` and `lines_`."""
        if max_edges < 1:
            raise ParameterError(f"max_edges must be at least 1; got {max_edges}. Hint: leave it out.")
        plt = require_matplotlib()
        if ax is None:
            _, ax = plt.subplots(figsize=(7, 7))
        self.ax_, self.figure_ = ax, ax.figure
        place = self._places()
        self.lines_ = [
            ax.plot(
                *zip(place[edge.first], place[edge.second], strict=True),
                color=GOLD if edge.kind == "cd" else INK,
                alpha=0.15 + 0.75 * weight,
                linewidth=0.5 + 4 * weight,
                zorder=1,
            )[0]
            for weight, edge in self._strongest(max_edges)
        ]
        self._draw_columns(place)
        ax.set_aspect("equal")
        ax.set_axis_off()
        ax.set_title(f"{len(self.edges)} edges between {len(place)} columns")
        return self

    def _places(self) -> dict[str, tuple[float, float]]:
        names = (*self.numbers, *self.categories)
        turn = 2 * np.pi * np.arange(len(names)) / max(len(names), 1)
        return {name: (float(np.cos(a)), float(np.sin(a))) for name, a in zip(names, turn, strict=True)}

    def _strongest(self, count: int) -> list[tuple[float, Edge]]:
        """Edges with their strength relative to the largest of their kind, strongest first."""
        top = {
            kind: max((e.strength for e in self.edges if e.kind == kind), default=1.0) for kind in ("cc", "cd", "dd")
        }
        scaled = [(edge.strength / top[edge.kind], edge) for edge in self.edges]
        return sorted(scaled, key=lambda pair: -pair[0])[:count]

    def _draw_columns(self, place: dict[str, tuple[float, float]]) -> None:
        for names, marker, colour in ((self.numbers, "o", CLEAN), (self.categories, "s", GOLD)):
            spots = np.array([place[name] for name in names]).reshape(-1, 2)
            self.ax_.scatter(spots[:, 0], spots[:, 1], s=90, marker=marker, color=colour, edgecolor=INK, zorder=2)
        for name, (x, y) in place.items():
            side = "left" if x >= 0 else "right"
            self.ax_.text(1.08 * x, 1.08 * y, name, ha=side, va="center", fontsize=8, color=INK, zorder=3)
