"""The reference rows, laid out for the kernels: radii at every node, nearest rows over some of the cells.

Values are float64 arrays rows x columns in table order and in their own units; categories are codes, NaN is not
observed. Distances are taken on scaled float32 copies in tree order, by one kernel for reference and query rows
alike (S3.3). A number deviates by its squared scaled difference, a category by 0 or 1 (S9.2).

| equation | function |
|---|---|
| (S-2), S3.1 radii, S9.1 missing cells | `Reference.radii` |
| nearest rows over the context (S8.2) | `Reference.nearest` |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from goldseam.engines.local import map_row_blocks
from goldseam.errors import ModelFileError
from goldseam.schema import UNSEEN
from goldseam.separation.fill_kernels import fill_cells
from goldseam.separation.kernels import pack_lanes, scale_rows, sum_radii
from goldseam.separation.nearest_kernels import nearest_rows
from goldseam.separation.network import RankedPlan, ranked_plan
from goldseam.separation.ranked_kernels import ranked_radii
from goldseam.separation.scores import kept_deviations
from goldseam.separation.tree import AttributeTree

__all__ = ["Reference", "in_row_blocks"]

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]

BLOCK = 256  # rows a thread takes at a time
FARTHEST = 1e18  # scaled values whose squares float32 can still hold
FARTHEST_LAID = 1e150  # the same for float64
MOST_LEVELS = 1_000_000  # of a category in a model file
N_FILL = 10  # context neighbours that fill missing cells before a ranked scan (S9.1)


def in_row_blocks(n_rows: int, n_jobs: int | None, work: Callable[[slice], None], block: int = BLOCK) -> None:
    """Call `work` on slices of the rows, in threads. What a row gets must not depend on its slice."""
    if n_rows:
        map_row_blocks(work, n_rows, n_jobs=n_jobs, block=block)


@dataclass(frozen=True, eq=False)
class Reference:
    """Rows that new rows are compared with, and how a cell is scaled and compared."""

    values: FloatArray
    tree: AttributeTree
    center: FloatArray
    scale: FloatArray
    is_category: BoolArray
    ranked_fraction: float = 1.0

    def check_state(self) -> None:
        """A file whose rows, tree and scaling do not belong together is refused."""
        d = self.tree.n_columns
        shapes = {self.values.shape[1:], self.center.shape, self.scale.shape, self.is_category.shape}
        if self.values.dtype != np.float64 or len(self.values) < 2 or shapes != {(d,)}:
            raise ModelFileError(f"The model file's reference must have {d} columns in rows, centre, scale and kinds.")
        if (self.scale <= 0).any():
            raise ModelFileError(f"The model file's reference must have positive scales; got {self.scale.min()}.")
        codes = self.values[:, self.is_category]
        wrong = ~np.isnan(codes) & ((codes < UNSEEN) | (codes >= MOST_LEVELS) | (codes != np.floor(codes)))
        if wrong.any():
            raise ModelFileError(
                f"The model file's reference has the code {codes[wrong][0]:g}; levels are whole numbers below {MOST_LEVELS:,}."
            )

    def __len__(self) -> int:
        return len(self.values)

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return self.values.shape[1]

    @cached_property
    def caps(self) -> NDArray[np.float32]:
        """Largest squared deviation of a cell, in tree order: infinite for numbers, 1 for categories."""
        return np.where(self.is_category, 1.0, np.inf).astype(np.float32)[self.tree.order]

    @cached_property
    def kept(self) -> IntArray:
        """(S-1) Number of deviations kept at every node."""
        return kept_deviations(self.tree.size, self.ranked_fraction)

    @cached_property
    def has_gaps(self) -> bool:
        """Whether cells of the reference are missing."""
        return bool(np.isnan(self.values).any())

    @cached_property
    def rows(self) -> FloatArray:
        """The values, contiguous and writable: arrays of a file may be neither, and kernels are compiled for both."""
        return np.require(self.values, requirements=("C", "W"))

    @cached_property
    def lanes(self) -> NDArray[np.float32]:
        """Scaled rows in the layout of the kernels; missing cells as 0."""
        return pack_lanes(np.nan_to_num(self.scaled(self.values)), 0.0)

    @cached_property
    def seen(self) -> NDArray[np.float32]:
        """1 where a cell was observed, in the same layout; empty when all were."""
        if not self.has_gaps:
            return np.empty(0, dtype=np.float32)
        return pack_lanes((~np.isnan(self.values))[:, self.tree.order].astype(np.float32), 0.0)

    @cached_property
    def links(self) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """The tree as the kernels want it: copies, because arrays of a file may be read-only."""
        tree = self.tree
        return np.array(tree.start), np.array(tree.stop), np.array(tree.first_child), np.array(tree.n_children)

    @cached_property
    def scaling(self) -> tuple[IntArray, FloatArray, FloatArray]:
        """Order, centre and scale of the columns, writable as well."""
        return np.array(self.tree.order), np.array(self.center), np.array(self.scale)

    @cached_property
    def plan(self) -> RankedPlan:
        """Steps of the ranked scan."""
        return ranked_plan(self.tree, self.kept)

    @cached_property
    def ranked_lanes(self) -> NDArray[np.float32]:
        """Scaled rows with missing cells filled, in the layout of the ranked scan."""
        members = np.arange(len(self))
        return pack_lanes(self._planned(self.scaled(self.filled(self.values, members)), np.inf), 0.0)

    def scaled(self, values: FloatArray) -> NDArray[np.float32]:
        """Scaled rows in tree order; NaN stays.

        >>> tree = AttributeTree.interval(2)
        >>> rows = np.array([[1.0, 5.0]])
        >>> Reference(rows, tree, np.zeros(2), np.array([2.0, 1.0]), np.zeros(2, bool)).scaled(rows)
        array([[0.5, 5. ]], dtype=float32)
        """
        result = np.empty(values.shape, dtype=np.float32)
        scale_rows(np.ascontiguousarray(values), *self.scaling, FARTHEST, result)
        return result

    @cached_property
    def geometry(self) -> IntArray:
        """Columns as they lie: row-major on a grid, else on the line of the tree order."""
        return np.arange(self.n_columns) if self.tree.shape is not None else np.array(self.tree.order)

    def laid(self, values: FloatArray) -> FloatArray:
        """Scaled rows in the order of the geometry, categories as codes; NaN stays."""
        result = np.empty(values.shape)
        center, scale = np.where(self.is_category, 0.0, self.center), np.where(self.is_category, 1.0, self.scale)
        scale_rows(np.ascontiguousarray(values), self.geometry, center, scale, FARTHEST_LAID, result)
        return result

    @cached_property
    def laid_rows(self) -> FloatArray:
        """The reference rows themselves, laid out so."""
        return self.laid(self.values)

    def radii(
        self, values: FloatArray, k: int, *, members: IntArray | None = None, n_jobs: int | None = None
    ) -> NDArray[np.float32]:
        """K-th smallest squared distance to the reference at every node (S3.1); NaN where nothing was observed.

        `members[i]` is the reference row that row i is, or -1: a row is not its own neighbour.
        """
        skips = _skips(members, len(values))
        out = np.empty((len(values), self.tree.n_nodes), dtype=np.float32)
        if self.ranked_fraction >= 1.0:
            caps, lanes, seen, shape = self.caps, self.lanes, self.seen, self.links
            in_row_blocks(
                len(values),
                n_jobs,
                lambda b: sum_radii(self.scaled(values[b]), skips[b], caps, lanes, seen, len(self), *shape, k, out[b]),
            )
            return out
        rows = self._planned(self.scaled(self.filled(values, skips, n_jobs)), 0.0)
        lanes, plan = self.ranked_lanes, self.plan
        caps = np.where(plan.columns >= 0, self.caps[plan.columns], np.float32(np.inf))
        steps, slots, nodes = plan.steps, plan.slots, self.tree.n_nodes
        in_row_blocks(
            len(values),
            n_jobs,
            lambda b: ranked_radii(rows[b], skips[b], caps, lanes, len(self), steps, slots, nodes, k, out[b]),
        )
        out[self._unobserved(values)] = np.nan
        return out

    def nearest(
        self,
        values: FloatArray,
        ignored: BoolArray,
        k: int,
        *,
        members: IntArray | None = None,
        n_jobs: int | None = None,
    ) -> tuple[IntArray, NDArray[np.float32]]:
        """Indices and squared distances of the k nearest reference rows over cells observed and not `ignored`."""
        skips, order = _skips(members, len(values)), self.scaling[0]
        index = np.empty((len(values), k), dtype=np.int64)
        distance = np.empty((len(values), k), dtype=np.float32)
        caps, lanes, seen = self.caps, self.lanes, self.seen

        def work(b: slice) -> None:
            hidden = np.take(ignored[b], order, axis=1)
            nearest_rows(
                self.scaled(values[b]), hidden, skips[b], caps, lanes, seen, len(self), k, index[b], distance[b]
            )

        in_row_blocks(len(values), n_jobs, work)
        return index, distance

    def filled(self, values: FloatArray, members: IntArray | None = None, n_jobs: int | None = None) -> FloatArray:
        """Missing cells filled from context neighbours: for ranked distances, which break on omitted cells (S9.1)."""
        missing = np.isnan(values)
        rows = np.flatnonzero(missing.any(axis=1))
        if not len(rows):
            return values
        skips = None if members is None else members[rows]
        index, _ = self.nearest(values[rows], missing[rows], min(N_FILL, len(self) - 1), members=skips, n_jobs=n_jobs)
        result = values.copy()
        result[rows] = self.completed(values[rows], missing[rows], index, n_jobs=n_jobs)
        return result

    def completed(
        self,
        values: FloatArray,
        cells: BoolArray,
        donors: IntArray,
        trust: FloatArray | None = None,
        n_jobs: int | None = None,
    ) -> FloatArray:
        """Rows with their `cells` filled: mean of the donors' numbers, most frequent of their categories.

        Donors count by their trust; -1 is no donor. Where none was observed, the column's typical value is taken.
        """
        result = np.array(values, order="C")
        weights = np.ones(len(self)) if trust is None else trust
        rows, levels, typical = self.rows, self.n_levels, self.typical
        in_row_blocks(
            len(values),
            n_jobs,
            lambda b: fill_cells(result[b], cells[b], donors[b], rows, weights, levels, typical),
        )
        return result

    @cached_property
    def n_levels(self) -> IntArray:
        """Number of levels of a category that occurs, 0 for numbers."""
        return np.where(self.is_category, self.range[1] + 1, 0).astype(np.int64)

    def scaled_numbers(self, values: FloatArray) -> FloatArray:
        """Scaled columns of numbers alone, in table order; gaps at the column's mean."""
        columns = ~self.is_category
        filled = np.where(np.isnan(values), self.typical, values)[:, columns]
        return np.ascontiguousarray((filled - self.center[columns]) / self.scale[columns])

    @cached_property
    def numbers(self) -> FloatArray:
        """The reference rows themselves, so scaled."""
        return self.scaled_numbers(self.values)

    @cached_property
    def range(self) -> tuple[FloatArray, FloatArray]:
        """Smallest and largest value of every column."""
        return np.nanmin(self.values, axis=0), np.nanmax(self.values, axis=0)

    @cached_property
    def typical(self) -> FloatArray:
        """Mean of a column of numbers, most frequent code of a category."""
        result = np.nanmean(self.values, axis=0)
        for j in np.flatnonzero(self.is_category):
            levels, counts = np.unique(self.values[~np.isnan(self.values[:, j]), j], return_counts=True)
            result[j] = levels[np.argmax(counts)]
        return result

    def _planned(self, scaled: NDArray[np.float32], padding: float) -> NDArray[np.float32]:
        columns = self.plan.columns
        return np.ascontiguousarray(np.where(columns >= 0, scaled[:, columns], np.float32(padding)))

    def _unobserved(self, values: FloatArray) -> BoolArray:
        """Nodes of which a row shows no cell."""
        observed = (~np.isnan(values))[:, self.tree.order]
        counts = np.concatenate((np.zeros((len(values), 1)), np.cumsum(observed, axis=1)), axis=1)
        return counts[:, self.tree.stop] == counts[:, self.tree.start]


def _skips(members: IntArray | None, n_rows: int) -> IntArray:
    return np.full(n_rows, -1, dtype=np.int64) if members is None else np.ascontiguousarray(members, dtype=np.int64)
