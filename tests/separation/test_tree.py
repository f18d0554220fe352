from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldseam.errors import MissingColumnError, ModelFileError, ParameterError
from goldseam.separation.tree import AttributeTree


def ranges(tree):
    return list(zip(tree.start.tolist(), tree.stop.tolist(), strict=True))


def check(tree):
    """What every tree must satisfy."""
    assert sorted(tree.order.tolist()) == list(range(tree.n_columns))
    for node in range(tree.n_nodes):
        children = list(tree.children(node))
        if children:
            assert tree.start[children[0]] == tree.start[node]
            assert tree.stop[children[-1]] == tree.stop[node]
            assert all(tree.stop[a] == tree.start[b] for a, b in pairwise(children))
            assert all(tree.parent[child] == node for child in children)
            assert all(tree.depth[child] == tree.depth[node] + 1 for child in children)


def test_interval_of_the_specification():
    tree = AttributeTree.interval(10).pruned(2)
    assert ranges(tree) == [
        (0, 10), (0, 5), (5, 10), (0, 2), (2, 5), (5, 7), (7, 10), (2, 3), (3, 5), (7, 8), (8, 10)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("d", "leaf", "nodes", "leaves", "depth"), [(256, 4, 127, 64, 6), (241, 4, 127, 64, 6), (30, 2, 31, 16, 4)]
)
def test_sizes_of_the_specification(d, leaf, nodes, leaves, depth):
    tree = AttributeTree.interval(d).pruned(leaf)
    assert (tree.n_nodes, int(tree.is_leaf.sum()), int(tree.depth.max())) == (nodes, leaves, depth)


def test_grid_splits_columns_first_and_ends_in_blocks():
    tree = AttributeTree.grid((16, 16)).pruned(4)
    left = np.zeros((16, 16), dtype=bool)
    left[:, :8] = True
    assert set(tree.columns(1)) == set(np.flatnonzero(left.ravel()))
    leaf = tree.columns(int(np.flatnonzero(tree.is_leaf)[0]))
    assert sorted(leaf.tolist()) == [0, 1, 16, 17]


def test_grid_stores_real_split_points_for_odd_sides():
    tree = AttributeTree.grid((3, 5))
    assert sorted(tree.columns(1).tolist()) == [0, 1, 5, 6, 10, 11]  # columns 0-1 of 5


def test_shifted_grid_moves_the_blocks():
    tree = AttributeTree.grid((4, 4), shift=(1, 1)).pruned(4)
    leaf = sorted(tree.columns(int(np.flatnonzero(tree.is_leaf)[0])).tolist())
    assert leaf == sorted([15, 12, 3, 0])  # the corner cells, cyclically


def test_four_children_per_node_when_coarsened():
    tree = AttributeTree.grid((16, 16)).coarsened(2).pruned(4)
    assert tree.n_nodes == 85
    assert set(tree.n_children.tolist()) == {0, 4}
    assert not tree.is_binary
    with pytest.raises(ParameterError, match="no single sibling"):
        tree.sibling(1)


def test_siblings():
    tree = AttributeTree.interval(4)
    assert [tree.sibling(n) for n in range(1, 7)] == [2, 1, 4, 3, 6, 5]


def test_groups_by_name_follow_the_table():
    tree = AttributeTree.groups([["b", "d"], ["a", ["c"]]]).resolved(["a", "b", "c", "d"])
    assert tree.columns(1).tolist() == [1, 3]
    assert tree.columns(2).tolist() == [0, 2]
    check(tree)


def test_groups_name_what_does_not_fit():
    tree = AttributeTree.groups([["a"], ["b"]])
    with pytest.raises(MissingColumnError, match="'b'"):
        tree.resolved(["a", "c"])
    with pytest.raises(ParameterError, match="'extra'"):
        tree.resolved(["a", "b", "extra"])
    with pytest.raises(ParameterError, match="'a'"):
        AttributeTree.groups([["a"], ["b", "a"]])
    with pytest.raises(ParameterError, match="column 1 is not covered"):
        AttributeTree.groups([[0], [2]])


def test_grid_that_does_not_cover_the_columns_says_so():
    with pytest.raises(ParameterError, match=r"256 columns \(grid 16x16\).*n_features=250"):
        AttributeTree.grid((16, 16)).resolved([f"x{i}" for i in range(250)])


def test_clustered_puts_correlated_columns_together(rng):
    a, b = rng.normal(size=(2, 200, 1))
    X = np.hstack([a, b, a, b, a, b]) + 0.1 * rng.normal(size=(200, 6))
    X[0, 0] = np.nan
    tree = AttributeTree.clustered(np.c_[X, np.ones(200)])
    order = [j for j in tree.order.tolist() if j < 6]
    assert {tuple(sorted(order[:3])), tuple(sorted(order[3:]))} == {(0, 2, 4), (1, 3, 5)}


@given(st.integers(1, 70), st.integers(2, 5), st.integers(1, 6))
def test_any_interval_is_a_tree(d, arity, leaf):
    check(AttributeTree.interval(d, arity=arity).pruned(leaf))


@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.integers(1, 3), st.integers(1, 5))
def test_any_grid_is_a_tree(shape, step, leaf):
    tree = AttributeTree.grid(shape).coarsened(step).pruned(leaf)
    check(tree)
    assert tree.n_columns == np.prod(shape)


@pytest.mark.parametrize("node_and_child", [(1, 1), (2, 3), (0, 3)])
def test_stored_trees_whose_nodes_are_reached_twice_or_never_are_refused(node_and_child):
    """Compiled loops walk the tree from the root: a circle would not end."""
    tree, (node, child) = AttributeTree.interval(8).pruned(2), node_and_child
    tree.check_state()
    links = tree.first_child.copy()
    links[node] = child
    with pytest.raises(ModelFileError, match="number its 7 nodes breadth first"):
        replace(tree, first_child=links).check_state()
    with pytest.raises(ModelFileError, match="number its 7 nodes breadth first"):
        replace(tree, n_children=np.where(np.arange(7) == 2, 1, tree.n_children)).check_state()
