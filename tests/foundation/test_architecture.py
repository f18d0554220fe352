"""Imports point one way, and each library is known only where it belongs (see STYLE in the developer docs).

cli, review -> report -> restorer -> estimators -> {tables, schema, engines} -> maths files -> kernels -> numpy
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "goldseam"
ROOMS = ("separation", "field", "conditional", "margin")
MODULES = sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))

# Floors of the house; a module imports from its own floor or from below, never from above.
FLOORS = [
    {"errors", "schema", "atomic", "kernel_cache", "compiled", "linear_models", "model_checks"},
    {"model_file", "tables", "_frames", "engines"},
    {"validation", "seam", "summary", "datasets", "constraints", "relations"},
    {"corruption"},
    {*ROOMS},
    {"evidence"},
    {"contamination", "denoising", "discovery", "outside", "sampling"},
    {"accounts", "audit", "mending", "explanation", "witnesses", "record", "settings", "surveying"},
    {"restorer", "restoring_classifier"},
    {"report"},
    {"cli", "review"},
]
LEARNER_FILES = {
    "estimator",
    "fusion",
    "weighter",
    "checks",
    "fitting",
    "boosted",
    "__init__",
}  # the only ones that know scikit-learn

# Doors upstairs: results that open a report of themselves, imported when the door is used.
DOORS = {("seam", "report"), ("audit", "report")}

# Who may know a library: module paths or folders, relative to the package.
KNOWN_BY = {
    "narwhals": {"tables", "_frames", "validation"},
    "pandas": {"tables", "_frames"},
    "pyarrow": {"tables", "_frames"},
    "polars": {"tables", "_frames", "seam", "datasets", "report", "cli"},
    "matplotlib": {"report"},
    "jinja2": {"report"},
    "click": {"cli"},
    "rich": {"cli"},
    "safetensors": {"model_file"},
    "fastapi": {"review"},
    "dask": {"engines"},
    "distributed": {"engines"},
}


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """Names of all imported modules, and whether the import is at the top of the file."""
    tree = ast.parse((PACKAGE / path).read_text())
    top = {id(node) for node in tree.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, id(node) in top) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import at line {node.lineno}"
            yield node.module or "", id(node) in top


def room(name: str) -> str:
    return name.split(".")[1] if name.startswith("goldseam.") else ""


def floor(name: str) -> int:
    return next((i for i, names in enumerate(FLOORS) if name in names), -1)


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_imports_point_down(path: Path) -> None:
    own = path.parts[0].removesuffix(".py")
    if own == "__init__":
        return
    assert floor(own) >= 0, f"{path} has no floor: add it to FLOORS"
    for name, at_top in imports(path):
        target = room(name)
        if (own, target) in DOORS and not at_top:
            continue
        if target and target != own and path.parts[:2] != ("report", "displays"):
            assert floor(target) >= 0, f"{path} imports {name}, which has no floor"
            assert floor(target) <= floor(own), f"{path} imports {name} from a higher floor"
            assert not (own in ROOMS and target in ROOMS), f"{path} imports {name}: rooms are independent of each other"


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_libraries_stay_where_they_belong(path: Path) -> None:
    own = path.parts[0].removesuffix(".py")
    for name, _ in imports(path):
        library = name.split(".")[0]
        assert own in KNOWN_BY.get(library, {own}), f"{path} imports {library}"


@pytest.mark.parametrize("path", [p for p in MODULES if p.parts[0] in ROOMS], ids=str)
def test_maths_files_are_pure(path: Path) -> None:
    forbidden = set() if path.stem.endswith("kernels") else {"numba"}
    if path.stem not in LEARNER_FILES:
        forbidden |= {"sklearn", "goldseam.tables", "goldseam.validation"}
    for name, _ in imports(path):
        assert not any(name == bad or name.startswith(bad + ".") for bad in forbidden), f"{path} imports {name}"


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_optional_libraries_are_imported_where_they_are_used(path: Path) -> None:
    optional = {"matplotlib", "jinja2", "fastapi", "uvicorn", "dask", "distributed", "pandas", "pyarrow"}
    for name, at_top in imports(path):
        assert not (at_top and name.split(".")[0] in optional), f"{path} imports {name} at the top"


def test_the_package_itself_imports_nothing_heavy() -> None:
    names = {name for name, at_top in imports(Path("__init__.py")) if at_top}
    assert names <= {"__future__", "importlib", "typing", "goldseam.kernel_cache"}
