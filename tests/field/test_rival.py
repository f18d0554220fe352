from __future__ import annotations

import warnings

import numpy as np
import pytest

from goldseam.field.inference import Noise, infer
from tests.reference.field_enumeration import random_field


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("method", "tree"), [("lbp", True), ("exact", True), ("exact", False)])
def test_marginals_equal_those_of_pgmpy(rng, method, tree):
    """Five categories, some observed, in a chain or all coupled: marginals by another library's variable elimination."""
    pytest.importorskip("pgmpy")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pgmpy.factors.discrete import DiscreteFactor
        from pgmpy.inference import VariableElimination
        from pgmpy.models import DiscreteMarkovNetwork
    field = random_field(rng, 0, [2, 3, 4, 2, 3], tree=tree)
    layout, names = field.layout, [f"v{j}" for j in range(5)]
    pairs = [(j, k) for j in range(5) for k in range(j + 1, 5) if k == j + 1 or not tree]
    net = DiscreteMarkovNetwork([(names[j], names[k]) for j, k in pairs])
    factors = [DiscreteFactor([names[j]], [layout.sizes[j]], np.exp(field.h[layout.block(j)])) for j in range(5)]
    for j, k in pairs:
        block = np.exp(field.Phi[layout.block(j), layout.block(k)])
        factors.append(DiscreteFactor([names[j], names[k]], block.shape, block.ravel()))
    net.add_factors(*factors)
    exact = VariableElimination(net)
    codes = np.array([[-1, 2, -1, -1, 0]], dtype=np.int32)
    got = infer(field, np.zeros((1, 0)), codes, Noise.nil(0, 5), method=method, max_sweeps=60, tol=1e-12)
    for j in (0, 2, 3):
        wanted = exact.query([names[j]], evidence={"v1": 2, "v4": 0}, show_progress=False).values
        np.testing.assert_allclose(got.Q[0, layout.block(j)], wanted / wanted.sum(), atol=1e-9)
