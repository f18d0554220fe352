"""Relations of a row: the projection against a general solver, and what is impossible."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from goldseam.relations import System, broken, gaps, impossible, meet


def system(weights: list[list[float]], constants: list[float], low: float = -np.inf, high: float = np.inf) -> System:
    m = len(weights[0])
    return System(
        np.array(weights), np.array(constants), np.full(m, low), np.full(m, high), np.zeros(m, dtype=bool)
    )  # fmt: skip


def test_gaps_by_hand() -> None:
    rules = system([[1.0, -1.0, -2.0], [0.0, 1.0, 0.0]], [3.0, -1.0])
    np.testing.assert_allclose(
        gaps(rules, np.array([[10.0, 1.0, 2.0], [np.nan, 4.0, 0.0]])), [[8.0, 0.0], [np.nan, 3.0]]
    )
    assert broken(rules, np.array([[10.0, 1.0, 2.0], [np.nan, 4.0, 0.0]])).tolist() == [[True, False], [False, True]]


@pytest.mark.parametrize("seed", range(3))
def test_the_movement_is_the_least_for_its_variance(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rules = system(rng.normal(size=(2, 5)).tolist(), rng.normal(size=2).tolist())
    start, variance = rng.normal(size=(1, 5)), rng.uniform(0.2, 5.0, size=(1, 5))
    free = np.array([[True, True, False, True, True]])
    found = meet(rules, start, free, variance)[0]

    def rows(x: np.ndarray) -> np.ndarray:
        return gaps(rules, np.where(free[0], x, start[0])[None])[0]

    wanted = minimize(
        lambda x: ((x - start[0]) ** 2 / variance[0]).sum(),
        start[0],
        constraints={"type": "eq", "fun": rows},
        tol=1e-12,
    ).x
    np.testing.assert_allclose(found, np.where(free[0], wanted, start[0]), atol=1e-5)
    np.testing.assert_allclose(gaps(rules, found[None]), 0.0, atol=1e-12)


@pytest.mark.parametrize(
    ("rules", "never"),
    [
        (system([[1.0, -1.0]], [0.0]), False),
        (system([[1.0, -1.0], [2.0, -2.0]], [0.0, 0.0]), False),
        (system([[1.0, -1.0], [2.0, -2.0]], [0.0, 1e-6]), True),
        (system([[1e6, -1e6], [1e-6, -1e-6]], [0.0, 1e-6]), True),
        (system([[1.0, -1.0]], [3.0], 0.0, 2.0), True),
        (system([[1.0, -1.0]], [2.0], 0.0, 2.0), False),
        (system([[1.0, 1.0]], [-1e9]), False),
    ],
)
def test_what_no_row_can_meet(rules: System, never: bool) -> None:
    assert impossible(rules) is never


def test_whole_numbers_may_make_it_impossible() -> None:
    real = system([[2.0, 4.0]], [-3.0])
    assert not impossible(real)
    assert impossible(System(real.weights, real.constants, real.low, real.high, np.ones(2, dtype=bool)))
