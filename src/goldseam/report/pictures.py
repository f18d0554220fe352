"""The pictures of a report, each a function from figures of the summary to SVG."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from goldseam.report.ledger import CellMap
from goldseam.report.svg import Markup, blocks_path, line_path, num, picture, png, steps_path, tag, text
from goldseam.report.text import clipped, count, figure, rate, visible

__all__ = ["bars", "before_after", "cell_map", "crack", "grid_pair", "promise", "share_bar", "timeline"]

SHARES: Final = (0.05, 0.25, 0.6)
WIDTH: Final = 936.0
SHOWN_LEVELS: Final = 7


# ------------------------------------------------------------------------------------------------- cell map


def cell_map(cells: CellMap) -> Markup:
    """Rows across, columns down; the colour is the cause, the strength the share of cells touched."""
    n_rows, n_columns = cells.counts.shape[1:]
    height = min(22.0, max(6.0, 380.0 / max(n_columns, 1)))
    left = 12 + 6.2 * max(len(name) for name in _map_names(cells, height).values())
    scale = (WIDTH - left) / max(1, int(cells.row_edges[-1] - cells.row_edges[0]))
    xs = (left + (cells.row_edges - cells.row_edges[0]) * scale).tolist()
    ys = (np.arange(n_columns + 1) * height).tolist()
    n = int(cells.row_edges[-1] - cells.row_edges[0])
    rules = line_path([p for y in ys[1:-1] for p in ((xs[0], y), (xs[-1], y), (math.nan, math.nan))])
    return picture(
        940, ys[-1] + 26, f"Cell map: {count(n)} rows across, {count(len(cells.names))} columns down",
        tag("rect", x=xs[0], y=0, width=xs[-1] - xs[0], height=ys[-1], class_="ground"),
        tag("path", d=rules, class_="rules") if rules and height > 9 else "",
        *_map_layers(cells, xs, ys, gap=1.0 if height > 9 and (WIDTH - left) / max(n_rows, 1) > 5 else 0.0),
        *(text(left - 8, ys[j] + height / 2 + 3.5, name, class_="end") for j, name in _map_names(cells, height).items()),
        *_row_axis(cells, xs, ys[-1]),
        class_="cell-map",
    )  # fmt: skip


def _map_names(cells: CellMap, height: float) -> dict[int, str]:
    """The columns that are named beside the map: as many as there is room for."""
    every = max(1, math.ceil(12.0 / height))
    bands = range(0, cells.counts.shape[2], every)
    return {j: clipped(cells.names[int(cells.column_edges[j])], 18) for j in bands}


def _map_layers(cells: CellMap, xs: Sequence[float], ys: Sequence[float], gap: float) -> list[Markup]:
    """One path per cause and strength."""
    leading, shares = cells.leading(), cells.shares()
    strength = np.searchsorted(SHARES, shares)
    layers = []
    for i, cause in enumerate(cells.causes):
        for step in range(len(SHARES) + 1):
            data = blocks_path((shares > 0) & (leading == i) & (strength == step), xs, ys, gap)
            if data:
                layers.append(tag("path", d=data, class_=f"c-{cause} s{step}"))
    return layers


def _row_axis(cells: CellMap, xs: Sequence[float], top: float) -> list[Markup]:
    first, last = int(cells.row_edges[0]), int(cells.row_edges[-1]) - 1
    if last < first:
        return []
    ticks = sorted({first, last, *(round(first + (last - first) * share / 4) for share in (1, 2, 3))})
    scale = (xs[-1] - xs[0]) / max(1, last - first)
    anchors = ["start", *["middle"] * (len(ticks) - 2), "end"] if len(ticks) > 1 else ["start"]
    return [
        text(
            xs[0] + (tick - first) * scale,
            top + 17,
            f"row {tick:,}" if tick == first else f"{tick:,}",
            class_=f"axis {anchor}",
        )
        for tick, anchor in zip(ticks, anchors, strict=True)
    ]


# ---------------------------------------------------------------------------------------- before and after


def before_after(column: Mapping[str, Any]) -> Markup | None:
    """A column before (line) and after (gold), with the reference behind (filled)."""
    if column["edges"]:
        return _histograms(column)
    return _levels(column) if column["levels"] else None


def _share(counts: Sequence[float] | None) -> list[float]:
    total = sum(counts or [])
    return [value / total for value in counts or []] if total else []


def _histograms(column: Mapping[str, Any], width: float = 300.0, height: float = 96.0) -> Markup:
    edges = column["edges"]
    before, after, reference = (
        _share(c) for c in (column["before"]["counts"], column["after"]["counts"], column["reference"])
    )
    top = max([*before, *after, *reference], default=0) or 1.0
    span = (edges[-1] - edges[0]) or 1.0
    lefts = [6 + (edge - edges[0]) / span * (width - 12) for edge in edges]

    def path(shares: list[float], close: bool, class_: str) -> str:
        if not shares:
            return ""
        tops = [height - share / top * (height - 10) for share in shares]
        return tag("path", d=steps_path(lefts[:-1], lefts[-1], tops, height, close=close), class_=class_)

    return picture(
        width, height + 18, f"Distribution of {visible(column['name'], 40)}: reference, before and after",
        path(reference, True, "reference"), path(before, False, "before"), path(after, False, "after"),
        tag("path", d=f"M6 {num(height)}H{num(width - 6)}", class_="axis-line"),
        text(6, height + 13, figure(edges[0], 4), class_="axis"),
        text(width - 6, height + 13, figure(edges[-1], 4), class_="axis end"),
        class_="histogram",
    )  # fmt: skip


def _levels(column: Mapping[str, Any], width: float = 300.0) -> Markup:
    """A line per level, the most frequent of any of the three; what is empty or was never seen comes last."""
    lines = _level_shares(column)
    top = max((max(shares) for _, *shares in lines), default=1.0)
    step, left, scale = 15.0, 96.0, (width - 96.0 - 44.0) / top
    inside: list[str] = []
    for i, (name, behind, before, after) in enumerate(lines):
        y = 3 + i * step
        inside += [
            text(left - 6, y + 9, clipped(name, 14), class_="axis end"),
            tag("rect", x=left, y=y, width=behind * scale, height=11, class_="reference"),
            tag("rect", x=left, y=y + 1.5, width=max(before * scale, 0.5), height=3.5, class_="before-bar"),
            tag("rect", x=left, y=y + 6.0, width=max(after * scale, 0.5), height=3.5, class_="after-bar"),
            text(left + max(behind, before, after) * scale + 5, y + 9, rate(after), class_="axis"),
        ]
    title = f"Levels of {visible(column['name'], 40)}: reference, before and after"
    return picture(width, 6 + len(lines) * step, title, *inside, class_="histogram")


def _level_shares(column: Mapping[str, Any]) -> list[tuple[str, float, float, float]]:
    """Name, reference, before and after of the levels to show, in the order of the schema."""
    names = [*column["levels"], "other levels", "never seen", "empty"]
    counts = [[*(column["reference"] or [0] * len(column["levels"])), 0, 0, 0]]
    counts += [[*c["counts"], c["other"], c["unseen"], c["missing"]] for c in (column["before"], column["after"])]
    lines = list(zip(names, *(_share(line) or [0.0] * len(names) for line in counts), strict=True))
    ranked = sorted((i for i, line in enumerate(lines) if max(line[1:])), key=lambda i: -max(lines[i][1:]))
    last = len(column["levels"])
    kept = ranked[:SHOWN_LEVELS] + [i for i in ranked[SHOWN_LEVELS:] if i >= last]
    return [lines[i] for i in sorted(kept)]


# ------------------------------------------------------------------------------------------- small pictures


def promise(nominal: float | None, measured: float | None, sd: float | None) -> Markup:
    """Promised (tick) against measured (dot, two standard deviations either side)."""
    known = [value for value in (nominal, measured, (measured or 0) + 2 * (sd or 0)) if value is not None]
    low, high = (0.0, 1.0) if max(known, default=1.0) > 0.5 else (0.0, max(0.01, 1.35 * max(known, default=0.05)))
    if low == 0 and min(known, default=0.0) > 0.5:
        low = 0.5

    def x(value: float) -> float:
        return 6 + 168 * (min(max(value, low), high) - low) / (high - low)

    inside = [tag("path", d="M6 12H174", class_="axis-line")]
    if measured is not None and sd is not None:
        inside.append(tag("path", d=f"M{num(x(measured - 2 * sd))} 12H{num(x(measured + 2 * sd))}", class_="spread"))
    if nominal is not None:
        inside.append(tag("path", d=f"M{num(x(nominal))} 3V21", class_="nominal"))
    if measured is not None:
        inside.append(tag("circle", cx=x(measured), cy=12, r=4.5, class_="measured"))
    return picture(180, 24, f"Promised {rate(nominal)}, measured {rate(measured)}", *inside, class_="promise")


def bars(counts: Sequence[int], title: str, left: str, right: str) -> Markup:
    """A plain histogram."""
    width, height, top = 460.0, 110.0, max(counts, default=0) or 1
    lefts = [6 + i * (width - 12) / len(counts) for i in range(len(counts))]
    tops = [height - value / top * (height - 8) for value in counts]
    inside = [
        tag("path", d=steps_path(lefts, width - 6, tops, height, close=True), class_="plain"),
        tag("path", d=f"M6 {num(height)}H{num(width - 6)}", class_="axis-line"),
        text(6, height + 14, left, class_="axis"),
        text(width - 6, height + 14, right, class_="axis end"),
    ]
    return picture(width, height + 20, title, *inside, class_="histogram")


def share_bar(value: float | None) -> Markup:
    """A share between 0 and 1 as a bar behind its figure."""
    if value is None:
        return Markup("–")
    width = 56 * min(max(value, 0.0), 1.0)
    bar = tag("svg", tag("rect", width=56, height=6, class_="track"), tag("rect", width=width, height=6, class_="fill"),
              viewBox="0 0 56 6", aria_hidden="true", class_="share")  # fmt: skip
    return Markup(f"{bar} <span>{rate(value)}</span>")


# -------------------------------------------------------------------------------------- images and timelines


def grid_pair(example: Mapping[str, Any], low: float, high: float) -> Markup:
    """A row as a picture: before, and after with a golden seam around what was mended."""
    before, after, touched = (_grid(example[key]) for key in ("before", "after", "touched"))
    height, width = before.shape
    side = 104.0 / max(height, width)
    w, h = width * side, height * side
    seam = _outline(np.nan_to_num(touched) > 0, side, w + 10)
    place = {"width": w, "height": h, "preserveAspectRatio": "none", "class_": "pixels"}
    return picture(
        2 * w + 10, h, f"Row {example['row']} before and after: {example['damage']} cells touched",
        tag("rect", x=0, y=0, width=2 * w + 10, height=h, class_="mount"),
        tag("image", href=png(_grey(before, low, high)), x=0, y=0, **place),
        _crosses(np.isnan(before), side),
        tag("image", href=png(_grey(after, low, high)), x=w + 10, y=0, **place),
        tag("path", d=seam, class_="golden"),
        class_="pair",
    )  # fmt: skip


def _grid(rows: Sequence[Sequence[float | None]]) -> NDArray[np.float64]:
    return np.array([[math.nan if value is None else value for value in row] for row in rows], dtype=np.float64)


def _grey(image: NDArray[np.float64], low: float, high: float) -> NDArray[np.uint8]:
    span = (high - low) or 1.0
    return np.clip(np.nan_to_num((image - low) / span, nan=0.5) * 255, 0, 255).astype(np.uint8)


def _crosses(empty: NDArray[np.bool_], side: float) -> str:
    """A cross in every empty cell."""
    at = [(x * side, y * side) for y, x in np.argwhere(empty)]
    data = "".join(f"M{num(x)} {num(y)}l{num(side)} {num(side)}m{num(-side)} 0l{num(side)} {num(-side)}" for x, y in at)
    return tag("path", d=data, class_="c-missing line") if data else ""


def _outline(flags: NDArray[np.bool_], side: float, left: float) -> str:
    """Path data of the border between cells that are set and cells that are not."""
    padded = np.pad(flags, 1)
    across = [(x - 1, y) for y, x in np.argwhere(padded[1:] != padded[:-1])]
    down = [(x, y - 1) for y, x in np.argwhere(padded[:, 1:] != padded[:, :-1])]
    parts = [f"M{num(left + x * side)} {num(y * side)}h{num(side)}" for x, y in across]
    parts += [f"M{num(left + x * side)} {num(y * side)}v{num(side)}" for x, y in down]
    return "".join(parts)


def timeline(line: Mapping[str, Any], bins: Sequence[int], rows_per_bin: int) -> Markup:
    """A column along the rows: before (thin), after (strong), gold where it was mended."""
    before, after = ([_numbers(line[key][end]) for end in ("low", "high")] for key in ("before", "after"))
    finite = np.concatenate([*before, *after])
    finite = finite[np.isfinite(finite)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    width, height, left = 928.0, 92.0, 56.0
    span, n = (high - low) or 1.0, max(1, bins[-1] - bins[0]) if bins else 1
    xs = [left + (b - bins[0]) / n * (width - left) for b in bins]

    def points(values: NDArray[np.float64]) -> list[tuple[float, float]]:
        return [(x, 8 + (high - value) / span * (height - 16)) for x, value in zip(xs, values, strict=True)]

    mended = [i for i, changed in enumerate(line["changed"]) if changed]
    ticks = "".join(f"M{num(xs[i])} {num(height - 3)}v6" for i in mended)
    gold = _gold_segments(points((after[0] + after[1]) / 2), mended)
    return picture(
        940, height + 20, f"{visible(line['name'], 40)} along the rows, before and after",
        tag("path", d=_band(points(before[1]), points(before[0])), class_="before-band"),
        tag("path", d=line_path(points((before[0] + before[1]) / 2)), class_="before thin"),
        tag("path", d=_band(points(after[1]), points(after[0])), class_="after-band"),
        tag("path", d=line_path(points((after[0] + after[1]) / 2)), class_="ink-line"),
        tag("path", d=gold, class_="golden") if gold else "", tag("path", d=ticks, class_="golden") if ticks else "",
        text(left - 6, 14, figure(high, 4), class_="axis end"), text(left - 6, height - 4, figure(low, 4), class_="axis end"),
        text(left, height + 17, f"row {(bins[0] if bins else 0) * rows_per_bin:,}", class_="axis"),
        text(width, height + 17, f"{((bins[-1] + 1) if bins else 1) * rows_per_bin - 1:,}", class_="axis end"),
        class_="timeline",
    )  # fmt: skip


def _numbers(values: Sequence[float | None]) -> NDArray[np.float64]:
    return np.array([math.nan if value is None else value for value in values], dtype=np.float64)


def _band(upper: list[tuple[float, float]], lower: list[tuple[float, float]]) -> str:
    shown = [(u, v) for u, v in zip(upper, lower, strict=True) if u[1] == u[1] and v[1] - u[1] > 0.3]
    return "".join(f"M{num(u[0])} {num(u[1])}V{num(v[1])}" for u, v in shown)


def _gold_segments(points: Sequence[tuple[float, float]], mended: Sequence[int]) -> str:
    """The line through mended points, from the point before each run to the one after it."""
    hit = set(mended)
    chosen = [(x, y) if {i - 1, i, i + 1} & hit else (math.nan, math.nan) for i, (x, y) in enumerate(points)]
    return line_path(chosen)


# ------------------------------------------------------------------------------------------------ ornament


def crack(seed: str) -> Markup:
    """The golden crack of the page's head: a few branching lines, the same for the same seed."""
    rng = random.Random(seed)
    trunk = _walk(rng, (rng.uniform(740.0, 800.0), -8.0), (44.0, 32.0), 9)
    branches = [_walk(rng, trunk[i], (46.0, rise), 5) for i, rise in ((1, 4.0), (3, -20.0), (5, -8.0))]
    twigs = [_walk(rng, branch[2], (26.0, rise), 3) for branch, rise in zip(branches, (34.0, 26.0, -30.0), strict=True)]
    fine = [_walk(rng, trunk[i], (-16.0, 26.0), 3) for i in (2, 4)]
    lines = [(trunk, 2.8), *((branch, 1.7) for branch in branches), *((twig, 1.0) for twig in [*twigs, *fine])]
    paths = [tag("path", d=line_path(line), stroke_width=width) for line, width in lines]
    box = {"viewBox": "0 0 1120 240", "preserveAspectRatio": "xMaxYMid slice"}
    return tag("svg", *paths, **box, aria_hidden="true", class_="crack")


def _walk(
    rng: random.Random, start: tuple[float, float], step: tuple[float, float], n: int
) -> list[tuple[float, float]]:
    points = [start]
    for _ in range(n):
        x, y = points[-1]
        points.append((x + step[0] * rng.uniform(0.4, 1.3), y + step[1] * rng.uniform(-0.35, 1.6)))
    return points
