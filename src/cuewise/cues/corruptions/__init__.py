"""The corruptions of ImageNet-C: 15 in four families and 4 extra, at five severities, for images of any size.

D. Hendrycks, T. Dietterich, "Benchmarking Neural Network Robustness to Common Corruptions and Perturbations",
ICLR 2019. Constants as published there and in its code.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from inspect import signature
from typing import Any

import numpy as np

from cuewise.cues.corruptions import blur, digital, noise, weather
from cuewise.cues.corruptions.source import Bytes, CorruptionInput
from cuewise.cues.corruptions.spatter import spatter
from cuewise.errors import UserError

__all__ = ["CORRUPTIONS", "FAMILIES", "SEVERITIES", "Corruption", "corrupt", "corruption_rng", "variants"]

SEVERITIES = (1, 2, 3, 4, 5)
SMALLEST = 8


@dataclass(frozen=True)
class Corruption:
    """A named corruption; `in_mce` is false for the four that do not count in the mean corruption error.

    function: of the source and the severity, and of a generator where it draws random numbers
    """

    name: str
    family: str
    in_mce: bool
    function: Callable[..., Bytes]

    @cached_property
    def draws(self) -> bool:
        return "rng" in signature(self.function).parameters

    def apply(self, source: CorruptionInput, severity: int, rng: Callable[[], np.random.Generator]) -> Bytes:
        """The corrupted image; the generator is made only where it is used."""
        more = (rng(),) if self.draws else ()
        return source.finish(self.function(source, severity, *more))


# by family: those that count in the mean corruption error, and an extra one
_FUNCTIONS: dict[str, tuple[tuple[Any, ...], Any]] = {
    "noise": ((noise.gaussian_noise, noise.shot_noise, noise.impulse_noise), noise.speckle_noise),
    "blur": ((blur.defocus_blur, blur.glass_blur, blur.motion_blur, blur.zoom_blur), blur.gaussian_blur),
    "weather": ((weather.snow, weather.frost, weather.fog, weather.brightness), spatter),
    "digital": (
        (digital.contrast, digital.elastic_transform, digital.pixelate, digital.jpeg_compression),
        digital.saturate,
    ),
}
_COUNTED = [Corruption(f.__name__, family, True, f) for family, (fs, _) in _FUNCTIONS.items() for f in fs]
_EXTRA = [Corruption(f.__name__, family, False, f) for family, (_, f) in _FUNCTIONS.items()]
CORRUPTIONS: dict[str, Corruption] = {c.name: c for c in _COUNTED + _EXTRA}
FAMILIES: dict[str, tuple[str, ...]] = {
    family: tuple(f.__name__ for f in counted) for family, (counted, _) in _FUNCTIONS.items()
}


def corruption_rng(seed: int, name: str, corruption: str, severity: int) -> np.random.Generator:
    """The generator of one variant of one image: the same on every machine, in any order of work."""
    key = "\0".join((str(seed), name, corruption, str(severity)))
    digest = hashlib.blake2b(key.encode("utf-8", "surrogateescape"), digest_size=16).digest()
    return np.random.default_rng(int.from_bytes(digest, "little"))


def _check(image: Bytes, names: Iterable[str], severities: Iterable[int]) -> None:
    for name in names:
        if name not in CORRUPTIONS:
            raise UserError(f"no corruption {name!r}; there are: {', '.join(CORRUPTIONS)}")
    for severity in severities:
        if severity not in SEVERITIES:
            raise UserError(f"corruption severity {severity!r}: must be 1, 2, 3, 4 or 5")
    if image.dtype != np.uint8 or image.ndim not in (2, 3):
        raise UserError(f"a {image.dtype} image of {image.ndim} axes: corruptions take uint8, H×W or H×W×C")
    if min(image.shape[:2]) < SMALLEST:
        size = "×".join(str(n) for n in image.shape[:2])
        raise UserError(
            f"an image of {size} pixels: corruptions need {SMALLEST}×{SMALLEST} or more; enlarge it"
        )


def corrupt(
    image: Bytes,
    name: str,
    severity: int,
    rng: np.random.Generator,
    *,
    scale_to_image: bool = False,
    frost_images: str | None = None,
) -> Bytes:
    """The image (uint8, H×W or H×W×C, any size from 8) under one corruption.

    scale_to_image: radii are published for 224 pixels; multiply them by (shorter side)/224.
    frost_images: a folder of photographs of frost; without it, frost is drawn.
    """
    _check(image, (name,), (severity,))
    source = CorruptionInput(
        image, severities=(severity,), scale_to_image=scale_to_image, frost_images=frost_images
    )
    return CORRUPTIONS[name].apply(source, severity, lambda: rng)


def variants(
    image: Bytes,
    *,
    seed: int,
    name: str,
    corruptions: Iterable[str] | None = None,
    severities: Iterable[int] = SEVERITIES,
    scale_to_image: bool = False,
    frost_images: str | None = None,
) -> Iterator[tuple[str, int, Bytes]]:
    """(corruption, severity, image) for the 15 counted corruptions, or those asked, × severities.

    Each equals `corrupt(image, corruption, severity, corruption_rng(seed, name, corruption, severity))`; what does
    not depend on the corruption or the severity is computed once. `name` is the image's own, e.g. "dog/rex.jpg".
    """
    chosen = [c.name for c in CORRUPTIONS.values() if c.in_mce] if corruptions is None else list(corruptions)
    strengths = tuple(severities)
    _check(image, chosen, strengths)
    source = CorruptionInput(
        image, severities=strengths, scale_to_image=scale_to_image, frost_images=frost_images
    )
    for corruption in chosen:
        for severity in strengths:
            rng = partial(corruption_rng, seed, name, corruption, severity)
            yield corruption, severity, CORRUPTIONS[corruption].apply(source, severity, rng)
