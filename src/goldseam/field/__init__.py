"""What the cells should have been: the random mixed field."""

from goldseam.field.estimator import RandomMixedField
from goldseam.field.posterior import FieldPosterior, Pooled, pool
from goldseam.field.potentials import Edge

__all__ = ["Edge", "FieldPosterior", "Pooled", "RandomMixedField", "pool"]
