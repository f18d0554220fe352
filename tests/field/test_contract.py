from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from goldseam.field import RandomMixedField


@pytest.mark.filterwarnings("ignore:Columns determine each other")  # three equal columns in check_transformer_n_iter
@parametrize_with_checks([RandomMixedField(penalty=0.5, max_iter=300, random_state=0)])
def test_scikit_learn_contract(estimator, check):
    check(estimator)
