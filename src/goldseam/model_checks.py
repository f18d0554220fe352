"""What every object of a model file must pass before it is used: types as its class declares them, numbers that are numbers.

A dataclass says of each field what it holds; `check_fields` takes it at its word. Float arrays must be finite, but for the
fields named in `GAPS` (NaN is an empty cell, a figure not known) and in `ENDLESS` (infinite: no limit, beyond all others).
What only a class knows of its arrays (offsets, indices, sizes that belong together) it judges in its own `check_state`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from functools import cache
from types import UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from goldseam.errors import ModelFileError

__all__ = ["check_attributes", "check_fields", "check_indices", "fits"]

GAPS: Final = frozenset(
    {
        "Blocks.numbers",
        "NoiseLevels.floor",
        "Reference.values",
        "SegmentEvidence.spread",  # of columns that are empty, or near the largest float
        "Statement.ranks",  # where a witness has such a column and says nothing
    }
)
ENDLESS: Final = frozenset(
    {
        "Calibration.cell_scores",
        "Calibration.levels",
        "Calibration.row_scores",
        "Constraints.high",
        "Constraints.low",
        "Forest.threshold",
        "Isolation.cuts",
        "Isolation.high",
        "Isolation.low",
        "Repairer.doubt",
        "Repetition.cuts",
        "SegmentEvidence.log_slab",
    }
)


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


def check_fields(value: Any) -> None:
    """The fields of a dataclass hold what it declares, and its floats are finite where they must be."""
    name = type(value).__name__
    cls: Any = type(value)
    for field, hint in _hints(cls).items():
        content = getattr(value, field)
        if not fits(content, hint):
            raise ModelFileError(
                f"The model file's {name}.{field} must be {_called(hint)}; got {_shown(content)}. "
                "Hint: it was not written by Goldseam."
            )
        for array in _float_arrays(content):
            _check_finite(f"{name}.{field}", array)


def check_attributes(model: Any, **hints: Any) -> None:
    """What an estimator learnt is there and of its type."""
    for name, hint in hints.items():
        content = getattr(model, name, None)
        if not fits(content, hint):
            raise ModelFileError(
                f"The model file's {type(model).__name__}.{name} must be {_called(hint)}; got {_shown(content)}. "
                "Hint: it was not written by Goldseam."
            )


@cache
def _hints(cls: type) -> dict[str, Any]:
    known = get_type_hints(cls)
    return {field.name: known[field.name] for field in fields(cls) if field.init}


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is of a declared type. Arrays must be of its kind (floats, whole numbers, booleans), not its width.

    >>> fits((1, 2.5), tuple[float, ...]), fits("x", int | None), fits(np.arange(2), NDArray[np.float64])
    (True, False, False)
    """
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(fits(value, one) for one in args)
    if origin is Literal:
        return isinstance(value, str) and value in args
    if origin is np.ndarray:
        return isinstance(value, np.ndarray) and value.dtype.kind == np.dtype(get_args(args[1])[0]).kind
    if origin is tuple:
        return isinstance(value, tuple) and _all_fit(value, args)
    plain = origin or hint
    if plain in (bool, int, float):
        return isinstance(value, _NUMBERS[plain]) and (plain is bool or not isinstance(value, bool))
    if getattr(plain, "_is_protocol", False):
        return all(hasattr(value, name) for name in {**vars(plain), **plain.__annotations__} if name[0] != "_")
    return not isinstance(plain, type) or isinstance(value, plain)


_NUMBERS: Final[Mapping[Any, Any]] = {
    bool: (bool, np.bool_),
    int: (int, np.integer),
    float: (int, float, np.integer, np.floating),
}


def _all_fit(values: tuple[Any, ...], hints: tuple[Any, ...]) -> bool:
    if hints[-1:] == (Ellipsis,):
        return all(fits(value, hints[0]) for value in values)
    return len(values) == len(hints) and all(map(fits, values, hints))


def _float_arrays(content: Any) -> Iterator[NDArray[Any]]:
    for part in content if isinstance(content, tuple) else (content,):
        if isinstance(part, np.ndarray) and part.dtype.kind == "f":
            yield part


def _check_finite(field: str, array: NDArray[Any]) -> None:
    bad = np.zeros(array.shape, dtype=bool) if field in GAPS else np.isnan(array)
    bad = bad if field in ENDLESS | GAPS else bad | np.isinf(array)
    if bad.any():
        raise ModelFileError(
            f"The model file's {field} must be finite; got {array[bad][0]} in {int(bad.sum())} of {array.size} places. "
            "Hint: copy the file again, or fit anew."
        )


def _called(hint: Any) -> str:
    if get_origin(hint) is np.ndarray:
        return f"an array of {get_args(get_args(hint)[1])[0].__name__}"
    return hint.__name__ if isinstance(hint, type) else str(hint).replace("goldseam.", "")


def _shown(content: Any) -> str:
    if isinstance(content, np.ndarray):
        return f"an array of {content.dtype}"
    return repr(content) if isinstance(content, (int, float, str, type(None))) else type(content).__name__
