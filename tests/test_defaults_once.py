"""A default stands once, in the verb: what a verb calls has none of its own for the verb's options."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import pytest

from cuewise.errors import UserError
from cuewise.verbs import VERBS

NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def calls(function: Callable[..., Any]) -> Iterator[tuple[Callable[..., Any], ast.Call]]:
    """What of cuewise a function calls by its name."""
    nodes = [*ast.walk(ast.parse(textwrap.dedent(inspect.getsource(function))))]
    known = dict(function.__globals__)
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            module = import_module(node.module or "")
            known |= {a.asname or a.name: getattr(module, a.name, None) for a in node.names}
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            callee = known.get(node.func.id)
            if (
                callable(callee)
                and callee is not UserError
                and (callee.__module__ or "").startswith("cuewise.")
            ):
                yield callee, node


def inner(verb: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
    """What a verb calls, and what is handed its `**options` in turn."""
    for callee, _ in calls(verb):
        yield callee
        rest = [p.name for p in inspect.signature(callee).parameters.values() if p.kind is p.VAR_KEYWORD]
        for further, node in calls(callee) if rest else ():
            if any(
                k.arg is None and isinstance(k.value, ast.Name) and k.value.id in rest for k in node.keywords
            ):
                yield further


@pytest.mark.parametrize("name", VERBS)
def test_a_default_stands_in_the_verb_alone(name: str) -> None:
    verb = inspect.unwrap(VERBS[name])
    options = {p.name for p in inspect.signature(verb).parameters.values() if p.kind in NAMED}
    repeated = {
        f"{callee.__module__}.{callee.__name__}: {p.name}"
        for callee in inner(verb)
        for p in inspect.signature(callee).parameters.values()
        if p.name in options and p.default is not p.empty
    }
    assert repeated == set()


def test_options_that_are_handed_on_are_followed() -> None:
    found = {callee.__name__ for name in ("audit", "probe") for callee in inner(inspect.unwrap(VERBS[name]))}
    assert {"audit_into", "audit_models", "probe_into", "run_probe"} <= found
