"""The boosted expert B: each cell from the others by trees that are used to withheld inputs (E1).

Trained with scikit-learn's histogram boosting on masked copies, in normal scores; kept as flat node arrays and evaluated
by `kernels.forest_values`, one row at a time.

| what | how |
|---|---|
| mean of a number's score | squared error |
| its width | exp of a boosted log absolute residual, residuals out of fold |
| probabilities of levels | boosted classifier |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from goldseam.conditional import kernels
from goldseam.conditional.layout import Layout, check_lengths, check_offsets
from goldseam.conditional.marginals import Floats, Ints, Scores
from goldseam.conditional.masking import draw_masks
from goldseam.conditional.source import CellPrediction
from goldseam.errors import ModelFileError
from goldseam.model_file import check_indices
from goldseam.schema import Blocks

__all__ = ["Boosted", "Forest", "fit_boosted", "flatten"]

ROWS = 800  # E1
COPIES = 3
LEAST_SEEN = 10  # values of a number to learn from
LEAST = 0.002  # least probability of a level
LOG_WIDTH = (-4.0, 1.0)  # limits of a predicted log width
LOG_ABS_NORMAL = -0.635  # E log|N(0, 1)|


@dataclass(frozen=True)
class Forest:
    """Many sums of trees as flat arrays. Output o adds the trees of `tree_of_output[o] : tree_of_output[o + 1]`."""

    trees: Ints
    tree_of_output: Ints
    base: Floats
    feature: Ints
    threshold: Floats
    missing_left: NDArray[np.bool_]
    left: Ints
    right: Ints
    value: Floats

    def check_state(self) -> None:
        """Nodes lead to later nodes, outputs to trees that exist; a file that says otherwise is refused."""
        nodes, n = np.arange(len(self.feature)), len(self.feature)
        inner = self.feature >= 0
        check_indices("trees", self.trees, 0, n)
        check_indices("trees of outputs", self.tree_of_output, 0, len(self.trees) + 1)
        for what, child in (("left children", self.left), ("right children", self.right)):
            check_indices(what, child[inner], nodes[inner] + 1, n)
        sizes = {len(part) for part in (self.threshold, self.missing_left, self.left, self.right, self.value)}
        if sizes != {n} or len(self.tree_of_output) != len(self.base) + 1:
            raise ModelFileError(f"The model file's forest has arrays of different lengths: {sorted(sizes | {n})}.")

    def values(self, features: Floats, withheld: NDArray[np.bool_], row_of: Ints) -> Floats:
        """All outputs of some rows, (n, outputs)."""
        return kernels.forest_values(
            features, withheld, row_of, self.trees, self.tree_of_output, self.base, self.feature, self.threshold,
            self.missing_left, self.left, self.right, self.value,
        )  # fmt: skip


@dataclass(frozen=True)
class Boosted:
    """Per number two outputs (mean, log width), per category one per class; `classes` are the levels of those."""

    layout: Layout
    forest: Forest
    classes: Ints
    class_offsets: Ints
    level_offsets: Ints

    def check_state(self) -> None:
        """The forest asks for columns that exist, and answers for as many outputs and levels as there are."""
        check_indices("features", self.forest.feature, -1, self.layout.n_cells)
        numbers, categories = len(self.layout.number_cells), len(self.layout.category_cells)
        levels = int(self.level_offsets[-1]) if self.level_offsets.size else 0
        check_offsets("levels", self.level_offsets, categories, levels)
        check_offsets("classes", self.class_offsets, categories, self.classes.size, least=0)
        column = np.repeat(np.arange(categories), np.diff(self.class_offsets))
        check_indices("classes", self.classes, 0, np.diff(self.level_offsets)[column])
        check_lengths("outputs", (2 * numbers + self.classes.size,), self.forest.base)

    @property
    def n_levels(self) -> Ints:
        return np.diff(self.level_offsets)

    def prepare(self, blocks: Blocks, scores: Scores) -> Floats:
        """Scores and codes in table order, NaN where nothing usable was observed."""
        codes = np.where(scores.codes >= 0, scores.codes, np.nan)
        return np.ascontiguousarray(self.layout.join(scores.z, codes), dtype=np.float64)

    def predict(self, prepared: Floats, withheld: NDArray[np.bool_], row_of: Ints) -> CellPrediction:
        """Every cell given the believed others."""
        raw = self.forest.values(prepared, withheld, row_of)
        m = len(self.layout.number_cells)
        width = kernels.exponential(np.clip(raw[:, m : 2 * m], *LOG_WIDTH))
        levels = kernels.level_shares(raw[:, 2 * m :], self.classes, self.class_offsets, self.level_offsets, LEAST)
        return CellPrediction(raw[:, :m].copy(), width, levels)


def fit_boosted(scores: Scores, n_levels: Ints, layout: Layout, rng: np.random.Generator) -> Boosted:
    """Train one model per cell on reference rows and their masked copies.

    One thread: the tables are small, and OpenMP threads that wait for each other on a busy machine cost minutes.
    """
    with threadpool_limits(1, user_api="openmp"):
        return _fitted(scores, n_levels, layout, rng)


def _fitted(scores: Scores, n_levels: Ints, layout: Layout, rng: np.random.Generator) -> Boosted:
    level_offsets = np.concatenate([[0], np.cumsum(n_levels)]).astype(np.int64)
    blank = Boosted(layout, flatten([], []), np.empty(0, np.int64), np.zeros(1, np.int64), level_offsets)
    whole = blank.prepare(Blocks(scores.z, scores.codes), scores)
    chosen = rng.permutation(len(scores))[:ROWS]
    x, group = _copies(whole[chosen], rng)
    means, widths, classes, levels = [], [], [], []
    for cell in layout.number_cells:
        mean, width = _number_models(x, whole[chosen][:, cell], group, int(cell))
        means.append(mean)
        widths.append(width)
    for cell in layout.category_cells:
        models, seen = _category_models(x, whole[chosen][:, cell], group, int(cell))
        classes.extend(models)
        levels.append(seen)
    offsets = np.concatenate([[0], np.cumsum([len(seen) for seen in levels])]).astype(np.int64)
    flat = np.concatenate([np.asarray(seen, np.int64) for seen in levels]) if levels else np.empty(0, np.int64)
    outputs = [*means, *widths, *classes]
    return Boosted(layout, flatten([o[0] for o in outputs], [o[1] for o in outputs]), flat, offsets, level_offsets)


Output = tuple[list[NDArray[Any]], float]


def _copies(x: Floats, rng: np.random.Generator) -> tuple[Floats, Ints]:
    """Rows as they are and COPIES masked ones; which row each came from."""
    group = np.tile(np.arange(len(x)), 1 + COPIES)
    masks = np.concatenate([np.zeros(x.shape, bool), draw_masks(COPIES * len(x), x.shape[1], rng)])
    return np.where(masks, np.nan, x[group]), group


def _number_models(x: Floats, target: Floats, group: Ints, cell: int) -> tuple[Output, Output]:
    """Mean and log width of one number, as trees; those of a standard normal score where next to nothing was observed."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    others = np.delete(np.arange(x.shape[1]), cell)
    seen = np.isfinite(target[group])
    if np.isfinite(target).sum() < LEAST_SEEN:
        return ([], 0.0), ([], 0.0)
    inputs, y, half = x[seen][:, others], target[group][seen], np.cumsum(np.isfinite(target))[group[seen]] % 2
    settings: dict[str, Any] = {"early_stopping": False, "max_leaf_nodes": 31, "l2_regularization": 1.0}
    residual = np.empty(len(y))
    for fold in (0, 1):
        model = HistGradientBoostingRegressor(max_iter=40, **settings).fit(_told(inputs[half != fold]), y[half != fold])
        residual[half == fold] = y[half == fold] - model.predict(inputs[half == fold])
    inputs = _told(inputs)
    mean = HistGradientBoostingRegressor(max_iter=80, **settings).fit(inputs, y)
    log_size = np.log(np.abs(residual) + 0.02) - LOG_ABS_NORMAL
    width = HistGradientBoostingRegressor(max_iter=30, **(settings | {"max_leaf_nodes": 12})).fit(inputs, log_size)
    return _trees(mean, others)[0], _trees(width, others)[0]


def _told(inputs: Floats) -> Floats:
    """Inputs for a booster, which does not take columns without any value: zeros say as little."""
    return np.where(np.isfinite(inputs).any(axis=0), inputs, 0.0)


def _category_models(x: Floats, target: Floats, group: Ints, cell: int) -> tuple[list[Output], Ints]:
    """One output per level seen (raw log-probability), as trees."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    others = np.delete(np.arange(x.shape[1]), cell)
    seen = np.isfinite(target[group])
    y = target[group][seen].astype(np.int64)
    levels = np.unique(y)
    if len(levels) < 2:
        return [([], 0.0)] * len(levels), levels
    rounds = 60 if len(levels) <= 4 else 30
    model = HistGradientBoostingClassifier(
        max_iter=rounds, early_stopping=False, max_leaf_nodes=15, l2_regularization=1.0
    )
    outputs = _trees(model.fit(_told(x[seen][:, others]), y), others)
    if len(outputs) == 1:  # two levels: one log odds, the first level stands at zero
        outputs = [([], 0.0), outputs[0]]
    return outputs, levels


def _trees(model: Any, others: Ints) -> list[Output]:
    """The trees of a fitted histogram booster per output, features renamed to cells."""
    outputs = []
    for k in range(model.n_trees_per_iteration_):
        trees = [stage[k].nodes.copy() for stage in model._predictors]
        for nodes in trees:
            nodes["feature_idx"] = np.where(nodes["is_leaf"], 0, others[nodes["feature_idx"]])
        outputs.append((trees, float(np.ravel(model._baseline_prediction)[k])))
    return outputs


def flatten(forests: Sequence[list[NDArray[Any]]], base: Sequence[float]) -> Forest:
    """Trees of many outputs as one set of flat arrays."""
    trees = [tree for forest in forests for tree in forest]
    roots = np.concatenate([[0], np.cumsum([len(tree) for tree in trees])]).astype(np.int64)
    nodes = np.concatenate(trees) if trees else np.empty(0, _NODE)
    shift = np.repeat(roots[:-1], np.diff(roots))
    leaf = nodes["is_leaf"].astype(bool)
    return Forest(
        roots[:-1].copy(),
        np.concatenate([[0], np.cumsum([len(forest) for forest in forests])]).astype(np.int64),
        np.asarray(base, dtype=np.float64),
        np.where(leaf, -1, nodes["feature_idx"]).astype(np.int64),
        nodes["num_threshold"].astype(np.float64),
        nodes["missing_go_to_left"].astype(bool),
        nodes["left"].astype(np.int64) + shift,
        nodes["right"].astype(np.int64) + shift,
        nodes["value"].astype(np.float64),
    )


_NODE = np.dtype([("is_leaf", "u1"), ("feature_idx", "i8"), ("num_threshold", "f8"), ("missing_go_to_left", "u1"),
                  ("left", "u4"), ("right", "u4"), ("value", "f8")])  # fmt: skip
