"""The stub of `import cuewise` for editors and type checkers: every verb with all its options, written from what they declare.

python -m cuewise.stub        writes src/cuewise/__init__.pyi and transforms/__init__.pyi; a test says when they are out of date
"""

from __future__ import annotations

import inspect
import re
import sys
import typing
from pathlib import Path
from typing import Any

from cuewise import __all__ as public
from cuewise.options import bare, options_of
from cuewise.parser import Verb
from cuewise.registry import declared_members
from cuewise.verbs import VERBS

HEADER = '''"""Written by `python -m cuewise.stub` from what the verbs declare: change those, not this file."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cuewise import transforms as transforms
from cuewise.data import open_data as open_data
from cuewise.encoders import Encoder as Encoder
from cuewise.encoders import load_encoder as load_encoder
from cuewise.errors import Interrupted as Interrupted
from cuewise.errors import UserError as UserError
from cuewise.results import Result as Result
from cuewise.scores import Score as Score

__version__: str
'''


TRANSFORMS = '''"""Written by `python -m cuewise.stub` from what the cue operators declare: change those, not this file."""

from typing import Literal

from cuewise.transforms.transform import CueTransform as CueTransform
from cuewise.transforms.transform import transform_of as transform_of
'''


def transforms_stub() -> str:
    """The text of the stub of `cuewise.transforms`: a class for every operator of cuewise's own."""
    from cuewise.cues.registry import CUES

    return TRANSFORMS + "".join(
        _transform(CUES.get(name)) for name in sorted(declared_members("cuewise.cues"))
    )


def _transform(kind: Any) -> str:
    from cuewise.transforms.transform import class_name

    options = options_of(kind).values()
    values = [f"        {o.name}: {written(o.type)} = {o.default!r},".replace("'", '"') for o in options]
    helps = [f"        {o.name}: {o.help}{o.shown_default}" for o in options]
    words = f"{kind.summary[0].upper()}{kind.summary[1:]}."
    head = ["    def __init__(", "        self,", "        *,", *values, "    ) -> None:"]
    lines = [
        f"\nclass {class_name(kind.name)}(CueTransform):",
        *(head if values else ["    def __init__(self) -> None:"]),
        *([f'        """{words}', "", *helps, '        """'] if values else [f'        """{words}"""']),
    ]
    return "\n".join(lines) + "\n"


def stub() -> str:
    """The text of the stub."""
    verbs = "\n".join(function(Verb(name, f)) for name, f in VERBS.items())
    names = "".join(f'    "{name}",\n' for name in public)
    return f"{HEADER}__all__ = [\n{names}]\n\n{verbs}"


def function(verb: Verb) -> str:
    """A verb as a function with every option."""
    hints = typing.get_type_hints(verb.function, include_extras=True)
    result = written(hints.pop("return"))
    lines, helps, starred = [], [], False
    for p in verb.positionals:
        star, default = "*" * p.many, " = None" if p.optional and not p.many else ""
        starred |= p.many
        lines.append(f"    {star}{p.name}: {written(bare(hints[p.name]))}{default},")
        helps.append(f"    {p.name}: {p.help}")
    if not starred and verb.options():
        lines.append("    *,")
    for o in verb.options().values():
        own = o.name in verb.own
        kind = written(o.type) if own else loosened(o.type)
        value = f'"{o.default}"' if isinstance(o.default, str) else repr(o.default)
        default = "" if o.required else f" = {value}" if own else " = None"
        lines.append(f"    {o.name}: {kind}{default},")
        helps.append(f"    {o.name}: {o.help}{o.shown_default}")
    head = [
        f"def {verb.name}(",
        *lines,
        f") -> {result}:",
        f'    """{verb.summary}',
        "",
        *helps,
        '    """',
        "",
    ]
    return "\n".join(head)


def loosened(hint: Any) -> str:
    """The type of an option that may be left out and is converted: a list may be one value, text a path or a number."""
    text = written(hint)
    item = re.fullmatch(r"list\[(\w+)\](?: \| None)?", text)
    if item:
        one = "str | Path" if item[1] == "str" else item[1]
        return f"{one} | Sequence[{one}] | None"
    if text.startswith("dict["):
        return "str | None"
    text = text.removesuffix(" | None")
    return f"{'str | int | Path' if text == 'str' else text} | None"


def written(hint: Any) -> str:
    """A type as written in source code."""
    text = hint.__name__ if inspect.isclass(hint) and not typing.get_args(hint) else str(hint)
    text = re.sub(r"\b(?:typing|collections\.abc|pathlib(?:\._local)?|builtins)\.", "", text)
    return text.replace("NoneType", "None")


def stubs() -> dict[Path, str]:
    """Every stub and its text."""
    here = Path(__file__).parent
    return {here / "__init__.pyi": stub(), here / "transforms" / "__init__.pyi": transforms_stub()}


def main() -> int:
    for file, text in stubs().items():
        file.write_text(text, encoding="utf-8")
        print(file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
