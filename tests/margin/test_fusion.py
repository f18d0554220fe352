import numpy as np
import pandas as pd
import pytest

from goldseam.errors import InputError, ParameterError
from goldseam.margin import GEMMEDClassifier, SensorFusionClassifier
from goldseam.margin.fusion import gated_sum

SENSORS = {"left": [0, 1, 2], "right": [3, 4, 5]}


def two_sensors(rng, n=80, n_classes=2):
    y = np.repeat(np.arange(n_classes), n)
    return rng.normal(size=(len(y), 6)) + 3.0 * y[:, None], y


def test_gated_sum_by_hand():
    scores = np.array([[[3.0], [0.5], [1.0]], [[-1.0], [-0.4], [-3.0]]])
    gates = np.array([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]])
    np.testing.assert_allclose(gated_sum(scores, gates, 2.0)[:, 0], [1.0, -0.4, -1.0])


@pytest.mark.parametrize("gate", ["hard", "soft"])
def test_a_broken_sensor_is_not_heard(rng, gate):
    X, y = two_sensors(rng)
    X[:10, 3:] = rng.normal(0, 80, (10, 3))
    model = SensorFusionClassifier(SENSORS, GEMMEDClassifier(random_state=0), gate=gate).fit(X, y)
    assert model.sensor_trust_[:10, 1].max() < 0.05
    assert model.sensor_trust_[:10, 0].min() > 0.3
    new, truth = two_sensors(rng)
    new[:, 3:] = rng.normal(0, 80, (len(new), 3))
    assert np.mean(model.predict(new) == truth) > 0.93
    assert model.sensor_trust(new)[:, 1].max() < 0.3
    deaf = SensorFusionClassifier(SENSORS, GEMMEDClassifier(random_state=0), gate="none").fit(X, y)
    assert np.mean(deaf.predict(new) == truth) < 0.92


def test_all_sensors_broken_are_all_heard(rng):
    X, y = two_sensors(rng)
    model = SensorFusionClassifier(SENSORS, random_state=0).fit(X, y)
    far = np.full((1, 6), 500.0)
    assert model.believed(far).tolist() == [[False, False]]
    assert model.decision_function(far)[0] == 4.0


def test_several_classes_probabilities_and_batches(rng):
    X, y = two_sensors(rng, n_classes=3)
    model = SensorFusionClassifier(SENSORS, random_state=0).fit(X, y)
    assert model.decision_function(X).shape == (240, 3)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert np.array_equal(model.decision_function(X)[5:9], model.decision_function(X[5:9]))


def test_columns_by_name_position_or_slice(rng):
    X, y = two_sensors(rng)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    by_name = SensorFusionClassifier({"left": ["a", "b", "c"], "right": ["d", "e", "f"]}, random_state=0).fit(frame, y)
    by_slice = SensorFusionClassifier({"left": slice(0, 3), "right": slice(3, None)}, random_state=0).fit(frame, y)
    assert np.array_equal(by_name.decision_function(frame), by_slice.decision_function(frame))
    with pytest.raises(InputError, match="Sensor 'left' names column 'z'"):
        SensorFusionClassifier({"left": ["z"]}).fit(frame, y)
    with pytest.raises(InputError, match="Sensor 'left' names column 9, but the table has 6"):
        SensorFusionClassifier({"left": [9]}).fit(frame, y)
    with pytest.raises(ParameterError, match="Sensor 'left' has no columns"):
        SensorFusionClassifier({"left": []}).fit(frame, y)


def test_a_silent_sensor_counts_as_closed(rng):
    X, y = two_sensors(rng)
    X[rng.random(X.shape) < 0.05] = np.nan
    model = SensorFusionClassifier(SENSORS, GEMMEDClassifier(missing="indicator", random_state=0)).fit(X, y)
    new = X[-5:].copy()
    new[:, 3:] = np.nan
    assert not model.believed(new)[:, 1].any()
    assert model.sensor_trust(new)[:, 1].tolist() == [0.0] * 5
    assert np.mean(model.predict(new) == 1) > 0.7


def test_huge_values_are_named_by_their_place_in_the_table(rng):
    X, y = two_sensors(rng)
    model = SensorFusionClassifier(SENSORS, random_state=0).fit(X, y)
    X[2, 4] = 1e300
    for call in (model.predict, lambda rows: model.fit(rows, y)):
        with pytest.raises(InputError, match="Row 2, column 4 holds 1e\\+300"):
            call(X)
