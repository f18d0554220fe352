"""Tables and models that the tests of the command line share."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.cli.stand_in import StandIn, install

N = 30_000


def clean_table(n: int = N, seed: int = 1) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "id": [f"{i:06d}" for i in range(n)],
            "v": np.round(rng.normal(10, 2, n).clip(5, 15), 2),
            "k": rng.integers(0, 50, n),
            "c": rng.choice(["red", "green", "blue"], n),
            "flag": rng.random(n) < 0.5,
        }
    )


def damaged_table(n: int = N, seed: int = 2) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    odd = pl.Series(rng.random(n) < 0.03)
    gone = pl.Series(rng.random(n) < 0.03)
    return clean_table(n, seed).with_columns(
        v=pl.when(odd).then(99.5).otherwise("v"), k=pl.when(gone).then(None).otherwise("k")
    )


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a reference, a damaged table, a model, and a slow model: read-only for the tests."""
    install()
    path = tmp_path_factory.mktemp("shared")
    clean_table().write_csv(path / "reference.csv")
    damaged_table().write_csv(path / "incoming.csv")
    damaged_table().write_parquet(path / "incoming.parquet")
    reference = clean_table()
    kinds = {"id": "passthrough"}
    StandIn(kinds=kinds).fit(reference).save(str(path / "model.seam"))
    StandIn(kinds=kinds, seconds=0.4).fit(reference).save(str(path / "slow.seam"))
    StandIn(kinds=kinds, seconds=3.0).fit(reference).save(str(path / "slowest.seam"))
    return path
