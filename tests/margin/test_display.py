import numpy as np
import pytest

from goldseam.datasets.ring import make_ring
from goldseam.margin import GEMMEDClassifier, TrustWeighter
from goldseam.report.displays.sample_trust import LOWEST_SHOWN, SampleTrustDisplay

matplotlib = pytest.importorskip("matplotlib", reason="plots are an extra")
matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def close_figures():
    yield
    matplotlib.pyplot.close("all")


@pytest.mark.parametrize("estimator", [GEMMEDClassifier(random_state=0), TrustWeighter(random_state=0)])
def test_points_are_the_rows(estimator):
    study = make_ring(1)
    model = estimator.fit(study.train.data / 20, study.train.target)
    bad = study.train.details["anomalous"]
    display = SampleTrustDisplay.from_estimator(model, highlight=bad)
    n_flagged = int((model.sample_trust_ < 0.5).sum())
    assert len(display.flagged_.get_offsets()) == n_flagged
    assert len(display.trusted_.get_offsets()) == 200 - n_flagged
    assert len(display.ringed_.get_offsets()) == bad.sum()
    assert display.ax_.get_title() == f"{n_flagged} of 200 rows distrusted"
    assert display.ringed_.get_offsets()[:, 0].min() >= LOWEST_SHOWN


def test_given_axes_are_used():
    _, ax = matplotlib.pyplot.subplots()
    display = SampleTrustDisplay(np.array([0.5, -1.0, -90.0]), np.array([0.9, 0.4, 0.0]), 0.45).plot(ax=ax)
    assert display.ax_ is ax
    assert display.ringed_ is None
    assert display.flagged_.get_offsets().tolist() == [[-1.0, 0.4], [LOWEST_SHOWN, 0.0]]
