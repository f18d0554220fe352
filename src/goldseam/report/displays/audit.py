"""What a restorer can and cannot do, as its audit measured it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from goldseam.errors import InputError
from goldseam.report.displays.palette import BACKGROUND, CAUSE_COLOURS, CLEAN, GOLD, INK, require_matplotlib
from goldseam.report.text import clipped

__all__ = ["AuditDisplay"]

MEASURES: Final = {"found": CLEAN, "localised": CAUSE_COLOURS["missing"], "restored": GOLD}
MOST_COLUMNS: Final = 20
LEAST_SHOWN: Final = -0.25


class AuditDisplay:
    """Above, per kind of damage, the share of rows found, how well cells were localised (F1) and how much of the damage was
    undone; below, per column, how much of its spread a repair explains when the cell is gone.

    Undone and explained shares below zero did harm: bars are drawn down to -0.25. Of more than 20 columns the ten best and the
    ten worst are drawn.

    Parameters
    ----------
    damage : sequence of dict
        Lines with the keys kind, found, localised and restored (`restorer.audit_.to_dict()["damage"]`).
    columns : sequence of dict
        Lines with the keys name and restorable (`restorer.audit_.to_dict()["columns"]`).

    Attributes
    ----------
    ax_ : array of two matplotlib Axes
    figure_ : matplotlib Figure
    bars_ : dict of measure -> artists ("found", "localised", "restored", "columns")

    Examples
    --------
    >>> display = AuditDisplay(
    ...     [{"kind": "scale", "found": 0.9, "localised": 0.8, "restored": 0.7}], [{"name": "age", "restorable": 0.4}]
    ... ).plot()
    >>> [round(float(bar.get_width()), 2) for bar in display.bars_["columns"]]
    [0.4]
    """

    def __init__(self, damage: Sequence[Mapping[str, Any]], columns: Sequence[Mapping[str, Any]] = ()) -> None:
        self.damage = list(damage)
        self.columns = list(columns)

    @classmethod
    def from_estimator(cls, restorer: Any, *, ax: Any = None) -> AuditDisplay:
        """What the audit of a fitted restorer measured."""
        report = restorer.audit_.to_dict()
        if not report["damage"]:
            raise InputError(f"There is no audit to draw. {restorer.audit_} Hint: fit with audit=True.")
        return cls(report["damage"], report["columns"]).plot(ax=ax)

    def plot(self, ax: Any = None) -> AuditDisplay:
        """Draw into `ax` (two Axes), or into a new figure."""
        shown = self._shown()
        if ax is None:
            heights = [0.9 + 0.5 * len(self.damage), 0.7 + 0.24 * len(shown)]
            _, ax = require_matplotlib().subplots(
                2, 1, figsize=(6.4, sum(heights)), height_ratios=heights, layout="constrained"
            )
        self.ax_ = np.asarray(ax, dtype=object).ravel()
        if len(self.ax_) != 2:
            raise InputError(f"An audit is drawn into two axes; got {len(self.ax_)}. Hint: plt.subplots(2, 1).")
        self.figure_ = self.ax_[0].figure
        self.bars_ = self._draw_damage(self.ax_[0])
        self.bars_["columns"] = self._draw_columns(self.ax_[1], shown)
        return self

    def _shown(self) -> list[Mapping[str, Any]]:
        known = [row for row in self.columns if row["restorable"] is not None]
        ranked = sorted(known, key=lambda row: -row["restorable"])
        half = MOST_COLUMNS // 2
        return ranked if len(ranked) <= MOST_COLUMNS else [*ranked[:half], *ranked[-half:]]

    def _draw_damage(self, ax: Any) -> dict[str, Any]:
        places = np.arange(len(self.damage))
        bars = {}
        for j, (measure, colour) in enumerate(MEASURES.items()):
            values = _values(self.damage, measure)
            bars[measure] = ax.barh(places + 0.26 * (j - 1), values, 0.24, color=colour, label=measure)
        _dressed(ax, [str(row["kind"]) for row in self.damage])
        ax.legend(frameon=False, fontsize=8, loc="lower left", bbox_to_anchor=(0, 1.0), ncols=3, borderaxespad=0.2)
        return bars

    def _draw_columns(self, ax: Any, shown: Sequence[Mapping[str, Any]]) -> Any:
        bars = ax.barh(np.arange(len(shown)), _values(shown, "restorable"), 0.7, color=GOLD)
        _dressed(ax, [str(row["name"]) for row in shown])
        ax.set_xlabel("share of a column's spread that a repair explains when the cell is gone", fontsize=8)
        return bars


def _values(rows: Sequence[Mapping[str, Any]], key: str) -> NDArray[np.float64]:
    """What was measured, nothing drawn where it was not."""
    values = np.array([np.nan if row.get(key) is None else row[key] for row in rows], dtype=np.float64)
    return np.maximum(np.nan_to_num(values, nan=0.0), LEAST_SHOWN)


def _dressed(ax: Any, names: Sequence[str]) -> None:
    ax.set_yticks(range(len(names)), [clipped(name, 24).replace("$", r"\$") for name in names], fontsize=8)
    ax.tick_params(axis="x", labelsize=8)
    ax.set_xlim(LEAST_SHOWN if any(bar.get_width() < 0 for bar in ax.patches) else 0.0, 1.0)
    ax.axvline(0.0, color=INK, linewidth=0.8)
    ax.grid(axis="x", color=BACKGROUND, linewidth=1.0)
    ax.set_axisbelow(True)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.invert_yaxis()
