"""The training values of numbers: many, or few that stand for many."""

from __future__ import annotations

import numpy as np
import pytest

from goldseam.field.beliefs import Beliefs
from goldseam.field.emission import Atoms, blank, empirical


@pytest.fixture
def atoms(rng):
    columns = np.stack(
        [rng.normal(size=900), rng.choice([-1.0, 0.0, 2.0], 900), rng.exponential(size=900) - 1.0], axis=1
    )
    return Atoms.of(columns, np.full(900, 1 / 900))


def test_merged_atoms_keep_the_moments_of_their_column(atoms):
    few = atoms.merged(np.full(3, 0.3))
    assert (np.diff(few.starts) <= [30, 3, 40]).all()
    for s in range(3):
        moments = []
        for one in (atoms, few):
            p, a, wide = np.exp(one.log_p[one.column(s)]), one.values[one.column(s)], one.widths[one.column(s)]
            moments.append([p.sum(), p @ a, p @ (a * a + wide)])
        np.testing.assert_allclose(moments[0], moments[1], atol=1e-12)
    np.testing.assert_array_equal(few.values[few.column(1)], [-1.0, 0.0, 2.0])


def test_predictions_hardly_see_that_near_atoms_were_merged(atoms, rng):
    sd = 0.4
    centre, spread = rng.normal(size=(200, 3)), np.full((200, 3), sd**2)
    beliefs = Beliefs(np.empty((200, 0)), centre, spread, centre, spread, np.ones(200, dtype=np.int64), np.zeros(200))
    nothing, zeros = np.full((200, 3), np.nan), np.zeros((200, 3))
    full, few = (empirical(one, nothing, zeros, beliefs) for one in (atoms, atoms.merged(np.full(3, 0.15 * sd))))
    np.testing.assert_allclose(few.mean, full.mean, atol=0.005 * sd)
    np.testing.assert_allclose(np.sqrt(few.variance), np.sqrt(full.variance), rtol=0.01, atol=1e-9)


@pytest.mark.parametrize("sd", [1e-4, 0.4, 30.0])
def test_blank_numbers_have_the_moments_of_the_slow_loop(atoms, rng, sd):
    centre = np.concatenate([rng.normal(size=(200, 3)), rng.normal(scale=100.0, size=(20, 3))])  # far outside too
    spread = np.full(centre.shape, sd**2)
    n = len(centre)
    beliefs = Beliefs(np.empty((n, 0)), centre, spread, centre, spread, np.ones(n, dtype=np.int64), np.zeros(n))
    slow = empirical(atoms, np.full(centre.shape, np.nan), np.zeros(centre.shape), beliefs)
    mean, variance = blank(atoms, centre, spread)
    np.testing.assert_allclose(mean, slow.mean, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(variance, slow.variance, rtol=1e-5, atol=1e-6)
