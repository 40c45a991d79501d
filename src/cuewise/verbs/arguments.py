"""What the verbs share: types of arguments with their help, and small conversions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from cuewise.errors import UserError
from cuewise.options import COMMAS, SEEDS, One, Several, checked, options_of, texts
from cuewise.results import Result as Result

INPUT, MACHINE = "input", "machine"  # groups of options under --help

Data = Annotated[
    Several,
    "folders, archives, shards or data sets of images, joined; DATA?classes=imagenet100 takes some classes",
]
Model = Annotated[
    One | Callable[..., Any],
    "a run folder, encoder.safetensors, torchvision/NAME, timm/NAME (add :FILE for weights), open_clip/NAME:FILE, "
    "hf:FOLDER, package.module:factory",
]
Space = Annotated[
    str | None,
    "of a looc run: v, z0, a left-out augmentation, all, or several joined by + [the encoder's features]",
    INPUT,
]
Pretrained = Annotated[
    bool,
    "take the library's published weights of torchvision/NAME or timm/NAME: from its cache, else downloaded",
    INPUT,
]
Size = Annotated[int | None, "side of the input in pixels [the model's own]", INPUT]
Seed = Annotated[int, "seed of everything random [0]", INPUT, SEEDS]
Device = Annotated[str, "auto, cpu, cuda, mps", MACHINE]
Workers = Annotated[str | int, "processes that prepare images: auto or a number", MACHINE]
Engine = Annotated[str, "local, or ray for a cluster", MACHINE]
Address = Annotated[str | None, "of the Ray cluster", MACHINE]
Settings = Sequence[str] | Mapping[str, Any] | None
Tests = Annotated[
    Several | None,
    "images to score; with a role as in sketch=DATA (anagrams, conflict, corrupted, plain, shape, silhouette, stylized, "
    "texture) [embedded sets]",
]
Audits = Annotated[
    str | Sequence[str] | None, "audits to run, separated by commas (see `cuewise list audits`)", COMMAS
]
Names = Annotated[Several | None, "names of the models in the report, one for each, in their order", INPUT]
Limit = Annotated[
    int, "images of which changed copies and, for similarity, pairs are made; 0 takes all", INPUT
]
Answers = Annotated[
    str, "whose answers count: head (the model's own classifier), probe (fitted on --train), auto", INPUT
]
ClassMap = Annotated[
    One | None,
    "a JSON file: which outputs of a classifier, or training classes of a probe, belong to a class [by WordNet ids]",
    INPUT,
]

Prompts = Annotated[
    One | None,
    "of models that know texts: a file of templates, one per line with {} for the class [three usual ones]",
    INPUT,
]


def joined(data: Sequence[Several]) -> list[str]:
    """DATA arguments as one list."""
    return [text for each in data for text in texts(each)]


def specified(model: Any, space: str | None, pretrained: bool) -> Any:
    """MODEL, --space and --pretrained as one specification; a module stays what it is."""
    from cuewise.encoders.load import with_pretrained, with_space

    return with_space(with_pretrained(str(model) if isinstance(model, Path) else model, pretrained), space)


def layers_asked(
    verb: str, options: Mapping[str, Any], data: Sequence[Several], config: One | None, set: Settings
) -> tuple[list[Mapping[str, Any]], dict[str, Any]]:
    """The layers of a run that a user asks for, --config first, --set and the options last; and the options alone."""
    from cuewise.config import Config, dotted, refuse_code
    from cuewise.recipes import settings_of

    asked = checked(Config, options, verb)
    for dial in ("hard", "crops", "suppress"):
        if isinstance(asked.get(dial), str):
            asked[dial] = {"name": asked[dial]}
    if data:
        asked["data"] = joined(data)
    typed = [set if isinstance(set, Mapping) else dotted(list(set or [])), asked]
    if "epochs" in asked and (typed[0].get("loop") or {}).get("budget") is not None:
        raise UserError("--epochs and loop.budget (in optimiser steps) exclude each other: give one of them")
    if not config:
        return typed, asked
    named = settings_of(str(config))
    if "epochs" in asked and isinstance(named.get("loop"), Mapping):
        named = {**named, "loop": {**named["loop"], "budget": None}}  # what is typed wins
    refuse_code(named, str(config), *typed)
    return [named, *typed], asked


def optional(value: One | None) -> str | None:
    """A path as text."""
    return None if value is None else str(value)


def several(value: str | Sequence[str] | None) -> list[str]:
    """Names, also as one text with commas."""
    return [name for text in texts(value) for name in text.split(",") if name]


def departing(verb: Callable[..., Any], given: Mapping[str, Any]) -> list[str]:
    """The names of what was given and is not the default that the verb declares."""
    usual = {name: option.default for name, option in options_of(verb).items()}
    return [name for name, value in given.items() if value not in (None, [], {}) and value != usual.get(name)]
