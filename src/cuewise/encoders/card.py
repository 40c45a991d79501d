"""The card of an encoder: what travels with its weights in encoder.json, and where the weights come from."""

from __future__ import annotations

import hashlib
import json
import math
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from cuewise.errors import UserError

IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
RANDOM = "random"
Weights = str | dict[str, Any]


@dataclass(frozen=True)
class Card:
    """What travels with the weights (encoder.json).

    pool     token, avg, max … as the library calls it; "model" is what the model's own forward returns
    weights  "random"; {"file", "sha256"}; {"pretrained": tag}; {"run", "step"} for what cuewise trained (and "from", where
             it did not start from random weights); {"code": name} for a module that came from Python
    config   what the model is built from, where its name alone does not say (transformers)
    """

    arch: str
    size: int
    mean: tuple[float, float, float] = IMAGENET_MEAN
    std: tuple[float, float, float] = IMAGENET_STD
    interpolation: str = "bilinear"
    pool: str = "model"
    method: str | None = None
    cues: dict[str, Any] = field(default_factory=dict)
    weights: Weights = "unknown"
    config: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        found = {**asdict(self), "mean": list(self.mean), "std": list(self.std)}
        if not self.config:
            del found["config"]
        return found


def read_card(file: Path) -> dict[str, Any]:
    """The content of encoder.json; anything that is not such a card is one line."""
    try:
        card = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{file} is damaged ({error}): export or train the encoder again") from None
    if not isinstance(card, dict):
        raise UserError(
            f"{file} is not the card that cuewise writes beside an encoder: it is not a JSON object"
        )
    for key, (form, fits) in _FORM.items():
        if key not in card and key in ("arch", "size", "mean", "std"):
            raise UserError(
                f"{file} has no {key!r}: it is not the card that cuewise writes beside an encoder"
            )
        if key in card and not fits(card[key]):
            raise UserError(f"{file}: {key!r} must be {form}, not {str(card[key])[:40]!r}")
    return card


def _three_numbers(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 3
        and all(isinstance(v, int | float) and not isinstance(v, bool) and math.isfinite(v) for v in value)
    )


_FORM: dict[str, tuple[str, Any]] = {
    "arch": ("a model by name", lambda v: isinstance(v, str)),
    "size": ("a number of pixels", lambda v: type(v) is int and 1 <= v <= 1 << 14),
    "mean": ("three numbers", _three_numbers),
    "std": ("three numbers above 0", lambda v: _three_numbers(v) and all(x > 0 for x in v)),
    "interpolation": ("a name", lambda v: isinstance(v, str)),
    "pool": ("a name", lambda v: isinstance(v, str)),
    "method": ("a name", lambda v: v is None or isinstance(v, str)),
    "cues": ("an object", lambda v: isinstance(v, dict)),
    "weights": ("a word or an object", lambda v: isinstance(v, str | dict)),
    "config": ("an object", lambda v: isinstance(v, dict)),
    "step": ("a number of steps", lambda v: type(v) is int and v >= 0),
    "classifier": ("a name", lambda v: isinstance(v, str)),
    "outputs": ("a number of classes", lambda v: type(v) is int and 1 <= v <= 1 << 20),
}


def weights_of_file(file: Path) -> dict[str, Any]:
    """Name and SHA-256 of a file of weights."""
    with file.open("rb") as handle:
        return {"file": file.name, "sha256": hashlib.file_digest(handle, "sha256").hexdigest()}


def is_random(weights: Weights) -> bool:
    """Whether nothing was ever trained: random numbers, or a run that made no step from them."""
    if isinstance(weights, str):
        return weights == RANDOM
    return weights.get("step") == 0 and "from" not in weights


def describe_weights(weights: Weights) -> str:
    """One line for score cards and reports."""
    if isinstance(weights, str):
        return "random (untrained)" if weights == RANDOM else weights
    if "pretrained" in weights:
        return f"pretrained, {weights['pretrained']}"
    digest = f" (sha256 {str(weights['sha256'])[:12]}…)" if "sha256" in weights else ""
    if "run" in weights:
        untrained = ", untrained" if is_random(weights) else ""
        return f"run {weights['run']}, step {weights.get('step')}{untrained}{digest}"
    return f"{weights.get('file') or weights.get('code') or 'unknown'}{digest}"


def warn_if_random(card: Card, name: str) -> None:
    """Say on the terminal that the numbers are about an untrained network."""
    if is_random(card.weights):
        print(
            f"WARNING: {name} has RANDOM WEIGHTS: all numbers are about an untrained network. Give weights as MODEL:FILE, "
            f"or --pretrained for the library's own",
            file=sys.stderr,
            flush=True,
        )
