"""`TableClassifier`: a schema, a target column and a GEM-MED classifier, in one storable object.

Numbers are centred and scaled by the schema (median, interquartile range), categories become one column per level;
a cell that is empty, or a level that was not seen, is NaN or a row of zeros.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from goldseam.errors import InputError
from goldseam.margin import GEMMEDClassifier
from goldseam.schema import Blocks, Schema
from goldseam.tables import Table, learn_schema

__all__ = ["TableClassifier", "feature_matrix"]

Floats = NDArray[np.float64]


def feature_matrix(blocks: Blocks, schema: Schema) -> Floats:
    """Scaled numbers beside one column per level.

    >>> from goldseam.schema import Column, Kind
    >>> schema = Schema((Column("a", Kind.CONTINUOUS, center=1.0, scale=2.0), Column("b", Kind.CATEGORICAL, ("x", "y"))))
    >>> feature_matrix(Blocks(np.array([[3.0]]), np.array([[1]], np.int32)), schema)
    array([[1., 0., 1.]])
    """
    centers = np.array([column.center for column in schema.numbers])
    scales = np.array([column.scale for column in schema.numbers])
    parts = [(blocks.numbers - centers) / scales]
    for j, column in enumerate(schema.categories):
        parts.append((blocks.codes[:, [j]] == np.arange(len(column.levels))).astype(np.float64))
    return np.ascontiguousarray(np.concatenate(parts, axis=1))


@dataclass(frozen=True)
class TableClassifier:
    """What `goldseam train` writes and `goldseam predict` reads."""

    target: str
    schema: Schema
    classifier: GEMMEDClassifier

    @classmethod
    def train(
        cls, frame: pl.DataFrame, target: str, kinds: Mapping[str, str], settings: Mapping[str, Any]
    ) -> TableClassifier:
        """Learn to tell the target from the other columns; every row must have a target."""
        table = Table.read(frame.drop(target))
        schema = learn_schema(table, kinds={name: kind for name, kind in kinds.items() if name != target})
        if not schema.modelled_positions:
            raise InputError(f"No column besides the target {target!r} can be used. Hint: see --kinds and --columns.")
        features = feature_matrix(table.encode(schema), schema)
        labels = frame[target].to_numpy()
        missing = "indicator" if np.isnan(features).any() else "raise"
        classifier = GEMMEDClassifier(missing=missing, **settings).fit(features, labels)
        return cls(target, schema, classifier)

    def to_dict(self) -> dict[str, Any]:
        """What a model file holds of it."""
        return {"table_classifier": 1, "target": self.target, "schema": self.schema, "classifier": self.classifier}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TableClassifier:
        """What `to_dict` took apart."""
        return cls(data["target"], data["schema"], data["classifier"])

    @property
    def classes(self) -> list[Any]:
        """The classes, in the order of the probabilities."""
        return self.classifier.classes_.tolist()

    @property
    def trust(self) -> Floats:
        """Trust of the training rows."""
        return np.asarray(self.classifier.sample_trust_)

    def predict(self, frame: pl.DataFrame) -> tuple[list[Any], Floats]:
        """The class of every row, and the probabilities of all classes."""
        features = feature_matrix(Table.read(frame).encode(self.schema), self.schema)
        if self.classifier.missing == "raise":
            features = np.where(np.isnan(features), 0.0, features)  # an empty number counts as its column's median
        if not len(features):
            return [], np.empty((0, len(self.classes)))
        probabilities = self.classifier.predict_proba(features)
        return self.classifier.predict(features).tolist(), np.asarray(probabilities)
