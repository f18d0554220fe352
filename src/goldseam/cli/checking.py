"""What `goldseam check` does: batches judged, counted, and one verdict."""

from __future__ import annotations

import heapq
import tempfile
from dataclasses import dataclass, field
from importlib.resources import files as package_files
from pathlib import Path
from typing import Any, Final

import numpy as np
from scipy.stats import binom

from goldseam.cli.cells import split_list
from goldseam.cli.console import count, table
from goldseam.cli.delimited import Limits
from goldseam.cli.exits import DONE, FINDINGS, Interrupted
from goldseam.cli.memory import limits_for
from goldseam.cli.options import memory_bytes
from goldseam.cli.parts import PartsSink
from goldseam.cli.progress import Progress
from goldseam.cli.restoring import Job, Piece
from goldseam.cli.session import check_rows, load_restorer, opened
from goldseam.cli.signals import StopRequest
from goldseam.cli.sources import format_of
from goldseam.seam import CAUSES

__all__ = ["VERSION", "check_files", "result_schema"]

VERSION: Final = "1.0"
CHANCE: Final = 0.999


def result_schema() -> dict[str, Any]:
    """The JSON schema of what `check --json` prints."""
    import json

    text = package_files("goldseam.cli").joinpath("check.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def allowed_rows(n_rows: int, alarm_rate: float, fail_over: float | None) -> int:
    """How many suspect rows a clean table may have.

    >>> allowed_rows(1000, 0.05, 0.02), allowed_rows(1000, 0.05, None), allowed_rows(10, 0.05, 0.0)
    (20, 73, 0)
    """
    if fail_over is not None:
        return int(np.floor(fail_over * n_rows + 1e-9))
    return int(binom.ppf(CHANCE, n_rows, alarm_rate)) if n_rows else 0


@dataclass
class Tally:
    """What the batches add up to."""

    most: int
    rows: int = 0
    suspect_rows: int = 0
    suspect_cells: int = 0
    bad_cells: int = 0
    by_cause: dict[str, int] = field(default_factory=lambda: dict.fromkeys(CAUSES, 0))
    by_column: dict[str, int] = field(default_factory=dict)
    worst: list[tuple[float, int, dict[str, Any]]] = field(default_factory=list)

    def add(self, piece: Piece) -> None:
        """Count a batch."""
        found = piece.restoration
        hit = found.suspect.any(axis=1)
        self.rows += len(piece.batch)
        self.suspect_rows += int(hit.sum())
        self.suspect_cells += int(found.suspect.sum())
        self.bad_cells += piece.n_bad_cells
        for cause, n in found.seam.count_by_cause().items():
            self.by_cause[cause] += n
        for name, n in zip(found.schema.names, found.suspect.sum(axis=0).tolist(), strict=True):
            self.by_column[name] = self.by_column.get(name, 0) + n
        self._keep_worst(piece, np.flatnonzero(hit))

    def _keep_worst(self, piece: Piece, rows: Any) -> None:
        found, names = piece.restoration, piece.restoration.schema.names
        p_values = found.row_p_values if found.row_p_values is not None else np.full(len(piece.batch), np.nan)
        ranks = np.nan_to_num(p_values[rows], nan=0.0)
        for row, rank in sorted(zip(rows.tolist(), ranks.tolist(), strict=True), key=lambda pair: pair[1])[: self.most]:
            number = piece.batch.first_row + row
            p_value = float(p_values[row])
            about = {
                "row": number,
                "key": self._key(piece, row),
                "p_value": p_value if np.isfinite(p_value) else None,
                "columns": [names[j] for j in np.flatnonzero(found.suspect[row]).tolist()],
            }
            heapq.heappush(self.worst, (-rank, -number, about))
            if len(self.worst) > self.most:
                heapq.heappop(self.worst)

    def _key(self, piece: Piece, row: int) -> str | None:
        if "key" not in piece.seam.columns:
            return None
        lines = piece.seam.filter(piece.seam["row"] == piece.batch.first_row + row)
        return lines["key"][0] if lines.height else None

    def listed(self) -> list[dict[str, Any]]:
        """The suspect rows to show, oddest first."""
        return [about for _, _, about in sorted(self.worst, key=lambda item: (-item[0], -item[1]))]


def check_files(files: tuple[str, ...], model: str, options: dict[str, Any]) -> int:
    """Judge the files and say so; returns the exit code."""
    restorer = load_restorer(model, options["jobs"])
    job = Job(
        restorer, split_list(options["missing"]), options["on_bad_cell"], split_list(options["columns"]), options["key"]
    )
    tally = Tally(options["rows"])
    with (
        opened(files, options) as session,
        tempfile.TemporaryDirectory(prefix="goldseam-") as work,
        StopRequest() as stop,
    ):
        job.check_names(session.inputs.names)
        check_rows(session)
        limits = limits_for(session.inputs, memory_bytes(options["memory"]), Path(model))
        job.survey(session.inputs, limits)
        seam = _seam_sink(options, Path(work), job, limits)
        with Progress("checked", quiet=options["quiet"], say=session.console.note) as progress:
            for batch in session.bad_lines.watched(session.inputs.batches(limits)):
                piece = job.check(batch)
                tally.add(piece)
                if seam is not None:
                    seam.add(piece.seam)
                progress.update(tally.rows, session.inputs.done(batch.after))
                if stop:
                    raise Interrupted(f"Stopped by {stop.name} after {tally.rows:,} rows.")
        if seam is not None:
            seam.close()
        data = _result(tally, session, restorer, model, options)
        session.console.result(data, _text(data))
    return DONE if data["clean"] else FINDINGS


def _seam_sink(options: dict[str, Any], work: Path, job: Job, limits: Limits) -> PartsSink | None:
    if not options["seam"]:
        return None
    path, safe = Path(options["seam"]), options["formula_safe"]
    return PartsSink(path, format_of(path), work / "seam", job.ledger, limits=limits, formula_safe=safe)


def _result(tally: Tally, session: Any, restorer: Any, model: str, options: dict[str, Any]) -> dict[str, Any]:
    by_row = restorer.error_control == "row"  # "fdr" promises a clean table without any suspect, as a rule
    allowed = allowed_rows(tally.rows, restorer.alarm_rate if by_row else 0.0, options["fail_over"])
    clean = tally.suspect_rows <= allowed
    return {
        "version": VERSION,
        "command": "check",
        "model": model,
        "files": [path.name for path in session.inputs.paths],
        "rows": tally.rows,
        "suspect_rows": tally.suspect_rows,
        "suspect_cells": tally.suspect_cells,
        "bad_cells": tally.bad_cells,
        "share": tally.suspect_rows / tally.rows if tally.rows else 0.0,
        "alarm_rate": restorer.alarm_rate,
        "fail_over": options["fail_over"],
        "allowed_rows": allowed,
        "clean": clean,
        "exit_code": DONE if clean else FINDINGS,
        "by_cause": tally.by_cause,
        "by_column": {name: n for name, n in tally.by_column.items() if n},
        "listed_rows": tally.listed(),
        "lines": session.bad_lines.to_dict(),
    }


def _text(data: dict[str, Any]) -> str:
    verdict = "clean" if data["clean"] else "damaged"
    by_share = data["fail_over"] is not None
    why = f"--fail-over {data['fail_over']:g}" if by_share else f"{data['alarm_rate']:.1%} of clean rows, and chance"
    why = why if by_share or data["allowed_rows"] else "without --fail-over"
    lines = [
        f"{verdict}: {data['suspect_rows']:,} of {count(data['rows'], 'row')} suspect ({data['share']:.1%}); "
        f"up to {data['allowed_rows']:,} are allowed ({why})"
    ]
    causes = ", ".join(f"{n:,} {cause}" for cause, n in data["by_cause"].items() if n)
    if causes:
        lines.append(f"cells a restore would touch: {causes}")
    rows = [_listed(item) for item in data["listed_rows"]]
    if rows:
        lines += ["", table(["row", "p", "suspect columns"], rows, right=[0, 1])]
    return "\n".join(lines)


def _listed(item: dict[str, Any]) -> list[str]:
    names = ", ".join(item["columns"][:6]) + (", ..." if len(item["columns"]) > 6 else "")
    return [str(item["row"] if item["key"] is None else item["key"]), _p(item["p_value"]), names]


def _p(value: float | None) -> str:
    return "" if value is None else f"{value:.2g}"
