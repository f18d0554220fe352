"""What every test shares: one seed, Hypothesis profiles, and a clear reason when the shared data are absent."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

SEED = 42

settings.register_profile("default", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thorough", parent=settings.get_profile("default"), max_examples=1000)
settings.load_profile(os.environ.get("GOLDSEAM_HYPOTHESIS", "default"))


@pytest.fixture
def rng() -> np.random.Generator:
    """The one source of randomness of a test."""
    return np.random.default_rng(SEED)
