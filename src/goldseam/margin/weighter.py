"""`TrustWeighter`: trust as sample weights for any scikit-learn classifier or regressor (G5.8)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_regressor
from sklearn.linear_model import LogisticRegression
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, validate_data

from goldseam.errors import ModelFileError, ParameterError
from goldseam.margin import checks
from goldseam.margin.entropy import EuclideanRows
from goldseam.margin.fields import Fields, fit_fields, merge_copies, warn_about_fields
from goldseam.margin.solvers import FieldPrior, Fitted, mean_field
from goldseam.margin.trust import FieldSettings, best_score, log_odds
from goldseam.model_checks import check_attributes
from goldseam.validation import Saved

__all__ = ["TrustWeighter"]

Floats = NDArray[np.float64]


def _inner_has(name: str) -> Any:
    def check(self: TrustWeighter) -> bool:
        getattr(getattr(self, "estimator_", self._template()), name)
        return True

    return available_if(check)


class TrustWeighter(Saved, MetaEstimatorMixin, BaseEstimator):
    """Fit any estimator with each row weighted by its trust.

    Trust comes from the GEM field within each class (within the whole table for a regressor). Good for models that far
    rows can bend: linear and logistic regression, SGD. Not for models that need the tails of a class: random forests and
    Gaussian naive Bayes got worse in our measurements.

    Parameters
    ----------
    estimator : estimator or None
        Must take `sample_weight` in `fit`; None is `LogisticRegression()`.
    loss_strength : float
        Above 0 the loss of a classifier with `decision_function` also lowers trust, in up to `max_iter` rounds.
    n_neighbors, trust_prior, field_strength, threshold, entropy, max_reference, repetition, isolation, max_iter, tol, n_jobs,
    random_state
        As in `GEMMEDClassifier`; `threshold` is `'auto'` or `'gap'`.

    Attributes
    ----------
    estimator_ : the fitted estimator
    sample_trust_, field_ : arrays (rows,)
    thresholds_, scales_, n_kept_, n_neighbors_ : arrays (classes,)

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> X = np.linspace(0, 1, 40)[:, None]
    >>> y = 2 * X[:, 0]
    >>> X[7], y[7] = 60.0, -50.0
    >>> model = TrustWeighter(LinearRegression()).fit(X, y)
    >>> bool(model.sample_trust_[7] < 1e-6), model.estimator_.coef_.round(3)
    (True, array([2.]))
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_neighbors: str | int | float = "auto",
        trust_prior: float = 0.5,
        field_strength: float = 2.0,
        loss_strength: float = 0.0,
        threshold: str = "auto",
        entropy: str = "leave-one-out",
        max_reference: int = 2000,
        repetition: bool = True,
        isolation: bool = True,
        max_iter: int = 10,
        tol: float = 1e-3,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.n_neighbors = n_neighbors
        self.trust_prior = trust_prior
        self.field_strength = field_strength
        self.loss_strength = loss_strength
        self.threshold = threshold
        self.entropy = entropy
        self.max_reference = max_reference
        self.repetition = repetition
        self.isolation = isolation
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _template(self) -> Any:
        return LogisticRegression() if self.estimator is None else self.estimator

    def check_state(self) -> None:
        """A model file whose parts do not belong together is refused."""
        if hasattr(self, "estimator_"):
            check_attributes(self, _fields=Fields, _references=tuple[Floats, ...], field_=Floats, n_features_in_=int)
            self._fields.check_for(self.n_features_in_, len(self.field_), self._references)
            if getattr(self.estimator_, "n_features_in_", None) != self.n_features_in_:
                raise ModelFileError(f"The model file's weighted estimator must be of {self.n_features_in_} columns.")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self._template())
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags = inner.classifier_tags
        tags.regressor_tags = inner.regressor_tags
        tags.target_tags = replace(inner.target_tags, multi_output=False, single_output=True)
        return tags

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None, groups: ArrayLike | None = None) -> Self:
        """Find the trust of the rows, then fit the estimator with it."""
        self._check()
        regression = is_regressor(self._template())
        if not regression:
            checks.require_plain_labels(y)
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=regression, ensure_min_samples=2)
        checks.require_moderate_values(X)
        labels, codes = (np.array(["all"]), np.zeros(len(X), dtype=np.int64)) if regression else checks.encode_labels(y)
        weights = checks.row_weights(sample_weight, X)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        self._learn_field(X, codes, weights, checks.encode_groups(groups, len(X)), labels, seed)
        odds = log_odds(self.field_, self.trust_prior, self.field_strength)
        self.sample_trust_ = expit(odds)
        self.n_iter_ = 1
        if self.loss_strength > 0:
            self._fit_rounds(X, y, codes, weights, odds)
        else:
            self.estimator_ = clone(self._template()).fit(X, y, sample_weight=weights * self.sample_trust_)
        return self

    def _check(self) -> None:
        checks.check_parameters(self)
        template = self._template()
        if not has_fit_parameter(template, "sample_weight"):
            raise ParameterError(
                f"{type(template).__name__} takes no sample_weight in fit, so trust cannot reach it. "
                "Hint: choose an estimator that does; wrap the last step of a pipeline, not the pipeline."
            )
        if isinstance(self.loss_strength, str) or self.loss_strength is None:
            raise ParameterError(f"loss_strength must be a number, but is {self.loss_strength!r}. Hint: 0 or 1.")
        if self.threshold == "literal":
            raise ParameterError(
                "threshold must be 'auto' or 'gap', but is 'literal'. Hint: that is for GEMMEDClassifier."
            )
        if self.loss_strength > 0 and not hasattr(template, "decision_function"):
            raise ParameterError(
                f"loss_strength={self.loss_strength:g} needs decision_function, which {type(template).__name__} lacks. "
                "Hint: loss_strength=0."
            )

    def _learn_field(self, X: Floats, codes: Any, weights: Floats, groups: Any, labels: Any, seed: int) -> None:
        training = merge_copies(X, codes, weights, groups, seed)
        checks.require_all_classes(training.codes, labels)
        settings = FieldSettings(
            self.n_neighbors, self.threshold, self.entropy, self.max_reference, self.repetition, self.isolation
        )
        space = EuclideanRows(X[training.first], training.groups, self.n_jobs)
        self._fields, g, _ = fit_fields(space, training.codes, len(labels), settings, np.random.default_rng(seed))
        warn_about_fields(self._fields, labels.tolist(), settings)
        self._fields = self._fields.at(training)
        self._references = self._fields.references(X)
        left_out, fill = np.flatnonzero(weights == 0), np.zeros(len(X))
        if left_out.size:
            scores = self._fields.scores(X[left_out], self._references, self.n_jobs)
            fill[left_out] = scores[codes[left_out], np.arange(left_out.size)]
        self.field_ = training.spread(g, fill)
        self.thresholds_, self.scales_ = self._fields.each("threshold"), self._fields.each("scale")
        self.n_kept_, self.n_neighbors_ = self._fields.each("n_kept"), self._fields.each("n_neighbors")

    def _fit_rounds(self, X: Floats, y: Any, codes: Any, weights: Floats, odds: Floats) -> None:
        def fit_inner(row_weights: Floats) -> Fitted:
            inner = clone(self._template()).fit(X, y, sample_weight=row_weights)
            return Fitted(inner, np.asarray(inner.decision_function(X)).reshape(len(X), -1), float("nan"))

        rule = FieldPrior(odds, self.loss_strength)
        solution = mean_field(fit_inner, rule, codes, weights, C=1.0, max_iter=self.max_iter, tol=self.tol)
        self.estimator_, self.sample_trust_, self.n_iter_ = solution.fitted.machine, solution.trust, solution.n_iter

    def trust(self, X: Any) -> Floats:
        """Trust of new rows by the class they fit best (G-23)."""
        rows = self._new_rows(X)
        scores = best_score(self._fields.scores(rows, self._references, self.n_jobs))
        return expit(log_odds(scores, self.trust_prior, self.field_strength))

    def _new_rows(self, X: Any) -> Floats:
        check_is_fitted(self, "estimator_")
        X = validate_data(self, X, dtype=np.float64, reset=False)
        checks.require_moderate_values(X)
        return X

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes of the fitted classifier."""
        return self.estimator_.classes_

    @_inner_has("predict")
    def predict(self, X: Any) -> NDArray[Any]:
        """Predictions of the fitted estimator."""
        return self._delegate("predict", X)

    @_inner_has("predict_proba")
    def predict_proba(self, X: Any) -> Floats:
        """Class probabilities of the fitted estimator."""
        return self._delegate("predict_proba", X)

    @_inner_has("decision_function")
    def decision_function(self, X: Any) -> Floats:
        """Scores of the fitted estimator."""
        return self._delegate("decision_function", X)

    @_inner_has("score")
    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Score of the fitted estimator."""
        return float(self.estimator_.score(self._new_rows(X), y, sample_weight))

    def _delegate(self, method: str, X: Any) -> Any:
        rows = self._new_rows(X)
        return getattr(self.estimator_, method)(rows)
