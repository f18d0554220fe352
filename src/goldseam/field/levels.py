"""The noise of a table, column by column, in the table's own units: what was given, what was estimated, what was
refused (F1.2, F6.4).

A level is one of

| status | meaning | acted on |
|---|---|---|
| `given` | by the user | yes |
| `estimated` | from a table, above the floor | yes |
| `below_floor` | from a table, not above what clean rows of the reference give | no: nil, no number reported |
| `nil` | nobody asked | no |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldseam.errors import ModelFileError, ParameterError
from goldseam.field.beliefs import Noise
from goldseam.schema import Schema

__all__ = ["NoiseLevels", "given_levels", "nil_levels"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class NoiseLevels:
    """Noise of every modelled column, numbers first, then categories.

    `sigma` (m,) are standard deviations in the columns' own units, `flip` (n,) flip rates; 0 is nil. `status`, `source`
    and `floor` have m + n entries; a floor is NaN where none was measured. `gross` is the rate of gross errors that is
    looked for, with its own status and floor.
    """

    sigma: Array
    flip: Array
    status: tuple[str, ...]
    source: tuple[str, ...]
    floor: Array
    gross: float = 0.0
    gross_status: str = "nil"
    gross_floor: float = float("nan")

    def check_for(self, schema: Schema) -> None:
        """A model file whose levels are of another table is refused."""
        sizes = len(schema.numbers), len(schema.categories)
        got = len(self.sigma), len(self.flip)
        if got != sizes or {len(self.status), len(self.source), len(self.floor)} != {sum(sizes)}:
            raise ModelFileError(
                f"The model file's noise must be of {sizes[0]} numbers, {sizes[1]} categories; got {got}."
            )

    @property
    def values(self) -> Array:
        """Sigma and flip rates side by side."""
        return np.concatenate([self.sigma, self.flip])

    @property
    def acts(self) -> bool:
        """Whether any observed cell may be changed."""
        return bool((self.values > 0).any() or self.gross > 0)

    def standardised(self, scale: Array) -> Noise:
        """The same noise in standardised units, as the inference takes it."""
        return Noise(self.sigma / scale, self.flip)

    def described(self, schema: Schema) -> dict[str, dict[str, Any]]:
        """Per column: value (None when refused), source, floor (None where there is none) and status."""
        names = [column.name for column in schema.numbers + schema.categories]
        return {
            name: {
                "value": None if status == "below_floor" else float(value),
                "source": source,
                "floor": None if np.isnan(floor) else float(floor),
                "status": status,
            }
            for name, value, source, floor, status in zip(
                names, self.values, self.source, self.floor, self.status, strict=True
            )
        }


def nil_levels(schema: Schema, gross: float = 0.0) -> NoiseLevels:
    """No noise anywhere; gross errors at the given rate."""
    return given_levels(schema, {}, gross)


def given_levels(schema: Schema, given: Mapping[str, float], gross: float = 0.0) -> NoiseLevels:
    """Levels by column name: standard deviations in own units, flip rates; columns not listed have none.

    >>> from goldseam.schema import Column, Kind
    >>> schema = Schema((Column("age", Kind.INTEGER), Column("sex", Kind.CATEGORICAL, ("f", "m"))))
    >>> given_levels(schema, {"age": 2.0}).described(schema)["age"]
    {'value': 2.0, 'source': 'user', 'floor': None, 'status': 'given'}
    """
    given = {str(name): value for name, value in given.items()}
    for name, value in given.items():
        _check_level(schema, name, value)
    numbers, categories = ([c.name for c in part] for part in (schema.numbers, schema.categories))
    sigma = np.array([float(given.get(name, 0.0)) for name in numbers])
    flip = np.array([float(given.get(name, 0.0)) for name in categories])
    status = tuple("given" if name in given else "nil" for name in numbers + categories)
    floor = np.full(len(status), np.nan)
    return NoiseLevels(sigma, flip, status, ("user",) * len(status), floor, gross, "given" if gross > 0 else "nil")


def _check_level(schema: Schema, name: str, value: float) -> None:
    if name not in schema.names:
        raise ParameterError(
            f"noise names column {name!r}, which is not in the table: {', '.join(schema.names)}. Hint: check it."
        )
    if not isinstance(value, (int, float, np.number)) or not np.isfinite(value) or value < 0:
        raise ParameterError(
            f"noise of column {name!r} must be a number of at least 0; got {value!r}. Hint: 0 means none."
        )
    if value >= 1 and name in [column.name for column in schema.categories]:
        raise ParameterError(f"noise of category {name!r} is a flip rate and must be below 1; got {value:g}. Hint: .1")
