"""What a restorer's parts are worth and cost, and what it promised beside what was measured: the audit's accounts.

`lines` are those of `audit.audit`, one per kind and size of damage; cells of a row that is damaged several times count once.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from goldseam.evidence import Evidence
from goldseam.record import promise
from goldseam.schema import Blocks

__all__ = ["cell_promise", "costs", "interval_promise", "methods", "row_promise", "sources"]

Lines = Sequence[Mapping[str, Any]]
NAMES: Final = {"Gaussian": "conditional", "Boosted": "boosted", "UnitSource": "field", "TreeWitness": "tree"}
SCOPE: Final = "rows exchangeable with the reference; on average over reference and incoming rows"


def sources(evidence: Evidence) -> list[str]:
    """The sources of evidence that were kept, by the names that `method` has for them."""
    witnesses = (statement.witness for statement in evidence.statements)
    return _by_name([type(one).__name__ for one in (*evidence.sources, *witnesses)])


def methods(evidence: Evidence) -> tuple[dict[str, Any], ...]:
    """The sets of sources that were rehearsed, and what each was worth."""
    used = sources(evidence)
    return tuple(
        {"name": " + ".join(_by_name(names)), "worth": value, "used": _by_name(names) == used}
        for names, value in evidence.methods
    )


def costs(evidence: Evidence, clean: Blocks) -> Iterator[dict[str, Any]]:
    """What each expert gained when it was weighed, and what a thousand of its answers cost."""
    unweighed = ((type(one).__name__, float("nan"), True) for one in evidence.sources)
    used, scores = iter(evidence.sources), evidence.marginals.score(clean)
    nothing = np.zeros((len(clean), evidence.layout.n_cells), dtype=bool)
    for name, gain, stays in evidence.accounts or tuple(unweighed):
        seconds = None
        if stays:
            source = next(used)
            start = time.perf_counter()
            source.predict(source.prepare(clean, scores), nothing, np.arange(len(clean)))
            seconds = (time.perf_counter() - start) * 1000.0 / len(clean)
        yield {
            "name": _by_name([name])[0],
            "used": stays,
            "gain": None if np.isnan(gain) else gain,
            "seconds": seconds,
        }


def row_promise(rate: float, flagged: NDArray[np.bool_]) -> dict[str, Any]:
    """The share of clean rows that may be flagged, beside the share that was."""
    return promise("row alarm rate", rate, float(flagged.mean()), flagged.size, SCOPE)


def cell_promise(rate: float, lines: Lines) -> dict[str, Any]:
    """The share of suspect cells that may be fine, beside the share that was."""
    wrong, cells = (sum(line[key] for line in lines) for key in ("false_cells", "suspect_cells"))
    return promise("false discovery rate", rate, wrong / max(cells, 1), cells // _times(lines), SCOPE)


def interval_promise(coverage: float, lines: Lines) -> Iterator[dict[str, Any]]:
    """The share of intervals that hold the truth, if there are any."""
    errors = [line for line in lines if line["kind"] != "noise"]
    inside, cells = (sum(line[key] for line in errors) for key in ("covered_cells", "interval_cells"))
    if cells:
        scope = "numbers that were changed, rightly or not; rows of small noise apart"
        yield promise("interval coverage", coverage, inside / cells, cells // _times(lines), scope)


def _times(lines: Lines) -> int:
    return int(max(line["times"] for line in lines))


def _by_name(classes: Sequence[str]) -> list[str]:
    return [NAMES.get(name, name) for name in classes]
