"""Mixed and categorical tables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from goldseam.datasets.dataset import Dataset
from goldseam.datasets.flat import Flat, check_choice, load_flat
from goldseam.datasets.locate import find_folder
from goldseam.datasets.openml import OpenML
from goldseam.datasets.reading import as_table, read_fields
from goldseam.datasets.sources import describe
from goldseam.schema import Kind

__all__ = [
    "load_adult",
    "load_australian",
    "load_breast_cancer_ljubljana",
    "load_credit_approval",
    "load_german",
    "load_splice",
    "load_topgear",
]

_LETTERS = {"C": Kind.CONTINUOUS, "I": Kind.INTEGER, "D": Kind.CATEGORICAL, "O": Kind.ORDINAL, "P": Kind.PASSTHROUGH}


def _kinds(text: str) -> dict[str, Kind]:
    """Kinds written as `name:letter`, separated by blanks."""
    pairs = (item.rsplit(":", 1) for item in text.split())
    return {name: _LETTERS[letter] for name, letter in pairs}


_ADULT = Flat(
    "adult",
    _kinds(
        "age:I workclass:D fnlwgt:I education:D education_num:I marital_status:D occupation:D relationship:D race:D "
        "sex:D capital_gain:I capital_loss:I hours_per_week:I native_country:D"
    ),
    files={"train": "adult.data.gz", "test": "adult.test.gz"},
    missing="?",
    openml=OpenML(1590),
    n_rows=48842,
)
_CREDIT = Flat(
    "credit-approval",
    _kinds("A1:D A2:C A3:C A4:D A5:D A6:D A7:D A8:C A9:D A10:D A11:I A12:D A13:D A14:I A15:I"),
    files={"all": "crx.data"},
    missing="?",
    openml=OpenML(29),
    n_rows=690,
)
_AUSTRALIAN = Flat(
    "australian",
    _kinds("A1:D A2:C A3:C A4:D A5:D A6:D A7:C A8:D A9:D A10:I A11:D A12:D A13:I A14:I"),
    files={"all": "australian.dat"},
    label_type=int,
    separator=None,
    openml=OpenML(40981),
    n_rows=690,
)
_GERMAN = Flat(
    "german",
    _kinds(
        "status:D duration:I credit_history:D purpose:D amount:I savings:D employment:D instalment_rate:I "
        "personal_status:D other_debtors:D residence_since:I property:D age:I other_plans:D housing:D "
        "existing_credits:I job:D people_liable:I telephone:D foreign_worker:D"
    ),
    files={"all": "german.data"},
    label_type=int,
    separator=None,
    openml=OpenML(31, labels={"good": "1", "bad": "2"}),
    n_rows=1000,
)
_LJUBLJANA = Flat(
    "breast-cancer-ljubljana",
    _kinds(
        "age:O menopause:D tumor_size:O inv_nodes:O node_caps:D deg_malig:O breast:D breast_quad:D irradiat:D",
    ),
    files={"all": "breast-cancer.csv"},
    quote="'",
    missing="nan",
    levels={
        "age": ("10-19", "20-29", "30-39", "40-49", "50-59", "60-69", "70-79", "80-89", "90-99"),
        "tumor_size": tuple(f"{low}-{low + 4}" for low in range(0, 60, 5)),
        "inv_nodes": tuple(f"{low}-{low + 2}" for low in range(0, 39, 3)),
        "deg_malig": ("1", "2", "3"),
    },
    openml=OpenML(13),
    n_rows=286,
)
_TOPGEAR = Flat(
    "topgear",
    _kinds(
        "Maker:P Model:P Type:P Fuel:D Price:C Cylinders:C Displacement:C DriveWheel:D BHP:C Torque:C Acceleration:C "
        "TopSpeed:C MPG:C Weight:C Length:C Width:C Height:C AdaptiveHeadlights:D AdjustableSteering:D AlarmSystem:D "
        "Automatic:D Bluetooth:D ClimateControl:D CruiseControl:D ElectricSeats:D Leather:D ParkingSensors:D "
        "PowerSteering:D SatNav:D ESP:D Verdict:C Origin:D"
    ),
    files={"all": "TopGear.csv"},
    target=None,
    skip=1,
    missing="",
)
_SPLICE = Flat(
    "splice",
    _kinds(" ".join(f"position_{i}:D" for i in (*range(-30, 0), *range(1, 31)))),
    files={"all": "splice.data.gz"},
    openml=OpenML(46, leave_out=("Instance_name",)),
    n_rows=3190,
)


def load_adult(subset: str = "train") -> Dataset:
    """Census income, 14 mixed columns; subset 'train' (32,561 rows), 'test' (16,281) or 'all'."""
    return load_flat(_ADULT, subset)


def load_credit_approval() -> Dataset:
    """Credit applications (crx), 690 rows, 6 numeric and 9 categorical columns, target '+' or '-'."""
    return load_flat(_CREDIT)


def load_australian() -> Dataset:
    """Credit applications, recoded and without gaps: 690 rows, 6 numeric and 8 categorical columns, target 0 or 1."""
    return load_flat(_AUSTRALIAN)


def load_german() -> Dataset:
    """German credit, 1,000 rows, 7 numeric and 13 categorical columns, target 1 (good) or 2 (bad)."""
    return load_flat(_GERMAN)


def load_breast_cancer_ljubljana() -> Dataset:
    """Recurrence of breast cancer, 286 rows, 5 categorical and 4 ordinal columns."""
    return load_flat(_LJUBLJANA)


def load_topgear() -> Dataset:
    """Cars with real cell errors, 297 rows, 32 columns, no target."""
    return load_flat(_TOPGEAR)


def load_splice(*, ambiguous: str = "keep") -> Dataset:
    """Gene sequences, 3,190 rows of 60 nucleotides, target 'EI', 'IE' or 'N'.

    `ambiguous='missing'` turns the letters that stand for several nucleotides (N, D, R, S) into missing cells.
    """
    check_choice("ambiguous", ambiguous, ("keep", "missing"))
    folder = find_folder("splice")
    if folder is None:
        found = load_flat(_SPLICE)
    else:
        rows = read_fields(folder / "splice.data.gz")
        table = as_table([list(row[2]) for row in rows], _SPLICE.kinds, {}, None)
        found = Dataset("splice", table, np.array([row[0] for row in rows]), dict(_SPLICE.kinds), describe("splice"))
    if ambiguous == "keep":
        return found
    return replace(found, data=found.frame().with_columns(pl.when(pl.all().is_in(list("ACGT"))).then(pl.all())))
