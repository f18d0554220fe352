"""Breiman's classics: twonorm, ringnorm and waveform.

Twonorm: classes N(+a, I) and N(-a, I); ringnorm: class 0 N(0, 4 I), class 1 N(a, I); both in 20 dimensions with
a = 2 / sqrt(20) in every coordinate. Waveform: a random mixture of two of three triangular waves of 21 points, plus unit
noise; the class says which two.
"""

from __future__ import annotations

import numpy as np

from goldseam.datasets.dataset import Dataset
from goldseam.datasets.flat import continuous

__all__ = ["make_ringnorm", "make_twonorm", "make_waveform"]

RandomState = int | np.random.Generator | None


def make_twonorm(n_rows: int = 400, random_state: RandomState = None, *, n_columns: int = 20) -> Dataset:
    """Two Gaussians, target -1 or 1, each row's class drawn at random.

    >>> make_twonorm(10, 0)
    Dataset('twonorm', 10 rows, 20 columns)
    """
    rng = np.random.default_rng(random_state)
    target = rng.choice([-1, 1], n_rows)
    data = rng.standard_normal((n_rows, n_columns)) + target[:, None] * (2 / np.sqrt(n_columns))
    return _generated("twonorm", data, target)


def make_ringnorm(n_rows: int = 400, random_state: RandomState = None, *, n_columns: int = 20) -> Dataset:
    """A narrow Gaussian (target 1) inside a wide one (target 0), each row's class drawn at random.

    >>> make_ringnorm(10, 0)
    Dataset('ringnorm', 10 rows, 20 columns)
    """
    rng = np.random.default_rng(random_state)
    target = rng.integers(0, 2, n_rows)
    noise = rng.standard_normal((n_rows, n_columns))
    data = np.where(target[:, None] == 0, 2 * noise, noise + 2 / np.sqrt(n_columns))
    return _generated("ringnorm", data, target)


def make_waveform(n_rows: int = 400, random_state: RandomState = None) -> Dataset:
    """Mixtures of two triangular waves, target 0, 1 or 2, each row's class drawn at random.

    >>> make_waveform(10, 0)
    Dataset('waveform', 10 rows, 21 columns)
    """
    rng = np.random.default_rng(random_state)
    points = np.arange(1, 22)
    waves = np.maximum(6 - np.abs(points - np.array([[11], [15], [7]])), 0)
    pairs = np.array([(0, 1), (0, 2), (1, 2)])
    target = rng.integers(0, 3, n_rows)
    share = rng.random((n_rows, 1))
    first, second = waves[pairs[target, 0]], waves[pairs[target, 1]]
    data = share * first + (1 - share) * second + rng.standard_normal((n_rows, 21))
    return _generated("waveform", data, target)


def _generated(name: str, data: np.ndarray, target: np.ndarray) -> Dataset:
    return Dataset(name, data, target, continuous([f"x{i}" for i in range(data.shape[1])]), "Generated after Breiman.")
