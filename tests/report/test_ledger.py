"""What a report gathers from a seam, against a slow and obvious count."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from goldseam.report import ledger
from goldseam.report.ledger import read_ledger
from goldseam.report.words import reason
from goldseam.seam import CAUSES, Seam

NAMES = [f"c{i}" for i in range(60)]


def random_seam(rng: np.random.Generator, n_rows: int = 1000, n_lines: int = 3000) -> Seam:
    cells = np.sort(rng.choice(n_rows * len(NAMES), n_lines, replace=False))
    rows, columns = cells // len(NAMES), cells % len(NAMES)
    return Seam.of(
        row=rows,
        column=[NAMES[i] for i in columns],
        kind=["continuous"] * n_lines,
        cause=rng.choice(CAUSES, n_lines, p=[0.2, 0.3, 0.3, 0.1, 0.1]).tolist(),
        observed=[str(value) for value in rng.normal(size=n_lines)],
        restored=[str(value) for value in rng.normal(size=n_lines)],
        p_value=rng.random(n_lines),
    )


def test_the_map_counts_every_line_once(rng: np.random.Generator) -> None:
    seam = random_seam(rng)
    cells = read_ledger(seam, NAMES, 1000).cell_map
    assert cells.counts.shape == (5, 200, 30)
    expected: Counter[tuple[int, int, int]] = Counter()
    for line in seam:
        expected[CAUSES.index(line["cause"]), line["row"] // 5, NAMES.index(line["column"]) // 2] += 1
    assert {tuple(map(int, at)): int(cells.counts[tuple(at)]) for at in np.argwhere(cells.counts)} == expected
    assert cells.is_aggregated


def test_the_worst_rows_are_the_worst(rng: np.random.Generator) -> None:
    seam = random_seam(rng)
    hard, soft, p = Counter[int](), Counter[int](), dict[int, float]()
    for line in seam:
        (soft if line["cause"] == "noise" else hard)[line["row"]] += 1
        p[line["row"]] = min(p.get(line["row"], 2.0), line["p_value"])
    ranked = sorted(p, key=lambda row: (-hard[row], -soft[row], p[row], row))
    assert [story.row for story in read_ledger(seam, NAMES, 1000).rows] == ranked[: ledger.WORST_ROWS]


@pytest.mark.parametrize("block", [7, 100, 2999, 10_000])
def test_blocks_do_not_matter(
    rng: np.random.Generator, block: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seam = random_seam(rng)
    whole = read_ledger(seam, NAMES, 1000)
    seam.write(tmp_path / "seam.parquet")
    seam.write(tmp_path / "seam.csv")
    monkeypatch.setattr(ledger, "BLOCK", block)
    for source in (seam, tmp_path / "seam.parquet", str(tmp_path / "seam.csv")):
        other = read_ledger(source, NAMES, 1000)
        assert (other.cell_map.counts == whole.cell_map.counts).all()
        assert other.rows == whole.rows
        assert sorted(other.lines, key=str) == sorted(whole.lines, key=str)


def test_the_oddest_lines_of_every_cause_are_shown(rng: np.random.Generator) -> None:
    seam = random_seam(rng)
    lines = read_ledger(seam, NAMES, 1000).lines
    assert len(lines) == ledger.LINES
    for cause in CAUSES:
        odd = sorted(line["p_value"] for line in seam if line["cause"] == cause)[: ledger.LINES // 5]
        assert sorted(line["p_value"] for line in lines if line["cause"] == cause) == odd
    assert [line["p_value"] for line in lines] == sorted(line["p_value"] for line in lines)


def test_a_short_seam_is_shown_whole_in_its_order(rng: np.random.Generator) -> None:
    seam = random_seam(rng, n_lines=50)
    assert read_ledger(seam, NAMES, 1000).lines == list(seam)


def test_lines_outside_the_table_are_left_out_of_the_map() -> None:
    seam = Seam.of(row=[0, 5, 99], column=["c0", "unknown", "c1"], cause=["corrupt"] * 3)
    assert read_ledger(seam, NAMES, 10).cell_map.counts.sum() == 1


def test_batches_have_their_own_rows() -> None:
    seam = Seam.of(row=[100, 109], column=["c0", "c1"], cause=["missing", "noise"])
    cells = read_ledger(seam, NAMES, 10, first_row=100).cell_map
    assert cells.counts[CAUSES.index("missing"), 0, 0] == cells.counts[CAUSES.index("noise"), 9, 0] == 1


def story(**columns: Any) -> str:
    n = len(columns["column"])
    seam = Seam.of(row=[4] * n, **columns)
    return reason(read_ledger(seam, NAMES, 10).rows[0])


def test_the_reason_in_words() -> None:
    names = [f"c{i}" for i in range(3, 10)]
    assert story(column=names, cause=["corrupt"] * 7, p_value=[0.01] * 6 + [0.002], donors=[[85, 12, 301]] * 7) == (
        "7 neighbouring cells, p = 0.002; closest reference rows 12, 85, 301"
    )
    assert story(column=["c1", "c5"], cause=["corrupt", "corrupt"]) == "2 corrupt cells"
    assert story(
        column=["c1", "c2", "c3", "c4"], cause=["missing", "noise", "unseen", "refused"], donors=[[3], None, None, None]
    ) == (
        "1 value the reference never had; 1 empty cell filled; 1 noisy cell drawn in; 1 flagged cell left as found; "
        "closest reference row 3"
    )
