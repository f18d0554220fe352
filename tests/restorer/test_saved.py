"""Every public estimator goes through a model file and answers as before, bit for bit; what lies in a file is checked."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, Perceptron, Ridge, SGDClassifier
from sklearn.svm import LinearSVC

import goldseam as gs
from goldseam.errors import ModelFileError, ParameterError
from goldseam.model_file import ESTIMATORS, pack, unpack

RESTORER = gs.Restorer(method=["conditional"], audit=False, random_state=0)


def draw(seed: int, n: int = 120) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Mixed rows, their numbers, and three classes by name."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=n)
    numbers = hidden[:, None] + 0.5 * rng.normal(size=(n, 4))
    table = pd.DataFrame(numbers, columns=list("abcd")).assign(kind=np.where(hidden > 0.3, "open", "shut"))
    return table, numbers, np.array(["low", "mid", "high"])[np.digitize(hidden, (-0.5, 0.5))]


TABLE, NUMBERS, LABELS = draw(1)
NEW_TABLE, NEW_NUMBERS, _ = draw(2, 30)
NEW_TABLE.loc[3, "b"], NEW_TABLE.loc[5, "c"], NEW_NUMBERS[4, 2] = 40.0, np.nan, 60.0


def restored(model: Any) -> list[Any]:
    result = model.restore(NEW_TABLE)
    return [result.table.to_numpy(), result.row_p_values]


def classified(model: Any, rows: Any = NEW_TABLE) -> list[Any]:
    wanted = [name for name in ("predict", "predict_proba", "decision_function") if hasattr(model, name)]
    return [getattr(model, name)(rows) for name in wanted]


def on_numbers(model: Any) -> list[Any]:
    return [*classified(model, NEW_NUMBERS), *([model.trust(NEW_NUMBERS)] if hasattr(model, "trust") else [])]


def separated(model: Any) -> list[Any]:
    return [model.separate(NEW_NUMBERS), model.transform(NEW_NUMBERS), model.p_values(NEW_NUMBERS)]


def denoised(model: Any) -> list[Any]:
    return [model.transform(NEW_TABLE).to_numpy(), np.asarray(model.score(NEW_TABLE))]


Case = tuple[Any, tuple[Any, ...], Callable[[Any], list[Any]]]
SENSORS = {"left": [0, 1], "right": [2, 3]}
CASES: dict[str, Case] = {
    "Restorer": (RESTORER, (TABLE,), restored),
    "CorruptionSeparator": (gs.CorruptionSeparator(alarm_rate=0.1, random_state=0), (NUMBERS,), separated),
    "separator of residuals": (
        gs.CorruptionSeparator(tree=gs.AttributeTree.interval(4), refine="residuals", alarm_rate=0.1, random_state=0),
        (NUMBERS,),
        separated,
    ),
    "RandomMixedField": (gs.RandomMixedField(noise={"a": 0.3}, random_state=0), (TABLE,), denoised),
    "GEMMEDClassifier": (gs.GEMMEDClassifier(random_state=0), (NUMBERS, LABELS), on_numbers),
    "rbf": (gs.GEMMEDClassifier(kernel="rbf", random_state=0), (NUMBERS, LABELS), on_numbers),
    "SensorFusionClassifier": (gs.SensorFusionClassifier(SENSORS, random_state=0), (NUMBERS, LABELS), on_numbers),
    "TrustWeighter": (gs.TrustWeighter(random_state=0), (NUMBERS, LABELS), on_numbers),
    "weighted ridge": (gs.TrustWeighter(Ridge(0.5)), (NUMBERS, NUMBERS[:, 0] ** 2), on_numbers),
    "RestoringClassifier": (gs.RestoringClassifier(RESTORER, LogisticRegression()), (TABLE, LABELS), classified),
    "two classes": (gs.RestoringClassifier(RESTORER, LogisticRegression()), (TABLE, LABELS == "low"), classified),
    "own classifier": (
        gs.RestoringClassifier(RESTORER, gs.GEMMEDClassifier(random_state=0)),
        (TABLE, LABELS),
        classified,
    ),
}


@pytest.fixture(scope="module")
def fitted() -> Callable[[str], Any]:
    known: dict[str, Any] = {}

    def of(name: str) -> Any:
        if name not in known:
            model, rows, _ = CASES[name]
            known[name] = model.fit(*rows)
        return known[name]

    return of


pytestmark = pytest.mark.filterwarnings("ignore::goldseam.errors.GoldseamWarning")


def test_every_public_estimator_is_here() -> None:
    public = {
        name for name in gs.__all__ if inspect.isclass(one := getattr(gs, name)) and issubclass(one, BaseEstimator)
    }
    assert {name.rpartition(".")[2] for name in ESTIMATORS} == public
    assert public <= set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_answers_are_the_same_bit_for_bit(name: str, fitted: Callable[[str], Any], tmp_path: Path) -> None:
    model, answers = fitted(name), CASES[name][2]
    model.save(tmp_path / "m.seam")
    again = gs.load(tmp_path / "m.seam")
    assert type(again) is type(model)
    assert repr(again) == repr(model)
    for before, after in zip(answers(model), answers(again), strict=True):
        assert before.dtype == after.dtype
        np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize(
    "linear",
    [
        LogisticRegression(C=0.3, solver="newton-cg"),
        LogisticRegression(solver="saga", random_state=1, tol=0.1),
        LinearSVC(random_state=0),
        SGDClassifier(loss="log_loss", random_state=0),
        Perceptron(random_state=0),
        LinearRegression(),
        Ridge(2.0),
    ],
)
def test_linear_models_are_the_same_bit_for_bit(linear: Any) -> None:
    y = NUMBERS[:, 0] if isinstance(linear, (LinearRegression, Ridge)) else LABELS
    again = unpack(*pack(linear.fit(NUMBERS, y)))
    for before, after in zip(classified(linear, NEW_NUMBERS), classified(again, NEW_NUMBERS), strict=True):
        np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize(
    "model",
    [
        gs.Restorer(method=["conditional", "tree"], audit=False, random_state=4),
        gs.CorruptionSeparator(random_state=4),
        gs.RandomMixedField(random_state=4),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_models_of_giants_and_columns_that_are_nearly_empty_load(model: Any) -> None:
    table = TABLE.assign(big=TABLE["a"], few=np.nan)
    table.loc[7, "big"], table.loc[[20, 30, 90], "few"] = 1e140, [1.5, 2.5, 3.5]
    again = unpack(*pack(model.fit(table)))
    np.testing.assert_array_equal(
        again.transform(NEW_TABLE.assign(big=1.0, few=2.0)), model.transform(NEW_TABLE.assign(big=1.0, few=2.0))
    )


def test_other_classifiers_are_refused_by_name(tmp_path: Path) -> None:
    model = gs.RestoringClassifier(RESTORER, RandomForestClassifier(3, random_state=0)).fit(TABLE, LABELS)
    with pytest.raises(ParameterError, match=r"classifier is a sklearn.*RandomForestClassifier.*LogisticRegression"):
        model.save(tmp_path / "m.seam")
    assert not any(tmp_path.iterdir())


def test_linear_models_that_do_not_fit_are_refused() -> None:
    tree, arrays = pack(LogisticRegression().fit(NUMBERS, LABELS))
    floats = [name for name, array in arrays.items() if array.dtype.kind == "f"]
    assert len(floats) == 2
    for name in floats:
        with pytest.raises(ModelFileError, match="needs coefficients of shape \\(3, 4\\)"):
            unpack(tree, {**arrays, name: arrays[name][:-1]})
        with pytest.raises(ModelFileError, match="finite"):
            unpack(tree, {**arrays, name: arrays[name] * np.nan})


# --- strangers' files ---------------------------------------------------------------------------------------------------


def places(node: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Where each array of a tree belongs: its name in the file, and the fields that lead to it."""
    if isinstance(node, dict) and "$array" in node:
        yield node["$array"], path
    elif isinstance(node, dict) and "$dict" in node:
        for key, value in node["$dict"]:
            yield from places(value, f"{path}.{key}")
    elif isinstance(node, (dict, list)):
        for key, value in node.items() if isinstance(node, dict) else enumerate(node):
            yield from places(value, path if key in ("state", "$tuple") else f"{path}.{key}")


FREE = {  # sorted scores, reports and rows of the past: of any length and any value, nothing follows them
    "row_scores", "cell_scores", "clean_votes", "levels", "mass", "reference_trust_", "calibration_rows_", "sample_trust_",
    "field_", "objective_", "thresholds_", "scales_", "n_kept_", "n_neighbors_", "n_iter_", "sensor_trust_",
}  # fmt: skip
ARRAYS = ["Restorer", "CorruptionSeparator", "separator of residuals", "RandomMixedField", "GEMMEDClassifier", "rbf"]


@pytest.mark.parametrize("name", [*ARRAYS, "SensorFusionClassifier", "TrustWeighter"])
def test_arrays_that_are_cut_short_are_refused(name: str, fitted: Callable[[str], Any]) -> None:
    """Every array in turn loses its last row."""
    tree, arrays = pack(fitted(name))
    assert accepted(tree, arrays, lambda array: array[:-1]) == []


def test_fewer_votes_than_two_are_refused(fitted: Callable[[str], Any]) -> None:
    tree, arrays = pack(fitted("Restorer"))
    name = next(name for name, path in places(tree) if path.endswith("clean_votes"))
    with pytest.raises(ModelFileError, match=r"votes of clean rows must have shape \(2, 11\); got \(1, 11\)"):
        unpack(tree, {**arrays, name: arrays[name][:1]})


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("value", [-7, 10**6])
def test_whole_numbers_that_lead_outside_are_refused(name: str, value: int, fitted: Callable[[str], Any]) -> None:
    tree, arrays = pack(fitted(name))

    def changed(array: np.ndarray) -> np.ndarray:
        out = array.copy()
        out.ravel()[-1] = value
        return out

    whole = {k: a for k, a in arrays.items() if a.dtype.kind in "iu"}
    separates = name in ("CorruptionSeparator", "separator of residuals")  # it does not know how many rows there were
    assert accepted(tree, whole, changed, arrays) == [".reference_rows_"] * (separates and value > 0)


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_of_nothing_are_refused(name: str, fitted: Callable[[str], Any]) -> None:
    tree, arrays = pack(fitted(name))
    floats = {k: a for k, a in arrays.items() if a.dtype.kind == "f"}
    left = accepted(tree, floats, lambda array: np.full_like(array, np.nan), arrays)
    gaps = (
        "calibration.numbers",
        "reference.values",
        "fine.edges",
        "pool.number_weights",
        "levels_.floor",
        "_medians",
        "segments.spread",
    )
    assert [path for path in left if not path.endswith(gaps) and "._references." not in path] == []


def accepted(tree: Any, arrays: dict[str, Any], change: Callable[[Any], Any], others: Any = None) -> list[str]:
    """Which arrays may be changed without a word."""
    where = dict(places(tree))
    out = []
    for name, array in arrays.items():
        if not array.size or where[name].rpartition(".")[2] in FREE:
            continue
        try:
            unpack(tree, {**(others or arrays), name: change(array)})
        except ModelFileError:
            continue
        out.append(where[name])
    return out


JUNK = (
    None,
    5,
    -1,
    "x",
    [],
    {},
    [1],
    1e300,
    True,
    10**30,
    {"$tuple": []},
    {"$dict": []},
    {"$float": "nan"},
    {"$array": "a0"},
)


def spots(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a tree."""
    for key, part in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        yield (*path, key)
        yield from spots(part, (*path, key))


@pytest.mark.parametrize("name", ["RestoringClassifier", "RandomMixedField", "SensorFusionClassifier"])
def test_whatever_stands_in_a_file_there_is_one_error(
    name: str, fitted: Callable[[str], Any], rng: np.random.Generator
) -> None:
    """Any entry replaced by any other: read, or refused with a word, never another error."""
    tree, arrays = pack(fitted(name))
    text, places_ = json.dumps(tree), list(spots(tree))
    refused = 0
    for at in rng.integers(len(places_), size=300):
        node = broken = json.loads(text)
        for key in places_[at][:-1]:
            node = node[key]
        node[places_[at][-1]] = JUNK[rng.integers(len(JUNK))]
        try:
            unpack(broken, arrays)
        except ModelFileError:
            refused += 1
    assert refused > 150
