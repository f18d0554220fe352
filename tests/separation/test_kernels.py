from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goldseam.separation.kernels import MOST_ROWS, TEAM, pack_lanes, sum_radii
from goldseam.separation.nearest_kernels import nearest_rows
from goldseam.separation.network import ranked_plan
from goldseam.separation.ranked_kernels import ranked_radii
from goldseam.separation.reference import Reference
from goldseam.separation.scores import kept_deviations
from goldseam.separation.tree import AttributeTree
from tests.reference import separation_naive as naive

TREES = {
    "interval": AttributeTree.interval(13).pruned(2),
    "power of two": AttributeTree.interval(16).pruned(4),
    "grid": AttributeTree.grid((3, 5)).pruned(3),
    "four children": AttributeTree.grid((4, 4)).coarsened(2).pruned(2),
    "three children": AttributeTree.interval(14, arity=3).pruned(2),
    "wide leaves": AttributeTree.interval(80).pruned(40),
    "lopsided": AttributeTree.groups([[[[0, 1], 2], 3, 4, 5], 6]).pruned(1),
    "clustered order": AttributeTree.interval(6, order=[4, 0, 3, 1, 5, 2]).pruned(1),
}


def data(rng, tree, dtype, lattice, n=21, m=3):
    d = tree.n_columns
    draw = (lambda size: rng.integers(0, 3, size)) if lattice else rng.random
    reference, rows = draw((n, d)).astype(dtype), draw((m, d)).astype(dtype)
    reference[:, 0] = 2  # a constant column
    rows[0] = reference[5]
    return reference, rows


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("lattice", [True, False])
def test_euclidean_radii_equal_the_naive_ones(rng, name, dtype, lattice):
    tree = TREES[name]
    reference, rows = data(rng, tree, dtype, lattice)
    own, out = np.array([5, -1, -1]), np.empty((3, tree.n_nodes), dtype=dtype)
    flat, caps = pack_lanes(reference[:, tree.order], 0.0), np.full(tree.n_columns, np.inf, dtype=dtype)
    links = (tree.start, tree.stop, tree.first_child, tree.n_children)
    sum_radii(rows[:, tree.order].copy(), own, caps, flat, np.empty(0, dtype), len(reference), *links, 4, out)
    expected = naive.radii(rows, reference, tree, 1.0, 4, np.zeros(tree.n_columns, dtype=bool), own)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("k", [*range(1, 10), 17])
@pytest.mark.parametrize("alpha", [1.0, 0.5])
def test_radii_of_every_rank_over_several_tiles_of_the_reference(rng, k, alpha):
    """Whole numbers, so that sums are exact in any order; more rows than a team, more reference rows than a tile."""
    tree, n = AttributeTree.interval(6).pruned(2), 2 * MOST_ROWS + 37
    reference, rows = rng.integers(0, 40, (n, 6)).astype(float), rng.integers(0, 40, (TEAM + 2, 6)).astype(float)
    own = np.array([n - 1, 3, *[-1] * TEAM])
    rows[:2] = reference[own[:2]]
    space = Reference(reference, tree, np.zeros(6), np.ones(6), np.zeros(6, dtype=bool), alpha)
    out = space.radii(rows, k, members=own)
    squares = (rows[:, None, :] - reference[None, :, :]) ** 2
    for node in range(tree.n_nodes):
        kept = kept_deviations(tree.size, alpha)[node]
        sums = np.sort(squares[:, :, tree.columns(node)], axis=2)[:, :, :kept].sum(axis=2)
        sums[[0, 1], own[:2]] = np.inf
        np.testing.assert_array_equal(out[:, node], np.sort(sums, axis=1)[:, k - 1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("alpha", [0.25, 0.5, 0.8])
def test_ranked_radii_equal_the_naive_ones(rng, name, dtype, alpha):
    tree = TREES[name]
    reference, rows = data(rng, tree, dtype, lattice=alpha == 0.5)
    own, out = np.array([5, -1, -1]), np.empty((3, tree.n_nodes), dtype=dtype)
    plan = ranked_plan(tree, kept_deviations(tree.size, alpha))

    def laid(values, padding):
        return np.where(plan.columns >= 0, values[:, tree.order][:, plan.columns], dtype(padding))

    flat, caps = pack_lanes(laid(reference, np.inf), 0.0), np.full(len(plan.columns), np.inf, dtype=dtype)
    ranked_radii(laid(rows, 0), own, caps, flat, len(reference), plan.steps, plan.slots, tree.n_nodes, 3, out)
    expected = naive.radii(rows, reference, tree, alpha, 3, np.zeros(tree.n_columns, dtype=bool), own)
    np.testing.assert_array_equal(out, expected)


def test_ranked_distance_of_the_specification():
    x, s = np.zeros(4), np.array([3.0, 1.0, 2.0, 0.0])
    e = naive.deviations(x, s, np.zeros(4, dtype=bool))
    assert [naive.ranked_distance(e, a, np.float64) for a in (0.25, 0.5, 0.75, 1.0)] == [0, 1, 5, 14]


@pytest.mark.parametrize("gaps", ["row", "reference", "both"])
def test_radii_with_missing_cells_and_categories(rng, gaps):
    tree = TREES["interval"]
    reference = rng.integers(0, 4, (19, 13)).astype(float)
    rows = rng.integers(0, 4, (4, 13)).astype(float)
    if gaps != "reference":
        rows[0, [1, 2, 7]] = np.nan
        rows[1, :6] = np.nan
    if gaps != "row":
        reference[rng.random(reference.shape) < 0.2] = np.nan
    categories = np.arange(13) % 3 == 0
    order = tree.order
    space = Reference(reference, tree, np.zeros(13), np.ones(13), categories)
    out = space.radii(rows, 3)
    narrow = (rows.astype(np.float32), reference.astype(np.float32))
    if gaps == "row":
        for i, row in enumerate(rows):  # scaled by size / observed after the K-th smallest: the same, up to rounding
            for node in range(tree.n_nodes):
                found = [
                    naive.distance(
                        tree, node, naive.deviations(narrow[0][i][order], s[order], categories[order]), 1.0, np.float32
                    )
                    for s in narrow[1]
                ]
                assert np.isnan(out[i, node]) == np.isnan(row[tree.columns(node)]).all()
                if not np.isnan(out[i, node]):
                    assert out[i, node] == pytest.approx(np.sort(found)[2], rel=1e-6)
        return
    expected = naive.radii(*narrow, tree, 1.0, 3, categories)
    np.testing.assert_array_equal(out, expected)


def test_ranked_radii_do_not_break_on_missing_cells(rng):
    tree = AttributeTree.interval(16).pruned(2)
    base = np.sin(np.arange(16) + rng.uniform(0, 6, (80, 1)))
    space = Reference(base, tree, np.zeros(16), np.ones(16), np.zeros(16, dtype=bool), 0.5)
    row = base[:1].copy()
    full = space.radii(row, 5)
    row[0, 3] = np.nan
    row[0, 8:10] = np.nan
    some = space.radii(row, 5)
    assert np.isnan(some[0]).sum() == 1  # the leaf [8, 10)
    known = ~np.isnan(some[0])
    np.testing.assert_allclose(some[0][known], full[0][known], atol=0.3)


@settings(max_examples=30)
@given(
    st.integers(0, 10_000), st.sampled_from([(35, 6), (1100, 20), (2500, 6)])
)  # part of a tile, several; many neighbours
def test_nearest_rows_equal_the_naive_ones(seed, sizes):
    n, k = sizes
    rng = np.random.default_rng(seed)
    tree = AttributeTree.interval(9, order=rng.permutation(9))
    reference = rng.integers(0, 4, (n, 9)).astype(np.float32)
    rows = rng.integers(0, 4, (3, 9)).astype(np.float32)
    rows[0, 2] = np.nan
    if seed % 2:
        reference[rng.random(reference.shape) < 0.1] = np.nan
    ignored, own = rng.random((3, 9)) < 0.3, np.array([-1, 4, -1])
    seen = (
        pack_lanes((~np.isnan(reference))[:, tree.order].astype(np.float32), 0.0)
        if seed % 2
        else np.empty(0, np.float32)
    )
    flat = pack_lanes(np.nan_to_num(reference[:, tree.order]), 0.0)
    caps = np.where(np.arange(9) % 2, np.float32(np.inf), np.float32(1))[tree.order]
    index, distance = np.empty((3, k), dtype=np.int64), np.empty((3, k), dtype=np.float32)
    nearest_rows(
        rows[:, tree.order].copy(), ignored[:, tree.order].copy(), own, caps, flat, seen, n, k, index, distance
    )
    if seed % 2:  # distances are per observed pair: check the order only
        assert (np.diff(distance, axis=1) >= 0).all()
        return
    for i in range(3):
        assert index[i].tolist() == naive.nearest(
            rows[i], reference, ignored[i], k, np.arange(9) % 2 == 0, tree, own[i]
        )


def test_results_do_not_depend_on_threads_or_batches(rng):
    tree = AttributeTree.interval(20).pruned(2)
    reference, rows = rng.normal(size=(50, 20)), rng.normal(size=(150, 20))
    for alpha in (1.0, 0.5):
        space = Reference(reference, tree, np.zeros(20), np.ones(20), np.zeros(20, dtype=bool), alpha)
        whole = space.radii(rows, 5)
        np.testing.assert_array_equal(whole, space.radii(rows, 5, n_jobs=2))
        np.testing.assert_array_equal(whole[70:73], space.radii(rows[70:73], 5))


def test_dtype_trap_on_lattice_data(rng):
    """Scaled lattice values are not exact in float32; reference and rows must still agree to the last bit (S3.3)."""
    reference = rng.integers(0, 12, (60, 11)) / 7.0 + 0.1
    tree = AttributeTree.interval(11).pruned(2)
    space = Reference(reference, tree, reference.mean(axis=0), np.full(11, 3.3), np.zeros(11, dtype=bool), 0.5)
    own = space.radii(reference, 2, members=np.arange(60))
    as_new = space.radii(reference.copy(), 3)  # the row itself is among the neighbours, at distance exactly 0
    np.testing.assert_array_equal(own, as_new)
