"""Small SVG by hand: lighter than a plotting library's, and its colours follow the page.

Colours are CSS variables (`var(--corrupt)`), so that pictures change with light, dark and print. Every text goes
through `escape`.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterable, Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

__all__ = ["Markup", "blocks_path", "line_path", "num", "picture", "png", "steps_path", "tag", "text"]


class Markup(str):
    """HTML made by this package from escaped parts; jinja2 writes it as it is."""

    __slots__ = ()

    def __html__(self) -> str:
        return str(self)


def num(value: float) -> str:
    """A coordinate, as short as a tenth of a pixel allows.

    >>> num(12.0), num(3.14159), num(-0.04)
    ('12', '3.1', '0')
    """
    short = f"{value:.1f}".rstrip("0").rstrip(".")
    return "0" if short in ("-0", "") else short


def tag(name: str, *inside: str, **attributes: object) -> Markup:
    """An element; `class_` and `stroke_width` become `class` and `stroke-width`.

    >>> print(tag("rect", x=1, class_='a"b'))
    <rect x="1" class="a&quot;b"/>
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(num(value) if isinstance(value, float) else str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{written}>{''.join(inside)}</{name}>" if inside else f"<{name}{written}/>")


def text(x: float, y: float, words: str, **attributes: object) -> Markup:
    """A line of text."""
    return tag("text", escape(words), x=float(x), y=float(y), **attributes)


def picture(width: float, height: float, title: str, *inside: str, class_: str = "") -> Markup:
    """A whole picture; `title` is what a screen reader says."""
    return tag(
        "svg",
        tag("title", escape(title)),
        *inside,
        viewBox=f"0 0 {num(width)} {num(height)}",
        role="img",
        class_=class_ or None,
        xmlns="http://www.w3.org/2000/svg",
    )


def line_path(points: Iterable[tuple[float, float]]) -> str:
    """Path data of a line through points; a point that is not a number breaks it."""
    parts, pen = [], "M"
    for x, y in points:
        if x != x or y != y:
            pen = "M"
            continue
        parts.append(f"{pen}{num(x)} {num(y)}")
        pen = "L"
    return "".join(parts)


def steps_path(lefts: Sequence[float], right: float, tops: Sequence[float], bottom: float, *, close: bool) -> str:
    """Path data of a histogram: a step per bin, closed along the bottom or open."""
    ends = [*lefts[1:], right]
    steps = "".join(f"V{num(top)}H{num(end)}" for top, end in zip(tops, ends, strict=True))
    return f"M{num(lefts[0])} {num(bottom)}{steps}V{num(bottom)}{'Z' if close else ''}"


def blocks_path(flags: NDArray[np.bool_], xs: Sequence[float], ys: Sequence[float], gap: float = 0.0) -> str:
    """Path data of the blocks that are set: `flags` is (len(xs) - 1, len(ys) - 1); runs along x are joined."""
    parts = []
    for j in range(flags.shape[1]):
        ends = np.flatnonzero(np.diff(np.concatenate(([False], flags[:, j], [False])).astype(np.int8)))
        for start, stop in ends.reshape(-1, 2):
            width, height = xs[stop] - xs[start] - gap, ys[j + 1] - ys[j] - gap
            parts.append(f"M{num(xs[start])} {num(ys[j])}h{num(width)}v{num(height)}h{num(-width)}z")
    return "".join(parts)


def png(grey: NDArray[np.uint8]) -> str:
    """A grey picture as a data URI."""
    height, width = grey.shape
    raw = b"".join(b"\x00" + row.tobytes() for row in np.ascontiguousarray(grey))
    body = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)),
        (b"IDAT", zlib.compress(raw, 9)),
        (b"IEND", b""),
    ]
    chunks = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in body
    )
    return "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"".join(chunks)).decode()
