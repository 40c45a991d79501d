"""The pages of the site that nobody writes: one per method, cue and audit, the verbs, the glossary and the API reference.

Everything on them is what the members declare (summary, equation, citation, settings, scores); `conf.py` calls `write` before
Sphinx looks for pages. A page says what its member does not declare.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import drawings
import overviews
from PIL import Image

from cuewise.audits.answerer import Unasked
from cuewise.audits.audit import AUDITS, Audit
from cuewise.cues.cue import Cue
from cuewise.cues.registry import cues
from cuewise.methods import Method, methods
from cuewise.options import options_of
from cuewise.report.plain import markdown_table
from cuewise.transforms import class_name


def write(place: Path, *, draw: bool = True) -> list[Path]:
    """All pages below `place`; without `draw` those of the members have no pictures."""
    made = [
        group(place, "methods", "Methods", methods(), method_page, method_drawing if draw else None),
        group(place, "cues", "Cue operators", cues(), cue_page, drawings.cue_picture if draw else None),
        group(place, "audits", "Audits", AUDITS.all(), audit_page, audit_drawing if draw else None),
        [save(place / f"{name}.md", page()) for name, page in overviews.PAGES.items()],
    ]
    return [file for files in made for file in files]


def group(
    place: Path,
    name: str,
    title: str,
    members: dict[str, Any],
    page: Callable[[Any, bool], str],
    draw: Callable[[Any], Image.Image | None] | None,
) -> list[Path]:
    """A page per member and one that lists them."""
    files, rows = [], []
    for key, member in members.items():
        stem = key.replace("+", "p")
        picture = draw(member) if draw else None
        if picture is not None:
            (place / name).mkdir(parents=True, exist_ok=True)
            picture.save(place / name / f"{stem}.png")
        files.append(save(place / name / f"{stem}.md", page(member, picture is not None)))
        rows.append(f"| [{key}]({name}/{stem}.md) | {plain(member.summary)} |")
    listed = "\n".join(f"{name}/{file.stem}" for file in files)
    table = "\n".join(["| name | what it is |", "| --- | --- |", *rows])
    index = f"# {title}\n\n{table}\n\n```{{toctree}}\n:hidden:\n\n{listed}\n```\n"
    return [*files, save(place / f"{name}.md", index)]


def method_page(kind: type[Method], picture: bool) -> str:
    stem = kind.name.replace("+", "p")
    begin = f"cuewise pretrain photos --out runs/{stem} --method {kind.name} {kind.example}".strip()
    commands = [begin]
    if kind.name == "tune":
        commands = ["cuewise tune timm/resnet50:weights.safetensors photos --out runs/tuned"]
    elif kind.negative_kinds():
        commands.append(f"{begin} --negatives {kind.negative_kinds()[0]} --alpha {kind.alpha:g}")
    takes = {
        "`--negatives`": ", ".join(kind.negative_kinds()),
        "`--hard`": kind.takes_hard,
        "`--leave-out`": kind.leaves_out,
        "`--crops object`": kind.takes_crops,
        "`--suppress`": not kind.no_suppress,
        "labels": "label" in kind.needs and "needed",
    }
    dials = [
        f"{name}{f' ({value})' if isinstance(value, str) else ''}" for name, value in takes.items() if value
    ]
    views = ", ".join(f"{role} ({recipe})" for role, recipe in kind.views.items())
    optim = ", ".join(f"{k} {v}" for k, v in kind.optim.items() if k != "short_lr")
    return joined(
        head(kind.name, kind.summary, inspect.getdoc(kind)),
        shown(stem, picture, "What it is shown: the views of three embedded images, by role."),
        equation(kind.equation),
        code("Command", commands),
        f"**Views:** {plain(views)}. **Optimiser as published:** {plain(optim)}. **Dials:** {', '.join(dials)}.",
        options(f"Settings (`--set {kind.name}.…`)", options_of(kind.Settings)),
        citation(kind.citation),
        "See also [methods](../../methods.md) and [negatives](../../negatives.md).",
    )


def cue_page(cue: Cue, picture: bool) -> str:
    commands = [f"cuewise make {cue.name} photos photos-{cue.name}"]
    if cue.suppresses:
        commands.append(f"cuewise pretrain photos --out runs/{cue.name} --suppress {cue.name}")
    python = f'from cuewise.cues.registry import cue\n\nmade = cue("{cue.name}")(image, rng)  # rng: numpy\'s Generator'
    return joined(
        head(cue.name, cue.summary, None),
        shown(
            cue.name,
            picture,
            "Three original photographs, and as the operator leaves them with default options.",
        ),
        equation(cue.equation),
        code("Command", commands),
        f"```python\n{python}\n```",
        f"As a transform of torchvision v2: `cuewise.transforms.{class_name(cue.name)}()`.",
        options("Options", options_of(type(cue))),
        citation(cue.citation),
        "See also [cue operators](../../cues.md) and [make](../../make.md).",
    )


def audit_page(audit: Audit, picture: bool) -> str:
    asked = " --train photos --test photos-val" if audit.needs_answers else ""
    commands = [f"cuewise audit runs/plain --out audits/{audit.name}{asked} --only {audit.name}"]
    if audit.name in audit.roles:
        commands.append(
            f"{commands[0].replace('photos-val', f'photos-val {audit.name}={audit.name}-images')}"
        )
    rows = [[k.pattern, k.title.replace("{}", "…"), k.meaning, k.unit, k.better or "–"] for k in audit.kinds]
    scores = (
        markdown_table(["score", "in words", "meaning", "unit", "better"], rows) if rows else "None declared."
    )
    return joined(
        head(audit.name, audit.summary, audit.question and f"*{audit.question}*"),
        shown(audit.name, picture, "What it asks about: embedded images, or changed copies of photographs."),
        equation(audit.equation),
        code("Command", commands),
        f"## Scores\n\n{scores}",
        options("Options of its own", options_of(audit)) if audit.options else "",
        citation(audit.citation),
        "See also [audit](../../audit.md) and the [glossary](../glossary.md).",
    )


def method_drawing(kind: type[Method]) -> Image.Image | None:
    asked: dict[str, Any] = {"negatives": [kind.negative_kinds()[0]]} if kind.negative_kinds() else {}
    return drawings.method_picture(kind, asked | ({"leave_out": ["color"]} if kind.leaves_out else {}))


def audit_drawing(audit: Audit) -> Image.Image | None:
    try:
        return drawings.audit_picture(audit)
    except Unasked:  # of objects, or of heads that the example does not have
        return None


def head(name: str, summary: str, more: str | None) -> str:
    lines = [f"# {name}", f"{plain(summary[0].upper() + summary[1:])}."]
    return "\n\n".join([*lines, more.replace("<", "&lt;")] if more else lines)


def shown(stem: str, picture: bool, caption: str) -> str:
    return (
        f"![{stem}]({stem}.png)\n\n{caption}"
        if picture
        else "No picture: what it looks at is not in the example set."
    )


def equation(text: str) -> str:
    return f"## Equation\n\n```text\n{text}\n```" if text else "## Equation\n\nNone is declared."


def citation(text: str) -> str:
    return f"## Citation\n\n{plain(text)}." if text else "## Citation\n\nNone is declared."


def code(title: str, lines: Iterable[str]) -> str:
    block = "```sh\n" + "\n".join(lines) + "\n```"
    return f"## {title}\n\n{block}" if title else block


def options(title: str, found: dict[str, Any]) -> str:
    rows = [[name, o.help + o.shown_default] for name, o in found.items()]
    return f"## {title}\n\n{markdown_table(['name', 'meaning'], rows)}" if rows else f"## {title}\n\nNone."


def plain(text: str) -> str:
    """Text of a declaration as Markdown text."""
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_")


def joined(*parts: str) -> str:
    return "\n\n".join(p for p in parts if p) + "\n"


def save(file: Path, text: str) -> Path:
    """Written only where it changed: Sphinx then reads it again."""
    file.parent.mkdir(parents=True, exist_ok=True)
    if not file.exists() or file.read_text(encoding="utf-8") != text:
        file.write_text(text, encoding="utf-8")
    return file
