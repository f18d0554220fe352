"""How often a clean row is flagged: predicted, inverted, and calibrated (S6).

Label model on clean rows: P(root label = 1) = τ, and a child copies its parent's label with probability γ, else it is
drawn afresh; siblings are independent given the parent. `gamma` is one number or one per depth.

| equation | function |
|---|---|
| (S-11) | `child_chances` |
| (S-12)-(S-16), (S-17)-(S-19), per node and m-ary | `row_alarm_rate` |
| closed forms for γ = 0, L = 1, 2 | `closed_form_rate` |
| γ from labels of clean rows | `estimate_gamma` |
| smallest root | `invert_alarm_rate` |
| (S-20) | `conformal_limit` |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from goldseam.separation.tree import AttributeTree

__all__ = [
    "ConformalLimit",
    "balanced_tree",
    "child_chances",
    "closed_form_rate",
    "conformal_limit",
    "estimate_gamma",
    "invert_alarm_rate",
    "row_alarm_rate",
]

FloatArray = NDArray[np.float64]


def child_chances(tau: float, gamma: float) -> tuple[float, float]:
    """(S-11) Probability of a child label 1 given parent label 1 and given parent label 0.

    >>> child_chances(0.1, 0.5)
    (0.55, 0.05)
    """
    return gamma + (1 - gamma) * tau, (1 - gamma) * tau


def balanced_tree(depth: int) -> AttributeTree:
    """The binary tree with leaves at `depth`, as the recursion in the paper assumes."""
    return AttributeTree.interval(2**depth)


def row_alarm_rate(tree: AttributeTree, tau: float, gamma: float | Sequence[float], rule: str = "confirmed") -> float:
    """(S-16) Chance that a clean row is flagged at node level `tau`, for any tree and either rule.

    Every node carries P(nothing declared at or below it | its label). With q_i the product over the children of
    P(child is silent | own label i), the patterns of S5.2 take out of q_1 what declares (all children 1) and, under
    the paper rule, put back what stops the search (no child 1).

    >>> round(row_alarm_rate(balanced_tree(2), 0.05, 0.5, "paper"), 9)
    0.156590042
    """
    silent_0, silent_1 = np.ones(tree.n_nodes), np.zeros(tree.n_nodes)
    for node in range(tree.n_nodes - 1, -1, -1):
        if tree.n_children[node]:
            silent_0[node], silent_1[node] = _inner_silence(tree, node, tau, gamma, rule, silent_0, silent_1)
    return float(1 - ((1 - tau) * silent_0[0] + tau * silent_1[0]))


def _inner_silence(
    tree: AttributeTree,
    node: int,
    tau: float,
    gamma: float | Sequence[float],
    rule: str,
    silent_0: FloatArray,
    silent_1: FloatArray,
) -> tuple[float, float]:
    """(S-13)-(S-15), (S-17)-(S-19) for one inner node with any number of children."""
    copy = float(gamma) if isinstance(gamma, (int, float)) else float(gamma[tree.depth[node]])
    p11, p10 = child_chances(tau, copy)
    children = tree.children(node)
    p0 = np.array([silent_0[child] for child in children])
    p1 = np.array([silent_1[child] for child in children])
    leaf = np.array([tree.n_children[child] == 0 for child in children])
    unconfirmed = leaf & (rule == "confirmed")  # a leaf under label 0 is never declared there
    q0 = np.prod((1 - p10) * p0 + p10 * np.where(unconfirmed, 1.0, p1))
    q1 = np.prod((1 - p11) * p0 + p11 * p1)
    if node != 0:
        q1 -= np.prod(p11 * p1)
    if rule == "paper":
        q1 += np.prod(np.full(len(p0), 1 - p11)) - np.prod((1 - p11) * p0)
    return float(q0), float(q1)


def closed_form_rate(tau: float, depth: int) -> float:
    """Paper rule, γ = 0, binary trees of depth 1 or 2 (S6.3).

    >>> round(closed_form_rate(0.1, 1), 12)
    0.19
    """
    q = 1 - tau
    if depth == 1:
        return 1 - q**2
    if depth == 2:
        return 1 - (q * q**4 + tau * (q**2 + 2 * tau * q**5 + tau**2 * q**4))
    raise ValueError(f"There is a closed form for depth 1 and 2 only, got {depth}.")


def estimate_gamma(tree: AttributeTree, anomalous: NDArray[np.bool_], *, by_depth: bool = False) -> list[float]:
    """Correlation of child and parent labels over clean rows, pooled or per depth of the parent, within [0, 1].

    >>> tree = AttributeTree.interval(2)
    >>> estimate_gamma(tree, np.array([[1, 1, 1], [0, 0, 0]], dtype=bool))
    [1.0]
    """
    depths = tree.depth[tree.parent[1:]]
    picks = [depths == depth for depth in np.unique(depths)] if by_depth else [np.ones(len(depths), dtype=bool)]
    children = [np.flatnonzero(pick) + 1 for pick in picks]
    return [_correlation(anomalous[:, nodes], anomalous[:, tree.parent[nodes]]) for nodes in children]


def _correlation(a: NDArray[np.bool_], b: NDArray[np.bool_]) -> float:
    x, y = a.ravel().astype(float), b.ravel().astype(float)
    spread = x.std() * y.std()
    value = float(((x - x.mean()) * (y - y.mean())).mean() / spread) if spread > 0 else 0.0
    return min(max(value, 0.0), 1.0)


def invert_alarm_rate(
    tree: AttributeTree,
    target: float,
    n_members: int,
    gamma_at: Callable[[float], float | Sequence[float]],
    rule: str = "confirmed",
) -> float:
    """Largest attainable level below the *smallest* level whose row rate exceeds `target`; 0 if there is none.

    The row rate of the paper rule is not monotone in the level, so the scan goes up through j / (N + 1) and stops at
    the first violation. `gamma_at` gives γ for a level.
    """
    level = 0.0
    for j in range(1, n_members + 2):
        tau = j / (n_members + 1)
        if row_alarm_rate(tree, tau, gamma_at(tau), rule) > target:
            return level
        level = tau
    return level


@dataclass(frozen=True)
class ConformalLimit:
    """Rows are flagged when their entry level is strictly below `limit` (S-20).

    `rank` is k of the spec and `rate` the share of calibration trust that lies below the limit.
    """

    limit: float
    rank: int
    rate: float


def conformal_limit(levels: FloatArray, target: float, trust: FloatArray | None = None) -> ConformalLimit:
    """(S-20) The k-th smallest calibration level, k = floor(target (n + 1)); with `trust`, k in units of trust.

    >>> conformal_limit(np.array([0.3, 0.1, 0.2, 0.9]), 0.4)
    ConformalLimit(limit=0.2, rank=2, rate=0.25)
    """
    weights = np.ones(len(levels)) if trust is None else trust
    order = np.argsort(levels, kind="stable")
    mass = np.cumsum(weights[order])
    room = target * (mass[-1] + 1 if len(mass) else 1) + 1e-9
    rank = int(np.searchsorted(mass, np.floor(room) if trust is None else room, side="right"))
    if rank == 0:
        return ConformalLimit(0.0, 0, 0.0)
    limit = float(levels[order][rank - 1])
    return ConformalLimit(limit, rank, float(weights[levels < limit].sum() / mass[-1]))
