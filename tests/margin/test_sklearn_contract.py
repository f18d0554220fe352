import pytest
from sklearn.linear_model import Ridge
from sklearn.utils.estimator_checks import parametrize_with_checks

from goldseam.margin import GEMMEDClassifier, SensorFusionClassifier, TrustWeighter


@pytest.mark.filterwarnings("ignore::goldseam.errors.DataWarning", "ignore::goldseam.errors.ConvergenceWarning")
@parametrize_with_checks(
    [
        GEMMEDClassifier(),
        GEMMEDClassifier(kernel="rbf", missing="indicator"),
        SensorFusionClassifier(),
        TrustWeighter(),
        TrustWeighter(Ridge()),
    ]
)
def test_contract(estimator, check):
    check(estimator)
