"""Sensors that fail: a group of columns goes bad together, for one row or for a stretch of rows.

| mode | what the group shows |
|---|---|
| dropout | nothing but faint noise, a hundredth of a standard deviation, about 0 |
| dead | 0 |
| stuck | the reading of the row before the failure |
| saturation | the reading, amplified by U(2, 8) and cut off at the reference range |
| burst | noise of `strength` standard deviations on top |
| drift | a gain that grows or falls exponentially over the stretch, to exp(+-U(.5, 1.5)) at its end |
| offset | a shift by +-`strength` standard deviations, one sign per failure |
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from goldseam.corruption.damage import Drawn, simulator
from goldseam.corruption.sheet import Matrix, Sheet
from goldseam.errors import ParameterError

__all__ = ["SENSOR_MODES", "fail_sensors", "stretches"]

SENSOR_MODES = ("dropout", "dead", "stuck", "saturation", "burst", "drift", "offset")
Groups = Sequence[Sequence[str | int]]


@simulator("sensor")
def fail_sensors(
    sheet: Sheet,
    rows: NDArray[np.int64],
    rng: np.random.Generator,
    groups: Groups | None = None,
    modes: Sequence[str] = SENSOR_MODES,
    strength: float = 8.0,
) -> Drawn:
    """Let one group of columns fail in each stretch of damaged rows; rows are in order of time.

    `groups` lists the columns of each sensor by name or number (default: every column on its own). A failure lasts over
    a run of neighbouring damaged rows: pass `rows=stretches(n_rows, share, length, random_state)` for long ones. Each
    failure has one group and one of the `modes` (see the module's table), drawn uniformly; the result's `kind` is the
    mode.

    >>> damage = fail_sensors(np.arange(1.0, 41.0).reshape(10, 4), groups=[(0, 1), (2, 3)], modes=["dead"], random_state=0)
    >>> int((damage.table == 0).sum()) == int(damage.cells.sum())
    True
    """
    places = _places(sheet, groups)
    unknown = [mode for mode in modes if mode not in SENSOR_MODES]
    if unknown or not modes:
        raise ParameterError(f"modes must be some of {', '.join(map(repr, SENSOR_MODES))}; got {tuple(modes)!r}.")
    new, kind = sheet.values.copy(), np.full(len(sheet.values), "", dtype="U10")
    for stretch in np.split(rows, np.flatnonzero(np.diff(rows) > 1) + 1) if rows.size else []:
        group = places[rng.integers(len(places))]
        kind[stretch] = mode = modes[int(rng.integers(len(modes)))]
        new[np.ix_(stretch, group)] = _failed(sheet, stretch, group, mode, strength, rng)
    return Drawn(new, kind)


def stretches(
    n_rows: int, share: float, length: int, random_state: int | np.random.Generator | None = None
) -> NDArray[np.bool_]:
    """A mask for `rows`: blocks of `length` rows, each True with probability `share`.

    >>> stretches(8, 0.5, 4, random_state=0).tolist()
    [False, False, False, False, True, True, True, True]
    """
    if length < 1:
        raise ParameterError(f"length must be at least 1 row; got {length!r}.")
    rng = np.random.default_rng(random_state)
    bad = rng.random(-(-n_rows // length)) < share
    return np.repeat(bad, length)[:n_rows]


def _places(sheet: Sheet, groups: Groups | None) -> list[NDArray[np.int64]]:
    numbers = np.flatnonzero(sheet.is_number)
    if groups is None:
        return [np.array([i]) for i in numbers]
    places = [np.array([sheet.position(name) for name in group], dtype=np.int64) for group in groups]
    texts = [sheet.names[i] for place in places for i in place if not sheet.is_number[i]]
    if texts:
        raise ParameterError(f"A sensor group must hold numbers; column {texts[0]!r} holds categories.")
    return places


def _failed(
    sheet: Sheet,
    rows: NDArray[np.int64],
    group: NDArray[np.int64],
    mode: str,
    strength: float,
    rng: np.random.Generator,
) -> Matrix:
    old, sd = sheet.values[np.ix_(rows, group)], sheet.sd[group]
    if mode == "dropout":
        return 0.01 * sd * rng.standard_normal(old.shape)
    if mode == "dead":
        return np.zeros_like(old)
    if mode == "stuck":
        return np.broadcast_to(sheet.values[max(int(rows[0]) - 1, 0), group], old.shape)
    if mode == "saturation":
        return np.clip(old * rng.uniform(2, 8), sheet.low[group], sheet.high[group])
    if mode == "burst":
        return old + strength * sd * rng.standard_normal(old.shape)
    sign = rng.choice([-1.0, 1.0])
    if mode == "drift":
        ramp = np.arange(1, len(rows) + 1) / len(rows)
        return np.asarray(old * np.exp(sign * rng.uniform(0.5, 1.5) * ramp)[:, None])
    return old + sign * strength * sd
