"""What a method is worth in rehearsal, and that the method is chosen by it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

from goldseam.evidence import learn_evidence
from goldseam.evidence.fitting import WORTH_OF_EXPERTS, WORTH_OF_WITNESSES
from goldseam.evidence.practice import average_precision, worth
from goldseam.schema import Blocks, Column, Kind, Schema

SCHEMA = Schema(tuple(Column(f"x{j}", Kind.CONTINUOUS) for j in range(5)))


def draw(n, rng, noise=1.0):
    values = rng.normal(size=(n, 1)) + noise * rng.normal(size=(n, 5))
    return Blocks(values, np.empty((n, 0), dtype=np.int32))


class Knows:
    """A witness that was told the clean rows: whatever is not among them is odd."""

    def __init__(self, *clean):
        self.known = {value for blocks in clean for value in blocks.numbers.ravel().tolist()}

    def suspicion(self, blocks):
        return np.array([[float(value not in self.known) for value in row] for row in blocks.numbers])


class Guesses:
    """A witness that says nothing about the cells."""

    def suspicion(self, blocks):
        return np.random.default_rng(0).random(blocks.numbers.shape)


@given(st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=1, max_size=30))
def test_average_precision_is_that_of_scikit_learn(cells):
    scores, truth = (np.array(part) for part in zip(*cells, strict=True))
    truth[0] = True
    expected = average_precision_score(truth, scores)
    assert average_precision(scores.astype(float), truth) == pytest.approx(expected)


@pytest.mark.parametrize(("witness", "heard"), [(Knows, True), (Guesses, False)])
def test_a_further_witness_is_heard_where_it_is_worth_it(witness, heard):
    rng = np.random.default_rng(1)
    reference, calibration = draw(200, rng), draw(120, rng)
    further = (Knows(reference, calibration) if witness is Knows else Guesses(),)
    model, practice = learn_evidence(
        reference, calibration, SCHEMA, boosted=False, choose=True, further=further, rng=np.random.default_rng(2)
    )
    (alone, before), (both, after) = model.methods
    assert (alone, both) == (("Gaussian",), ("Gaussian", witness.__name__))
    assert (after >= before + WORTH_OF_WITNESSES) == heard == bool(model.statements)
    assert worth(model, practice) == (after if heard else before)


def test_a_closer_table_is_worth_more():
    values = []
    for noise in (0.1, 3.0):
        rng = np.random.default_rng(3)
        model, practice = learn_evidence(
            draw(200, rng, noise), draw(120, rng, noise), SCHEMA, boosted=False, rng=np.random.default_rng(4)
        )
        values.append(worth(model, practice))
    assert 1.0 > values[0] > values[1] + 0.2


def test_experts_that_are_not_worth_it_are_not_used_and_the_account_says_so():
    rng = np.random.default_rng(5)
    model, _ = learn_evidence(draw(250, rng, 0.5), draw(120, rng, 0.5), SCHEMA, boosted=True, choose=True, rng=rng)
    used = [type(source).__name__ for source in model.sources]
    assert [name for name, _, stays in model.accounts if stays] == used
    best = max(value for _, value in model.methods)
    taken = dict(model.methods)[tuple(used)]
    assert taken > best - WORTH_OF_EXPERTS
