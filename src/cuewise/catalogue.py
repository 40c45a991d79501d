"""What there is to choose from, one line each; read from sources, so that `cuewise list` does not import torch."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from cuewise.architectures import OWN_MODELS, registered
from cuewise.class_source import ClassSource, Field, class_source
from cuewise.declarations import Declared
from cuewise.errors import unknown
from cuewise.registry import declared_members, outside, summaries

DATA = {  # forms of DATA; docs/data.md has the details
    "FOLDER": "images, labelled by its first-level subfolders if there are any",
    "FILE.zip": "a folder in an archive, or a part of it: FILE.zip/photo",
    "FILE.tar": "shards, several as shards-{000..099}.tar",
    "FILE.parquet": "a table with a column of images",
    "hf:NAME": "a data set of the Hugging Face hub (extra: hf)",
    "torchvision:NAME:ROOT": "a data set of torchvision, e.g. torchvision:CIFAR10:ROOT",
    "shapes": "embedded images; splits as shapes:conflict, options as shapes?n=500&size=64",
    "package.module:Name": "your own, with options as package.module:Name?a=1",
}


def catalogue(what: str | None) -> dict[str, str]:
    """name → summary of all members of a kind; without a kind, of the kinds themselves."""
    if what is None:
        return {kind: text for kind, (text, _) in KINDS.items()}
    if what not in KINDS:
        raise unknown("cannot list", what, KINDS)
    return KINDS[what][1]()


def models() -> dict[str, str]:
    """cuewise's own, torchvision's and timm's."""
    names = [f"torchvision/{n}" for n in sorted(registered("torchvision"))]
    names += [f"timm/{n}" for n in sorted(registered("timm"), key=_natural)]
    return OWN_MODELS | dict.fromkeys(names, "")


def _natural(name: str) -> list[int | str]:
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name.lower())]


def makers() -> dict[str, str]:
    """Every cue operator makes a set, and some makers are more than that."""
    return dict(
        sorted({**summaries("cues", "cuewise.cues"), **summaries("makers", "cuewise.makers")}.items())
    )


def recipes() -> dict[str, str]:
    from cuewise.recipes import recipes as known

    return {name: f"{r.summary}; DATA: '{r.images}'" for name, r in known().items()}


def settings() -> dict[str, str]:
    """Every key of --set, and what --negatives takes after a "?", with type, default and meaning."""
    groups = {
        "optim": class_source("cuewise.config.fields", "Optim"),
        "views": class_source("cuewise.config.fields", "ViewSettings"),
        "loop": class_source("cuewise.config.fields", "Loop"),
        "labels": class_source("cuewise.config.fields", "Labels"),
        "suppress": class_source("cuewise.views.suppress", "SuppressSettings"),
        "crops": class_source("cuewise.views.object_crops", "CropSettings"),
        "hard": class_source("cuewise.methods.hard", "AllSettings"),
    }
    for name, source in sources("methods", "cuewise.methods").items():
        groups.setdefault(name, source.inner("Settings"))
    listed = {
        f"{group}.{name}": _line(f)
        for group, settings in groups.items()
        for name, f in (settings.fields() if settings else {}).items()
    }
    return listed | filter_settings() | negative_settings()


def sources(plural: str, package: str) -> dict[str, ClassSource]:
    """The class of every member as its source has it, those of installed packages included."""
    inside = declared_members(package)
    places = {name: (d.module, d.attribute) for name, d in inside.items()}
    places |= {name: (p.module, p.attr) for name, p in outside(plural, inside).items()}
    return {name: source for name, place in places.items() if (source := class_source(*place))}


def filter_settings() -> dict[str, str]:
    """The own options of filters; each says which filters have it."""
    lines: dict[str, dict[str, list[str]]] = {}
    known = sources("cues", "cuewise.cues")
    for name in filter(known.get, filters()):
        for key, f in known[name].options().items():
            lines.setdefault(f"suppress.{key}", {}).setdefault(_line(f), []).append(name)
    return {
        key: "; ".join(f"{line} ({', '.join(names)})" for line, names in found.items())
        for key, found in lines.items()
    }


def negative_settings() -> dict[str, str]:
    """The own options of negatives, as --negatives takes them."""
    return {
        f"{name}?{key}": _line(f)
        for name, source in sources("negatives", "cuewise.views.negatives").items()
        for key, f in source.options().items()
    }


def _line(f: Field) -> str:
    return f"{f.type} = {_default(f.default)}  {f.help}"


def _default(text: str | None) -> str:
    made = re.fullmatch(r"field\(default_factory=(?:lambda: (.*)|(\w+))\)", text or "")
    return (made[1] or f"{made[2]}()") if made else text or "(required)"


def filters() -> dict[str, str]:
    """The cue operators that --suppress takes."""
    known = summaries("cues", "cuewise.cues")
    other = {d.name for d in declared_members("cuewise.cues").values() if not suppresses(d)}
    return {name: text for name, text in known.items() if name not in other}


def suppresses(declared: Declared) -> bool:
    source = class_source(declared.module, declared.attribute)
    return source is not None and source.says("suppresses", True)


# kind → what it is, and its members
KINDS: dict[str, tuple[str, Callable[[], dict[str, str]]]] = {
    "methods": (
        "ways to train an encoder: pretrain --method",
        partial(summaries, "methods", "cuewise.methods"),
    ),
    "models": ("architectures of cuewise, torchvision and timm: MODEL and pretrain --model", models),
    "negatives": (
        "images to push away: pretrain --negatives",
        partial(summaries, "negatives", "cuewise.views.negatives"),
    ),
    "filters": ("cue operators that remove texture: pretrain --suppress", filters),
    "cues": (
        "operators that keep or remove a cue: make, pretrain --suppress, cuewise.transforms",
        partial(summaries, "cues", "cuewise.cues"),
    ),
    "augmentations": (
        "random changes of a view: pretrain --leave-out",
        partial(summaries, "augmentations", "cuewise.views"),
    ),
    "audits": ("questions to a model: audit --only", partial(summaries, "audits", "cuewise.audits")),
    "clues": (
        "what a set of images may give away: inspect --only",
        partial(summaries, "clues", "cuewise.inspection.clues"),
    ),
    "makers": ("image sets that can be made: make KIND", makers),
    "probes": ("ways to score an encoder: probe KIND", partial(summaries, "probes", "cuewise.probes")),
    "recipes": ("published settings: pretrain --config", recipes),
    "studies": ("the papers' experiments: reproduce NAME", partial(summaries, "studies", "cuewise.studies")),
    "measures": (
        "what a study measures on each of its runs",
        partial(summaries, "measures", "cuewise.studies.measures"),
    ),
    "data": ("forms of DATA", lambda: DATA | summaries("sources", "cuewise.data")),
    "settings": ("keys of --set, and options of negatives", settings),
}
