"""What the separation benchmarks share: splits, quality measures (S12.0) and sweeps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import SVC, LinearSVC

from goldseam import datasets
from goldseam.corruption.protocols import interval_protocol, square_protocol
from goldseam.separation import CorruptionSeparator
from goldseam.separation.search import cells_of_nodes, declared_nodes

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True)
class Trial:
    """One split with damaged test rows; `rest` are clean training rows that nothing else uses."""

    reference: FloatArray
    calibration: FloatArray
    clean: FloatArray
    rows: FloatArray
    mask: BoolArray
    labels: NDArray[Any]
    train: tuple[FloatArray, NDArray[Any]]
    linear_cost: float
    rest: FloatArray


def usps_trial(
    seed: int, digits: Sequence[int] = (0, 1), sizes: tuple[int, int, int | None] = (1000, 600, None)
) -> Trial:
    """E3 and E4: permutations and squares from one generator."""
    train, test = (datasets.load_usps(part, digits=digits) for part in ("train", "test"))
    rng = np.random.default_rng(seed)
    order, places = rng.permutation(train.n_rows), rng.permutation(test.n_rows)[: sizes[2]]
    clean = np.asarray(test.data)[places]
    damage = square_protocol(clean, rng)
    a, b = sizes[0], sizes[0] + sizes[1]
    pixels = np.asarray(train.data)
    return Trial(
        pixels[order[:a]],
        pixels[order[a:b]],
        clean,
        damage.values,
        damage.overwritten,
        test.target[places],
        (pixels, train.target),
        0.01,
        pixels[order[b:]],
    )


TABLES = {
    "wdbc": datasets.load_wdbc,
    "g241c": datasets.load_g241c,
    "g241n": datasets.load_g241n,
    "image-segmentation": datasets.load_image_segmentation,
    "sonar": datasets.load_sonar,
    "ringnorm": lambda: datasets.make_ringnorm(1400, 0),
    "ionosphere": datasets.load_ionosphere,
    "digits": datasets.load_digits,
}


def table_trial(name: str, split: int) -> Trial:
    """E5: min-max by the reference, intervals of uniform noise; digits snapped to values that occur."""
    found = TABLES[name]()
    data, target = np.asarray(found.data, dtype=np.float64), np.asarray(found.target)
    rng = np.random.default_rng(50 + split)
    n = len(data)
    order, a = rng.permutation(n), min(500, n // 2)
    b = a + min(150, n // 5)
    low, high = data[order[:a]].min(axis=0), data[order[:a]].max(axis=0)
    scaled = (data - low) / np.where(high > low, high - low, 1.0)
    reference, clean = scaled[order[:a]], scaled[order[b : b + 300]]
    damage = interval_protocol(
        clean, np.zeros_like(low), (high > low).astype(float), rng, lattice=reference if name == "digits" else None
    )
    labels = target[order[b : b + 300]]
    train = (reference, target[order[:a]])
    rest = scaled[order[b + 300 :]]
    return Trial(reference, scaled[order[a:b]], clean, damage.values, damage.overwritten, labels, train, 1.0, rest)


def columnwise(pixels: FloatArray) -> FloatArray:
    """Images column by column, as the paper lays them out."""
    return pixels.reshape(-1, 16, 16).transpose(0, 2, 1).reshape(len(pixels), -1)


def turned(trial: Trial) -> Trial:
    """The same trial with images laid out column by column."""
    parts = {
        name: columnwise(getattr(trial, name)) for name in ("reference", "calibration", "clean", "rows", "mask", "rest")
    }
    return Trial(**{**vars(trial), **parts, "train": (columnwise(trial.train[0]), trial.train[1])})


def run(trial: Trial, **settings: Any) -> tuple[CorruptionSeparator, Any]:
    separator = CorruptionSeparator(scaling="none", **settings).fit(trial.reference, clean_rows=trial.calibration)
    return separator, separator.restore(trial.rows)


def quality(trial: Trial, flagged: BoolArray, cells: BoolArray, restored: FloatArray) -> dict[str, float]:
    """FA, TD, F1, Q and SVM accuracies (S12.0)."""
    hit = trial.mask.any(axis=1)
    after, before = ((values[hit] - trial.clean[hit]) ** 2 for values in (restored, trial.rows))
    overlap = 2 * (cells & trial.mask).sum() / max(1, cells.sum() + trial.mask.sum())
    linear, curved = accuracies(trial, restored)
    return {
        "FA": float(flagged[~hit].mean()),
        "TD": float(flagged[hit].mean()),
        "F1": float(overlap),
        "Q": float(1 - after.sum() / before.sum()),
        "lin": linear,
        "rbf": curved,
    }


_MACHINES: dict[int, tuple[Any, Any, Any]] = {}  # the training rows are kept too, or another trial could get their id


def accuracies(trial: Trial, rows: FloatArray) -> tuple[float, float]:
    """Of a linear and an rbf SVM trained on clean data."""
    key = id(trial.train[0])
    if key not in _MACHINES:
        linear = LinearSVC(C=trial.linear_cost, max_iter=20_000).fit(*trial.train)
        _MACHINES[key] = (trial.train[0], linear, SVC(C=10, gamma="scale").fit(*trial.train))
    _, linear, curved = _MACHINES[key]
    return float(linear.score(rows, trial.labels)), float(curved.score(rows, trial.labels))


def spread(rows: Iterable[Mapping[str, float]]) -> dict[str, str]:
    """Mean and standard deviation over trials, as text."""
    listed = list(rows)
    return {
        name: f"{np.mean([row[name] for row in listed]):.3f}"
        + (f" ± {np.std([row[name] for row in listed], ddof=1):.3f}" if len(listed) > 1 else "")
        for name in listed[0]
    }


def sweep(separator: CorruptionSeparator, trial: Trial, levels: FloatArray) -> dict[str, float]:
    """AUC over rows and cells and the best F1 over levels of the search alone (S12.0)."""
    model, hit, points = separator.model_, trial.mask.any(axis=1), []
    p = model.scores(trial.rows).node_p_values
    for level in levels:
        nodes = declared_nodes(model.reference.tree, p <= level, model.rule)
        cells = cells_of_nodes(model.reference.tree, nodes)
        rows = cells.any(axis=1)
        f1 = 2 * (cells & trial.mask).sum() / max(1, cells.sum() + trial.mask.sum())
        points.append((rows[~hit].mean(), rows[hit].mean(), cells[~trial.mask].mean(), cells[trial.mask].mean(), f1))
    table = np.array(points)
    return {
        "AUCi": _area(table[:, 0], table[:, 1]),
        "AUCa": _area(table[:, 2], table[:, 3]),
        "best F1": table[:, 4].max(),
    }


def _area(false: FloatArray, true: FloatArray) -> float:
    x, y = np.concatenate(([0.0], false, [1.0])), np.concatenate(([0.0], true, [1.0]))
    order = np.lexsort((y, x))
    return float(np.trapezoid(y[order], x[order]))
