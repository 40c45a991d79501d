"""A package imports only from packages to its left, as CONTRIBUTING.md lists them; imports inside functions count too."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from cuewise.verbs import VERBS

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "cuewise"


def layers() -> list[str]:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    chain = re.search(r"^    data → (?:.|\n)*?(?=\n\n)", text, re.M)
    assert chain is not None
    return re.findall(r"\w+", chain.group())


def imported(file: Path) -> set[str]:
    """The packages of cuewise that a file names."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name.split(".")[1] for name in found if name.startswith("cuewise.")}


def test_every_package_has_its_place() -> None:
    packages = {p.parent.name for p in PACKAGE.glob("*/__init__.py")}
    assert set(layers()) == packages


def test_imports_point_to_the_left() -> None:
    order = layers()
    wrong = [
        f"{file.relative_to(PACKAGE)} imports {name}"
        for own in order
        for file in sorted((PACKAGE / own).rglob("*.py"))
        for name in imported(file)
        if name in order and order.index(name) > order.index(own)
    ]
    assert wrong == []


def test_what_stands_beside_the_packages_is_no_way_round() -> None:
    """A module of the root that imports a package is not imported by a package to the left of it."""
    order = layers()
    needs = {f.stem: imported(f) & set(order) for f in PACKAGE.glob("*.py") if f.stem != "__init__"}
    wrong = [
        f"{file.relative_to(PACKAGE)} imports {name}, which imports {far}"
        for own in order
        for file in sorted((PACKAGE / own).rglob("*.py"))
        for name in imported(file) & set(needs)
        for far in needs[name]
        if order.index(far) > order.index(own)
    ]
    assert wrong == []


def test_nothing_leans_on_what_leans_on_it() -> None:
    """Also between packages and the modules beside them, and for imports inside functions."""
    files = {file: file.relative_to(PACKAGE).parts[0].removesuffix(".py") for file in PACKAGE.rglob("*.py")}
    needs: dict[str, set[str]] = {}
    for file, own in files.items():
        needs.setdefault(own, set()).update(imported(file) - {own})
    assert [(a, b) for a in needs for b in needs[a] if a < b and a in needs.get(b, ())] == []


def test_only_verbs_lean_on_verbs() -> None:
    """`cuewise.make` stands in verbs, whatever `import cuewise` looks like."""
    wrong = []
    for file in sorted(PACKAGE.rglob("*.py")):
        own = file.relative_to(PACKAGE)
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            used = set()
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                used = {node.attr} if node.value.id == "cuewise" else set()
            elif isinstance(node, ast.ImportFrom) and node.module == "cuewise":
                used = {alias.name for alias in node.names}
            wrong += [f"{own}: {verb}" for verb in used & set(VERBS) if own.parts[0] != "verbs"]
    assert wrong == []


def test_a_class_name_stands_for_one_class() -> None:
    """Every method calls its own settings Settings."""
    found: dict[str, list[str]] = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and node.name != "Settings":
                found.setdefault(node.name, []).append(str(file.relative_to(PACKAGE)))
    assert {name: files for name, files in found.items() if len(files) > 1} == {}
