import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cdist
from scipy.special import expit
from sklearn.base import clone
from sklearn.metrics import average_precision_score
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import RobustScaler
from sklearn.svm import SVC

from goldseam.datasets.ring import make_ring
from goldseam.errors import ConvergenceWarning, DataWarning, InputError, ParameterError
from goldseam.margin import GEMMEDClassifier


def blobs(rng, n=60, p=3, shift=3.0, n_classes=2):
    codes = np.repeat(np.arange(n_classes), n)
    centres = shift * np.eye(max(p, n_classes))[:n_classes, :p]
    return rng.normal(size=(n * n_classes, p)) + centres[codes], codes


@pytest.fixture
def ring():
    study = make_ring(1, radius=35.0)
    scaler = RobustScaler().fit(study.train.data)
    return (
        scaler.transform(study.train.data), study.train.target, study.train.details["anomalous"],
        scaler.transform(study.test.data), study.test.target,
    )  # fmt: skip


def test_ring_is_learnt_in_spite_of_the_ring(ring):
    X, y, anomalous, new, truth = ring
    model = GEMMEDClassifier(random_state=0).fit(X, y)
    assert np.mean(model.predict(new) != truth) < 0.025
    assert average_precision_score(anomalous, -model.sample_trust_) > 0.95
    assert np.mean(model.sample_trust_[~anomalous] < 0.5) < 0.06


@pytest.mark.filterwarnings("ignore:Trust had not settled")
@pytest.mark.parametrize(
    "settings",
    [
        {"kernel": "rbf"},
        {"kernel": "rbf", "n_landmarks": 50},
        {"kernel": lambda a, b: (a @ b.T + 1) ** 2},
        {"linear_solver": "libsvm"},
        {"linear_solver": "sgd"},
        {"threshold": "gap"},
        {"entropy": "bipartite"},
        {"solver": "gibbs"},
        {"solver": "gibbs", "kernel": "rbf", "gamma": 0.03},
        {"class_weight": "balanced"},
        {"class_weight": {-1: 2.0, 1: 1.0}},
        {"n_neighbors": 10},
        {"n_neighbors": 0.1},
        {"probability": "sigmoid"},
        {"n_jobs": 2},
    ],
)
def test_every_setting_learns_the_ring_and_keeps_plain_state(ring, settings):
    X, y, anomalous, new, truth = ring
    if settings.get("solver") == "gibbs":  # 200 iterations settle in the units of the study, not at unit scale
        X, new = 8 * X, 8 * new
    model = GEMMEDClassifier(random_state=0, **settings).fit(X, y)
    assert np.mean(model.predict(new) != truth) < 0.06
    assert average_precision_score(anomalous, -model.field_) > 0.95
    assert model.sample_trust_.min() >= 0
    assert model.sample_trust_.max() <= 1
    for rows in (slice(0, 1), slice(3, 50)):
        assert np.array_equal(model.decision_function(new[rows]), model.decision_function(new)[rows])
        assert np.array_equal(model.trust(new[rows]), model.trust(new)[rows])
        assert np.array_equal(model.predict_proba(new[rows]), model.predict_proba(new)[rows])
    state = {k: v for k, v in vars(model).items() if k not in model.get_params()}
    assert not any(hasattr(value, "get_params") for value in state.values())
    if not callable(model.kernel):
        assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(new), model.predict(new))


@pytest.mark.filterwarnings("ignore:Class -?1:")
def test_paper_mode_classifies_but_does_not_detect():
    """A9, ten runs at R 15: the printed model has 4.2±4 % there, and an average precision of .43."""
    errors, precision = [], []
    for seed in range(10):
        study = make_ring(seed, radius=15.0)
        model = GEMMEDClassifier(solver="gibbs", entropy="bipartite", threshold="literal", random_state=0)
        model.fit(study.train.data, study.train.target)
        assert model.mu_.shape == (2,)
        errors.append(100 * np.mean(model.predict(study.test.data) != study.test.target))
        precision.append(average_precision_score(study.train.details["anomalous"], -model.sample_trust_))
    assert np.mean(errors) < 7
    assert np.mean(precision) < 0.6


def test_precomputed_kernel_is_the_linear_one(ring):
    X, y, _, new, _ = ring
    direct = GEMMEDClassifier(linear_solver="libsvm", random_state=0, repetition=False).fit(X, y)
    gram = GEMMEDClassifier(kernel="precomputed", loss_strength=1.0, random_state=0).fit(X @ X.T, y)
    np.testing.assert_allclose(gram.field_, direct.field_, atol=1e-8)
    np.testing.assert_allclose(gram.decision_function(new[:50] @ X.T), direct.decision_function(new[:50]), atol=1e-2)
    with pytest.raises(InputError, match="diagonal is not constant"):
        gram.trust(new[:2] @ X.T)


def test_precomputed_kernel_with_constant_diagonal_gives_trust(ring):
    X, y, *_ = ring
    gram = np.exp(-0.1 * np.sum((X[:, None] - X[None]) ** 2, axis=-1))
    model = GEMMEDClassifier(kernel="precomputed", random_state=0).fit(gram, y)
    far = np.zeros((1, len(X)))
    assert model.trust(far)[0] < 0.5 < np.median(model.trust(gram))


def test_new_rows_are_judged_by_their_best_class(ring):
    X, y, *_ , new, _ = ring  # fmt: skip
    model = GEMMEDClassifier(random_state=0).fit(X, y)
    far = np.array([[9.0, -9.0], [1000.0, 0.0]])
    assert np.all(model.trust(far) < 0.01)
    assert np.mean(model.trust(new) < 0.5) < 0.01
    assert np.all(model.trust_score(far) < 0)


def test_many_classes_share_one_trust(rng):
    X, y = blobs(rng, n_classes=4, p=5, shift=6.0)
    labels = np.array(["north", "east", "south", "west"])[y]
    X[7] += 60.0
    model = GEMMEDClassifier(random_state=0).fit(X, labels)
    assert model.sample_trust_[7] < 0.01
    assert model.decision_function(X).shape == (240, 4)
    assert np.mean(model.predict(X) == labels) > 0.98
    probability = model.predict_proba(X)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0)
    assert np.array_equal(model.classes_[probability.argmax(axis=1)], model.predict(X))


def test_row_order_and_copies_do_not_matter(rng):
    X, y = blobs(rng)
    order = rng.permutation(len(X))
    plain = GEMMEDClassifier(random_state=0).fit(X, y)
    shuffled = GEMMEDClassifier(random_state=0).fit(X[order], y[order])
    assert np.array_equal(plain.coef_, shuffled.coef_)
    assert np.array_equal(plain.sample_trust_[order], shuffled.sample_trust_)
    weights = rng.integers(0, 4, len(X))
    weighted = GEMMEDClassifier(random_state=0).fit(X, y, sample_weight=weights)
    repeated = GEMMEDClassifier(random_state=0).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    assert np.array_equal(weighted.coef_, repeated.coef_)
    assert np.array_equal(np.repeat(weighted.sample_trust_, weights), repeated.sample_trust_)


def test_copied_anomalies_do_not_become_dense():
    errors = []
    for seed in range(4):
        study = make_ring(seed)
        anomalous = np.flatnonzero(study.train.details["anomalous"] & (study.train.target == -1))[:5]
        rows = np.concatenate([np.arange(200), np.repeat(anomalous, 30)])
        scaler = RobustScaler().fit(study.train.data)
        model = GEMMEDClassifier(random_state=0).fit(scaler.transform(study.train.data)[rows], study.train.target[rows])
        errors.append(np.mean(model.predict(scaler.transform(study.test.data)) != study.test.target))
    assert np.mean(errors) < 0.025


def test_zero_weight_rows_are_judged_but_do_not_count(rng):
    X, y = blobs(rng)
    odd = np.vstack([X, [[500.0, 0.0, 0.0]], X[:1] + 0.01])
    labels, weights = np.append(y, [1, 0]), np.append(np.ones(len(y)), [0.0, 0.0])
    model = GEMMEDClassifier(random_state=0).fit(odd, labels, sample_weight=weights)
    assert np.array_equal(model.coef_, GEMMEDClassifier(random_state=0).fit(X, y).coef_)
    assert model.sample_trust_[-2] < 0.01 < 0.5 < model.sample_trust_[-1]


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_class_weights_are_row_weights(rng, kernel):
    X, y = blobs(rng, shift=1.0)
    X, y = X[:90], np.array(["many", "few"])[y[:90]]
    fit = lambda weights=None, **settings: GEMMEDClassifier(kernel, random_state=0, **settings).fit(X, y, weights)  # noqa: E731
    for class_weight, few, many in (({"few": 3.0}, 3.0, 1.0), ("balanced", 90 / (2 * 30), 90 / (2 * 60))):
        by_class, by_row = fit(class_weight=class_weight), fit(np.where(y == "few", few, many))
        np.testing.assert_allclose(by_class.decision_function(X), by_row.decision_function(X), atol=1e-9)
    assert np.mean(fit(class_weight="balanced").predict(X) == "few") > np.mean(fit().predict(X) == "few")


def test_recordings_do_not_vouch_for_themselves(rng):
    X, y = blobs(rng, n=100, p=2, shift=4.0)
    X[:20] = rng.normal(size=(20, 2)) * 0.05 + [30.0, -25.0]
    groups = np.arange(200)
    groups[:20] = 0
    alone = GEMMEDClassifier(n_neighbors=10, random_state=0).fit(X, y)
    grouped = GEMMEDClassifier(n_neighbors=10, random_state=0).fit(X, y, groups=groups)
    assert alone.sample_trust_[:20].min() > 0.5
    assert grouped.sample_trust_[:20].max() < 0.01
    assert np.mean(grouped.sample_trust_[20:] < 0.5) < 0.08


def test_dead_channels_are_seen_by_their_repetition(rng):
    X, y = blobs(rng, n=150, p=8)
    X[:30, 4:] = 0.0
    model = GEMMEDClassifier(random_state=0).fit(X, y)
    assert model.sample_trust_[:30].max() < 0.5
    assert np.mean(model.sample_trust_[30:] < 0.5) < 0.05
    assert model.trust(X[:30]).max() < 0.5
    blind = GEMMEDClassifier(random_state=0, repetition=False).fit(X, y)
    assert np.mean(blind.sample_trust_[:30] < 0.5) < 0.5


def test_failures_of_varying_severity_are_seen_column_by_column(rng):
    loudness = np.exp(rng.normal(0, 0.5, size=(300, 1)))
    X, y = np.clip(0.5 * loudness * rng.normal(size=(300, 20)), -1, 1), np.arange(300) % 2
    X[:, 0] += y
    X[:60, 12:] = rng.uniform(1.5, 3.0, size=(60, 1))
    model = GEMMEDClassifier(random_state=0).fit(X, y)
    assert model.sample_trust_[:60].max() < 0.5
    assert np.mean(model.sample_trust_[60:] < 0.5) < 0.05
    assert model.trust(X[:60]).max() < 0.5
    blind = GEMMEDClassifier(random_state=0, isolation=False).fit(X, y)
    assert np.mean(blind.sample_trust_[:60] < 0.5) < 0.5


def test_missing_values_need_the_option_and_then_work(rng):
    X, y = blobs(rng, n=100, p=4)
    X[rng.random(X.shape) < 0.2] = np.nan
    X[5], X[3, 0] = np.nan, 400.0
    with pytest.raises(ValueError, match="NaN"):
        GEMMEDClassifier().fit(X, y)
    model = GEMMEDClassifier(missing="indicator", random_state=0).fit(X, y)
    assert model.sample_trust_[5] == 0.0
    assert model.sample_trust_[3] < 0.01
    assert np.mean(model.predict(X) == y) > 0.85
    assert model.trust(np.full((1, 4), np.nan))[0] == 0.0


def test_frames_of_numbers_keep_their_names(rng):
    X, y = blobs(rng)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = GEMMEDClassifier(random_state=0).fit(frame, pd.Series(y))
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["c", "b", "a"]])


def test_groups_are_routed_through_search(rng):
    from sklearn import config_context

    X, y = blobs(rng)
    groups = np.arange(len(y)) // 2
    with config_context(enable_metadata_routing=True):
        model = GEMMEDClassifier(random_state=0).set_fit_request(groups=True)
        search = GridSearchCV(model, {"C": [0.1, 1.0]}, cv=GroupKFold(3)).fit(X, y, groups=groups)
    assert search.best_score_ > 0.9


def test_clone_and_pipeline(rng):
    X, y = blobs(rng)
    model = make_pipeline(RobustScaler(), GEMMEDClassifier(kernel="rbf", gamma="robust"))
    assert clone(model).fit(X, y).score(X, y) > 0.9


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"trust_prior": 1.0}, "trust_prior must be strictly between 0 and 1, but is 1.0"),
        ({"n_neighbors": 1}, "n_neighbors must be .* but is 1"),
        ({"kernel": "poly"}, "kernel must be .* but is 'poly'"),
        ({"C": 0}, "C must be a positive number, but is 0"),
        ({"gamma": "wide"}, "gamma must be .* but is 'wide'"),
        ({"threshold": "best"}, "threshold must be one of 'auto', 'gap', 'literal', but is 'best'"),
        ({"class_weight": "even"}, "class_weight must be .* but is 'even'"),
        ({"loss_strength": -1}, "loss_strength must be .* but is -1"),
        ({"max_iter": 0}, "max_iter must be .* but is 0"),
    ],
)
def test_bad_settings_are_named(rng, settings, message):
    with pytest.raises(ParameterError, match=message):
        GEMMEDClassifier(**settings).fit(*blobs(rng))


def test_bad_data_are_named(rng):
    X, y = blobs(rng)
    with pytest.raises(InputError, match="labels hold 1 class"):
        GEMMEDClassifier().fit(X, np.zeros(len(X)))
    with pytest.raises(InputError, match="mixed type: number, text"):
        GEMMEDClassifier().fit(X, ["a"] * 60 + [1] * 60)
    huge = X.copy()
    huge[4, 1] = 1e300
    with pytest.raises(InputError, match="Row 4, column 1 holds 1e\\+300"):
        GEMMEDClassifier().fit(huge, y)
    with pytest.raises(InputError, match="row 2 has -1"):
        GEMMEDClassifier().fit(X, y, sample_weight=np.where(np.arange(len(X)) == 2, -1, 1))
    with pytest.raises(ValueError, match="zero"):
        GEMMEDClassifier().fit(X, y, sample_weight=np.zeros(len(X)))
    with pytest.raises(InputError, match="classes, \\[0\\] have no row"):
        GEMMEDClassifier().fit(X, y, sample_weight=y)
    with pytest.raises(InputError, match="groups must have one entry per row, 120"):
        GEMMEDClassifier().fit(X, y, groups=[1, 2])
    with pytest.raises(InputError, match="square, but has shape \\(120, 3\\)"):
        GEMMEDClassifier(kernel="precomputed").fit(X, y)
    gram = X @ X.T
    with pytest.raises(ParameterError, match="n_landmarks must be None with kernel='precomputed', but is 7"):
        GEMMEDClassifier(kernel="precomputed", n_landmarks=7).fit(gram, y)
    gram[0, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        GEMMEDClassifier(kernel="precomputed", missing="indicator").fit(gram, y)
    with pytest.raises(InputError, match=r"must return shape \(120, 120\), but returned \(120,\)"):
        GEMMEDClassifier(kernel=lambda a, b: a[:, 0]).fit(X, y)
    three, labels = blobs(rng, n_classes=3)
    with pytest.raises(InputError, match="two classes only, but the labels hold 3"):
        GEMMEDClassifier(solver="gibbs").fit(three, labels)


@pytest.mark.parametrize("n_small", [1, 2, 8, 19])
def test_small_classes_switch_the_field_off(rng, n_small):
    X, y = blobs(rng)
    X, y = np.vstack([X[:60], X[60 : 60 + n_small]]), np.append(np.zeros(60), np.ones(n_small))
    with pytest.warns(DataWarning, match=f"Class 1.0 has {n_small} distinct rows"):
        model = GEMMEDClassifier(random_state=0).fit(X, y)
    assert np.all(model.field_[y == 1] == 1.5)
    assert np.all(np.isfinite(model.trust(X)))


def test_equal_rows_and_constant_columns_are_harmless(rng):
    X, y = blobs(rng)
    X[y == 1] = 3.0
    X[:, 2] = 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        model = GEMMEDClassifier(random_state=0).fit(X, y)
    assert np.all(model.field_[y == 1] == 1.5)
    assert np.mean(model.predict(X) == y) > 0.95
    assert model.trust(X[-1:])[0] > 0.5


def messages(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [(w.category, str(w.message)) for w in caught]


@pytest.mark.parametrize(
    ("settings", "category", "message"),
    [
        ({"n_neighbors": 100}, DataWarning, "n_neighbors=100 is more than class 1 can give; 58 are used."),
        ({"max_iter": 1}, ConvergenceWarning, "Trust had not settled after 1 rounds: it last moved by"),
    ],
)
def test_warnings_say_what_is_off(rng, settings, category, message):
    X, y = blobs(rng)
    found = messages(lambda: GEMMEDClassifier(random_state=0, **settings).fit(X[:119], y[:119]))
    assert any(kind is category and text.startswith(message) for kind, text in found)


def test_a_constant_classifier_is_said(rng):
    X, y = rng.normal(size=(120, 2)), np.append(np.zeros(95), np.ones(25))
    found = messages(lambda: GEMMEDClassifier(random_state=0, C=0.01, linear_solver="libsvm").fit(X, y))
    assert any("gives every training row the class 0.0" in text for _, text in found)


def test_more_than_half_of_a_class_off_is_said(rng):
    X, y = blobs(rng, n=100, p=2)
    X[:55] *= 40
    found = messages(lambda: GEMMEDClassifier(random_state=0, n_neighbors=5).fit(X, y))
    assert any("Class 0: only 4" in text and "of 100 rows lie below" in text for _, text in found)


def test_fallback_to_libsvm_is_said_and_kept(rng):
    X, y = blobs(rng, shift=0.3)
    X = X * [1.0, 20.0, 60.0]
    models = {}
    for solver, text in (("auto", "LIBSVM was used instead"), ("liblinear", "its last iterate was used")):
        models[solver] = GEMMEDClassifier(random_state=0, linear_solver=solver)
        found = messages(lambda model=models[solver]: model.fit(X, y))
        assert any(kind is ConvergenceWarning and text in said for kind, said in found)
    assert models["auto"].linear_solver_ == "libsvm"
    assert models["liblinear"].linear_solver_ == "liblinear"


def test_flipped_labels_call_for_a_stronger_loss(rng):
    X, y = blobs(rng, n=150, p=4, shift=4.0)
    clean = GEMMEDClassifier(loss_strength="auto", random_state=0).fit(X, y)
    assert (clean.loss_strength_, clean.flip_rate_) == (1.0, 0.0)
    flipped = rng.random(300) < 0.2
    noisy = GEMMEDClassifier(loss_strength="auto", random_state=0).fit(X, np.where(flipped, 1 - y, y))
    assert noisy.loss_strength_ == 4.0
    assert 0.1 < noisy.flip_rate_ < 0.3
    assert np.mean(noisy.sample_trust_[flipped] < 0.5) > 0.9
    assert np.mean(noisy.sample_trust_[~flipped] < 0.5) < 0.1


@pytest.mark.parametrize(("loss_strength", "carried"), [(0.0, True), (1e-9, False)])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_trusted_rows_carry_the_cost_of_the_others_where_the_loss_does_not_count(rng, kernel, loss_strength, carried):
    X, y = blobs(rng, n=80, shift=1.0)
    X[:30] *= 4  # of class 0 only
    model = GEMMEDClassifier(kernel, gamma=0.3, linear_solver="libsvm", loss_strength=loss_strength, random_state=0)
    trust = expit(2 * np.clip(model.fit(X, y).field_, -30, 1.5))
    if kernel == "rbf" and carried:
        trust[y == 1] = 1.0  # no gap parts this class: rbf machines count it in full
    totals = np.array([trust[y == code].sum() for code in (0, 1)])
    assert totals[0] < 0.7 * totals[1]
    by_hand = SVC(kernel=kernel, gamma=0.3).fit(X, y, sample_weight=trust * (80 / totals[y] if carried else 1))
    np.testing.assert_allclose(model.decision_function(X), by_hand.decision_function(X), atol=5e-3)


def test_an_rbf_machine_without_proof_of_failures_is_the_plain_one(rng):
    X, y = blobs(rng, n=80, shift=1.0)
    X[3] = 40.0  # far out, but alone: no second population
    plain = SVC(gamma=0.3).fit(X, y)
    model = GEMMEDClassifier("rbf", gamma=0.3, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), plain.decision_function(X), atol=5e-3)
    assert model.sample_trust_[3] < 1e-3  # what the field says of the row is said all the same
    others = GEMMEDClassifier(lambda A, B: np.exp(-0.3 * cdist(A, B, "sqeuclidean")), random_state=0).fit(X, y)
    np.testing.assert_allclose(others.sample_trust_, model.sample_trust_)
    assert np.abs(others.decision_function(X) - plain.decision_function(X)).max() > 0.05


def test_kernels_do_not_count_the_loss_unless_told():
    X, y = blobs(np.random.default_rng(0))
    assert GEMMEDClassifier(random_state=0).fit(X, y).loss_strength_ == 1.0
    assert GEMMEDClassifier("rbf", random_state=0).fit(X, y).loss_strength_ == 0.0
    assert GEMMEDClassifier("rbf", loss_strength=0.5, random_state=0).fit(X, y).loss_strength_ == 0.5
