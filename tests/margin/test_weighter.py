import numpy as np
import pytest
from sklearn.linear_model import HuberRegressor, LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from goldseam.datasets.ring import make_ring
from goldseam.errors import InputError, ParameterError
from goldseam.margin import GEMMEDClassifier, TrustWeighter, row_trust
from goldseam.margin.repetition import learn_repetition


def ring_error(model, seeds=range(5)):
    errors = []
    for seed in seeds:
        study = make_ring(seed, radius=55.0)
        errors.append(
            np.mean(model.fit(study.train.data, study.train.target).predict(study.test.data) != study.test.target)
        )
    return float(np.mean(errors))


def test_logistic_regression_is_saved_from_the_ring():
    assert ring_error(LogisticRegression()) > 0.05
    assert ring_error(TrustWeighter(LogisticRegression(), random_state=0)) < 0.0215


def test_weights_are_the_field_of_the_classifier(rng):
    study = make_ring(1)
    X, y = study.train.data / 50, study.train.target
    weighter = TrustWeighter(random_state=0).fit(X, y)
    np.testing.assert_array_equal(weighter.field_, GEMMEDClassifier(random_state=0).fit(X, y).field_)
    by_hand = LogisticRegression().fit(X, y, sample_weight=weighter.sample_trust_)
    np.testing.assert_allclose(weighter.decision_function(X), by_hand.decision_function(X))
    assert weighter.trust([[1000.0, 1000.0]])[0] < 1e-6


def test_loss_joins_when_asked():
    study = make_ring(2)
    X, y = study.train.data / 10, study.train.target
    plain = TrustWeighter(LinearSVC(), random_state=0).fit(X, y)
    rounds = TrustWeighter(LinearSVC(), loss_strength=1.0, random_state=0).fit(X, y)
    assert np.all(rounds.sample_trust_ <= plain.sample_trust_ + 1e-12)
    assert rounds.n_iter_ > 1


def test_regressors_are_weighted_too(rng):
    X = rng.normal(size=(120, 2))
    y = X @ [1.0, -2.0] + 0.1 * rng.normal(size=120)
    X[:8], y[:8] = 50.0, -300.0
    X[:8] += rng.normal(size=(8, 2)) * 20
    model = TrustWeighter(LinearRegression(), random_state=0).fit(X, y)
    np.testing.assert_allclose(model.estimator_.coef_, [1.0, -2.0], atol=0.05)
    assert model.score(X[8:], y[8:]) > 0.99
    assert not hasattr(model, "predict_proba")


def test_only_estimators_that_can_use_trust(rng):
    X, y = rng.normal(size=(60, 2)), np.repeat([0, 1], 30)
    with pytest.raises(ParameterError, match="KNeighborsClassifier takes no sample_weight"):
        TrustWeighter(KNeighborsClassifier()).fit(X, y)
    with pytest.raises(ParameterError, match="DecisionTreeClassifier lacks"):
        TrustWeighter(DecisionTreeClassifier(), loss_strength=1.0).fit(X, y)
    with pytest.raises(ParameterError, match="but is 'literal'"):
        TrustWeighter(threshold="literal").fit(X, y)
    assert TrustWeighter(HuberRegressor()).fit(X, X[:, 0]).predict(X).shape == (60,)


def test_rows_of_weight_zero_are_judged_but_do_not_count(rng):
    X, y = rng.normal(size=(60, 2)), np.repeat([0, 1], 30)
    odd, labels = np.vstack([X, [[500.0, 0.0]], X[:1] + 0.01]), np.append(y, [1, 0])
    model = TrustWeighter(random_state=0).fit(odd, labels, sample_weight=np.append(np.ones(60), [0.0, 0.0]))
    assert np.array_equal(model.field_[:60], TrustWeighter(random_state=0).fit(X, y).field_)
    assert model.sample_trust_[-2] < 0.01 < 0.5 < model.sample_trust_[-1]
    with pytest.raises(InputError, match="Row 0, column 1 holds 1e\\+300"):
        model.trust([[0.0, 1e300]])


def test_row_trust_without_labels(rng):
    X = rng.normal(size=(200, 4))
    X[:10] *= 30
    X[10:40, 1:] = 0.25
    order = rng.permutation(200)
    found = row_trust(X)
    assert found.trust[:10].max() < 0.01
    assert found.trust[10:40].max() < 0.5
    assert np.mean(found.trust[40:] < 0.5) < 0.06
    assert np.array_equal(row_trust(X[order]).trust, found.trust[order])
    assert np.array_equal(row_trust(np.repeat(X, 3, axis=0)).trust, np.repeat(found.trust, 3))


def test_row_trust_with_gaps_weights_and_groups(rng):
    X = rng.normal(size=(150, 5))
    X[rng.random(X.shape) < 0.2] = np.nan
    X[3] = np.nan
    X[4] = 99.0
    weight = np.ones(150)
    weight[4] = 0.0
    found = row_trust(X, weight)
    assert found.trust[3] == 0.0
    assert found.trust[4] < 1e-6
    clump = np.vstack([rng.normal(size=(150, 2)), rng.normal(size=(40, 2)) * 0.01 + 30])
    groups = np.append(np.arange(150), np.full(40, 150))
    assert row_trust(clump, n_neighbors=10).trust[-40:].min() > 0.5
    assert row_trust(clump, n_neighbors=10, groups=groups).trust[-40:].max() < 0.01
    with pytest.raises(ParameterError, match="but is 0"):
        row_trust(X, trust_prior=0)


def test_row_trust_of_many_rows_uses_a_reference(rng):
    X = rng.normal(size=(12_000, 3))
    X[:600] *= 40
    found = row_trust(X, max_reference=500, n_jobs=2)
    assert found.n_neighbors == 125
    assert np.mean(found.trust[:600] < 0.5) > 0.97
    assert np.mean(found.trust[600:] < 0.5) < 0.02


def test_one_column_of_zeros_condemns_nobody(rng):
    rows = rng.normal(size=(300, 4))
    rows[:90, 0] = 0.0
    found = learn_repetition(rows, np.zeros(300, dtype=np.int64), 1)
    assert np.all(found.scores(rows) > 0)
    assert np.all(found.evidence(rows) == 0)


def test_rounded_columns_condemn_nobody(rng):
    rows = rng.normal(size=(500, 6)).round(1)
    found = learn_repetition(rows, np.zeros(500, dtype=np.int64), 1)
    assert np.mean(found.scores(rows) < 0) < 0.01


def test_repetition_by_hand():
    column = np.array([0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 4.0])
    found = learn_repetition(np.column_stack([column, column]), np.zeros(8, dtype=np.int64), 1)
    # each column: m = 4, e = 1, n = 8; one of the two equal columns is left out
    np.testing.assert_allclose(
        found.evidence(np.array([[0.0, 0.0], [1.0, 0.0], [9.0, np.nan]])), [np.log(4) * np.log(2), 0, 0]
    )


def test_a_class_whose_nature_is_to_repeat_is_left_alone(rng):
    rows = rng.normal(size=(200, 6))
    rows[:90, 1:] = 0.0  # 45 % of the class
    found = learn_repetition(rows, np.zeros(200, dtype=np.int64), 1)
    assert np.all(found.scores(rows) > 0)
    rows[60:90, 1:] = rng.normal(size=(30, 5))  # 30 %
    found = learn_repetition(rows, np.zeros(200, dtype=np.int64), 1)
    assert np.array_equal(found.scores(rows)[0] < 0, np.arange(200) < 60)


def test_natural_repetition_is_told_from_a_failed_channel(rng):
    """Readings that clip more and more often have no gap of their own; a dead channel has."""
    rows = rng.normal(size=(200, 12))
    clipping = rng.uniform(0, 1, 200) ** 4
    rows[rng.random(rows.shape) < clipping[:, None]] = 1.0
    codes = np.zeros(200, dtype=np.int64)
    assert np.mean(learn_repetition(rows, codes, 1).scores(rows)[0] < 0) == 0
    rows = rng.normal(size=(200, 12))
    rows[:30, 4:] = 1.0
    assert np.flatnonzero(learn_repetition(rows, codes, 1).scores(rows)[0] < 0).tolist() == list(range(30))
