"""Why a row was flagged, or was not: the searched tree in plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from goldseam.separation.model import Found, SeparationModel
from goldseam.separation.search import entry_levels, patterns

__all__ = ["Explanation", "NodeFinding", "explain_row"]


@dataclass(frozen=True)
class NodeFinding:
    """One node of the tree for one row; `level` is where the node declares its cells (S-9)."""

    node: int
    depth: int
    columns: tuple[str, ...]
    p_value: float
    anomalous: bool
    pattern: str
    declared: bool
    level: float


@dataclass(frozen=True)
class Explanation:
    """The decision about one row.

    `donors` are positions in the reference; `decided_by` is the declared node with the smallest level, if any.
    """

    flagged: bool
    searched: bool
    level: float
    limit: float
    p_value: float
    columns: tuple[str, ...]
    probability: tuple[float, ...]
    nodes: tuple[NodeFinding, ...]
    donors: tuple[int, ...]
    refused: bool

    @property
    def decided_by(self) -> NodeFinding | None:
        """The declared node that entered first."""
        declared = [node for node in self.nodes if node.declared]
        return min(declared, key=lambda node: node.level, default=None)

    def __str__(self) -> str:
        verdict = "flagged" if self.flagged else "not flagged"
        lines = [f"{verdict}: level {self.level:.3g}, limit {self.limit:.3g}, p-value {self.p_value:.3g}"]
        for node in self.nodes:
            mark = "declared" if node.declared else "anomalous" if node.anomalous else ""
            span = node.columns[0] if len(node.columns) == 1 else f"{node.columns[0]} .. {node.columns[-1]}"
            lines.append(f"{'  ' * node.depth}{span}: p = {node.p_value:.3g} [{node.pattern}] {mark}".rstrip())
        return "\n".join(lines)


def explain_row(
    model: SeparationModel,
    found: Found,
    names: Sequence[str],
    *,
    p_value: float,
    donors: Sequence[int],
    refused: bool,
) -> Explanation:
    """The findings about the only row of `found`."""
    tree, p = model.reference.tree, found.scores.node_p_values[0]
    anomalous = p < model.limit
    levels, labels = entry_levels(tree, p[None, :])[0][0], patterns(tree, anomalous)
    nodes = tuple(
        NodeFinding(
            node,
            int(tree.depth[node]),
            tuple(names[j] for j in tree.columns(node).tolist()),
            float(p[node]),
            bool(anomalous[node]),
            labels[node],
            bool(found.nodes[0, node]),
            float(levels[node]),
        )
        for node in range(tree.n_nodes)
    )
    cells = np.flatnonzero(found.mask[0]).tolist()
    return Explanation(
        bool(found.flagged[0]),
        bool(found.searched[0]),
        float(found.scores.row_levels[0]),
        model.limit,
        p_value,
        tuple(names[j] for j in cells),
        tuple(float(found.probability[0, j]) for j in cells),
        nodes,
        tuple(int(donor) for donor in donors if donor >= 0),
        refused,
    )
