"""Deciding in spite of what remains: GEM-MED."""

from goldseam.margin.estimator import GEMMEDClassifier
from goldseam.margin.trust import RowTrust, row_trust

__all__ = ["GEMMEDClassifier", "RowTrust", "row_trust"]
