"""The `.seam` model file: arrays and JSON in one safetensors file, never a pickle.

A fitted object is walked once (`pack`): arrays become tensors, everything else becomes a JSON tree in the header's
metadata, objects appear by their names in `STORABLE` and no others. Reading back (`unpack`) builds only those
classes, checks the checksum before anything is used, and lets every object that has a `check_state` method judge its
own arrays: index arrays that compiled kernels follow must not lead outside.

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
=================  =============================================================================
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import fields, is_dataclass
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from goldseam import __version__
from goldseam.atomic import atomic_path
from goldseam.errors import ModelFileError, ParameterError

__all__ = ["FORMAT_VERSION", "STORABLE", "check_indices", "fingerprint", "load", "pack", "save", "unpack"]

FORMAT_VERSION: Final = 1
MAX_HEADER: Final = 100_000_000
MAX_DEPTH: Final = 200

# What a model file may contain: classes by module and name within the package. Nothing else is ever built from a file.
STORABLE: Final = frozenset(
    {
        "audit.Audit",
        "conditional.boosted.Boosted",
        "conditional.boosted.Forest",
        "conditional.gaussian.Gaussian",
        "conditional.layout.Layout",
        "conditional.marginals.Marginals",
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

Arrays = dict[str, NDArray[Any]]
T = TypeVar("T")


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
    if name not in STORABLE or name == full_name:
        raise ParameterError(
            f"{path} is a {full_name}, which a model file cannot hold. "
            "Hint: only Goldseam's own estimators, plain values and arrays are stored."
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
    if "$object" in node:
        return _unpack_object(node, arrays, depth)
    reader = _READERS.get(next(iter(node), ""))
    if reader is None:
        raise ModelFileError(
            f"The model file has an unknown entry {sorted(node)}. Hint: it was not written by Goldseam."
        )
    try:
        return reader(node, arrays, depth)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(f"The model file has a broken entry {sorted(node)}: {error}.") from error


def _read_strings(node: Any, arrays: Arrays, depth: int) -> NDArray[Any]:
    dtype, shape, texts = node["$strings"]
    if np.dtype(dtype).kind not in "UO" or not all(isinstance(text, str) for text in texts):
        raise ModelFileError(f"The model file has text of dtype {dtype!r}; only text is allowed there.")
    return np.array(texts, dtype=dtype).reshape(shape)


def _read_scalar(node: Any, arrays: Arrays, depth: int) -> Any:
    dtype, value = node["$scalar"]
    if np.dtype(dtype).kind not in "biuf":
        raise ModelFileError(f"The model file has a scalar of dtype {dtype!r}; only numbers and booleans are allowed.")
    return np.dtype(dtype).type(value)


_READERS: Final[dict[str, Any]] = {
    "$array": lambda node, arrays, depth: arrays[node["$array"]],
    "$strings": _read_strings,
    "$tuple": lambda node, arrays, depth: tuple(_unpack(item, arrays, depth + 1) for item in node["$tuple"]),
    "$dict": lambda node, arrays, depth: {
        _unpack(k, arrays, depth + 1): _unpack(v, arrays, depth + 1) for k, v in node["$dict"]
    },
    "$float": lambda node, arrays, depth: float(node["$float"]),
    "$scalar": _read_scalar,
}


def _unpack_object(node: Any, arrays: Arrays, depth: int) -> Any:
    name = node["$object"]
    if name not in STORABLE:
        raise ModelFileError(f"The model file names the class {name!r}, which Goldseam does not store.")
    module, _, attribute = name.rpartition(".")
    cls: Any = getattr(import_module(f"goldseam.{module}"), attribute)
    if issubclass(cls, Enum):
        return cls(node["value"])
    state = {k: _unpack(v, arrays, depth + 1) for k, v in node["state"].items()}
    try:
        value = cls(**state) if hasattr(cls, "__dataclass_fields__") else _revive(cls, state)
    except TypeError as error:
        raise ModelFileError(f"The model file's {name} does not fit this version of Goldseam: {error}.") from error
    if hasattr(value, "check_state"):
        value.check_state()
    return value


def check_indices(what: str, indices: NDArray[Any], low: Any, high: Any) -> None:
    """Index arrays that compiled code follows must be whole numbers within [low, high); limits may be arrays.

    >>> check_indices("order", np.array([0, 2]), 0, 3)
    >>> check_indices("order", np.array([0, 3]), 0, 3)
    Traceback (most recent call last):
    goldseam.errors.ModelFileError: The model file's order leads outside: 3 is not within its limits.
    """
    if indices.dtype.kind not in "iu":
        raise ModelFileError(f"The model file's {what} must be whole numbers; got {indices.dtype}.")
    outside = (indices < low) | (indices >= high)
    if outside.any():
        raise ModelFileError(f"The model file's {what} leads outside: {indices[outside][0]} is not within its limits.")


def _revive(cls: type[T], state: dict[str, Any]) -> T:
    value = cls.__new__(cls)
    vars(value).update(state)
    return value


# --- file -------------------------------------------------------------------------------------------------------------


def save(model: object, path: str | Path) -> None:
    """Write a fitted model; the file appears under its name only when it is complete."""
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
    """Read a model that `save` wrote, or say what is wrong with the file."""
    data = Path(path).read_bytes()
    metadata = _metadata(data, Path(path).name)
    try:
        arrays = {name: np.array(tensor) for name, tensor in load_tensors(data).items()}  # aligned, writable
    except SafetensorError as error:
        raise ModelFileError(f"Model file {Path(path).name!r} is damaged: {error}. Hint: copy it again.") from error
    if _checksum(metadata["model"], arrays) != metadata.get("checksum"):
        raise ModelFileError(
            f"Model file {Path(path).name!r} does not match its checksum: it was changed or damaged after it was written."
        )
    return unpack(json.loads(metadata["model"]), arrays)


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
    version = metadata.get("format_version", "")
    if not version.isdecimal() or int(version) > FORMAT_VERSION:
        raise ModelFileError(
            f"Model file {name!r} has format version {version or 'none'}, but this Goldseam reads up to "
            f"{FORMAT_VERSION}. Hint: it was written by Goldseam {metadata.get('goldseam', '?')}; upgrade."
        )
    return metadata


def _checksum(text: str, arrays: Arrays) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
