"""open_clip/NAME:weights, an image encoder with its text side, from a file or by one of open_clip's tags."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from cuewise.encoders.card import RANDOM, Card, Weights, weights_of_file
from cuewise.encoders.constructor import first_line
from cuewise.encoders.encoder import Encoder
from cuewise.encoders.texts import Texts
from cuewise.errors import UserError, unknown

SPEC = re.compile(r"^open_clip/(?P<name>[^:]+)(?::(?P<weights>.+))?$")


def load_open_clip(spec: str, size: int | None) -> Encoder:
    """The visual tower as the encoder, in open_clip's own key names; `encoder.text` answers zero-shot."""
    open_clip, name, given = _named(spec)
    source, origin = _weights(open_clip, name, given)
    model = _created(open_clip, spec, name, source, size)
    encoder = Encoder(model.visual, _card(spec, model.visual, size, origin)).eval()
    encoder.text = Texts(
        _OpenClipTexts(open_clip, name, model.eval()), float(model.logit_scale.detach().exp())
    )
    return encoder


def empty_open_clip(arch: str, size: int) -> Encoder:
    """The visual tower before the weights of a run are loaded. A run holds no text side, so there is none."""
    open_clip, name, _ = _named(arch)
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)  # that the weights are random: they come next
    try:
        visual = _created(open_clip, arch, name, None, size).visual
    finally:
        logging.disable(before)
    return Encoder(visual, _card(arch, visual, size, RANDOM)).eval()


def _named(spec: str) -> tuple[Any, str, str | None]:
    """The library, one of the models that it knows itself, and the weights that `spec` names."""
    try:
        import open_clip
    except ImportError as error:
        raise UserError(f"{spec} needs open_clip: pip install 'cuewise[open_clip]'") from error
    match = SPEC.match(spec)
    if match is None:
        raise UserError(f"{spec}: write open_clip/NAME or open_clip/NAME:FILE")
    if match["name"] not in open_clip.list_models():
        raise unknown("open_clip has no model", match["name"], open_clip.list_models())
    return open_clip, match["name"], match["weights"]


def _created(library: Any, spec: str, name: str, source: str | None, size: int | None) -> Any:
    try:
        return library.create_model(name, pretrained=source, force_image_size=size, pretrained_text=False)
    except Exception as error:  # whatever open_clip raises about a file or a download
        raise UserError(f"{spec} cannot be loaded: {first_line(error)}") from error


def _weights(library: Any, name: str, given: str | None) -> tuple[str | None, Weights]:
    """What create_model takes, and what the card says."""
    if given is None:
        return None, RANDOM
    if Path(given).is_file():
        return given, weights_of_file(Path(given))
    tags = library.list_pretrained_tags_by_model(name)
    if given not in tags:
        raise unknown(f"open_clip/{name}: no file and no tag", given, tags)
    return given, {"pretrained": f"open_clip {name} {given}"}


def _card(spec: str, visual: Any, size: int | None, weights: Weights) -> Card:
    known = getattr(visual, "preprocess_cfg", None) or {}
    side = getattr(visual, "image_size", 224)
    side = side[0] if isinstance(side, tuple | list) else side
    mean, std = known.get("mean") or CLIP_MEAN, known.get("std") or CLIP_STD
    interpolation = known.get("interpolation") or "bicubic"
    arch = spec.partition(":")[0]
    return Card(arch, size or int(side), tuple(mean), tuple(std), interpolation, weights=weights)


CLIP_MEAN, CLIP_STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)


class _OpenClipTexts:
    """Texts → N×D; the tokenizer is loaded when it is first needed."""

    def __init__(self, library: Any, name: str, model: Any) -> None:
        self.library, self.name, self.model = library, name, model

    def __call__(self, texts: Sequence[str]) -> Tensor:
        try:
            tokenizer = self.library.get_tokenizer(self.name)
        except Exception as error:  # a tokenizer of the hub that is not in its cache
            why = first_line(error)
            raise UserError(f"open_clip/{self.name} has no tokenizer on this machine: {why}") from error
        with torch.inference_mode():
            found: Tensor = self.model.encode_text(tokenizer(list(texts))).float()
        return found.clone()
