"""Every loader against the shapes, class counts and gaps that were verified when the files were collected."""

from __future__ import annotations

from collections import Counter

import numpy as np
import polars as pl
import pytest

from goldseam import datasets
from goldseam.datasets import locate
from goldseam.errors import ParameterError
from goldseam.schema import Kind

FOLDERS = {"intel_lab": "intel-lab-30min"}


def load(name, *args, **kwargs):
    """Call a loader, or skip when its files are not on this machine (never download in a test)."""
    folder = FOLDERS.get(name, name.replace("_", "-"))
    if locate.find_folder(folder) is None:
        pytest.skip(f"the shared data set {folder} is not on this machine (set GOLDSEAM_DATA)")
    return getattr(datasets, f"load_{name}")(*args, **kwargs)


# loader, arguments, rows, columns, class counts (None: no target), missing cells
CASES = [
    ("adult", {"subset": "train"}, 32561, 14, {"<=50K": 24720, ">50K": 7841}, 4262),
    ("adult", {"subset": "test"}, 16281, 14, {"<=50K": 12435, ">50K": 3846}, 2203),
    ("adult", {"subset": "all"}, 48842, 14, {"<=50K": 37155, ">50K": 11687}, 6465),
    ("credit_approval", {}, 690, 15, {"+": 307, "-": 383}, 67),
    ("australian", {}, 690, 14, {0: 383, 1: 307}, 0),
    ("german", {}, 1000, 20, {1: 700, 2: 300}, 0),
    ("usps", {}, 7291, 256, dict(enumerate((1194, 1005, 731, 658, 652, 556, 664, 645, 542, 644))), 0),
    ("usps", {"subset": "test"}, 2007, 256, dict(enumerate((359, 264, 198, 166, 200, 160, 170, 147, 166, 177))), 0),
    ("usps", {"subset": "test", "digits": (3, 8)}, 332, 256, {3: 166, 8: 166}, 0),
    ("sonar", {}, 208, 60, {"M": 111, "R": 97}, 0),
    ("ionosphere", {}, 351, 33, {"g": 225, "b": 126}, 0),
    ("ionosphere", {"keep_constant": True}, 351, 34, {"g": 225, "b": 126}, 0),
    ("g241c", {}, 1500, 241, {-1: 750, 1: 750}, 0),
    ("g241n", {}, 1500, 241, {1: 748, -1: 752}, 0),
    ("ida_banana", {}, 400, 2, {1: 217, -1: 183}, 0),
    ("ida_banana", {"subset": "test"}, 4900, 2, None, 0),
    ("ida_twonorm", {}, 400, 20, {1: 207, -1: 193}, 0),
    ("ida_twonorm", {"subset": "test"}, 7000, 20, None, 0),
    ("ida_ringnorm", {"realisation": 2}, 400, 20, None, 0),
    ("ida_ringnorm", {"subset": "test", "realisation": 3}, 7000, 20, None, 0),
    ("ida_waveform", {}, 400, 21, {1: 132, -1: 268}, 0),
    ("ida_waveform", {"subset": "test"}, 4600, 21, None, 0),
    ("ida_heart", {"realisation": 3}, 170, 13, None, 0),
    ("ida_heart", {"subset": "test"}, 100, 13, None, 0),
    ("image_segmentation", {}, 2310, 19, None, 0),
    ("image_segmentation", {"subset": "train"}, 210, 19, None, 0),
    ("image_segmentation", {"subset": "test"}, 2100, 19, None, 0),
    ("splice", {}, 3190, 60, {"N": 1655, "IE": 768, "EI": 767}, 0),
    ("splice", {"ambiguous": "missing"}, 3190, 60, {"N": 1655, "IE": 768, "EI": 767}, 60),
    ("pima_diabetes", {}, 768, 8, {0: 500, 1: 268}, 0),
    ("pima_diabetes", {"zeros": "missing"}, 768, 8, {0: 500, 1: 268}, 652),
    ("new_thyroid", {}, 215, 5, {1: 150, 2: 35, 3: 30}, 0),
    ("breast_cancer_ljubljana", {}, 286, 9, {"no-recurrence-events": 201, "recurrence-events": 85}, 9),
    ("skab", {}, 9405, 8, None, 0),
    ("skab", {"experiment": 2}, 1075, 8, None, 0),
    ("wsn_singlehop", {}, 4417, 4, {0: 4300, 1: 117}, 0),
    ("wsn_singlehop", {"place": "outdoor"}, 5039, 4, {0: 5007, 1: 32}, 0),
    ("intel_lab", {}, 144, 50, None, 0),
    ("intel_lab", {"subset": "test", "quantity": "humidity"}, 96, 50, None, 0),
    ("raha_hospital", {}, 1000, 20, None, 0),
    ("raha_flights", {}, 2376, 7, None, 0),
    ("raha_beers", {}, 2410, 11, None, 0),
    ("cellwise_philips", {}, 677, 9, None, 0),
    ("cellwise_glass", {}, 180, 750, None, 0),
    ("topgear", {}, 297, 32, None, 120),
]


@pytest.mark.parametrize(
    ("name", "arguments", "n_rows", "n_columns", "classes", "n_missing"),
    CASES,
    ids=[f"{case[0]}-{'-'.join(map(str, case[1].values()))}" for case in CASES],
)
def test_shape_classes_gaps(name, arguments, n_rows, n_columns, classes, n_missing):
    found = load(name, **arguments)
    frame = found.frame()
    assert frame.shape == (n_rows, n_columns)
    assert frame.columns == list(found.kinds) == list(found.feature_names)
    assert frame.null_count().sum_horizontal()[0] == n_missing
    assert "licence" in found.description
    if classes is not None:
        assert dict(Counter(found.target.tolist())) == classes
    if found.target is not None:
        assert len(found.target) == n_rows
    assert all(len(values) == n_rows for values in found.details.values())


def test_every_shared_set_has_a_loader_and_a_case():
    folders = [folder for folder in locate.data_folders() if folder.is_dir()]
    if not folders:
        pytest.skip("the shared data sets are not on this machine (set GOLDSEAM_DATA)")
    sets = {path.name for path in folders[0].iterdir() if path.is_dir()}
    assert {FOLDERS.get(case[0], case[0].replace("_", "-")) for case in CASES} == sets


@pytest.mark.parametrize("name", ["adult", "credit_approval", "german", "breast_cancer_ljubljana", "topgear", "usps"])
def test_dtype_follows_from_kind(name):
    found = load(name)
    expected = {
        Kind.CONTINUOUS: pl.Float64,
        Kind.INTEGER: pl.Int64,
        Kind.CATEGORICAL: pl.String,
        Kind.ORDINAL: pl.Enum,
        Kind.PASSTHROUGH: pl.String,
    }
    frame = found.frame()
    assert all(frame[column].dtype == expected[kind] for column, kind in found.kinds.items())


def test_numeric_sets_are_contiguous_arrays():
    for name in ("sonar", "usps", "intel_lab", "skab", "g241c", "cellwise_philips"):
        data = load(name).data
        assert isinstance(data, np.ndarray)
        assert data.dtype == np.float64
        assert data.flags.c_contiguous


def test_states_of_the_categories_are_those_of_the_protocol():
    """States per category of the complete rows, in table order (F11.2)."""
    expected = {
        "adult": (7, 16, 7, 14, 6, 5, 2, 41),
        "credit_approval": (2, 3, 3, 14, 9, 2, 2, 2, 3),
        "australian": (2, 3, 14, 8, 2, 2, 2, 3),
        "german": (4, 5, 10, 5, 5, 4, 3, 4, 3, 3, 4, 2, 2),
    }
    for name, states in expected.items():
        found = load(name).complete()
        names = [column for column, kind in found.kinds.items() if kind is Kind.CATEGORICAL]
        assert tuple(found.frame()[column].n_unique() for column in names) == states


def test_adult_row_by_hand():
    row = load("adult").frame().row(0, named=True)
    assert row["age"] == 39
    assert row["workclass"] == "State-gov"
    assert row["capital_gain"] == 2174
    assert row["native_country"] == "United-States"
    assert load("adult", "test").frame().row(0, named=True)["fnlwgt"] == 226802


def test_credit_leading_zeros_are_gone():
    frame = load("credit_approval").frame()
    assert frame["A11"][:2].to_list() == [1, 6]
    assert frame["A14"][:2].to_list() == [202, 43]


def test_adult_and_credit_complete_rows():
    assert load("adult", "train").complete().n_rows == 30162
    assert load("adult", "test").complete().n_rows == 15060
    assert load("credit_approval").complete().n_rows == 437 + 216


def test_ordinal_text_keeps_its_order():
    sizes = load("breast_cancer_ljubljana").frame()["tumor_size"]
    assert sizes.sort()[0] == "0-4"
    assert sizes.dtype.categories.to_list()[:3] == ["0-4", "5-9", "10-14"]


def test_usps_is_in_the_unit_interval_on_a_lattice():
    found = load("usps", "test")
    assert found.data.min() == 0.0
    assert found.data.max() == 1.0
    np.testing.assert_allclose(found.data * 2000, np.round(found.data * 2000), atol=1e-9)


def test_ionosphere_drops_the_constant_column():
    found = load("ionosphere")
    assert "pulse_1_imaginary" not in found.kinds
    assert found.data.std(axis=0).min() > 0
    assert np.ptp(load("ionosphere", keep_constant=True).data[:, 1]) == 0


def test_pima_zeros_stay_where_they_are_real():
    found = load("pima_diabetes", zeros="missing")
    assert (found.data[:, 0] == 0).sum() > 0
    assert not np.isnan(found.data[:, [0, 6, 7]]).any()


def test_segmentation_classes_are_even():
    assert set(Counter(load("image_segmentation").target.tolist()).values()) == {330}


def test_g241_splits_are_rows_from_zero():
    splits = load("g241c").splits
    assert splits["labelled_10"].shape == (12, 10)
    assert splits["labelled_100"].shape == (12, 100)
    assert splits["labelled_100"].min() >= 0
    assert splits["labelled_100"].max() < 1500


def test_ida_parts_are_standardised_together():
    both = np.vstack([load("ida_heart").data, load("ida_heart", "test").data])
    np.testing.assert_allclose(both.mean(axis=0), 0, atol=1e-6)


def test_skab_labels_and_time():
    found = load("skab", 0)
    assert 0.3 < found.target.mean() < 0.4
    assert set(np.unique(found.details["changepoint"])) == {0, 1}
    assert found.details["time"][1] - found.details["time"][0] == np.timedelta64(1, "s")
    assert load("skab").target is None


def test_wsn_event_is_at_one_mote():
    indoor = load("wsn_singlehop")
    assert (indoor.details["label_1"].sum(), indoor.details["label_2"].sum()) == (117, 0)
    outdoor = load("wsn_singlehop", "outdoor")
    assert (outdoor.details["label_3"].sum(), outdoor.details["label_4"].sum()) == (0, 32)


def test_intel_test_follows_train():
    both = load("intel_lab", "all").data
    assert both.shape == (240, 50)
    np.testing.assert_array_equal(both[144:], load("intel_lab", "test").data)
    assert np.abs(both[144] - both[143]).mean() < np.abs(both[144] - both[100]).mean()


@pytest.mark.parametrize(("name", "n_errors"), [("raha_hospital", 509), ("raha_flights", 4920), ("raha_beers", 4362)])
def test_dirty_pairs(name, n_errors):
    found = load(name)
    assert found.errors.sum() == n_errors
    assert found.errors.shape == found.clean.shape
    some = found.take(np.arange(5))
    np.testing.assert_array_equal(some.errors, found.errors[:5])


def test_glass_has_eight_constant_columns():
    assert (np.ptp(load("cellwise_glass").data, axis=0) == 0).sum() == 8


def test_topgear_known_errors():
    frame = load("topgear").frame()
    assert frame.filter(pl.col("Model") == "107")["Weight"].item() == 210


@pytest.mark.parametrize(
    ("name", "n_rows", "n_columns", "n_classes"), [("wdbc", 569, 30, 2), ("digits", 1797, 64, 10), ("wine", 178, 13, 3)]
)
def test_bundled_sets(name, n_rows, n_columns, n_classes):
    found = getattr(datasets, f"load_{name}")()
    assert found.data.shape == (n_rows, n_columns)
    assert len(found.kinds) == n_columns
    assert len(np.unique(found.target)) == n_classes


def test_take_and_complete_cut_everything_alike():
    kinds = {"a": Kind.CONTINUOUS, "b": Kind.CATEGORICAL}
    frame = pl.DataFrame({"a": [1.0, None, 3.0], "b": ["x", "y", "z"]})
    found = datasets.Dataset("t", frame, np.array([0, 1, 2]), kinds, details={"id": np.array([7, 8, 9])})
    full = found.complete()
    assert full.target.tolist() == [0, 2]
    assert full.details["id"].tolist() == [7, 9]
    assert full.frame()["b"].to_list() == ["x", "z"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: datasets.load_adult("valid"), "subset must be one of 'train', 'test', 'all'; got 'valid'"),
        (lambda: datasets.load_usps(digits=(10,)), r"digits must be numbers from 0 to 9; got \(10,\)"),
        (lambda: datasets.load_skab(16), "experiment must be None or a number from 0 to 15; got 16"),
        (lambda: datasets.load_ida_banana(realisation=2), r"realisation of ida-banana must be one of \(1,\); got 2"),
        (lambda: datasets.load_pima_diabetes(zeros="drop"), "zeros must be one of 'keep', 'missing'; got 'drop'"),
        (lambda: datasets.load_intel_lab(quantity="light"), "quantity must be one of .*; got 'light'"),
        (lambda: datasets.load_wsn_singlehop("roof"), "place must be one of 'indoor', 'outdoor'; got 'roof'"),
    ],
)
def test_bad_choices(call, message):
    with pytest.raises(ParameterError, match=message):
        call()
