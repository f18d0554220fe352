"""What happens to lines that do not fit: the run stops, or they are counted, told and, if wanted, kept in a file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any, Final

from goldseam.cli.batches import Batch
from goldseam.cli.console import Console, count
from goldseam.cli.delimited import BadLine
from goldseam.errors import InputError

__all__ = ["BadLines"]

SHOWN: Final = 5


class BadLines:
    """Takes note of the broken lines of every batch, by the user's policy: fail, skip or quarantine."""

    def __init__(self, policy: str, path: Path | None = None) -> None:
        self.policy, self.path = policy, path
        self.n_bad = self.n_blank = self.size = 0
        self.first: list[BadLine] = []
        self._file: IO[bytes] | None = None

    def take(self, batch: Batch) -> None:
        """Judge the broken lines of a batch."""
        self.n_blank += batch.raw.n_blank if batch.raw is not None else 0
        if not batch.bad:
            return
        if self.policy == "fail":
            raise InputError(_sentence(batch.bad[0]))
        self.n_bad += len(batch.bad)
        self.first += batch.bad[: SHOWN - len(self.first)]
        if self.policy == "quarantine":
            self._keep(batch.bad)

    def watched(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """The same batches, each judged before it is used."""
        for batch in batches:
            self.take(batch)
            yield batch

    def _keep(self, bad: tuple[BadLine, ...]) -> None:
        if self.path is None:
            raise InputError("--on-bad-line quarantine needs a place for the lines. Hint: --bad-lines bad.jsonl")
        if self._file is None:
            self._file = self.path.open("wb")
        for line in bad:
            self._file.write(json.dumps(asdict(line), ensure_ascii=False).encode() + b"\n")
        self._file.flush()
        self.size = self._file.tell()

    def resume(self, size: int, counts: dict[str, int]) -> None:
        """Go on after a batch that ended with this size of the file and these counts."""
        self.n_bad, self.n_blank, self.size = counts.get("bad_lines", 0), counts.get("blank_lines", 0), size
        if self.path is not None and self.path.exists():
            self._file = self.path.open("r+b")
            self._file.truncate(size)
            self._file.seek(size)

    def release(self) -> None:
        """Let go of the open file."""
        if self._file is not None:
            self._file.close()

    def to_dict(self) -> dict[str, Any]:
        """Counts and the first lines, for the result."""
        return {
            "policy": self.policy,
            "bad": self.n_bad,
            "blank": self.n_blank,
            "first": [{"file": b.file, "line": b.line, "problem": b.problem} for b in self.first],
            "kept_in": str(self.path) if self.n_bad and self.policy == "quarantine" else None,
        }

    def tell(self, console: Console) -> None:
        """Say what was left out: never nothing."""
        if self.n_bad:
            numbers = f"line{'' if self.n_bad == 1 else 's'} " + ", ".join(str(line.line) for line in self.first)
            more = ", ..." if self.n_bad > len(self.first) else ""
            where = f"kept in {self.path}" if self.policy == "quarantine" else "nothing of that is in the result"
            verb = "was" if self.n_bad == 1 else "were"
            console.warn(f"{count(self.n_bad, 'line')} did not fit and {verb} left out ({numbers}{more}); {where}.")
        if self.n_blank:
            console.note(f"{count(self.n_blank, 'blank line')} passed over.")


def _sentence(line: BadLine) -> str:
    text = line.text if len(line.text) <= 60 else line.text[:57] + "..."
    return (
        f"Line {line.line} of {line.file!r} does not fit: {line.problem} ({text!r}). "
        "Hint: mend the line, or --on-bad-line skip or quarantine."
    )
