"""Which cells cannot be believed: tree-based corruption separation."""

from goldseam.separation.estimator import CorruptionSeparator, SeparationResult
from goldseam.separation.tree import AttributeTree

__all__ = ["AttributeTree", "CorruptionSeparator", "SeparationResult"]
