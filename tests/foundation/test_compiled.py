from __future__ import annotations

import numpy as np
import pytest
from numba import njit
from numba.core.errors import NumbaError

from goldseam.compiled import lean


@lean(cache=False)
def add_up(row, out, i):
    for value in row:
        out[i] += value


@lean(cache=False)
def add_up_rows(rows, out):
    for i in range(len(rows)):
        add_up(rows[i], out, i)


def test_arrays_outlive_a_loop_that_does_not_count_them():
    @njit
    def sums(rows):
        out = np.zeros(len(rows))
        add_up_rows(rows, out)
        return out

    rows = np.arange(12.0).reshape(3, 4)
    found = [sums(rows) for _ in range(100)]
    np.testing.assert_array_equal(found, [rows.sum(axis=1)] * 100)


def test_no_reference_is_counted():
    add_up_rows(np.ones((2, 3)), np.zeros(2))
    assert all("NRT_" not in code for code in add_up_rows.inspect_asm().values())


def test_what_would_allocate_is_refused():
    @lean(cache=False)
    def doubled(row):
        return 2.0 * row

    with pytest.raises(NumbaError):
        doubled(np.ones(3))
