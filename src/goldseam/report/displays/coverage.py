"""How often the truth lies inside the interval: promised against measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from goldseam.errors import InputError
from goldseam.report.displays.palette import GOLD, INK, require_matplotlib
from goldseam.report.text import clipped

if TYPE_CHECKING:
    from goldseam.seam import Restoration

__all__ = ["CoverageDisplay"]


class CoverageDisplay:
    """Measured coverage of groups of intervals, with two standard deviations, against the promised one.

    Parameters
    ----------
    names : sequence of str
        What was measured: columns, kinds of damage.
    measured : array of shape (n_groups,)
        Share of intervals that hold the truth.
    n : array of shape (n_groups,), optional
        Intervals per group; without it no spread is drawn.
    nominal : float
        The promised coverage.

    Attributes
    ----------
    sd_ : array of shape (n_groups,) or None
        Standard deviation of a measured share if the promise holds.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    points_ : artist of the measured shares
    nominal_ : artist of the promised one

    Examples
    --------
    >>> display = CoverageDisplay.from_predictions([1.0, 2.0, 3.0], [0.0, 0.0, 0.0], [2.0, 2.0, 2.0], nominal=0.9)
    >>> display.measured.round(2)
    array([0.67])
    """

    def __init__(
        self, names: Sequence[str], measured: ArrayLike, *, nominal: float, n: ArrayLike | None = None
    ) -> None:
        self.names = list(names)
        self.measured = np.asarray(measured, dtype=np.float64)
        self.nominal = nominal
        self.n = None if n is None else np.asarray(n)

    @classmethod
    def from_predictions(
        cls,
        truth: ArrayLike,
        low: ArrayLike,
        high: ArrayLike,
        *,
        nominal: float,
        groups: ArrayLike | None = None,
        ax: Any = None,
    ) -> CoverageDisplay:
        """Count, per group, how many intervals hold the truth; intervals or truths that are NaN are left out."""
        value, lowest, highest = (np.asarray(part, dtype=np.float64) for part in (truth, low, high))
        if not value.shape == lowest.shape == highest.shape:
            raise InputError(
                f"truth, low and high must have one shape; got {value.shape}, {lowest.shape} and {highest.shape}. "
                "Hint: pass one interval per true value."
            )
        names = np.full(value.shape, "all") if groups is None else np.asarray(groups)
        known = ~(np.isnan(value) | np.isnan(lowest) | np.isnan(highest))
        inside = (lowest <= value) & (value <= highest)
        labels = list(dict.fromkeys(names[known].tolist()))
        n = np.array([(names[known] == label).sum() for label in labels])
        held = np.array([inside[known][names[known] == label].sum() for label in labels])
        return cls([str(label) for label in labels], held / np.maximum(n, 1), nominal=nominal, n=n).plot(ax=ax)

    @classmethod
    def from_restoration(
        cls, restoration: Restoration, truth: Any, *, nominal: float | None = None, ax: Any = None
    ) -> CoverageDisplay:
        """Compare the intervals of a seam with the table as it really was, column by column."""
        lines = restoration.seam.frame.select("row", "column", "low", "high").drop_nulls()
        positions = np.array([restoration.schema.position(name) for name in lines["column"]], dtype=np.int64)
        values = _numbers(restoration, truth)[
            lines["row"].to_numpy() - int(restoration.facts.get("first_row", 0)), positions
        ]
        promised = _promised(restoration) if nominal is None else nominal
        return cls.from_predictions(
            values, lines["low"].to_numpy(), lines["high"].to_numpy(), nominal=promised, groups=lines["column"].to_numpy(), ax=ax
        )  # fmt: skip

    @classmethod
    def from_estimator(cls, restorer: Any, *, ax: Any = None) -> CoverageDisplay:
        """What the audit of a fitted restorer measured, by kind of damage."""
        rows = [row for row in restorer.audit_.to_dict().get("damage") or [] if row.get("coverage") is not None]
        names = [" ".join(filter(None, [row["kind"], row.get("size")])) for row in rows]
        known = all(row.get("interval_cells") is not None for row in rows)
        n = [row["interval_cells"] // row.get("times", 1) for row in rows] if known else None
        return cls(names, [row["coverage"] for row in rows], nominal=restorer.coverage, n=n).plot(ax=ax)

    @property
    def sd_(self) -> NDArray[np.float64] | None:
        return None if self.n is None else np.sqrt(self.nominal * (1 - self.nominal) / np.maximum(self.n, 1))

    def plot(self, ax: Any = None) -> CoverageDisplay:
        """Draw into `ax`, or into a new figure."""
        plt = require_matplotlib()
        if ax is None:
            _, ax = plt.subplots(figsize=(5.5, 1.2 + 0.28 * len(self.names)), layout="constrained")
        places = np.arange(len(self.names))
        spread = None if self.sd_ is None else 2 * self.sd_
        self.nominal_ = ax.axvline(self.nominal, color=INK, linewidth=1.2, label=f"promised {self.nominal:.0%}")
        self.points_ = ax.errorbar(
            self.measured, places, xerr=spread, fmt="o", color=GOLD, ecolor=INK, markeredgecolor=INK, label="measured"
        )  # fmt: skip
        ax.set_yticks(places, [clipped(name, 30).replace("$", r"\$") for name in self.names], fontsize=8)
        ax.set_xlabel("share of intervals that hold the truth")
        ax.set_xlim(right=1.005)
        ax.margins(y=0.15)
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False, fontsize=8, loc="lower left", bbox_to_anchor=(0, 1.0), ncols=2, borderaxespad=0.2)
        ax.invert_yaxis()
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _numbers(restoration: Restoration, truth: Any) -> NDArray[np.float64]:
    """The numbers of a table at their positions in the schema; NaN for columns that are not numbers."""
    from goldseam.tables import Table

    blocks = Table.read(truth).encode(restoration.schema)
    cells = np.full((len(blocks), len(restoration.schema.columns)), np.nan)
    cells[:, list(restoration.schema.number_positions)] = blocks.numbers
    return cells


def _promised(restoration: Restoration) -> float:
    for promise in restoration.facts.get("promises", ()):
        if "coverage" in promise["name"] and promise.get("nominal") is not None:
            return float(promise["nominal"])
    raise InputError(
        "The restoration does not say which coverage it promises. Hint: pass nominal=0.9, or what you asked for."
    )
