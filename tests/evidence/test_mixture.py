"""How a table is damaged, from its rows together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from goldseam.errors import ModelFileError
from goldseam.evidence.gains import N_CASES, Offer
from goldseam.evidence.mixture import (
    FEW,
    LARGE,
    MUCH,
    N_CLASSES,
    NATURAL,
    NONE,
    UNKNOWN,
    UNSURE,
    Boldness,
    Openness,
    boldest_offers,
    boldness,
    mixed,
    openness,
    outlines,
    row_classes,
)
from goldseam.evidence.rehearsal import FAR, FLAT, NOISE, OWN
from goldseam.evidence.repair import ABSTAIN, Repairer, between

KNOTS = np.linspace(-6.0, 14.0, 81)


def offer_of(step, *, natural=False, context=-3.0, width=0.6, beyond=0.0, absurd=False, scores=1.0, heavy=False):
    """One cell per row."""
    fill = lambda value: np.broadcast_to(np.asarray(value), np.shape(step)).reshape(-1, 1)  # noqa: E731
    return Offer(*(fill(part) for part in (scores, context, step, width, natural, beyond, absurd, heavy)))


def test_a_flagged_row_is_classed_by_its_boldest_offer():
    step, natural = np.array([7.0, 7.0, 3.0, 3.0, 7.0]), np.array([False, True, False, False, False])
    context = np.array([-3.0, -3.0, -3.0, 2.0, -3.0])
    gain = np.array([[0.5], [0.5], [0.5], [0.5], [0.0]])
    found = boldest_offers(offer_of(step, natural=natural, context=context), gain)
    assert found.tolist() == [LARGE, NATURAL, UNSURE, NONE, NONE]


def test_classes_are_those_of_the_docstring():
    offered = np.array([NONE, UNSURE, NATURAL, LARGE])
    flagged = row_classes(np.full(4, 0.05), 0.05, offered)
    assert flagged.tolist() == [4, 5, 6, 7]  # p = the alarm rate is flagged
    assert (
        len(set(row_classes(np.full(4, 0.0501), 0.05, offered).tolist())) == 1
    )  # what is not flagged is offered nothing
    every = row_classes(np.linspace(0.0, 1.0, 10_001), 0.05, np.zeros(10_001, dtype=np.int64))
    assert every.max() == N_CLASSES - 1
    assert every.min() == 0


def test_shares_of_a_mixture_are_found_again(rng):
    parts = rng.dirichlet(np.full(N_CLASSES, 0.5), size=3)
    true = np.array([0.7, 0.25, 0.05])
    counts = rng.multinomial(200_000, true @ parts)
    assert mixed(parts.T, counts, rounds=3000) == pytest.approx(true, abs=0.02)


def test_counting_a_case_twice_is_meeting_it_twice(rng):
    parts = rng.random((5, 3))
    counts = np.array([2, 1, 3, 1, 2])
    assert mixed(parts, counts) == pytest.approx(mixed(np.repeat(parts, counts, axis=0)))


def test_a_share_that_grows_makes_the_mixture_likelier_round_by_round(rng):
    parts, counts = rng.random((N_CLASSES, 5)), rng.integers(1, 50, N_CLASSES)
    gains = [counts @ np.log(parts @ mixed(parts, counts, rounds=n)) for n in range(12)]
    assert (np.diff(gains) >= -1e-9).all()


def rehearsed(rng, n=40_000):
    """Classes of rehearsed rows: open damage is flagged and offered large steps, hidden damage hardly shows."""
    hurt, way = rng.random(n) < 0.5, rng.choice(4, n, p=(0.35, 0.25, 0.2, 0.2))
    seen = hurt & np.isin(way, (FLAT, FAR))
    p_values = np.where(seen & (rng.random(n) < 0.6), 0.01, rng.random(n))
    classes = row_classes(p_values, 0.05, np.where(seen, LARGE, NATURAL))
    return classes, hurt, way


def test_open_damage_is_told_from_damage_that_hides(rng):
    classes, hurt, way = rehearsed(rng)
    known = outlines(classes, hurt, way)
    assert known.sum(axis=1) == pytest.approx(1.0)
    count = lambda rows: np.bincount(classes[rows], minlength=N_CLASSES)  # noqa: E731
    hidden = count(~hurt | (way == OWN) | (way == NOISE))
    openly = count(~hurt | (way == FLAT))
    assert openness([known], [hidden]).open < 0.01
    true = (hurt & (way == FLAT)).sum() / (~hurt | (way == FLAT)).sum()
    assert openness([known], [openly]).open == pytest.approx(true, abs=0.02)
    halves = [count(np.arange(hurt.size) % 2 == k) for k in range(2)]
    assert openness([known, known], halves) == pytest.approx(openness([known], [halves[0] + halves[1]]))


def test_a_few_odd_rows_prove_nothing():
    """Far rows are of a class of their own: of 100 rows as many are proven to be far as are of that class, less a few."""
    known = np.full((5, N_CLASSES), 1e-9)
    known[np.arange(5), np.where(np.arange(5) == 1 + FAR, 0, 1 + np.arange(5))] = 1.0
    for met in (0, 1, 2, 3, 10):
        counts = np.bincount(np.arange(100) >= met, minlength=N_CLASSES)
        assert tuple(openness([known], [counts])) == pytest.approx((max(0.0, met - FEW) / 100,) * 2, abs=1e-4)


def gains_of(level):
    return Repairer(KNOTS, np.full((N_CASES, KNOTS.size), level), np.inf, np.empty(0))


HIDDEN, OPEN, FAR_OFF = Boldness(0.0, 0.0), Boldness(1.0, 0.0), Boldness(1.0, 1.0)


def test_gains_lie_between_those_of_both_repairers():
    offer = offer_of(np.array([3.0, 3.0]), context=2.0)
    bold, careful = gains_of(0.8), gains_of(0.2)
    assert between(bold, careful, offer, OPEN) == pytest.approx(0.8)
    assert between(bold, careful, offer, UNKNOWN) == pytest.approx(0.5)
    assert between(bold, careful, offer, HIDDEN) == pytest.approx(0.2)
    assert between(bold, None, offer, HIDDEN) == pytest.approx(0.8)
    assert (between(bold, gains_of(0.5 * ABSTAIN), offer, HIDDEN) == 0.0).all()


def test_a_natural_value_beyond_the_range_waits_for_slips_of_scale_and_an_absurd_one_goes():
    offer = offer_of(np.full(2, 8.0), natural=True, heavy=True, beyond=1.0, absurd=np.array([False, True]))
    bold = replace(gains_of(0.8), outside=np.full(5, 0.9))
    moved = lambda how: between(bold, gains_of(0.8), offer, how)[:, 0].tolist()  # noqa: E731
    assert moved(HIDDEN) == [0.0, 1.0]
    assert moved(OPEN) == [0.35, 1.0]
    assert moved(FAR_OFF) == [0.9, 1.0]
    assert moved(Boldness(1.0, 0.5)) == pytest.approx([0.5 * 0.9 + 0.5 * 0.35, 1.0])


def test_a_slip_of_scale_goes_whatever_the_table_tells_unless_its_column_is_heavy_there():
    """A large step of a value beyond its range that is not natural: mended as boldly as ever; inside the range it is not."""
    offer = offer_of(np.array([8.0, 8.0, 3.0]), beyond=np.array([1.0, 0.0, 1.0]), context=2.0)
    assert between(gains_of(0.8), gains_of(0.0), offer, HIDDEN)[:, 0].tolist() == [0.8, 0.0, 0.0]
    heavy = replace(offer, heavy=np.ones((3, 1), dtype=bool))
    assert between(gains_of(0.8), gains_of(0.0), heavy, OPEN)[:, 0].tolist() == [0.0, 0.8, 0.8]
    assert between(gains_of(0.8), gains_of(0.0), heavy, FAR_OFF)[:, 0].tolist() == [0.8, 0.8, 0.8]


def test_boldness_rises_to_one():
    assert boldness(None) == UNKNOWN
    assert boldness(Openness(0.0, 0.0)) == (0.0, 0.0)
    assert boldness(Openness(0.5 * MUCH, 0.25 * MUCH)) == (0.5, 0.25)
    assert boldness(Openness(1.0, 0.5)) == (1.0, 1.0)


@pytest.mark.parametrize("bad", [np.ones((4, N_CLASSES)), np.ones((5, N_CLASSES - 1)), np.zeros((5, N_CLASSES))])
def test_outlines_of_another_shape_or_of_nothing_are_refused(bad, rng):
    from goldseam.evidence import fit_evidence
    from goldseam.schema import Blocks
    from goldseam.tables import Table, learn_schema

    values = rng.normal(size=(160, 1)) + 0.3 * rng.normal(size=(160, 3))
    schema = learn_schema(Table.read(values))
    blocks = Blocks(values, np.empty((160, 0), dtype=np.int32))
    model = fit_evidence(blocks.take(slice(100)), blocks.take(slice(100, 160)), schema, boosted=False, rng=rng)
    model.check_state()
    with pytest.raises(ModelFileError, match=rf"outlines of damage must be 5 rows of {N_CLASSES} positive shares"):
        replace(model, outlines=bad).check_state()
