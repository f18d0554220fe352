"""Tables for the restorer's benchmarks: a reference and clean incoming rows as frames, and what a restoration left wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import goldseam.datasets as datasets
from goldseam import Restorer
from goldseam.corruption.protocols import nearly_constant, peer_protocol
from goldseam.schema import Blocks, Schema
from goldseam.tables import Table, learn_schema

SETS: dict[str, Callable[[], datasets.Dataset]] = {
    "wdbc": datasets.load_wdbc,
    "image-segmentation": datasets.load_image_segmentation,
    "german": datasets.load_german,
    "credit-approval": datasets.load_credit_approval,
    "adult": datasets.load_adult,
    "usps01": lambda: datasets.load_usps("all", digits=(0, 1)),
    "skab": datasets.load_skab,
    "digits": datasets.load_digits,
    "pima": datasets.load_pima_diabetes,
    "ionosphere": datasets.load_ionosphere,
    "australian": datasets.load_australian,
    "waveform": lambda: datasets.load_ida_waveform("test"),
}
MOST_REFERENCE, MOST_INCOMING = 1500, 600


@dataclass(frozen=True)
class Case:
    """One split of one set: reference and incoming rows, complete and clean."""

    reference: pl.DataFrame
    incoming: pl.DataFrame
    kinds: dict[str, str]
    schema: Schema
    labels: tuple[NDArray[Any], NDArray[Any]] | None

    def blocks(self, frame: pl.DataFrame) -> Blocks:
        return Table.read(frame).encode(self.schema)

    def frame(self, blocks: Blocks, like: pl.DataFrame) -> pl.DataFrame:
        """Encoded rows as a frame; numbers may become fractions."""
        out = like.clone()
        for j, column in enumerate(self.schema.numbers):
            out = out.with_columns(pl.Series(column.name, blocks.numbers[:, j], nan_to_null=True))
        for j, column in enumerate(self.schema.categories):
            levels = [column.levels[code] if code >= 0 else None for code in blocks.codes[:, j]]
            out = out.with_columns(pl.Series(column.name, levels, dtype=like[column.name].dtype))
        return out

    def damaged(self, kind: str, seed: int) -> tuple[pl.DataFrame, NDArray[np.bool_]]:
        """The incoming rows with one of the five kinds of damage of P1; cells are the modelled ones, in table order."""
        rng = np.random.default_rng(1000 + seed)
        damage = peer_protocol(self.blocks(self.incoming), self.schema, self.blocks(self.reference), kind, rng)
        return self.frame(damage.blocks, self.incoming), damage.cells


def load_case(name: str, seed: int) -> Case:
    """Complete rows, half for the reference, without nearly constant columns."""
    data = SETS[name]().complete()
    frame = data.frame()
    order = np.random.default_rng(seed).permutation(len(frame))
    half = min(len(frame) // 2, MOST_REFERENCE)
    parts = order[:half], order[half : half + MOST_INCOMING]
    frame = frame[:, [j for j, column in enumerate(frame.columns) if frame[column].n_unique() > 1]]
    kinds = {column: data.kinds[column] for column in frame.columns}
    schema = learn_schema(Table.read(frame[parts[0]]), kinds=kinds, small_integers=0)
    steady = nearly_constant(Table.read(frame[parts[0]]).encode(schema), schema)
    kept = [schema.columns[i].name for i, drop in zip(schema.modelled_positions, steady, strict=True) if not drop]
    frame = frame.select(kept)
    kinds = {column: kinds[column] for column in kept}
    schema = learn_schema(Table.read(frame[parts[0]]), kinds=kinds, small_integers=0)
    target = None if data.target is None else np.asarray(data.target)
    labels = None if target is None else (target[parts[0]], target[parts[1]])
    return Case(frame[parts[0]], frame[parts[1]], kinds, schema, labels)


def quality(case: Case, restored: Blocks, damaged: Blocks, rows: NDArray[np.bool_] | slice = slice(None)) -> float:
    """Q of the numbers of some rows, in standard deviations of the reference."""
    after, before = (_energy(case, part)[rows].sum() for part in (restored, damaged))
    return float(1.0 - after / before) if before > 0 else float("nan")


def restored_at(model: Restorer, case: Case, table: pl.DataFrame, rows: NDArray[np.bool_], share: float) -> Blocks:
    """Every row of a table as it is restored in one where such a share of the rows is damaged as `rows` are: under the levels of
    its clean rows and as many of its damaged ones."""
    many = round((~rows).sum() * share / (1.0 - share))
    few = np.sort(np.concatenate([np.flatnonzero(~rows), np.flatnonzero(rows)[:many]]))
    levels = model.survey([table[few.tolist()]])
    return case.blocks(model.restore(table, levels=levels).table)


def quality_at(case: Case, restored: Blocks, damaged: Blocks, rows: NDArray[np.bool_], share: float) -> float:
    """Q of a table in which such a share of the rows were damaged as `rows` are, from rows `restored_at` that share."""
    after, before = _energy(case, restored), _energy(case, damaged)
    harm = (after[~rows] - before[~rows]).mean() * (1.0 - share) / share
    return float(1.0 - (after[rows].mean() + harm) / before[rows].mean())


def _energy(case: Case, blocks: Blocks) -> NDArray[np.float64]:
    """Squared deviation of each row's numbers from the truth."""
    truth = case.blocks(case.incoming).numbers
    sd = np.maximum(case.blocks(case.reference).numbers.std(axis=0), 1e-12)
    return np.asarray((((blocks.numbers - truth) / sd) ** 2).sum(axis=1))
