"""Attribute trees: which columns are looked at together (S4).

A tree is a permutation of the columns and nested ranges of it. Nodes are numbered breadth first, so the root is 0, a
child has a larger number than its parent, and the children of a node are neighbours. Every constructor splits down
to single columns; `pruned` makes a node a leaf once it is small enough.

| S4 | function |
|---|---|
| interval, m-ary | `AttributeTree.interval` |
| grid by alternating axes, shifted grid | `AttributeTree.grid` |
| 4-ary and coarser trees | `AttributeTree.coarsened` |
| nested groups | `AttributeTree.groups` |
| clustered order | `AttributeTree.clustered` |
| leaf size | `AttributeTree.pruned` |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from goldseam.errors import MissingColumnError, ModelFileError, ParameterError
from goldseam.model_file import check_indices

__all__ = ["AttributeTree"]

IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class AttributeTree:
    """A hierarchy of columns.

    Node n covers the columns ``order[start[n]:stop[n]]``; its children are the nodes ``first_child[n]`` up to
    ``first_child[n] + n_children[n]``. `shape` is the grid the columns lie on, or None when they lie on a line (the
    tree order). `names` are column names in the numbering of the tree, where the tree was given by names.

    Examples
    --------
    >>> tree = AttributeTree.interval(10).pruned(2)
    >>> [tree.order[a:b].tolist() for a, b in zip(tree.start[:5], tree.stop[:5])]
    [[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], [0, 1, 2, 3, 4], [5, 6, 7, 8, 9], [0, 1], [2, 3, 4]]
    """

    order: IntArray
    start: IntArray
    stop: IntArray
    parent: IntArray
    first_child: IntArray
    n_children: IntArray
    depth: IntArray
    shape: tuple[int, ...] | None = None
    names: tuple[str, ...] | None = None

    def check_state(self) -> None:
        """A file whose nodes lead outside the columns or the tree is refused."""
        n_nodes, n_columns = len(self.start), len(self.order)
        if {len(part) for part in (self.stop, self.parent, self.first_child, self.n_children, self.depth)} != {n_nodes}:
            raise ModelFileError(f"The model file's tree must have {n_nodes} entries in each of its node arrays.")
        if not np.array_equal(np.sort(self.order), np.arange(n_columns)):
            raise ModelFileError(f"The model file's tree must order each of its {n_columns} columns once.")
        check_indices("starts of nodes", self.start, 0, n_columns + 1)
        check_indices("ends of nodes", self.stop, self.start + 1, n_columns + 1)
        check_indices("parents", self.parent, -1, n_nodes)
        check_indices("numbers of children", self.n_children, 0, n_nodes)
        inner, first = self.n_children > 0, np.cumsum(self.n_children) - self.n_children + 1
        if self.n_children.sum() != n_nodes - 1 or not np.array_equal(self.first_child[inner], first[inner]):
            raise ModelFileError(f"The model file's tree must number its {n_nodes} nodes breadth first, each once.")
        check_indices("children", self.first_child[inner], np.flatnonzero(inner) + 1, n_nodes)
        check_indices("children", self.first_child, -1, n_nodes)
        parents = np.repeat(np.arange(n_nodes), self.n_children)
        if not np.array_equal(self.parent, [-1, *parents]) or not np.array_equal(
            self.depth, [0, *self.depth[parents] + 1]
        ):
            raise ModelFileError("The model file's tree must name the parent of each node, and its depth one below.")

    @classmethod
    def interval(cls, n_columns: int, *, arity: int = 2, order: ArrayLike | None = None) -> AttributeTree:
        """Halve the columns in the given order (or a stated `order`) again and again; `arity` parts instead of two.

        >>> AttributeTree.interval(256).pruned(4).n_nodes
        127
        """
        _at_least("n_columns", n_columns, 1)
        _at_least("arity", arity, 2)
        places = np.arange(n_columns) if order is None else _permutation(order, n_columns)

        def split(part: tuple[int, int]) -> list[tuple[int, int]]:
            low, high = part
            cuts = [low + (high - low) * i // arity for i in range(arity + 1)]
            return [(a, b) for a, b in pairwise(cuts) if b > a]

        return _grow((0, n_columns), lambda part: part[1] - part[0], split, lambda part: int(places[part[0]]))

    @classmethod
    def grid(cls, shape: Sequence[int], *, shift: Sequence[int] | None = None) -> AttributeTree:
        """Boxes of a grid (row-major columns), halved along the axes in turn, the last axis first.

        `shift` moves the cuts cyclically by so many cells along each axis.

        Examples
        --------
        >>> tree = AttributeTree.grid((2, 3))
        >>> [tree.order[a:b].tolist() for a, b in zip(tree.start[:3], tree.stop[:3])]
        [[0, 3, 1, 2, 4, 5], [0, 3], [1, 2, 4, 5]]
        """
        sides = tuple(int(side) for side in shape)
        if not sides or min(sides) < 1:
            raise ParameterError(f"A grid needs sides of at least 1, got shape={sides}. Hint: e.g. shape=(16, 16).")
        moves = tuple(shift) if shift is not None else (0,) * len(sides)
        if len(moves) != len(sides):
            raise ParameterError(f"The shift of a grid needs one value per axis ({len(sides)}), got {moves}.")
        columns = np.roll(np.arange(prod(sides)).reshape(sides), moves, axis=tuple(range(len(sides))))
        box = (tuple((0, side) for side in sides), len(sides) - 1)
        tree = _grow(box, _box_size, _split_box, lambda part: int(columns[tuple(low for low, _ in part[0])]))
        return tree._with(shape=sides)

    @classmethod
    def groups(cls, nested: Sequence[Any]) -> AttributeTree:
        """Nested lists of column numbers or column names: every list is a node, its items are its children.

        More than two items are halved by count, so a run of bare columns is an interval.

        >>> tree = AttributeTree.groups([["flow", "pressure"], ["current", "voltage", "power"]])
        >>> tree.names
        ('flow', 'pressure', 'current', 'voltage', 'power')
        """
        leaves = list(_flatten(nested))
        named = [isinstance(leaf, str) for leaf in leaves]
        if not leaves or (any(named) and not all(named)):
            raise ParameterError("A tree of groups needs columns, all by name or all by number, not both kinds.")
        names = tuple(leaves) if named[0] else None
        number = {leaf: i for i, leaf in enumerate(leaves)} if names else {i: i for i in leaves}
        if len(number) != len(leaves):
            raise ParameterError(f"A tree of groups holds a column twice: {_first_repeat(leaves)!r}.")
        tree = _grow(nested, lambda item: len(list(_flatten(item))), _split_group, lambda item: number[_bare(item)])
        _permutation(tree.order, tree.n_columns)
        return tree._with(names=names)

    @classmethod
    def clustered(cls, X: ArrayLike) -> AttributeTree:
        """Order correlated columns together (average linkage on 1 - |correlation|), then halve that order.

        >>> a, b = np.sin(np.arange(9.0)), np.cos(np.arange(9.0))
        >>> AttributeTree.clustered(np.c_[a, b, a, b]).order[:2].tolist() in ([0, 2], [1, 3], [2, 0], [3, 1])
        True
        """
        from scipy.cluster.hierarchy import leaves_list, linkage
        from scipy.spatial.distance import squareform

        values = np.asarray(X, dtype=np.float64)
        if values.shape[1] == 1:
            return cls.interval(1)
        distance = 1.0 - np.abs(_correlation(values))
        np.fill_diagonal(distance, 0.0)
        links = linkage(squareform(np.clip((distance + distance.T) / 2, 0, None)), "average", optimal_ordering=True)
        return cls.interval(values.shape[1], order=leaves_list(links))

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.start)

    @property
    def n_columns(self) -> int:
        """Number of columns the tree covers."""
        return len(self.order)

    @property
    def size(self) -> IntArray:
        """Number of columns of every node."""
        return self.stop - self.start

    @property
    def is_leaf(self) -> NDArray[np.bool_]:
        """True at the nodes without children."""
        return self.n_children == 0

    @property
    def is_binary(self) -> bool:
        """True when every inner node has two children."""
        return bool(np.isin(self.n_children, (0, 2)).all())

    def children(self, node: int) -> range:
        """Numbers of a node's children."""
        return range(int(self.first_child[node]), int(self.first_child[node] + self.n_children[node]))

    def columns(self, node: int) -> IntArray:
        """Columns of a node, in tree order."""
        return self.order[self.start[node] : self.stop[node]]

    def sibling(self, node: int) -> int:
        """The other child of the parent; only binary trees have one."""
        if node == 0 or self.n_children[self.parent[node]] != 2:
            raise ParameterError(f"Node {node} has no single sibling. Hint: use a context imputer with such trees.")
        first = int(self.first_child[self.parent[node]])
        return first + 1 if node == first else first

    def pruned(self, leaf_size: int) -> AttributeTree:
        """The same tree with every node of at most `leaf_size` columns as a leaf."""
        _at_least("leaf_size", leaf_size, 1)
        return self._rebuilt(lambda node: list(self.children(node)) if self.size[node] > leaf_size else [])

    def coarsened(self, step: int = 2) -> AttributeTree:
        """Keep the depths that are multiples of `step` only: `step=2` makes a binary tree 4-ary.

        >>> AttributeTree.grid((4, 4)).coarsened(2).n_children[0]
        np.int64(4)
        """
        _at_least("step", step, 1)

        def descend(node: int, levels: int) -> list[int]:
            if levels == 0 or self.n_children[node] == 0:
                return [node]
            return [kept for child in self.children(node) for kept in descend(child, levels - 1)]

        return self._rebuilt(lambda node: descend(node, step) if self.n_children[node] else [])

    def resolved(self, names: Sequence[str]) -> AttributeTree:
        """The tree over the columns called `names`: names become positions, and the cover is checked."""
        if self.names is not None:
            lost = [name for name in self.names if name not in set(names)]
            if lost:
                raise MissingColumnError(f"The tree names column {lost[0]!r}, which the table does not have.")
            extra = [name for name in names if name not in set(self.names)]
            if extra:
                raise ParameterError(
                    f"The tree covers {self.n_columns} columns, but the table has {len(names)} (n_features="
                    f"{len(names)}): column {extra[0]!r} is in no group. Hint: every modelled column needs a group."
                )
            place = {name: i for i, name in enumerate(names)}
            return self._with(order=np.array([place[self.names[i]] for i in self.order]), names=None)
        if self.n_columns != len(names):
            grid = f" (grid {'x'.join(map(str, self.shape))})" if self.shape else ""
            raise ParameterError(
                f"The tree covers {self.n_columns} columns{grid}, but the table has {len(names)} modelled columns "
                f"(n_features={len(names)}). Hint: the sides of a grid must multiply to the number of columns."
            )
        return self

    def _with(self, **changes: Any) -> AttributeTree:
        return replace(self, **changes)

    def _rebuilt(self, children_of: Callable[[int], list[int]]) -> AttributeTree:
        """The tree whose nodes are those reached from the root through `children_of`, renumbered."""
        kept, parent, depth, first, count = [0], [-1], [0], [], []
        for new, old in enumerate(kept):
            below = children_of(old)
            first.append(len(kept) if below else 0)
            count.append(len(below))
            kept += below
            parent += [new] * len(below)
            depth += [depth[new] + 1] * len(below)
        index = np.array(kept)
        links = {"parent": parent, "first_child": first, "n_children": count, "depth": depth}
        arrays = {name: np.array(values, dtype=np.int64) for name, values in links.items()}
        return self._with(start=self.start[index], stop=self.stop[index], **arrays)


def _grow(
    root: Any, size_of: Callable[[Any], int], split: Callable[[Any], list[Any]], column_of: Callable[[Any], int]
) -> AttributeTree:
    """Split parts breadth first down to single columns."""
    parts, start, parent, depth, first, count = [root], [0], [-1], [0], [], []
    order = np.empty(size_of(root), dtype=np.int64)
    for node, part in enumerate(parts):
        children = split(part) if size_of(part) > 1 else []
        if not children:
            order[start[node]] = column_of(part)
        first.append(len(parts) if children else 0)
        count.append(len(children))
        begin = start[node]
        for child in children:
            parts.append(child)
            start.append(begin)
            parent.append(node)
            depth.append(depth[node] + 1)
            begin += size_of(child)
    stop = np.array(start) + np.array([size_of(part) for part in parts])
    a, b, c, d, e, f = (np.array(values, dtype=np.int64) for values in (start, stop, parent, first, count, depth))
    return AttributeTree(order, a, b, c, d, e, f)


def _box_size(part: Any) -> int:
    return prod(high - low for low, high in part[0])


def _split_box(part: Any) -> list[Any]:
    """Halve a box along the axis whose turn it is, or the next one that can be cut."""
    box, axis = part
    while box[axis][1] - box[axis][0] == 1:
        axis = (axis - 1) % len(box)
    low, high = box[axis]
    middle = low + (high - low) // 2
    following = (axis - 1) % len(box)
    return [((*box[:axis], side, *box[axis + 1 :]), following) for side in ((low, middle), (middle, high))]


def _split_group(item: Any) -> list[Any]:
    """Children of a group: its items, halved by count when there are more than two."""
    while not _is_column(item) and len(item) == 1:
        item = item[0]
    if len(item) == 2:
        return list(item)
    half = len(item) // 2
    return [item[:half], item[half:]]


def _is_column(item: Any) -> bool:
    return isinstance(item, (str, int, np.integer))


def _bare(item: Any) -> Any:
    while not _is_column(item):
        item = item[0]
    return item


def _flatten(item: Any) -> Iterable[Any]:
    if _is_column(item):
        yield item
    else:
        for part in item:
            yield from _flatten(part)


def _first_repeat(leaves: Sequence[Any]) -> Any:
    return next(leaf for i, leaf in enumerate(leaves) if leaf in leaves[:i])


def _correlation(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Correlations over the rows where both columns are observed; undefined ones are 0."""
    d = values.shape[1]
    result = np.eye(d)
    for i in range(d):
        for j in range(i):
            both = ~np.isnan(values[:, i]) & ~np.isnan(values[:, j])
            a, b = values[both, i], values[both, j]
            spread = a.std() * b.std() if both.any() else 0.0
            value = ((a - a.mean()) * (b - b.mean())).mean() / spread if spread > 0 else 0.0
            result[i, j] = result[j, i] = value
    return result


def _permutation(order: ArrayLike, n_columns: int) -> IntArray:
    places = np.asarray(order, dtype=np.int64)
    if not np.array_equal(np.sort(places), np.arange(n_columns)):
        missing = sorted(set(range(n_columns)) - set(places.tolist()))
        raise ParameterError(
            f"The tree must hold each column 0..{n_columns - 1} once"
            + (f"; column {missing[0]} is not covered." if missing else f"; it has {len(places)} entries.")
        )
    return places


def _at_least(name: str, value: int, limit: int) -> None:
    if value < limit:
        raise ParameterError(f"{name} must be at least {limit}, got {value}.")
