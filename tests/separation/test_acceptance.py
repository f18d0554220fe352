"""Figures of the specification on real data (S13), and what the method does not see (S14)."""

from __future__ import annotations

import numpy as np
import pytest

from goldseam.corruption.protocols import interval_protocol, square_protocol
from goldseam.datasets import load_usps, load_wdbc, make_ringnorm
from goldseam.errors import DatasetNotFoundError
from goldseam.separation import CorruptionSeparator


def usps(seed, n_test=None):
    try:
        train, test = (load_usps(part, digits=(0, 1)) for part in ("train", "test"))
    except DatasetNotFoundError as error:
        pytest.skip(str(error))
    rng = np.random.default_rng(seed)
    order, places = rng.permutation(train.n_rows), rng.permutation(test.n_rows)[:n_test]
    pixels, clean = np.asarray(train.data), np.asarray(test.data)[places]
    return pixels[order[:1000]], pixels[order[1000:1600]], pixels[order[1600:]], clean, square_protocol(clean, rng)


def table(data, seed=50):
    rng = np.random.default_rng(seed)
    order, half = rng.permutation(len(data)), min(500, len(data) // 2)
    low, high = data[order[:half]].min(axis=0), data[order[:half]].max(axis=0)
    scaled = (data - low) / np.where(high > low, high - low, 1.0)
    cut = half + min(150, len(data) // 5)
    return scaled[order[:half]], scaled[order[half:cut]], scaled[order[cut : cut + 300]], rng


def overlap(found, mask):
    return 2 * (found & mask).sum() / (found.sum() + mask.sum())


def recovered(result, damaged, clean, hit):
    return 1 - ((result - clean)[hit] ** 2).sum() / ((damaged - clean)[hit] ** 2).sum()


@pytest.mark.slow
def test_squares_in_digits_product_mode():
    figures = []
    for seed in range(200, 205):
        reference, calibration, rest, clean, damage = usps(seed)
        separator = CorruptionSeparator((16, 16)).fit(reference, clean_rows=calibration)
        result, hit = separator.restore(damage.values), damage.rows
        held = (separator.predict(rest) == -1).mean()
        f1, q = overlap(result.cells, damage.overwritten), recovered(result.table, damage.values, clean, hit)
        figures.append((result.flagged[~hit].mean(), result.flagged[hit].mean(), f1, q, held))
    false, true, f1, q, held = np.mean(figures, axis=0)
    assert false <= 0.12
    assert held <= 0.07
    assert true >= 0.87
    assert f1 >= 0.88
    assert q >= 0.75


def test_squares_in_digits_one_seed():
    reference, calibration, _, clean, damage = usps(200, 200)
    separator = CorruptionSeparator((16, 16)).fit(reference, clean_rows=calibration)
    result = separator.restore(damage.values)
    assert overlap(result.cells, damage.overwritten) > 0.85
    assert recovered(result.table, damage.values, clean, damage.rows) > 0.75
    paper = CorruptionSeparator(rule="paper", refine=False, imputer="sibling-map").fit(
        reference, clean_rows=calibration
    )
    turned = damage.values
    assert overlap(paper.separate(turned), damage.overwritten) < 0.5


@pytest.mark.slow
def test_counted_scores_and_residuals_reproduce_the_reference_figures():
    """S12.3, check rows: α = 1, 5 %: TD .912, F1 .798, Q .650 over seeds 200-204."""
    figures = []
    for seed in range(200, 205):
        reference, calibration, _, clean, damage = usps(seed)
        separator = CorruptionSeparator((16, 16), refine="residuals", scores="counted", imputer="context-mean")
        result = separator.fit(reference, clean_rows=calibration).restore(damage.values)
        f1, q = overlap(result.cells, damage.overwritten), recovered(result.table, damage.values, clean, damage.rows)
        figures.append((result.flagged[damage.rows].mean(), f1, q))
    np.testing.assert_allclose(np.mean(figures, axis=0), [0.912, 0.798, 0.650], atol=0.003)


def test_runs_in_wdbc():
    reference, calibration, clean, rng = table(np.asarray(load_wdbc().data))
    damage = interval_protocol(clean, np.zeros(30), np.ones(30), rng)
    separator = CorruptionSeparator(alarm_rate=0.1, scaling="none", n_donors=5)
    result = separator.fit(reference, clean_rows=calibration).restore(damage.values)
    assert result.flagged[damage.rows].mean() >= 0.82
    assert overlap(result.cells, damage.overwritten) >= 0.75
    assert recovered(result.table, damage.values, clean, damage.rows) >= 0.78


@pytest.mark.parametrize("rate", [0.05, 0.1, 0.2])
def test_promised_rate_on_held_out_rows(rate):
    data = np.asarray(load_wdbc().data)
    shares = []
    for seed in range(6):
        order = np.random.default_rng(seed).permutation(len(data))
        parts = data[order[:200]], data[order[200:350]], data[order[350:]]
        separator = CorruptionSeparator(alarm_rate=rate).fit(parts[0], clean_rows=parts[1])
        shares.append((separator.predict(parts[2]) == -1).mean())
    spread = np.sqrt(rate * (1 - rate) * (1 / 152 + 1 / 219) / 6)
    assert np.mean(shares) <= rate + 2 * spread


def test_recursion_keeps_the_promise_with_room_to_spare():
    data = np.asarray(load_wdbc().data)
    order = np.random.default_rng(0).permutation(len(data))
    separator = CorruptionSeparator(alarm_rate=0.2, calibration="recursion", refine=False)
    separator.fit(data[order[:300]], clean_rows=data[order[300:400]])
    assert (separator.predict(data[order[400:]]) == -1).mean() <= 0.25


# --- what is not seen (S14): these fail to find the damage, and say so here ------------------------------------------


def test_values_of_the_columns_own_distribution_are_hardly_seen():
    reference, calibration, clean, rng = table(np.asarray(load_wdbc().data))
    mask = interval_protocol(clean, np.zeros(30), np.ones(30), rng).overwritten
    values = clean.copy()
    values[mask] = reference[rng.integers(len(reference), size=mask.shape), np.arange(30)][mask]
    separator = CorruptionSeparator(alarm_rate=0.1, scaling="none", refine=False).fit(reference, clean_rows=calibration)
    assert (separator.predict(values) == -1)[mask.any(axis=1)].mean() < 0.3


def test_background_colour_is_not_outlined():
    """Erasure by background (S12.8: .435 and .068 by the search): at 5 % less than half of the rows look odd, at 10 % little
    more (.52, of clean test rows .17), and two thirds of what is outlined or missed is wrong."""
    reference, calibration, _, clean, damage = usps(200, 300)
    values = np.where(damage.overwritten, 0.0, clean)
    for rate, most in ((0.05, 0.5), (0.1, 0.55)):
        separator = CorruptionSeparator((16, 16), alarm_rate=rate).fit(reference[:500], clean_rows=calibration)
        result = separator.restore(values)
        assert result.flagged[damage.rows].mean() < most
        assert overlap(result.cells, damage.overwritten) < 0.4


def test_scattered_cells_are_not_outlined():
    reference, calibration, clean, rng = table(np.asarray(load_wdbc().data))
    mask = (rng.random(clean.shape) < 0.1) & (rng.random((len(clean), 1)) < 0.5)
    values = np.where(mask, rng.random(clean.shape), clean)
    separator = CorruptionSeparator(alarm_rate=0.1, scaling="none").fit(reference, clean_rows=calibration)
    assert overlap(separator.separate(values), mask) < 0.45


def test_independent_columns_are_filled_no_better_than_by_their_means():
    reference, calibration, clean, rng = table(np.asarray(make_ringnorm(1400, 0).data))
    damage = interval_protocol(clean, np.zeros(20), np.ones(20), rng)
    separator = CorruptionSeparator(alarm_rate=0.1, scaling="none").fit(reference, clean_rows=calibration)
    found = separator.separate(damage.values)
    means = np.where(found, reference.mean(axis=0), damage.values)
    ours = recovered(separator.transform(damage.values), damage.values, clean, damage.rows)
    assert ours <= recovered(means, damage.values, clean, damage.rows) + 0.02
