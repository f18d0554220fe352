"""The fields of all classes together: training rows made distinct, one field per class, new rows scored (G4.1, G5.3).

Beyond the specification, `proven_field`: the part of the field that an rbf machine acts on where the loss does not count.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldseam.errors import DataWarning, InputError, ModelFileError
from goldseam.margin import entropy
from goldseam.margin.isolation import Isolation, learn_isolation
from goldseam.margin.repetition import Repetition, learn_repetition
from goldseam.margin.thresholds import FEWEST_ROWS, hangs_together, parts
from goldseam.margin.trust import FIELD_LIMITS, ClassField, FieldSettings, Space, fit_class_field, lowered
from goldseam.model_checks import check_indices

__all__ = ["Fields", "TrainingRows", "fit_fields", "merge_copies", "proven_field", "warn_about_fields"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class TrainingRows:
    """Distinct training rows: `first` are their positions in the caller's table, `weights` sum over the copies.

    `counted` are the caller's rows that take part (positive weight, something observed); `inverse` leads from those to
    the distinct rows.
    """

    first: Ints
    codes: Ints
    weights: Floats
    groups: Ints | None
    counted: Ints
    inverse: Ints

    def spread(self, values: Floats, fill: Floats) -> Floats:
        """Values of distinct rows for all of the caller's rows; rows that did not take part get `fill`."""
        full = fill.copy()
        full[self.counted] = values[self.inverse]
        return full


def merge_copies(X: Floats, codes: Ints, weights: Floats, groups: Ints | None, seed: int) -> TrainingRows:
    """Make the rows of each class distinct. Neither row order nor copies matter for the result."""
    counted = np.flatnonzero((weights > 0) & ~np.isnan(X).all(axis=1))
    found = entropy.distinct_rows(np.column_stack([X[counted], codes[counted]]), seed)
    first = counted[found.first]
    merged: Floats = np.bincount(found.inverse, weights[counted], minlength=len(first)).astype(np.float64)
    merged_groups = None
    if groups is not None:
        merged_groups = np.full(len(first), np.iinfo(np.int64).max)
        np.minimum.at(merged_groups, found.inverse, groups[counted])
    return TrainingRows(first, codes[first], merged, merged_groups, counted, found.inverse)


@dataclass(frozen=True)
class Fields:
    """One field per class, the readings that repeat and those that lie apart (None where that is not looked at)."""

    classes: tuple[ClassField, ...]
    repetition: Repetition | None
    isolation: Isolation | None = None

    def check_for(self, n_columns: int, n_rows: int, references: Sequence[Floats] | None) -> None:
        """A model file whose fields are of another table, or ask for more neighbours than there are, is refused; without
        `references` those are kernel values."""
        for view in (self.repetition, self.isolation):
            if view is not None:
                view.check_for(n_columns, len(self.classes))
        for field in self.classes:
            check_indices("reference rows", field.reference, 0, n_rows)
            if not 0 <= field.n_neighbors <= len(field.reference):
                raise ModelFileError(
                    f"The model file's field asks for {field.n_neighbors} neighbours among {len(field.reference)} rows."
                )
        got = None if references is None else [rows.shape for rows in references]
        if got is not None and got != [(len(field.reference), n_columns) for field in self.classes]:
            raise ModelFileError(f"The model file's fields need reference rows of {n_columns} columns; got {got}.")

    def scores(self, rows: Floats, references: Sequence[Floats], n_jobs: int | None) -> Floats:
        """g of new rows against every class, shape (classes, rows)."""
        scores = []
        for field, reference in zip(self.classes, references, strict=True):
            neighbourhood = entropy.Neighbourhood.of(reference)
            sums = entropy.neighbour_sums(rows, neighbourhood, field.n_neighbors, n_jobs=n_jobs)
            scores.append(field.score(sums))
        return self.lowered(np.stack(scores), rows)

    def gram_scores(self, gram: Floats, diagonal: Floats) -> Floats:
        """As `scores`, from kernel values of new rows against the training rows, whose K(x, x) must be all the same."""
        if np.ptp(diagonal) > 1e-9 * max(1.0, float(np.abs(diagonal).max())):
            raise InputError(
                f"Trust of new rows needs K(x, x), but the training diagonal is not constant (from {diagonal.min():g} to "
                f"{diagonal.max():g}). Hint: use a callable kernel, or normalise the kernel."
            )
        scores = []
        for field in self.classes:
            squares = entropy.gram_squares(gram[:, field.reference], diagonal[:1], diagonal[field.reference])
            scores.append(field.score(entropy.squared_distance_sums(squares, field.n_neighbors)))
        return np.stack(scores)

    def lowered(self, scores: Floats, rows: Floats) -> Floats:
        """Scores (classes, rows) or less, where the readings of a row repeat or lie apart."""
        for view in (self.repetition, self.isolation):
            scores = scores if view is None else lowered(scores, view.scores(rows))
        return scores

    def each(self, name: str) -> NDArray[Any]:
        """One figure of every class: `threshold`, `scale`, `n_kept` or `n_neighbors`."""
        return np.array([getattr(field, name) for field in self.classes])

    def references(self, X: Floats) -> tuple[Floats, ...]:
        """The reference rows of every class, out of the table that `ClassField.reference` counts in."""
        return tuple(X[field.reference] for field in self.classes)

    def at(self, training: TrainingRows) -> Fields:
        """The same with reference rows given as positions in the caller's table."""
        return replace(self, classes=tuple(replace(f, reference=training.first[f.reference]) for f in self.classes))


def fit_fields(
    space: Space, codes: Ints, n_classes: int, settings: FieldSettings, rng: np.random.Generator
) -> tuple[Fields, Floats, Floats]:
    """The fields of all classes, g of every distinct row, and g by the neighbour sums alone."""
    g = np.empty(len(codes))
    classes = []
    for code in range(n_classes):
        rows = np.flatnonzero(codes == code)
        field, g[rows] = fit_class_field(space, rows, settings, rng)
        classes.append(field)
    if not isinstance(space, entropy.EuclideanRows):
        return Fields(tuple(classes), None), g, g
    unparted = np.array([field.state == "on" and not parts(field.n_rows, field.n_kept) for field in classes])
    repetition = learn_repetition(space.rows, codes, n_classes) if settings.repetition else None
    isolation = learn_isolation(space.rows, codes, unparted) if settings.isolation and unparted.any() else None
    fields = Fields(tuple(classes), repetition, isolation)
    everywhere = fields.lowered(np.broadcast_to(g, (n_classes, len(g))), space.rows)
    return fields, everywhere[codes, np.arange(len(codes))], g


def proven_field(fields: Fields, g: Floats, sparse: Floats, rows: Floats, codes: Ints, *, isolation: bool) -> Floats:
    """g where distrust is proven, the upper limit of the field elsewhere; `sparse` is g by the neighbour sums alone.

    A class is proven to hold a second population where a gap parts it and rows lie beyond the reach of its core, or have
    readings that lie apart. Of other classes only rows whose readings repeat or lie apart are distrusted. Where `isolation`
    is not looked at, a gap is proof enough.
    """
    on = np.array([field.state == "on" for field in fields.classes])
    parted = on & np.array([parts(field.n_rows, field.n_kept) for field in fields.classes])
    whole = np.array([isolation and hangs_together(np.sort(-sparse[codes == code])) for code in range(len(on))])
    own = codes, np.arange(len(codes))
    asked = on & ~(parted & ~whole)
    apart = learn_isolation(rows, codes, asked) if isolation and asked.any() else None
    if apart is not None:
        whole[codes[apart.scores(rows)[own] < 0]] = False
    found = np.where((parted & ~whole)[codes], g, FIELD_LIMITS[1])
    views = replace(fields, isolation=apart)
    return views.lowered(np.broadcast_to(found, (len(on), len(found))), rows)[own]


def warn_about_fields(fields: Fields, labels: Sequence[Any], settings: FieldSettings) -> None:
    """Say where the field is off, or rests on less than half of a class, or on fewer neighbours than wanted."""
    for field, label in zip(fields.classes, labels, strict=True):
        if field.state == "small" or field.n_rows < 3:
            _warn(
                f"Class {label!r} has {field.n_rows} distinct rows; the trust field needs {FEWEST_ROWS} and is off for it."
            )
        elif field.state == "on" and field.n_kept <= 0.5 * field.n_rows:
            _warn(
                f"Class {label!r}: only {field.n_kept} of {field.n_rows} rows lie below the entropy threshold. "
                "Hint: with more than half of a class corrupted nothing is promised."
            )
        wanted = settings.n_neighbors
        if isinstance(wanted, (int, np.integer)) and wanted > field.n_neighbors:
            _warn(f"n_neighbors={wanted} is more than class {label!r} can give; {field.n_neighbors} are used.")


def _warn(message: str) -> None:
    warnings.warn(message, DataWarning, stacklevel=4)
