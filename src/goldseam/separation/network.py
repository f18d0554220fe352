"""Plan of a ranked scan: merge sort up the tree as straight comparator networks (S11.1, S11.2).

The sorted deviations of a node are the merge of its children's lists, so one pass gives (S-2) at every node. The plan
is a table of steps for `ranked_kernels`; leaves are padded to 1, 2, 4, 8 or 16 columns with columns that deviate
infinitely, so that every step works on powers of two.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from goldseam.separation.ranked_kernels import LEAF, MERGE_ANY, MERGE_EQUAL, SUM
from goldseam.separation.tree import AttributeTree

__all__ = ["RankedPlan", "ranked_plan"]

WIDEST = 16  # columns sorted in registers


@dataclass(frozen=True, eq=False)
class RankedPlan:
    """Steps of a ranked scan. `columns` are tree positions in the plan's layout, -1 for padding."""

    steps: NDArray[np.int64]
    columns: NDArray[np.int64]
    slots: int


@dataclass(frozen=True)
class _List:
    """A sorted list in the buffer: where, how many vectors count, how many are taken with padding."""

    at: int
    length: int
    size: int
    slots: int


def ranked_plan(tree: AttributeTree, kept: NDArray[np.int64]) -> RankedPlan:
    """The steps that give the sum of the `kept[n]` smallest deviations at every node n.

    >>> plan = ranked_plan(AttributeTree.interval(4).pruned(2), np.array([2, 1, 1]))
    >>> plan.steps[:, 0].tolist()
    [0, 3, 0, 3, 1, 3]
    """
    steps: list[tuple[int, ...]] = []
    columns: list[int] = []

    def leaf(begin: int, end: int, at: int) -> _List:
        if end - begin > WIDEST:
            middle = (begin + end) // 2
            left = leaf(begin, middle, at)
            return merge(left, leaf(middle, end, at + left.slots))
        size = _power(end - begin)
        steps.append((LEAF, at, size, len(columns), 0, 0))
        columns.extend([*range(begin, end), *[-1] * (size - (end - begin))])
        return _List(at, end - begin, size, size)

    def merge(left: _List, right: _List) -> _List:
        length = left.length + right.length
        size = _power(length)
        slots = max(size, left.slots + right.slots)
        if left.size == right.size == left.slots == size // 2:
            steps.append((MERGE_EQUAL, left.at, size, 0, 0, 0))
        else:
            steps.append((MERGE_ANY, left.at, size, left.length, right.at, right.length))
        return _List(left.at, length, size, slots)

    def visit(node: int, at: int) -> _List:
        if tree.n_children[node] == 0:
            result = leaf(int(tree.start[node]), int(tree.stop[node]), at)
        else:
            first, *others = tree.children(node)
            result = visit(first, at)
            for child in others:
                result = merge(result, visit(child, at + result.slots))
        steps.append((SUM, result.at, int(kept[node]), node, 0, 0))
        return result

    total = visit(0, 0)
    return RankedPlan(np.array(steps, dtype=np.int64), np.array(columns, dtype=np.int64), total.slots)


def _power(n: int) -> int:
    return 1 << (n - 1).bit_length()
