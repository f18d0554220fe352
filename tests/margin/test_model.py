"""The model against brute force: gradients, the sampler, the objective, invariances."""

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.preprocessing import RobustScaler
from sklearn.svm import SVC

from goldseam.datasets.ring import make_ring
from goldseam.margin import GEMMEDClassifier, fitting, gibbs, solvers, thresholds, trust
from goldseam.margin.entropy import EuclideanRows
from goldseam.margin.fields import Fields, fit_fields, proven_field
from tests.reference.margin_enumeration import gradients, log_partition, marginals


@pytest.fixture
def small_problem(rng):
    n = 12
    rows = rng.normal(size=(n, 2))
    signs = np.where(np.arange(n) < 6, -1.0, 1.0)
    codes = (signs > 0).astype(np.int64)
    return {
        "rows": rows,
        "gram": rows @ rows.T + 1.0,
        "signs": signs,
        "codes": codes,
        "entropy": rng.normal(2.0, 1.0, n),
        "budgets": np.array([5.0, 7.0]),
        "alpha": rng.uniform(0, 1, n),
        "duals": np.array([0.7, 2.5]),
    }


def test_gradients_equal_differences_of_the_partition_function(small_problem):
    s = small_problem
    fixed = (s["gram"], s["signs"], s["entropy"], s["codes"], s["budgets"])
    by_alpha, by_dual = gradients(*fixed, s["alpha"], s["duals"], 0.4)
    step = 1e-5

    def difference(name, i):
        up, down = s[name].copy(), s[name].copy()
        up[i] += step
        down[i] -= step

        def at(values):
            changed = {**s, name: values}
            return log_partition(*fixed, changed["alpha"], changed["duals"], 0.4)

        return (at(up) - at(down)) / (2 * step)

    assert np.max(np.abs(by_alpha - [difference("alpha", i) for i in range(12)])) < 1e-8
    assert np.max(np.abs(by_dual - [difference("duals", i) for i in range(2)])) < 1e-8


def test_sampler_has_the_exact_marginals_and_gradients(small_problem, rng):
    s = small_problem
    exact = marginals(s["gram"], s["signs"], s["entropy"], s["codes"], s["alpha"], s["duals"], 0.4)
    exact_gradient, exact_dual = gradients(
        s["gram"], s["signs"], s["entropy"], s["codes"], s["budgets"], s["alpha"], s["duals"], 0.4
    )
    phi = gibbs.linear_features(s["rows"]).phi
    odds = logit(0.4) - s["duals"][s["codes"]] * s["entropy"] / 12
    eta = np.ones(12)
    chance, gradient = np.zeros(12), np.zeros(12)
    for _ in range(4000):
        sweeps = gibbs._sweep(phi, s["signs"], s["alpha"], odds, eta, rng)
        eta = sweeps.eta
        chance, gradient = chance + sweeps.probability / 4000, gradient + sweeps.gradient / 4000
    np.testing.assert_allclose(chance, exact, atol=0.02)
    np.testing.assert_allclose(gradient, exact_gradient, atol=0.04)
    literal = solvers.LiteralEntropy(s["entropy"], s["budgets"], s["codes"], np.array([6, 6]))
    np.testing.assert_allclose(gibbs._dual_gradient(literal, exact), exact_dual, atol=1e-12)


def test_kernel_features_reproduce_the_kernel(rng):
    rows = rng.normal(size=(20, 3))
    gram = fitting.gram_matrix(rows, "rbf", 0.5)
    features = gibbs.kernel_features(gram)
    np.testing.assert_allclose(features.phi @ features.phi.T, gram, atol=1e-6)
    theta = rng.normal(size=features.phi.shape[1])
    np.testing.assert_allclose(gram @ (features.back @ theta), features.phi @ theta, atol=1e-6)


def ring_problem(seed, *, threshold="gap", radius=35.0, anomalies=0.3):
    study = make_ring(seed, radius=radius, anomalies=anomalies)
    codes = (study.train.target > 0).astype(np.int64)
    space = EuclideanRows(study.train.data)
    settings = trust.FieldSettings(threshold=threshold)
    _, g, _ = fit_fields(space, codes, 2, settings, np.random.default_rng(0))
    return study.train.data, codes, trust.log_odds(g, 0.5, 2.0)


def fields_keeping(n_kept, n_rows):
    field = trust.ClassField(np.arange(n_rows), 15, 0.0, 1.0, 1e-12, n_kept, n_rows, "on")
    return Fields((field,), None)


@pytest.mark.parametrize(("beyond", "proof"), [(0.2, False), (5.0, True)])
def test_only_a_gap_beyond_the_reach_of_the_core_is_proof(rng, beyond, proof):
    """Forty values from -2 to -0.5 reach 0.42 (median -1.25, MAD 0.375); with twenty just above -0.5, all reach 1.9."""
    sparse = -np.append(np.linspace(-2.0, -0.5, 40), np.linspace(0.0, 1.0, 20) + beyond)
    rows, codes, fields = rng.normal(size=(60, 4)), np.zeros(60, dtype=np.int64), fields_keeping(40, 60)
    assert thresholds.hangs_together(np.sort(-sparse)) != proof
    asked = proven_field(fields, sparse, sparse, rows, codes, isolation=True)
    np.testing.assert_array_equal(asked, sparse if proof else trust.FIELD_LIMITS[1])
    not_asked = proven_field(fields, sparse, sparse, rows, codes, isolation=False)
    np.testing.assert_array_equal(not_asked, sparse)


@pytest.mark.parametrize("n_kept", [195, 170])
def test_readings_that_lie_apart_bear_a_gap_out_and_without_one_count_against_their_rows_alone(rng, n_kept):
    rows = rng.uniform(size=(200, 12))
    rows[:30, 4:] = rng.uniform(1.5, 4.0, size=(30, 1))
    g = rng.uniform(-1.0, 1.0, size=200)
    assert thresholds.hangs_together(np.sort(-g))
    found = proven_field(fields_keeping(n_kept, 200), g, g, rows, np.zeros(200, dtype=np.int64), isolation=True)
    assert (found[:30] < 0).all()
    np.testing.assert_array_equal(found[30:], g[30:] if n_kept == 170 else trust.FIELD_LIMITS[1])


def test_objective_falls_along_the_published_sequence():
    rows, codes, odds = ring_problem(1)
    fit_machine = fitting.LinearFitter(rows, fitting.class_signs(codes, 2), 1.0, "libsvm", tol=1e-6)
    rule = solvers.FieldPrior(odds, 1.0)
    found = solvers.mean_field(fit_machine, rule, codes, np.ones(200), C=1.0, start=np.ones(200), tol=1e-4)
    np.testing.assert_allclose(found.objectives[:5], [60.759, 4.0172, 3.7437, 3.7373, 3.7373], atol=1e-3)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("beta", [0.0, 1.0, 4.0])
def test_objective_never_rises(rng, kernel, beta):
    rows, codes, odds = ring_problem(2, radius=15.0)
    signs, weights = fitting.class_signs(codes, 2), rng.uniform(0.5, 2.0, 200)
    rows = rows / 5
    fitter = (
        fitting.LinearFitter(rows, signs, 1.0, "libsvm", tol=1e-6)
        if kernel == "linear"
        else fitting.KernelFitter(rows, signs, 1.0, "rbf", 0.3, tol=1e-6)
    )
    found = solvers.mean_field(fitter, solvers.FieldPrior(odds, beta), codes, weights, C=1.0, tol=1e-5)
    assert np.all(np.diff(found.objectives) <= 1e-5)


def test_objective_is_the_integral_of_trust_over_loss():
    odds, loss, beta = np.array([-1.0, 0.3, 2.0]), np.array([0.0, 1.3, 4.0]), 1.7
    grid = np.linspace(0.0, 1.0, 20_001)
    area = [np.trapezoid(expit(a - beta * grid * top), grid * top) for a, top in zip(odds, loss, strict=True)]
    assert trust.objective(0.5, odds, loss, beta, np.ones(3)) == pytest.approx(0.5 + sum(area), abs=1e-6)
    assert trust.objective(0.5, odds, loss, 1e-9, np.ones(3)) == pytest.approx(
        trust.objective(0.5, odds, loss, 0.0, np.ones(3)), abs=1e-5
    )


def test_field_does_not_depend_on_scale_rotation_or_shift(rng):
    study = make_ring(3, radius=35.0)
    angle = 0.7
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    plain = GEMMEDClassifier(random_state=0, linear_solver="libsvm").fit(study.train.data / 50, study.train.target)
    moved = GEMMEDClassifier(random_state=0, linear_solver="libsvm", C=1e-4, loss_strength=1.0)
    moved.fit((123 * study.train.data @ turn.T + 7) / 50, study.train.target)
    assert np.max(np.abs(plain.field_ - moved.field_)) < 1e-9


@pytest.mark.parametrize("printed_budget", [False, True])
@pytest.mark.parametrize(("radius", "anomalies"), [(15.0, 0.2), (55.0, 0.2), (55.0, 0.4)])
def test_printed_regulariser_is_inert(radius, anomalies, printed_budget):
    for seed in range(5):
        study = make_ring(seed, radius=radius, anomalies=anomalies)
        codes = (study.train.target > 0).astype(np.int64)
        literal = solvers.literal_entropy(
            EuclideanRows(study.train.data),
            codes,
            n_neighbors=10,
            dimension=2.0,
            bipartite=False,
            rng=np.random.default_rng(0),
            lowest=0.4,
            printed_budget=printed_budget,
        )
        rule = solvers.LiteralPrior(literal, 0.5, 1.0)
        fitter = fitting.LinearFitter(study.train.data, fitting.class_signs(codes, 2), 1.0, "libsvm")
        found = solvers.mean_field(fitter, rule, codes, np.ones(200), C=1.0)
        assert rule.duals.tolist() == [0.0, 0.0]
        assert found.trust.max() <= 0.5


def test_printed_defects_can_be_had(rng):
    """G3, items 2 and 5: an undivided budget is N times as large, the printed position one row further up."""
    rows, codes = rng.normal(size=(40, 2)), np.repeat([0, 1], 20)

    def literal(**switches):
        rng = np.random.default_rng(0)
        return solvers.literal_entropy(
            EuclideanRows(rows), codes, n_neighbors=4, dimension=2.0, bipartite=True, rng=rng, **switches
        )

    plain, further = literal(), literal(printed_position=True)
    np.testing.assert_allclose(literal(printed_budget=True).budgets, 40 * plain.budgets)
    np.testing.assert_array_equal(further.n_kept, plain.n_kept + 1)
    for code in (0, 1):
        first_above = np.sort(plain.values[codes == code])[plain.n_kept[code]]
        assert further.budgets[code] == pytest.approx(plain.budgets[code] + first_above)


def test_literal_dual_holds_the_budget():
    h = np.array([1.0, 2.0, 3.0, 4.0])
    literal = solvers.LiteralEntropy(h, np.array([1.0]), np.zeros(4, dtype=np.int64), np.array([1]))
    rule = solvers.LiteralPrior(literal, 0.5, 1.0)
    pi = rule.update(np.zeros(4))
    assert np.sum(pi * h) == pytest.approx(1.0)
    assert rule.duals[0] > 0


def test_sampler_and_mean_field_agree_where_both_settle():
    study = make_ring(5, radius=55.0)
    X = RobustScaler().fit_transform(study.train.data)
    mean_field = GEMMEDClassifier(random_state=0).fit(X, study.train.target)
    sampled = GEMMEDClassifier(random_state=0, solver="gibbs", max_iter=800).fit(X, study.train.target)
    anomalous = study.train.details["anomalous"]
    for model in (mean_field, sampled):
        assert model.sample_trust_[anomalous].max() < 0.05
    assert np.mean(mean_field.predict(X)[~anomalous] == sampled.predict(X)[~anomalous]) > 0.96


def test_machine_equals_scikit_learn(rng):
    X, y = rng.normal(size=(80, 4)), rng.integers(0, 2, 80)
    signs, weights = fitting.class_signs(y, 2), rng.uniform(0.2, 1.0, 80)
    new = rng.normal(size=(30, 4))
    linear = fitting.LinearFitter(X, signs, 1.0, "libsvm")(weights)
    expected = SVC(kernel="linear", tol=1e-3).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(linear.machine.scores(new)[:, 0], expected.decision_function(new), atol=1e-10)
    radial = fitting.KernelFitter(X, signs, 1.0, "rbf", 0.3)(weights)
    expected = SVC(gamma=0.3).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(radial.machine.scores(new)[:, 0], expected.decision_function(new), atol=1e-4)
    np.testing.assert_allclose(radial.machine.scores(X), radial.scores, atol=1e-10)


def test_kernel_machine_without_stored_gram_is_the_same(rng, monkeypatch):
    X, y = rng.normal(size=(60, 3)), rng.integers(0, 2, 60)
    signs = fitting.class_signs(y, 2)
    stored = fitting.KernelFitter(X, signs, 1.0, "rbf", 0.3, tol=1e-6)(np.ones(60))
    monkeypatch.setattr(fitting, "GRAM_LIMIT", 10)
    direct = fitting.KernelFitter(X, signs, 1.0, "rbf", 0.3, tol=1e-6)(np.ones(60))
    np.testing.assert_allclose(stored.scores, direct.scores, atol=1e-5)
    assert stored.half_norm == pytest.approx(direct.half_norm, abs=1e-4)


def test_all_rows_as_landmarks_give_the_kernel_machine(rng):
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] * X[:, 1] > 0).astype(np.int64)
    signs = fitting.class_signs(y, 2)
    full = fitting.KernelFitter(X, signs, 1.0, "rbf", 0.5, tol=1e-6)(np.ones(60))
    few = fitting.NystroemFitter(X, signs, 1.0, "rbf", 0.5, X)(np.ones(60))
    assert np.mean(np.sign(full.scores) == np.sign(few.scores)) > 0.95
    np.testing.assert_allclose(few.machine.scores(X), few.scores, atol=1e-6)
