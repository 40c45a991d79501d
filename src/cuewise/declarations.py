"""What a source file declares, read without importing it: `cuewise list` answers before torch could be imported."""

from __future__ import annotations

import ast
import importlib.util
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

NAME = re.compile(r"[A-Za-z0-9][\w+.-]*")


@dataclass(frozen=True)
class Declared:
    """A member as its source declares it; `attribute` is the variable, class or function in the module."""

    name: str
    summary: str
    module: str
    attribute: str
    options: tuple[tuple[str, str], ...] = ()  # (name, help) of `options=(Option("name", "help", …), …)`


def declared_in(module: str) -> list[Declared]:
    """Everything at the top level of the module that has a literal name and summary."""
    file = source_file(module)
    if file is None:
        return []
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return []  # whoever imports the module sees why
    found = []
    for attribute, pair, options in _pairs(tree):
        if pair is not None and NAME.fullmatch(pair[0]):
            found.append(Declared(*pair, module, attribute, options))
    return found


def declared_at(module: str, attribute: str) -> Declared | None:
    """What `module:attribute` declares."""
    return next((d for d in declared_in(module) if d.attribute == attribute), None)


def source_file(module: str) -> Path | None:
    """The file of a module; no package on the way is imported."""
    root, *rest = module.split(".")
    try:
        spec = importlib.util.find_spec(root)
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    if not rest:
        return Path(spec.origin) if spec.origin and spec.origin.endswith(".py") else None
    for place in spec.submodule_search_locations or []:
        base = Path(place, *rest)
        for file in (base.with_name(f"{base.name}.py"), base / "__init__.py"):
            if file.is_file():
                return file
    return None


Pair = tuple[str, str] | None  # name and summary
Options = tuple[tuple[str, str], ...]


def _pairs(tree: ast.Module) -> Iterator[tuple[str, Pair, Options]]:
    """(attribute, (name, summary), options) of classes, decorated functions and assigned calls."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and (pair := _of_class(node)):
            yield node.name, pair, ()
        elif isinstance(node, ast.ClassDef | ast.FunctionDef):
            calls = [d for d in node.decorator_list if isinstance(d, ast.Call)]
            yield from ((node.name, _of_call(c), _options(c)) for c in calls)
        elif isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Call):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name):
                yield target.id, _of_call(node.value), _options(node.value)


def _options(call: ast.Call) -> Options:
    given = next((k.value for k in call.keywords if k.arg == "options"), None)
    calls = [c for c in getattr(given, "elts", []) if isinstance(c, ast.Call) and len(c.args) >= 2]
    pairs = [(text_of(c.args[0]), text_of(c.args[1])) for c in calls]
    return tuple((name, text) for name, text in pairs if name and text)


def _of_class(node: ast.ClassDef) -> Pair:
    values: dict[str, str] = {}
    for line in node.body:
        targets = (
            line.targets
            if isinstance(line, ast.Assign)
            else [line.target]
            if isinstance(line, ast.AnnAssign)
            else []
        )
        for target in targets:
            text = text_of(getattr(line, "value", None))
            if isinstance(target, ast.Name) and text is not None:
                values[target.id] = text
    return (values["name"], values["summary"]) if {"name", "summary"} <= set(values) else None


def _of_call(call: ast.Call) -> Pair:
    """(name, summary) from keywords or from the first two arguments; a summary without keyword has several words."""
    values = dict(zip(("name", "summary"), map(text_of, call.args)))
    if " " not in (values.get("summary") or ""):
        values.pop("summary", None)
    values |= {k.arg: text_of(k.value) for k in call.keywords if k.arg in ("name", "summary")}
    name, summary = values.get("name"), values.get("summary")
    return None if name is None or summary is None else (name, summary)


def text_of(node: ast.expr | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
