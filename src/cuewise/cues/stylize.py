"""Stylised images: the texture and colours of a style, the layout of the image (stylised data, texture randomisation).

Three ways, the first that the user has given: copies made beforehand, AdaIN with weights on disk, statistics of the style.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from cuewise.cues.cue import Cue, Drawn
from cuewise.cues.style_adain import AdaIN
from cuewise.cues.style_patterns import COUNT, drawn_style
from cuewise.cues.style_statistics import mixed, transfer
from cuewise.errors import UserError

Bytes = NDArray[np.uint8]
Transfer = Callable[[Bytes, Bytes, float], Bytes]  # (image, style image, strength) -> image

ENDINGS = {".png", ".jpg", ".jpeg", ".webp", ".bmp", ".tif", ".tiff", ".ppm", ".gif"}


class StyleImages(Protocol):
    """Anything with a length and images by number: a Dataset, for one."""

    def __len__(self) -> int: ...
    def image(self, index: int, /) -> Bytes: ...


class DrawnStyles:
    """The styles drawn by formula."""

    def __len__(self) -> int:
        return COUNT

    def image(self, index: int, /) -> Bytes:
        return drawn_style(index)


class StyleFolder:
    """The pictures of a folder and its subfolders, sorted by path; read when needed, the last ones kept."""

    def __init__(self, folder: str | Path) -> None:
        root = Path(folder)
        self.paths = (
            sorted(p for p in root.rglob("*") if p.suffix.lower() in ENDINGS) if root.is_dir() else []
        )
        if not self.paths:
            raise UserError(f"styles: no pictures in {str(folder)!r}; give a folder of style images, or none")

    def __len__(self) -> int:
        return len(self.paths)

    def image(self, index: int, /) -> Bytes:
        return _read(self.paths[index])


@lru_cache(maxsize=64)
def _read(path: Path) -> Bytes:
    try:
        with Image.open(path) as picture:
            picture.thumbnail((512, 512))  # statistics need no more, and the last 64 stay in memory
            return np.array(picture.convert("RGB"))
    except (OSError, ValueError) as error:
        raise UserError(f"styles: cannot read {str(path)!r} ({error}); remove it from the folder") from error


@dataclass(frozen=True)
class StyleDraw:
    """What was drawn for a view, plain values that another view can copy: which style, and how much of it (0..1)."""

    style: int
    strength: float


def stylize(image: Bytes, style: Bytes, strength: float = 1.0, *, method: Transfer = transfer) -> Bytes:
    """The image in the style of another one (both uint8, H×W×3); strength 0 returns the image, 1 the full style."""
    for what, array in (("image", image), ("style", style)):
        if array.dtype != np.uint8 or array.ndim != 3 or array.shape[2] != 3 or min(array.shape[:2]) < 8:
            raise UserError(
                f"stylize: the {what} is {array.dtype} {array.shape}; it must be uint8, H×W×3, H and W ≥ 8"
            )
    if not 0.0 <= strength <= 1.0:
        raise UserError(f"stylize: strength {strength} must be between 0 (the image) and 1 (the full style)")
    return image.copy() if strength == 0.0 else method(image, style, strength)


class Stylizer:
    """Styles and the way to apply them.

    styles: a folder, a Dataset or None (drawn styles). encoder, decoder: AdaIN weights. precomputed: a folder of copies made
    beforehand, `<folder>/<style number>/<image name>`, or `<folder>/<image name>` where there is one copy of each.
    """

    def __init__(
        self,
        styles: str | Path | StyleImages | None = None,
        *,
        encoder: str | Path | None = None,
        decoder: str | Path | None = None,
        precomputed: str | Path | None = None,
    ) -> None:
        if (encoder is None) != (decoder is None):
            raise UserError("stylize: AdaIN needs both, encoder= and decoder= weights")
        if isinstance(styles, (str, Path)):
            styles = StyleFolder(styles)
        self.styles: StyleImages = DrawnStyles() if styles is None else styles
        self.method: Transfer = AdaIN(encoder, decoder) if encoder and decoder else transfer
        self.precomputed = Path(precomputed) if precomputed is not None else None
        if self.precomputed is not None and not self.precomputed.is_dir():
            raise UserError(f"stylize: no folder {str(precomputed)!r} of precomputed copies")

    def __len__(self) -> int:
        """How many styles a draw chooses from."""
        if self.precomputed is None:
            return len(self.styles)
        return max(1, sum(p.is_dir() and p.name.isdecimal() for p in self.precomputed.iterdir()))

    def draw(self, rng: np.random.Generator, strength: tuple[float, float] = (1.0, 1.0)) -> StyleDraw:
        """A style at random, a strength uniform in a range."""
        return StyleDraw(int(rng.integers(len(self))), float(rng.uniform(*strength)))

    def apply(self, image: Bytes, draw: StyleDraw, name: str | None = None) -> Bytes:
        """The image under a draw; `name` finds its copy in the precomputed folder."""
        if self.precomputed is None:
            return stylize(image, self.styles.image(draw.style), draw.strength, method=self.method)
        return _blend(image, _read_copy(self.precomputed, draw.style, name), draw.strength)


def _read_copy(folder: Path, style: int, name: str | None) -> Bytes:
    if name is None:
        raise UserError("stylize: precomputed copies are found by the image's name, and none was given")
    for base in (folder / str(style) / name, folder / name):
        for path in (base, base.with_suffix(".png"), base.with_suffix(".jpg")):
            if path.is_file():
                with Image.open(path) as picture:
                    return np.array(picture.convert("RGB"))
    raise UserError(f"stylize: no copy of {name!r} in style {style} under {str(folder)!r}; make it first")


def _blend(image: Bytes, styled: Bytes, strength: float) -> Bytes:
    height, width = image.shape[:2]
    if styled.shape != image.shape:
        resized = Image.fromarray(styled).resize((width, height), Image.Resampling.BICUBIC)
        styled = np.asarray(resized)
    return mixed(image, styled, strength)


@lru_cache(maxsize=4)
def _stylizer(styles: str | None, encoder: str | None, decoder: str | None) -> Stylizer:
    return Stylizer(styles, encoder=encoder, decoder=decoder)


@dataclass(frozen=True)
class Stylized(Cue):
    """See `Stylizer`."""

    name = "stylized"
    summary = "the layout of the image with the texture and colours of a random style"
    citation = "Geirhos et al. 2019; with weights on disk: Huang and Belongie 2017 (AdaIN)"
    styles: Annotated[str | None, "a folder of style images [256 drawn styles]"] = None
    strength: Annotated[float, "0 the image, 1 the full style"] = 1.0
    encoder: Annotated[str | None, "AdaIN's encoder, a file of weights"] = None
    decoder: Annotated[str | None, "AdaIN's decoder, a file of weights"] = None

    def draw(self, rng: np.random.Generator, height: int, width: int) -> Drawn:
        return asdict(self.stylizer.draw(rng, (self.strength, self.strength)))

    def render(self, image: Bytes, drawn: Drawn) -> Bytes:
        return self.stylizer.apply(image, StyleDraw(**drawn))

    @property
    def stylizer(self) -> Stylizer:
        return _stylizer(self.styles, self.encoder, self.decoder)
