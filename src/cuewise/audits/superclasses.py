"""Which classes belong together: a file of class → superclass."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cuewise.audits.head import wordnet
from cuewise.errors import UserError

FORM = '{"beagle": "dog", "tabby": "cat"} or {"dog": ["beagle", "poodle"], "cat": ["tabby"]} as JSON, or imagenet-dogs'

DOGS = range(151, 269)  # outputs of ImageNet's 118 breeds of dogs, n02085620 to n02113978


def imagenet_dogs() -> dict[str, str]:
    """The breeds of ImageNet → dog, as WordNet ids and as output numbers."""
    ids = [name for name, (output,) in wordnet().items() if output in DOGS]
    return dict.fromkeys([*ids, *map(str, DOGS)], "dog")


def read_superclasses(file: Path) -> dict[str, str]:
    """class → superclass, from a preset or either form; a class in two superclasses is refused."""
    if str(file) == "imagenet-dogs":
        return imagenet_dogs()
    try:
        content: Any = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"--superclasses {file} cannot be read ({error}); give {FORM}") from None
    if not isinstance(content, dict) or not content:
        raise UserError(f"--superclasses {file} is not a map: give {FORM}")
    out: dict[str, str] = {}
    for key, value in content.items():
        if not isinstance(value, str | list):
            raise UserError(f"--superclasses {file}: {key!r} is neither a name nor a list; give {FORM}")
        pairs = [(key, value)] if isinstance(value, str) else [(str(name), key) for name in value]
        for name, kind in pairs:
            if out.setdefault(name, kind) != kind:
                raise UserError(f"--superclasses {file}: {name!r} is both {out[name]!r} and {kind!r}")
    return out
