"""The fitted separation on plain arrays: scores, decisions and outlines, without tables and without an estimator.

`SeparationModel` is what `CorruptionSeparator` learns. Everything it returns for a row depends on the model and that
row alone. Other parts of the package that want the evidence of the tree take it from here (`scores`, `evidence`).

| S | function |
|---|---|
| scores and entry levels (S3, S5.4) | `SeparationModel.scores` |
| decision, mask, refinement (S5, S6.4, S7, S-25 to S-27) | `SeparationModel.find` |
| limits (S6) | `recursion_limit`, `alarm.conformal_limit` |
| filling (S8) | `SeparationModel.fill` |
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldseam.errors import ModelFileError
from goldseam.separation import search
from goldseam.separation.alarm import estimate_gamma, invert_alarm_rate
from goldseam.separation.impute import Filled, fill_from_context, fill_from_siblings, fill_with
from goldseam.separation.reference import Reference, in_row_blocks
from goldseam.separation.refine import ResidualProfile, refined_mask
from goldseam.separation.regression import ContextRegression, regressed
from goldseam.separation.score_kernels import part_ties
from goldseam.separation.scores import MemberRadii, p_values
from goldseam.separation.segments import SegmentEvidence, outline

__all__ = ["Evidence", "Found", "Scores", "SeparationModel", "recursion_limit"]

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]

SCORE_BLOCK = 512  # rows scored at a time


@dataclass(frozen=True, eq=False)
class Scores:
    """Of every row: `node_p_values` (rows x nodes), `cell_levels` (rows x columns), `row_levels` (S-10)."""

    node_p_values: FloatArray
    cell_levels: FloatArray
    row_levels: FloatArray


@dataclass(frozen=True, eq=False)
class Found:
    """What was decided about every row.

    `searched`: flagged by the search alone. `flagged`: and still with a mask after refinement. `levels`: the score
    that is calibrated; infinite where an outline came out empty. `probability` of every cell to be overwritten: from
    the segment posterior, else the mask itself. `context`: nearest reference rows over the believed cells where the
    outline has found them already, -1 elsewhere.
    """

    scores: Scores
    searched: BoolArray
    flagged: BoolArray
    levels: FloatArray
    mask: BoolArray
    probability: FloatArray
    nodes: BoolArray
    context: IntArray | None = None


@dataclass(frozen=True, eq=False)
class Evidence:
    """Evidence of the tree for whoever combines sources, nothing decided.

    `row_level` and `cell_levels` as in `Scores`; `probability` of every cell and `segment_evidence` of the row (log
    mean likelihood ratio over boxes) from the segment posterior started at the row's own first cells.
    """

    row_level: FloatArray
    cell_levels: FloatArray
    node_p_values: FloatArray
    probability: FloatArray
    segment_evidence: FloatArray


@dataclass(frozen=True, eq=False)
class SeparationModel:
    """Reference, member radii, limit and refinement: all that a decision needs.

    With `more_fractions` the distances are ranked in several ways, and the rarest score of a node counts.
    """

    reference: Reference
    member_radii: NDArray[np.float32]
    members: MemberRadii
    n_neighbors: int
    rule: str
    form: str
    limit: float
    segments: SegmentEvidence | None = None
    residuals: ResidualProfile | None = None
    regression: ContextRegression | None = None
    trust: FloatArray | None = None
    more_fractions: tuple[float, ...] = ()
    more_members: tuple[MemberRadii, ...] = ()

    def check_state(self) -> None:
        """A file whose parts are of different sizes is refused: compiled loops rely on them."""
        n, d = self.reference.values.shape
        p, nodes = int((~self.reference.is_category).sum()), self.reference.tree.n_nodes
        told: list[tuple[Any, tuple[int, ...]]] = [(self.member_radii, (n, nodes))]
        for members in (self.members, *self.more_members):
            told += [(members.radii, (n, nodes)), (members.above, (n + 1, nodes))]
        if self.segments is not None:
            told += [(getattr(self.segments, name), (d,)) for name in ("spread", "log_slab", "n_levels", "block")]
        if self.regression is not None and self.regression.weight:
            told.append((self.regression.precision, (p, p)))
        if self.trust is not None:
            told.append((self.trust, (n,)))
        if self.residuals is not None:
            told += [(getattr(self.residuals, name), (d,)) for name in ("scale", "low", "high")]
        for array, shape in told:
            if array.shape != shape:
                raise ModelFileError(f"The model file's separation needs an array of shape {shape}; got {array.shape}.")
        if self.segments is not None and not self._has_levels(self.segments.n_levels):
            raise ModelFileError("The model file's segments know other levels than its reference rows have.")
        if self.rule not in ("confirmed", "paper") or self.form not in ("continuous", "counted", "paper"):
            raise ModelFileError(f"The model file's separation has no rule {self.rule!r} with scores {self.form!r}.")
        if not 1 <= self.n_neighbors <= n or len(self.more_fractions) != len(self.more_members):
            raise ModelFileError(
                f"The model file's separation needs 1 to {n} neighbours, and radii for each ranked fraction; got "
                f"{self.n_neighbors}, {len(self.more_fractions)} and {len(self.more_members)}."
            )

    def _has_levels(self, n_levels: IntArray) -> bool:
        """Whether these are the levels that occur in the reference rows, 0 for numbers."""
        values, is_category = self.reference.values, self.reference.is_category
        seen = is_category & ~np.isnan(values).all(axis=0)
        highest = np.nanmax(values[:, seen], axis=0, initial=-1.0)
        return np.array_equal(n_levels[seen], highest + 1.0) and not n_levels[~is_category].any()

    @classmethod
    def learn(
        cls,
        reference: Reference,
        *,
        n_neighbors: int,
        rule: str,
        form: str,
        trust: FloatArray | None = None,
        more_fractions: tuple[float, ...] = (),
        n_jobs: int | None = None,
    ) -> SeparationModel:
        """Member radii and nothing more: no limit yet, so nothing is flagged."""
        rows = np.arange(len(reference))
        radii = []
        for used in (reference, *(replace(reference, ranked_fraction=fraction) for fraction in more_fractions)):
            found = used.radii(reference.values, n_neighbors, members=rows, n_jobs=n_jobs)
            radii.append(np.where(np.isnan(found), np.float32(0), found))  # what a member does not show is no evidence
        members, *more = (MemberRadii.sort(found, trust) for found in radii)
        model = cls(reference, radii[0], members, n_neighbors, rule, form, 0.0, trust=trust)
        return replace(model, more_fractions=tuple(more_fractions), more_members=tuple(more))

    @cached_property
    def views(self) -> tuple[tuple[Reference, MemberRadii], ...]:
        """The reference under every ranked fraction, each with the radii of its members."""
        more = (replace(self.reference, ranked_fraction=fraction) for fraction in self.more_fractions)
        return ((self.reference, self.members), *zip(more, self.more_members, strict=True))

    def with_limit(self, limit: float) -> SeparationModel:
        """The same model with another limit: rows whose level is strictly below it are flagged."""
        return replace(self, limit=float(limit))

    def scores(self, values: FloatArray, *, members: IntArray | None = None, n_jobs: int | None = None) -> Scores:
        """Node scores and entry levels. `members[i]` is the reference row that row i is, or -1."""
        tree, cells, p = (
            self.reference.tree,
            np.empty(values.shape),
            np.ones((len(values), self.reference.tree.n_nodes)),
        )
        views = [
            (reference.radii(values, self.n_neighbors, members=members, n_jobs=n_jobs), known)
            for reference, known in self.views
        ]

        def score(b: slice) -> None:
            for radii, known in views:  # the rarest counts; nodes that show nothing (NaN) are normal
                scored = p_values(self.form, radii[b], known)
                p[b] = np.where(np.isnan(radii[b]), p[b], np.minimum(p[b], scored))
            if members is not None:
                self._take_itself_out(p[b], members[b])
            if self.form == "continuous":
                part_ties(p[b])
            cells[b] = (
                search.paper_cell_levels(tree, p[b]) if self.rule == "paper" else search.entry_levels(tree, p[b])[1]
            )

        in_row_blocks(len(values), n_jobs, score, SCORE_BLOCK)
        cells[np.isnan(values)] = np.inf
        return Scores(p, cells, cells.min(axis=1))

    def _take_itself_out(self, p: FloatArray, members: IntArray) -> None:
        """A member is not counted against itself: (1 + count) / (N + 1) becomes count / N."""
        rows, n = members >= 0, self.members.total
        own = 1.0 if self.trust is None else self.trust[members[rows]][:, None]
        if self.form == "paper":
            p[rows] = np.maximum(p[rows] * n - own, 0.0) / (n - own)
        else:
            p[rows] = np.clip((p[rows] * (n + 1) - own) / (n + 1 - own), 1.0 / (n + 1), 1.0)

    def find(self, values: FloatArray, *, members: IntArray | None = None, n_jobs: int | None = None) -> Found:
        """Flag rows and outline cells. The outline is drawn for rows that the search flags."""
        scores = self.scores(values, members=members, n_jobs=n_jobs)
        nodes = self.declared(scores)
        searched = np.asarray(nodes.any(axis=1))
        levels, mask, probability = scores.row_levels.copy(), np.zeros(values.shape, bool), np.zeros(values.shape)
        rows, context = np.flatnonzero(searched), None
        skips = None if members is None else members[rows]
        mask[rows] = search.cells_of_nodes(self.reference.tree, nodes[rows]) & ~np.isnan(values[rows])
        probability[rows] = mask[rows]
        if self.segments is not None and len(rows):
            seed = self._seed(scores, rows)
            drawn = outline(self.reference, self.segments, values[rows], seed, members=skips, n_jobs=n_jobs)
            mask[rows], probability[rows] = drawn.mask, drawn.probability
            context = np.full((len(values), drawn.donors.shape[1]), -1, dtype=np.int64)
            context[rows] = drawn.donors
            levels[rows] = np.where(drawn.mask.any(axis=1), levels[rows], np.inf)
        elif self.residuals is not None and len(rows):
            mask[rows] = refined_mask(self.reference, self.residuals, values[rows], mask[rows], skips, n_jobs)
            probability[rows] = mask[rows]
            levels[rows] = np.where(mask[rows].any(axis=1), levels[rows], np.inf)
        return Found(scores, searched, np.asarray(mask.any(axis=1)), levels, mask, probability, nodes, context)

    def levels(self, values: FloatArray, *, members: IntArray | None = None, n_jobs: int | None = None) -> FloatArray:
        """The calibrated score of every row: its entry level, infinite where its outline comes out empty."""
        scores = self.scores(values, members=members, n_jobs=n_jobs)
        return self._gated(scores, values, members, n_jobs)[0]

    def _gated(
        self, scores: Scores, values: FloatArray, members: IntArray | None, n_jobs: int | None
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        rows = np.arange(len(values))
        if self.segments is None:
            return scores.row_levels, np.zeros(values.shape), np.zeros(len(values))
        seed = self._seed(scores, rows)
        drawn = outline(self.reference, self.segments, values, seed, members=members, n_jobs=n_jobs)
        levels = np.where(drawn.mask.any(axis=1), scores.row_levels, np.inf)
        return levels, drawn.probability, drawn.evidence

    def _seed(self, scores: Scores, rows: IntArray) -> BoolArray:
        """The first cells of a row to be declared, whatever the limit."""
        first = scores.row_levels[rows, None]
        return np.asarray((scores.cell_levels[rows] <= first) & np.isfinite(first))

    def evidence(self, values: FloatArray, *, members: IntArray | None = None, n_jobs: int | None = None) -> Evidence:
        """All evidence about rows and cells, for every row, nothing decided."""
        scores = self.scores(values, members=members, n_jobs=n_jobs)
        _, probability, strength = self._gated(scores, values, members, n_jobs)
        return Evidence(scores.row_levels, scores.cell_levels, scores.node_p_values, probability, strength)

    def declared(self, scores: Scores) -> BoolArray:
        """Nodes that the search declares at the model's limit."""
        tree, p = self.reference.tree, scores.node_p_values
        if self.rule == "paper":
            return search.declared_nodes(tree, p < self.limit, "paper")
        declared, rows = np.zeros(p.shape, dtype=bool), np.flatnonzero(scores.row_levels < self.limit)
        declared[rows] = search.confirmed_nodes(tree, search.entry_levels(tree, p[rows])[0], self.limit)
        return declared

    def fill(
        self,
        values: FloatArray,
        found: Found,
        imputer: Any,
        n_donors: int,
        *,
        members: IntArray | None = None,
        n_jobs: int | None = None,
    ) -> Filled:
        """Fill the cells found, and the missing ones (S8)."""
        if not isinstance(imputer, str):
            return fill_with(imputer, values, found.mask)
        if imputer.startswith("sibling"):
            filled = fill_from_siblings(
                self.reference,
                self.member_radii,
                values,
                found.nodes,
                self.n_neighbors,
                nearest=imputer == "sibling-nearest",
                members=members,
            )
            gaps = fill_from_context(
                self.reference, filled.values, np.zeros_like(found.mask), n_donors, members=members, n_jobs=n_jobs
            )
            return replace(filled, values=gaps.values, refused=filled.refused | gaps.refused)
        filled = fill_from_context(
            self.reference,
            values,
            found.mask,
            n_donors,
            medoid=imputer == "context-medoid",
            members=members,
            trust=self.trust,
            context=found.context,
            n_jobs=n_jobs,
        )
        if imputer != "context-regression":
            return filled
        if self.regression is None:
            raise ValueError("The model was learnt without a regression.")
        hidden = found.mask | np.isnan(values)
        result = regressed(self.reference, self.regression, filled.values, hidden, filled.donors, self.trust, n_jobs)
        return replace(filled, values=result)


def recursion_limit(model: SeparationModel, clean: Scores, target: float) -> float:
    """Limit by inverting the recursion, with γ estimated on clean rows at every level that is tried (S6.3)."""
    tree, p = model.reference.tree, clean.node_p_values
    level = invert_alarm_rate(
        tree, target, len(model.reference), lambda tau: estimate_gamma(tree, p <= tau)[0], model.rule
    )
    return float(np.nextafter(level, np.inf)) if level > 0 else 0.0
