"""Two elongated Gaussian classes, some training rows moved to a far ring (G7.1).

Every draw comes from one generator in the order that G7.1 gives, so that a seed gives the published data.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from goldseam.datasets.dataset import Dataset
from goldseam.datasets.flat import check_choice, continuous
from goldseam.errors import ParameterError

__all__ = ["RingStudy", "make_ring"]

COVARIANCE = ((20.0, 16.0), (16.0, 20.0))
CENTRES = {"separable": (3.0, -3.0), "printed": (3.0, 3.0)}
LABELS = ("replace", "random", "adversarial", "one-class")


@dataclass(frozen=True)
class RingStudy:
    """Training rows with anomalies, clean test rows; `train.details['anomalous']` is True for rows on the ring."""

    train: Dataset
    test: Dataset


def make_ring(
    random_state: int | np.random.Generator | None = None,
    *,
    radius: float = 55.0,
    anomalies: float = 0.2,
    geometry: str = "separable",
    labels: str = "replace",
    n_per_class: int = 100,
    n_test_per_class: int = 2000,
) -> RingStudy:
    """The ring study. Class -1 is centred at +m, class +1 at -m.

    Parameters
    ----------
    random_state : int, Generator or None
    radius : float
        Inner radius R of the ring; radii are uniform in area between R and R + 1, about the origin.
    anomalies : float
        Share of training rows that move to the ring, at least 0 and below 1.
    geometry : {'separable', 'printed'}
        m = (3, -3), Bayes error 1.69 %, or m = (3, 3), 23.98 %.
    labels : {'replace', 'random', 'adversarial', 'one-class'}
        The label of a moved row: as it was; drawn anew (rows drawn over both classes); the wrong side of the Bayes rule;
        or only rows of class +1 move, twice as many.
    n_per_class, n_test_per_class : int

    Examples
    --------
    >>> study = make_ring(0)
    >>> study.train.data[0].round(5).tolist(), int(study.train.details["anomalous"].sum())
    ([3.56228, -2.90465], 40)
    """
    check_choice("geometry", geometry, tuple(CENTRES))
    check_choice("labels", labels, LABELS)
    if not 0 <= anomalies < 1:
        raise ParameterError(f"anomalies must be at least 0 and below 1; got {anomalies!r}.")
    rng = np.random.default_rng(random_state)
    centre = np.array(CENTRES[geometry])
    train, test = (_draw_classes(rng, n, centre) for n in (n_per_class, n_test_per_class))
    y_train, y_test = (np.repeat([-1, 1], n) for n in (n_per_class, n_test_per_class))
    moved = _draw_moved(rng, labels, n_per_class, round(anomalies * n_per_class), y_train)
    train[moved] = _draw_ring(rng, radius, len(moved))
    if labels == "adversarial":
        y_train[moved] = np.where(train[moved] @ centre > 0, 1, -1)
    anomalous = np.isin(np.arange(2 * n_per_class), moved)
    name = f"ring ({geometry})"
    kinds = continuous(("x1", "x2"))
    return RingStudy(
        Dataset(name, train, y_train, kinds, "Generated, G7.1.", {"anomalous": anomalous}),
        Dataset(name, test, y_test, kinds, "Generated, G7.1."),
    )


def _draw_classes(rng: np.random.Generator, n: int, centre: NDArray[np.float64]) -> NDArray[np.float64]:
    factor = np.linalg.cholesky(np.array(COVARIANCE))
    return np.vstack([rng.standard_normal((n, 2)) @ factor.T + mean for mean in (centre, -centre)])


def _draw_moved(
    rng: np.random.Generator, labels: str, n: int, n_moved: int, target: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Rows that move, in row order; redraws their labels in `target` where the mode says so."""
    if labels == "random":
        moved = np.sort(rng.choice(2 * n, 2 * n_moved, replace=False))
        target[moved] = rng.choice([-1, 1], len(moved))
        return moved
    if labels == "one-class":
        return n + np.sort(rng.choice(n, min(n - 5, 2 * n_moved), replace=False))
    first, second = (rng.choice(n, n_moved, replace=False) for _ in range(2))
    return np.sort(np.concatenate([first, n + second]))


def _draw_ring(rng: np.random.Generator, radius: float, n: int) -> NDArray[np.float64]:
    radii = np.sqrt(rng.uniform(radius**2, (radius + 1) ** 2, n))
    angles = rng.uniform(0, 2 * np.pi, n)
    return np.column_stack([radii * np.cos(angles), radii * np.sin(angles)])
