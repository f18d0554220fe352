"""Log evidence along the sweeps, and the plain twins of the compiled loops."""

from __future__ import annotations

import numpy as np
import pytest

from goldseam.errors import ParameterError
from goldseam.field.bounds import trace
from goldseam.field.inference import Noise, infer
from tests.field.test_inference import NOISES, table
from tests.reference.field_enumeration import enumerate_row, random_field


def log_evidence(field, x, y, noise):
    """By enumeration, with the constants that `enumerate_row` leaves out."""
    seen, sigma = ~np.isnan(x), noise.sigma
    noisy, clamped = seen & (sigma > 0), seen & (sigma == 0)
    precision = np.where(noisy, 1.0 / np.where(sigma > 0, sigma, 1.0) ** 2, 0.0)
    value = enumerate_row(field, x, y, sigma, noise.flip)[3]
    free = ~clamped
    A = (field.B + np.diag(precision))[np.ix_(free, free)]
    value += 0.5 * free.sum() * np.log(2 * np.pi) - 0.5 * np.linalg.slogdet(A)[1]
    value -= 0.5 * np.sum(np.log(2 * np.pi / precision[noisy]) + precision[noisy] * x[noisy] ** 2)
    fixed = np.where(clamped, np.nan_to_num(x), 0.0)
    return value - 0.5 * fixed @ field.B @ fixed


@pytest.mark.parametrize(("sigma", "flip"), NOISES)
def test_bethe_is_the_log_evidence_on_trees(rng, sigma, flip):
    field = random_field(rng, 4, [2, 3, 4, 2, 3], tree=True)
    X, y = table(rng, field, 8, 0.4)
    noise = Noise(np.full(4, sigma), np.full(5, flip))
    got = trace(field, X, y, noise, steps=30).values[-1]
    exact = [log_evidence(field, X[i], y[i], noise) for i in range(8)]
    np.testing.assert_allclose(got, exact, atol=1e-8)


def test_bethe_settles_close_to_the_log_evidence_on_loops(rng):
    field = random_field(rng, 3, [2, 3, 2, 3], strength=0.5)
    X, y = table(rng, field, 20, 0.3)
    noise = Noise(np.full(3, 0.4), np.full(4, 0.2))
    values = trace(field, X, y, noise, steps=12).values
    exact = np.array([log_evidence(field, X[i], y[i], noise) for i in range(20)])
    assert np.abs(values[-1] - exact).max() < 0.005
    assert np.abs(np.diff(values, axis=0)[-1]).max() < 1e-5  # flat in the end


def test_the_published_loop_rises_and_flattens(rng):
    """F5.4: the sum over the rows was seen to rise and to flatten in about six steps."""
    field = random_field(rng, 5, [2, 3, 2, 4, 3], strength=0.4)
    X, y = table(rng, field, 60, 0.2)
    noise = Noise(np.full(5, 0.3), np.full(5, 0.2))
    total = trace(field, X, y, noise, method="structured", steps=10).values.sum(axis=1)
    assert total[0] < total[-1]
    steps = np.abs(np.diff(total))
    assert steps[5:].max() < 0.01 * steps[0]


def test_the_naive_bound_never_falls_and_stays_below_the_evidence(rng):
    field = random_field(rng, 3, [2, 3, 2], strength=0.8)
    X, y = table(rng, field, 12, 0.3)
    noise = Noise(np.full(3, 0.4), np.full(3, 0.2))
    values = trace(field, X, y, noise, method="mean-field", steps=12).values
    assert (np.diff(values, axis=0) > -1e-9).all()
    assert values[-1].sum() > values[0].sum() + 1e-3
    exact = np.array([log_evidence(field, X[i], y[i], noise) for i in range(12)])
    assert (values[-1] < exact + 1e-9).all()


@pytest.mark.parametrize(("method", "steps"), [("lbp", 3), ("structured", 4), ("mean-field", 4)])
@pytest.mark.parametrize(("sigma", "flip"), NOISES)
def test_plain_and_compiled_loops_agree(rng, method, steps, sigma, flip):
    field = random_field(rng, 4, [2, 3, 5, 2], strength=0.7)
    X, y = table(rng, field, 30, 0.3)
    noise, p0 = Noise(np.full(4, sigma), np.full(4, flip)), np.full(12, 0.2)
    limits = {"max_sweeps": steps} if method == "lbp" else {"outer": steps}
    fast = infer(field, X, y, noise, method=method, frequencies=p0, tol=0.0, **limits)
    plain = trace(field, X, y, noise, method=method, steps=steps, frequencies=p0)
    np.testing.assert_allclose(fast.Q, plain.Q, atol=1e-10)


def test_sampling_has_no_trace(rng):
    field = random_field(rng, 1, [2])
    with pytest.raises(ParameterError, match="got 'gibbs'"):
        trace(field, np.zeros((1, 1)), np.zeros((1, 1), dtype=np.int32), Noise.nil(1, 1), method="gibbs")
