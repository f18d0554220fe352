from __future__ import annotations

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from goldseam.errors import InputError  # noqa: E402
from goldseam.report.displays.cell_map import CellMapDisplay  # noqa: E402
from goldseam.report.displays.corruption_tree import CorruptionTreeDisplay  # noqa: E402
from goldseam.report.displays.false_alarm import FalseAlarmDisplay  # noqa: E402
from goldseam.separation import CorruptionSeparator  # noqa: E402


@pytest.fixture(autouse=True)
def close():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def waves(rng, n):
    return np.sin(np.arange(36) / 4 + rng.uniform(0, 6, (n, 1))) + 0.05 * rng.normal(size=(n, 36))


@pytest.fixture
def data(rng):
    rows = waves(rng, 4)
    rows[0, 10:20] = rng.uniform(-1, 1, 10)
    return waves(rng, 400), rows, waves(rng, 200)


def test_false_alarms_follow_the_diagonal(data):
    separator = CorruptionSeparator(alarm_rate=0.1).fit(data[0])
    display = FalseAlarmDisplay.from_estimator(separator, data[2])
    p = separator.p_values(data[2])
    for rate, share in zip(display.nominal, display.measured, strict=True):
        assert share == (p <= rate).mean()
    np.testing.assert_array_equal(display.line_.get_ydata(), display.measured)


@pytest.mark.parametrize("tree", ["interval", (6, 6)])
def test_cell_map_has_a_line_of_axes_per_row(data, tree):
    separator = CorruptionSeparator(tree, alarm_rate=0.1).fit(data[0])
    display = CellMapDisplay.from_estimator(separator, data[1], max_rows=3)
    assert display.ax_.shape == (3, 3 if tree != "interval" else 2)
    assert display.cells[0].any()
    with pytest.raises(InputError, match="axes per row"):
        display.plot(ax=display.ax_[:, :1])


def test_tree_frames_declared_nodes(data):
    separator = CorruptionSeparator(alarm_rate=0.1).fit(data[0])
    display = CorruptionTreeDisplay.from_estimator(separator, data[1][0])
    widths = [bar.get_linewidth() > 1 for bar in display.bars_]
    assert widths == [node.declared for node in display.explanation.nodes]
    assert any(widths)
    assert "flagged" in display.ax_.get_title()
