"""Where data are looked for, and what happens when they are not there. No test goes online."""

from __future__ import annotations

from types import SimpleNamespace
from urllib.error import URLError

import numpy as np
import pytest
import sklearn.datasets

from goldseam import datasets
from goldseam.datasets import locate
from goldseam.errors import DatasetNotFoundError


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    monkeypatch.setenv("GOLDSEAM_DATA", str(tmp_path))
    return tmp_path


def offline(**_):
    raise URLError("no network")


def test_variable_wins_over_sibling(nowhere):
    (nowhere / "sonar").mkdir()
    assert locate.find_folder("sonar") == nowhere / "sonar"
    assert list(locate.data_folders()) == [nowhere]


def test_sibling_of_the_current_directory(monkeypatch, tmp_path):
    monkeypatch.delenv("GOLDSEAM_DATA", raising=False)
    (tmp_path / "shared" / "data" / "my-set").mkdir(parents=True)
    inside = tmp_path / "project" / "deep"
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
    assert locate.find_folder("my-set") == tmp_path / "shared" / "data" / "my-set"


@pytest.mark.parametrize("name", ["usps", "skab", "g241c", "raha_beers", "topgear", "ida_heart"])
def test_sets_that_cannot_be_downloaded_say_how_to_get_them(nowhere, name):
    with pytest.raises(DatasetNotFoundError, match=f"'{name.replace('_', '-')}'.*Hint: put its files") as caught:
        getattr(datasets, f"load_{name}")()
    assert str(nowhere) in str(caught.value)
    assert isinstance(caught.value, FileNotFoundError)


def test_offline_is_told(nowhere, monkeypatch):
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", offline)
    with pytest.raises(DatasetNotFoundError, match=r"'sonar'.*OpenML \(set 40\) did not answer.*no network"):
        datasets.load_sonar()


def test_openml_has_no_split_of_adult(nowhere, monkeypatch):
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", offline)
    with pytest.raises(DatasetNotFoundError, match=r"no subset 'train'.*subset='all'"):
        datasets.load_adult()


def german_bunch(n_rows=1000):
    """What the fetcher gives: numbers, categories as positions."""
    data = np.zeros((n_rows, 20))
    data[:, 1] = 6.0
    data[1, 0] = 1.0
    data[2, 0] = np.nan
    names = [f"c{i}" for i in range(20)]
    numeric = {1, 4, 7, 10, 12, 15, 17}
    categories = {name: ["'<0'", "'no checking'"] for i, name in enumerate(names) if i not in numeric}
    target = np.array(["good"] * (n_rows - 1) + ["bad"], dtype=object)
    return SimpleNamespace(data=data, feature_names=names, categories=categories, target=target)


def test_openml_takes_names_kinds_and_labels_of_the_files(nowhere, monkeypatch):
    asked = []
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", lambda **kwargs: asked.append(kwargs) or german_bunch())
    found = datasets.load_german()
    assert asked[0]["data_id"] == 31
    assert found.frame()["status"][:3].to_list() == ["<0", "no checking", None]
    assert found.frame()["duration"][0] == 6
    assert np.unique(found.target, return_counts=True)[1].tolist() == [999, 1]
    assert found.target.dtype == np.int64


def test_openml_set_of_another_shape_is_refused(nowhere, monkeypatch):
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", lambda **_: german_bunch(999))
    with pytest.raises(DatasetNotFoundError, match="set 31 is 999 x 20 instead of 1000 x 20"):
        datasets.load_german()


def test_openml_continuous_set_is_an_array(nowhere, monkeypatch, rng):
    data = rng.normal(size=(351, 34))
    names = [f"a{i}" for i in range(34)]
    bunch = SimpleNamespace(data=data, feature_names=names, categories={}, target=np.array(["g"] * 351, dtype=object))
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", lambda **_: bunch)
    found = datasets.load_ionosphere(keep_constant=True)
    np.testing.assert_array_equal(found.data, data)
