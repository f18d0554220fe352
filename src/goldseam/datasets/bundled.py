"""Sets that ship with scikit-learn, in the shape of the others: always there, no files needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from goldseam.datasets.dataset import Dataset
from goldseam.datasets.flat import continuous
from goldseam.datasets.sources import describe

__all__ = ["load_digits", "load_wdbc", "load_wine"]


def load_wdbc() -> Dataset:
    """Breast Cancer Wisconsin (diagnostic), 569 rows, 30 columns, target 0 (malignant) or 1 (benign).

    >>> load_wdbc()
    Dataset('wdbc', 569 rows, 30 columns)
    """
    from sklearn.datasets import load_breast_cancer

    return _bundled("wdbc", load_breast_cancer)


def load_digits() -> Dataset:
    """Handwritten digits, 1,797 rows, 8 x 8 pixels from 0 to 16 row by row, target 0 to 9."""
    from sklearn.datasets import load_digits as load

    return _bundled("digits", load)


def load_wine() -> Dataset:
    """Chemistry of wines, 178 rows, 13 columns, target 0, 1 or 2."""
    from sklearn.datasets import load_wine as load

    return _bundled("wine", load)


def _bundled(name: str, load: Callable[[], Any]) -> Dataset:
    bunch = load()
    names = [str(column).replace(" ", "_") for column in bunch.feature_names]
    data = np.asarray(bunch.data, dtype=np.float64)
    return Dataset(name, data, np.asarray(bunch.target, dtype=np.int64), continuous(names), describe(name))
