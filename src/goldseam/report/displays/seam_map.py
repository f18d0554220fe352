"""A whole table at a glance: where its cells were touched, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from goldseam.report.displays.palette import BACKGROUND, CAUSE_COLOURS, require_matplotlib
from goldseam.report.text import clipped

if TYPE_CHECKING:
    from goldseam.report.ledger import CellMap
    from goldseam.seam import Restoration

__all__ = ["SeamMapDisplay"]


class SeamMapDisplay:
    """Rows across, columns down, coloured by cause; large tables are drawn in blocks, the stronger the more was touched.

    Parameters
    ----------
    cells : CellMap
        Lines of the seam per cause over bands of rows and columns (`goldseam.report.ledger.read_ledger(...).cell_map`).

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    image_ : artist of the map
    legend_ : artist of the legend

    Examples
    --------
    >>> from goldseam import Seam
    >>> from goldseam.report.ledger import read_ledger
    >>> seam = Seam.of(row=[2], column=["b"], cause=["corrupt"])
    >>> display = SeamMapDisplay(read_ledger(seam, ["a", "b"], n_rows=5).cell_map).plot()
    >>> display.image_.get_array().shape  # columns, rows, colours
    (2, 5, 4)
    """

    def __init__(self, cells: CellMap) -> None:
        self.cells = cells

    @classmethod
    def from_restoration(cls, restoration: Restoration, *, ax: Any = None) -> SeamMapDisplay:
        """Draw every line of a restoration's seam."""
        from goldseam.report.ledger import read_ledger

        first_row = int(restoration.facts.get("first_row", 0))
        ledger = read_ledger(restoration.seam, restoration.schema.names, len(restoration.changed), first_row)
        return cls(ledger.cell_map).plot(ax=ax)

    def plot(self, ax: Any = None) -> SeamMapDisplay:
        """Draw into `ax`, or into a new figure."""
        plt = require_matplotlib()
        n_bands = self.cells.counts.shape[2]
        if ax is None:
            _, ax = plt.subplots(figsize=(8, min(7.0, 1.4 + 0.22 * n_bands)), layout="constrained")
        first, last = int(self.cells.row_edges[0]), int(self.cells.row_edges[-1])
        box = (first - 0.5, last - 0.5, n_bands - 0.5, -0.5)
        self.image_ = ax.imshow(_colours(self.cells, plt), extent=box, aspect="auto", interpolation="nearest")
        every = max(1, n_bands // 24)
        names = [_name(self.cells, band) for band in range(0, n_bands, every)]
        ax.set_yticks(range(0, n_bands, every), names, fontsize=8)
        ax.set_xlabel("row")
        ax.spines[:].set_visible(False)
        self.legend_ = _legend(self.cells, ax, plt)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _name(cells: CellMap, band: int) -> str:
    return clipped(cells.names[int(cells.column_edges[band])], 18).replace("$", r"\$")


def _colours(cells: CellMap, plt: Any) -> NDArray[np.float64]:
    """A colour per block (columns, rows, 4): the cause's own, mixed with the ground by the share of cells touched."""
    from matplotlib.colors import to_rgba

    share = cells.shares()
    own = np.array([to_rgba(CAUSE_COLOURS[cause]) for cause in cells.causes])[cells.leading()]
    strength = np.where(share > 0, 0.4 + 0.6 * np.sqrt(share), 0.0)[..., None]
    return (strength * own + (1 - strength) * np.array(to_rgba(BACKGROUND))).transpose(1, 0, 2)


def _legend(cells: CellMap, ax: Any, plt: Any) -> Any:
    present: Sequence[str] = [cause for cause, counts in zip(cells.causes, cells.counts, strict=True) if counts.any()]
    handles = [plt.Rectangle((0, 0), 1, 1, color=CAUSE_COLOURS[cause], label=cause) for cause in present]
    if not handles:
        return None
    place = {"loc": "lower left", "bbox_to_anchor": (0, 1.0), "ncols": len(handles), "borderaxespad": 0.3}
    return ax.legend(handles=handles, frameon=False, fontsize=8, handlelength=1, handleheight=1, **place)
