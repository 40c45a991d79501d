"""HTML that is escaped by default: plain strings are text, only `Html` is markup."""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Iterable
from typing import Any

# C0 and C1 controls without tab and newline; a file name may hold any of them.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_VOID = {"meta", "img", "br", "line", "circle", "rect"}


class Html(str):
    """A string that is already markup; `el` makes it, everything else is escaped."""

    __slots__ = ()


def clean(value: object) -> str:
    """Text that any UTF-8 file can hold: no control characters, no lone surrogates (odd file names have them)."""
    text = value if isinstance(value, str) else str(value)
    return _CONTROLS.sub("\ufffd", text.encode("utf-8", "replace").decode("utf-8"))


def text(value: object) -> Html:
    """`value` as escaped text; markup passes unchanged."""
    return value if isinstance(value, Html) else Html(html.escape(clean(value), quote=True))


def el(name: str, /, *children: object, **attributes: object) -> Html:
    """An element; `class_` and `aria_label` lose and change their underscores, None and False leave an attribute out."""
    parts = [name]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        key = key.rstrip("_").replace("_", "-")
        parts.append(key if value is True else f'{key}="{html.escape(clean(value), quote=True)}"')
    opening = f"<{' '.join(parts)}>"
    if name in _VOID and not children:
        return Html(opening if name in {"meta", "img", "br"} else opening[:-1] + "/>")
    return Html(opening + join(*children) + f"</{name}>")


def join(*children: object) -> Html:
    """Children one after the other; None is nothing, a list is its elements."""
    out: list[str] = []
    for child in children:
        if isinstance(child, (list, tuple)):
            out.append(join(*child))
        elif child is not None:
            out.append(text(child))
    return Html("".join(out))


def name_of(value: object) -> Html:
    """A name from outside, isolated so that right-to-left characters in it do not reorder the page."""
    return el("bdi", value)


def alarm(lines: Iterable[str]) -> Html | None:
    """What must be known before any number is read; nothing without lines."""
    shown = [el("p", line) for line in lines]
    return el("div", shown, class_="alarm", role="alert") if shown else None


def plain(value: Any) -> Any:
    """`value` as JSON's own types: numpy scalars and arrays unpacked, numbers that are not finite become None."""
    if isinstance(value, dict):
        return {clean(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [plain(v) for v in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return clean(value)


def embed_json(value: Any) -> Html:
    """JSON that is safe inside a <script> block: no `<`, `>`, `&`, U+2028 or U+2029 appears literally."""
    data = json.dumps(plain(value), ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return Html(data.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def slug(value: object) -> str:
    """A word that is safe as an id."""
    return re.sub(r"[^a-z0-9]+", "-", clean(value).lower()).strip("-")[:60] or "part"
