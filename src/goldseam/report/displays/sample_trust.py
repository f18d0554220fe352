"""Trust of training rows against their field: which rows a classifier does not believe, and why."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldseam.report.displays.palette import CAUSE_COLOURS, CLEAN, INK, require_matplotlib

__all__ = ["SampleTrustDisplay"]

FloatArray = NDArray[np.float64]

LOWEST_SHOWN = -15.0


class SampleTrustDisplay:
    """Every training row by its field (left of 0: in a sparse region, or repeating readings) and its trust.

    Rows low on the right were distrusted for their loss: they look ordinary, but the classifier contradicts their label.

    Parameters
    ----------
    field, trust : arrays (rows,)
        `field_` and `sample_trust_` of the fitted estimator.
    prior : float
        Rows with less trust than this are flagged.
    highlight : bool array (rows,) or None
        Rows to ring, for instance those known to be bad.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    trusted_, flagged_, ringed_ : artists (`ringed_` is None without `highlight`)

    Examples
    --------
    >>> display = SampleTrustDisplay(np.array([1.2, -4.0]), np.array([0.9, 0.01]), 0.5).plot()
    >>> display.ax_.get_title()
    '1 of 2 rows distrusted'
    """

    def __init__(
        self, field: FloatArray, trust: FloatArray, prior: float = 0.5, highlight: NDArray[np.bool_] | None = None
    ) -> None:
        self.field = field
        self.trust = trust
        self.prior = prior
        self.highlight = highlight

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, highlight: NDArray[np.bool_] | None = None, ax: Any = None
    ) -> SampleTrustDisplay:
        """From a fitted `GEMMEDClassifier` or `TrustWeighter`."""
        return cls(estimator.field_, estimator.sample_trust_, estimator.trust_prior, highlight).plot(ax=ax)

    def plot(self, ax: Any = None) -> SampleTrustDisplay:
        """Draw into `ax`, or into a new figure."""
        if ax is None:
            _, ax = require_matplotlib().subplots(figsize=(5.2, 3.6), layout="constrained")
        shown = np.maximum(self.field, LOWEST_SHOWN)
        flagged = self.trust < self.prior
        self.trusted_ = ax.scatter(shown[~flagged], self.trust[~flagged], s=10, color=CLEAN, label="trusted")
        self.flagged_ = ax.scatter(
            shown[flagged], self.trust[flagged], s=16, marker="x", color=CAUSE_COLOURS["corrupt"], label="distrusted"
        )
        self.ringed_ = None
        if self.highlight is not None:
            at = np.flatnonzero(self.highlight)
            self.ringed_ = ax.scatter(
                shown[at], self.trust[at], s=44, facecolors="none", edgecolors=INK, linewidths=0.8, label="marked"
            )
        ax.axhline(self.prior, color=INK, linewidth=0.8, linestyle="--")
        ax.axvline(0.0, color=CAUSE_COLOURS["refused"], linewidth=0.8)
        ax.set(xlabel=f"field (shown from {LOWEST_SHOWN:g})", ylabel="trust", ylim=(-0.03, 1.03))
        ax.set_title(f"{int(flagged.sum())} of {len(flagged)} rows distrusted")
        ax.legend(fontsize=8, frameon=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self
