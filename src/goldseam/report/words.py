"""Sentences: what happened, and why, in plain words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from goldseam.evidence.mixture import MUCH
from goldseam.report.ledger import RowStory
from goldseam.report.text import count, figure, p_value, rate, visible

__all__ = [
    "CAUSE_WORDS",
    "CauseWords",
    "hardest",
    "headline",
    "kept",
    "lead",
    "noise_level",
    "nothing_unseen",
    "openness",
    "reason",
]


class CauseWords(NamedTuple):
    """A cause as a reader meets it: sign, name and meaning."""

    glyph: str
    name: str
    meaning: str


CAUSE_WORDS: Final[dict[str, CauseWords]] = {
    "corrupt": CauseWords("◆", "corrupt", "The value could not be believed. It was not used, and was replaced."),
    "missing": CauseWords("○", "missing", "The cell was empty and has been filled."),
    "noise": CauseWords("≈", "noise", "The value was plausible but noisy. It was used and drawn in."),
    "unseen": CauseWords("✳", "unseen", "A category that the reference never had."),
    "refused": CauseWords(
        "✕", "refused", "Not mended: too little is left, or a rule forbids it. The cell stays as it was."
    ),
}


ALL: Final = 0.9995  # shown as 100 %
NOISE_STATUS: Final = {"given": "given", "estimated": "estimated", "below_floor": "too little to tell"}


def plural(n: int, word: str) -> str:
    """A count with its noun.

    >>> plural(1, "cell"), plural(2000, "cell")
    ('1 cell', '2,000 cells')
    """
    return f"{count(n)} {word}{'' if n == 1 else 's'}"


def headline(summary: Mapping[str, Any]) -> str:
    """The restoration in one line."""
    seam, rows = summary["seam"], summary["table"]["rows"]
    if not seam["lines"]:
        return f"Nothing to mend in {plural(rows, 'row')}"
    if summary["mode"] == "check":
        return f"{plural(seam['lines'], 'cell')} in {count(seam['rows'])} of {plural(rows, 'row')} would be touched"
    return f"{plural(seam['cells_changed'], 'cell')} mended in {count(seam['rows_changed'])} of {plural(rows, 'row')}"


def lead(summary: Mapping[str, Any]) -> str:
    """The sentence below the headline."""
    table, seam = summary["table"], summary["seam"]
    cells = table["rows"] * table["columns"]
    if summary["mode"] == "check":
        return f"A check of {count(cells)} cells. Nothing was changed; the seam says what a restoration would do."
    share = rate(seam["cells_changed"] / cells) if cells else "none"
    text = f"{share} of {count(cells)} cells. Every other cell is exactly as it came in."
    if seam["by_cause"]["refused"]:
        text += f" {plural(seam['by_cause']['refused'], 'flagged cell')} could not be mended and stayed."
    if seam["rejected"]:
        text += f" {plural(seam['rejected'], 'repair')} turned down in review."
    return text


def hardest(audit: Mapping[str, Any] | None, n: int = 2) -> list[str]:
    """The kinds of damage that the audit found least often; none when all were found always.

    >>> hardest({"damage": [{"kind": "scale", "found": 0.9}, {"kind": "noise", "size": "a little", "found": 0.5}]}, n=1)
    ['noise: a little (found 50\u202f%)']
    """
    tried = [row for row in (audit or {}).get("damage") or [] if row.get("found") is not None and row["found"] < ALL]
    least = sorted(tried, key=lambda row: row["found"])[:n]
    return [
        visible(": ".join(filter(None, [row["kind"], row.get("size")])), 160) + f" (found {rate(row['found'])})"
        for row in least
    ]


def nothing_unseen(audit: Mapping[str, Any]) -> str:
    """What an audit without a blind spot says, in short.

    >>> nothing_unseen({"damage": [{"kind": "scale", "found": 1.0}]})
    'Damaged rows of every kind that the audit tried were found.'
    """
    shares = [row.get("found") for row in audit.get("damage") or []]
    if shares and all(share is not None and share >= ALL for share in shares):
        return "Damaged rows of every kind that the audit tried were found."
    return "No kind of damage that the audit tried went unseen altogether."


def reason(story: RowStory) -> str:
    """Why a row was touched: "7 neighbouring cells, p = 0.002; closest reference rows 12, 85, 301"."""
    causes = story.by_cause
    parts = []
    if causes["corrupt"]:
        cells = plural(causes["corrupt"], "neighbouring cell" if story.neighbouring else "corrupt cell")
        parts.append(", ".join(filter(None, [cells, p_value(story.p_value)])))
    if causes["unseen"]:
        parts.append(f"{plural(causes['unseen'], 'value')} the reference never had")
    if causes["missing"]:
        parts.append(f"{plural(causes['missing'], 'empty cell')} filled")
    if causes["noise"]:
        parts.append(f"{plural(causes['noise'], 'noisy cell')} drawn in")
    if causes["refused"]:
        parts.append(f"{plural(causes['refused'], 'flagged cell')} left as found")
    if story.donors:
        rows = ", ".join(map(str, story.donors))
        parts.append(f"closest reference row{'s' if len(story.donors) > 1 else ''} {rows}")
    return "; ".join(parts)


def noise_level(noise: Mapping[str, Any] | None) -> str:
    """How noisy a column is in this table, and how that is known; "" where it is not noisy.

    >>> noise_level({"value": 0.2, "unit": "sd", "status": "estimated"})
    '0.2 sd, estimated'
    >>> noise_level({"value": 0.031, "unit": "flip rate", "status": "given"})
    '3.1\u202f% flipped, given'
    >>> noise_level({"value": 0.01, "unit": "sd", "status": "below_floor"}), noise_level({"value": 0.0, "status": "nil"})
    ('too little to tell', '')
    """
    if not noise or noise.get("status") == "nil":
        return ""
    value, unit = noise.get("value"), str(noise.get("unit") or "")
    status = NOISE_STATUS.get(str(noise.get("status")), visible(noise.get("status") or "", 20))
    if not isinstance(value, (int, float)) or not value or noise.get("status") == "below_floor":
        return status
    level = f"{rate(value)} flipped" if unit == "flip rate" else f"{figure(value, 3)} {visible(unit, 20)}".strip()
    return ", ".join(filter(None, [level, status]))


def openness(share: Any) -> str:
    """How many rows of the table are openly damaged, and what repairs made of it; "" where it was not looked for.

    >>> openness(0.31)
    'about 31\u202f% of the rows; repairs as bold as in rehearsal'
    >>> openness(0.012)
    'about 1.2\u202f% of the rows; repairs cautious, as for damage that hides'
    >>> openness(None)
    ''
    """
    if not isinstance(share, (int, float)):
        return ""
    bold = "as bold as in rehearsal" if share >= MUCH else "cautious, as for damage that hides"
    return f"about {rate(round(share, 3))} of the rows; repairs {bold}"


def kept(promise: Mapping[str, Any]) -> str:
    """Whether a promise was kept, to two standard deviations: coverage may be higher, every other rate lower.

    >>> kept({"name": "row alarm rate", "nominal": 0.05, "measured": 0.047, "sd": 0.012})
    'kept'
    >>> kept({"name": "coverage", "nominal": 0.9, "measured": 0.8, "sd": 0.01})
    'not kept'
    >>> kept({"name": "row alarm rate", "nominal": 0.05, "measured": 0.01, "sd": 0.01})
    'kept, cautious'
    """
    nominal, measured = promise.get("nominal"), promise.get("measured")
    if nominal is None or measured is None:
        return "not measured"
    shortfall = nominal - measured if "coverage" in str(promise["name"]).lower() else measured - nominal
    room = 2 * (promise.get("sd") or 0.0)
    if shortfall > room:
        return "not kept"
    return "kept, cautious" if shortfall < -room else "kept"
