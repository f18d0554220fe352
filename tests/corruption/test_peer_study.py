"""The tables of P1 have the columns that P1 counts."""

from __future__ import annotations

import numpy as np
import pytest

from goldseam import datasets
from goldseam.corruption.peer_study import make_peer_study
from goldseam.corruption.protocols import PEER_KINDS
from goldseam.datasets.locate import find_folder


def load(name):
    if name == "wdbc":
        return datasets.load_wdbc()
    folder = "usps" if name == "usps01" else name.replace("_", "-")
    if find_folder(folder) is None:
        pytest.skip(f"the shared data set {folder} is not on this machine (set GOLDSEAM_DATA)")
    return datasets.load_usps("all", digits=(0, 1)) if name == "usps01" else getattr(datasets, f"load_{name}")()


@pytest.mark.parametrize(
    ("name", "n_numbers", "n_categories"),
    [
        ("wdbc", 30, 0),
        ("image_segmentation", 18, 0),
        ("german", 7, 13),
        ("credit_approval", 6, 9),
        ("g241c", 241, 0),
        ("usps01", 240, 0),
    ],
)
def test_columns(name, n_numbers, n_categories):
    counts, found = [], load(name)
    for seed in range(3):
        study = make_peer_study(found, seed)
        counts.append((len(study.schema.numbers), len(study.schema.categories)))
        assert len(study.reference.kinds) == sum(counts[-1])
    if name == "usps01":  # which pixels are nearly constant depends a little on the split
        assert all(abs(numbers - n_numbers) <= 3 for numbers, _ in counts)
    else:
        assert set(counts) == {(n_numbers, n_categories)}


@pytest.mark.parametrize("kind", PEER_KINDS)
def test_damage_of_a_mixed_table(kind):
    study = make_peer_study(load("german"), 0)
    damage = study.damage(kind, np.random.default_rng(0))
    before, after = study.incoming.frame(), damage.table
    assert after.schema == before.schema
    different = np.column_stack([(before[name] != after[name]).to_numpy() for name in before.columns])
    np.testing.assert_array_equal(damage.cells, different)
    assert set(damage.kind) == {"", kind}
