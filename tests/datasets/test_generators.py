"""Generators against the check values of the specs."""

from __future__ import annotations

import numpy as np
import pytest

from goldseam.datasets import (
    footstep_features,
    load_ida_ringnorm,
    load_ida_twonorm,
    make_footsteps,
    make_mixed_net,
    make_ring,
    make_ringnorm,
    make_two_gaussians,
    make_twonorm,
    make_waveform,
    split_footsteps,
)
from goldseam.datasets.mixed_net import draw_field, sample_field
from goldseam.errors import DatasetNotFoundError, ParameterError


def test_ring_check_values():
    """G7.1, sep, R 55, share .2, seed 0."""
    train = make_ring(0, radius=55, anomalies=0.2).train
    moved = np.flatnonzero(train.details["anomalous"])
    np.testing.assert_allclose(train.data[0], (3.56228, -2.90465), atol=5e-6)
    assert moved[:5].tolist() == [2, 5, 8, 17, 40]
    np.testing.assert_allclose(train.data[2], (-36.0967, 41.8005), atol=5e-5)
    np.testing.assert_allclose(train.data.sum(), 324.7056, atol=5e-5)
    assert (train.details["anomalous"] & (train.target == -1)).sum() == 20


@pytest.mark.parametrize(("geometry", "bayes"), [("separable", 0.0169), ("printed", 0.2398)])
def test_ring_bayes_error(geometry, bayes):
    test = make_ring(1, geometry=geometry, n_test_per_class=20_000).test
    precision = np.linalg.inv([[20.0, 16.0], [16.0, 20.0]])
    centre = np.array([3.0, -3.0]) if geometry == "separable" else np.array([3.0, 3.0])
    predicted = np.where(test.data @ precision @ centre > 0, -1, 1)
    assert abs((predicted != test.target).mean() - bayes) < 4 * np.sqrt(bayes * (1 - bayes) / 40_000)


@pytest.mark.parametrize("labels", ["replace", "random", "adversarial", "one-class"])
def test_ring_label_modes(labels):
    train = make_ring(3, labels=labels, anomalies=0.3).train
    clean = make_ring(3, anomalies=0.0).train
    moved = train.details["anomalous"]
    assert moved.sum() == 60
    radii = np.linalg.norm(train.data[moved], axis=1)
    assert radii.min() >= 55
    assert radii.max() <= 56
    np.testing.assert_array_equal(train.data[~moved], clean.data[~moved])
    np.testing.assert_array_equal(train.target[~moved], clean.target[~moved])
    if labels == "replace":
        np.testing.assert_array_equal(train.target, clean.target)
    if labels == "random":
        assert 0 < (train.target != clean.target).sum() < 60
    if labels == "adversarial":
        bayes = np.sign(-train.data[moved] @ (3, -3))
        np.testing.assert_array_equal(train.target[moved], -bayes)
    if labels == "one-class":
        assert (train.target[moved] == 1).all()
        assert make_ring(3, labels=labels, anomalies=0.6).train.details["anomalous"].sum() == 95


def test_ring_bad_settings():
    with pytest.raises(ParameterError, match=r"anomalies must be at least 0 and below 1; got 1\.0"):
        make_ring(0, anomalies=1.0)
    with pytest.raises(ParameterError, match=r"labels must be one of 'replace'.*; got 'adv'"):
        make_ring(0, labels="adv")
    with pytest.raises(ParameterError, match="geometry must be one of 'separable', 'printed'; got 'sep'"):
        make_ring(0, geometry="sep")


def test_two_gaussians():
    found = make_two_gaussians(20_001, (1.5, 0.5), random_state=0)
    assert (found.target == 1).sum() == 10_001
    np.testing.assert_allclose(found.data[found.target == 1].mean(axis=0), (1.5, 0.5), atol=0.04)
    np.testing.assert_allclose(found.data[found.target == -1].mean(axis=0), (-1.5, -0.5), atol=0.04)
    np.testing.assert_allclose(np.cov(found.data[found.target == 1].T), np.eye(2), atol=0.06)
    accuracy = (np.sign(found.data @ (1.5, 0.5)) == found.target).mean()
    assert abs(accuracy - 0.9431) < 0.01  # normal cdf of the length of the mean, sqrt(2.5)


def test_norms_have_their_moments():
    a = 2 / np.sqrt(20)
    two = make_twonorm(20_000, 0)
    np.testing.assert_allclose(two.data[two.target == 1].mean(axis=0), a, atol=0.05)
    np.testing.assert_allclose(two.data[two.target == -1].mean(axis=0), -a, atol=0.05)
    ring = make_ringnorm(20_000, 0)
    wide, narrow = ring.data[ring.target == 0], ring.data[ring.target == 1]
    np.testing.assert_allclose(wide.var(axis=0), 4, atol=0.3)
    np.testing.assert_allclose(narrow.mean(axis=0), a, atol=0.05)
    np.testing.assert_allclose(narrow.var(axis=0), 1, atol=0.08)


@pytest.mark.parametrize(("load", "make"), [(load_ida_twonorm, make_twonorm), (load_ida_ringnorm, make_ringnorm)])
def test_norms_are_those_of_the_files(load, make):
    try:
        test = load("test")
    except DatasetNotFoundError as error:
        pytest.skip(str(error))
    made = make(7000, 0)
    spread = sorted(test.data[test.target == label].std() for label in (-1, 1))
    scaled = (made.data - made.data.mean(axis=0)) / made.data.std(axis=0)
    np.testing.assert_allclose(
        sorted(scaled[made.target == label].std() for label in np.unique(made.target)), spread, atol=0.02
    )


def test_waveform_means_by_hand():
    found = make_waveform(60_000, 0)
    waves = np.array([[max(6 - abs(i - centre), 0) for i in range(1, 22)] for centre in (11, 15, 7)])
    for label, (first, second) in enumerate([(0, 1), (0, 2), (1, 2)]):
        mean = found.data[found.target == label].mean(axis=0)
        np.testing.assert_allclose(mean, (waves[first] + waves[second]) / 2, atol=0.08)


def test_generators_follow_their_seed():
    for make in (make_twonorm, make_ringnorm, make_waveform):
        np.testing.assert_array_equal(make(20, 3).data, make(20, 3).data)
        assert (make(20, 3).data != make(20, 4).data).any()


def test_mixed_field_parameters():
    field = draw_field(np.random.default_rng(0))
    assert np.linalg.eigvalsh(field.B).min() > 0
    degree = field.edges_cc.sum(axis=1)
    np.testing.assert_array_equal(np.diag(field.B), 1 + 4 * degree)
    assert set(np.unique(field.B - np.diag(np.diag(field.B)))) == {0.0, 4.0}
    blocks = field.R.reshape(15, 10, 3)
    assert all(sorted(blocks[s, j]) == [-1, 0, 1] for s, j in zip(*np.nonzero(field.edges_cd), strict=True))
    assert (blocks[~field.edges_cd] == 0).all()
    phi = field.Phi.reshape(10, 3, 10, 3)
    j, k = np.argwhere(field.edges_dd)[0]
    np.testing.assert_array_equal(phi[j, :, k], 0.5 + np.eye(3))
    np.testing.assert_array_equal(field.Phi, field.Phi.T)
    assert (phi[np.arange(10), :, np.arange(10)] == 0).all()


def test_mixed_field_shifts():
    field = draw_field(np.random.default_rng(1))
    one = (field.shifted(0.25, "nonzero").R - field.R).reshape(15, 10, 3)
    every = (field.shifted(0.25, "all").R - field.R).reshape(15, 10, 3)
    np.testing.assert_allclose(one.sum(axis=2), 0.5 * field.edges_cd)
    np.testing.assert_allclose(every.sum(axis=2), 0.75 * field.edges_cd)


def test_edges_are_as_dense_as_they_should_be():
    fields = [draw_field(np.random.default_rng(seed)) for seed in range(40)]
    assert abs(np.mean([f.edges_cd.mean() for f in fields]) - 0.15) < 0.02
    assert abs(np.mean([f.edges_cc[np.triu_indices(15, 1)].mean() for f in fields]) - 0.15) < 0.02


def test_gibbs_reaches_the_conditional_law():
    """Given the categories, numbers are N(B^-1 (a + R d), B^-1), (F-2); checked by whitening."""
    field = draw_field(np.random.default_rng(2))
    numbers, codes = sample_field(field, 3000, np.random.default_rng(3), n_sweeps=200)
    d = np.eye(3)[codes].reshape(3000, -1)
    mean = np.linalg.solve(field.B, field.a[:, None] + field.R @ d.T).T
    white = (numbers - mean) @ np.linalg.cholesky(field.B)
    np.testing.assert_allclose(white.mean(axis=0), 0, atol=4 / np.sqrt(3000))
    np.testing.assert_allclose(np.cov(white.T), np.eye(15), atol=0.12)


def test_gibbs_category_law():
    """P(v_j | rest) of (F-4), averaged over the rows, is the share of the state."""
    field = draw_field(np.random.default_rng(4))
    numbers, codes = sample_field(field, 4000, np.random.default_rng(5), n_sweeps=200)
    d = np.eye(3)[codes].reshape(4000, -1)
    logits = (field.h + numbers @ field.R + d @ field.Phi).reshape(4000, 10, 3)
    probability = np.exp(logits - logits.max(axis=2, keepdims=True))
    probability /= probability.sum(axis=2, keepdims=True)
    np.testing.assert_allclose(probability.mean(axis=0), d.mean(axis=0).reshape(10, 3), atol=0.03)


def test_mixed_net_study():
    study = make_mixed_net(0, n_sweeps=20)
    assert study.dataset.n_rows == 1500
    assert np.bincount(study.dataset.target).tolist() == [750, 750]
    assert len(study.dataset.splits["train"]) == 1000
    assert study.dataset.splits["test"].tolist() == list(range(1000, 1500))
    assert (np.diff(study.dataset.target) != 0).sum() > 500  # shuffled
    assert make_mixed_net(0, n_sweeps=20).dataset.frame().equals(study.dataset.frame())
    with pytest.raises(ParameterError, match="shifted must be one of 'nonzero', 'all'; got 'some'"):
        make_mixed_net(0, shifted="some")


def test_footstep_features_by_hand():
    """A pure tone fills one mel filter; silence gives the constant of the logarithm."""
    silence = footstep_features(np.zeros((1, 12_000)))
    assert silence.shape == (1, 200)
    np.testing.assert_allclose(silence[0, :2], (np.sqrt(40) * np.log(1e-6), 0), atol=1e-9)
    np.testing.assert_allclose(silence.reshape(10, 20), np.tile(silence[0, :20], (10, 1)), atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "mean", "sd", "failed"),
    [(0, 0.95209, 4.36526, (0.180, 0.273, 0.487, 0.127)), (1, 0.94855, 4.28855, (0.193, 0.247, 0.447, 0.153))],
)
def test_footstep_check_values(seed, mean, sd, failed):
    """G7.4."""
    study = make_footsteps(seed)
    assert study.features.shape == (1200, 4, 200)
    np.testing.assert_allclose((study.features.mean(), study.features.std()), (mean, sd), atol=5.1e-6)
    np.testing.assert_allclose(study.failed.mean(axis=0), failed, atol=5e-4)
    if seed == 0:
        np.testing.assert_allclose(study.features[0, 0, :3], (25.3772, 0.5197, 2.6996), atol=5e-5)
    assert np.bincount(study.target + 1).tolist() == [84 * 8, 0, 66 * 8]
    assert set(study.mode[:, 3]) == {"", "burst", "dropout"}
    train, test = split_footsteps(study, 0)
    assert len(train) == 400
    assert not set(study.subject[train]) & set(study.subject[test])
