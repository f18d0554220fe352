"""Model files written by strangers: what compiled loops would follow outside their arrays is refused before they start."""

from __future__ import annotations

import numpy as np
import pytest

from goldseam.errors import InputError, ModelFileError, ParameterError
from goldseam.evidence import Prior, fit_evidence
from goldseam.model_file import pack, unpack
from goldseam.schema import Blocks, Column, Kind, Schema

SCHEMA = Schema(
    (
        Column("c", Kind.CATEGORICAL, ("r", "g", "b")),
        *(Column(f"x{j}", Kind.CONTINUOUS) for j in range(3)),
        Column("on", Kind.BOOLEAN, (False, True)),
    )
)


def draw(rng, n):
    hidden = rng.normal(size=n)
    numbers = hidden[:, None] + 0.5 * rng.normal(size=(n, 3))
    codes = np.column_stack([np.digitize(hidden, (-0.5, 0.5)), hidden > 0]).astype(np.int32)
    return Blocks(numbers, codes)


@pytest.fixture(scope="module")
def packed():
    rng = np.random.default_rng(42)
    model = fit_evidence(draw(rng, 80), draw(rng, 40), SCHEMA, boosted=True, rng=rng)
    return pack(model)


def arrays_of(packed, kind):
    return [name for name, array in packed[1].items() if array.dtype.kind in kind and array.size]


def changed(packed, name, array):
    tree, arrays = packed
    return unpack(tree, {**arrays, name: array})


def test_an_honest_file_is_read(packed, rng):
    rows = draw(rng, 20)
    again = unpack(*packed)
    assert np.isfinite(again.judge(rows).row_scores).all()


@pytest.mark.parametrize("value", [-7, 10**6])
def test_indices_that_lead_outside(packed, value):
    """Every whole number of the file in turn: the first, the last and one between."""
    names = arrays_of(packed, "iu")
    assert len(names) > 10
    accepted = []
    for name in names:
        for at in {0, packed[1][name].size // 2, packed[1][name].size - 1}:
            hostile = packed[1][name].copy()
            if hostile.size == packed[1][leaves(packed)].size and packed[1][leaves(packed)][at] < 0:
                continue  # children of a leaf are never followed
            hostile.ravel()[at] = value
            try:
                changed(packed, name, hostile)
            except ModelFileError:
                continue
            accepted.append((name, at))
    assert not accepted


def leaves(packed):
    """The array of features: -1 marks a leaf."""
    return next(name for name in arrays_of(packed, "iu") if (packed[1][name] == -1).any())


def test_arrays_that_are_too_short(packed):
    """Every array in turn loses its last row. Ranks of clean rows and cells may have any number."""
    accepted = []
    for name, array in packed[1].items():
        try:
            changed(packed, name, array[:-1])
        except ModelFileError:
            continue
        except IndexError:
            raise AssertionError(name) from None
        accepted.append(array.shape)
    assert sorted(accepted) == sorted([(40,), (40 * 5,)])


def test_indices_that_are_not_whole_numbers(packed):
    for name in arrays_of(packed, "iu"):
        with pytest.raises(ModelFileError):
            changed(packed, name, packed[1][name].astype(float))


def test_codes_beyond_the_levels_never_reach_the_loops(packed, rng):
    model, rows = unpack(*packed), draw(rng, 5)
    codes = rows.codes.copy()
    codes[2, 1] = 9
    with pytest.raises(InputError, match="category column 1 must lie below its 2 levels; got 9"):
        model.judge(Blocks(rows.numbers, codes))
    with pytest.raises(InputError, match="3 numbers and 2 categories; got 2 and 2"):
        model.judge(Blocks(rows.numbers[:, :2], rows.codes))


@pytest.mark.parametrize("setting", [{"rate_weights": (1.0,)}, {"kinds": ()}, {"segment_kinds": (0.5,)}])
def test_a_prior_with_weights_missing(setting):
    with pytest.raises(ParameterError, match="must hold"):
        Prior(**setting)
