"""Noise of whole tables: found where it is, refused where it is not, undone by the field, and kept on record."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.datasets import load_iris

import goldseam as gs
from goldseam.denoising import Damaged, damaged_rows, fit_denoiser, given_noise, nil_noise
from goldseam.errors import InputError, ParameterError
from goldseam.restorer import Levels, Restorer
from goldseam.tables import Table
from tests.restorer.test_restorer import CLEAN, FAST, REFERENCE, damaged

NUMBERS = ["x1", "x2", "x3", "x4", "x5"]


def noisy(share: float, sigma: float = 0.5, seed: int = 5) -> tuple[Any, np.ndarray]:
    """The clean table with noise of some sds on every number of some rows."""
    rng = np.random.default_rng(seed)
    rows = rng.random(len(CLEAN)) < share
    table = CLEAN.copy()
    for name in NUMBERS:
        step = sigma * REFERENCE[name].std() * rng.standard_normal(len(CLEAN))
        table[name] = (table[name] + np.where(rows, step, 0.0)).astype(CLEAN[name].dtype)
    return table, rows


def error(table: Any) -> np.ndarray:
    """Squared error per row in sds."""
    return sum(((table[name] - CLEAN[name]) / REFERENCE[name].std()).to_numpy() ** 2 for name in NUMBERS)


def most_alarms(model: Restorer, clean: np.ndarray) -> float:
    """The share of clean rows that are flagged at a rate of .05, and two standard deviations more."""
    rows = 1.0 / clean.sum() + 1.0 / model.row_counts_["calibration"]
    return float(0.05 + 2.0 * np.sqrt(0.05 * 0.95 * rows))


@pytest.fixture(scope="module")
def restorer() -> Restorer:
    return Restorer(**FAST).fit(REFERENCE)


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_noise_is_found_and_mostly_undone(restorer: Restorer, share: float) -> None:
    table, rows = noisy(share)
    result = restorer.restore(table)
    assert error(result.table)[rows].sum() < 0.7 * error(table)[rows].sum()
    assert error(result.table)[~rows].sum() < 0.1 * error(table)[rows].sum()
    levels = result.facts["noise"]
    assert levels["x1"]["status"] == "estimated"
    assert levels["x1"]["value"] == pytest.approx(0.5 * REFERENCE["x1"].std(), rel=0.35)
    assert 0.4 * share < levels["x1"]["share"] < 1.1 * share
    assert result.seam.count_by_cause()["noise"] > 2 * rows.sum()
    assert result.undo().equals(table)


def test_clean_and_locally_damaged_tables_are_not_denoised(restorer: Restorer) -> None:
    for table in (CLEAN, damaged(CLEAN)[0]):
        levels = restorer.survey([table])
        assert levels.noise is not None
        assert not levels.noise.acts
        statuses = {line["status"] for line in levels.noise.described(restorer.schema_).values()}
        assert statuses == {"below_floor"}


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_draws_from_anywhere_are_no_noise(seed: int) -> None:
    """With few reference rows such a table was taken for noisy, and up to two thirds of its clean rows were flagged."""
    rng = np.random.default_rng(seed)
    flowers = load_iris().data[rng.permutation(150)]
    reference, incoming = flowers[:75], flowers[75:]
    hit = (rng.random(incoming.shape) < 0.15) & (rng.random((75, 1)) < 0.5)
    anywhere = rng.uniform(reference.min(axis=0), reference.max(axis=0), incoming.shape)
    model = Restorer(audit=False, method=["conditional"], random_state=seed).fit(reference)
    result = model.restore(np.where(hit, anywhere, incoming))
    assert {line["status"] for line in result.facts["noise"].values()} == {"below_floor"}
    assert result.flagged[~hit.any(axis=1)].mean() <= most_alarms(model, ~hit.any(axis=1))


def test_clean_rows_of_noisy_tables_are_flagged_at_the_promised_rate(restorer: Restorer) -> None:
    """With one alarm for damage and another for noise it was three times that rate."""
    alarms, found = [], []
    for seed in range(5, 9):
        table, rows = noisy(0.5, seed=seed)
        result = restorer.restore(table)
        assert result.facts["noise"]["x1"]["status"] == "estimated"
        alarms.append(result.flagged[~rows].mean())
        found.append(result.flagged[rows].mean())
    assert np.mean(alarms) <= most_alarms(restorer, ~rows)
    assert np.mean(found) > 0.7


def test_noisy_rows_are_alarming_where_all_rows_are(restorer: Restorer) -> None:
    table, _ = noisy(1.0)
    assert restorer.restore(table).flagged.mean() > 0.4


@pytest.mark.parametrize("column", ["count", "x1"])
def test_one_column_that_drifted_does_not_make_a_table_noisy(restorer: Restorer, column: str) -> None:
    table = CLEAN.copy()
    table[column] = table[column] + 0.05 * REFERENCE[column].std()  # counts are no whole numbers any more
    levels = restorer.survey([table])
    assert levels.noise is not None
    assert not levels.noise.acts


def test_denoise_false_and_streams_without_a_survey_leave_noise_alone(restorer: Restorer) -> None:
    table, _ = noisy(1.0)
    parts = list(restorer.restore_stream([table]))
    assert parts[0].facts["noise"] == {}
    off = Restorer(**FAST, denoise=False).fit(REFERENCE)
    assert off.mender_.denoiser is None
    assert off.survey([table]).noise is None


def test_batches_agree_once_the_levels_are_known(restorer: Restorer) -> None:
    table, _ = noisy(0.6)
    levels = restorer.survey([table.iloc[:120], table.iloc[120:]])
    whole = restorer.restore(table, levels=levels)
    parts = [restorer.restore(table.iloc[k::3], levels=levels) for k in range(3)]
    for k, part in enumerate(parts):
        assert part.table.equals(whole.table.iloc[k::3])
    again = restorer.survey([table])
    assert np.array_equal(again.noise.shares, levels.noise.shares)


def test_given_levels_are_used_as_they_are_even_by_transform() -> None:
    table, _ = noisy(1.0)
    sigma = {name: 0.5 * float(REFERENCE[name].std()) for name in NUMBERS}
    model = Restorer(**FAST, denoise=sigma).fit(REFERENCE)
    result = model.restore(table)
    assert result.facts["noise"]["x2"] == {
        "value": sigma["x2"], "unit": "sd", "status": "given", "share": 1.0
    }  # fmt: skip
    assert result.facts["noise"]["band"]["status"] == "nil"
    assert error(result.table).sum() < 0.7 * error(table).sum()
    columns = model.feature_names_in_
    assert model.transform(table[columns])["x2"].equals(result.table["x2"])
    hit = np.arange(0, 300, 5)
    table.loc[hit, "x3"] += 12.0
    assert error(model.transform(table[columns])).sum() < 0.2 * error(table).sum()


def test_noise_and_gross_errors_together(restorer: Restorer) -> None:
    table, _ = noisy(1.0)
    hit = np.arange(0, 300, 3)
    table.loc[hit, "x3"] = table.loc[hit, "x3"] + 12.0
    result = restorer.restore(table)
    assert result.facts["noise"]["x3"]["status"] == "estimated"
    off = np.abs(result.table["x3"] - CLEAN["x3"])
    assert (off[hit] < 4.0).mean() > 0.8
    assert error(result.table).sum() < 0.1 * error(table).sum()


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_runs_of_wrong_numbers_are_found_amid_noise(seed: int) -> None:
    table, _ = noisy(1.0, sigma=0.2)
    hit, shift = np.arange(0, 300, 2), 60
    for name in ("x2", "x3"):  # those of another row
        table.loc[hit, name] = np.roll(CLEAN[name].to_numpy(), shift)[hit]
    result = Restorer(audit=False, method=["conditional"], random_state=seed).fit(REFERENCE).restore(table)
    found = result.facts["noise"]["x2"]["value"] / (0.2 * REFERENCE["x2"].std())
    assert 0.8 < found < 3.0  # overstated, where half of the rows are damaged besides
    assert error(result.table)[hit].sum() < 0.4 * error(table)[hit].sum()


def test_what_comes_back_the_same_is_not_on_record_as_changed(restorer: Restorer) -> None:
    table, _ = noisy(1.0)
    result = restorer.restore(table)
    lines = result.seam.to_polars().filter(pl.col("cause").is_in(["noise", "corrupt"]))
    assert lines.filter(pl.col("column") == "count").height > 50
    assert not (lines["observed"] == lines["restored"]).any()
    assert result.changed.sum() == len(lines)
    assert (result.table["count"] != table["count"]).sum() == result.changed[:, 3].sum()


def test_levels_never_seen_in_noisy_rows_speak_against_no_other_cell(restorer: Restorer) -> None:
    table, _ = noisy(1.0)
    odd = table.assign(band=np.where(np.arange(len(table)) % 2 == 0, "?", table["band"]))
    plain, result = restorer.restore(table), restorer.restore(odd)
    assert error(result.table).sum() < 1.1 * error(plain.table).sum()
    assert [restorer.survey([one]).noise.damaged_p_value for one in (table, odd)] == [0.0, 0.0]


def test_noise_is_drawn_as_loud_as_a_survey_understates_it(restorer: Restorer) -> None:
    table, _ = noisy(1.0)
    mender, noise = restorer.mender_, replace(restorer.survey([table]).noise, louder=1.0)
    assert mender.denoiser is not None
    rows = mender.denoiser.add_noise(mender.calibration, replace(noise, louder=2.0), np.random.default_rng(0))
    quiet = mender.denoiser.add_noise(mender.calibration, noise, np.random.default_rng(0))
    moved = [np.abs(one.numbers - mender.calibration.numbers).mean(axis=0) for one in (rows, quiet)]
    np.testing.assert_allclose(moved[0], 2.0 * moved[1])
    assert mender.denoiser.understated(rows, Damaged.nothing(rows), noise) < 0.7
    assert 0.8 < mender.denoiser.understated(quiet, Damaged.nothing(quiet), noise) < 1.4


def test_wide_tables_of_numbers_are_denoised_by_a_gaussian_field(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, 5)) @ rng.normal(size=(5, 120)) + 0.1 * rng.normal(size=(400, 120))
    model = Restorer(method=["conditional"], audit=False, random_state=0).fit(rows[:300])
    dirty = rows[300:] + 1.0 * rng.normal(size=(100, 120))
    result = model.restore(dirty)
    assert np.square(result.table - rows[300:]).sum() < 0.2 * np.square(dirty - rows[300:]).sum()
    model.save(tmp_path / "wide.seam")
    assert np.array_equal(gs.load(tmp_path / "wide.seam").restore(dirty).table, result.table)
    assert not model.survey([rows[300:]]).noise.acts


def test_tables_in_order_of_time_are_judged_by_rows_of_all_times() -> None:
    rng = np.random.default_rng(0)
    rows = (
        np.linspace(0.0, 50.0, 4000)[:, None]
        + rng.normal(size=(4000, 1)) @ np.ones((1, 4))
        + 0.1 * rng.normal(size=(4000, 4))
    )
    model = Restorer(method=["conditional"], audit=False, random_state=0).fit(rows)
    assert model.reference_rows_.size == 2000
    assert model.reference_rows_[-1] > 3990
    late = rows[3500:] + 3.0 * rng.normal(size=(500, 4))
    result = model.restore(late)
    assert np.square(result.table - rows[3500:]).sum() < 0.5 * np.square(late - rows[3500:]).sum()


def test_saved_models_denoise_the_same(restorer: Restorer, tmp_path: Path) -> None:
    table, _ = noisy(0.7)
    restorer.save(tmp_path / "model.seam")
    again = gs.load(tmp_path / "model.seam")
    assert again.restore(table).table.equals(restorer.restore(table).table)


def test_bad_levels_are_refused() -> None:
    with pytest.raises(ParameterError, match=r"denoise must be one of 'auto', False; got 'never'"):
        Restorer(**FAST, denoise="never").fit(REFERENCE)
    with pytest.raises(ParameterError, match=r"noise names column 'x9', which is not in the table"):
        Restorer(**FAST, denoise={"x9": 1.0}).fit(REFERENCE).restore(CLEAN)
    with pytest.raises(InputError, match=r"no field could be learnt: 0 numbers among 2 columns"):
        Restorer(**FAST, denoise={"band": 0.1}).fit(REFERENCE[["band", "side"]])


def test_few_rows_are_not_surveyed_and_empty_ones_pass(restorer: Restorer) -> None:
    table, _ = noisy(1.0)
    assert not restorer.survey([table.iloc[:10]]).noise.acts
    assert len(restorer.restore(table.iloc[:0]).table) == 0


def test_noise_of_another_table_is_added_as_described() -> None:
    schema_of = Restorer(**FAST).fit(REFERENCE)
    blocks = Table.read(REFERENCE).encode(schema_of.schema_)
    denoiser = fit_denoiser(blocks, blocks, schema_of.schema_, np.random.default_rng(0))
    assert denoiser is not None
    noise = given_noise(schema_of.schema_, {"x1": 2.0, "band": 0.5})
    out = denoiser.add_noise(blocks, noise, np.random.default_rng(1))
    step = out.numbers - blocks.numbers
    assert step[:, 0].std() == pytest.approx(2.0, rel=0.2)
    assert not step[:, 1].any()
    assert (out.codes[:, 0] != blocks.codes[:, 0]).mean() == pytest.approx(0.5, abs=0.1)
    assert (out.codes[:, 1] == blocks.codes[:, 1]).all()
    assert set(np.unique(out.codes[:, 0])) <= {0, 1}


def test_rows_damaged_besides_are_told_by_their_p_values() -> None:
    rng = np.random.default_rng(0)
    assert damaged_rows(rng.random(500)) < 0.02
    mixed = np.concatenate([rng.random(250), 0.01 * rng.random(250)])
    assert damaged_rows(mixed) > 0.1
    few = np.concatenate([rng.random(490), 0.001 * rng.random(10)])
    assert 0.0009 < damaged_rows(few) < 0.01
    assert damaged_rows(np.empty(0)) == 0.0


def test_levels_without_noise_are_quiet() -> None:
    schema = Restorer(**FAST).fit(REFERENCE).schema_
    assert not Levels(noise=nil_noise(schema)).noisy


def test_a_gap_has_no_voice(restorer: Restorer) -> None:
    denoiser = restorer.mender_.denoiser
    assert denoiser is not None
    blocks = Table.read(CLEAN.assign(x2=np.nan)).encode(restorer.schema_)
    gap = np.isnan(blocks.numbers)
    votes = denoiser.cell_votes(blocks, Damaged.nothing(blocks))
    assert gap.any()
    assert (votes[..., gap] == 0.0).all()
    assert (votes[..., ~gap] != 0.0).any()
