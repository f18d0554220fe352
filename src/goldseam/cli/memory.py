"""How many rows are in memory at once, so that a command stays within `--memory`.

What a restore needs besides the libraries was measured (peak resident size, 8 to 1,000 columns, one and two threads):
the working arrays of the rows that are being judged, the answers for the whole batch, and several copies of its text -
as read, as cells, as written, while the next batch is being read. A batch of many rows needs the first only for the
rows that the threads are at; taking it for all rows errs on the safe side, and large batches are no faster.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from pathlib import Path
from typing import Final

from goldseam.cli.batches import Mark
from goldseam.cli.delimited import Limits
from goldseam.cli.sources import ColumnarFile, Inputs

__all__ = ["give_back", "limits_for", "rows_within"]

LIBRARIES_BYTES: Final = 410_000_000  # resident after a small restore with its report
BYTES_PER_CELL: Final = 1100
COPIES_OF_TEXT: Final = 8
COPIES_OF_MODEL: Final = 2
MOST_ROWS: Final = 1 << 14
FEWEST_ROWS: Final = 64
LEAST_FREE: Final = 20_000_000
GROUPS_AT_ONCE: Final = 32  # polars holds about 12 row groups of an output while it joins the parts; measured


def rows_within(free: int, columns: int, bytes_per_row: float) -> int:
    """Rows of a batch that fit.

    >>> rows_within(600_000_000, 10, 900), rows_within(600_000_000, 1000, 6000), rows_within(20_000_000, 10_000, 60_000)
    (16384, 522, 64)
    """
    rows = int(free // (BYTES_PER_CELL * columns + COPIES_OF_TEXT * bytes_per_row))
    return max(FEWEST_ROWS, min(MOST_ROWS, rows))


def limits_for(inputs: Inputs, memory: int, model: Path) -> Limits:
    """What may be in memory at once, so that a command with this model stays within the memory."""
    free = max(memory - LIBRARIES_BYTES - COPIES_OF_MODEL * model.stat().st_size, LEAST_FREE)
    per_row = _bytes_per_row(inputs)
    rows = rows_within(free, len(inputs.names), per_row)
    text_bytes = int(min(max(1.1 * rows * per_row, 1 << 16), free // COPIES_OF_TEXT))
    return Limits(rows, text_bytes, min(Limits.group_bytes, free // GROUPS_AT_ONCE))


def _bytes_per_row(inputs: Inputs) -> float:
    """Bytes of a row, judged by the head of the first file that has rows."""
    for file in inputs.files:
        head = next(iter(file.batches(Limits(1000, 1 << 18), Mark())), None)
        if head is not None and len(head):
            size = head.frame.estimated_size() if isinstance(file, ColumnarFile) else head.after.position
            return max(1.0, size / len(head))
    return 100.0


def give_back() -> None:
    """Hand what was freed back to the system between two stages: glibc keeps it otherwise, up to half of the rest."""
    gc.collect()
    if sys.platform == "linux" and hasattr(library := ctypes.CDLL(None), "malloc_trim"):
        library.malloc_trim(0)
