"""The tables of P1, ready to damage: complete rows, split by seed, without nearly constant columns."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from goldseam.corruption.damage import Damage
from goldseam.corruption.protocols import nearly_constant, peer_protocol, peer_split
from goldseam.datasets import Dataset
from goldseam.schema import Blocks, Schema
from goldseam.tables import Table, learn_schema

__all__ = ["PeerStudy", "make_peer_study"]


@dataclass(frozen=True, eq=False)
class PeerStudy:
    """Three disjoint parts of a set, as polars frames, and the schema of the reference (integers stay numbers)."""

    reference: Dataset
    calibration: Dataset
    incoming: Dataset
    schema: Schema

    def blocks(self, part: Dataset) -> Blocks:
        """The modelled cells of a part."""
        return Table.read(part.frame()).encode(self.schema)

    def damage(self, kind: str, rng: np.random.Generator) -> Damage:
        """The incoming part with one of the five kinds of damage of P1; `cells` has the columns of the frame."""
        table = Table.read(self.incoming.frame())
        damaged = peer_protocol(self.blocks(self.incoming), self.schema, self.blocks(self.reference), kind, rng)
        cells = np.zeros((table.n_rows, len(table.names)), dtype=bool)
        cells[:, list(self.schema.modelled_positions)] = damaged.cells
        return Damage(table.decode(self.schema, damaged.blocks, cells), cells, np.where(damaged.rows, kind, ""))


def make_peer_study(dataset: Dataset, seed: int) -> PeerStudy:
    """Split a set as P1 does and drop columns whose commonest value fills at least 99 % of the reference.

    >>> from goldseam.datasets import load_wdbc
    >>> study = make_peer_study(load_wdbc(), seed=0)
    >>> study.reference, study.damage("interval", np.random.default_rng(0)).cells.shape
    (Dataset('wdbc', 284 rows, 30 columns), (172, 30))
    """
    complete = dataset.complete()
    parts = [complete.take(rows) for rows in peer_split(complete.n_rows, seed)]
    schema = _schema(parts[0])
    steady = nearly_constant(Table.read(parts[0].frame()).encode(schema), schema)
    kept = [schema.columns[i].name for i, drop in zip(schema.modelled_positions, steady, strict=True) if not drop]
    reference, calibration, incoming = (_with_columns(part, kept) for part in parts)
    return PeerStudy(reference, calibration, incoming, _schema(reference))


def _schema(part: Dataset) -> Schema:
    return learn_schema(Table.read(part.frame()), kinds=part.kinds, small_integers=0)


def _with_columns(part: Dataset, names: list[str]) -> Dataset:
    return replace(part, data=part.frame().select(names), kinds={name: part.kinds[name] for name in names})
