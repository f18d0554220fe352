"""What cannot be known from one row alone, the levels of a table: its noise, how openly it is damaged, and the p-value up to
which cells are suspect.

Everything else about a row depends on the model and that row. A survey is one pass over a table, in batches if need be; its
result (`Levels`) is on record, and rows are judged one by one again under it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from goldseam.denoising import LEAST_SURVEYED, Damaged, TableNoise, given_noise, surveyed_rows
from goldseam.discovery import benjamini_hochberg, count_p_values
from goldseam.evidence.mixture import Openness, openness
from goldseam.mending import Levels, Mender
from goldseam.sampling import RowSample
from goldseam.schema import Blocks

__all__ = ["Survey"]


@dataclass(frozen=True)
class Survey:
    """A mender with what the restorer was asked: the rate, whether it holds `by_cell` (FDR), what to do about noise, and
    whether repairs are to be as bold as the table calls for (`adapts`)."""

    mender: Mender
    rate: float
    by_cell: bool
    denoise: str | bool | Mapping[str, float]
    n_jobs: int | None
    adapts: bool = False

    def levels(self, batches: Iterable[Blocks], *, whole: bool = False) -> Levels:
        """One pass over a table: its FDR threshold and, if it is a `whole` one, its noise and how openly it is damaged, both from
        a sample of its rows."""
        counts, sample = count_p_values(np.empty(0)), RowSample(surveyed_rows(self.mender.schema))
        noise = whole and self.denoise == "auto" and self.mender.denoiser is not None
        sampled = noise or (whole and self._adapts)
        for blocks in batches if self.by_cell or sampled else ():
            if sampled:
                sample.add(blocks)
            if self.by_cell:
                counts += self._counted(blocks, None)
        found = self._noise_of(sample.rows) if noise and sample.rows is not None else self._given_noise()
        if self.by_cell and found is not None and found.acts and sample.rows is not None:
            counts = self._counted(sample.rows, found)
        threshold = benjamini_hochberg(counts, self.rate) if self.by_cell else None
        openly = self._openness([self], [sample.rows], [found]) if whole and sample.rows is not None else None
        return Levels(threshold, found, *(openly or ()))

    def of_folds(self, folds: Sequence[Survey], parts: Sequence[Blocks], table: Blocks) -> tuple[Levels, list[Levels]]:
        """The levels of a table whose parts are judged by models of their own, and the same in the terms of each model.

        Whether the table is noisy is decided once, by the model of the whole; how noisy, by each model on the whole table.
        The FDR threshold is that of all parts together.
        """
        noise = self.levels([table], whole=True).noise
        apart = noise is not None and noise.acts and not noise.given
        noises = [fold.levels([table], whole=True).noise if apart else noise for fold in folds]
        threshold = None
        if self.by_cell:
            counts = [fold._counted(part, one) for fold, part, one in zip(folds, parts, noises, strict=True)]
            threshold = benjamini_hochberg(np.sum(counts, axis=0), self.rate)
        openly = self._openness(folds, parts, noises) or ()
        return Levels(threshold, noise, *openly), [Levels(threshold, one, *openly) for one in noises]

    @property
    def _adapts(self) -> bool:
        return self.adapts and self.mender.evidence.knows_ways

    def _openness(
        self, folds: Sequence[Survey], parts: Sequence[Blocks], noises: Sequence[TableNoise | None]
    ) -> Openness | None:
        """How openly a table is damaged whose parts are judged by models of their own, noisy rows apart; None where the others
        are few."""
        if not all(fold._adapts for fold in folds):
            return None
        menders = [fold.mender for fold in folds]
        asked = [
            mender.without_noisy(part, noise, self.n_jobs)
            for mender, part, noise in zip(menders, parts, noises, strict=True)
        ]
        if sum(map(len, asked)) < LEAST_SURVEYED:
            return None
        models = [mender.evidence for mender in menders]
        counts = [model.class_counts(part, self.n_jobs) for model, part in zip(models, asked, strict=True)]
        return openness([model.outlines for model in models], counts)

    def _counted(self, blocks: Blocks, noise: TableNoise | None) -> NDArray[np.int64]:
        """How many observed cells have which p-value."""
        found = self.mender.evidence_for(noise).judge(blocks, self.n_jobs)
        p_values = self.mender.fine.p_values(found.row_scores, found.cell_scores)
        return count_p_values(p_values[np.isfinite(found.cell_scores)])

    def _noise_of(self, rows: Blocks) -> TableNoise:
        """The noise of some rows, surveyed anew each time that more is known of the cells that are damaged besides."""
        mender, damaged = self.mender, Damaged.nothing(rows)
        assert mender.denoiser is not None
        found = mender.denoiser.survey(rows, damaged)
        if found.acts:
            damaged = replace(damaged, clean=mender.hidden(mender.evidence.judge(rows, self.n_jobs)))
            found = mender.denoiser.survey(rows, damaged)
        if found.acts:
            damaged = mender.damaged_besides(rows, damaged, found, self.n_jobs)[0]
            found = mender.denoiser.survey(rows, damaged)
        if found.acts:
            found = mender.damaged_besides(rows, damaged, found, self.n_jobs)[1]
            found = mender.with_alarms(found, self.n_jobs)
        return found

    def _given_noise(self) -> TableNoise | None:
        if not isinstance(self.denoise, Mapping):
            return None
        return given_noise(self.mender.schema, self.denoise, damaged_p_value=self.rate)
