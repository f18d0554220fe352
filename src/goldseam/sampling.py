"""Which rows serve what: the parts of a reference, and the sample of a table that is surveyed."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from goldseam.errors import InputError
from goldseam.schema import Blocks, Schema
from goldseam.separation.encoding import category_columns, learn_scaling, to_values
from goldseam.separation.reference import Reference
from goldseam.separation.tree import AttributeTree

__all__ = ["RowSample", "check_reference", "donor_reference", "donor_rows", "split_rows"]

Ints = NDArray[np.int64]

LEAST_ROWS: Final = 10
CALIBRATION_SHARE: Final = 0.25
AUDIT_SHARE: Final = 0.1
LEAST_AUDIT: Final = 40
LEAST_AUDITED: Final = 5 * LEAST_AUDIT  # reference rows, of which some can be spared
MOST_AUDIT: Final = 400
MOST_DONORS: Final = 2000
MOST_CALIBRATION: Final = 2000
MOST_REFERENCE: Final = 20_000


def check_reference(blocks: Blocks, schema: Schema) -> None:
    """A reference must have rows to learn and to calibrate from, and something to model."""
    if len(blocks) < LEAST_ROWS:
        raise InputError(
            f"A reference needs at least {LEAST_ROWS} rows to learn and calibrate from; got {len(blocks)} "
            f"(n_samples={len(blocks)}). Hint: give more clean rows."
        )
    if not schema.modelled_positions:
        raise InputError("No column of the reference can be modelled: all are constant, dates or free text.")


def split_rows(rows: Ints, rng: np.random.Generator, audited: bool) -> tuple[Ints, Ints, Ints]:
    """Rows to fit, to calibrate and to audit on, disjoint."""
    order = rng.permutation(rows)
    n_calibration = int(np.clip(round(CALIBRATION_SHARE * rows.size), min(20, rows.size // 2), MOST_CALIBRATION))
    n_audit = int(np.clip(round(AUDIT_SHARE * rows.size), LEAST_AUDIT, MOST_AUDIT))
    n_audit = n_audit if audited and rows.size >= LEAST_AUDITED else 0
    held_out = order[n_calibration : n_calibration + n_audit]
    return np.sort(order[n_calibration + n_audit :][:MOST_REFERENCE]), np.sort(order[:n_calibration]), np.sort(held_out)


def donor_rows(n_rows: int, most: int = MOST_DONORS) -> Ints:
    """Which reference rows are kept: all, or some spread evenly over a table that may be in order of time.

    >>> donor_rows(10, most=4)
    array([0, 3, 6, 9])
    """
    return np.linspace(0, n_rows - 1, min(n_rows, most)).astype(np.int64)


def donor_reference(blocks: Blocks, schema: Schema) -> Reference:
    """Reference rows laid out for the search of nearest ones."""
    values = to_values(blocks.take(donor_rows(len(blocks))), schema)
    is_category = category_columns(schema)
    center, scale = learn_scaling(values, is_category, "robust")
    return Reference(values, AttributeTree.interval(values.shape[1]), center, scale, is_category)


class RowSample:
    """A sample of the rows of a table that comes in batches: the same however it is cut.

    >>> sample = RowSample(2)
    >>> sample.add(Blocks(np.arange(6.0).reshape(3, 2), np.empty((3, 0), dtype=np.int32)))
    >>> sample.rows.numbers.shape
    (2, 2)
    """

    def __init__(self, size: int) -> None:
        self.rows: Blocks | None = None
        self._size = size
        self._ticket = np.empty(0)
        self._rng = np.random.default_rng(0)

    def add(self, blocks: Blocks) -> None:
        """Every row draws a ticket; the lowest stay."""
        ticket = np.concatenate([self._ticket, self._rng.random(len(blocks))])
        numbers, codes = blocks.numbers, blocks.codes
        if self.rows is not None:
            numbers = np.concatenate([self.rows.numbers, numbers])
            codes = np.concatenate([self.rows.codes, codes])
        stay = np.sort(np.argsort(ticket, kind="stable")[: self._size])
        self.rows, self._ticket = Blocks(numbers[stay], codes[stay]), ticket[stay]
