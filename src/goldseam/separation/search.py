"""From node scores to cells: the two search rules (S5).

Scores and labels are arrays rows x nodes; masks and levels come back rows x columns, in the order of the table.

| equation | function |
|---|---|
| S5.1, S5.2 queue search, both rules | `declared_nodes` |
| (S-8) confirmed rule without a queue | `confirmed_nodes` |
| (S-9) node entry levels, (S-10) cell entry levels | `entry_levels` |
| S5.4 entry levels under the paper rule | `paper_cell_levels` |
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from goldseam.separation.score_kernels import confirmed_levels
from goldseam.separation.tree import AttributeTree

__all__ = [
    "cells_of_nodes",
    "confirmed_nodes",
    "declared_nodes",
    "entry_levels",
    "paper_cell_levels",
    "patterns",
]

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]


def declared_nodes(tree: AttributeTree, anomalous: BoolArray, rule: str = "paper") -> BoolArray:
    """Nodes that a breadth-first search declares corrupt, per row (S5.1, S5.2).

    >>> tree = AttributeTree.interval(4)
    >>> labels = np.array([[1, 1, 0, 1, 1, 0, 0]], dtype=bool)
    >>> np.flatnonzero(declared_nodes(tree, labels)[0]).tolist()
    [1]
    """
    open_, declared = np.zeros_like(anomalous), np.zeros_like(anomalous)
    open_[:, 0] = True
    for node in range(tree.n_nodes):
        here, label = open_[:, node], anomalous[:, node]
        if tree.n_children[node] == 0:
            confirmed = label if rule == "paper" else label & anomalous[:, tree.parent[node]]
            declared[:, node] = here & confirmed
            continue
        below = anomalous[:, tree.children(node)]
        everywhere = label & below.all(axis=1) & (node != 0)
        nowhere = label & ~below.any(axis=1) & (rule == "paper")
        declared[:, node] = here & everywhere
        open_[:, tree.children(node)] = (here & ~everywhere & ~nowhere)[:, None]
    return declared


def confirmed_nodes(tree: AttributeTree, levels: FloatArray, limit: float) -> BoolArray:
    """(S-8) Nodes of the confirmed rule whose entry level is below `limit`, without those inside another one."""
    inside = levels < limit
    covered = np.zeros_like(inside)
    for node in range(1, tree.n_nodes):
        parent = tree.parent[node]
        covered[:, node] = covered[:, parent] | inside[:, parent]
    return inside & ~covered


def cells_of_nodes(tree: AttributeTree, nodes: BoolArray) -> BoolArray:
    """Columns covered by the given nodes, per row."""
    cells = np.zeros((len(nodes), tree.n_columns), dtype=bool)
    for node in np.flatnonzero(nodes.any(axis=0)):
        cells[:, tree.columns(int(node))] |= nodes[:, node, None]
    return cells


def entry_levels(tree: AttributeTree, p: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(S-9) Level at which each node declares its cells, infinite at the root; (S-10) smallest level of each cell.

    >>> nodes, cells = entry_levels(AttributeTree.interval(4), np.array([[0.1, 0.2, 0.9, 0.3, 0.01, 0.5, 0.6]]))
    >>> nodes
    array([[inf, 0.3, 0.9, 0.3, 0.2, 0.9, 0.9]])
    >>> cells
    array([[0.3, 0.2, 0.9, 0.9]])
    """
    levels, cells = np.empty(p.shape), np.empty((len(p), tree.n_columns))
    names = ("start", "stop", "first_child", "n_children", "parent", "order")
    start, stop, first, count, parent, order = (np.array(getattr(tree, name)) for name in names)  # may be read-only
    confirmed_levels(p, start, stop, first, count, parent, order, levels, cells)
    return levels, cells


def paper_cell_levels(tree: AttributeTree, p: FloatArray) -> FloatArray:
    """Smallest level at which the paper rule declares each cell; infinite where it never does.

    The rule is not monotone: a cell may leave the mask again at a higher level.
    """
    result = np.full((len(p), tree.n_columns), np.inf)
    for row, scores in enumerate(p):
        steps = np.unique(scores)
        cells = cells_of_nodes(tree, declared_nodes(tree, scores[None, :] <= steps[:, None]))
        first = np.argmax(cells, axis=0)
        result[row] = np.where(cells.any(axis=0), steps[first], np.inf)
    return result


def patterns(tree: AttributeTree, anomalous: BoolArray) -> list[str]:
    """Pattern of every node of one row as in S5.2, e.g. '1;01' or 'leaf 1'."""
    bits = anomalous.astype(int)
    return [
        f"{bits[node]};" + "".join(str(bits[child]) for child in tree.children(node))
        if tree.n_children[node]
        else f"leaf {bits[node]}"
        for node in range(tree.n_nodes)
    ]
