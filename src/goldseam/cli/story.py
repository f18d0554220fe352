"""The demo: real commands on a real table, and what they did beside the truth."""

from __future__ import annotations

import io
import json
import sys
import time
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl

from goldseam.cli.app import program
from goldseam.cli.console import Console, table
from goldseam.cli.progress import working
from goldseam.cli.warm_up import FIRST_FIT, is_first_fit
from goldseam.errors import InputError

__all__ = ["tell_story"]

REFERENCE_ROWS: Final = 400
MEASURES: Final = 10  # the means; their errors and worst values would triple the minute
SHOWN: Final = 10
AUDIT_KEY: Final = (
    "found: damaged rows flagged. localised: how well the cells were told (F1). restored: share of the error undone,\n"
    "beside what the column mean and the nearest rows undo when they are told the cells. coverage: intervals that hold the truth."
)


class Story:
    """Runs commands, shows them as a user would type them, and remembers how long it took."""

    def __init__(self, folder: Path, console: Console) -> None:
        self.folder, self.console = folder, console
        self.start = time.monotonic()

    def say(self, text: str) -> None:
        """Part of the story; not in JSON."""
        if not self.console.as_json:
            print(text, flush=True)

    def run(self, *words: str) -> dict[str, Any]:
        """Run a command on the files of the demo; returns its JSON result."""
        here = [str(self.folder / w) if "." in w and not w.replace(".", "").isdigit() else w for w in words]
        self.say(f"\n$ goldseam {' '.join(here)}")
        out, err = io.StringIO(), io.StringIO()
        called, sys.argv = sys.argv, ["goldseam", *here]  # what the run directory and the report say they were made by
        try:
            with working("working", quiet=self.console.quiet), redirect_stdout(out), redirect_stderr(err):
                program.main([*here, "--json", "--quiet"], prog_name="goldseam", standalone_mode=False)
        finally:
            sys.argv = called
        result: dict[str, Any] = json.loads(out.getvalue())
        return result


def tell_story(folder: Path, console: Console) -> None:
    """Damage, fit, check, restore, compare."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"The demo's folder {str(folder)!r} is a file. Hint: -o another-name")
    folder.mkdir(parents=True, exist_ok=True)
    story = Story(folder, console)
    clean = write_tables(folder)
    story.say(f"Wisconsin breast cancer: {REFERENCE_ROWS} rows are the reference, {clean.height} come in.")
    options = ("--rows", "0.3", "--rate", "0.15", "--truth", "truth.csv", "--seed", "1")
    damage = story.run("corrupt", "clean.csv", "-o", "damaged.csv", *options)
    story.say(f"{damage['cells_damaged']} cells in {damage['rows_damaged']} rows were overwritten with gross values.")
    story.say(
        "\nNow a model learns from the clean reference, damages rows of it on purpose and measures itself on them:"
        + (f"\n({FIRST_FIT})" if is_first_fit() else "")
    )
    fitted = story.run("fit", "reference.csv", "-o", "model.seam")
    story.say(_audit_text(folder / "model.seam"))
    checked = story.run("check", "damaged.csv", "-m", "model.seam")
    story.say(
        f"{'clean' if checked['clean'] else 'damaged'}: {checked['suspect_rows']} of {checked['rows']} rows suspect."
    )
    restored = story.run("restore", "damaged.csv", "-m", "model.seam", "-o", "restored.csv", "--report", "report.html")
    counts = restored["counts"]
    story.say(
        f"{counts['cells_changed']} cells in {counts['rows_changed']} rows mended; every other byte is as it was."
    )
    compared = compare(folder, clean)
    story.say("\n" + _before_after(compared))
    story.say("\n" + _next_steps(folder, story))
    if console.as_json:
        console.result(_result(folder, damage, fitted, checked, counts, compared, story), "")


def write_tables(folder: Path) -> pl.DataFrame:
    """The reference and the clean incoming rows as CSV."""
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    names = [str(name) for name in data.feature_names[:MEASURES]]
    frame = pl.DataFrame(data.data[:, :MEASURES], schema=names)
    diagnosis = pl.Series("diagnosis", np.where(data.target == 0, "malignant", "benign"))
    order = np.random.default_rng(0).permutation(frame.height)
    frame = frame.with_columns(diagnosis)[order]
    frame[:REFERENCE_ROWS].write_csv(folder / "reference.csv")
    frame[REFERENCE_ROWS:].write_csv(folder / "clean.csv")
    return frame[REFERENCE_ROWS:]


def compare(folder: Path, clean: pl.DataFrame) -> dict[str, Any]:
    """The restored table beside the truth: cells found, and how far numbers are from the truth."""
    truth = pl.read_csv(folder / "truth.csv")
    seam = pl.read_parquet(folder / "restored.run" / "seam.parquet").filter(pl.col("cause") != "refused")
    both = truth.join(seam.select("row", "column", "restored"), on=["row", "column"], how="left")
    spread = {name: float(clean[name].std()) for name in clean.columns if clean[name].dtype.is_numeric()}  # type: ignore[arg-type]
    rows = [row for row in both.iter_rows(named=True) if row["column"] in spread]
    before = [abs(float(r["damaged"]) - float(r["clean"])) / spread[r["column"]] for r in rows]
    after = [abs(float(r["restored"] or r["damaged"]) - float(r["clean"])) / spread[r["column"]] for r in rows]
    return {
        "damaged_cells": truth.height,
        "found_cells": int(both["restored"].is_not_null().sum()),
        "mended_cells": seam.height,
        "error_before": float(np.median(before)),
        "error_after": float(np.median(after)),
        "examples": [_rounded(r) for r in rows if r["restored"]][:SHOWN],
    }


def _rounded(row: dict[str, Any]) -> dict[str, Any]:
    numbers = {name: float(f"{float(row[name]):.4g}") for name in ("clean", "damaged", "restored")}
    return {"row": row["row"], "column": row["column"], **numbers}


def _audit_text(model: Path) -> str:
    from goldseam.cli.session import load_restorer

    return f"{load_restorer(str(model)).audit_}\n\n{AUDIT_KEY}"


def _before_after(compared: dict[str, Any]) -> str:
    lines = table(
        ["row", "column", "was", "damaged to", "restored to"],
        [
            [e["row"], e["column"], f"{e['clean']:g}", f"{e['damaged']:g}", f"{e['restored']:g}"]
            for e in compared["examples"]
        ],
        right=[0, 2, 3, 4],
    )
    return (
        f"{lines}\n\n{compared['found_cells']} of {compared['damaged_cells']} damaged cells were found; of "
        f"{compared['mended_cells']} mended cells {compared['mended_cells'] - compared['found_cells']} had been fine.\n"
        f"Median error of damaged numbers: {compared['error_before']:.2f} -> {compared['error_after']:.2f} "
        "standard deviations of the column."
    )


def _next_steps(folder: Path, story: Story) -> str:
    steps: Sequence[str] = (
        f"Done in {time.monotonic() - story.start:.0f} s. All files are in {folder}/",
        f"  look at      {folder / 'report.html'}",
        f"  every change {folder / 'restored.run' / 'seam.parquet'}",
        "Next, with your own table:",
        "  goldseam fit reference.csv -o model.seam",
        "  goldseam check incoming.csv -m model.seam",
        "  goldseam restore incoming.csv -m model.seam -o restored.csv",
    )
    return "\n".join(steps)


def _result(
    folder: Path, damage: Any, fitted: Any, checked: Any, counts: Any, compared: Any, story: Story
) -> dict[str, Any]:
    return {
        "folder": str(folder),
        "report": str(folder / "report.html"),
        "cells_damaged": damage["cells_damaged"],
        "columns": len(fitted["columns"]),
        "suspect_rows": checked["suspect_rows"],
        "counts": counts,
        "compared": compared,
        "seconds": round(time.monotonic() - story.start, 1),
    }
