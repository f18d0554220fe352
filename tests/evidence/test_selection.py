"""Experts stay where they pay."""

from __future__ import annotations

import numpy as np
import pytest

from goldseam.conditional.source import CellPrediction
from goldseam.evidence import fit_evidence
from goldseam.evidence.selection import LEAST_GAIN, choose_experts
from goldseam.schema import Blocks, Column, Kind, Schema

SCHEMA = Schema(tuple(Column(f"x{j}", Kind.CONTINUOUS) for j in range(4)))


def rows(n: int, seed: int, bent: bool = False) -> Blocks:
    """Four numbers behind one factor, along a line or, bent, along a curve no Gaussian sees."""
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(n, 1))
    shape = np.hstack([factor, factor**2 if bent else factor, np.cos(2 * factor) if bent else factor, factor])
    return Blocks(shape + 0.1 * rng.normal(size=(n, 4)), np.empty((n, 0), dtype=np.int32))


@pytest.mark.parametrize(("bent", "stays"), [(False, False), (True, True)])
def test_boosted_experts_stay_where_dependence_is_bent(bent: bool, stays: bool) -> None:
    model = fit_evidence(
        rows(600, 0, bent), rows(300, 1, bent), SCHEMA, boosted=True, choose=True, rng=np.random.default_rng(0)
    )
    accounts = {name: (gain, used) for name, gain, used in model.accounts}
    assert accounts["Gaussian"][1]
    assert accounts["Boosted"][1] is stays
    assert (accounts["Boosted"][0] >= LEAST_GAIN) is stays
    assert len(model.sources) == 1 + stays


def test_the_first_expert_stays_and_noise_goes() -> None:
    reference, calibration = rows(400, 0), rows(200, 1)
    model = fit_evidence(reference, calibration, SCHEMA, boosted=False, rng=np.random.default_rng(0))
    scores = model.marginals.score(calibration)
    row_of = np.arange(200)
    rng = np.random.default_rng(2)
    useless = CellPrediction(rng.normal(size=(200, 4)), np.full((200, 4), 0.3), np.empty((200, 0)))
    chosen, gains = choose_experts(scores, row_of, [useless, useless], model.marginals, keep=1)
    assert chosen == (0,)
    assert gains[1] < LEAST_GAIN
