"""Deciding in spite of what remains: GEM-MED."""

from goldseam.margin.estimator import GEMMEDClassifier
from goldseam.margin.fusion import SensorFusionClassifier
from goldseam.margin.trust import RowTrust, row_trust
from goldseam.margin.weighter import TrustWeighter

__all__ = ["GEMMEDClassifier", "RowTrust", "SensorFusionClassifier", "TrustWeighter", "row_trust"]
