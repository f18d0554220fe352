"""The loaders and the protocols' draws together give the published figures of classifiers on damaged rows.

These depend on the data, the splits and every draw, but on none of our methods.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from goldseam import datasets
from goldseam.corruption.protocols import (
    failure_protocol,
    interval_protocol,
    mixed_protocol,
    mixed_protocol_seed,
    square_protocol,
)
from goldseam.datasets import load_digits, load_usps, load_wdbc
from goldseam.datasets.locate import find_folder
from goldseam.schema import Kind


def needs(folder):
    if find_folder(folder) is None:
        pytest.skip(f"the shared data set {folder} is not on this machine (set GOLDSEAM_DATA)")


def test_squares_on_usps():
    """S8.4 and S12.2: digits 0 and 1, test rows twice, corruption seed 11; linear and RBF SVM."""
    needs("usps")
    train, test = load_usps(digits=(0, 1)), load_usps("test", digits=(0, 1))
    rows, target = np.vstack([test.data, test.data]), np.tile(test.target, 2)
    damaged = square_protocol(rows, np.random.default_rng(11)).values
    linear = LinearSVC(C=0.01).fit(train.data, train.target)
    rbf = SVC(C=10, gamma="scale").fit(train.data, train.target)
    got = [model.score(values, target) for values in (rows, damaged) for model in (linear, rbf)]
    np.testing.assert_allclose(got, (0.9936, 0.9952, 0.9567, 0.9502), atol=5e-5)


@pytest.mark.parametrize(
    ("digits", "seed", "n_rows", "expected"),
    [
        ((3, 8), 77, 332, (0.964, 0.976, 0.916, 0.922)),
        pytest.param(tuple(range(10)), 78, 500, (0.916, 0.962, 0.814, 0.834), marks=pytest.mark.slow),
    ],
)
def test_squares_on_other_digits(digits, seed, n_rows, expected):
    """S12.4: the order of draws is permutation of training rows, of test rows, then the squares."""
    needs("usps")
    train, test = load_usps(digits=digits), load_usps("test", digits=digits)
    rng = np.random.default_rng(seed)
    rng.permutation(train.n_rows)
    chosen = test.take(rng.permutation(test.n_rows)[:n_rows])
    damaged = square_protocol(chosen.data, rng).values
    linear = LinearSVC(C=0.01).fit(train.data, train.target)
    rbf = SVC(C=10, gamma="scale").fit(train.data, train.target)
    got = [model.score(values, chosen.target) for values in (chosen.data, damaged) for model in (linear, rbf)]
    np.testing.assert_allclose(got, expected, atol=6e-4)


def bundled_or_shared(name):
    if name not in ("wdbc", "digits"):
        needs(name.replace("_", "-"))
    return getattr(datasets, f"load_{name}")()


@pytest.mark.parametrize(
    ("name", "n_splits", "expected"),
    [
        ("wdbc", 4, (0.975, 0.961, 0.887, 0.852)),
        ("image_segmentation", 2, (0.912, 0.947, 0.798, 0.790)),
        ("sonar", 4, (0.754, 0.837, 0.730, 0.798)),
        ("ionosphere", 4, (0.887, 0.943, 0.811, 0.854)),
        ("g241n", 2, (0.803, 0.867, 0.748, 0.800)),
        ("digits", 2, (0.938, 0.977, 0.785, 0.872)),
    ],
)
def test_intervals_on_tables(name, n_splits, expected):
    """S12.5: accuracy of linear and RBF SVM on original and corrupted rows, mean over splits."""
    found = bundled_or_shared(name)
    scores = [interval_scores(found.data, found.target, 50 + i, snapped=name == "digits") for i in range(n_splits)]
    np.testing.assert_allclose(np.mean(scores, axis=0), expected, atol=6e-4)


def interval_scores(data, target, seed, snapped):
    rng = np.random.default_rng(seed)
    n_rows, order = len(data), rng.permutation(len(data))
    first, second = min(500, n_rows // 2), min(500, n_rows // 2) + min(150, n_rows // 5)
    chosen, incoming = order[:first], order[second : second + 300]
    low, span = data[chosen].min(axis=0), np.ptp(data[chosen], axis=0)
    reference, rows = ((data[part] - low) / np.where(span > 0, span, 1) for part in (chosen, incoming))
    lattice = reference if snapped else None
    damaged = interval_protocol(rows, np.zeros(len(span)), (span > 0).astype(float), rng, lattice=lattice).values
    linear = LinearSVC(C=1, max_iter=20_000).fit(reference, target[chosen])
    rbf = SVC(C=10, gamma="scale").fit(reference, target[chosen])
    return [model.score(values, target[incoming]) for values in (rows, damaged) for model in (linear, rbf)]


@pytest.mark.parametrize(
    ("name", "n_train", "nearest", "linear"),
    [
        ("german", 667, (0.760, 0.742, 0.729, 0.713, 0.705, 0.687), (0.775, 0.754, 0.730, 0.701, 0.685, 0.686)),
        ("australian", 460, (0.839, 0.803, 0.767, 0.715, 0.670, 0.608), (0.839, 0.769, 0.704, 0.635, 0.598, 0.549)),
        (
            "credit_approval",
            460,
            (0.843, 0.794, 0.740, 0.701, 0.634, 0.600),
            (0.861, 0.787, 0.731, 0.685, 0.614, 0.552),
        ),
    ],
)
def test_noise_and_flips_on_credit_tables(name, n_train, nearest, linear):
    """F11.4: KNN and linear SVM on rows with noise tau = 0, .1, ..., .5, mean over ten repetitions."""
    needs(name.replace("_", "-"))
    found = getattr(datasets, f"load_{name}")()
    rows = np.arange(found.n_rows)
    parts = [found.take(part).complete() for part in (rows[:n_train], rows[n_train:])]
    got = mixed_scores(*parts, repetitions=10)
    np.testing.assert_allclose(got, np.column_stack([nearest, linear]), atol=6e-4)


@pytest.mark.slow
def test_noise_and_flips_on_adult():
    """F11.4: 2,000 test rows, KNN from 10,000 training rows, three repetitions."""
    needs("adult")
    train, test = (datasets.load_adult(part).complete() for part in ("train", "test"))
    chosen = np.random.default_rng(123).permutation(test.n_rows)[:2000]
    nearest = np.random.default_rng(5).permutation(train.n_rows)[:10_000]
    got = mixed_scores(train, test, repetitions=3, test_rows=chosen, nearest_rows=nearest)
    expected = [(0.831, 0.821, 0.822, 0.808, 0.798, 0.784), (0.852, 0.834, 0.822, 0.802, 0.789, 0.774)]
    np.testing.assert_allclose(got, np.transpose(expected), atol=6e-4)


def mixed_scores(train, test, repetitions, test_rows=slice(None), nearest_rows=slice(None)):
    """Mean accuracies of KNN and linear SVM, (strength, classifier)."""
    frames = [train.frame(), test.frame()]
    number_names = [name for name, kind in train.kinds.items() if kind is not Kind.CATEGORICAL]
    category_names = [name for name in train.kinds if name not in number_names]
    levels = {name: sorted({*frames[0][name], *frames[1][name]}) for name in category_names}
    n_levels = [len(levels[name]) for name in category_names]
    numbers = [frame.select(number_names).to_numpy().astype(float) for frame in frames]
    mean, sd = numbers[0].mean(axis=0), numbers[0].std(axis=0)
    numbers = [(part - mean) / sd for part in numbers]
    codes = [
        np.column_stack([np.searchsorted(levels[name], frame[name].to_numpy()) for name in category_names])
        for frame in frames
    ]

    def features(values, labels):
        return np.hstack([values, *(np.eye(n)[labels[:, j]] for j, n in enumerate(n_levels))])

    rows = features(numbers[0], codes[0])
    models = [
        KNeighborsClassifier(5).fit(rows[nearest_rows], train.target[nearest_rows]),
        LinearSVC(C=1, dual=False).fit(rows, train.target),
    ]
    clean, labels, target = numbers[1][test_rows], codes[1][test_rows].astype(np.int32), test.target[test_rows]
    result = []
    for noise in (0.0, 0.1, 0.2, 0.3, 0.4, 0.5):
        scores = []
        for repetition in range(repetitions):
            rng = np.random.default_rng(mixed_protocol_seed(repetition, noise, 0.0))
            damage = mixed_protocol(clean, labels, n_levels, noise=noise, gaps=0.0, rng=rng)
            damaged = features(damage.numbers, damage.codes)
            scores.append([model.score(damaged, target) for model in models])
        result.append(np.mean(scores, axis=0))
    return result


FAILURES = {
    "cancer": {"noise": (4.87, 2.81), "saturate": (7.41, 3.51), "dead": (4.39, 2.94), "label": (6.93, 2.85)},
    "digits": {"noise": (3.91, 3.07), "saturate": (2.58, 2.44), "dead": (2.72, 2.58), "label": (17.0, 2.6)},
}


@pytest.mark.parametrize("kind", ["noise", "saturate", "dead", "label"])
@pytest.mark.parametrize("name", ["cancer", "digits"])
def test_injected_failures(name, kind):
    """G7.5: test error in % of a linear SVM trained on all rows and on the intact ones, mean over eight splits."""
    if name == "cancer":
        found, groups = load_wdbc(), [range(0, 10), range(10, 20), range(20, 30)]
        data, target = found.data, np.where(found.target == 1, 1, -1)
    else:
        found, groups = load_digits(), [range(8 * i, 8 * i + 16) for i in range(7)]
        found = found.take(np.isin(found.target, (3, 8)))
        data, target = found.data, np.where(found.target == 3, 1, -1)
    errors = [failure_errors(data, target, groups, kind, seed) for seed in range(8)]
    np.testing.assert_allclose(np.mean(errors, axis=0), FAILURES[name][kind], atol=0.05 if kind == "label" else 0.006)


def failure_errors(data, target, groups, kind, seed):
    train, test, y_train, y_test = train_test_split(data, target, test_size=0.5, random_state=seed, stratify=target)
    damage = failure_protocol(train, y_train, groups, kind, np.random.default_rng(seed))
    scaler = StandardScaler().fit(damage.values)
    rows, incoming = scaler.transform(damage.values), scaler.transform(test)
    masks = (np.ones(len(rows), dtype=bool), ~damage.failed)
    models = [SVC(kernel="linear", C=1).fit(rows[mask], damage.labels[mask]) for mask in masks]
    return [100 * (1 - model.score(incoming, y_test)) for model in models]
