"""Constraints: reading them, and repairs that respect them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldseam.constraints import Allowed, Bounds, Constraints, Integral, Relation, parse
from goldseam.errors import ParameterError
from goldseam.schema import Blocks, Column, Kind, Schema

SCHEMA = Schema(
    (
        Column("net", Kind.CONTINUOUS),
        Column("tax", Kind.CONTINUOUS),
        Column("total", Kind.CONTINUOUS),
        Column("net amount", Kind.INTEGER),
        Column("status", Kind.CATEGORICAL, ("single", "married", "widowed")),
        Column("when", Kind.PASSTHROUGH),
    )
)


def blocks(*rows: list[float]) -> Blocks:
    return Blocks(np.array(rows, dtype=float), np.zeros((len(rows), 1), dtype=np.int32))


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("0 <= net <= 120", Bounds("net", 0.0, 120.0)),
        ("120 >= net >= -1", Bounds("net", -1.0, 120.0)),
        ("net >= .5", Bounds("net", 0.5, math.inf)),
        ("`net amount` < 1e3", Bounds("net amount", -math.inf, 1000.0)),
        ("net integer", Integral("net")),
        ("status in {single, `not married`}", Allowed("status", ("single", "not married"))),
    ],
)
def test_lines_are_read(text: str, meaning: object) -> None:
    assert parse(text) == meaning


def test_relations_gather_both_sides() -> None:
    relation = parse("total = net + 2*tax - 3 - net")
    assert isinstance(relation, Relation)
    assert dict(relation.coefficients) == {"total": 1.0, "tax": -2.0}
    assert relation.constant == 3.0


@pytest.mark.parametrize(
    "text",
    ["", "net", "net ~ 3", "0 <= net >= 3", "3 <= 4", "net + tax <= 3", "total =", "total = 2 net", "a = a", "2* = b"],
)
def test_what_cannot_be_read_is_quoted(text: str) -> None:
    with pytest.raises(ParameterError, match="cannot be read") as error:
        parse(text)
    assert repr(text) in str(error.value)


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (["nett >= 0"], "'nett', which the reference does not have"),
        (["status >= 0"], "'status': bounds are for numbers, but the column is categorical"),
        (["when = net"], "'when': relations are between numbers, but the column is passthrough"),
        (["net >= 5", "net <= 3"], "'net' must be at least 5 and at most 3"),
        (["status in {divorced}"], "only divorced, but the reference has single, married, widowed"),
        (["net in {a}"], "'net': allowed levels are for categories, but the column is continuous"),
    ],
)
def test_contradictions_are_named(lines: list[str], says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        Constraints.of(lines, SCHEMA)


def test_one_repaired_cell_is_solved_for() -> None:
    rules = Constraints.of(["total = net + tax"], SCHEMA)
    changed = np.array([[False, False, True, False]])
    numbers, feasible = rules.hold(blocks([10.0, 2.0, 99.0, 0.0]), changed, np.ones((1, 4)))
    assert numbers.tolist() == [[10.0, 2.0, 12.0, 0.0]]
    assert feasible.tolist() == [True]


def test_the_uncertain_cell_moves_most() -> None:
    rules = Constraints.of(["total = net + tax"], SCHEMA)
    changed = np.array([[True, True, False, False]])
    numbers, _ = rules.hold(blocks([6.0, 2.0, 12.0, 0.0]), changed, np.array([[3.0, 1.0, 1.0, 1.0]]))
    np.testing.assert_allclose(numbers, [[9.0, 3.0, 12.0, 0.0]])


def test_bounds_hold_and_the_rest_makes_up_for_them() -> None:
    rules = Constraints.of(["total = net + tax", "0 <= tax <= 2.5"], SCHEMA)
    changed = np.array([[True, True, False, False]])
    numbers, feasible = rules.hold(blocks([6.0, 2.0, 12.0, 0.0]), changed, np.ones((1, 4)))
    np.testing.assert_allclose(numbers, [[9.5, 2.5, 12.0, 0.0]])
    assert feasible.all()


def test_what_cannot_be_met_is_said() -> None:
    rules = Constraints.of(["total = net + tax", "tax <= 1"], SCHEMA)
    changed = np.array([[False, True, False, False], [False, False, False, False]])
    data = blocks([6.0, 2.0, 12.0, 0.0], [6.0, 2.0, 12.0, 0.0])
    numbers, feasible = rules.hold(data, changed, np.ones((2, 4)))
    assert feasible.tolist() == [False, True]  # the second row breaks the rule, but nobody repaired it
    assert numbers[1].tolist() == data.numbers[1].tolist()


def test_integers_stay_whole() -> None:
    rules = Constraints.of(["net integer"], SCHEMA)
    numbers, _ = rules.hold(blocks([6.4, 2.4, 0.0, 7.6]), np.ones((1, 4), dtype=bool), np.ones((1, 4)))
    assert numbers.tolist() == [[6.0, 2.4, 0.0, 8.0]]


@given(st.lists(st.floats(-1e6, 1e6), min_size=4, max_size=4), st.lists(st.booleans(), min_size=4, max_size=4))
def test_unchanged_cells_never_move(values: list[float], touched: list[bool]) -> None:
    rules = Constraints.of(["total = net + tax", "0 <= tax <= 5"], SCHEMA)
    changed = np.array([touched])
    numbers, feasible = rules.hold(blocks(values), changed, np.ones((1, 4)))
    assert numbers[~changed].tolist() == np.array([values])[~changed].tolist()
    if feasible[0] and changed[0, :3].any():
        assert abs(numbers[0, 0] + numbers[0, 1] - numbers[0, 2]) <= 1e-5 * (1 + np.abs(values).max())
