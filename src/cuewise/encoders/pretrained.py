"""Weights that a library publishes: taken from its own cache, or downloaded because the user asked for them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torchvision
from torch import Tensor

from cuewise.encoders.card import Card
from cuewise.encoders.constructor import first_line
from cuewise.encoders.weights import read_weights
from cuewise.errors import UserError, unknown


def torchvision_weights(name: str, which: bool | str, card: Card) -> tuple[dict[str, Tensor], Card]:
    """The state dict, read as tensors only, and the card with size, mean, std and interpolation of these weights."""
    known: Any = torchvision.models.get_model_weights(name)
    names = [w.name for w in known]
    if not names:
        raise UserError(f"torchvision publishes no weights of {name}")
    chosen = known.DEFAULT if which is True else getattr(known, str(which), None)
    if chosen is None:
        raise unknown(f"torchvision/{name} has no weights", str(which), names)
    file = Path(torch.hub.get_dir(), "checkpoints", chosen.url.rpartition("/")[2])
    if not file.is_file():
        file.parent.mkdir(parents=True, exist_ok=True)
        digest = file.stem.rpartition("-")[2]
        with fetching(card.arch, "torchvision"):
            torch.hub.download_url_to_file(chosen.url, str(file), digest, progress=False)
    view = chosen.transforms()
    card = replace(
        card,
        size=int(view.crop_size[0]),
        mean=tuple(view.mean),
        std=tuple(view.std),
        interpolation=str(view.interpolation.value),
        weights={"pretrained": f"torchvision/{name} {chosen.name}"},
    )
    return read_weights(file), card


@contextmanager
def fetching(arch: str, library: str) -> Iterator[None]:
    """Any failure to get weights is one line that says where they are looked for."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:  # network, hub and file errors of several libraries
        raise UserError(
            f"cannot get the pretrained weights of {arch}: {first_line(error)[:160]}. They are looked for in {_cache(library)} "
            f"and then downloaded; or give a file as MODEL:FILE"
        ) from error


def _cache(library: str) -> str:
    if library == "torchvision":
        return str(Path(torch.hub.get_dir(), "checkpoints"))
    from huggingface_hub import constants

    return str(constants.HF_HUB_CACHE)
