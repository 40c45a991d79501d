"""The `?split=test&n=3` at the end of a named image set."""

from __future__ import annotations

from cuewise.data.selection import KEYS
from cuewise.errors import UserError, nearest

ANYWHERE = ("classes", *KEYS)  # what every DATA takes; taken out before a set's own options are read


def options(text: str, spec: str, *known: str) -> tuple[str, dict[str, str]]:
    """'NAME?split=test' → 'NAME', {'split': 'test'}; `spec` is what the user typed."""
    name, mark, rest = text.partition("?")
    given: dict[str, str] = {}
    for part in rest.split("&") if mark else []:
        key, equals, value = part.partition("=")
        if not equals or key not in known:
            everything = [*ANYWHERE, *known]
            near = key if key in everything else nearest(key, everything)
            hint = f"; did you mean {near}=…?" if near else ""
            raise UserError(
                f"{spec}: {part!r} is no option of DATA{hint} (it takes: {', '.join(everything)})"
            )
        given[key] = value
    return name, given
