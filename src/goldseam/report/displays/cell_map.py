"""Rows as they lie: which cells are not believed, how sure that is, and what they were restored to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from goldseam.errors import InputError
from goldseam.report.displays.palette import CAUSE_COLOURS, GOLD, INK, require_matplotlib
from goldseam.summary import rows_before_and_after

if TYPE_CHECKING:
    from goldseam.seam import Restoration

__all__ = ["CellMapDisplay"]

FloatArray = NDArray[np.float64]


class CellMapDisplay:
    """Cells of some rows; those that are not believed are framed (grids) or marked (lines).

    Parameters
    ----------
    observed, restored : float arrays (rows, columns)
    probability : float array (rows, columns)
        Chance of every cell to be overwritten.
    cells : bool array (rows, columns)
        Cells that are not believed.
    shape : tuple of two ints or None
        Grid that the columns lie on; None draws lines.
    titles : sequence of str, optional

    Attributes
    ----------
    ax_ : array of Axes, one line of axes per row
    figure_ : matplotlib Figure

    Examples
    --------
    >>> zero = np.zeros((1, 6))
    >>> display = CellMapDisplay(zero, zero, zero, zero > 0).plot()
    >>> display.ax_.shape
    (1, 2)
    """

    def __init__(
        self,
        observed: FloatArray,
        restored: FloatArray,
        probability: FloatArray,
        cells: NDArray[np.bool_],
        shape: tuple[int, int] | None = None,
        titles: tuple[str, ...] = (),
    ) -> None:
        self.observed = observed
        self.restored = restored
        self.probability = probability
        self.cells = cells
        self.shape = shape
        self.titles = titles

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, *, max_rows: int = 6, ax: Any = None) -> CellMapDisplay:
        """Restore rows with a fitted `CorruptionSeparator` and draw the first ones; numeric arrays only."""
        rows = np.asarray(X)[:max_rows]
        if rows.dtype.kind not in "fiu":
            raise InputError(f"A cell map needs numbers only, got {rows.dtype}. Hint: use the seam of a restoration.")
        result = estimator.restore(X[:max_rows])
        shape = estimator.model_.reference.tree.shape
        grid = shape if shape is not None and len(shape) == 2 and rows.shape[1] == shape[0] * shape[1] else None
        titles = tuple(f"p = {p:.3g}" for p in result.p_values)
        table = np.asarray(result.table, dtype=np.float64)
        return cls(rows.astype(np.float64), table, result.probability, result.cells, grid, titles).plot(ax=ax)

    @classmethod
    def from_restoration(cls, restoration: Restoration, *, max_rows: int = 6, ax: Any = None) -> CellMapDisplay:
        """Draw the rows of a restoration with most damage; without a grid, every column in its own spread."""
        touched = restoration.suspect | restoration.changed
        rows = np.argsort(-touched.sum(axis=1), kind="stable")[:max_rows]
        before, after = rows_before_and_after(restoration, rows)
        shape = restoration.facts.get("grid_shape")
        grid = tuple(shape) if shape and shape[0] * shape[1] == before.shape[1] else None
        if grid is None:
            center, scale = (
                np.array([getattr(c, key) for c in restoration.schema.columns]) for key in ("center", "scale")
            )
            before, after = (before - center) / scale, (after - center) / scale
        titles = tuple(f"row {row + int(restoration.facts.get('first_row', 0))}" for row in rows)
        return cls(before, after, _probabilities(restoration, rows), touched[rows], grid, titles).plot(ax=ax)

    def plot(self, ax: Any = None) -> CellMapDisplay:
        """Draw into an array of axes (one line per row), or into a new figure."""
        across = 3 if self.shape is not None else 2
        if ax is None:
            size = (2.1 * across if self.shape else 9.0, 2.1 * len(self.observed) + 0.3)
            _, ax = require_matplotlib().subplots(
                len(self.observed), across, figsize=size, squeeze=False, layout="constrained"
            )
        axes = np.asarray(ax, dtype=object).reshape(len(self.observed), -1)
        if axes.shape[1] != across:
            raise InputError(f"A cell map of {len(axes)} rows needs {across} axes per row, got {axes.shape[1]}.")
        for i, line in enumerate(axes):
            self._draw_grid(i, line) if self.shape is not None else self._draw_line(i, line)
            if i < len(self.titles):
                line[0].set_title(self.titles[i], fontsize=8)
        self.ax_, self.figure_ = axes, axes[0, 0].figure
        return self

    def _draw_grid(self, i: int, axes: Any) -> None:
        low, high = np.nanmin(self.observed[i]), np.nanmax(self.observed[i])
        for place, values in zip(axes, (self.observed, self.probability, self.restored), strict=True):
            own = values is self.probability
            limits = (0.0, 1.0) if own else (low, high)
            colours = "YlOrBr" if own else "gray_r"
            place.imshow(values[i].reshape(self.shape), cmap=colours, vmin=limits[0], vmax=limits[1])
            if self.cells[i].any():
                colour = GOLD if values is self.restored else CAUSE_COLOURS["corrupt"]
                place.contour(self.cells[i].reshape(self.shape), levels=[0.5], colors=[colour], linewidths=1.2)
            place.set(xticks=[], yticks=[])

    def _draw_line(self, i: int, axes: Any) -> None:
        columns = np.arange(self.observed.shape[1])
        axes[0].plot(columns, self.observed[i], color=INK, linewidth=0.8)
        suspect = np.where(self.cells[i], self.observed[i], np.nan)
        axes[0].plot(columns, suspect, color=CAUSE_COLOURS["corrupt"], marker=".", markersize=4, linewidth=1)
        axes[0].plot(columns, np.where(self.cells[i], self.restored[i], np.nan), color=GOLD, linewidth=2)
        axes[1].bar(columns, self.probability[i], color=CAUSE_COLOURS["corrupt"], width=1.0)
        axes[1].set_ylim(0, 1)


def _probabilities(restoration: Restoration, rows: NDArray[np.int64]) -> FloatArray:
    """The probabilities of damage of the seam, zero where it has no line; those of filled gaps are of their levels."""
    place = {int(row) + int(restoration.facts.get("first_row", 0)): i for i, row in enumerate(rows)}
    out = np.zeros((len(rows), len(restoration.schema.columns)))
    frame = restoration.seam.frame
    lines = frame.filter(frame["cause"] != "missing").select("row", "column", "probability").drop_nulls()
    for row, column, probability in lines.filter(lines["row"].is_in(list(place))).iter_rows():
        out[place[row], restoration.schema.position(column)] = probability
    return out
