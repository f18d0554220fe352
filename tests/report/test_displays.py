"""Plots: what they show is what was counted, and artists are kept."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

from goldseam.audit import Audit
from goldseam.errors import InputError, MissingDependencyError
from goldseam.report.displays.audit import AuditDisplay
from goldseam.report.displays.before_after import BeforeAfterDisplay
from goldseam.report.displays.cell_map import CellMapDisplay
from goldseam.report.displays.coverage import CoverageDisplay
from goldseam.report.displays.palette import BACKGROUND, CAUSE_COLOURS, require_matplotlib
from goldseam.report.displays.seam_map import SeamMapDisplay
from goldseam.report.ledger import read_ledger
from goldseam.seam import CAUSES, Seam
from tests.report import samples


@pytest.fixture(autouse=True)
def plt() -> Iterator[Any]:
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


def test_before_and_after_are_shares_of_the_counts() -> None:
    restoration = samples.mixed()
    display = BeforeAfterDisplay.from_restoration(restoration, columns=["income", "city"])
    income = restoration.summary()["columns"][1]
    before, after = display.artists_["income"]
    assert np.allclose(before.get_data().values, np.array(income["before"]["counts"]) / sum(income["before"]["counts"]))
    assert np.allclose(after.get_data().values.sum(), 1)
    assert len(display.artists_["city"]) == 2
    assert len(display.ax_) == 2
    display.figure_.canvas.draw()


def test_the_columns_touched_most_come_first(plt: Any) -> None:
    display = BeforeAfterDisplay.from_restoration(samples.mixed())
    assert list(display.artists_) == ["income", "age", "city", "smoker"]
    _, ax = plt.subplots()
    one = BeforeAfterDisplay.from_restoration(samples.mixed(), columns=["age"], ax=ax)
    assert one.ax_ is ax
    assert one.figure_ is ax.figure


def test_wrong_requests_are_refused(plt: Any) -> None:
    with pytest.raises(InputError, match="'weight'"):
        BeforeAfterDisplay.from_restoration(samples.mixed(), columns=["weight"])
    _, ax = plt.subplots()
    with pytest.raises(InputError, match="2 columns need as many axes, but got 1"):
        BeforeAfterDisplay.from_restoration(samples.mixed(), columns=["age", "city"], ax=ax)


def test_what_an_audit_measured_has_error_bars() -> None:
    damage = [
        {"kind": "scale", "size": "", "coverage": 0.8, "interval_cells": 75, "times": 3},
        {"kind": "noise", "coverage": None},
    ]
    audit = SimpleNamespace(to_dict=lambda: {"damage": damage})
    display = CoverageDisplay.from_estimator(SimpleNamespace(audit_=audit, coverage=0.9))
    assert display.sd_ == pytest.approx([0.06])
    assert len(display.points_.lines[2]) == 1


def test_an_audit_is_drawn_by_kind_and_by_column(plt: Any) -> None:
    damage = [
        {"kind": "scale", "found": 0.9, "localised": 0.8, "restored": -3.0},
        {"kind": "noise", "found": 0.2, "localised": None, "restored": None},
    ]
    columns = [{"name": f"c{i}", "restorable": i / 30} for i in range(30)] + [{"name": "flat", "restorable": None}]
    audit = SimpleNamespace(to_dict=lambda: {"damage": damage, "columns": columns})
    display = AuditDisplay.from_estimator(SimpleNamespace(audit_=audit))
    widths = {name: [bar.get_width() for bar in bars] for name, bars in display.bars_.items()}
    assert widths["found"] == [0.9, 0.2]
    assert widths["localised"] == [0.8, 0.0]
    assert widths["restored"] == [-0.25, 0.0]
    shown = [*range(29, 19, -1), *range(9, -1, -1)]
    assert widths["columns"] == [i / 30 for i in shown]
    assert [label.get_text() for label in display.ax_[1].get_yticklabels()] == [f"c{i}" for i in shown]
    display.figure_.canvas.draw()


def test_what_was_not_audited_is_not_drawn(plt: Any) -> None:
    with pytest.raises(InputError, match=r"There is no audit to draw\. Not audited: audit=False"):
        AuditDisplay.from_estimator(SimpleNamespace(audit_=Audit(asked=False)))
    _, ax = plt.subplots()
    with pytest.raises(InputError, match="into two axes; got 1"):
        AuditDisplay([]).plot(ax=ax)


def test_names_are_not_read_as_formulas() -> None:
    column = samples.mixed().summary()["columns"][1] | {"name": r"$\frac{1}{$ <b>"}
    BeforeAfterDisplay([column]).plot().figure_.canvas.draw()
    CoverageDisplay([r"$\frac{$"], [0.9], nominal=0.9).plot().figure_.canvas.draw()


def test_the_seam_map_colours_blocks_by_cause() -> None:
    from matplotlib.colors import to_rgba

    restoration = samples.mixed()
    display = SeamMapDisplay.from_restoration(restoration)
    image = np.asarray(display.image_.get_array())
    assert image.shape == (4, 200, 4)
    assert image[1, 3] == pytest.approx(to_rgba(CAUSE_COLOURS["missing"]))
    assert image[0, 3] == pytest.approx(to_rgba(CAUSE_COLOURS["corrupt"]))
    assert image[0, 4] == pytest.approx(to_rgba(BACKGROUND))
    assert [text.get_text() for text in display.legend_.get_texts()] == ["missing", "corrupt", "unseen"]
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == ["age", "income", "city", "smoker"]


def test_the_seam_map_of_a_large_table_is_small() -> None:
    seam = Seam.of(row=[5, 999_999], column=["c7", "c499"], cause=["noise", "refused"])
    cells = read_ledger(seam, [f"c{i}" for i in range(500)], 1_000_000).cell_map
    image = np.asarray(SeamMapDisplay(cells).plot().image_.get_array())
    assert image.shape[0] <= 48
    assert image.shape[1] <= 240
    assert (image != image[1, 1]).any(axis=2).sum() == 2


def test_the_cell_map_shows_the_rows_with_most_damage() -> None:
    restoration = samples.images()
    display = CellMapDisplay.from_restoration(restoration, max_rows=3)
    assert display.ax_.shape == (3, 3)
    assert display.shape == (16, 16)
    assert display.titles == ("row 0", "row 5", "row 10")
    assert (display.cells == restoration.changed[[0, 5, 10]]).all()
    assert (display.probability == np.where(display.cells, 0.97, 0.0)).all()
    assert np.allclose(display.restored[~display.cells], display.observed[~display.cells])
    display.figure_.canvas.draw()


def test_the_cell_map_of_a_mixed_table_is_drawn_in_spreads() -> None:
    restoration = samples.mixed()
    display = CellMapDisplay.from_restoration(restoration, max_rows=2)
    age = restoration.schema.columns[0]
    assert display.shape is None
    assert display.titles[0] == "row 3"
    assert display.restored[0, 0] == pytest.approx((restoration.blocks.numbers[3, 0] - age.center) / age.scale)
    display.figure_.canvas.draw()


def test_an_empty_seam_has_a_map() -> None:
    display = SeamMapDisplay(read_ledger(Seam.of(row=[]), ["a"], 3).cell_map).plot()
    assert display.legend_ is None


def test_coverage_by_hand() -> None:
    display = CoverageDisplay.from_predictions(
        [1, 2, 3, 4, np.nan], [0, 0, 0, np.nan, 0], [2, 2, 2, 9, 9], nominal=0.9, groups=["a", "a", "b", "b", "b"]
    )
    assert display.names == ["a", "b"]
    assert display.measured.tolist() == [1.0, 0.0]
    assert display.n.tolist() == [2, 1]
    assert display.sd_ == pytest.approx([np.sqrt(0.045), 0.3])
    assert display.nominal_.get_xdata()[0] == 0.9
    with pytest.raises(InputError, match=r"\(2,\), \(1,\) and \(1,\)"):
        CoverageDisplay.from_predictions([1, 2], [1], [1], nominal=0.9)


def test_coverage_of_a_restoration_against_the_truth() -> None:
    clean, _ = samples.mixed_tables()
    display = CoverageDisplay.from_restoration(samples.mixed(), clean)
    assert set(display.names) == {"age", "income"}
    assert display.measured.tolist() == [1.0, 1.0]
    assert display.nominal == 0.9
    with pytest.raises(InputError, match="nominal"):
        CoverageDisplay.from_restoration(samples.mixed(facts={}), clean)


def test_coverage_of_an_audit() -> None:
    audit = SimpleNamespace(to_dict=lambda: samples.FACTS["audit"])
    display = CoverageDisplay.from_estimator(SimpleNamespace(audit_=audit, coverage=0.9))
    assert display.names == ["interval 10-40 %", "swapped columns 2 cells"]
    assert display.measured.tolist() == [0.91, 0.88]
    assert display.sd_ is None


def test_a_colour_for_every_cause() -> None:
    assert set(CAUSE_COLOURS) == set(CAUSES)
    assert len(set(CAUSE_COLOURS.values())) == len(CAUSES)


def test_without_matplotlib_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def guarded(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return original(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", guarded)
    with pytest.raises(MissingDependencyError, match=r"goldseam\[plot\]"):
        require_matplotlib()


@pytest.mark.slow
def test_a_million_rows_are_drawn_as_few_shapes() -> None:
    clean, damaged = samples.mixed_tables(1_000_000)
    damaged = damaged.with_columns(age=clean["age"], income=clean["income"])
    display = BeforeAfterDisplay.from_restoration(samples.restored(clean, damaged))
    display.figure_.canvas.draw()
    assert sum(len(artists) for artists in display.artists_.values()) < 20
