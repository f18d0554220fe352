"""What `goldseam restore` does: a journalled stream from the inputs to the output and the run directory."""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict, fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from goldseam import model_file
from goldseam.cli.cells import split_list
from goldseam.cli.console import count, place
from goldseam.cli.exits import Interrupted
from goldseam.cli.memory import give_back, limits_for
from goldseam.cli.options import memory_bytes
from goldseam.cli.parts import PartsSink
from goldseam.cli.progress import Progress
from goldseam.cli.restoring import Job, Piece, output_types
from goldseam.cli.runs import (
    Entry,
    Journal,
    command_line,
    describe,
    file_hash,
    fingerprint,
    linked,
    now,
    remove_old,
    remove_torn,
    run_folder,
    versions,
    write_json,
)
from goldseam.cli.session import Session, check_output, check_rows, load_restorer, opened
from goldseam.cli.signals import StopRequest
from goldseam.cli.sinks import open_sink
from goldseam.cli.sources import format_of
from goldseam.errors import InputError, ParameterError
from goldseam.summary import combine, plain

__all__ = ["restore_files"]

COUNTS = ("rows", "cells_changed", "rows_changed", "suspect_rows", "bad_cells")


def restore_files(
    files: tuple[str, ...], model: str, output: str, options: dict[str, Any], asked: dict[str, Any]
) -> None:
    """Restore the files into the output and say what was done."""
    restorer = load_restorer(model, options["jobs"])
    job = Job(
        restorer, split_list(options["missing"]), options["on_bad_cell"], split_list(options["columns"]), options["key"],
        options["ordered"],
    )  # fmt: skip
    folder = run_folder(output, options["run_dir"], Path(files[0]))
    _check_resume(files, folder, options)
    _check_suffixes(options)
    kept = folder / "bad-lines.jsonl" if folder else None
    with opened(files, options, kept) as session, StopRequest() as stop:
        job.check_names(session.inputs.names)
        check_output(output, session.inputs)
        check_rows(session)
        run = Run(session, job, Path(model), output, folder, options, asked)
        try:
            data = run.already_done()
            if data is None:
                run.begin()
                run.stream(stop)
                data = run.finish()
        finally:
            run.release()
        session.console.result(data, _text(data), stdout_is_taken=output == "-")


def _check_resume(files: tuple[str, ...], folder: Path | None, options: dict[str, Any]) -> None:
    if options["resume"] and "-" in files:
        raise ParameterError("--resume cannot read stdin again. Hint: save the input to a file first.")
    if folder is None:
        given = [name for name in ("seam", "report", "resume") if options[name]]
        if given:
            raise ParameterError(f"--{given[0]} with the table on stdout needs a run directory. Hint: --run DIR")


def _check_suffixes(options: dict[str, Any]) -> None:
    """Better said before the work than after."""
    if options["seam"]:
        format_of(Path(options["seam"]))
    if options["report"] and Path(options["report"]).suffix.lower() not in (".html", ".htm", ".md", ".json"):
        raise ParameterError(
            f"--report must end in .html, .md or .json, but got {options['report']!r}. Hint: report.html"
        )


class Run:
    """One restore: its sinks, its journal, and what it adds up to."""

    def __init__(
        self, session: Session, job: Job, model: Path, output: str, folder: Path | None,
        options: dict[str, Any], asked: dict[str, Any],
    ) -> None:  # fmt: skip
        self.session, self.job, self.model, self.output, self.folder = session, job, model, output, folder
        self.options, self.asked = options, asked
        self.inputs = session.inputs
        self.limits = limits_for(self.inputs, memory_bytes(options["memory"]), model)
        self.counts = dict.fromkeys(COUNTS, 0)
        self.summary: dict[str, Any] | None = None
        self.journal = Journal(folder / "work") if folder else None
        self.started = now()
        self.data: Any = None
        self.seam: PartsSink | None = None

    # ---- before

    def begin(self) -> None:
        """Open the journal and the sinks; take over what an interrupted run has done."""
        going_on = False
        if self.folder is not None and self.journal is not None:
            self._check_folder(self.folder)
            going_on = self.journal.open(self._fingerprint(), resume=self.options["resume"])
            for path in (Path(self.output), self.folder / "seam.parquet", self.folder / "summary.json"):
                remove_torn(path)
            if self.options["resume"] and not going_on:
                self.session.console.note("nothing to resume: starting at the beginning")
        work = self.folder / "work" if self.folder else Path()
        self.data = open_sink(self.output, self.inputs, work, self._types(), self._markers(), self.limits)
        if self.folder is not None:
            ledger = self.job.ledger
            self.seam = PartsSink(self.folder / "seam.parquet", "parquet", work / "seam", ledger, limits=self.limits)
        if going_on:
            self._take_over()
        else:
            self._survey(work)

    def already_done(self) -> dict[str, Any] | None:
        """The record of the same run when --resume finds it complete."""
        if not self.options["resume"] or self.folder is None or not (self.folder / "run.json").exists():
            return None
        record: dict[str, Any] = json.loads((self.folder / "run.json").read_text(encoding="utf-8"))
        same = record.get("fingerprint") == json.loads(json.dumps(self._fingerprint()))
        if not same or (self.folder / "work").exists() or not Path(self.output).exists():
            return None
        self.session.console.note("nothing to do: this run is complete")
        return record

    def _check_folder(self, folder: Path) -> None:
        if folder.exists() and not folder.is_dir():
            raise InputError(f"The run directory {str(folder)!r} is a file. Hint: --run another-name.run")
        known = {"run.json", "work"}
        if folder.exists() and any(folder.iterdir()) and not known & {path.name for path in folder.iterdir()}:
            raise InputError(f"The folder {str(folder)!r} is not empty and not a run. Hint: --run another-name.run")
        if (folder / "run.json").exists():
            self._check_owner(folder, json.loads((folder / "run.json").read_text(encoding="utf-8"))["output"])

    def _check_owner(self, folder: Path, output: str) -> None:
        """The record of another table is not replaced, as long as that table is there."""
        other = output != "-" and Path(output).exists() and Path(output).resolve() != Path(self.output).resolve()
        if other and self.options["run_dir"] is None:
            name = Path(self.output).name + ".run"
            raise InputError(f"The run directory {str(folder)!r} is the record of {output!r}. Hint: --run {name}")

    def _fingerprint(self) -> dict[str, Any]:
        names = (
            "missing",
            "on_bad_cell",
            "on_bad_line",
            "columns",
            "key",
            "ordered",
            "memory",
            "encoding",
            "delimiter",
            "decimal",
            "no_header",
        )
        settings = {name: self.options[name] for name in names}
        return fingerprint(self.inputs.paths, self.model, self.output, settings | {"limits": asdict(self.limits)})

    def _types(self) -> dict[str, Any]:
        if self.output == "-" or format_of(Path(self.output)) in ("csv", "jsonl"):
            return {}
        first = next(batch for batch in self.inputs.batches(self.limits) if len(batch))
        return output_types(first, self.job.schema)

    def _markers(self) -> tuple[str, ...]:
        return (*self.job.schema.missing_values, *self.job.markers)

    def _survey(self, work: Path) -> None:
        self.job.survey(self.inputs, self.limits)
        give_back()
        if self.folder is not None:
            write_levels(self.job.levels, work / "levels.seam")

    def _take_over(self) -> None:
        assert self.journal is not None
        assert self.folder is not None
        assert self.journal.last is not None
        last = self.journal.last
        self.job.levels = read_levels(self.folder / "work" / "levels.seam")
        self.data.resume(last.sizes["data"])
        if self.seam is not None:
            self.seam.resume(last.sizes["seam"])
        self.session.bad_lines.resume(last.sizes["bad"], last.counts)
        self.counts = {name: last.counts[name] for name in COUNTS}
        self.summary = json.loads(self._summary_file(self.journal.entries).read_text(encoding="utf-8"))
        self.session.console.note(f"going on after {count(self.counts['rows'], 'row')}")

    # ---- the stream

    def stream(self, stop: StopRequest) -> None:
        """All batches that are not done yet."""
        mark = self.journal.last.mark if self.journal and self.journal.last else None
        quiet, say = self.options["quiet"], self.session.console.note
        with Progress("restored", quiet=quiet, say=say) as progress:
            for batch in self.session.bad_lines.watched(self.inputs.batches(self.limits, mark)):
                self._one(self.job.restore(batch))
                progress.update(self.counts["rows"], self.inputs.done(batch.after))
                if stop:
                    raise Interrupted(self._stopped(stop.name))

    def _stopped(self, name: str) -> str:
        text = f"Stopped by {name} after {count(self.counts['rows'], 'row')}"
        if self.folder is None:
            return text + "; the table on stdout is not complete."
        return text + "; the same command with --resume goes on from there."

    def _one(self, piece: Piece) -> None:
        self.data.write(piece.batch, piece.changes, piece.texts)
        self._count(piece)
        if self.seam is None or self.journal is None:
            return
        self.seam.add(piece.seam)
        here = piece.restoration.summary()
        self.summary = here if self.summary is None else combine([self.summary, here])
        self._keep_summary()
        bad = self.session.bad_lines
        sizes = {"data": self.data.size, "seam": self.seam.size, "bad": bad.size}
        counts = {**self.counts, "bad_lines": bad.n_bad, "blank_lines": bad.n_blank}
        self.journal.append(Entry(piece.batch.after, sizes, counts))

    def _count(self, piece: Piece) -> None:
        found = piece.restoration
        new = {
            "rows": len(piece.batch),
            "cells_changed": int(found.changed.sum()),
            "rows_changed": int(found.changed.any(axis=1).sum()),
            "suspect_rows": int(found.suspect.any(axis=1).sum()),
            "bad_cells": piece.n_bad_cells,
        }
        for name, n in new.items():
            self.counts[name] += n

    def _summary_file(self, number: int) -> Path:
        assert self.folder is not None
        return self.folder / "work" / f"summary-{number}.json"

    def _keep_summary(self) -> None:
        """The summary so far; that of the batch before stays until this one is in the journal."""
        assert self.journal is not None
        write_json(self._summary_file(self.journal.entries + 1), self.summary)
        self._summary_file(self.journal.entries - 1).unlink(missing_ok=True)

    def release(self) -> None:
        """Let go of open files; what is unfinished stays, to be resumed."""
        if self.data is not None:
            self.data.release()
        if self.journal is not None:
            self.journal.release()

    # ---- after

    def finish(self) -> dict[str, Any]:
        """Let the results appear: the seam, the summary and the report first, the table last."""
        give_back()
        if self.folder is None or self.seam is None:
            self.data.close()
            return self._record()
        remove_old(self.folder)
        self.seam.close()
        summary = self._whole_summary()
        write_json(self.folder / "summary.json", summary)
        copies = self._seam_copy() + self._reports(summary)
        self.data.close()
        inside = linked(Path(self.output), self.folder) if self.output != "-" else None
        record = self._record()
        paths = [*([inside] if inside else []), self.folder / "seam.parquet", self.folder / "summary.json", *copies]
        paths += [path for path in (self.session.bad_lines.path,) if path is not None and path.exists()]
        record["outputs"] = {path.name: describe(path, self.folder) for path in paths}
        write_json(self.folder / "run.json", record)
        assert self.journal is not None
        self.journal.finish()
        return record

    def _whole_summary(self) -> dict[str, Any]:
        assert self.summary is not None
        summary = self.summary
        about = {"call": shlex.join(command_line()), "model": file_hash(self.model), "created": now()}
        summary["how"] = {**summary.get("how", {}), **about, "versions": versions()}
        whole: dict[str, Any] = plain(summary)
        return whole

    def _seam_copy(self) -> list[Path]:
        if not self.options["seam"] or self.seam is None:
            return []
        path = Path(self.options["seam"])
        self.seam.copy(path, format_of(path), formula_safe=self.options["formula_safe"])
        return [path]

    def _reports(self, summary: dict[str, Any]) -> list[Path]:
        from goldseam.report import write_report

        assert self.folder is not None
        wanted = [Path(self.options["report"])] if self.options["report"] else []
        if find_spec("jinja2") is not None:
            wanted.insert(0, self.folder / "report.html")
        else:
            self.session.console.note(
                "no HTML report in the run directory: jinja2 is not installed (pip install 'goldseam[report]')"
            )
            wanted.insert(0, self.folder / "report.md")
        title = f"Restoration of {self.inputs.paths[0].name}"
        for path in wanted:
            write_report(summary, path, seam=self.folder / "seam.parquet", title=title)
        return wanted

    def _record(self) -> dict[str, Any]:
        return {
            "version": "1.0",
            "command": command_line(),
            "fingerprint": self._fingerprint(),
            "options": plain({key: value for key, value in self.asked.items() if key not in ("debug", "log_file")}),
            "inputs": [{"path": str(p), "bytes": p.stat().st_size, "sha256": file_hash(p)} for p in self.inputs.paths],
            "model": {"path": str(self.model), "sha256": file_hash(self.model)},
            "versions": versions(),
            "started": self.started,
            "finished": now(),
            "resumed": bool(self.options["resume"]),
            "output": self.output,
            "run": str(self.folder) if self.folder else None,
            "counts": dict(self.counts),
            "lines": self.session.bad_lines.to_dict(),
            "levels": plain(asdict(self.job.levels)),
        }


def write_levels(levels: Any, path: Path) -> None:
    """Keep what was learnt of the table as a whole, so that a resumed run uses the same."""
    model_file.save({item.name: getattr(levels, item.name) for item in fields(levels)}, path)


def read_levels(path: Path) -> Any:
    """What `write_levels` kept."""
    from goldseam.restorer import Levels

    return Levels(**model_file.read(path))


def _text(data: dict[str, Any]) -> str:
    counts = data["counts"]
    lines = [
        f"{count(counts['cells_changed'], 'cell')} in {counts['rows_changed']:,} of {count(counts['rows'], 'row')} restored; "
        f"written to {place(data['output'])}"
    ]
    if data["run"]:
        names = ", ".join(sorted(data["outputs"]))
        lines.append(f"run directory {data['run']}: {names}")
    return "\n".join(lines)
