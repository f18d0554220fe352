"""Sources of strangers: experts in own units, and witnesses."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from goldseam.evidence import UnitExpert, Witness, fit_evidence
from goldseam.evidence.interface import Statement, UnitSource, fit_statement
from goldseam.schema import Blocks, Column, Kind, Schema

SCHEMA = Schema((*(Column(f"x{j}", Kind.CONTINUOUS) for j in range(6)), Column("c", Kind.BOOLEAN, (False, True))))


def draw(rng, n):
    """Six columns that know nothing of each other, and a coin."""
    return Blocks(np.exp(rng.normal(size=(n, 6))), rng.integers(0, 2, (n, 1)).astype(np.int32))


def swap(blocks, rng):
    """Half of the rows get a foreign value in the second column, drawn from the column itself."""
    numbers = blocks.numbers.copy()
    cells = np.zeros((len(blocks), 7), dtype=bool)
    cells[::2, 1] = True
    numbers[::2, 1] = rng.permutation(numbers[:, 1])[::2]
    return Blocks(numbers, blocks.codes), cells


class Oracle:
    """Knows the second column of every row it was shown, by the first; its answers are in own units."""

    def __init__(self, blocks):
        self.known = {row[0]: row[1] for row in blocks.numbers}

    def given_others(self, blocks, withheld_numbers, withheld_codes):
        mean = np.full(blocks.numbers.shape, np.exp(0.5))
        variance = np.full(mean.shape, 4.0)
        mean[:, 1] = [self.known.get(x, np.exp(0.5)) for x in blocks.numbers[:, 0]]
        variance[:, 1] = [0.01 if x in self.known else 4.0 for x in blocks.numbers[:, 0]]
        return mean, variance, np.full((len(mean), 2), 0.5)


class Eye:
    """Finds the second column odd as far as it is from what it remembers."""

    def __init__(self, blocks):
        self.known = {row[0]: row[1] for row in blocks.numbers}

    def suspicion(self, blocks):
        out = np.zeros((len(blocks), 7))
        out[:, 1] = [abs(row[1] - self.known.get(row[0], row[1])) + 1e-3 * row[2] for row in blocks.numbers]
        return out


@pytest.mark.parametrize("kind", ["expert", "witness"])
def test_what_only_the_stranger_knows_is_found(rng, kind):
    reference, calibration, incoming = draw(rng, 300), draw(rng, 200), draw(rng, 400)
    everything = Blocks(
        *(np.concatenate([getattr(b, n) for b in (reference, calibration, incoming)]) for n in ("numbers", "codes"))
    )
    stranger = Oracle(everything) if kind == "expert" else Eye(everything)
    assert isinstance(stranger, UnitExpert if kind == "expert" else Witness)
    helped = {"sources": [stranger]} if kind == "expert" else {"witnesses": [stranger]}
    model = fit_evidence(reference, calibration, SCHEMA, boosted=False, rng=np.random.default_rng(1), **helped)
    alone = fit_evidence(reference, calibration, SCHEMA, boosted=False, rng=np.random.default_rng(1))
    dirty, cells = swap(incoming, rng)
    found, plain = model.judge(dirty), alone.judge(dirty)
    before, after = (average_precision_score(cells.ravel(), f.cell_scores.ravel()) for f in (plain, found))
    assert after > before + 0.2
    assert found.flagged[::2].mean() > plain.flagged[::2].mean() + (0.3 if kind == "expert" else 0.05)
    assert found.flagged[1::2].mean() < 0.12
    assert found.suspect[~cells].mean() < 0.05
    if kind == "expert":
        _, repairs = model.repair(dirty)
        before, after = (np.abs(b.numbers - incoming.numbers).sum() for b in (dirty, repairs.blocks))
        assert after < 0.6 * before


def test_means_in_own_units_become_scores(rng):
    blocks = draw(rng, 500)
    model = fit_evidence(blocks.take(slice(0, 400)), blocks.take(slice(400, 500)), SCHEMA, boosted=False, rng=rng)
    source = UnitSource(Oracle(blocks), model.marginals, model.layout)
    scores = model.marginals.score(blocks)
    answer = source.predict(source.prepare(blocks, scores), np.zeros((3, 7), dtype=bool), np.array([4, 9, 2]))
    assert answer.mean[:, 1] == pytest.approx(scores.z[[4, 9, 2], 1])
    assert (answer.width > 0).all()


def test_a_statement_averages_to_at_most_one_over_clean_cells(rng):
    class Noise:
        def suspicion(self, blocks):
            return blocks.numbers

    clean = rng.normal(size=(4000, 2))
    statement = Statement(Noise(), np.sort(clean[:2000], axis=0), np.full(2, 0.4))
    ratio = np.exp(statement.log_ratio(Blocks(clean[2000:], np.empty((2000, 0), dtype=np.int32))))
    assert ratio.mean() < 1.1


def test_a_witness_that_sees_nothing_is_not_heard(rng):
    class Blind:
        def suspicion(self, blocks):
            return blocks.numbers[:, :2] * 0.0

    hurt = Blocks(rng.normal(size=(50, 2)), np.empty((50, 0), dtype=np.int32))
    assert fit_statement(Blind(), np.zeros((30, 2)), hurt, np.ones((50, 2), dtype=bool)).exponents.tolist() == [
        0.0,
        0.0,
    ]
