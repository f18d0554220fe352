"""Take the pictures of `docs/images`: python -m tests.browser.screenshots [EXAMPLE ...]

Runs the examples, opens their reports in chromium and keeps light, dark and narrow views.
"""

from __future__ import annotations

import runpy
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
ARGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
LOOKS = {"light": (1280, "light"), "dark": (1280, "dark"), "narrow": (400, "light")}
EXAMPLES: dict[str, tuple[str, int, dict[str, Any]]] = {
    "mixed": ("mixed_table.py", 1500, {}),
    "sensors": ("sensors.py", 1900, {}),
    "images": ("images.py", 2000, {"usps": True}),
}


def take(browser: Any, report: Path, name: str, height: int) -> None:
    for look, (width, scheme) in LOOKS.items():
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme, offline=True)
        page = context.new_page()
        page.goto(report.as_uri())
        target = IMAGES / f"{name}-{look}.png"
        page.screenshot(path=target)
        context.close()
        from PIL import Image

        Image.open(target).convert("RGB").save(target, optimize=True)
        print(f"{target.relative_to(ROOT)}: {target.stat().st_size / 1000:.0f} KB")


def main(names: list[str]) -> None:
    IMAGES.mkdir(parents=True, exist_ok=True)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=ARGS)
        for name in names or list(EXAMPLES):
            file, height, settings = EXAMPLES[name]
            runpy.run_path(str(ROOT / "examples" / file))["main"](Path(folder), **settings)
            take(browser, Path(folder) / f"{name}.html", name, height)
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
