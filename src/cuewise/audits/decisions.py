"""A table of decisions on cue-conflict images, and the scores that follow from it."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from cuewise.audits.figures import table
from cuewise.scores import Score, proportion

# "cat7-elephant1.png": shape of cat 7, texture of elephant 1
STIMULUS = re.compile(r"^(?P<shape>.*?)[ _]?\d*-(?P<texture>.*?)[ _]?\d*(?:\.\w+)?$")


@dataclass(frozen=True)
class Decision:
    """One answer: the class of the shape, the class of the texture, and the class that the subject answered."""

    image: str
    shape: str
    texture: str
    response: str


def parse_stimulus(name: str) -> tuple[str, str] | None:
    """(shape, texture) of a stimulus' file name, or None if it does not parse."""
    match = STIMULUS.match(name.rpartition("/")[2])
    return (match["shape"], match["texture"]) if match and match["shape"] and match["texture"] else None


def cues_in(name: str, known: Collection[str] | None = None) -> tuple[str, str] | None:
    """The same for names of known classes, which may have hyphens and numbers in them: "t-shirt2-mp3 player1.png"."""
    if known is None:
        return parse_stimulus(name)
    stem = re.sub(r"\.\w+$", "", name.rpartition("/")[2])
    for cut in [i for i, c in enumerate(stem) if c == "-"]:
        found = [
            next((n for n in _readings(part) if n in known), None) for part in (stem[:cut], stem[cut + 1 :])
        ]
        if found[0] is not None and found[1] is not None:
            return found[0], found[1]
    return None


def _readings(part: str) -> list[str]:
    """A class with its number, from the longest reading of the class to the shortest."""
    short = part.rstrip("0123456789")
    return [part[:n] for n in range(len(part), len(short) - 1, -1)] + [short.rstrip(" _")]


def shape_bias_scores(decisions: Sequence[Decision], protocol: str) -> tuple[list[Score], dict[str, Any]]:
    """shape / (shape + texture) decisions among images whose cues differ; both accuracies; the table by class.

    An answer that is neither cue counts for neither; images with shape = texture are dropped and counted.
    """
    asked = [d for d in decisions if d.shape != d.texture]
    shape = sum(d.response == d.shape for d in asked)
    texture = sum(d.response == d.texture for d in asked)
    scores = [
        proportion("shape_bias", shape, shape + texture, protocol),
        proportion("shape_accuracy", shape, len(asked), protocol),
        proportion("texture_accuracy", texture, len(asked), protocol),
    ]
    rows = []
    for name in sorted({d.shape for d in asked}):
        own = [d for d in asked if d.shape == name]
        s, t = sum(d.response == d.shape for d in own), sum(d.response == d.texture for d in own)
        rows.append([name, len(own), s, t, len(own) - s - t, s / (s + t) if s + t else None])
    dropped = len(decisions) - len(asked)
    title = f"Shape bias by shape class ({dropped} images with equal cues dropped)"
    columns = ["class", "images", "shape", "texture", "neither", "shape bias"]
    return scores, table(title, columns, rows, dropped=dropped)
