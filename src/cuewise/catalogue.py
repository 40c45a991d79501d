"""What there is to choose from, one line each; read from sources, so that `cuewise list` does not import torch."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from cuewise.architectures import OWN_MODELS, registered
from cuewise.class_source import class_source
from cuewise.declarations import declared_in
from cuewise.errors import unknown
from cuewise.registry import member_modules, summaries

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


def catalogue(what: str | None = None) -> dict[str, str]:
    """name → summary of all members of a kind; without a kind, of the kinds themselves."""
    if what is None:
        return dict(WHAT)
    if what not in KINDS:
        raise unknown("cannot list", what, KINDS)
    return KINDS[what]()


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
    """Every key of --set with its type, default and meaning."""
    groups = {
        "optim": class_source("cuewise.config.fields", "Optim"),
        "views": class_source("cuewise.config.fields", "ViewSettings"),
        "loop": class_source("cuewise.config.fields", "Loop"),
        "labels": class_source("cuewise.config.fields", "Labels"),
        "suppress": class_source("cuewise.views.suppress", "SuppressSettings"),
        "crops": class_source("cuewise.views.object_crops", "CropSettings"),
        "hard": class_source("cuewise.methods.hard", "AllSettings"),
    }
    for module in member_modules("cuewise.methods"):
        for declared in declared_in(module):
            source = class_source(module, declared.attribute)
            groups[declared.name] = source.inner("Settings") if source else None
    return {
        f"{group}.{name}": f"{f.type} = {_default(f.default)}  {f.help}"
        for group, source in groups.items()
        for name, f in (source.fields() if source else {}).items()
    }


def _default(text: str | None) -> str:
    made = re.fullmatch(r"field\(default_factory=(?:lambda: (.*)|(\w+))\)", text or "")
    return (made[1] or f"{made[2]}()") if made else text or "(required)"


KINDS: dict[str, Callable[[], dict[str, str]]] = {
    "methods": partial(summaries, "methods", "cuewise.methods"),
    "models": models,
    "negatives": partial(summaries, "negatives", "cuewise.views.negatives"),
    "filters": partial(summaries, "cues", "cuewise.cues"),
    "cues": partial(summaries, "cues", "cuewise.cues"),
    "augmentations": partial(summaries, "augmentations", "cuewise.views"),
    "audits": partial(summaries, "audits", "cuewise.audits"),
    "clues": partial(summaries, "clues", "cuewise.inspection.clues"),
    "makers": makers,
    "probes": partial(summaries, "probes", "cuewise.probes"),
    "recipes": recipes,
    "studies": partial(summaries, "studies", "cuewise.studies"),
    "measures": partial(summaries, "measures", "cuewise.studies.measures"),
    "data": lambda: DATA | summaries("sources", "cuewise.data"),
    "settings": settings,
}

WHAT = {  # what `cuewise list` says without a kind
    "methods": "ways to train an encoder: pretrain --method",
    "models": "architectures of cuewise, torchvision and timm: MODEL and pretrain --model",
    "negatives": "images to push away: pretrain --negatives",
    "filters": "the same as cues",
    "cues": "operators that keep or remove a cue: make, pretrain --suppress, cuewise.transforms",
    "augmentations": "random changes of a view: pretrain --leave-out",
    "audits": "questions to a model: audit --only",
    "clues": "what a set of images may give away: inspect --only",
    "makers": "image sets that can be made: make KIND",
    "probes": "ways to score an encoder: probe KIND",
    "recipes": "published settings: pretrain --config",
    "studies": "the papers' experiments: reproduce NAME",
    "measures": "what a study measures on each of its runs",
    "data": "forms of DATA",
    "settings": "keys of --set",
}
