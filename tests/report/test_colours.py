"""Colours that everybody can read: contrast on every ground, causes that stay apart for colour-blind readers."""

from __future__ import annotations

import re
from importlib.resources import files
from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from goldseam.report.displays.palette import CAUSE_COLOURS

STYLE = files("goldseam.report").joinpath("templates", "style.css").read_text(encoding="utf-8")
LIGHT, DARK = (
    dict(re.findall(r"--([\w-]+): (#[0-9a-f]+)", part))
    for part in re.findall(r":root \{(.*?)\n *\}", STYLE, re.DOTALL)[:2]
)
TEXTS = ["ink", "soft", "gold-text", *(f"{cause}-text" for cause in CAUSE_COLOURS)]

# Severity 1.0 of Machado, Oliveira & Fernandes (2009), on linear RGB.
VISION = {
    "full": np.eye(3),
    "protan": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deutan": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritan": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}


def linear(colour: str) -> NDArray[np.float64]:
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    rgb = np.array([int(digits[i : i + 2], 16) for i in (0, 2, 4)]) / 255
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    a, b = sorted((float(linear(colour) @ [0.2126, 0.7152, 0.0722]) for colour in (one, other)), reverse=True)
    return (a + 0.05) / (b + 0.05)


def lab(rgb: NDArray[np.float64]) -> NDArray[np.float64]:
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ np.clip(rgb, 0, 1)
    f = np.cbrt(xyz / [0.9505, 1.0, 1.089])
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def test_contrast_by_hand() -> None:
    assert contrast("#000000", "#fff") == pytest.approx(21)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("ground", ["paper", "card", "gold-wash"])
@pytest.mark.parametrize("mode", ["light", "dark"])
def test_text_is_readable(mode: str, ground: str, text: str) -> None:
    colours = LIGHT if mode == "light" else DARK
    assert contrast(colours[text], colours[ground]) >= 4.5


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("mode", ["light", "dark", "palette"])
def test_causes_stay_apart(mode: str, vision: str) -> None:
    colours = {"light": LIGHT, "dark": DARK, "palette": CAUSE_COLOURS}[mode]
    seen = {cause: lab(VISION[vision] @ linear(colours[cause])) for cause in CAUSE_COLOURS}
    apart = {pair: float(np.linalg.norm(seen[pair[0]] - seen[pair[1]])) for pair in combinations(seen, 2)}
    assert min(apart.values()) > 15, apart


def test_the_page_uses_the_palette() -> None:
    assert {LIGHT[cause].upper() for cause in CAUSE_COLOURS} == set(CAUSE_COLOURS.values())
