"""Run benchmarks: `python -m benchmarks [ROOM[/NAME] ...] [--quick]`; all of them when none is named.

A benchmark is a module `benchmarks/<room>/<name>.py` with `main(quick: bool) -> None` that ends in `write_results`.
"""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path

HERE = Path(__file__).parent


def find() -> list[str]:
    """Names `room/name` of all benchmarks: the modules that define `main`."""
    paths = sorted(p for p in HERE.glob("*/*.py") if "\ndef main(" in p.read_text())
    return [f"{p.parent.name}/{p.stem}" for p in paths]


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help="room or room/name")
    parser.add_argument("--quick", action="store_true", help="few repeats: to see that it runs, not for figures")
    options = parser.parse_args()
    names = find()
    chosen = [n for n in names if not options.names or n in options.names or n.split("/")[0] in options.names]
    if not chosen:
        parser.error(f"no benchmark is called {' '.join(options.names)}; there are: {', '.join(names) or 'none yet'}")
    for name in chosen:
        print(f"== {name}", flush=True)
        importlib.import_module("benchmarks." + name.replace("/", ".")).main(options.quick)


if __name__ == "__main__":
    main()
