"""Restore, then predict: a restorer and a classifier as one estimator."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import assert_all_finite, check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from goldseam.corruption.protocols import PEER_KINDS, peer_protocol
from goldseam.errors import InputError, ModelFileError, ParameterError
from goldseam.model_checks import check_attributes
from goldseam.restorer import Restorer
from goldseam.validation import Saved, fit_blocks, new_blocks

__all__ = ["RestoringClassifier"]


def _has(method: str) -> Any:
    return available_if(lambda self: hasattr(self.classifier, method))


class RestoringClassifier(Saved, ClassifierMixin, BaseEstimator):
    """A classifier that sees restored rows.

    Rows become features after restoring: numbers in robust units and one-hot levels; where a category was mended, the
    probabilities of its levels stand in place of zeros and ones when `soft` is set.

    Parameters
    ----------
    restorer : Restorer
        Cloned and fitted on the training rows.
    classifier : scikit-learn classifier
        Cloned and fitted on their features. It must accept numbers without gaps. `save` can hold linear ones of
        scikit-learn (`LogisticRegression`, `LinearSVC`, `SGDClassifier`, `Perceptron`) and Goldseam's own.
    soft : bool, default True
        Probabilities instead of one-hot levels for mended categories.
    damaged_copies : int, default 0
        How many damaged and restored copies of the training rows the classifier sees besides the rows themselves, so
        that training and use look alike.
    random_state : int, RandomState or None
        Draws the damage.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from goldseam import Restorer, RestoringClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = RestoringClassifier(Restorer(audit=False, random_state=0), LogisticRegression()).fit(X, y)
    >>> X[0, 2] = 400.0
    >>> int(model.predict(X[:1])[0])
    0
    """

    def __init__(
        self,
        restorer: Restorer,
        classifier: Any,
        *,
        soft: bool = True,
        damaged_copies: int = 0,
        random_state: Any = None,
    ) -> None:
        self.restorer = restorer
        self.classifier = classifier
        self.soft = soft
        self.damaged_copies = damaged_copies
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the restorer on the rows, the classifier on their features."""
        self._check_parameters()
        if y is None:
            raise InputError("RestoringClassifier requires y to be passed, but the target y is None.")
        labels = column_or_1d(y, warn=True)
        assert_all_finite(labels, input_name="y")
        check_classification_targets(labels)
        fit_blocks(self, X, kinds=self.restorer.kinds, missing_values=self.restorer.missing_values)
        check_consistent_length(X, labels)
        self.restorer_ = clone(self.restorer).fit(X)
        blocks = new_blocks(self.restorer_, X, self.restorer_.schema_)[1]
        seen = [self.restorer_.features(blocks, soft=self.soft)]
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        for copy in range(self.damaged_copies):
            kind = PEER_KINDS[copy % len(PEER_KINDS)]
            damage = peer_protocol(blocks, self.restorer_.schema_, blocks, kind, rng)
            seen.append(self.restorer_.features(damage.blocks, soft=self.soft))
        self.classifier_ = clone(self.classifier).fit(np.concatenate(seen), np.tile(labels, len(seen)))
        self.classes_ = self.classifier_.classes_
        return self

    def _check_parameters(self) -> None:
        if not isinstance(self.restorer, Restorer):
            raise ParameterError(
                f"restorer must be a Restorer; got {self.restorer!r}. "
                "Hint: RestoringClassifier(Restorer(), LogisticRegression()), the restorer first."
            )
        if not hasattr(self.classifier, "fit") or not hasattr(self.classifier, "predict"):
            raise ParameterError(
                f"classifier must have fit and predict; got {self.classifier!r}. Hint: LogisticRegression()."
            )
        copies = self.damaged_copies
        if not isinstance(copies, (int, np.integer)) or isinstance(copies, bool) or copies < 0:
            raise ParameterError(
                f"damaged_copies must be a whole number of at least 0; got {copies!r}. Hint: 0 to learn from clean rows only."
            )
        if not isinstance(self.soft, (bool, np.bool_)):
            raise ParameterError(f"soft must be True or False; got {self.soft!r}. Hint: soft=True.")

    def check_state(self) -> None:
        """A model file whose parts do not belong together is refused."""
        self._check_parameters()
        if not hasattr(self, "classifier_"):
            return
        check_attributes(self, restorer_=Restorer, classes_=np.ndarray, n_features_in_=int)
        check_is_fitted(self.restorer_)
        wanted, schema = getattr(self.classifier_, "n_features_in_", None), self.restorer_.schema_
        got = len(schema.numbers) + sum(len(column.levels) for column in schema.categories)
        if wanted != got or not np.array_equal(self.classes_, self.classifier_.classes_):
            raise ModelFileError(f"The model file's classifier must have {got} features and the classes it names.")

    def _rows(self, X: Any) -> NDArray[np.float64]:
        new_blocks(self, X, self.restorer_.schema_)
        blocks = new_blocks(self.restorer_, X, self.restorer_.schema_)[1]
        return self.restorer_.features(blocks, soft=self.soft)

    def predict(self, X: Any) -> NDArray[Any]:
        """Classes of restored rows."""
        check_is_fitted(self)
        return np.asarray(self.classifier_.predict(self._rows(X)))

    @_has("predict_proba")
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Class probabilities of restored rows."""
        check_is_fitted(self)
        return np.asarray(self.classifier_.predict_proba(self._rows(X)))

    @_has("decision_function")
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Decision values of restored rows."""
        check_is_fitted(self)
        return np.asarray(self.classifier_.decision_function(self._rows(X)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags
