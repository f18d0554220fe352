from __future__ import annotations

from sklearn.utils.estimator_checks import parametrize_with_checks

from goldseam.field import RandomMixedField


@parametrize_with_checks([RandomMixedField(penalty=0.5, max_iter=300, random_state=0)])
def test_scikit_learn_contract(estimator, check):
    check(estimator)
