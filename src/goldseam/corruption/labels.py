"""Wrong class labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from goldseam.corruption.damage import Damage, choose_rows
from goldseam.errors import InputError

__all__ = ["flip_labels"]


def flip_labels(
    labels: ArrayLike,
    rate: float | NDArray[np.bool_] = 0.2,
    *,
    given: Any = None,
    random_state: int | np.random.Generator | None = None,
) -> Damage:
    """Give rows another of the classes that occur, all others equally likely.

    `rate` is the probability of a wrong label, or a mask of the rows; `given` restricts flips to one class. The result's
    `table` is the array of labels, its `cells` are (n_rows, 1).

    >>> flip_labels(["a", "a", "b"], 1.0, random_state=0).table.tolist()
    ['b', 'b', 'a']
    """
    old = np.asarray(labels)
    classes, codes = np.unique(old, return_inverse=True)
    if old.ndim != 1 or len(classes) < 2:
        raise InputError(
            f"Labels must be a list of at least 2 classes; got shape {old.shape} and {len(classes)} classes."
        )
    rng = np.random.default_rng(random_state)
    chosen = choose_rows(rate, len(old), rng, "rate")
    if given is not None:
        chosen = chosen[old[chosen] == given]
    codes[chosen] = (codes[chosen] + rng.integers(1, len(classes), chosen.size)) % len(classes)
    new = classes[codes]
    changed = new != old
    return Damage(new, changed[:, None], np.where(changed, "label", ""))
