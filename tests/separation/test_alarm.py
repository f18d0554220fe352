from __future__ import annotations

import numpy as np
import pytest

from benchmarks.separation.alarms import share_sd
from goldseam.separation import CorruptionSeparator, alarm
from goldseam.separation.search import declared_nodes
from goldseam.separation.tree import AttributeTree
from tests.reference import separation_naive as naive

TABLE = [
    (1, 0, 0.1, 0.190000000, 0.019000000),
    (2, 0, 0.1, 0.316044100, 0.037639000),
    (2, 0.5, 0.05, 0.156590042, 0.068817436),
    (3, (0.8, 0.6, 0.4), 0.05, 0.294688371, 0.103659707),
    (6, 0, 0.01, 0.455510545, 0.006377583),
    (6, 0.7, 0.01, 0.306083969, 0.159740680),
    (6, 0.9, 0.002, 0.026681509, 0.014142430),
]


@pytest.mark.parametrize(("depth", "gamma", "tau", "paper", "confirmed"), TABLE)
def test_table_of_the_specification(depth, gamma, tau, paper, confirmed):
    tree = alarm.balanced_tree(depth)
    assert alarm.row_alarm_rate(tree, tau, gamma, "paper") == pytest.approx(paper, abs=1e-8)
    assert alarm.row_alarm_rate(tree, tau, gamma, "confirmed") == pytest.approx(confirmed, abs=1e-8)


def test_unbalanced_tree_of_the_specification():
    tree = AttributeTree.interval(30).pruned(2)
    assert alarm.row_alarm_rate(tree, 0.02, 0.7, "paper") == pytest.approx(0.171502178, abs=1e-8)
    assert alarm.row_alarm_rate(tree, 0.02, 0.7, "confirmed") == pytest.approx(0.088304547, abs=1e-8)


@pytest.mark.parametrize("rule", ["paper", "confirmed"])
@pytest.mark.parametrize("depth", [1, 2, 5])
@pytest.mark.parametrize("tau", [0.01, 0.2, 0.7])
def test_full_dependence_gives_the_node_rate(rule, depth, tau):
    assert alarm.row_alarm_rate(alarm.balanced_tree(depth), tau, 1.0, rule) == pytest.approx(tau, abs=1e-14)


@pytest.mark.parametrize("tau", [0.001, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("depth", [1, 2])
def test_closed_forms(tau, depth):
    expected = alarm.closed_form_rate(tau, depth)
    assert alarm.row_alarm_rate(alarm.balanced_tree(depth), tau, 0.0, "paper") == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("rule", ["paper", "confirmed"])
@pytest.mark.parametrize(
    "tree",
    [
        alarm.balanced_tree(1),
        alarm.balanced_tree(3),
        AttributeTree.interval(11).pruned(2),
        AttributeTree.interval(9, arity=3),
    ],
)
@pytest.mark.parametrize("gamma", [0.0, 0.3, 0.7])
@pytest.mark.parametrize("tau", [0.01, 0.1, 0.3])
def test_recursion_equals_monte_carlo(rng, tree, rule, gamma, tau):
    n = 40_000
    flagged = declared_nodes(tree, naive.draw_labels(tree, tau, gamma, n, rng), rule).any(axis=1).mean()
    rate = alarm.row_alarm_rate(tree, tau, gamma, rule)
    assert abs(flagged - rate) <= 4 * np.sqrt(rate * (1 - rate) / n) + 1e-9


def test_gamma_is_recovered(rng):
    tree = alarm.balanced_tree(4)
    labels = naive.draw_labels(tree, 0.2, 0.6, 20_000, rng)
    assert alarm.estimate_gamma(tree, labels)[0] == pytest.approx(0.6, abs=0.01)
    assert alarm.estimate_gamma(tree, labels, by_depth=True) == pytest.approx([0.6] * 4, abs=0.03)
    assert alarm.estimate_gamma(tree, np.zeros((5, tree.n_nodes), dtype=bool)) == [0.0]


def test_inversion_takes_the_smallest_root():
    tree = alarm.balanced_tree(6)
    rates = [alarm.row_alarm_rate(tree, j / 201, 0.0, "paper") for j in range(1, 201)]
    target = 0.85
    assert rates[59] < target < max(rates)  # not monotone: the rate falls below the target again
    level = alarm.invert_alarm_rate(tree, target, 200, lambda tau: 0.0, "paper")
    first = next(j for j, rate in enumerate(rates, 1) if rate > target)
    assert level == (first - 1) / 201
    assert alarm.invert_alarm_rate(tree, 1e-6, 200, lambda tau: 0.0, "paper") == 0.0


def test_conformal_limit_by_hand():
    levels = np.array([0.5, 0.1, 0.4, 0.2, 0.3, 0.6, 0.7, 0.8, 0.9])
    found = alarm.conformal_limit(levels, 0.2)  # k = floor(0.2 * 10) = 2
    assert (found.limit, found.rank) == (0.2, 2)
    assert alarm.conformal_limit(levels, 0.05).rank == 0


@pytest.mark.parametrize("target", [0.05, 0.1, 0.3])
def test_conformal_limit_keeps_its_promise(rng, target):
    flagged = [rng.random() < alarm.conformal_limit(rng.random(60), target).limit for _ in range(4000)]
    assert np.mean(flagged) <= target + 3 * np.sqrt(target * (1 - target) / 4000)


def test_equal_scan(rng):
    """(S-20) is the scan that raises the level while (1 + flagged) / (n + 1) stays within the target."""
    for _ in range(50):
        levels, target = rng.integers(1, 15, 40) / 15, 0.2
        limit = alarm.conformal_limit(levels, target).limit
        best = 0.0
        for tau in np.unique(levels):
            if (1 + (levels <= tau).sum()) / 41 > target:
                break
            best = tau
        np.testing.assert_array_equal(levels < limit, levels <= best)


def test_trust_shifts_the_limit():
    levels = np.arange(1, 11) / 10
    doubtful = alarm.conformal_limit(levels, 0.3, np.array([0.1, 0.1, 0.1, *[1.0] * 7]))
    assert doubtful.limit > alarm.conformal_limit(levels, 0.3).limit


@pytest.mark.parametrize("rate", [0.01, 0.05, 0.1, 0.2])
def test_share_of_flagged_rows_is_beta_binomial(rng, rate):
    """Its mean is the rate and its spread counts the calibration rows' own chance: what the benchmark compares with."""
    n, m, trials = 99, 150, 4000
    levels = rng.random((trials, n + m))
    shares = np.array([(row[n:] < alarm.conformal_limit(row[:n], rate).limit).mean() for row in levels])
    sd = share_sd(rate, n, m)
    assert abs(shares.mean() - rate) < 4 * sd / np.sqrt(trials)
    assert shares.std() == pytest.approx(sd, rel=0.1)
    assert sd > 1.2 * np.sqrt(rate * (1 - rate) / m)  # the measured rows alone would promise too much


def test_ties_are_parted_so_that_the_rate_is_used_in_full(rng):
    """Whole numbers and categories: many rows have the same radii, and a limit among ties would let all of them go."""
    rows = np.unique(rng.integers(0, 30, (400, 1)) + rng.integers(0, 6, (400, 8)), axis=0).astype(float)
    order = rng.permutation(len(rows))
    reference, clean = rows[order[99:]], rows[order[:99]]
    rates = {}
    for scores in ("continuous", "counted"):
        found = CorruptionSeparator(refine=False, scores=scores).fit(reference, clean_rows=clean)
        levels = found.calibration_.levels
        rates[scores] = [alarm.conformal_limit(levels, k / 100).rate for k in range(2, 31)]
    full = [(k - 1) / 99 for k in range(2, 31)]  # of 99 levels those below the k-th
    np.testing.assert_allclose(rates["continuous"], full)
    assert np.mean(rates["counted"]) < np.mean(full)
