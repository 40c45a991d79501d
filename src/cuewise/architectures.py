"""Names of the architectures of cuewise, torchvision and timm; read from sources, so that no library is imported for them."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

REGISTERED = re.compile(r"^@register_model(?:\(\))?\s*\n(?:@.*\n)*def (\w+)\(", re.M)
OWN_MODELS = {
    "cuewise/resnet-tiny": "a ResNet for 64 pixels and less on a CPU (options ?width=32&depth=10&norm=batch)",
    "cuewise/unet": "the generator of pix2pix, for images of any size (options ?width=32&depth=3&residual=true)",
    "cuewise/wrn40-2": "the wide ResNet of CIFAR experiments, normalised with 0.5 (option ?dropout=0.3)",
    "cuewise/vit-tiny": "a vision transformer for 64 pixels and less (options ?patch=4&width=192&depth=4)",
    "cuewise/lab": "a pair of encoders, one for lightness and one for colours: cuewise/lab?of=MODEL (CMC)",
}


def registered(library: str) -> list[str]:
    """Names of the models that the library's sources register; importing the library would take seconds."""
    spec = importlib.util.find_spec(library)
    places = (spec.submodule_search_locations if spec else None) or []
    files = [file for place in places for file in Path(place, "models").glob("*.py")]
    return [name for file in files for name in REGISTERED.findall(file.read_text(encoding="utf-8"))]
