"""The whole: promises kept, rows independent of each other, repairs only where they may be."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goldseam.errors import CalibrationWarning, InputError, ParameterError
from goldseam.evidence import CellPrediction, CellSource, Prior, fit_evidence
from goldseam.evidence.mixture import UNKNOWN
from goldseam.evidence.repair import RARE
from goldseam.schema import MISSING, UNSEEN, Blocks, Column, Kind, Schema

SCHEMA = Schema(
    (
        Column("colour", Kind.CATEGORICAL, ("r", "g", "b")),
        *(Column(f"x{j}", Kind.CONTINUOUS) for j in range(8)),
        Column("on", Kind.BOOLEAN, (False, True)),
    )
)


def draw(rng, n):
    """Ten columns driven by two hidden ones; skewed, tied and categorical among them."""
    hidden = rng.normal(size=(n, 2))
    x = hidden @ rng_loadings() + 0.3 * rng.normal(size=(n, 8))
    x[:, 1] = np.exp(x[:, 1])
    x[:, 2] = np.round(x[:, 2])
    x[:, 3] = np.maximum(x[:, 3], 0.0)
    codes = np.column_stack([np.digitize(hidden[:, 0], (-0.5, 0.5)), hidden[:, 1] > 0]).astype(np.int32)
    return Blocks(x, codes)


def rng_loadings():
    return np.random.default_rng(7).normal(size=(2, 8))


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(42)
    return fit_evidence(draw(rng, 500), draw(rng, 300), SCHEMA, boosted=False, rng=rng)


@pytest.fixture(scope="module")
def boosted():
    rng = np.random.default_rng(42)
    return fit_evidence(draw(rng, 300), draw(rng, 100), SCHEMA, boosted=True, rng=rng)


def damaged(rng, n=400):
    clean = draw(rng, n)
    numbers = clean.numbers.copy()
    cells = np.zeros((n, 10), dtype=bool)
    for i in range(0, n, 2):
        start = rng.integers(1, 6)
        cells[i, start : start + 3] = True
    hit = cells[:, 1:9]
    numbers[hit] = rng.uniform(clean.numbers.min(0), clean.numbers.max(0), clean.numbers.shape)[hit]
    return clean, Blocks(numbers, clean.codes), cells


def same(a, b):
    return all(np.array_equal(x, y, equal_nan=x.dtype.kind == "f") for x, y in zip(fields(a), fields(b), strict=True))


def fields(result):
    return [
        v for value in vars(result).values() for v in (fields(value) if dataclasses.is_dataclass(value) else [value])
    ]


@pytest.mark.parametrize("alarm_rate", [0.05, 0.1])
def test_false_alarms_hold(rng, alarm_rate):
    rates = []
    for _ in range(4):
        fitted = fit_evidence(draw(rng, 300), draw(rng, 200), SCHEMA, boosted=False, alarm_rate=alarm_rate, rng=rng)
        rates.append(fitted.judge(draw(rng, 1000)).flagged.mean())
    assert np.mean(rates) <= alarm_rate + 2 * np.sqrt(alarm_rate * (1 - alarm_rate) * (1 / 800 + 1 / 4000))


def test_damage_is_found_and_mended(model, rng):
    clean, dirty, cells = damaged(rng)
    found, repairs = model.repair(dirty)
    assert found.flagged[::2].mean() > 0.9
    assert (found.suspect & cells).sum() / cells.sum() > 0.6
    sd = clean.numbers.std(0)
    before = np.sum(((dirty.numbers - clean.numbers) / sd) ** 2)
    after = np.sum(((repairs.blocks.numbers - clean.numbers) / sd) ** 2)
    assert after < 0.3 * before


def test_intervals_cover_cells_that_were_damaged_and_cells_that_were_fine(rng):
    held = []
    for _ in range(4):  # one calibration set of 300 rows is off by up to .04
        model = fit_evidence(draw(rng, 500), draw(rng, 300), SCHEMA, boosted=False, rng=rng)
        clean, dirty, _ = damaged(rng, 2000)
        _, repairs = model.repair(dirty)
        moved, hurt = repairs.changed[:, 1:9], dirty.numbers != clean.numbers
        inside = (repairs.low <= clean.numbers) & (clean.numbers <= repairs.high)
        held.append([inside[part].mean() for part in (moved, moved & hurt, moved & ~hurt)])
    assert np.mean(held, axis=0) == pytest.approx([0.9, 0.9, 0.9], abs=0.03)


def test_only_odd_cells_of_flagged_rows_are_changed_and_those_rather_wrong_are_suspect(model, rng):
    _, dirty, _ = damaged(rng, 2000)
    judged = model.judge(dirty)
    found, repairs = model.repair(dirty)
    wrong = repairs.wrong > 0.0
    assert np.array_equal(found.suspect, judged.suspect | wrong)
    assert (wrong & ~judged.suspect).any()
    assert not (wrong & ~repairs.changed).any()
    assert (found.probabilities[wrong] >= 0.5).all()
    assert np.array_equal(found.probabilities[~wrong], judged.probabilities[~wrong])
    assert not (repairs.changed & ~found.suspect & (found.cell_p_values > RARE)).any()


def test_intervals_hold_the_value_put_in(model, rng):
    _, dirty, _ = damaged(rng)
    dirty.numbers[1::4, 0] = np.nan
    _, repairs = model.repair(dirty)
    moved = repairs.changed[:, 1:9]
    new = repairs.blocks.numbers[moved]
    assert ((repairs.low[moved] <= new) & (new <= repairs.high[moved])).all()


def test_repairs_do_not_depend_on_the_coverage_asked_for(rng):
    _, dirty, _ = damaged(rng, 300)
    results = []
    for coverage in (0.5, 0.95):
        own = np.random.default_rng(42)
        fitted = fit_evidence(draw(own, 300), draw(own, 200), SCHEMA, boosted=False, coverage=coverage, rng=own)
        results.append(fitted.repair(dirty))
    (found, narrow), (found_again, wide) = results
    assert same(found, found_again)
    assert same(narrow.blocks, wide.blocks)
    assert np.array_equal(narrow.changed, wide.changed)
    assert np.nanmean(narrow.high - narrow.low) < np.nanmean(wide.high - wide.low)


def test_what_is_not_changed_is_the_same_to_the_bit(model, rng):
    _, dirty, _ = damaged(rng)
    found, repairs = model.repair(dirty)
    assert not repairs.changed[~found.flagged].any()
    keep = ~repairs.changed
    assert np.array_equal(repairs.blocks.numbers[keep[:, 1:9]], dirty.numbers[keep[:, 1:9]])
    assert np.array_equal(repairs.blocks.codes[keep[:, [0, 9]]], dirty.codes[keep[:, [0, 9]]])
    assert not (repairs.changed & repairs.refused).any()
    assert np.array_equal(np.isnan(repairs.low), ~repairs.changed[:, 1:9])


def test_rows_that_need_no_repair_are_not_missed(model, rng):
    """Predicting only rows that are flagged or have gaps gives what predicting all of them gives, to the bit."""
    _, dirty, _ = damaged(rng, 200)
    dirty.numbers[::9, 4] = np.nan
    rows = model.rows(dirty)
    found = model.findings(rows)
    scores = np.where(found.flagged[:, None], found.cell_scores, -np.inf)
    all_told = model.all_told(rows, np.arange(200))
    everything = model._moved(dirty, rows.missing, found, model.mend(rows, scores), all_told, UNKNOWN)
    assert same(model.repairs(dirty, rows, found), everything)
    assert 0 < everything.changed.any(1).sum() < 200


def test_wrong_levels_are_put_right_and_suspected(model, rng):
    clean, dirty, _ = damaged(rng)
    codes = clean.codes.copy()
    codes[::2, 0] = (codes[::2, 0] + rng.integers(1, 3, 200)) % 3
    found, repairs = model.repair(Blocks(dirty.numbers, codes))
    moved = repairs.changed[:, 0]
    assert moved.sum() > 15
    assert found.suspect[moved, 0].all()
    assert (repairs.blocks.codes[moved, 0] == clean.codes[moved, 0]).mean() > 0.7


@settings(max_examples=15)
@given(st.integers(0, 1000), st.integers(1, 90), st.sampled_from([None, 2, -1]))
def test_a_row_is_judged_alone(model, seed, cut, n_jobs):
    rng = np.random.default_rng(seed)
    _, dirty, _ = damaged(rng, 100)
    whole = model.repair(dirty)
    parts = [model.repair(dirty.take(slice(0, cut)), n_jobs), model.repair(dirty.take(slice(cut, 100)), n_jobs)]
    order = rng.permutation(100)
    shuffled = model.repair(dirty.take(order), n_jobs)
    for k in (0, 1):
        joined = [np.concatenate(pair) for pair in zip(fields(parts[0][k]), fields(parts[1][k]), strict=True)]
        assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(fields(whole[k]), joined, strict=True))
        again = [part[np.argsort(order)] for part in fields(shuffled[k])]
        assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(fields(whole[k]), again, strict=True))


def test_a_row_is_judged_alone_by_the_boosted_expert_too(boosted, rng):
    _, dirty, _ = damaged(rng, 60)
    whole = boosted.judge(dirty)
    single = [boosted.judge(dirty.take(slice(i, i + 1))) for i in range(60)]
    for name in vars(whole):
        assert np.array_equal(getattr(whole, name), np.concatenate([getattr(one, name) for one in single])), name


def test_threads_do_not_matter(model, rng):
    rows = draw(rng, 1500)
    assert same(model.judge(rows), model.judge(rows, n_jobs=3))


def test_gaps_are_filled_and_are_no_evidence(model, rng):
    clean = draw(rng, 600)
    holes = rng.random((600, 8)) < 0.2
    gaps = Blocks(np.where(holes, np.nan, clean.numbers), clean.codes.copy())
    gaps.codes[::7, 0] = MISSING
    found, repairs = model.repair(gaps)
    assert found.flagged.mean() < 0.12
    assert not found.suspect[:, 1:9][holes].any()
    assert (found.cell_p_values[:, 1:9][holes] == 1.0).all()
    assert np.isfinite(repairs.blocks.numbers).all()
    assert (repairs.blocks.codes >= 0).all()
    sd = clean.numbers.std(0)
    error = ((repairs.blocks.numbers - clean.numbers) / sd)[holes]
    blunt = ((clean.numbers.mean(0) - clean.numbers) / sd)[holes]
    assert np.mean(error**2) < 0.5 * np.mean(blunt**2)
    assert (repairs.blocks.codes[::7, 0] == clean.codes[::7, 0]).mean() > 0.6


def test_a_row_without_any_value(model):
    empty = Blocks(np.full((2, 8), np.nan), np.full((2, 2), MISSING, dtype=np.int32))
    found, repairs = model.repair(empty)
    assert not found.flagged.any()
    assert np.isfinite(repairs.blocks.numbers).all()


def test_an_unseen_level_is_strong_evidence(model, rng):
    rows = draw(rng, 200)
    strange = Blocks(rows.numbers, rows.codes.copy())
    strange.codes[:, 0] = UNSEEN
    before, after = model.judge(rows), model.judge(strange)
    assert (after.cell_scores[:, 0] > before.cell_scores[:, 0]).all()
    assert np.median(after.row_p_values) < 0.1


@pytest.mark.parametrize(
    "prior",
    [
        Prior(),
        Prior(runs=(0.02, 0.9)),
        Prior(rates=(0.5,), rate_weights=(1.0,)),
        Prior(segment=0.01),
        Prior(segment=0.49),
    ],
)
def test_a_prior_that_is_wrong_costs_little(rng, prior):
    fitted = fit_evidence(draw(rng, 400), draw(rng, 200), SCHEMA, boosted=False, prior=prior, rng=rng)
    clean, dirty, _cells = damaged(rng)
    found, repairs = fitted.repair(dirty)
    sd = clean.numbers.std(0)
    left = np.sum(((repairs.blocks.numbers - clean.numbers) / sd) ** 2) / np.sum(
        ((dirty.numbers - clean.numbers) / sd) ** 2
    )
    assert found.flagged[::2].mean() > 0.85
    assert left < 0.4


@pytest.mark.parametrize("values", ["constant", "swapped", "zero"])
def test_damage_that_no_slab_describes(model, rng, values):
    clean = draw(rng, 400)
    numbers = clean.numbers.copy()
    hit = np.zeros(numbers.shape, dtype=bool)
    hit[::2, 3:7] = True
    other = {"constant": np.full(numbers.shape, 3.21), "swapped": numbers[::-1], "zero": np.zeros(numbers.shape)}[
        values
    ]
    numbers[hit] = other[hit]
    _, repairs = model.repair(Blocks(numbers, clean.codes))
    sd = clean.numbers.std(0)
    after = np.sum(((repairs.blocks.numbers - clean.numbers) / sd) ** 2)
    assert after < np.sum(((numbers - clean.numbers) / sd) ** 2)


def test_giants_do_not_vouch_for_each_other(rng):
    """Two skewed columns that depend on each other far out, and on the rest: both drawn uniformly over their ranges."""
    schema = Schema(tuple(Column(f"x{j}", Kind.CONTINUOUS) for j in range(8)))

    def rows(n):
        hidden = rng.normal(size=(n, 1))
        x = hidden + 0.4 * rng.normal(size=(n, 8))
        x[:, 4] = x[:, 3] + 0.1 * rng.normal(size=n)
        x[:, 3:5] = np.exp(2.0 * x[:, 3:5])
        return Blocks(x, np.empty((n, 0), dtype=np.int32))

    reference = rows(600)
    model = fit_evidence(reference, rows(300), schema, boosted=False, rng=rng)
    clean = rows(300)
    numbers = clean.numbers.copy()
    top = reference.numbers[:, 3:5].max(0)
    numbers[:, 3:5] = top * (rng.uniform(0.3, 1.0, size=(300, 1)) * [1.0, 1.0])
    found = model.judge(Blocks(numbers, clean.codes))
    typical = clean.numbers[:, :3].mean(1) < 1.0  # the rest does not expect giants
    assert (found.cell_scores[typical][:, 3:5] > 0.0).mean() > 0.9


def test_a_handful_of_values_has_no_giants(rng):
    size = np.exp(1.5 * rng.normal(size=(600, 1)) + 0.1 * rng.normal(size=(600, 2)))
    few = np.minimum(rng.poisson(0.4, (600, 1)) + 1.0, 4.0)
    rows = np.hstack([size, few, rng.normal(size=(600, 1))])
    schema = Schema(tuple(Column(f"x{j}", Kind.CONTINUOUS) for j in range(4)))
    blocks = lambda numbers: Blocks(numbers, np.empty((len(numbers), 0), dtype=np.int32))  # noqa: E731
    fitted = fit_evidence(blocks(rows[:400]), blocks(rows[400:]), schema, boosted=False, rng=rng)
    found = fitted.judge(blocks(np.array([[1.0, 1.0, 10.0, 0.0]])))
    assert not found.natural[0, 2]
    assert found.cell_scores[0, 2] > 0.0


def test_columns_that_know_nothing_of_each_other(rng):
    schema = Schema(tuple(Column(f"x{j}", Kind.CONTINUOUS) for j in range(6)))
    rows = lambda n: Blocks(rng.normal(size=(n, 6)), np.empty((n, 0), dtype=np.int32))  # noqa: E731
    fitted = fit_evidence(rows(400), rows(200), schema, boosted=False, rng=rng)
    clean = rows(1000)
    found, repairs = fitted.repair(clean)
    assert found.flagged.mean() < 0.09
    assert np.mean((repairs.blocks.numbers - clean.numbers) ** 2) < 0.1


@pytest.mark.parametrize("columns", [1, 2])
def test_hardly_any_columns(rng, columns):
    schema = Schema(tuple(Column(f"x{j}", Kind.CONTINUOUS) for j in range(columns)))
    rows = Blocks(rng.normal(size=(200, columns)), np.empty((200, 0), dtype=np.int32))
    fitted = fit_evidence(rows.take(slice(0, 120)), rows.take(slice(120, 200)), schema, rng=rng)
    assert fitted.judge(Blocks(np.full((1, columns), 50.0), np.empty((1, 0), dtype=np.int32))).flagged[0]


def test_categories_only(rng):
    schema = Schema(tuple(Column(f"c{j}", Kind.CATEGORICAL, ("a", "b", "c")) for j in range(5)))
    first = rng.integers(0, 3, 900)
    codes = np.where(rng.random((900, 5)) < 0.005, rng.integers(0, 3, (900, 5)), first[:, None]).astype(np.int32)
    rows = Blocks(np.empty((900, 0)), codes)
    fitted = fit_evidence(rows.take(slice(0, 400)), rows.take(slice(400, 600)), schema, boosted=False, rng=rng)
    wrong = codes[600:].copy()
    wrong[:, 2] = (first[600:] + 1) % 3
    found, repairs = fitted.repair(Blocks(np.empty((300, 0)), wrong))
    assert found.flagged.mean() > 0.9
    assert (repairs.blocks.codes[:, 2] == codes[600:, 2]).mean() > 0.8


class Oracle:
    """A source of a stranger: it knows nothing but the marginal."""

    def prepare(self, blocks, scores):
        return blocks

    def predict(self, prepared, withheld, row_of):
        n = len(row_of)
        return CellPrediction(np.zeros((n, 8)), np.ones((n, 8)), np.tile([1 / 3] * 3 + [0.5] * 2, (n, 1)))


def test_further_sources_take_part(rng):
    assert isinstance(Oracle(), CellSource)
    state = np.random.default_rng(3)
    fitted = fit_evidence(draw(state, 400), draw(state, 200), SCHEMA, boosted=False, sources=[Oracle()], rng=state)
    assert len(fitted.sources) == 2
    _, dirty, cells = damaged(rng)
    found = fitted.judge(dirty)
    assert (found.suspect & cells).sum() / cells.sum() > 0.6  # a source that knows nothing does no harm


def test_the_fitted_state_is_plain(boosted):
    plain = (np.ndarray, str, int, float, bool, type(None))

    def check(value):
        if dataclasses.is_dataclass(value):
            assert type(value).__module__.startswith("goldseam.")
            return all(check(getattr(value, field.name)) for field in dataclasses.fields(value))
        if isinstance(value, (tuple, list)):
            return all(check(part) for part in value)
        assert isinstance(value, plain), type(value)
        return True

    assert check(boosted)


def test_settings_and_rows_that_cannot_work(rng):
    rows = draw(rng, 60)
    with pytest.raises(ParameterError, match=r"alarm_rate must lie between 0 and 1; got 1\.5"):
        fit_evidence(rows, rows, SCHEMA, alarm_rate=1.5, rng=rng)
    with pytest.raises(InputError, match="at least 4 rows; got 3"):
        fit_evidence(rows, rows.take(slice(0, 3)), SCHEMA, rng=rng)
    with pytest.warns(CalibrationWarning, match=r"60 calibration rows cannot show an alarm rate of 0\.01"):
        fitted = fit_evidence(rows, rows, SCHEMA, boosted=False, alarm_rate=0.01, rng=rng)
    assert not fitted.judge(rows).flagged.any()


def test_a_giant_is_vouched_for_only_in_company(rng):
    numbers = np.exp(rng.normal(size=(900, 1)) + 0.5 * rng.normal(size=(900, 4)))
    schema = Schema(tuple(Column(f"x{j}", Kind.CONTINUOUS) for j in range(4)))
    blocks = lambda rows: Blocks(rows, np.empty((len(rows), 0), dtype=np.int32))  # noqa: E731
    model = fit_evidence(blocks(numbers[:500]), blocks(numbers[500:800]), schema, boosted=False, rng=rng)
    large = numbers[:500].max(axis=0)
    alone, throughout = large * [0.95, 10.0, 0.95, 0.95], large * [3.0, 5.0, 3.0, 3.0]
    found, repairs = model.repair(blocks(np.array([alone, throughout])))
    assert found.flagged[0]
    assert found.cell_scores[0].argmax() == 1
    assert repairs.blocks.numbers[0, 1] < 0.3 * alone[1]
    assert found.cell_scores[1, 1] < 0.0
    assert repairs.blocks.numbers[1, 1] == throughout[1]
