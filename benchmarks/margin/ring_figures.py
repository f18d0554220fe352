"""The paper's figures 1 and 2 anew: errors as `margin/ring` left them, precision against recall measured here.

Each drawing takes stored rows, so it can be made again without a run: `draw_errors(stored("margin-ring"), ...)`.
"""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
from sklearn.metrics import precision_recall_curve

from benchmarks.harness import RESULTS, write_results
from benchmarks.margin.ring import CELLS, DEFAULT, METHODS, PAPER, RUNS, title_of
from goldseam.datasets.ring import make_ring
from goldseam.report.displays.palette import require_matplotlib

COLOURS = {
    "SVM C=1": "#7F7F7F",
    "ROD-.02": "#56B4E9",
    "ROD-.2": "#0072B2",
    "ROD-.6": "#CC79A7",
    PAPER: "#D55E00",
    DEFAULT: "#E69F00",
}
DETECTORS = ("ROD-.02", "ROD-.2", "ROD-.6", PAPER, DEFAULT)
RECALLS = np.linspace(0, 1, 51)


def stored(name: str) -> list[dict[str, Any]]:
    """The rows of a results file."""
    return json.loads((RESULTS / f"{name}.json").read_text())["rows"]


def main(quick: bool) -> None:
    warnings.simplefilter("ignore")
    curves = {name: precision(name, range(1 if quick else RUNS)) for name in DETECTORS}
    rows = [
        {"recall": float(recall)} | {name: float(curve[i]) for name, curve in curves.items()}
        for i, recall in enumerate(RECALLS)
    ]
    write_results(
        "margin-ring-curves", rows, title="Ring study: precision at recall",
        notes="Separable geometry, R 55, rate 0.2, mean over 50 runs.", quick=quick,
    )  # fmt: skip
    if not quick:
        draw_detection(rows)
        for geometry in ("separable", "printed"):
            draw_errors(stored("margin-ring"), geometry)


def precision(name: str, seeds: range) -> Any:
    """Precision at `RECALLS`, averaged over runs."""
    curves = []
    for seed in seeds:
        study = make_ring(seed)
        score = METHODS[name](study.train.data, study.train.target).score
        found, recall, _ = precision_recall_curve(study.train.details["anomalous"], score)
        curves.append(np.interp(RECALLS, recall[::-1], found[::-1]))
    return np.mean(curves, axis=0)


def error_and_sd(cell: str) -> tuple[float, float]:
    """The two numbers of a cell such as '1.85±0.37 [1.85]'."""
    error, sd = cell.split(" ")[0].split("±")
    return float(error), float(sd)


def draw_errors(rows: list[dict[str, Any]], geometry: str) -> None:
    """Figure 1: error against noise level and against corruption rate."""
    figure, axes = require_matplotlib().subplots(1, 2, figsize=(11, 3.4), sharey=True)
    found = {row["method"]: row for row in rows if row["geometry"] == geometry}
    for name, colour in COLOURS.items():
        for ax, cells, position in ((axes[0], CELLS[:4], 0), (axes[1], (CELLS[2], *CELLS[4:7]), 1)):
            errors, sds = zip(*(error_and_sd(found[name][title_of(cell)]) for cell in cells), strict=True)
            ax.errorbar([cell[position] for cell in cells], errors, sds, color=colour, label=name, capsize=2, lw=1.3)
    axes[0].set(xlabel="noise level R (rate 0.2)", ylabel="test error, %")
    axes[0].set_ylim(bottom=0)
    axes[1].set(xlabel="corruption rate (R 55)")
    legend_beside(axes[1])
    figure.suptitle(f"Ring study, {geometry} geometry", fontsize=10)
    save(figure, f"margin-ring-errors-{geometry}.png")


def draw_detection(rows: list[dict[str, Any]]) -> None:
    """Figure 2: precision against recall, and the trust of one run."""
    figure, axes = require_matplotlib().subplots(1, 2, figsize=(13, 3.4))
    for name in DETECTORS:
        axes[0].plot(
            [row["recall"] for row in rows], [row[name] for row in rows], color=COLOURS[name], label=name, lw=1.3
        )
    axes[0].set(xlabel="recall", ylabel="precision", ylim=(0, 1.03))
    legend_beside(axes[0])
    train = make_ring(0).train
    trust, bad = 1 - METHODS[DEFAULT](train.data, train.target).score, train.details["anomalous"]
    axes[1].scatter(np.flatnonzero(~bad), trust[~bad], s=6, color="#0072B2", label="nominal")
    axes[1].scatter(np.flatnonzero(bad), trust[bad], s=8, color="#D55E00", marker="x", label="anomalous")
    axes[1].set(xlabel="training row", ylabel="trust (GEM defaults)")
    legend_beside(axes[1])
    figure.suptitle("Ring study, separable geometry, R 55, rate 0.2", fontsize=10)
    save(figure, "margin-ring-detection.png")


def legend_beside(ax: Any) -> None:
    ax.legend(fontsize=7, frameon=False, loc="upper left", bbox_to_anchor=(1.01, 1.0))


def save(figure: Any, name: str) -> None:
    figure.tight_layout()
    figure.savefig(RESULTS / name, dpi=80)
    require_matplotlib().close(figure)
