"""Text and figures as a reader sees them.

Text that comes from a user's table is data: `visible` clips it and shows what would otherwise work unseen (control
characters, marks that turn the direction of writing). Escaping is left to the place it is written to: jinja2 in HTML,
`goldseam.report.svg` in pictures, `in_markdown` here.
"""

from __future__ import annotations

import math
import re
import unicodedata
from typing import Final

__all__ = ["cell", "clipped", "count", "figure", "in_markdown", "p_value", "rate", "visible"]

LIMIT: Final = 80
JOINER: Final = "\u200d"  # holds emoji together
NUMERIC_KINDS: Final = ("continuous", "integer")
EMPTY: Final = "empty"
THIN: Final = "\u202f"


def visible(text: object, limit: int = LIMIT) -> str:
    """Text of any origin on one line, clipped, with nothing hidden in it.

    >>> visible("a\\x00b\\nc"), visible("1\\u202e2")
    ('a␀b␊c', '1⟨U+202E⟩2')
    >>> visible("x" * 1000, limit=5)
    'xxxxx… (1,000 characters)'
    """
    whole = str(text)
    shown = "".join(map(_shown, whole[:limit]))
    return shown if len(whole) <= limit else f"{shown}… ({len(whole):,} characters)"


def clipped(text: object, limit: int) -> str:
    """Text for a narrow place: as `visible`, ending in a mark where it was cut.

    >>> clipped("temperature", 6), clipped("short", 6)
    ('tempe…', 'short')
    """
    shown = visible(str(text)[: limit + 1], limit + 1)
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def _shown(character: str) -> str:
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    if character == JOINER or unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Zl", "Zp"):
        return character if code not in (0xFFFE, 0xFFFF) else f"⟨U+{code:04X}⟩"
    return f"⟨U+{code:04X}⟩"


def cell(value: str | None, kind: str | None = None, limit: int = LIMIT) -> str:
    """A cell of the seam: numbers to six figures, `empty` where nothing was observed.

    >>> cell("0.30000000000000004", "continuous"), cell(None), cell("0012", "categorical")
    ('0.3', 'empty', '0012')
    """
    if value is None:
        return EMPTY
    if kind in NUMERIC_KINDS:
        number = _parsed(value)
        return visible(value, limit) if number is None else figure(number)
    return visible(value, limit)


def _parsed(value: str) -> float | None:
    try:
        return float(value)
    except ValueError:
        return None


def figure(value: float | None, digits: int = 6) -> str:
    """A number to a few significant figures.

    >>> figure(1234567.0), figure(5909.02, 4), figure(0.000012345), figure(None), figure(-0.5)
    ('1,234,567', '5,909', '1.2345e−05', '–', '−0.5')
    """
    if value is None or math.isnan(value):
        return "–"
    if abs(value) < 1e12 and (abs(value) >= 10**digits or float(value).is_integer()):
        return f"{value:,.0f}".replace("-", "−")
    text = f"{value:.{digits}g}"
    return (text if "e" in text or abs(value) < 1000 else f"{float(text):,}".removesuffix(".0")).replace("-", "−")


def count(value: float | None) -> str:
    """How many.

    >>> count(10_000_000), count(None)
    ('10,000,000', '–')
    """
    return "–" if value is None else f"{value:,.0f}"


def rate(value: float | None, digits: int = 2) -> str:
    """A share in percent, with two significant figures or one decimal.

    >>> rate(0.05), rate(0.0471), rate(0.917), rate(0.0000123), rate(0.0), rate(1.0), rate(None)
    ('5\u202f%', '4.7\u202f%', '91.7\u202f%', '0.0012\u202f%', '0\u202f%', '100\u202f%', '–')
    """
    if value is None or math.isnan(value):
        return "–"
    percent = 100 * value
    decimals = 1 if percent == 0 or abs(percent) >= 1 else digits - 1 - math.floor(math.log10(abs(percent)))
    text = f"{percent:.{decimals}f}"
    short = text.rstrip("0").rstrip(".") if "." in text else text
    return short.replace("-", "−") + THIN + "%"


def p_value(value: float | None) -> str:
    """A p-value as text.

    >>> p_value(0.00213), p_value(1e-9), p_value(None)
    ('p = 0.0021', 'p < 0.0001', '')
    """
    if value is None or math.isnan(value):
        return ""
    return "p < 0.0001" if value < 1e-4 else f"p = {value:.2g}"


_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+\-.!|~=^$>])")
_ENTITIES: Final = {"&": "&amp;", "<": "&lt;", ":": "&#58;", "@": "&#64;", "/": "&#47;"}


def in_markdown(text: object, limit: int = LIMIT) -> str:
    """Text that stays text in Markdown: no markup, no HTML, no link, no new table cell.

    >>> in_markdown("<b>|*x*"), in_markdown("https://a.b")
    ('&lt;b\\\\>\\\\|\\\\*x\\\\*', 'https&#58;&#47;&#47;a\\\\.b')
    """
    escaped = _MARKDOWN.sub(r"\\\1", visible(text, limit))
    escaped = "".join(_ENTITIES.get(character, character) for character in escaped)
    return re.sub(r"(?i)\bwww(?=\\\.)", "ww&#119;", escaped)
