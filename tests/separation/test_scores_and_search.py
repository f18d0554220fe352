from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldseam.separation import scores, search
from goldseam.separation.tree import AttributeTree
from tests.reference import separation_naive as naive

TREES = [
    AttributeTree.interval(12).pruned(2),
    AttributeTree.grid((4, 4)).pruned(2),
    AttributeTree.grid((4, 4)).coarsened(2),
    AttributeTree.interval(9, arity=3, order=np.arange(9)[::-1]),
    AttributeTree.interval(2),
]


def members(*radii):
    return scores.MemberRadii.sort(np.array(radii, dtype=float)[:, None])


def test_vectors_of_the_specification():
    known = members(4, 1, 3, 2)
    rows = np.array([[3.0], [5.0]])
    np.testing.assert_allclose(scores.paper_p_values(rows, known)[:, 0], [0.5, 0])
    np.testing.assert_allclose(scores.counted_p_values(rows, known)[:, 0], [0.6, 0.2])


@given(st.lists(st.integers(0, 6), min_size=2, max_size=12), st.lists(st.integers(0, 8), min_size=1, max_size=5))
def test_scores_equal_counting(radii, queries):
    known, rows = members(*radii), np.array(queries, dtype=float)[:, None]
    assert scores.paper_p_values(rows, known)[:, 0].tolist() == [naive.paper_p(q, radii) for q in queries]
    assert scores.counted_p_values(rows, known)[:, 0].tolist() == [naive.counted_p(q, radii) for q in queries]


@given(st.lists(st.integers(0, 6), min_size=3, max_size=12), st.integers(0, 8), st.integers(0, 10))
def test_paper_and_product_levels_label_alike(radii, query, step):
    known, row, level = members(*radii), np.array([[float(query)]]), step / 10
    paper = scores.paper_p_values(row, known)[0, 0] <= level
    product = scores.counted_p_values(row, known)[0, 0] <= scores.product_level(level, len(radii)) + 1e-12
    assert paper == product


def test_continuous_scores_interpolate_and_keep_the_order(rng):
    known = scores.MemberRadii.sort(rng.gamma(2.0, size=(200, 3)))
    radii = np.sort(rng.gamma(3.0, size=(500, 3)), axis=0)
    p, counted = scores.continuous_p_values(radii, known), scores.counted_p_values(radii, known)
    assert (np.diff(p, axis=0) <= 0).all()
    inside = radii <= known.radii[-1]
    assert (p[inside] <= counted[inside] + 1e-12).all()
    assert (p[inside] >= counted[inside] - 1 / 201 - 1e-12).all()
    assert (p[~inside] <= 1 / 201).all()
    assert (p > 0).all()


@pytest.mark.parametrize("n", [2, 5, 8, 9, 63, 64, 65, 1000])
def test_continuous_scores_equal_a_plain_search(rng, n):
    known = scores.MemberRadii.sort(rng.integers(0, 50, (n, 3)).astype(np.float32))  # ties
    radii = np.vstack((rng.integers(0, 50, (40, 3)), 50 * rng.random((40, 3)))).astype(np.float32)
    radii[3] = np.nan
    p = scores.continuous_p_values(radii, known)
    for (i, node), radius in np.ndenumerate(radii.astype(float)):
        ranks, above = known.radii[:, node], known.above[:, node]
        if radius <= ranks[-1]:
            below = np.searchsorted(ranks, radius)
            low = ranks[below - 1] if below else 0.0
            step = (radius - low) / (ranks[below] - low) if ranks[below] > low else 0.0
            assert p[i, node] == (1 + above[below] - step * (above[below] - above[below + 1])) / (n + 1)
    assert (np.isnan(p) == np.isnan(radii)).all()


def test_continuous_score_by_hand():
    p = scores.continuous_p_values(np.array([[1.5], [2.0], [0.5]]), members(1, 2, 3, 4))
    np.testing.assert_allclose(p[:, 0], [(1 + 3 - 0.5) / 5, (1 + 3 - 1) / 5, (1 + 4 - 0.5) / 5])


def test_tail_by_hand():
    radii = np.concatenate([np.ones(14), [2.0, 4.0, 8.0, 16.0, 32.0]])
    known = members(*radii)
    xi = np.log([2.0, 4.0, 8.0, 16.0, 32.0]).mean() + 1e-6
    expected = 6 / 20 * 1000.0 ** (-1 / xi)
    assert scores.continuous_p_values(np.array([[1000.0]]), known)[0, 0] == pytest.approx(expected)
    assert scores.continuous_p_values(np.array([[np.inf]]), known)[0, 0] == 0
    flat = members(*np.zeros(20))
    assert scores.continuous_p_values(np.array([[0.05]]), flat)[0, 0] == pytest.approx(1e-3 * np.exp(-1))


def test_trust_weighs_the_members():
    known = scores.MemberRadii.sort(np.array([[1.0], [2.0], [3.0]]), np.array([1.0, 0.5, 0.5]))
    assert scores.counted_p_values(np.array([[2.5]]), known)[0, 0] == pytest.approx(1.5 / 3)


@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize("rule", ["paper", "confirmed"])
def test_search_equals_the_queue(rng, tree, rule):
    for share in (0.1, 0.5, 0.8):
        labels = rng.random((120, tree.n_nodes)) < share
        found = search.declared_nodes(tree, labels, rule)
        for row, nodes in zip(labels, found, strict=True):
            assert np.flatnonzero(nodes).tolist() == sorted(naive.queue_search(tree, row, rule))


@pytest.mark.parametrize("tree", TREES)
def test_entry_levels_equal_the_queue_at_every_level(rng, tree):
    p = rng.integers(1, 12, (40, tree.n_nodes)) / 12
    levels, cells = search.entry_levels(tree, p)
    for tau in np.unique(p):
        for i in range(len(p)):
            expected = naive.mask_of(tree, naive.queue_search(tree, p[i] <= tau, "confirmed"))
            np.testing.assert_array_equal(cells[i] <= tau, expected)
        nodes = search.confirmed_nodes(tree, levels, np.nextafter(tau, 2))
        np.testing.assert_array_equal(search.cells_of_nodes(tree, nodes), cells <= tau)


def test_paper_levels_are_the_first_ones(rng):
    tree = TREES[0]
    p = rng.integers(1, 12, (30, tree.n_nodes)) / 12
    levels = search.paper_cell_levels(tree, p)
    for i in range(len(p)):
        steps = np.unique(p[i])
        masks = np.array([naive.mask_of(tree, naive.queue_search(tree, p[i] <= tau, "paper")) for tau in steps])
        expected = np.where(masks.any(axis=0), steps[np.argmax(masks, axis=0)], np.inf)
        np.testing.assert_array_equal(levels[i], expected)


def test_paper_rule_is_not_monotone_and_stops_at_the_root():
    tree = AttributeTree.interval(4)
    p = np.array([[0.3, 0.5, 0.5, 0.1, 0.9, 0.9, 0.9]])
    assert search.cells_of_nodes(tree, search.declared_nodes(tree, p <= 0.2))[0].tolist() == [True, False, False, False]
    assert not search.declared_nodes(tree, p <= 0.3).any()  # pattern b at the root stops the whole search


def test_root_is_never_declared():
    tree = AttributeTree.interval(4)
    declared = search.declared_nodes(tree, np.ones((1, 7), dtype=bool))
    assert np.flatnonzero(declared[0]).tolist() == [1, 2]


def test_patterns():
    tree = AttributeTree.interval(2)
    assert search.patterns(tree, np.array([True, False, True])) == ["1;01", "leaf 0", "leaf 1"]
