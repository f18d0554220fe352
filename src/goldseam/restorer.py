"""The restorer: learn from a reference, restore what comes in, keep every change on record.

What happens to a row, in order (each step is per row; see `Levels` for the three exceptions):

1. `evidence` judges it: a p-value for the row, a posterior and a p-value for every cell;
2. suspected cells are mended from the cells that are believed, gaps are filled, with intervals, or the repair is refused;
3. constraints are met, policies applied;
4. every cell that was touched, or should have been, gets a line in the seam.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OutlierMixin, TransformerMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from goldseam import model_file
from goldseam.accounts import cell_promise, costs, interval_promise, methods, row_promise, sources
from goldseam.audit import Audit, Outcome, audit, not_audited
from goldseam.conditional.layout import check_lengths
from goldseam.constraints import Constraints
from goldseam.contamination import Belief, features, judge_each_other
from goldseam.denoising import Denoiser, fit_denoiser, is_wide
from goldseam.discovery import fit_fine_cells, rehearsed_power
from goldseam.engines.local import map_row_blocks, rows_per_block
from goldseam.errors import CalibrationWarning, InputError, ModelFileError, ParameterError, warn
from goldseam.evidence import Evidence, Prior, learn_evidence
from goldseam.explanation import Explanation, explain_row
from goldseam.field import learn_field
from goldseam.mending import Levels, Mended, Mender, Policy, joined
from goldseam.model_checks import check_attributes, check_indices
from goldseam.outside import fit_outside
from goldseam.record import facts_of, histograms, seam_of
from goldseam.sampling import LEAST_ROWS, check_reference, donor_reference, donor_rows, split_rows
from goldseam.schema import Blocks, Schema
from goldseam.seam import Restoration
from goldseam.settings import check_columns, check_folds, check_levels, check_row, check_settings, group_order
from goldseam.surveying import Survey
from goldseam.tables import Table, batches_of
from goldseam.validation import Saved, fit_blocks, new_blocks
from goldseam.witnesses import TreeWitness, fit_tree_witness

__all__ = ["Levels", "Restorer"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TREE_COLUMNS: Final = (3, 60)  # a tree is tried


class Restorer(Saved, TransformerMixin, OutlierMixin, BaseEstimator):
    """Restores damaged tables.

    Parameters
    ----------
    alarm_rate : float, default 0.05
        With `error_control="row"` the share of clean rows that may be flagged; with "fdr" the share of suspected cells
        that may in fact be fine.
    error_control : {"row", "fdr"}, default "row"
        What `alarm_rate` limits. "row" flags rows one by one and suspects cells in flagged rows; "fdr" suspects cells, by a
        threshold that belongs to the whole table, and flags rows that have one. `predict` and `decision_function` judge
        every row alone: they take `alarm_rate` as a rate of rows in either case.
    method : "auto" or list of {"conditional", "boosted", "field", "tree"}, default "auto"
        Sources of evidence. "conditional" is the Gaussian expert, fast; "boosted" are boosted trees per column, slower,
        and worth it where columns depend on each other nonlinearly; "field" is the mixed field; "tree" is the attribute
        tree, which sees overwritten segments and needs one of the others beside it. "auto" tries the experts (boosted
        trees for 3 to 60 columns), keeps those that pay on calibration rows (`audit_` says what each gained), hears the tree
        on grids, and rehearses: on calibration rows that are damaged on purpose the Gaussian alone, all experts that pay, and
        the tree besides (3 to 60 columns) are tried, and the costlier is taken where it is worth more (`audit_` says how much).
    repairer : scikit-learn imputer, optional
        Fills suspected cells and gaps instead of the experts. Unfitted, it is cloned and fitted on the reference; fitted,
        it is used as it is, which needs columns that are all numbers. A model with one cannot be saved.
    kinds : mapping of column to kind, optional
        Overrules what is inferred, for example ``{"zip": "categorical"}``. Whole numbers with at most ten values are taken
        for codes of categories; where they count or rank something, declare them ``"integer"``.
    groups : mapping of name to columns, optional
        Columns that fail together (the channels of a sensor): the columns of a group stand side by side, those of no group
        follow in table order, and damage is expected in runs along that order. Runs do not stop at the end of a group. Not
        together with `grid_shape`.
    grid_shape : (int, int), optional
        The columns are the pixels of a grid, row by row.
    reference : {"clean", "contaminated"}, default "clean"
        Whether the reference itself may hold damaged rows, a tenth or so. Then nothing is learnt from rows that a
        judgement by the other rows distrusts, ranks allow for damaged calibration rows, and the audit says how many rows
        were distrusted.
    constraints : sequence of str
        What repairs must respect, for example ``["0 <= age <= 120", "total = net + tax"]``.
    policy : {"repair", "flag", "quarantine"} or mapping of column to one of them
        What becomes of suspected cells: "repair" mends them; "flag" puts them on record and changes nothing in the column, gaps
        included; "quarantine" leaves a row where the column is suspect as it came.
    costs : float or mapping of column to float, optional
        How much worse a wrong repair is than a missed one; 9 asks for a probability of damage of 90 %. Noise is decided for the
        table: denoised cells ask no cost.
    missing_values : sequence of str
        Strings that mean "not observed".
    max_levels : int, default 50
        Most states of a category.
    denoise : {"auto", False} or mapping of column to level, default "auto"
        "auto" lets `restore` and `survey` look whether rows of a table are noisy throughout, more than clean calibration
        rows ever seemed, and then draws the cells of noisy rows in to what the mixed field believes (up to 100 columns; up
        to 400 where all are numbers: then a Gaussian field).
        A mapping gives standard deviations in own units and flip rates of categories. `transform`, which sees every row
        alone, acts on given levels only.
    audit : bool, default True
        Damage held-out reference rows on purpose and measure what is found and mended.
    coverage : float, default 0.9
        Nominal coverage of the intervals of restored numbers.
    damaged_share : "auto" or float, default "auto"
        "auto" lets `restore` and `survey` look how a table is damaged. Where hardly any rows are openly damaged (values from
        anywhere, slips of scale), repairs are those that pay where damage hides and rows were flagged by mistake; from one row
        in ten on they are as bold as pays in rehearsal, where half of the rows are hurt in many ways. Values beyond the range
        that a column may have by nature are moved in full where one row in ten is off by such slips. A number is the share of the
        rows to come that are expected to be damaged: tables are not looked at, repairs are half as bold, and where few rows are
        damaged, unsure repairs are shortened by the root of these odds. The rows that are flagged do not depend on it.
    n_jobs, random_state
        As in scikit-learn. Results do not depend on `n_jobs`.
    verbose : int, default 0
        1 prints a line per stage of `fit`.

    Attributes
    ----------
    schema_ : Schema
    reference_trust_ : array
        How far each reference row is trusted; 1 for all rows of a clean reference.
    fingerprint_ : str
        Checksum of what was learnt.
    audit_ : Audit
        What it can and cannot do on this reference; print it.

    Examples
    --------
    >>> import numpy as np
    >>> from goldseam import Restorer
    >>> rng = np.random.default_rng(0)
    >>> clean = rng.normal(size=(300, 1)) + 0.1 * rng.normal(size=(300, 4))
    >>> restorer = Restorer(audit=False, method=["conditional"], random_state=0).fit(clean)
    >>> damaged = clean[:3].copy()
    >>> damaged[1, 2] = 40.0
    >>> result = restorer.restore(damaged)
    >>> lines = result.seam.to_polars()
    >>> lines.filter(lines["row"] == 1).select("column", "cause", "observed").rows()
    [('x2', 'corrupt', '40.0')]
    >>> bool(abs(result.table[1, 2] - clean[1, 2]) < 0.5)
    True
    """

    def __init__(
        self,
        *,
        alarm_rate: float = 0.05,
        error_control: Literal["row", "fdr"] = "row",
        method: str | Sequence[str] = "auto",
        repairer: Any = None,
        kinds: Mapping[str, str] | None = None,
        groups: Mapping[str, Sequence[str]] | None = None,
        grid_shape: tuple[int, int] | None = None,
        reference: Literal["clean", "contaminated"] = "clean",
        constraints: Sequence[str] = (),
        policy: str | Mapping[str, str] = "repair",
        costs: float | Mapping[str, float] | None = None,
        missing_values: Sequence[str] = (),
        max_levels: int = 50,
        denoise: str | bool | Mapping[str, float] = "auto",
        audit: bool = True,
        coverage: float = 0.9,
        damaged_share: float | Literal["auto"] = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.alarm_rate = alarm_rate
        self.error_control = error_control
        self.method = method
        self.repairer = repairer
        self.kinds = kinds
        self.groups = groups
        self.grid_shape = grid_shape
        self.reference = reference
        self.constraints = constraints
        self.policy = policy
        self.costs = costs
        self.missing_values = missing_values
        self.max_levels = max_levels
        self.denoise = denoise
        self.audit = audit
        self.coverage = coverage
        self.damaged_share = damaged_share
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # --- fit --------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from a reference table what rows look like, calibrate, and audit."""
        check_settings(self)
        grid = self.grid_shape is not None  # pixels are numbers, constant ones too
        blocks, schema = fit_blocks(
            self, X, kinds=self.kinds, max_levels=self.max_levels, missing_values=self.missing_values,
            small_integers=0 if grid else 10, declared_numbers=True, constant="number" if grid else "passthrough",
        )  # fmt: skip
        check_columns(self, schema)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        return self._fit_rows(blocks, schema, rng)

    def _fit_rows(self, blocks: Blocks, schema: Schema, rng: np.random.Generator) -> Self:
        check_reference(blocks, schema)
        start = time.perf_counter()
        self.schema_ = schema
        belief = self._belief(blocks, rng)
        self.reference_trust_ = belief.trust
        fitting, calibration, held_out = split_rows(np.flatnonzero(belief.used), rng, self.audit)
        fitting, held_out = (part[belief.sure[part]] for part in (fitting, held_out))
        distrusted = int((~belief.sure).sum())
        self._say(f"{len(blocks)} reference rows, {distrusted} distrusted, {fitting.size} to learn from", start)
        self.mender_ = self._learn(blocks, schema, fitting, calibration, belief.damaged, rng)
        self._say(
            f"learnt by {', '.join(sources(self.mender_.evidence))}; calibrated on {calibration.size} rows", start
        )
        self.reference_rows_ = fitting[donor_rows(fitting.size)]
        self.histograms_ = histograms(blocks.take(fitting), schema)
        self.offset_ = -_row_threshold(self.mender_.evidence, self.alarm_rate)
        self.row_counts_ = {
            "reference": len(blocks), "fit": fitting.size, "calibration": calibration.size,
            "audited": held_out.size, "distrusted": distrusted,
        }  # fmt: skip
        self.audit_ = self._audited(blocks, fitting, held_out, rng)
        self._say(f"audited on {held_out.size} rows", start)
        self.fingerprint_ = model_file.fingerprint(replace(self.mender_, outside=None))
        return self

    def _say(self, what: str, start: float) -> None:
        if self.verbose:
            print(f"restorer: {what} ({time.perf_counter() - start:.1f} s)")

    def _learn(
        self,
        blocks: Blocks,
        schema: Schema,
        fitting: NDArray[np.int64],
        calibration: NDArray[np.int64],
        damaged: float,
        rng: np.random.Generator,
    ) -> Mender:
        reference, rest = blocks.take(fitting), blocks.take(calibration)
        own = rng.spawn(3)
        denoiser = fit_denoiser(reference, rest, schema, own[0]) if self.denoise is not False else None
        if isinstance(self.denoise, Mapping) and denoiser is None:
            raise InputError(_cannot_denoise(schema, len(rest)))
        share = 0.5 if isinstance(self.damaged_share, str) else self.damaged_share
        evidence, practice = learn_evidence(
            reference, rest, schema, prior=self._prior(schema), witnesses=self._witnesses(reference, schema, rng),
            damaged=damaged, alarm_rate=self.alarm_rate, coverage=self.coverage, damaged_share=share, rng=rng,
            further=self._further(reference, schema, rng), **self._experts(reference, schema, denoiser, own[1]),
        )  # fmt: skip
        fine = fit_fine_cells(practice)
        if self.error_control == "fdr" and rehearsed_power(fine, practice, self.alarm_rate) == 0.0:
            warn(_shows_nothing(self.alarm_rate, len(rest)), CalibrationWarning)
        outside = None
        if self.repairer is not None:
            outside = fit_outside(self.repairer, reference, rest, schema, self.coverage, own[2])
        return Mender(
            evidence, schema, fine, donor_reference(reference, schema),
            Constraints.of(self.constraints, schema), Policy.of(self.policy, self.costs, schema), rest, self.coverage,
            denoiser, outside,
        )  # fmt: skip

    def _experts(
        self, reference: Blocks, schema: Schema, denoiser: Denoiser | None, rng: np.random.Generator
    ) -> dict[str, Any]:
        """Which experts the evidence is to have."""
        if self.method == "auto":
            return {"choose": True, "sources": [] if denoiser is None or is_wide(schema) else [denoiser.field]}
        wanted = set(self.method)
        field = [] if "field" not in wanted else [denoiser.field if denoiser else learn_field(reference, schema, rng)]
        return {"gaussian": "conditional" in wanted, "boosted": "boosted" in wanted, "sources": field}

    def _witnesses(self, reference: Blocks, schema: Schema, rng: np.random.Generator) -> tuple[TreeWitness, ...]:
        wanted = self.grid_shape is not None if self.method == "auto" else "tree" in self.method
        return (fit_tree_witness(reference, schema, self.grid_shape, rng),) if wanted else ()

    def _further(self, reference: Blocks, schema: Schema, rng: np.random.Generator) -> tuple[TreeWitness, ...]:
        """Witnesses that are heard where that is worth it."""
        few, many = TREE_COLUMNS
        tried = self.method == "auto" and self.grid_shape is None and few <= len(schema.modelled_positions) <= many
        return (fit_tree_witness(reference, schema, None, rng),) if tried else ()

    def _prior(self, schema: Schema) -> Prior:
        names = [schema.names[i] for i in schema.modelled_positions]
        if self.groups is not None:
            return Prior(order=tuple(group_order(self.groups, names)))
        return Prior(grid=None if self.grid_shape is None else tuple(self.grid_shape))

    def _belief(self, blocks: Blocks, rng: np.random.Generator) -> Belief:
        """Every row of a clean reference is believed; of a contaminated one those that the others believe."""
        if self.reference == "clean":
            return Belief(np.ones(len(blocks)))
        belief = judge_each_other(blocks, self.schema_, self._prior(self.schema_), rng)
        if belief.sure.sum() < LEAST_ROWS:
            raise InputError(
                f"Only {int(belief.sure.sum())} of {len(blocks)} reference rows can be trusted; at least {LEAST_ROWS} are "
                "needed. Hint: give a cleaner reference."
            )
        return belief

    def _audited(
        self, blocks: Blocks, fitting: NDArray[np.int64], held_out: NDArray[np.int64], rng: np.random.Generator
    ) -> Audit:
        """What was promised and what was measured on rows that neither fit nor calibration saw."""
        counts = tuple(self.row_counts_.items())
        if not held_out.size:
            if self.audit:
                warn(not_audited(self.row_counts_), CalibrationWarning)
            return Audit(rows=counts, asked=bool(self.audit))
        clean, evidence = blocks.take(held_out), self.mender_.evidence
        lines, columns = audit(self._outcome, self._filled, clean, blocks.take(fitting), self.schema_, rng)
        if self.error_control == "row":
            rate = row_promise(self.alarm_rate, self._outcome(clean).flagged)
        else:
            rate = cell_promise(self.alarm_rate, lines)
        kept = (rate, *interval_promise(self.coverage, lines))
        return Audit(
            tuple(lines), tuple(columns), tuple(costs(evidence, clean)), counts, kept, methods=methods(evidence)
        )

    def _outcome(self, blocks: Blocks) -> Outcome:
        mended = self._mended(blocks, self._survey.levels([blocks], whole=True))
        return Outcome(mended.blocks, mended.flagged, mended.suspect, mended.changed, mended.low, mended.high)

    def _filled(self, blocks: Blocks) -> Blocks:
        """Rows as `transform` leaves them: gaps filled, no table surveyed."""
        return self._mended(blocks, self._survey.levels([blocks])).blocks

    # --- restore ----------------------------------------------------------------------------------------------------

    def restore(self, table: Any, *, levels: Levels | None = None, first_row: int = 0) -> Restoration:
        """Restore a table; columns are found by name, further columns pass through.

        `levels` are those of `survey`, for a table that comes in batches; rows are numbered from `first_row`.
        """
        return self._restored(table, levels, first_row, repair=True)

    def check(self, table: Any, *, levels: Levels | None = None, first_row: int = 0) -> Restoration:
        """What a restore would touch; the table stays as it is."""
        return self._restored(table, levels, first_row, repair=False)

    def restore_stream(self, tables: Iterable[Any], *, levels: Levels | None = None) -> Iterator[Restoration]:
        """Restore a table that comes in batches. Noise, open damage, FDR thresholds need `levels` from a first pass (`survey`);
        without them no row is denoised, unless noise was given, and repairs are half as bold."""
        check_is_fitted(self)
        if levels is None and self.error_control == "fdr":
            raise ParameterError(
                'error_control="fdr" needs levels for a stream. Hint: levels=restorer.survey(batches).'
            )
        first_row = 0
        levels = self._survey.levels([]) if levels is None else levels
        for table in batches_of(tables):
            result = self.restore(table, levels=levels, first_row=first_row)
            first_row += result.incoming.n_rows
            yield result

    def survey(self, tables: Iterable[Any]) -> Levels:
        """The levels of a table that comes in batches: what cannot be known from one row alone."""
        check_is_fitted(self)
        encoded = (Table.read(table, self.missing_values).encode(self.schema_) for table in batches_of(tables))
        return self._survey.levels(encoded, whole=True)

    def fit_restore(self, X: Any, *, n_folds: int = 5) -> Restoration:
        """Restore a table without a reference: every row by a model that has not seen it.

        Afterwards the restorer itself is fitted on the whole table.
        """
        check_settings(self)
        table = Table.read(X, self.missing_values)
        n_folds = check_folds(n_folds, table.n_rows)
        self.fit(X)
        blocks = table.encode(self.schema_)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        fold = rng.permutation(len(blocks)) % n_folds
        rows = [np.flatnonzero(fold == k) for k in range(n_folds)]
        others = [np.flatnonzero(fold != k) for k in range(n_folds)]
        models = [
            clone(self).set_params(audit=False)._fit_rows(blocks.take(some), self.schema_, rng) for some in others
        ]
        levels, own = self._survey.of_folds(
            [model._survey for model in models], [blocks.take(part) for part in rows], blocks
        )
        parts = [
            model._mended(blocks.take(part), one).with_donors(some)
            for model, part, some, one in zip(models, rows, others, own, strict=True)
        ]
        return self._restoration(table, joined(parts).take(np.argsort(np.concatenate(rows))), levels, 0, repair=True)

    def transform(self, X: Any) -> Any:
        """The restored table."""
        check_is_fitted(self)
        table, blocks = new_blocks(self, X, self.schema_)
        mended = self._mended(blocks, self._survey.levels([blocks]))
        return table.decode(self.schema_, mended.blocks, self._in_schema(mended.changed))

    def _restored(self, table: Any, levels: Levels | None, first_row: int, *, repair: bool) -> Restoration:
        check_is_fitted(self)
        incoming = Table.read(table, self.missing_values)
        blocks = incoming.encode(self.schema_)
        levels = self._levels_for(blocks, levels)
        mended = self._mended(blocks, levels)
        return self._restoration(incoming, mended, levels, first_row, repair=repair)

    def _levels_for(self, blocks: Blocks, levels: Levels | None) -> Levels:
        """The levels given, or else those of the rows themselves."""
        return self._survey.levels([blocks], whole=True) if levels is None else check_levels(levels, self)

    def _mended(self, blocks: Blocks, levels: Levels) -> Mended:
        mend = self.mender_.for_table(levels)
        size = rows_per_block(len(self.schema_.modelled_positions))
        mended = joined(
            map_row_blocks(lambda rows: mend(blocks.take(rows)), len(blocks), n_jobs=self.n_jobs, block=size)
        )
        return mended.with_donors(self.reference_rows_)

    def features(self, blocks: Blocks, *, soft: bool = True) -> Floats:
        """Encoded rows after restoring, as numbers without gaps: robust units, then the levels of every category.

        With `soft`, a category that was mended, or whose level was never seen, shows the probabilities of its levels in place
        of zeros and ones.
        """
        mended = self._mended(blocks, self._survey.levels([blocks]))
        evidence = self.mender_.evidence
        unsure = mended.changed | evidence.layout.unusable(mended.blocks)  # also what a policy left, levels never seen
        rows = np.flatnonzero(unsure.any(axis=1))
        told = evidence.mend(evidence.rows(blocks.take(rows)), np.where(unsure[rows], 0.0, -np.inf))
        numbers, codes = mended.blocks.numbers.copy(), mended.blocks.codes.copy()
        numbers[rows] = np.where(np.isnan(numbers[rows]), told.values, numbers[rows])
        codes[rows] = np.where(codes[rows] < 0, told.codes, codes[rows])
        out = features(Blocks(numbers, codes), self.schema_)
        if soft and self.schema_.categories:
            width = np.diff(evidence.pool.offsets)
            first, cells = len(self.schema_.numbers), unsure[np.ix_(rows, evidence.layout.category_cells)]
            hard, levels = out[rows, first:], told.levels / np.sqrt(2.0)
            out[rows, first:] = np.where(np.repeat(cells, width, axis=1), levels, hard)
        return out

    @property
    def _survey(self) -> Survey:
        check_settings(self)  # they may have been set anew since the fit
        if isinstance(self.denoise, Mapping) and self.mender_.denoiser is None:
            raise ParameterError(
                f"denoise gives noise levels, {self.denoise!r}, but the model was fitted without a denoiser. "
                "Hint: fit it again with these levels."
            )
        adapts = self.damaged_share == "auto"
        return Survey(self.mender_, self.alarm_rate, self.error_control == "fdr", self.denoise, self.n_jobs, adapts)

    def _in_schema(self, cells: NDArray[np.bool_]) -> NDArray[np.bool_]:
        out = np.zeros((len(cells), len(self.schema_.columns)), dtype=bool)
        out[:, list(self.schema_.modelled_positions)] = cells
        return out

    def _restoration(
        self, incoming: Table, mended: Mended, levels: Levels, first_row: int, *, repair: bool
    ) -> Restoration:
        changed = self._in_schema(mended.changed)
        proposed = Table.read(incoming.decode(self.schema_, mended.blocks, changed), self.missing_values)
        seam = seam_of(incoming, proposed, mended, self.mender_.evidence.layout, self.schema_, first_row)
        facts = facts_of(self, levels, first_row, quarantined=int(mended.quarantined.sum()))
        return Restoration(
            incoming, self.schema_, mended.blocks, changed if repair else np.zeros_like(changed),
            self._in_schema(mended.suspect), seam, mended.row_p_values, facts,
            flagged=mended.flagged, quarantined=mended.quarantined,
        )  # fmt: skip

    # --- rows -------------------------------------------------------------------------------------------------------

    def p_values(self, X: Any) -> Floats:
        """How rare so odd a row is among clean ones."""
        check_is_fitted(self)
        return self.mender_.evidence.judge(new_blocks(self, X, self.schema_)[1], self.n_jobs).row_p_values

    def score_samples(self, X: Any) -> Floats:
        """Log odds that a row is clean; higher is more normal."""
        check_is_fitted(self)
        return -self.mender_.evidence.judge(new_blocks(self, X, self.schema_)[1], self.n_jobs).row_scores

    def cell_scores(self, X: Any) -> Floats:
        """Log odds that each cell is damaged, all sources together, (rows, columns of the reference); higher is worse.

        NaN where nothing was observed, and in columns that are not modelled. These are ranks of cells before any decision; what a
        restore does about them is in its seam.
        """
        check_is_fitted(self)
        scores = self.mender_.evidence.judge(new_blocks(self, X, self.schema_)[1], self.n_jobs).cell_scores
        out = np.full((len(scores), len(self.schema_.columns)), np.nan)
        out[:, list(self.schema_.modelled_positions)] = np.where(np.isfinite(scores), scores, np.nan)
        return out

    def decision_function(self, X: Any) -> Floats:
        """`score_samples` less `offset_`: below zero is flagged."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> NDArray[np.int64]:
        """1 for rows that are believed, -1 for those that are flagged at the alarm rate."""
        return np.where(self.decision_function(X) >= 0, 1, -1)

    def explain(self, table: Any, row: int, *, levels: Levels | None = None) -> Explanation:
        """Why one row of a table was, or was not, flagged: its cells beside what the others make of them.

        It judges as `restore` does: by the levels of the whole table, or by those given.
        """
        check_is_fitted(self)
        incoming = Table.read(table, self.missing_values)
        row = check_row(row, incoming.n_rows)
        blocks = incoming.encode(self.schema_)
        levels = self._levels_for(blocks, levels)
        one = blocks.take(slice(row, row + 1))
        mended = self.mender_.for_table(levels)(one).with_donors(self.reference_rows_)
        by_cell = levels.cell_p_value is not None
        rate = self.alarm_rate if by_cell else self.mender_.evidence.alarm_rate
        return explain_row(self.mender_, incoming, one, row, mended, rate, levels.cell_p_value)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """The columns of the reference, in order."""
        check_is_fitted(self)
        return np.asarray(self.schema_.names, dtype=object)

    def check_state(self) -> None:
        """A model file whose parts do not belong together is refused."""
        check_settings(self)
        if not hasattr(self, "mender_"):
            return
        check_attributes(
            self, mender_=Mender, schema_=Schema, audit_=Audit, fingerprint_=str, offset_=float, n_features_in_=int,
            reference_rows_=NDArray[np.int64], reference_trust_=NDArray[np.float64], histograms_=dict, row_counts_=dict,
        )  # fmt: skip
        check_lengths("reference rows", (len(self.mender_.reference),), self.reference_rows_)
        check_indices("reference rows", self.reference_rows_, 0, self.row_counts_["reference"])
        if self.schema_.to_dict() != self.mender_.schema.to_dict():
            raise ModelFileError("The model file's restorer was learnt from another table than its schema says.")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


# --- small parts --------------------------------------------------------------------------------------------------------


def _row_threshold(evidence: Evidence, alarm_rate: float) -> float:
    """The row score above which a row is flagged."""
    scores = evidence.calibration.row_scores
    allowed = int(np.floor(alarm_rate * (scores.size + 1) + 1e-9)) - 1
    return float(scores[-1 - allowed]) if allowed >= 0 else float("inf")


def _shows_nothing(rate: float, n_calibration: int) -> str:
    return (
        f"At a false discovery rate of {rate:g} no damaged cell of the rehearsal is suspect: {n_calibration} calibration rows "
        "of such columns cannot show so low a rate, and little or nothing will be changed. Hint: give more reference rows, "
        'raise alarm_rate, or use error_control="row".'
    )


def _cannot_denoise(schema: Schema, n_calibration: int) -> str:
    return (
        f"denoise gives noise levels, but no field could be learnt: {len(schema.numbers)} numbers among "
        f"{len(schema.modelled_positions)} columns and {n_calibration} calibration rows; at least 1 number, at most 100 "
        "columns (400 if all are numbers) and at least 20 calibration rows are needed. Hint: denoise=False."
    )
