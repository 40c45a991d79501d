"""A model of images and texts as a classifier: each class is what prompts say of it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from cuewise.audits.head import Head
from cuewise.encoders.texts import TextHead, Texts
from cuewise.errors import UserError
from cuewise.probes.wordnet import imagenet_classes
from cuewise.scores import Z95, Score

PROMPTS = ("a photo of a {}.", "a {}.", "a picture of the {}.")  # where the user gives none


class ZeroShot(Head):
    """The mean of the prompts' unit vectors per class; `members` are the classifiers of single prompts."""

    def __init__(self, texts: Texts, classes: Sequence[str], prompts: Sequence[str]) -> None:
        names = [spoken(name) for name in classes]
        each = torch.stack([F.normalize(texts.encode([p.format(n) for n in names]), dim=1) for p in prompts])
        places = {name: [k] for k, name in enumerate(classes)}
        source = f"zero-shot, {len(prompts)} prompt{'s' if len(prompts) > 1 else ''}"
        super().__init__(TextHead(each.mean(0), texts.scale), places, source)
        self.members = [Head(TextHead(vectors, texts.scale), places, p) for p, vectors in zip(prompts, each)]

    @property
    def protocol(self) -> str:
        return self.source


def spoken(name: str) -> str:
    """A class name in words: n02123045 is a tabby, polar_bear a polar bear."""
    if re.fullmatch(r"n\d{8}", name) and name in imagenet_classes():
        return imagenet_classes()[name][0]
    return name.replace("_", " ").replace("-", " ").strip() or name


def read_prompts(file: Path) -> tuple[str, ...]:
    """One template per line with {} for the class, or a JSON list of them."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"--prompts {file}: cannot be read ({error})") from None
    try:
        content = json.loads(text)
    except ValueError:
        content = [line.strip() for line in text.splitlines() if line.strip()]
    if not isinstance(content, list) or not content or not all(isinstance(p, str) for p in content):
        raise UserError(f"--prompts {file}: give one template per line, e.g. a photo of a {{}}.")
    for prompt in content:
        try:
            good = "\0" in prompt.format("\0")
        except (IndexError, KeyError, ValueError):
            good = False
        if not good:
            raise UserError(
                f"--prompts {file}: {prompt!r} names no class; write {{}} where the class belongs"
            )
    return tuple(content)


def widened(score: Score, members: Sequence[float], bounds: tuple[float, float] = (0.0, 1.0)) -> Score:
    """The interval over images with the spread over prompts: both variances added."""
    if len(members) < 2 or np.std(members) == 0:
        return score
    spread = Z95 * float(np.std(members, ddof=1))
    low = score.value - float(np.hypot(score.value - score.low, spread))
    high = score.value + float(np.hypot(score.high - score.value, spread))
    protocol = f"{score.protocol}; interval over images and prompts"
    return Score(score.name, score.value, max(bounds[0], low), min(bounds[1], high), score.n, protocol)
