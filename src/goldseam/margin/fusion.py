"""`SensorFusionClassifier`: one classifier per sensor, each heard only where its own rows can be believed (G5.6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from goldseam.errors import InputError, ModelFileError, ParameterError
from goldseam.margin import checks
from goldseam.margin.estimator import GEMMEDClassifier
from goldseam.margin.machines import best_class
from goldseam.margin.probabilities import fit_curve, platt_probabilities
from goldseam.model_checks import check_attributes, check_indices
from goldseam.validation import Saved

__all__ = ["SensorFusionClassifier", "gated_sum"]

Floats = NDArray[np.float64]
Columns = Any


def gated_sum(scores: Floats, gates: Floats, clip: float) -> Floats:
    """(G-24): F = sum_j G_j clip(f_j) over sensors; where all gates are closed, all sensors are heard.

    `scores` (sensors, rows, problems), `gates` (sensors, rows).

    >>> gated_sum(np.array([[[3.0]], [[-1.0]]]), np.array([[1.0], [0.0]]), 2.0)
    array([[2.]])
    """
    heard = np.where(gates.sum(axis=0) > 0, gates, 1.0)
    total = np.zeros(scores.shape[1:])
    for score, gate in zip(scores, heard, strict=True):
        total += gate[:, None] * np.clip(score, -clip, clip)
    return total


class SensorFusionClassifier(Saved, ClassifierMixin, BaseEstimator):
    """A `GEMMEDClassifier` per sensor and a vote in which only sensors with believable readings take part.

    Parameters
    ----------
    groups : mapping or None
        Name of a sensor -> its columns (names, positions or a slice). None is one sensor with all columns.
    estimator : GEMMEDClassifier or None
        What each sensor gets a copy of; None is the default one.
    gate : 'hard', 'soft' or 'none'
        A sensor counts fully where its trust score is positive, or by its trust, or always.
    clip : float
        Largest vote of one sensor.
    probability : 'platt' or 'sigmoid'
        As in `GEMMEDClassifier`, for the summed vote.
    random_state : int, RandomState or None
        If given, takes the place of the estimator's own.

    Attributes
    ----------
    estimators_ : dict
        The fitted classifier of each sensor.
    sensor_names_ : list of str
    sensor_trust_ : array (rows, sensors)
        Trust of the training rows, sensor by sensor: where a row is distrusted, this says by which sensor's doing.
    columns_ : dict
        Positions of the columns of each sensor.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], 40)
    >>> X = rng.normal(size=(80, 4)) + 4 * y[:, None]
    >>> fusion = SensorFusionClassifier(groups={"left": [0, 1], "right": [2, 3]}).fit(X, y)
    >>> broken = np.array([[4.0, 4.0, -900.0, 900.0]])
    >>> fusion.believed(broken), fusion.predict(broken)
    (array([[ True, False]]), array([1]))
    """

    def __init__(
        self,
        groups: Mapping[str, Columns] | None = None,
        estimator: GEMMEDClassifier | None = None,
        *,
        gate: str = "hard",
        clip: float = 2.0,
        probability: str = "platt",
        random_state: Any = None,
    ) -> None:
        self.groups = groups
        self.estimator = estimator
        self.gate = gate
        self.clip = clip
        self.probability = probability
        self.random_state = random_state

    def check_state(self) -> None:
        """A model file whose parts do not belong together is refused."""
        if not hasattr(self, "estimators_"):
            return
        check_attributes(
            self, estimators_=dict, columns_=dict, sensor_names_=list, classes_=np.ndarray, n_features_in_=int,
            _curve=tuple[float, float],
        )  # fmt: skip
        for name in self.sensor_names_:
            model, columns = self.estimators_[name], self.columns_[name]
            check_indices("columns of sensors", columns, 0, self.n_features_in_)
            if not isinstance(model, GEMMEDClassifier) or model.n_features_in_ != len(columns):
                raise ModelFileError(f"The model file's sensor {name!r} needs a classifier of {len(columns)} columns.")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._template().missing == "indicator"
        return tags

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None, groups: ArrayLike | None = None) -> Self:
        """Learn one classifier per sensor; `groups` are recordings, as in `GEMMEDClassifier.fit`."""
        checks.check_parameters(self)
        checks.require_plain_labels(y)
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_all_finite=self._finite, ensure_min_samples=2)
        checks.require_moderate_values(X)
        self.classes_, codes = checks.encode_labels(y)
        self.columns_ = self._resolve_columns()
        self.sensor_names_ = list(self.columns_)
        self.estimators_ = {
            name: self._copy().fit(X[:, columns], y, sample_weight, groups) for name, columns in self.columns_.items()
        }
        self.sensor_trust_ = np.column_stack([model.sample_trust_ for model in self.estimators_.values()])
        weights = checks.row_weights(sample_weight, X) * self.sensor_trust_.max(axis=1)
        self._curve = fit_curve(self.probability, self._fused(X), codes, weights)
        return self

    @property
    def _finite(self) -> Any:
        return "allow-nan" if self._template().missing == "indicator" else True

    def _template(self) -> GEMMEDClassifier:
        return GEMMEDClassifier() if self.estimator is None else self.estimator

    def _copy(self) -> GEMMEDClassifier:
        copy = clone(self._template())
        return copy if self.random_state is None else copy.set_params(random_state=self.random_state)

    def _resolve_columns(self) -> dict[str, NDArray[np.int64]]:
        if self.groups is None:
            return {"all": np.arange(self.n_features_in_)}
        if not self.groups:
            raise ParameterError(
                "groups must name at least one sensor, but is empty. Hint: {'left': [0, 1], 'right': [2, 3]}."
            )
        return {str(name): self._positions(str(name), columns) for name, columns in self.groups.items()}

    def _positions(self, name: str, columns: Columns) -> NDArray[np.int64]:
        wanted = [columns] if isinstance(columns, (str, int, np.integer)) else columns
        if isinstance(wanted, slice):
            positions = np.arange(self.n_features_in_)[wanted]
        else:
            positions = np.array([self._position(name, column) for column in wanted], dtype=np.int64)
        if positions.size == 0:
            raise ParameterError(f"Sensor {name!r} has no columns. Hint: leave it out of groups.")
        return positions

    def _position(self, sensor: str, column: Any) -> int:
        if isinstance(column, str):
            names = list(getattr(self, "feature_names_in_", ()))
            if column not in names:
                raise InputError(
                    f"Sensor {sensor!r} names column {column!r}, which the table does not have. Hint: it has {names}."
                )
            return names.index(column)
        if not -self.n_features_in_ <= int(column) < self.n_features_in_:
            raise InputError(
                f"Sensor {sensor!r} names column {column}, but the table has {self.n_features_in_} columns. "
                "Hint: positions count from 0."
            )
        return int(column) % self.n_features_in_

    # ---- new rows

    def _new_rows(self, X: Any) -> Floats:
        check_is_fitted(self, "estimators_")
        X = validate_data(self, X, dtype=np.float64, reset=False, ensure_all_finite=self._finite)
        checks.require_moderate_values(X)
        return X

    def _parts(self, rows: Floats) -> list[tuple[GEMMEDClassifier, Floats]]:
        return [(self.estimators_[name], rows[:, self.columns_[name]]) for name in self.sensor_names_]

    def _gates(self, rows: Floats) -> Floats:
        if self.gate == "none":
            return np.ones((len(self.sensor_names_), len(rows)))
        trust = np.stack([model.trust(part) for model, part in self._parts(rows)])
        if self.gate == "soft":
            return trust
        scores = np.stack([model.trust_score(part) for model, part in self._parts(rows)])
        return ((scores > 0) & (trust > 0)).astype(np.float64)

    def _fused(self, rows: Floats) -> Floats:
        scores = [model.decision_function(part).reshape(len(rows), -1) for model, part in self._parts(rows)]
        return gated_sum(np.stack(scores), self._gates(rows), self.clip)

    def decision_function(self, X: Any) -> Floats:
        """The gated sum of the sensors' scores."""
        fused = self._fused(self._new_rows(X))
        return fused[:, 0] if fused.shape[1] == 1 else fused

    def predict(self, X: Any) -> NDArray[Any]:
        """The class with the largest gated vote."""
        codes = best_class(self._fused(self._new_rows(X)))
        return self.classes_[codes]

    def predict_proba(self, X: Any) -> Floats:
        """Class probabilities of the gated vote."""
        return platt_probabilities(self._fused(self._new_rows(X)), *self._curve)

    def sensor_trust(self, X: Any) -> Floats:
        """Trust of new rows, sensor by sensor, shape (rows, sensors)."""
        return np.column_stack([model.trust(part) for model, part in self._parts(self._new_rows(X))])

    def believed(self, X: Any) -> NDArray[np.bool_]:
        """True where a sensor took part in the vote, shape (rows, sensors): all False means that all were heard."""
        return self._gates(self._new_rows(X)).T > 0
