"""The attribute tree as a witness: it predicts nothing, but sees segments, on grids too."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from goldseam.schema import Blocks, Schema
from goldseam.separation.encoding import category_columns, learn_scaling, to_values
from goldseam.separation.fitting import choose_tree
from goldseam.separation.model import SeparationModel
from goldseam.separation.reference import Reference
from goldseam.separation.segments import learn_evidence

__all__ = ["TreeWitness", "fit_tree_witness"]

MOST_REFERENCE: Final = 640  # for speed; with 600 instead of 1000, five tables lost up to .002 AP (usps01 gained .01)
N_NEIGHBORS: Final = 5
LEAST_PROBABILITY: Final = 1e-12


@dataclass(frozen=True)
class TreeWitness:
    """A separator's model that says how odd each cell is: the log odds of its segment posterior."""

    model: SeparationModel
    schema: Schema

    def suspicion(self, blocks: Blocks) -> NDArray[np.float64]:
        """Log odds that a cell lies in an overwritten segment, (n, p) in table order."""
        found = self.model.evidence(to_values(blocks, self.schema))
        probability = np.clip(found.probability, LEAST_PROBABILITY, 1.0 - LEAST_PROBABILITY)
        return np.asarray(np.log(probability) - np.log1p(-probability))


def fit_tree_witness(
    blocks: Blocks, schema: Schema, grid_shape: tuple[int, ...] | None, rng: np.random.Generator
) -> TreeWitness:
    """Learn the tree's radii and segment evidence from reference rows; at most MOST_REFERENCE of them."""
    rows = np.sort(rng.permutation(len(blocks))[:MOST_REFERENCE])
    values = to_values(blocks.take(rows), schema)
    names = tuple(schema.names[i] for i in schema.modelled_positions)
    tree = choose_tree("interval" if grid_shape is None else grid_shape, names, values, None)
    is_category = category_columns(schema)
    scaling = "robust" if is_category.any() else "quantiles" if grid_shape is None else "common"
    center, scale = learn_scaling(values, is_category, scaling)
    reference = Reference(values, tree, center, scale, is_category)
    model = SeparationModel.learn(reference, n_neighbors=N_NEIGHBORS, rule="confirmed", form="continuous")
    return TreeWitness(replace(model, segments=learn_evidence(reference)), schema)
