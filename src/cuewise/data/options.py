"""The `?split=test&n=3` at the end of a named image set."""

from __future__ import annotations

from cuewise.errors import UserError


def options(text: str, spec: str, *known: str) -> tuple[str, dict[str, str]]:
    """'NAME?split=test' → 'NAME', {'split': 'test'}; `spec` is what the user typed."""
    name, mark, rest = text.partition("?")
    given: dict[str, str] = {}
    for part in rest.split("&") if mark else []:
        key, equals, value = part.partition("=")
        if not equals or key not in known:
            raise UserError(
                f"{spec}: {part!r} is no option here; write ?{known[0]}=… (options: {', '.join(known)})"
            )
        given[key] = value
    return name, given
