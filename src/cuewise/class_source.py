"""Fields of a class, read from its source and its bases' sources without importing them."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from cuewise.declarations import source_file, text_of

# nothing that has options is declared there, and some of these files are long
ELSEWHERE = {*sys.stdlib_module_names, "torch", "torchvision", "timm", "transformers", "numpy"}


@dataclass(frozen=True)
class Field:
    """One annotated field: its type and default as written, and the help where the type is Annotated."""

    name: str
    type: str
    default: str | None
    help: str


@dataclass(frozen=True)
class ClassSource:
    """A class by the module that defines it; `bases` are followed through imports."""

    module: str
    node: ast.ClassDef

    def fields(self) -> dict[str, Field]:
        """All fields, those of bases first; an own field replaces that of a base."""
        found: dict[str, Field] = {}
        for base in self.bases():
            found |= base.fields()
        for line in self.node.body:
            if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
                found[line.target.id] = _field(line.target.id, line)
        return {name: f for name, f in found.items() if not f.type.startswith("ClassVar")}

    def options(self) -> dict[str, Field]:
        """The fields with a help."""
        return {name: f for name, f in self.fields().items() if f.help}

    def bases(self) -> Iterator[ClassSource]:
        for expression in self.node.bases:
            found = _resolve(self.module, expression)
            if found is not None:
                yield found

    def says(self, name: str, value: object) -> bool:
        """Whether this class, or else a base of it, sets `name` to that literal."""
        for line in self.node.body:
            if isinstance(line, ast.Assign) and any(_is(t, name) for t in line.targets):
                return isinstance(line.value, ast.Constant) and line.value.value == value
        return any(base.says(name, value) for base in self.bases())

    def inner(self, name: str) -> ClassSource | None:
        """The class that this one or a base of it calls `name`, e.g. a method's Settings."""
        for line in self.node.body:
            if isinstance(line, ast.ClassDef) and line.name == name:
                return ClassSource(self.module, line)
            if isinstance(line, ast.Assign) and any(_is(t, name) for t in line.targets):
                return _resolve(self.module, line.value)
            if isinstance(line, ast.AnnAssign) and line.value is not None and _is(line.target, name):
                return _resolve(self.module, line.value)
        return next((found for base in self.bases() if (found := base.inner(name))), None)


def class_source(module: str, name: str) -> ClassSource | None:
    """The class `name` as the module defines or imports it."""
    tree = _tree(module)
    for node in tree.body if tree else []:
        if isinstance(node, ast.ClassDef) and node.name == name:
            return ClassSource(module, node)
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return class_source(node.module, alias.name)
    return None


def _resolve(module: str, expression: ast.expr) -> ClassSource | None:
    """A name, or `module.name` of an imported module."""
    if isinstance(expression, ast.Name):
        return class_source(module, expression.id)
    if isinstance(expression, ast.Attribute) and isinstance(expression.value, ast.Name):
        tree = _tree(module)
        for node in tree.body if tree else []:
            for alias in node.names if isinstance(node, ast.Import | ast.ImportFrom) else []:
                if (alias.asname or alias.name) == expression.value.id:
                    parent = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
                    return class_source(f"{parent}{alias.name}", expression.attr)
    return None


def _field(name: str, line: ast.AnnAssign) -> Field:
    default = None if line.value is None else ast.unparse(line.value)
    hint = line.annotation
    if isinstance(hint, ast.Subscript) and _is(hint.value, "Annotated") and isinstance(hint.slice, ast.Tuple):
        kind, *rest = hint.slice.elts
        return Field(name, ast.unparse(kind), default, next(filter(None, map(text_of, rest)), ""))
    return Field(name, ast.unparse(hint), default, "")


def _is(expression: ast.expr, name: str) -> bool:
    return isinstance(expression, ast.Name) and expression.id == name


@cache
def _tree(module: str) -> ast.Module | None:
    file = source_file(module) if module.partition(".")[0] not in ELSEWHERE else None
    try:
        return None if file is None else ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return None  # whoever imports the module sees why
