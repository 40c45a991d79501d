"""docs/licences.md: the licences of all dependencies as their own metadata state them, from the environment of `make setup`.

python docs/licences.py
"""

from __future__ import annotations

import datetime
import re
import sys
import tomllib
from collections.abc import Iterable
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
HEAD = """# Licences of the dependencies

cuewise itself is under Apache-2.0. It contains no code of the packages below; pip installs them. This list was made by
`python docs/licences.py` on {date} (Python {python}, {platform}) from what the packages state about themselves; it is no
legal advice.

**Required** is what `pip install .` brings, with everything that those packages need in turn. **Extras** come with the name
in brackets, e.g. `pip install '.[onnx]'`; `dev` is for work on cuewise.
"""


def main() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    needed = closure(project["dependencies"], {})
    others = closure((r for group in extras.values() for r in group), extras)
    date = datetime.date.today().isoformat()
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    parts = [HEAD.format(date=date, python=python, platform=sys.platform)]
    parts += ["## Required", table(needed), "## Extras", table(others - needed)]
    (ROOT / "docs" / "licences.md").write_text("\n".join(parts), encoding="utf-8")


def closure(requirements: Iterable[str], own: dict[str, list[str]]) -> set[str]:
    """Names of the packages that the requirements bring along, directly or not."""
    found: set[str] = set()
    asked: set[str] = set()
    todo = list(requirements)
    while todo:
        requirement = Requirement(todo.pop())
        if str(requirement) in asked:
            continue
        asked.add(str(requirement))
        name = normal(requirement.name)
        if name == "cuewise":
            todo += [r for extra in requirement.extras for r in own[extra]]
            continue
        found.add(name)
        for line in (installed(name).requires or []) if installed(name) else []:  # type: ignore[union-attr]
            marker = Requirement(line).marker
            if marker is None or any(marker.evaluate({"extra": e}) for e in ("", *requirement.extras)):
                todo.append(line)
    return found


def table(names: Iterable[str]) -> str:
    lines = ["", "| package | version | licence |", "| --- | --- | --- |"]
    for name in sorted(names):
        package = installed(name)
        if package is None:
            lines.append(f"| {name} | not installed here | see the package |")
        else:
            lines.append(f"| {name} | {package.version} | {licence(package)} |")
    return "\n".join(lines) + "\n"


def licence(package: Distribution) -> str:
    """The expression, else the classifiers, else the first line of the field."""
    meta = package.metadata
    if expression := meta.get("License-Expression"):
        return str(expression)
    classes = [
        c.rpartition(" :: ")[2] for c in meta.get_all("Classifier") or [] if c.startswith("License ::")
    ]
    named = [c for c in classes if c != "OSI Approved"]
    if named:
        return ", ".join(named)
    first = (meta.get("License") or "").strip().partition("\n")[0]
    return first.replace("|", "/")[:80] or "not stated in its metadata"


def installed(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    main()
