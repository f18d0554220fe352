"""Images as rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from goldseam.datasets.dataset import Dataset
from goldseam.datasets.flat import check_choice, continuous
from goldseam.datasets.locate import require_folder
from goldseam.datasets.reading import read_numbers
from goldseam.datasets.sources import describe
from goldseam.errors import ParameterError

__all__ = ["load_usps"]

_FILES = {"train": "zip.train.gz", "test": "zip.test.gz"}


def load_usps(subset: str = "train", *, digits: Sequence[int] | None = None) -> Dataset:
    """Handwritten digits, 16 x 16 pixels row by row in [0, 1] (0 is background), target 0 to 9.

    `subset` is 'train' (7,291 rows), 'test' (2,007) or 'all'; `digits` keeps some classes, e.g. (0, 1). Rows stay in
    file order. Column by column instead of row by row: `data.reshape(-1, 16, 16).transpose(0, 2, 1).reshape(-1, 256)`.
    """
    check_choice("subset", subset, (*_FILES, "all"))
    if digits is not None and not set(digits) <= set(range(10)):
        raise ParameterError(f"digits must be numbers from 0 to 9; got {tuple(digits)!r}.")
    folder = require_folder("usps")
    parts = _FILES.values() if subset == "all" else (_FILES[subset],)
    values = np.vstack([read_numbers(folder / part, 257) for part in parts])
    labels = values[:, 0].astype(np.int64)
    pixels = np.round((values[:, 1:] + 1.0) / 2.0, 4)  # the file has three decimals of [-1, 1]
    kinds = continuous([f"pixel_{i}_{j}" for i in range(16) for j in range(16)])
    found = Dataset("usps", pixels, labels, kinds, describe("usps"))
    return found if digits is None else found.take(np.isin(labels, tuple(digits)))
