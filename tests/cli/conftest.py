"""Tables and models that the tests of the command line share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.cli.stand_in import StandIn, installed

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


@pytest.fixture(autouse=True)
def stand_in(request: pytest.FixtureRequest) -> Iterator[None]:
    """The stand-in restorer, except where a module wants the real one."""
    with nullcontext() if getattr(request.module, "REAL", False) else installed():
        yield


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a reference, a damaged table and models of three speeds: read-only for the tests."""
    path = tmp_path_factory.mktemp("shared")
    reference = clean_table()
    reference.write_csv(path / "reference.csv")
    damaged_table().write_csv(path / "incoming.csv")
    damaged_table().write_parquet(path / "incoming.parquet")
    with installed():
        for name, seconds in (("model", 0.0), ("slow", 0.4), ("slowest", 3.0)):
            StandIn(kinds={"id": "passthrough"}, seconds=seconds).fit(reference).save(str(path / f"{name}.seam"))
    return path
