"""The scikit-learn contract, shown on the smallest estimator that uses it."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import check_is_fitted

from goldseam.schema import Blocks
from goldseam.validation import fit_blocks, new_blocks, restored


class Filler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Fills missing numbers with the median and missing categories with the first level."""

    def fit(self, X, y=None):
        _, self.schema_ = fit_blocks(self, X, constant="number")
        return self

    def transform(self, X):
        check_is_fitted(self)
        table, blocks = new_blocks(self, X, self.schema_)
        schema = self.schema_
        changed = np.zeros((len(blocks), len(schema.columns)), dtype=bool)
        changed[:, schema.number_positions] = np.isnan(blocks.numbers)
        changed[:, schema.category_positions] = blocks.codes < 0
        centers = np.array([column.center for column in schema.numbers])
        filled = Blocks(
            np.where(np.isnan(blocks.numbers), centers, blocks.numbers), np.maximum(blocks.codes, 0).astype(np.int32)
        )
        return restored(self, table, schema, filled, changed)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


@parametrize_with_checks([Filler()])
def test_scikit_learn_contract(estimator, check):
    check(estimator)
