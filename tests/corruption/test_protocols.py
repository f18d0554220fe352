"""The exact draws of the experiments, against loops written from the text of the specs."""

from __future__ import annotations

import numpy as np
import pytest

from goldseam.corruption.protocols import (
    FAILURE_KINDS,
    PEER_KINDS,
    failure_protocol,
    interval_protocol,
    mixed_protocol,
    mixed_protocol_seed,
    nearly_constant,
    peer_protocol,
    peer_split,
    square_protocol,
)
from goldseam.errors import ParameterError
from goldseam.schema import Blocks, Column, Kind, Schema
from tests.reference import corruption_protocols as reference


def test_squares(rng):
    images = rng.random((60, 256))
    damage = square_protocol(images, np.random.default_rng(11))
    values, rows = reference.squares(images, 11)
    np.testing.assert_array_equal(damage.values, values)
    np.testing.assert_array_equal(damage.rows, rows)
    np.testing.assert_array_equal(damage.overwritten, values != images)
    assert set(damage.overwritten.sum(axis=1)[rows]) <= {side**2 for side in range(4, 12)}


def test_squares_cover_a_fifth_of_the_area():
    damage = square_protocol(np.zeros((4000, 256)), np.random.default_rng(0))
    assert abs(damage.overwritten[damage.rows].mean() - 0.22) < 0.02


def test_squares_need_square_images():
    with pytest.raises(ParameterError, match="16 x 16 = 256 columns; got 64"):
        square_protocol(np.zeros((3, 64)), np.random.default_rng(0))


def test_intervals(rng):
    values = rng.normal(size=(80, 30))
    low, high = values.min(axis=0), values.max(axis=0)
    damage = interval_protocol(values, low, high, np.random.default_rng(50))
    expected, rows = reference.intervals(values, low, high, 50)
    np.testing.assert_array_equal(damage.values, expected)
    np.testing.assert_array_equal(damage.rows, rows)
    np.testing.assert_array_equal(damage.overwritten, expected != values)


def test_intervals_on_a_lattice_use_its_values(rng):
    values = rng.integers(0, 17, (50, 64)) / 16
    damage = interval_protocol(values, np.zeros(64), np.ones(64), np.random.default_rng(0), lattice=values)
    plain = interval_protocol(values, np.zeros(64), np.ones(64), np.random.default_rng(0))
    np.testing.assert_array_equal(damage.overwritten, plain.overwritten)
    for j in range(64):
        assert np.isin(damage.values[:, j], values[:, j]).all()
    assert np.abs(damage.values - plain.values).max() < 0.2


@pytest.mark.parametrize(("noise", "gaps"), [(0.3, 0.0), (0.2, 0.3), (0.0, 0.5), (0.5, 0.1)])
def test_mixed(rng, noise, gaps):
    numbers = rng.normal(size=(40, 5))
    n_levels = (2, 3, 14)
    codes = np.column_stack([rng.integers(0, levels, 40) for levels in n_levels]).astype(np.int32)
    generator = np.random.default_rng(mixed_protocol_seed(3, noise, gaps))
    damage = mixed_protocol(numbers, codes, n_levels, noise=noise, gaps=gaps, rng=generator)
    x, y = reference.mixed(numbers, codes, n_levels, noise, gaps, 3)
    np.testing.assert_array_equal(damage.numbers, x)
    np.testing.assert_array_equal(damage.codes, y)
    assert (damage.blank.sum(axis=1) == round(gaps * 8)).all()
    np.testing.assert_array_equal(damage.blank, np.hstack([np.isnan(x), y == -1]))
    assert damage.codes.dtype == np.int32


def test_mixed_rates(rng):
    codes = rng.integers(0, 4, (5000, 2)).astype(np.int32)
    damage = mixed_protocol(np.zeros((5000, 1)), codes, (4, 4), noise=0.3, gaps=0.0, rng=rng)
    assert abs((damage.codes != codes).mean() - 0.3) < 4 * np.sqrt(0.21 / 10_000)
    assert abs(damage.numbers.std() - 0.3) < 0.015


def test_mixed_without_categories(rng):
    damage = mixed_protocol(np.zeros((6, 4)), np.empty((6, 0), dtype=np.int32), (), noise=0.1, gaps=0.5, rng=rng)
    assert np.isnan(damage.numbers).sum(axis=1).tolist() == [2] * 6


@pytest.mark.parametrize("kind", FAILURE_KINDS)
def test_failures(rng, kind):
    values, labels = rng.normal(3, 1, size=(100, 9)), rng.choice([-1, 1], 100)
    groups = [range(0, 3), range(3, 6), range(6, 9)]
    damage = failure_protocol(values, labels, groups, kind, np.random.default_rng(4))
    expected, y, bad = reference.failures(values, labels, groups, kind, 4)
    np.testing.assert_allclose(damage.values, expected, rtol=1e-13)
    np.testing.assert_array_equal(damage.labels, y)
    np.testing.assert_array_equal(damage.failed, bad)
    assert ((damage.group >= 0) == (bad & (kind != "label"))).all()


def test_failures_overlapping_groups_and_unknown_kind(rng):
    values, labels = rng.normal(size=(50, 8)), np.ones(50, dtype=np.int64)
    damage = failure_protocol(values, labels, [(0, 1, 2), (2, 3)], "dead", np.random.default_rng(0))
    np.testing.assert_array_equal((damage.values == 0).any(axis=1), damage.failed)
    with pytest.raises(ParameterError, match=r"kind must be one of 'noise'.*; got 'melt'"):
        failure_protocol(values, labels, [(0,)], "melt", rng)


SCHEMA = Schema(
    (
        Column("a", Kind.CONTINUOUS),
        Column("town", Kind.CATEGORICAL, ("x", "y", "z")),
        Column("when", Kind.PASSTHROUGH),
        Column("age", Kind.INTEGER),
        Column("steps", Kind.CONTINUOUS),
        Column("flag", Kind.BOOLEAN, (False, True)),
        *(Column(f"n{i}", Kind.CONTINUOUS) for i in range(6)),
    )
)


def blocks(n_rows, seed):
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(n_rows, 9))
    numbers[:, 1] = rng.integers(18, 90, n_rows)
    numbers[:, 2] = rng.integers(0, 5, n_rows) / 2
    codes = np.column_stack([rng.integers(0, 3, n_rows), rng.integers(0, 2, n_rows)]).astype(np.int32)
    return Blocks(numbers, codes)


def flat(part):
    """Modelled columns in table order."""
    n, c = part.numbers, part.codes
    return np.column_stack([n[:, 0], c[:, 0], n[:, 1], n[:, 2], c[:, 1], n[:, 3:]])


@pytest.mark.parametrize("kind", PEER_KINDS)
def test_peer_truth(kind):
    incoming, trusted = blocks(300, 1), blocks(500, 0)
    damage = peer_protocol(incoming, SCHEMA, trusted, kind, np.random.default_rng(0))
    np.testing.assert_array_equal(damage.cells, flat(incoming) != flat(damage.blocks))
    assert abs(damage.rows.mean() - 0.5) < 4 * np.sqrt(0.25 / 300)
    again = peer_protocol(incoming, SCHEMA, trusted, kind, np.random.default_rng(0))
    np.testing.assert_array_equal(again.blocks.numbers, damage.blocks.numbers)
    ages = damage.blocks.numbers[:, 1]
    np.testing.assert_array_equal(ages, np.rint(ages))
    assert damage.blocks.codes.min() >= 0
    assert (damage.blocks.codes.max(axis=0) < (3, 2)).all()


def test_peer_kinds_by_their_marks():
    incoming, trusted = blocks(2000, 1), blocks(500, 0)
    made = {kind: peer_protocol(incoming, SCHEMA, trusted, kind, np.random.default_rng(2)) for kind in PEER_KINDS}
    # lattices stay lattices, marginals stay among the reference's values
    for kind in ("interval", "scatter-uniform", "scatter-marginal"):
        hit = made[kind].cells[:, 3]
        assert np.isin(made[kind].blocks.numbers[hit, 2], trusted.numbers[:, 2]).all()
    drawn = made["scatter-marginal"].blocks.numbers[made["scatter-marginal"].cells[:, 0], 0]
    assert np.isin(drawn, trusted.numbers[:, 0]).all()
    # scatter: a tenth of the cells of damaged rows, at least one
    rate = made["scale"].cells[made["scale"].rows].mean()
    assert abs(rate - (0.1 + 0.9**11 / 11)) < 0.01
    # interval: 1 to 4 columns of 11 (some draws leave a category as it was)
    assert made["interval"].cells.sum(axis=1).max() == 4
    # noise: every number of the row, half a standard deviation
    noisy = made["noise"]
    rows = noisy.rows
    assert noisy.cells[rows][:, 0].all()
    noise = (noisy.blocks.numbers - incoming.numbers)[rows, 0]
    assert abs(noise.std() / trusted.numbers[:, 0].std() - 0.5) < 0.05
    assert abs(noisy.cells[rows][:, 1].mean() - 0.2) < 0.05


def test_peer_unknown_kind():
    with pytest.raises(ParameterError, match=r"kind must be one of 'interval'.*; got 'swap'"):
        peer_protocol(blocks(5, 0), SCHEMA, blocks(5, 0), "swap", np.random.default_rng(0))


def test_peer_split_is_disjoint_and_bounded():
    for n_rows, sizes in ((690, (345, 138, 207)), (2310, (1000, 462, 600)), (9000, (1000, 500, 600))):
        parts = peer_split(n_rows, 1)
        assert tuple(map(len, parts)) == sizes
        assert np.unique(np.concatenate(parts)).size == sum(sizes)
    assert not np.array_equal(peer_split(100, 0)[0], peer_split(100, 1)[0])


def test_nearly_constant():
    part = blocks(200, 0)
    part.numbers[:199, 3] = 7.0
    part.codes[:150, 1] = 0
    assert nearly_constant(part, SCHEMA).nonzero()[0].tolist() == [5]
