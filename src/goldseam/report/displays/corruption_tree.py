"""The searched tree of one row: how rare it is at every node, and which nodes were declared."""

from __future__ import annotations

from typing import Any

import numpy as np

from goldseam.report.displays.palette import CAUSE_COLOURS, INK, require_matplotlib

__all__ = ["CorruptionTreeDisplay"]

FLOOR = 1e-4  # p-values below are drawn alike


class CorruptionTreeDisplay:
    """Icicle of the tree, the root on top: the darker a node, the rarer the row there; declared nodes are framed.

    Parameters
    ----------
    explanation : Explanation
        What `CorruptionSeparator.explain` returns.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    bars_ : list of patches, one per node

    Examples
    --------
    >>> from goldseam.separation import CorruptionSeparator
    >>> rng = np.random.default_rng(0)
    >>> separator = CorruptionSeparator(alarm_rate=0.1).fit(rng.normal(size=(80, 8)))
    >>> display = CorruptionTreeDisplay.from_estimator(separator, rng.normal(size=8))
    >>> len(display.bars_) == separator.model_.reference.tree.n_nodes
    True
    """

    def __init__(self, explanation: Any) -> None:
        self.explanation = explanation

    @classmethod
    def from_estimator(cls, estimator: Any, row: Any, *, ax: Any = None) -> CorruptionTreeDisplay:
        """Explain one row with a fitted `CorruptionSeparator` and draw its tree."""
        return cls(estimator.explain(row)).plot(ax=ax)

    def plot(self, ax: Any = None) -> CorruptionTreeDisplay:
        """Draw into `ax`, or into a new figure."""
        plt = require_matplotlib()
        if ax is None:
            _, ax = plt.subplots(figsize=(8.0, 3.2), layout="constrained")
        nodes = self.explanation.nodes
        place = {name: i for i, name in enumerate(self._columns_in_order())}
        shade, self.bars_ = plt.get_cmap("YlOrBr"), []
        for node in nodes:
            rarity = np.log(max(node.p_value, FLOOR)) / np.log(FLOOR)
            edge, width = (CAUSE_COLOURS["corrupt"], 2.0) if node.declared else (INK, 0.3)
            (bar,) = ax.barh(
                node.depth,
                len(node.columns),
                left=place[node.columns[0]],
                height=0.9,
                color=shade(float(rarity)),
                edgecolor=edge,
                linewidth=width,
                zorder=3 if node.declared else 2,
            )
            self.bars_.append(bar)
        ax.invert_yaxis()
        verdict = "flagged" if self.explanation.flagged else "not flagged"
        ax.set(xlabel="columns in tree order", ylabel="depth", title=f"{verdict}, p = {self.explanation.p_value:.3g}")
        ax.set_yticks(range(max(node.depth for node in nodes) + 1))
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _columns_in_order(self) -> tuple[str, ...]:
        return next(node.columns for node in self.explanation.nodes if node.depth == 0)
