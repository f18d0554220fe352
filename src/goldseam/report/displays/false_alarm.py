"""Promised and measured share of clean rows that are flagged, over all rates."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldseam.report.displays.palette import CAUSE_COLOURS, CLEAN, GOLD, INK, require_matplotlib

__all__ = ["FalseAlarmDisplay"]

FloatArray = NDArray[np.float64]


class FalseAlarmDisplay:
    """Share of clean rows flagged at every promised rate; on the diagonal the promise is kept exactly.

    Parameters
    ----------
    nominal, measured : arrays
        Promised rates, and the share of clean rows flagged at each.
    n_rows : int
        Number of clean rows measured; the band around the diagonal is two standard deviations wide.
    alarm_rate : float or None
        The rate that the estimator was fitted for.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    line_, band_ : artists

    Examples
    --------
    >>> display = FalseAlarmDisplay(np.array([0.0, 0.1, 0.2]), np.array([0.0, 0.08, 0.21]), 300, 0.1).plot()
    >>> display.ax_.get_xlabel()
    'promised rate'
    """

    def __init__(self, nominal: FloatArray, measured: FloatArray, n_rows: int, alarm_rate: float | None = None) -> None:
        self.nominal = nominal
        self.measured = measured
        self.n_rows = n_rows
        self.alarm_rate = alarm_rate

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, *, ax: Any = None, largest: float = 0.3) -> FalseAlarmDisplay:
        """Measure a fitted `CorruptionSeparator` on clean rows it has not seen."""
        p = np.sort(estimator.p_values(X))
        nominal = np.linspace(0.0, largest, 61)
        measured = np.searchsorted(p, nominal, side="right") / max(1, len(p))
        return cls(nominal, measured, len(p), estimator.alarm_rate).plot(ax=ax)

    def plot(self, ax: Any = None) -> FalseAlarmDisplay:
        """Draw into `ax`, or into a new figure."""
        if ax is None:
            _, ax = require_matplotlib().subplots(figsize=(4.2, 4.0), layout="constrained")
        spread = 2 * np.sqrt(self.nominal * (1 - self.nominal) / max(1, self.n_rows))
        below, above = np.clip(self.nominal - spread, 0, 1), np.clip(self.nominal + spread, 0, 1)
        self.band_ = ax.fill_between(self.nominal, below, above, color=CLEAN, alpha=0.15, linewidth=0)
        ax.plot(self.nominal, self.nominal, color=INK, linewidth=0.8, linestyle="--")
        (self.line_,) = ax.plot(self.nominal, self.measured, color=GOLD, drawstyle="steps-post")
        if self.alarm_rate is not None:
            ax.axvline(self.alarm_rate, color=CAUSE_COLOURS["refused"], linewidth=0.8)
        ax.set(xlabel="promised rate", ylabel="clean rows flagged", title=f"False alarms on {self.n_rows} clean rows")
        self.ax_, self.figure_ = ax, ax.figure
        return self
