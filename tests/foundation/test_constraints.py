"""Constraints: reading them, and repairs that respect them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldseam.constraints import Allowed, Bounds, Constraints, Integral, Relation, parse
from goldseam.errors import ModelFileError, ParameterError
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
        ("`net amount` < 1e3", Bounds("net amount", -math.inf, 1000.0, below=True)),
        ("9 >= net > 1", Bounds("net", 1.0, 9.0, above=True)),
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
    [
        "",
        "net",
        "net ~ 3",
        "0 <= net >= 3",
        "3 <= 4",
        "net + tax <= 3",
        "total =",
        "total = 2 net",
        "a = a",
        "2* = b",
        "net <= 3 <= 5",
        "3 <= 5 <= net",
        "0 <= net <= 3 <= 5",
        "net <= tax",
    ],
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
        (["`net amount` >= 40.2", "`net amount` <= 40.8"], "at least 41 and at most 40, its bounds in whole numbers"),
        (["40 < `net amount` < 41"], "'net amount' must be at least 41 and at most 40"),
        (["net >= 40.2", "net <= 40.8", "net integer"], "'net' must be at least 41 and at most 40"),
        (
            ["total = net + tax", "total = net + tax + 5"],
            r"meet 'total = net \+ tax \+ 5' .* with 'total = net \+ tax'\.",
        ),
        (["net = 3", "net = 4"], "'net = 4' with 'net' from -inf to inf, together with 'net = 3'"),
        (["total >= 100", "net <= 10", "tax <= 10", "total = net + tax"], "'net' from -inf to 10, .* from 100 to inf"),
        (["net = 1.5", "net integer"], "'net = 1.5' with 'net' whole from"),
        (["status in {single}", "status in {married}"], "'status' may take levels of {single}; {married}, which have"),
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
    numbers, unmet = rules.hold(blocks([10.0, 2.0, 99.0, 0.0]), changed, np.ones((1, 4)))
    assert numbers.tolist() == [[10.0, 2.0, 12.0, 0.0]]
    assert not unmet.any()


def test_the_uncertain_cell_moves_most() -> None:
    rules = Constraints.of(["total = net + tax"], SCHEMA)
    changed = np.array([[True, True, False, False]])
    numbers, _ = rules.hold(blocks([6.0, 2.0, 12.0, 0.0]), changed, np.array([[3.0, 1.0, 1.0, 1.0]]))
    np.testing.assert_allclose(numbers, [[9.0, 3.0, 12.0, 0.0]])


def test_bounds_hold_and_the_rest_makes_up_for_them() -> None:
    rules = Constraints.of(["total = net + tax", "0 <= tax <= 2.5"], SCHEMA)
    changed = np.array([[True, True, False, False]])
    numbers, unmet = rules.hold(blocks([6.0, 2.0, 12.0, 0.0]), changed, np.ones((1, 4)))
    np.testing.assert_allclose(numbers, [[9.5, 2.5, 12.0, 0.0]])
    assert not unmet.any()


def test_what_cannot_be_met_is_said() -> None:
    rules = Constraints.of(["total = net + tax", "tax <= 1"], SCHEMA)
    changed = np.array([[False, True, False, False], [False, False, False, False]])
    data = blocks([6.0, 2.0, 12.0, 0.0], [6.0, 2.0, 12.0, 0.0])
    numbers, unmet = rules.hold(data, changed, np.ones((2, 4)))
    assert unmet.tolist() == [
        [False, True, False, False],
        [False] * 4,
    ]  # the second row breaks the rule, but nobody repaired it
    assert numbers[1].tolist() == data.numbers[1].tolist()


def test_integers_stay_whole() -> None:
    rules = Constraints.of(["net integer"], SCHEMA)
    numbers, _ = rules.hold(blocks([6.4, 2.4, 0.0, 7.6]), np.ones((1, 4), dtype=bool), np.ones((1, 4)))
    assert numbers.tolist() == [[6.0, 2.4, 0.0, 8.0]]


@given(st.lists(st.floats(-1e6, 1e6), min_size=4, max_size=4), st.lists(st.booleans(), min_size=4, max_size=4))
def test_unchanged_cells_never_move(values: list[float], touched: list[bool]) -> None:
    rules = Constraints.of(["total = net + tax", "0 <= tax <= 5"], SCHEMA)
    changed = np.array([touched])
    numbers, unmet = rules.hold(blocks(values), changed, np.ones((1, 4)))
    assert numbers[~changed].tolist() == np.array([values])[~changed].tolist()
    if not unmet.any() and changed[0, :3].any():
        assert abs(numbers[0, 0] + numbers[0, 1] - numbers[0, 2]) <= 1e-5 * (1 + np.abs(values).max())


def test_strict_bounds_of_whole_numbers_leave_the_bound_out() -> None:
    rules = Constraints.of(["2 < `net amount` < 5.5", "net > 2"], SCHEMA)
    assert (rules.low[3], rules.high[3], rules.low[0]) == (3.0, 5.0, 2.0)


def test_whole_numbers_meet_a_relation_together() -> None:
    """Half of what is lacking each would be 3.5: one is rounded, the other makes up for it."""
    rules = Constraints.of(["total = net + tax", "net integer", "tax integer"], SCHEMA)
    changed = np.array([[True, True, False, False]])
    numbers, unmet = rules.hold(blocks([1.0, 1.0, 7.0, 0.0]), changed, np.ones((1, 4)))
    assert not unmet.any()
    assert numbers[0, 0] + numbers[0, 1] == 7.0
    assert (numbers == np.rint(numbers)).all()


def test_relations_that_share_cells_are_met_together() -> None:
    rules = Constraints.of(["total = net + tax", "tax = 0.2*net"], SCHEMA)
    changed = np.array([[True, True, True, False], [True, True, False, False], [False, True, True, False]])
    data = blocks([9.0, 3.0, 30.0, 0.0], [1.0, 7.0, 12.0, 0.0], [10.0, 0.0, 0.0, 0.0])
    numbers, unmet = rules.hold(data, changed, np.array([[1.0, 5.0, 100.0, 1.0]] * 3))
    assert not unmet.any()
    np.testing.assert_allclose(numbers[:, 2], numbers[:, 0] + numbers[:, 1])
    np.testing.assert_allclose(numbers[:, 1], 0.2 * numbers[:, 0])
    np.testing.assert_allclose(numbers[1:, :3], [[10.0, 2.0, 12.0], [10.0, 2.0, 12.0]])


def test_a_row_does_not_depend_on_its_neighbours(rng: np.random.Generator) -> None:
    rules = Constraints.of(["total = net + tax", "tax = 0.2*net", "0 <= tax <= 1", "`net amount` = total"], SCHEMA)
    data, changed, spread = 3.0 * rng.normal(size=(40, 4)), rng.random((40, 4)) < 0.6, rng.random((40, 4))
    numbers, unmet = rules.hold(blocks(*data.tolist()), changed, spread)
    for i in range(40):
        alone = rules.hold(blocks(data[i].tolist()), changed[i : i + 1], spread[i : i + 1])
        assert alone[0].tolist() == numbers[i : i + 1].tolist()
        assert alone[1].tolist() == unmet[i : i + 1].tolist()


def test_forbidden_levels_have_no_probability() -> None:
    rules = Constraints.of(["status in {single, widowed}"], SCHEMA)
    shares = rules.shares(np.array([[0.2, 0.5, 0.3], [0.0, 1.0, 0.0]]), np.array([0, 3]))
    np.testing.assert_allclose(shares, [[0.4, 0.0, 0.6], [0.0, 0.0, 0.0]])


def test_a_model_file_whose_constraints_do_not_fit_is_refused() -> None:
    rules = Constraints.of(["total = net + tax", "status in {single}"], SCHEMA)
    rules.check_state()
    rules.check_for(4, np.array([0, 3]))
    with pytest.raises(
        ModelFileError, match=r"relations of the constraints must have shape \(1, 4\) and be floats; got \(1, 3\)"
    ):
        replace(rules, weights=rules.weights[:, :3]).check_state()
    with pytest.raises(
        ModelFileError, match=r"whole numbers .* must have shape \(4,\) and be booleans; got \(4,\) of int64"
    ):
        replace(rules, whole=np.ones(4, dtype=np.int64)).check_state()
    with pytest.raises(ModelFileError, match="must be finite and name a column"):
        replace(rules, weights=np.zeros((1, 4))).check_state()
    with pytest.raises(ModelFileError, match="of 4 numbers and 1 categories; they have 4 numbers and forbid levels"):
        rules.check_for(4, np.array([0, 2]))
    with pytest.raises(ModelFileError, match="forbid levels"):
        replace(rules, forbidden=((0, "1"),)).check_for(4, np.array([0, 3]))  # type: ignore[arg-type]
