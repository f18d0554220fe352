"""Compiled functions that own no array: references to what they are given are not counted.

Numba counts references with atomic instructions whenever an array, a row of it or a tuple that holds it changes hands. In a
loop that calls functions row by row that takes as long as the arithmetic. Whoever allocates compiles with `njit` and passes
what it owns to a `lean` loop; in there nothing can be allocated, and numba refuses to compile what would.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from numba import njit

__all__ = ["lean"]

lean: Any = partial(njit, nogil=True, cache=True, _nrt=False)
