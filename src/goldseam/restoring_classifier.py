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
from goldseam.errors import InputError, ParameterError
from goldseam.restorer import Restorer
from goldseam.validation import fit_blocks, new_blocks

__all__ = ["RestoringClassifier"]


def _has(method: str) -> Any:
    return available_if(lambda self: hasattr(self.classifier, method))


class RestoringClassifier(ClassifierMixin, BaseEstimator):
    """A classifier that sees restored rows.

    Rows become features after restoring: numbers in robust units and one-hot levels; where a category was mended, the
    probabilities of its levels stand in place of zeros and ones when `soft` is set.

    Parameters
    ----------
    restorer : Restorer
        Cloned and fitted on the training rows.
    classifier : scikit-learn classifier
        Cloned and fitted on their features. It must accept numbers without gaps.
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
        if y is None:
            raise InputError("RestoringClassifier requires y to be passed, but the target y is None.")
        labels = column_or_1d(y, warn=True)
        assert_all_finite(labels, input_name="y")
        check_classification_targets(labels)
        if self.damaged_copies < 0:
            raise ParameterError(f"damaged_copies must be at least 0; got {self.damaged_copies}.")
        fit_blocks(self, X, kinds=self.restorer.kinds, missing_values=tuple(self.restorer.missing_values))
        self.restorer_ = clone(self.restorer).fit(X)
        check_consistent_length(X, labels)
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
