"""Two spherical Gaussian classes (S12.6)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from goldseam.datasets.dataset import Dataset
from goldseam.datasets.flat import continuous

__all__ = ["make_two_gaussians"]


def make_two_gaussians(
    n_rows: int = 200, mean: Sequence[float] = (1.0, 1.0), random_state: int | np.random.Generator | None = None
) -> Dataset:
    """Classes N(mean, I) (target 1) and N(-mean, I) (target -1), half of the rows each, the first class first.

    >>> found = make_two_gaussians(6, random_state=0)
    >>> found.data.shape, found.target.tolist()
    ((6, 2), [1, 1, 1, -1, -1, -1])
    """
    rng = np.random.default_rng(random_state)
    centre = np.asarray(mean, dtype=np.float64)
    target = np.where(np.arange(n_rows) < (n_rows + 1) // 2, 1, -1)
    data = rng.standard_normal((n_rows, len(centre))) + target[:, None] * centre
    kinds = continuous([f"x{i + 1}" for i in range(len(centre))])
    return Dataset("two Gaussians", data, target, kinds, "Generated, S12.6.")
