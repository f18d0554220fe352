"""What every simulator must keep, whatever it does: truth, untouched cells, dtypes, seeds."""

from __future__ import annotations

import inspect

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goldseam import corruption
from goldseam.corruption import (
    add_noise,
    fail_sensors,
    flip_categories,
    make_gaps,
    mistake_units,
    overwrite_intervals,
    overwrite_squares,
    scatter_errors,
    stretches,
    swap_cells,
)
from goldseam.errors import InputError, ParameterError

SIMULATORS = {
    "noise": (add_noise, {"strength": 0.3, "flips": 0.3}),
    "flip": (flip_categories, {"rate": 0.4}),
    "gap-mcar": (make_gaps, {"rate": 0.3}),
    "gap-mar": (make_gaps, {"rate": 0.3, "mechanism": "mar", "driver": "age"}),
    "gap-mnar": (make_gaps, {"rate": 0.3, "mechanism": "mnar"}),
    "interval-uniform": (overwrite_intervals, {}),
    "interval-copy": (overwrite_intervals, {"fill": "copy"}),
    "interval-always": (overwrite_intervals, {"snap": "always"}),
    "square": (overwrite_squares, {"grid": (2, 3), "side": (1, 2), "fill": "marginal"}),
    "scatter-gross": (scatter_errors, {}),
    "scatter-uniform": (scatter_errors, {"fill": "uniform"}),
    "scatter-marginal": (scatter_errors, {"fill": "marginal"}),
    "scatter-copy": (scatter_errors, {"fill": "copy"}),
    "scatter-constant": (scatter_errors, {"fill": "constant"}),
    "scatter-number": (scatter_errors, {"fill": 0, "rate": 0.4}),
    "swap": (swap_cells, {}),
    "unit": (mistake_units, {"conversion": "x10"}),
    "sensor": (fail_sensors, {"groups": [("age", "height"), ("level",)]}),
}
LIBRARIES = ("pandas", "polars", "pyarrow", "numpy")


def people(n_rows=120, seed=0):
    """Mixed columns of several dtypes, with gaps."""
    rng = np.random.default_rng(seed)
    height = rng.normal(170, 10, n_rows)
    height[::17] = np.nan
    return pd.DataFrame(
        {
            "age": rng.integers(18, 90, n_rows),
            "height": height,
            "level": rng.choice([0.0, 0.5, 1.0], n_rows).astype(np.float32),
            "town": rng.choice(["Bonn", "Kiel", "Ulm"], n_rows),
            "member": rng.random(n_rows) < 0.4,
            "grade": pd.Categorical(rng.choice(list("abc"), n_rows), categories=list("abc"), ordered=True),
            "born": pd.date_range("1990-01-01", periods=n_rows),
        },
        index=np.arange(n_rows) * 3,
    )


def in_library(frame, library):
    if library == "polars":
        return pl.from_pandas(frame)
    if library == "pyarrow":
        return pa.Table.from_pandas(frame, preserve_index=False)
    if library == "numpy":
        return frame[["age", "height", "level"]].to_numpy(dtype=np.float64)
    return frame


def as_objects(table):
    """Cells as Python objects, None where missing."""
    if isinstance(table, np.ndarray):
        frame = pd.DataFrame(table)
    elif isinstance(table, pd.DataFrame):
        frame = table
    else:
        frame = table.to_pandas()
    cells = frame.astype(object).to_numpy()
    return np.where(frame.isna().to_numpy(), None, cells)


def dtypes(table):
    if isinstance(table, np.ndarray):
        return table.dtype
    return (
        dict(table.schema)
        if isinstance(table, pl.DataFrame)
        else getattr(table, "schema", None) or table.dtypes.to_dict()
    )


def applied(name, library):
    simulator, options = SIMULATORS[name]
    table = in_library(people(), library)
    if library == "numpy":
        options = {key: value for key, value in options.items() if key not in ("driver", "groups")}
        if name == "square":
            options = {"grid": (1, 3), "side": (1, 1), "fill": "marginal"}
    return table, simulator(table, random_state=5, **options)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", SIMULATORS)
def test_truth_is_exactly_what_changed(name, library):
    table, damage = applied(name, library)
    before, after = as_objects(table), as_objects(damage.table)
    assert damage.cells.shape == before.shape
    np.testing.assert_array_equal(damage.cells, before != after)
    np.testing.assert_array_equal(damage.rows, damage.cells.any(axis=1))
    np.testing.assert_array_equal(damage.kind != "", damage.rows)
    if not (name == "flip" and library == "numpy"):  # nothing there to flip
        assert damage.cells.any()


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", [name for name in SIMULATORS if not name.startswith("gap")])
def test_library_and_dtypes_stay(name, library):
    table, damage = applied(name, library)
    assert type(damage.table) is type(table)
    assert dtypes(damage.table) == dtypes(table)
    if library == "pandas":
        pd.testing.assert_index_equal(damage.table.index, table.index)
    assert not damage.cells[:, 6:].any()  # dates are never touched


@pytest.mark.parametrize("name", SIMULATORS)
def test_the_seed_decides(name):
    _, once = applied(name, "pandas")
    _, again = applied(name, "pandas")
    pd.testing.assert_frame_equal(once.table, again.table)
    simulator, options = SIMULATORS[name]
    other = simulator(people(), random_state=6, **options)
    assert (other.cells != once.cells).any()


@pytest.mark.parametrize("name", SIMULATORS)
def test_the_given_table_is_not_touched(name):
    table, _ = applied(name, "pandas")
    pd.testing.assert_frame_equal(table, people())


@pytest.mark.parametrize("name", SIMULATORS)
def test_only_rows_of_the_mask_are_damaged(name):
    simulator, options = SIMULATORS[name]
    mask = np.arange(120) % 3 == 0
    damage = simulator(people(), rows=mask, random_state=0, **options)
    assert damage.rows.any()
    assert not damage.rows[~mask].any()


def test_share_of_rows_is_binomial():
    table = np.random.default_rng(0).normal(size=(4000, 3))
    for share in (0.1, 0.5, 0.9):
        damaged = add_noise(table, rows=share, random_state=1).rows.mean()
        assert abs(damaged - share) < 4 * np.sqrt(share * (1 - share) / 4000)


def test_columns_limit_the_damage():
    damage = scatter_errors(people(), rate=0.9, rows=1.0, columns=["town", "age"], random_state=0)
    assert damage.cells[:, [0, 3]].any(axis=0).all()
    assert not damage.cells[:, [1, 2, 4, 5, 6]].any()


def test_columns_by_number_for_arrays():
    table = np.random.default_rng(0).normal(size=(50, 4))
    damage = add_noise(table, columns=[2], rows=1.0, random_state=0)
    assert damage.cells.any(axis=0).tolist() == [False, False, True, False]


def test_reference_gives_the_range():
    table = np.random.default_rng(0).normal(size=(200, 4))
    reference = 100 + np.random.default_rng(1).random((300, 4))
    damage = overwrite_intervals(table, reference=reference, random_state=0)
    hit = damage.table[damage.cells]
    assert hit.min() >= 100
    assert hit.max() <= 101


def test_reference_of_another_column_order():
    table = people()
    reference = people(seed=1)[["town", "height", "age", "born", "grade", "member", "level"]]
    damage = scatter_errors(table, reference=reference, rate=0.5, rows=1.0, random_state=0)
    np.testing.assert_array_equal(damage.cells, as_objects(table) != as_objects(damage.table))


def test_noise_has_the_asked_strength():
    table = np.random.default_rng(0).normal(scale=(1.0, 50.0), size=(5000, 2))
    noise = add_noise(table, strength=0.3, rows=1.0, random_state=1).table - table
    np.testing.assert_allclose(noise.std(axis=0) / table.std(axis=0), 0.3, rtol=0.05)


def test_integers_get_whole_noise():
    damage = add_noise(people(), strength=0.5, rows=1.0, random_state=0)
    assert damage.table["age"].dtype == np.int64
    moved = damage.table["age"] - people()["age"]
    assert (moved == 0).sum() == (~damage.cells[:, 0]).sum()


def test_flips_go_to_every_other_level_alike():
    table = pl.DataFrame({"a": ["x", "y", "z"] * 2000, "b": ["u"] * 3000 + ["v"] * 3000})
    damage = flip_categories(table, rate=0.4, rows=1.0, random_state=0)
    assert abs(damage.cells[:, 0].mean() - 0.4) < 4 * np.sqrt(0.24 / 6000)
    to = damage.table["a"].to_numpy()[(table["a"] == "x").to_numpy() & damage.cells[:, 0]]
    assert abs((to == "y").mean() - 0.5) < 4 * np.sqrt(0.25 / to.size)
    assert not flip_categories(people(), rate=1.0, rows=1.0, random_state=0).cells[:, :3].any()


@pytest.mark.parametrize("mechanism", ["mcar", "mar", "mnar"])
@pytest.mark.parametrize("rate", [0.1, 0.5, 0.8])
def test_gap_rate(mechanism, rate):
    table = np.random.default_rng(0).normal(size=(3000, 4))
    damage = make_gaps(table, rate=rate, mechanism=mechanism, random_state=1)
    np.testing.assert_allclose(damage.cells.mean(axis=0), rate, atol=4 * np.sqrt(rate * (1 - rate) / 3000))
    np.testing.assert_array_equal(np.isnan(damage.table), damage.cells)


def test_gap_mechanisms_differ_as_they_should():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(4000, 3))
    mar = make_gaps(table, rate=0.4, mechanism="mar", driver=0, random_state=1).cells
    assert not mar[:, 0].any()
    assert table[mar[:, 1], 0].mean() > 0.2  # rows with a high driver lose the cell
    assert abs(table[mar[:, 1], 1].mean()) < 0.1  # the lost value itself is as usual
    mnar = make_gaps(table, rate=0.4, mechanism="mnar", random_state=1).cells
    assert table[mnar[:, 1], 1].mean() > 0.2
    mcar = make_gaps(table, rate=0.4, random_state=1).cells
    assert abs(table[mcar[:, 1], 1].mean()) < 0.1


def test_gaps_in_integers_of_every_library():
    frame = people()
    for library in ("pandas", "polars", "pyarrow"):
        damage = make_gaps(in_library(frame, library), rate=0.5, random_state=0)
        assert damage.cells[:, 0].any()
        assert all(cell is None for cell in as_objects(damage.table)[damage.cells])


def test_interval_is_one_run_of_the_asked_length():
    table = np.random.default_rng(0).normal(size=(300, 20))
    damage = overwrite_intervals(table, share=(0.2, 0.4), random_state=0)
    lengths = damage.cells.sum(axis=1)
    assert set(lengths[damage.rows]) <= set(range(4, 9))
    edges = np.abs(np.diff(np.pad(damage.cells, ((0, 0), (1, 1))).astype(int), axis=1)).sum(axis=1)
    assert set(edges[damage.rows]) == {2}
    assert damage.cells.any(axis=0).all()


def test_snap():
    lattice = np.random.default_rng(0).integers(0, 15, (400, 6)) / 4
    fine = np.random.default_rng(0).integers(0, 500, (400, 6)) / 4
    for table, snap, own in (
        (lattice, "auto", True),
        (fine, "auto", False),
        (fine, "always", True),
        (lattice, "never", False),
    ):
        damage = overwrite_intervals(table, snap=snap, random_state=1)
        values = damage.table[damage.cells]
        assert np.isin(values, np.unique(table)).all() == own, (snap, own)


def test_marginal_keeps_the_distribution():
    table = np.random.default_rng(0).exponential(size=(4000, 2))
    damage = scatter_errors(table, fill="marginal", rate=1.0, rows=1.0, random_state=1)
    assert np.isin(damage.table[:, 0], table[:, 0]).all()
    np.testing.assert_allclose(damage.table.mean(axis=0), table.mean(axis=0), atol=0.08)


def test_copy_takes_the_whole_segment_from_one_other_row():
    table = np.arange(500.0).reshape(50, 10)
    damage = overwrite_intervals(table, fill="copy", rows=1.0, random_state=1)
    for row in range(50):
        donors = np.unique(damage.table[row, damage.cells[row]] // 10)
        assert donors.size == 1
        assert donors[0] != row


def test_constant_is_one_value_per_row():
    table = np.random.default_rng(0).normal(size=(40, 8))
    damage = overwrite_intervals(table, fill="constant", rows=1.0, random_state=1)
    assert all(np.unique(damage.table[i, damage.cells[i]]).size == 1 for i in range(40))
    zero = overwrite_intervals(table, fill=0.0, rows=1.0, random_state=1)
    assert (zero.table[zero.cells] == 0).all()


def test_gross_is_ten_times_or_three_sd():
    table = np.random.default_rng(0).normal(5, 1, size=(2000, 2))
    damage = scatter_errors(table, random_state=1)
    old, new = table[damage.cells], damage.table[damage.cells]
    sd = np.broadcast_to(table.std(axis=0), table.shape)[damage.cells]
    times = np.isclose(new, 10 * old)
    np.testing.assert_allclose(np.abs(new - old)[~times], 3 * sd[~times])
    assert abs(times.mean() - 0.5) < 4 * np.sqrt(0.25 / times.size)


def test_at_least_one():
    table = np.random.default_rng(0).normal(size=(500, 4))
    assert scatter_errors(table, rate=0.01, rows=1.0, random_state=0).rows.all()
    some = scatter_errors(table, rate=0.01, rows=1.0, at_least_one=False, random_state=0)
    assert abs(some.cells.mean() - 0.01) < 4 * np.sqrt(0.0099 / 2000)


def test_square_is_square():
    images = np.random.default_rng(0).random((200, 48))
    damage = overwrite_squares(images, grid=(6, 8), side=(2, 4), rows=1.0, random_state=0)
    for cells in damage.cells.reshape(-1, 6, 8):
        rows, columns = np.flatnonzero(cells.any(axis=1)), np.flatnonzero(cells.any(axis=0))
        assert len(rows) == len(columns) == np.ptp(rows) + 1 == np.ptp(columns) + 1
        assert 2 <= len(rows) <= 4
        assert cells.sum() == len(rows) ** 2


def test_swap_exchanges_two_cells():
    table = np.random.default_rng(0).normal(size=(60, 5))
    damage = swap_cells(table, rows=1.0, n_pairs=2, random_state=0)
    assert (damage.cells.sum(axis=1) == 4).all()
    np.testing.assert_array_equal(np.sort(damage.table, axis=1), np.sort(table, axis=1))
    for row in range(60):
        order = [int(np.flatnonzero(table[row] == value)[0]) for value in damage.table[row]]
        assert [order[i] for i in order] == list(range(5))  # doing it twice gives the row back


def test_units_by_hand():
    table = np.array([[0.0, 100.0], [37.0, -40.0]])
    kinds = {"x0": "continuous", "x1": "continuous"}
    fahrenheit = mistake_units(table, conversion="C->F", rate=1.0, rows=1.0, kinds=kinds, random_state=0).table
    np.testing.assert_allclose(fahrenheit, [[32, 212], [98.6, -40]])
    back = mistake_units(fahrenheit, conversion="F->C", rate=1.0, rows=1.0, random_state=0).table
    np.testing.assert_allclose(back, table, atol=1e-12)
    assert mistake_units(table, conversion="x1000", rate=1.0, rows=1.0).table.max() == 100_000


def sensor(mode, rows=1.0, **options):
    table = np.random.default_rng(0).normal(10, 2, size=(60, 4))
    groups = [(0, 1), (2, 3)]
    return table, fail_sensors(table, groups=groups, modes=[mode], rows=rows, random_state=3, **options)


def test_sensor_groups_fail_as_one():
    _, damage = sensor("burst", rows=stretches(60, 0.5, 6, random_state=1))
    assert damage.cells.any()
    np.testing.assert_array_equal(damage.cells[:, 0], damage.cells[:, 1])
    np.testing.assert_array_equal(damage.cells[:, 2], damage.cells[:, 3])
    assert not (damage.cells[:, 0] & damage.cells[:, 2]).any()


def test_sensor_mode_is_told_per_row():
    table = np.random.default_rng(0).normal(10, 2, size=(400, 3))
    damage = fail_sensors(table, rows=stretches(400, 0.5, 4, random_state=0), random_state=1)
    assert set(damage.kind) == {"", *corruption.SENSOR_MODES}
    dead = damage.kind == "dead"
    assert (damage.table[dead] == 0).any(axis=1).all()
    assert repr(damage).startswith("Damage(burst, dead, drift")


def test_sensor_modes_by_hand():
    one = np.zeros(60, dtype=bool)
    one[20:30] = True
    table, dead = sensor("dead", rows=one)
    assert (dead.table[dead.cells] == 0).all()
    table, stuck = sensor("stuck", rows=one)
    column = int(np.flatnonzero(stuck.cells.any(axis=0))[0])
    assert (stuck.table[20:30, column] == table[19, column]).all()
    table, saturated = sensor("saturation", rows=one)
    assert saturated.table.max() == table[:, saturated.cells.any(axis=0)].max(axis=0).max()
    table, offset = sensor("offset", rows=one, strength=2.0)
    shift = (offset.table - table)[20:30, offset.cells.any(axis=0)]
    np.testing.assert_allclose(
        np.abs(shift), np.broadcast_to(2 * table.std(axis=0)[offset.cells.any(axis=0)], shift.shape)
    )
    assert np.ptp(np.sign(shift)) == 0
    table, drift = sensor("drift", rows=one)
    gain = (drift.table / table)[20:30, drift.cells.any(axis=0)]
    np.testing.assert_allclose(np.diff(np.log(gain), axis=0), np.log(gain[0, 0]), atol=1e-12)
    table, dropout = sensor("dropout", rows=one)
    assert np.abs(dropout.table[dropout.cells]).max() < 0.1
    table, burst = sensor("burst", rows=one)
    assert 4 < (burst.table - table)[burst.cells].std() / 2 < 12


def test_flip_labels():
    labels = np.array(["a", "b", "c"] * 1000)
    damage = corruption.flip_labels(labels, 0.3, random_state=0)
    np.testing.assert_array_equal(damage.cells[:, 0], damage.table != labels)
    assert abs(damage.rows.mean() - 0.3) < 4 * np.sqrt(0.21 / 3000)
    one_way = corruption.flip_labels(labels, 0.5, given="a", random_state=0)
    assert set(labels[one_way.rows]) == {"a"}
    mask = np.arange(3000) < 5
    np.testing.assert_array_equal(corruption.flip_labels(labels, mask, random_state=0).rows, mask)


def test_signatures_name_their_options():
    parameters = inspect.signature(overwrite_squares).parameters
    names = ["table", "grid", "side", "fill", "snap", "rows", "columns", "reference", "kinds", "random_state"]
    assert list(parameters) == names
    assert parameters["grid"].default is inspect.Parameter.empty
    assert inspect.signature(make_gaps).parameters["rows"].default == 1.0


TABLE = np.random.default_rng(0).normal(size=(10, 6))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: add_noise(people(), columns=["heigth"]), "no column 'heigth' to damage.*'age', 'height'"),
        (lambda: add_noise(TABLE, columns=[6]), "no column 6 to damage"),
        (lambda: add_noise(TABLE, rows=0.0), r"rows must be above 0 and at most 1; got 0\.0"),
        (lambda: add_noise(TABLE, rows=1.5), r"rows must be above 0 and at most 1; got 1\.5"),
        (lambda: add_noise(TABLE, rows=np.ones(9, dtype=bool)), r"mask of the 10 rows; got bool of shape \(9,\)"),
        (lambda: add_noise(TABLE, strength=-1), "strength must be at least 0 standard deviations; got -1"),
        (lambda: overwrite_intervals(TABLE, share=(0.5, 1.2)), r"share must be above 0 and at most 1; got 1\.2"),
        (lambda: overwrite_intervals(TABLE, share=(0.5, 0.2)), r"low <= high; got \(0\.5, 0\.2\)"),
        (lambda: overwrite_intervals(TABLE, fill="zero"), "fill must be one of 'uniform'.*; got 'zero'"),
        (lambda: overwrite_intervals(TABLE, snap="maybe"), "snap must be one of 'auto'.*; got 'maybe'"),
        (lambda: overwrite_squares(TABLE, grid=(2, 4)), "grid 2 x 4 has 8 cells, but there are 6 columns"),
        (
            lambda: overwrite_squares(TABLE, grid=(2, 3), side=(1, 3)),
            r"side must be \(low, high\) within 1 and 2; got \(1, 3\)",
        ),
        (lambda: scatter_errors(TABLE, rate=0), "rate must be above 0 and at most 1; got 0"),
        (
            lambda: scatter_errors(people(), fill=7, rate=1.0),
            "fill=7 is not a position among the 3 levels of column 'town'",
        ),
        (lambda: swap_cells(TABLE, n_pairs=4), "n_pairs must be between 1 and 3.*6 numeric columns; got 4"),
        (lambda: mistake_units(TABLE, conversion="km->mi"), "conversion must be one of 'x10'.*; got 'km->mi'"),
        (lambda: make_gaps(TABLE, mechanism="nmar"), "mechanism must be one of 'mcar'.*; got 'nmar'"),
        (lambda: make_gaps(TABLE, mechanism="mnar", rate=1.0), r"rate must be below 1 .*; got 1\.0"),
        (lambda: make_gaps(TABLE[:, :1], mechanism="mar"), "needs at least 2 columns; got 1"),
        (lambda: fail_sensors(TABLE, modes=["melt"]), r"modes must be some of 'dropout'.*; got \('melt',\)"),
        (lambda: fail_sensors(people(), groups=[("age", "town")]), "column 'town' holds categories"),
        (lambda: stretches(10, 0.5, 0), "length must be at least 1 row; got 0"),
        (lambda: corruption.flip_labels([0, 1], 1.2), r"rate must be above 0 and at most 1; got 1\.2"),
    ],
)
def test_bad_settings(call, message):
    with pytest.raises(ParameterError, match=message):
        call()


def test_one_class_cannot_be_flipped():
    with pytest.raises(InputError, match=r"at least 2 classes; got shape .* and 1 classes"):
        corruption.flip_labels([1, 1])


def test_unknown_option_is_refused():
    with pytest.raises(TypeError, match="tau"):
        add_noise(TABLE, tau=0.5)


@pytest.mark.parametrize("name", SIMULATORS)
def test_no_rows_and_one_row(name):
    simulator, options = SIMULATORS[name]
    empty = simulator(people()[:0], reference=people(), random_state=0, **options)
    assert empty.cells.shape == (0, 7)
    assert type(empty.table) is pd.DataFrame
    one = simulator(people()[:1], reference=people(), rows=1.0, random_state=0, **options)
    np.testing.assert_array_equal(one.cells, as_objects(people()[:1]) != as_objects(one.table))


def test_nothing_to_damage():
    dates = pd.DataFrame({"born": pd.date_range("1990-01-01", periods=5)})
    with pytest.raises(InputError, match="no column that can be damaged"):
        add_noise(dates)


def test_empty_columns_stay_empty():
    table = np.column_stack([np.random.default_rng(0).normal(size=30), np.full(30, np.nan)])
    for fill in ("uniform", "marginal", "gross"):
        damage = scatter_errors(table, fill=fill, rate=1.0, rows=1.0, random_state=0)
        assert damage.cells.any(axis=0).tolist() == [True, False]


@st.composite
def tables(draw):
    n_rows = draw(st.integers(2, 12))
    numbers = st.floats(-1e6, 1e6, allow_nan=False, width=32) | st.none()
    columns = {
        "a": draw(st.lists(numbers, min_size=n_rows, max_size=n_rows)),
        "b": draw(st.lists(st.integers(-100, 100) | st.none(), min_size=n_rows, max_size=n_rows)),
        "c": draw(st.lists(st.sampled_from(["x", "y", "z", None]), min_size=n_rows, max_size=n_rows)),
        "d": draw(st.lists(st.booleans(), min_size=n_rows, max_size=n_rows)),
        "e": draw(st.lists(st.floats(-5, 5), min_size=n_rows, max_size=n_rows)),
    }
    schema = {"a": pl.Float32, "b": pl.Int16, "c": pl.String, "d": pl.Boolean, "e": pl.Float64}
    return pl.DataFrame(columns, schema=schema)


PLAIN = sorted(name for name in SIMULATORS if name not in ("gap-mar", "square", "scatter-number", "sensor", "swap"))


@settings(max_examples=150)
@given(table=tables(), name=st.sampled_from(PLAIN), seed=st.integers(0, 10**6))
def test_any_table_any_simulator(table, name, seed):
    """Truth is what changed, everything else is as it was, dtypes too."""
    simulator, options = SIMULATORS[name]
    damage = simulator(table, rows=1.0, random_state=seed, **options)
    assert damage.table.schema == table.schema
    changed = np.column_stack([table[c].ne_missing(damage.table[c]).to_numpy() for c in table.columns])
    np.testing.assert_array_equal(damage.cells, changed)
