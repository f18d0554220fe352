"""The `.seam` model file: arrays and JSON in one safetensors file, never a pickle.

A fitted object is walked once (`pack`): arrays become tensors, everything else becomes a JSON tree in the header's
metadata, objects appear by their names in `STORABLE` and no others. Reading back (`unpack`) builds only those
classes, checks the checksum before anything is used, holds every object to the types it declares (`model_checks`), and
lets those that have a `check_state` method judge their own arrays: index arrays that compiled kernels follow must not lead
outside. The checksum has no key: a file made to deceive can have a right one, so nothing in a file is believed for it.
Whatever is wrong, the answer is a `ModelFileError`.

=================  =============================================================================
in the tree        what it stands for
=================  =============================================================================
``{"$array"}``     a tensor of the file, by name
``{"$strings"}``   an array of text: dtype, shape, values
``{"$tuple"}``     a tuple (a JSON list is a list)
``{"$dict"}``      a dict, as pairs: keys may be anything storable
``{"$float"}``     nan, inf, -inf
``{"$scalar"}``    a NumPy scalar: dtype and value
``{"$object"}``    an instance of a class in `STORABLE`, with its state
``{"$linear"}``    a linear model of scikit-learn, by name, with its coefficients (`linear_models`)
=================  =============================================================================
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from enum import Enum
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from goldseam import __version__
from goldseam.atomic import atomic_path
from goldseam.errors import ModelFileError, ModelFileIsFolderError, ModelFileNotFoundError, ParameterError
from goldseam.linear_models import LINEAR_MODELS, linear_model, linear_state
from goldseam.model_checks import check_fields, check_indices

__all__ = [
    "ESTIMATORS",
    "FORMAT_VERSION",
    "STORABLE",
    "check_indices",
    "fingerprint",
    "load",
    "pack",
    "read",
    "save",
    "unpack",
]

FORMAT_VERSION: Final = 1
MAX_HEADER: Final = 100_000_000
MAX_DEPTH: Final = 200
VERSIONS: Final = tuple(str(version + 1) for version in range(FORMAT_VERSION))
LEAST_TEXT: Final = 1 << 22  # bytes that text may always take
MOST_PADDING: Final = 256  # bytes per character of text, above that

# What a model file may contain: classes by module and name within the package. Nothing else is ever built from a file.
STORABLE: Final = frozenset(
    {
        "audit.Audit",
        "conditional.boosted.Boosted",
        "conditional.boosted.Forest",
        "conditional.gaussian.Gaussian",
        "conditional.layout.Layout",
        "conditional.marginals.Marginals",
        "conditional.ties.Ties",
        "constraints.Constraints",
        "denoising.Denoiser",
        "denoising.TableNoise",
        "discovery.FineCells",
        "evidence.calibration.Calibration",
        "evidence.interface.Statement",
        "evidence.interface.UnitSource",
        "evidence.model.Evidence",
        "evidence.pool.Pool",
        "evidence.prior.Prior",
        "evidence.repair.Repairer",
        "field.emission.Atoms",
        "field.estimator.RandomMixedField",
        "field.levels.NoiseLevels",
        "field.model.Field",
        "field.noise.Floors",
        "field.potentials.Edge",
        "field.potentials.Layout",
        "field.potentials.Potentials",
        "margin.estimator.GEMMEDClassifier",
        "margin.fields.Fields",
        "margin.fusion.SensorFusionClassifier",
        "margin.isolation.Isolation",
        "margin.machines.Machine",
        "margin.repetition.Repetition",
        "margin.trust.ClassField",
        "margin.weighter.TrustWeighter",
        "mending.Mender",
        "mending.Policy",
        "restorer.Restorer",
        "restoring_classifier.RestoringClassifier",
        "schema.Blocks",
        "schema.Column",
        "schema.Kind",
        "schema.Schema",
        "separation.estimator.CorruptionSeparator",
        "separation.fitting.Calibration",
        "separation.model.SeparationModel",
        "separation.reference.Reference",
        "separation.refine.ResidualProfile",
        "separation.regression.ContextRegression",
        "separation.scores.MemberRadii",
        "separation.segments.SegmentEvidence",
        "separation.tree.AttributeTree",
        "witnesses.TreeWitness",
    }
)

# What `load` gives: the public estimators.
ESTIMATORS: Final = frozenset(
    {
        "field.estimator.RandomMixedField",
        "margin.estimator.GEMMEDClassifier",
        "margin.fusion.SensorFusionClassifier",
        "margin.weighter.TrustWeighter",
        "restorer.Restorer",
        "restoring_classifier.RestoringClassifier",
        "separation.estimator.CorruptionSeparator",
    }
)

Arrays = dict[str, NDArray[Any]]


# --- object -> tree + arrays ------------------------------------------------------------------------------------------


def pack(value: object) -> tuple[Any, Arrays]:
    """A storable value as a JSON tree and the arrays it points to.

    >>> tree, arrays = pack({"scale": 2.0, "center": np.zeros(3)})
    >>> tree
    {'$dict': [['scale', 2.0], ['center', {'$array': 'a0'}]]}
    """
    arrays: Arrays = {}
    return _pack(value, arrays, "model"), arrays


def _pack(value: object, arrays: Arrays, path: str) -> Any:
    if value is None or type(value) in (bool, str, int):
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"$float": repr(value)}
    if isinstance(value, np.generic):
        return {"$scalar": [value.dtype.str, value.item() if not _is_wild(value) else repr(float(value))]}
    if isinstance(value, np.ndarray):
        return _pack_array(value, arrays, path)
    if isinstance(value, list):
        return [_pack(item, arrays, f"{path}[{i}]") for i, item in enumerate(value)]
    if isinstance(value, tuple):
        return {"$tuple": [_pack(item, arrays, f"{path}[{i}]") for i, item in enumerate(value)]}
    if isinstance(value, dict):
        return {"$dict": [[_pack(k, arrays, path), _pack(v, arrays, f"{path}[{k!r}]")] for k, v in value.items()]}
    return _pack_object(value, arrays, path)


def _is_wild(value: np.generic) -> bool:
    return isinstance(value, np.floating) and not np.isfinite(value)


def _pack_array(value: NDArray[Any], arrays: Arrays, path: str) -> Any:
    if value.dtype.kind in "UO":
        texts = value.ravel().tolist()
        if not all(isinstance(text, str) for text in texts):
            raise ParameterError(
                f"{path} is an array of objects that are not all text, which a model file cannot hold."
            )
        return {"$strings": [value.dtype.str, list(value.shape), texts]}
    if value.dtype.kind not in "biuf":
        raise ParameterError(f"{path} is an array of dtype {value.dtype}, which a model file cannot hold.")
    name = f"a{len(arrays)}"
    arrays[name] = np.asarray(value, order="C")
    return {"$array": name}


def _pack_object(value: object, arrays: Arrays, path: str) -> Any:
    full_name = f"{type(value).__module__}.{type(value).__qualname__}"
    name = full_name.removeprefix("goldseam.")
    if isinstance(value, (np.random.RandomState, np.random.Generator)):
        raise ParameterError(
            f"{path} is a {type(value).__name__}, which a model file cannot hold; a number is needed. "
            "Hint: random_state=int; also of a fitted model: model.set_params(random_state=0).save(path)."
        )
    if (state := linear_state(value)) is not None:
        return {"$linear": type(value).__name__, "state": _pack(state, arrays, path)}
    if name not in STORABLE or name == full_name:
        raise ParameterError(
            f"{path} is a {full_name}, which a model file cannot hold without a pickle. Hint: only Goldseam's own "
            f"estimators, plain values, arrays and scikit-learn's {', '.join(LINEAR_MODELS)} are stored."
        )
    if isinstance(value, Enum):
        return {"$object": name, "value": value.value}
    state = {f.name: getattr(value, f.name) for f in fields(value) if f.init} if is_dataclass(value) else vars(value)
    return {"$object": name, "state": {k: _pack(v, arrays, f"{path}.{k}") for k, v in state.items()}}


# --- tree + arrays -> object ------------------------------------------------------------------------------------------


def unpack(tree: Any, arrays: Arrays) -> Any:
    """The value that `pack` took apart.

    >>> unpack(*pack((1, [float("nan")], {"a": np.arange(2)})))
    (1, [nan], {'a': array([0, 1])})
    """
    return _unpack(tree, arrays, 0)


def _unpack(node: Any, arrays: Arrays, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise ModelFileError(
            f"The model file nests deeper than {MAX_DEPTH} levels. Hint: it was not written by Goldseam."
        )
    if isinstance(node, list):
        return [_unpack(item, arrays, depth + 1) for item in node]
    if not isinstance(node, dict):
        return node
    entry = next(iter(node), "")
    reader = _READERS.get(entry)
    if reader is None:
        raise ModelFileError(
            f"The model file has an unknown entry {sorted(node)}. Hint: it was not written by Goldseam."
        )
    with _broken(f"entry {entry}"):
        return reader(node, arrays, depth)


@contextmanager
def _broken(what: str) -> Iterator[None]:
    """What a file made to deceive can provoke, said as a `ModelFileError` that names the place."""
    try:
        yield
    except ModelFileError:
        raise
    except (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ModelFileError(
            f"The model file's {what} is broken: {reason.rstrip('.')}. Hint: it was not written by this version of Goldseam."
        ) from error


def _read_strings(node: Any, arrays: Arrays, depth: int) -> NDArray[Any]:
    dtype, shape, texts = node["$strings"]
    if not isinstance(dtype, str) or np.dtype(dtype).kind not in "UO" or not all(isinstance(t, str) for t in texts):
        raise ModelFileError(f"The model file has text of dtype {dtype!r}; only text is allowed there.")
    size = np.dtype(dtype).itemsize * len(texts)
    if np.dtype(dtype).kind == "U" and size > max(LEAST_TEXT, MOST_PADDING * sum(map(len, texts))):
        raise ModelFileError(
            f"The model file's text of dtype {dtype!r} would take {size:,} bytes for {sum(map(len, texts)):,} characters. "
            "Hint: it was not written by Goldseam."
        )
    return np.array(texts, dtype=dtype).reshape(shape)


def _read_scalar(node: Any, arrays: Arrays, depth: int) -> Any:
    dtype, value = node["$scalar"]
    if not isinstance(dtype, str) or np.dtype(dtype).kind not in "biuf" or isinstance(value, (list, dict)):
        raise ModelFileError(f"The model file has a scalar of dtype {dtype!r}; only numbers and booleans are allowed.")
    return np.dtype(dtype).type(value)


def _read_object(node: Any, arrays: Arrays, depth: int) -> Any:
    name = node["$object"]
    if not isinstance(name, str) or name not in STORABLE:
        raise ModelFileError(f"The model file names the class {name!r}, which Goldseam does not store.")
    cls = _class_of(name)
    with _broken(name):
        if issubclass(cls, Enum):
            return cls(node["value"])
        state = {key: _unpack(part, arrays, depth + 1) for key, part in node["state"].items()}
        value = cls(**state) if hasattr(cls, "__dataclass_fields__") else _revived(cls, state)
        if is_dataclass(value):
            check_fields(value)
        if hasattr(value, "check_state"):
            value.check_state()
        return value


def _class_of(name: str) -> Any:
    module, _, attribute = name.rpartition(".")
    return getattr(import_module(f"goldseam.{module}"), attribute)


def _revived(cls: Any, state: dict[str, Any]) -> Any:
    """An estimator with its state; a parameter that the file does not know yet has its default."""
    known = signature(cls).parameters.values()
    defaults = {one.name: one.default for one in known if one.default is not one.empty}
    value = cls.__new__(cls)
    vars(value).update(defaults | state)
    names = [one.name for one in known if one.kind is not one.VAR_KEYWORD]
    if missing := [name for name in names if name not in vars(value)]:
        raise ModelFileError(f"The model file's {cls.__name__} has no {missing[0]!r}, one of its parameters.")
    foreign = [name for name in state if name not in names and hasattr(cls, name)]
    if foreign:
        raise ModelFileError(f"The model file's {cls.__name__} replaces {foreign[0]!r}, which is no part of its state.")
    return value


_READERS: Final[dict[str, Any]] = {
    "$array": lambda node, arrays, depth: arrays[node["$array"]],
    "$strings": _read_strings,
    "$tuple": lambda node, arrays, depth: tuple(_unpack(item, arrays, depth + 1) for item in node["$tuple"]),
    "$dict": lambda node, arrays, depth: {
        _unpack(k, arrays, depth + 1): _unpack(v, arrays, depth + 1) for k, v in node["$dict"]
    },
    "$float": lambda node, arrays, depth: float(node["$float"]),
    "$scalar": _read_scalar,
    "$object": _read_object,
    "$linear": lambda node, arrays, depth: linear_model(node["$linear"], _unpack(node["state"], arrays, depth + 1)),
}


# --- file -------------------------------------------------------------------------------------------------------------


def save(model: object, path: str | Path) -> None:
    """Write a fitted model; the file appears under its name only when it is complete."""
    _check_place(Path(path))
    tree, arrays = pack(model)
    text = json.dumps(tree, allow_nan=False)
    metadata = {
        "format": "goldseam",
        "format_version": str(FORMAT_VERSION),
        "goldseam": __version__,
        "model": text,
        "checksum": _checksum(text, arrays),
    }
    with atomic_path(path) as temporary:
        temporary.write_bytes(save_tensors(arrays, metadata=metadata))


def fingerprint(model: object) -> str:
    """Checksum of a storable value: equal for equal models.

    >>> fingerprint({"a": np.arange(3)}) == fingerprint({"a": np.arange(3)})
    True
    """
    tree, arrays = pack(model)
    return _checksum(json.dumps(tree, allow_nan=False), arrays)


def load(path: str | Path) -> Any:
    """Read an estimator that `save` wrote, or say what is wrong with the file."""
    model = read(path)
    if f"{type(model).__module__}.{type(model).__qualname__}".removeprefix("goldseam.") not in ESTIMATORS:
        raise ModelFileError(
            f"Model file {Path(path).name!r} holds a {type(model).__name__}, but an estimator is needed: "
            f"{', '.join(sorted(name.rpartition('.')[2] for name in ESTIMATORS))}. Hint: a file of `goldseam train` is read by "
            "`goldseam predict`."
        )
    if not any(name.endswith("_") for name in vars(model)):
        raise ModelFileError(
            f"Model file {Path(path).name!r} holds a {type(model).__name__} that was never fitted. "
            "Hint: fit it and save it again."
        )
    return model


def read(path: str | Path) -> Any:
    """Whatever storable value a file holds: the inside of `load`, for other files than those of estimators."""
    data, name = _bytes_of(Path(path)), Path(path).name
    metadata = _metadata(data, name)
    try:
        arrays = {key: np.array(tensor) for key, tensor in load_tensors(data).items()}  # aligned, writable
    except (SafetensorError, LookupError, TypeError, ValueError) as error:
        raise ModelFileError(f"Model file {name!r} is damaged: {error}. Hint: copy it again.") from error
    if _checksum(metadata["model"], arrays) != metadata.get("checksum"):
        raise ModelFileError(
            f"Model file {name!r} does not match its checksum: it was changed or damaged after it was written."
        )
    with _broken("tree"):
        return unpack(json.loads(metadata["model"]), arrays)


def _bytes_of(path: Path) -> bytes:
    if path.is_dir():
        raise ModelFileIsFolderError(
            f"{str(path)!r} is a folder, but a model file is needed. Hint: name the file in it."
        )
    if not path.exists():
        raise ModelFileNotFoundError(
            f"Model file {str(path)!r} does not exist. Hint: check the path; `save` of a fitted estimator writes one."
        )
    return path.read_bytes()


def _check_place(path: Path) -> None:
    """A place that can be written to, said before the work is done and by the name that the caller knows."""
    if path.is_dir():
        raise ModelFileIsFolderError(
            f"{str(path)!r} is a folder, but a file name is needed. Hint: {path / 'model.seam'}"
        )
    if not path.parent.is_dir():
        raise ModelFileNotFoundError(
            f"The folder of model file {str(path)!r} does not exist: {str(path.parent)!r}. Hint: make it first."
        )


def _metadata(data: bytes, name: str) -> dict[str, str]:
    size = int.from_bytes(data[:8], "little")
    if len(data) < 8 or size > min(len(data) - 8, MAX_HEADER):
        raise ModelFileError(f"Model file {name!r} is truncated or not a .seam file ({len(data)} bytes).")
    try:
        metadata = json.loads(data[8 : 8 + size])["__metadata__"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ModelFileError(f"Model file {name!r} is not a .seam file: its header cannot be read.") from error
    if not isinstance(metadata, dict) or metadata.get("format") != "goldseam" or "model" not in metadata:
        raise ModelFileError(f"File {name!r} is a safetensors file, but not a Goldseam model.")
    for key, value in metadata.items():
        if not isinstance(value, str):
            raise ModelFileError(f"Model file {name!r} has a header whose {key!r} must be text; got {value!r:.40}.")
    version = metadata.get("format_version", "")
    if version not in VERSIONS:
        raise ModelFileError(
            f"Model file {name!r} has format version {version[:20] or 'none'}, but this Goldseam reads up to "
            f"{FORMAT_VERSION}. Hint: it was written by Goldseam {metadata.get('goldseam', '?')[:20]}; upgrade."
        )
    return metadata


def _checksum(text: str, arrays: Arrays) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
