"""What the cells should have been: the random mixed field."""

from goldseam.field.estimator import RandomMixedField
from goldseam.field.levels import NoiseLevels, given_levels
from goldseam.field.model import Denoised, Field, gaussian_field, learn_field
from goldseam.field.posterior import FieldPosterior, Pooled, pool
from goldseam.field.potentials import Edge

__all__ = [
    "Denoised",
    "Edge",
    "Field",
    "FieldPosterior",
    "NoiseLevels",
    "Pooled",
    "RandomMixedField",
    "gaussian_field",
    "given_levels",
    "learn_field",
    "pool",
]
