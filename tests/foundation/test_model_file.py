"""The model file: exact round trips, and a clear word about everything that is not one."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from safetensors.numpy import save as save_tensors

from goldseam import model_file
from goldseam.errors import ModelFileError, ParameterError
from goldseam.model_file import load, pack, read, save, unpack
from goldseam.schema import Column, Kind, Schema

SCHEMA = Schema((Column("a", Kind.CONTINUOUS, low=0.5, high=2.0), Column("b", Kind.CATEGORICAL, ("x", 1, True))))

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
arrays = hnp.arrays(
    st.sampled_from([np.float32, np.float64, np.int32, np.int64, np.uint8, np.bool_]),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
)
trees = st.recursive(
    scalars | arrays,
    lambda inner: st.lists(inner, max_size=3) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def same(a: object, b: object) -> bool:
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return isinstance(b, dict) and list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    return type(a) is type(b) and (a == b or (a != a and b != b))


@given(trees)
def test_any_tree_comes_back_exactly(tree: object) -> None:
    packed, stored = pack(tree)
    assert same(unpack(json.loads(json.dumps(packed, allow_nan=False)), stored), tree)


def test_file_round_trip_keeps_types(tmp_path: Path) -> None:
    model = {"schema": SCHEMA, "text": np.array(["low", "high"]), "nan": np.float32("nan"), "empty": np.zeros((0, 3))}
    save(model, tmp_path / "m.seam")
    back = read(tmp_path / "m.seam")
    assert back["schema"].names == SCHEMA.names
    assert back["schema"].columns[0] == SCHEMA.columns[0]
    assert back["schema"].columns[1].levels == ("x", 1, True)
    assert back["schema"].columns[1].kind is Kind.CATEGORICAL
    assert back["text"].dtype == np.array(["low", "high"]).dtype
    assert back["nan"].dtype == np.float32
    assert np.isnan(back["nan"])
    assert back["empty"].shape == (0, 3)


def test_nothing_else_is_left_in_the_folder(tmp_path: Path) -> None:
    save({"a": 1}, tmp_path / "m.seam")
    assert [p.name for p in tmp_path.iterdir()] == ["m.seam"]


def test_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.seam"
    save({"a": 1}, path)

    def fail(*args: object, **kwargs: object) -> bytes:
        raise OSError("disk full")

    monkeypatch.setattr(model_file, "save_tensors", fail)
    with pytest.raises(OSError, match="disk full"):
        save({"a": 2}, path)
    assert read(path) == {"a": 1}
    assert [p.name for p in tmp_path.iterdir()] == ["m.seam"]


def test_foreign_objects_are_refused_by_name() -> None:
    with pytest.raises(ParameterError, match=r"model\['x'\]\[1\] is a pathlib.PosixPath"):
        pack({"x": [0, Path("somewhere")]})
    with pytest.raises(ParameterError, match="complex128"):
        pack(np.zeros(2, dtype=complex))


def write_raw(path: Path, metadata: dict[str, str], arrays: dict[str, np.ndarray] | None = None) -> None:
    path.write_bytes(save_tensors(arrays or {"a0": np.zeros(1)}, metadata=metadata))


DEEP = "[" * 100_000 + "]" * 100_000


def hostile(tree: object, **changes: str) -> dict[str, str]:
    text = json.dumps(tree)
    checksum = model_file._checksum(text, {"a0": np.zeros(1)})
    return {"format": "goldseam", "format_version": "1", "model": text, "checksum": checksum, **changes}


@pytest.mark.parametrize(
    ("metadata", "says"),
    [
        (hostile({"$object": "os.system", "state": {}}), "'os.system'"),
        (hostile({"$object": "schema.Column", "state": {"nonsense": 1}}), "nonsense"),
        (hostile({"$array": "a99"}), "a99"),
        (hostile({"$pickle": "gASV"}), "pickle"),
        (hostile({"$scalar": ["O", "x"]}), "'O'"),
        (hostile({"$strings": ["O", [1], [3]]}), "only text"),
        (hostile({"$object": ["schema.Kind"], "value": "integer"}), "names the class"),
        (hostile({"$object": "schema.Kind", "value": "whole"}), "schema.Kind is broken: 'whole' is not a valid Kind"),
        (hostile({"$object": "schema.Kind"}), "schema.Kind is broken: 'value'"),
        (hostile({"$object": "schema.Column"}), "schema.Column is broken: 'state'"),
        (hostile({"$object": "schema.Column", "state": []}), "schema.Column is broken: 'list'"),
        (hostile({"$object": "schema.Schema", "state": {"columns": 5}}), "schema.Schema is broken"),
        (hostile({"$object": "schema.Schema", "state": {"columns": {"$tuple": [5]}}}), "schema.Schema is broken"),
        (
            hostile({"$object": "discovery.FineCells", "state": {"edges": 1, "scores": 2, "offsets": 3}}),
            "FineCells.edges must be an array of float64; got 1",
        ),
        (hostile({"$object": "restorer.Restorer", "state": {"predict": 1}}), "replaces 'predict'"),
        (hostile({"$object": "restoring_classifier.RestoringClassifier", "state": {}}), "has no 'restorer'"),
        (hostile({"$object": "restorer.Restorer", "state": {"alarm_rate": "high"}}), "restorer.Restorer is broken"),
        (hostile({"$linear": "SVC", "state": {"$dict": []}}), "'SVC'; only LinearRegression"),
        (hostile({"$linear": "Ridge", "state": {"$dict": [["parameters", {"$dict": [["x", 1]]}]]}}), "argument 'x'"),
        (hostile({"$tuple": 5}), "entry \\$tuple is broken"),
        (hostile({"$dict": [[[], 1]]}), "unhashable"),
        (hostile({"$array": []}), "unhashable"),
        (hostile({"$scalar": ["<f8", [1, 2]]}), "scalar of dtype '<f8'"),
        (hostile({"$strings": ["<U100000000", [1], ["a"]]}), "400,000,000 bytes for 1 characters"),
        (hostile({"$strings": [["O"], [1], ["a"]]}), "only text"),
        (hostile({"$strings": ["<U1", [2], ["a"]]}), "entry \\$strings is broken"),
        (hostile(1, model="{", checksum=model_file._checksum("{", {"a0": np.zeros(1)})), "tree is broken"),
        (hostile(1, model=DEEP, checksum=model_file._checksum(DEEP, {"a0": np.zeros(1)})), "tree is broken"),
        (hostile(1, format_version="9" * 5000), "format version 9"),
        (hostile(1, format_version="0"), "format version 0"),
        (hostile(1, format_version="2"), "format version 2, .* reads up to 1"),
        (hostile(1, format_version="soon"), "format version soon"),
        (hostile(1, checksum="0" * 64), "checksum"),
        (hostile(1, format="other"), "not a Goldseam model"),
    ],
)
def test_hostile_files_are_refused(tmp_path: Path, metadata: dict[str, str], says: str) -> None:
    write_raw(tmp_path / "m.seam", metadata)
    with pytest.raises(ModelFileError, match=says):
        read(tmp_path / "m.seam")


@pytest.mark.parametrize("field", ["format_version", "model", "checksum", "goldseam"])
def test_a_header_of_other_things_than_text_is_refused(tmp_path: Path, field: str) -> None:
    header = json.dumps({"__metadata__": {**hostile(1), "goldseam": "0.1", field: 1}}).encode()
    (tmp_path / "m.seam").write_bytes(len(header).to_bytes(8, "little") + header)
    with pytest.raises(ModelFileError, match=f"'{field}' must be text; got 1"):
        read(tmp_path / "m.seam")


@pytest.mark.parametrize(
    ("tree", "says"),
    [
        (5, "holds a int, but an estimator is needed"),
        ({"$dict": [["table_classifier", 1]]}, "holds a dict, .*`goldseam predict`"),
        ({"$object": "schema.Kind", "value": "integer"}, "holds a Kind"),
        ({"$object": "restorer.Restorer", "state": {}}, "holds a Restorer that was never fitted"),
    ],
)
def test_only_fitted_estimators_are_loaded(tmp_path: Path, tree: object, says: str) -> None:
    write_raw(tmp_path / "m.seam", hostile(tree))
    with pytest.raises(ModelFileError, match=says):
        load(tmp_path / "m.seam")


def test_text_wider_than_its_words_keeps_its_type(tmp_path: Path) -> None:
    save(np.array(["a", "b"], dtype="<U40"), tmp_path / "m.seam")
    assert read(tmp_path / "m.seam").dtype == "<U40"


def test_places_that_hold_no_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"gone\.seam' does not exist.*Hint") as missing:
        load(tmp_path / "gone.seam")
    assert isinstance(missing.value, ModelFileError)
    with pytest.raises(IsADirectoryError, match="is a folder, but a model file is needed"):
        load(tmp_path)
    with pytest.raises(IsADirectoryError, match="is a folder, but a file name is needed"):
        save({"a": 1}, tmp_path)
    with pytest.raises(FileNotFoundError, match=r"'.*nowhere/m\.seam' does not exist: '.*nowhere'"):
        save({"a": 1}, tmp_path / "nowhere" / "m.seam")
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("state", [np.random.RandomState(0), np.random.default_rng(0)])
def test_a_random_state_that_is_no_number(state: object) -> None:
    with pytest.raises(ParameterError, match=rf"model\['random_state'\] is a {type(state).__name__}.*random_state=int"):
        pack({"random_state": state})


def test_deep_nesting_is_refused(tmp_path: Path) -> None:
    tree: object = 0
    for _ in range(500):
        tree = [tree]
    write_raw(tmp_path / "m.seam", hostile(tree))
    with pytest.raises(ModelFileError, match="deeper than 200"):
        read(tmp_path / "m.seam")


@pytest.mark.parametrize("n_bytes", [0, 7, 20, -1, -9])
def test_truncated_files_are_refused(tmp_path: Path, n_bytes: int) -> None:
    path = tmp_path / "m.seam"
    save({"a": np.arange(100.0)}, path)
    path.write_bytes(path.read_bytes()[:n_bytes])
    with pytest.raises(ModelFileError, match=r"m\.seam"):
        read(path)


def test_every_flipped_byte_is_noticed(tmp_path: Path, rng: np.random.Generator) -> None:
    path = tmp_path / "m.seam"
    save({"schema": SCHEMA, "a": np.arange(4.0)}, path)
    good = path.read_bytes()
    for position in rng.choice(len(good), size=150, replace=False):
        bad = bytearray(good)
        bad[position] ^= 1 << int(rng.integers(8))
        path.write_bytes(bytes(bad))
        try:
            back = read(path)
        except ModelFileError:
            continue
        assert same(back["a"], np.arange(4.0)), position  # only a byte that carries no meaning may go unnoticed
        assert pack(back["schema"]) == pack(SCHEMA)


@pytest.mark.parametrize("name", sorted(model_file.STORABLE))
def test_every_storable_name_exists(name: str) -> None:
    module, _, attribute = name.rpartition(".")
    assert getattr(import_module(f"goldseam.{module}"), attribute).__module__ == f"goldseam.{module}"
