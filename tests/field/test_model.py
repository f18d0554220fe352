"""The field over encoded rows: what the restorer builds on."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from goldseam.datasets import make_mixed_net
from goldseam.errors import InputError, ModelFileError
from goldseam.evidence.interface import UnitExpert
from goldseam.field import Field, given_levels, learn_field
from goldseam.model_file import pack, read, save, unpack
from goldseam.schema import Blocks
from goldseam.tables import Table, learn_schema
from tests.field.test_estimator import make_table

NOISY = {"size": 0.4, "kind": 0.15}


def encoded(table, schema=None):
    table = Table.read(table, ())
    schema = learn_schema(table) if schema is None else schema
    return table.encode(schema), schema


@pytest.fixture(scope="module")
def field():
    blocks, schema = encoded(make_table(np.random.default_rng(42)))
    return learn_field(blocks, schema, np.random.default_rng(0), penalty=0.4, floors=True)


@pytest.fixture
def rows(field, rng):
    blocks = encoded(make_table(rng, 60), field.schema)[0]
    hidden = blocks.copy()
    hidden.numbers[rng.random(blocks.numbers.shape) < 0.2] = np.nan
    hidden.codes[rng.random(blocks.codes.shape) < 0.2] = -1
    return hidden


def same(one, other):
    for name in ("numbers", "codes"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_without_noise_only_gaps_are_filled(field, rows):
    found = field.denoise(rows)
    assert np.isfinite(found.blocks.numbers).all()
    assert (found.blocks.codes >= 0).all()
    np.testing.assert_array_equal(found.changed_numbers, np.isnan(rows.numbers))
    np.testing.assert_array_equal(found.changed_codes, rows.codes < 0)
    kept = ~np.isnan(rows.numbers)
    assert (found.blocks.numbers[kept] == rows.numbers[kept]).all()


def test_a_withheld_cell_counts_as_missing_whatever_it_holds(field, rows, rng):
    levels = given_levels(field.schema, NOISY)
    numbers, codes = rng.random(rows.numbers.shape) < 0.3, rng.random(rows.codes.shape) < 0.3
    other = Blocks(np.where(numbers, 77.0, rows.numbers), np.where(codes, 0, rows.codes).astype(np.int32))
    blank = Blocks(np.where(numbers, np.nan, rows.numbers), np.where(codes, -1, rows.codes).astype(np.int32))
    one, two = (field.denoise(given, levels, numbers, codes) for given in (rows, other))
    same(one.blocks, two.blocks)
    same(one.blocks, field.denoise(blank, levels).blocks)
    np.testing.assert_array_equal(one.posterior.variance, two.posterior.variance)
    assert np.isfinite(one.blocks.numbers).all()


@pytest.mark.parametrize("gross", [0.0, 0.05])
def test_rows_are_denoised_alike_in_any_company_and_any_thread(field, rows, gross):
    levels = given_levels(field.schema, NOISY, gross)
    whole = field.denoise(rows, levels)
    some = np.array([3, 17, 50])
    same(whole.blocks.take(some), field.denoise(rows.take(some), levels).blocks)
    same(whole.blocks, field.denoise(rows, levels, n_jobs=2).blocks)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: field.denoise(rows, levels).blocks, range(8)):
            same(whole.blocks, found)


def test_the_field_is_an_expert_of_the_evidence(field, rows):
    assert isinstance(field, UnitExpert)
    nothing = [np.zeros(part.shape, dtype=bool) for part in (rows.numbers, rows.codes)]
    answer = field.predict_blocks(rows, *nothing)
    changed = rows.copy()
    changed.numbers[:, 0] += 1.0  # a number does not speak for itself
    np.testing.assert_allclose(field.predict_blocks(changed, *nothing).mean[:, 0], answer.mean[:, 0], rtol=1e-9)
    assert (answer.variance > 0).all()


def test_a_model_file_keeps_the_field(field, rows, tmp_path):
    save(field, tmp_path / "field.seam")
    again = read(tmp_path / "field.seam")
    assert isinstance(again, Field)
    levels = given_levels(field.schema, NOISY)
    same(again.denoise(rows, levels).blocks, field.denoise(rows, levels).blocks)
    one, two = (f.estimate_noise(Blocks(rows.numbers, rows.codes)) for f in (again, field))
    assert one.described(field.schema) == two.described(field.schema)
    tree, arrays = pack(levels)
    assert unpack(tree, arrays).status == levels.status


def broken(field, part, **changes):
    tree, arrays = pack(replace(field, **{part: replace(getattr(field, part), **changes)}))
    return lambda: unpack(tree, arrays)


@pytest.mark.parametrize(
    ("part", "change", "message"),
    [
        ("potentials", lambda p: {"offsets": p.offsets + 100}, "offsets of states leads outside"),
        ("potentials", lambda p: {"offsets": p.offsets[:1]}, "offsets of states must rise from 0 to 5"),
        ("potentials", lambda p: {"Phi": p.Phi[:2]}, r"Phi must be \(5, 5\); got \(2, 5\)"),
        ("atoms", lambda a: {"starts": a.starts * 1000}, "starts of atoms leads outside"),
        ("atoms", lambda a: {"starts": a.starts[:2]}, "each of 3 numbers"),
        ("atoms", lambda a: {"widths": a.widths[:2]}, "shares and widths"),
    ],
)
def test_a_hostile_file_is_refused(field, part, change, message):
    with pytest.raises(ModelFileError, match=message):
        broken(field, part, **change(getattr(field, part)))()


def test_a_field_of_another_table_is_refused(field):
    tree, arrays = pack(replace(field, center=field.center[:1]))
    with pytest.raises(ModelFileError, match="must standardise 3 numbers"):
        unpack(tree, arrays)


def test_noise_needs_rows_and_floors(field, rows):
    with pytest.raises(InputError, match="table of 0 rows"):
        field.estimate_noise(rows.take(np.zeros(0, dtype=np.int64)))
    with pytest.raises(InputError, match="has no noise floors"):
        replace(field, floors=None).estimate_noise(rows)


def test_levels_above_the_floor_are_estimated_and_the_rest_refused(field, rng):
    truth = make_table(rng, 400)
    clean = encoded(truth, field.schema)[0]
    quiet = field.estimate_noise(clean)
    assert set(quiet.status) == {"below_floor"}
    assert not quiet.acts
    flipped = rng.random(400) < 0.3
    hurt = clean.copy()
    hurt.codes[flipped, 0] = (hurt.codes[flipped, 0] + 1) % 3
    found = field.estimate_noise(hurt)
    assert found.described(field.schema)["kind"]["status"] == "estimated"
    assert found.flip[0] == pytest.approx(0.3, abs=0.08)
    assert found.described(field.schema)["size"] == {
        "value": None, "source": "table", "floor": pytest.approx(found.floor[0]), "status": "below_floor",
    }  # fmt: skip


def test_sigma_of_truly_continuous_columns_is_refused_below_its_floor():
    """F6.3: nothing repeats, so small noise cannot be told from none; no number is reported then (F12.8)."""
    study = make_mixed_net(0, n_per_class=400, n_sweeps=60)
    data, schema = encoded(study.dataset.frame())
    train, test = study.dataset.splits["train"], study.dataset.splits["test"]
    field = learn_field(data.take(train), schema, np.random.default_rng(0), penalty=0.6, floors=True)
    rng = np.random.default_rng(1)
    for level in (0.0, 0.1, 0.6):
        hurt = data.take(test).copy()
        hurt.numbers[:] += level * field.scale * rng.normal(size=hurt.numbers.shape)
        found = field.estimate_noise(hurt)
        number = found.described(schema)["u0"]
        if level <= 0.1:
            assert number["status"] == "below_floor"
            assert number["value"] is None
        else:
            assert number["status"] == "estimated"
            assert number["value"] > number["floor"]
            assert number["value"] == pytest.approx(level * field.scale[0], rel=0.25)
