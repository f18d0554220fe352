"""Restore pictures: handwritten digits with patches of noise and dead pixels.

    python examples/images.py [FOLDER] [--usps]

The columns are the cells of a grid, and the restorer is told so; the report shows the rows as pictures, with a golden
seam around what was mended. The digits ship with scikit-learn (8 x 8); `--usps` takes the larger USPS set, when it is there.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import goldseam as gs
from goldseam.datasets import load_digits, load_usps


def damaged(images: NDArray[np.float64], side: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """A patch of noise in every fourth picture, a dead patch in every twentieth."""
    low, high = images.min(), images.max()
    out = images.reshape(-1, side, side).copy()
    for i in range(0, len(out), 4):
        height, width = rng.integers(side // 4, side // 2 + 1, 2)
        top, left = rng.integers(0, side - height + 1), rng.integers(0, side - width + 1)
        patch = np.round(rng.uniform(low, high, (height, width)), 3)
        out[i, top : top + height, left : left + width] = np.nan if i % 20 == 0 else patch
    return out.reshape(len(out), -1)


def main(folder: Path, usps: bool = False) -> tuple[gs.Restoration, NDArray[np.float64]]:
    """The restoration and the truth."""
    rng = np.random.default_rng(5)
    data = np.asarray((load_usps() if usps else load_digits()).data, dtype=np.float64)
    side = int(np.sqrt(data.shape[1]))
    rows = rng.permutation(len(data))[:1500]
    reference, truth = data[rows[:1200]], data[rows[1200:]]
    restorer = gs.Restorer(alarm_rate=0.05, grid_shape=(side, side), random_state=0).fit(reference)
    result = restorer.restore(damaged(truth, side, rng))
    folder.mkdir(parents=True, exist_ok=True)
    result.seam.write(folder / "seam.parquet")
    result.save_report(folder / "images.html", title="Handwritten digits")
    print(result)
    return result, truth


if __name__ == "__main__":
    places = [word for word in sys.argv[1:] if not word.startswith("-")]
    main(Path(places[0] if places else "goldseam-demo"), usps="--usps" in sys.argv)
