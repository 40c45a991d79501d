"""Published view recipes, and how the parameters of a view are drawn from them."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from itertools import permutations

import numpy as np

from cuewise.cues.stylize import StyleDraw
from cuewise.errors import UserError
from cuewise.views.augmentations import augmentation
from cuewise.views.params import Crop, Jitter, Region, ViewParams
from cuewise.views.suppress import Options, draw_suppress, suppressor

Range = tuple[float, float]

ATTEMPTS = 10  # crops tried before the central one, as in torchvision
_PICKS = 15  # uniform numbers for everything but the crop's shape
_DRAWS = _PICKS + 2 * ATTEMPTS


@dataclass(frozen=True)
class Recipe:
    """How views are drawn; every field can be changed with `dataclasses.replace`.

    `*_p` are probabilities. `scale` is the crop's share of the image area, `ratio` its width / height.
    `jitter` holds the strengths of brightness, contrast, saturation and hue: factors are uniform in
    [max(0, 1 - s), 1 + s], the hue in [-h, h]; a strength of 0 leaves the operation out. `blur_sigma` is in
    output pixels; the published range is for 224 and is kept at other sizes (see `scaled_blur`).
    """

    size: int = 224
    scale: Range = (0.08, 1.0)
    ratio: Range = (3 / 4, 4 / 3)
    flip_p: float = 0.5
    jitter: tuple[float, float, float, float] = (0.4, 0.4, 0.4, 0.1)
    jitter_p: float = 0.0
    gray_p: float = 0.0
    blur_p: float = 0.0
    blur_sigma: Range = (0.1, 2.0)
    solarize_p: float = 0.0
    solarize_threshold: int = 128
    rotation_p: float = 0.0
    style_p: float = 0.0
    style_strength: Range = (1.0, 1.0)
    style_count: int = 64  # styles a view chooses from, see `Styles`
    own: tuple[str, ...] = ()  # the user's augmentations, by their registered names
    # filter against texture, of a share suppress_p of the views; those are not blurred
    suppress: str | None = None
    suppress_p: float = 0.0
    suppress_options: Options = ()  # of the filter
    suppress_copies: int = 0  # sets of copies made beforehand, one of which is drawn
    one_change: bool = False  # a suppressed view is not stylised as well

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name.endswith("_p") and not 0 <= value <= 1:
                raise UserError(f"recipe {field.name}={value}: a probability must be between 0 and 1")
        for name, count in (
            ("scale", 2),
            ("ratio", 2),
            ("blur_sigma", 2),
            ("style_strength", 2),
            ("jitter", 4),
        ):
            if len(getattr(self, name)) != count:
                raise UserError(f"recipe {name}={list(getattr(self, name))}: give {count} numbers")
        if self.scale[1] > 1:
            raise UserError(f"recipe scale={list(self.scale)}: shares of the image, 1 at most")
        for name in ("scale", "ratio", "blur_sigma"):
            low, high = getattr(self, name)
            if not 0 < low <= high:
                raise UserError(f"recipe {name}=({low}, {high}): give 0 < low <= high")
        if not 0 <= self.style_strength[0] <= self.style_strength[1] <= 1:
            raise UserError(f"recipe style_strength={self.style_strength}: give 0 <= low <= high <= 1")
        if self.suppress is not None:
            suppressor(self.suppress, self.suppress_options)  # or an error that lists them
        if self.size < 1:
            raise UserError(f"recipe size={self.size}: must be at least 1 pixel")
        if min(self.jitter) < 0 or self.jitter[3] > 0.5:
            raise UserError(
                f"recipe jitter={self.jitter}: strengths are not negative, the hue is at most 0.5"
            )

    def with_color_jitter(self, on: bool) -> Recipe:
        """This recipe, or with on=False the same without colour jitter (greyscale stays)."""
        return self if on else replace(self, jitter_p=0.0)

    def scaled_blur(self, published_size: int = 224) -> Recipe:
        """The same recipe with the blur scaled to its size: as strong as published relative to the image."""
        low, high = self.blur_sigma
        factor = self.size / published_size
        return replace(self, blur_sigma=(low * factor, high * factor))

    def sample(
        self, rng: np.random.Generator, height: int, width: int, region: Region | None = None
    ) -> ViewParams:
        """Draw one view of a height×width image, its crop from a region of it.

        Always the same count of random numbers, whatever is drawn: a parameter of a later view never
        depends on which branch an earlier one took.
        """
        u: list[float] = rng.random(_DRAWS).tolist()
        blur_low, blur_high = self.blur_sigma
        # one number decides between suppression, blur and neither, so the policy costs no draw of its own
        p = self.suppress_p if self.suppress else 0.0
        suppress = self.suppress if u[10] < p else None
        blurred = not suppress and (u[10] - p) < self.blur_p * (1 - p)
        return ViewParams(
            crop=self.draw_crop(u, height, width, region),
            flip=u[2] < self.flip_p,
            jitter=draw_jitter(u[4:9], self.jitter) if u[3] < self.jitter_p else None,
            gray=u[9] < self.gray_p,
            blur=blur_low + u[11] * (blur_high - blur_low) if blurred else None,
            solarize=self.solarize_threshold if u[12] < self.solarize_p else None,
            rotation=90 * (1 + int(3 * u[14])) if u[13] < self.rotation_p else 0,
            style=self.draw_style(rng, dropped=self.one_change and suppress is not None)
            if self.style_p
            else None,
            own=tuple((name, _draw_own(name, rng)) for name in self.own) if self.own else (),
            suppress=draw_suppress(
                suppress, u[11], height, width, self.suppress_options, self.suppress_copies
            )
            if suppress
            else None,
            region=region,
        )

    def draw_crop(self, u: list[float], height: int, width: int, region: Region | None) -> Crop:
        """A random-resized crop of the image, or of a region of it."""
        if region is None:
            return draw_crop(u[_PICKS:], u[0], u[1], height, width, self.scale, self.ratio)
        if region.whole:
            return Crop(region.top, region.left, region.height, region.width)
        scale = self.scale if region.low is None else (min(region.low, self.scale[1]), self.scale[1])
        crop = draw_crop(u[_PICKS:], u[0], u[1], region.height, region.width, scale, self.ratio)
        return Crop(region.top + crop.top, region.left + crop.left, crop.height, crop.width)

    def draw_style(self, rng: np.random.Generator, dropped: bool = False) -> StyleDraw | None:
        """A style with probability style_p, from three uniform numbers; none where it is `dropped`."""
        applied, which, how = rng.random(3).tolist()
        low, high = self.style_strength
        draw = StyleDraw(int(which * self.style_count), low + how * (high - low))
        return draw if applied < self.style_p and not dropped else None


def _draw_own(name: str, rng: np.random.Generator) -> object:
    """From a generator of its own: however much it draws, the rest of the image's draws stay where they were."""
    draw = augmentation(name).draw
    seed = int(rng.integers(2**63))
    return draw(np.random.default_rng(seed)) if draw else None


def draw_crop(
    u: list[float], u_top: float, u_left: float, height: int, width: int, scale: Range, ratio: Range
) -> Crop:
    """A random-resized crop from uniform numbers: torchvision's law, 10 attempts and then the central crop."""
    area = height * width
    log_low, log_high = math.log(ratio[0]), math.log(ratio[1])
    for attempt in range(ATTEMPTS):
        target = area * (scale[0] + u[2 * attempt] * (scale[1] - scale[0]))
        aspect = math.exp(log_low + u[2 * attempt + 1] * (log_high - log_low))
        w = round(math.sqrt(target * aspect))
        h = round(math.sqrt(target / aspect))
        if 0 < w <= width and 0 < h <= height:
            return Crop(int(u_top * (height - h + 1)), int(u_left * (width - w + 1)), h, w)
    return central_crop(height, width, ratio)


def central_crop(height: int, width: int, ratio: Range) -> Crop:
    """The largest centred crop whose width / height lies within `ratio`."""
    h, w = height, width
    if width / height < ratio[0]:
        h = round(w / ratio[0])
    elif width / height > ratio[1]:
        w = round(h * ratio[1])
    return Crop((height - h) // 2, (width - w) // 2, h, w)


_ORDERS = {
    letters: tuple("".join(p) for p in permutations(letters))
    for letters in ("".join(c for c, keep in zip("bcsh", f"{n:04b}") if keep == "1") for n in range(16))
}


def draw_jitter(u: list[float], strengths: tuple[float, float, float, float]) -> Jitter:
    """Colour factors from five uniform numbers; the operations come in a random order."""
    factors = [max(0.0, 1 - s) + u[i] * (1 + s - max(0.0, 1 - s)) for i, s in enumerate(strengths[:3])]
    hue = strengths[3] * (2 * u[3] - 1)
    orders = _ORDERS["".join(c for c, s in zip("bcsh", strengths) if s > 0)]
    return Jitter(factors[0], factors[1], factors[2], hue, orders[int(u[4] * len(orders))])


_BYOL = Recipe(jitter=(0.4, 0.4, 0.2, 0.1), jitter_p=0.8, gray_p=0.2)

RECIPES: dict[str, Recipe] = {
    # He et al. 2020, MoCo-v2: crop, jitter, grey, blur, flip
    "moco-v2": Recipe(scale=(0.2, 1.0), jitter_p=0.8, gray_p=0.2, blur_p=0.5),
    # Chen et al. 2020, SimCLR with colour strength 1: crop, flip, jitter, grey, blur
    "simclr": Recipe(jitter=(0.8, 0.8, 0.8, 0.2), jitter_p=0.8, gray_p=0.2, blur_p=0.5),
    # Grill et al. 2020, BYOL, the two unequal views: crop, flip, jitter, grey, blur, solarise
    "byol-1": replace(_BYOL, blur_p=1.0),
    "byol-2": replace(_BYOL, blur_p=0.1, solarize_p=0.2),
    # the usual supervised training view: crop, flip
    "supervised": Recipe(),
    # Wu et al. 2018, instance discrimination: crop, grey, jitter (always), flip
    "insdis": Recipe(jitter=(0.4, 0.4, 0.4, 0.4), jitter_p=1.0, gray_p=0.2),
    # He et al. 2022, MAE: crop, flip
    "mae": Recipe(scale=(0.2, 1.0)),
    # Tian et al. 2020, CMC: crop, flip
    "cmc": Recipe(scale=(0.2, 1.0)),
    # Tian et al. 2020, InfoMin: crop, flip, jitter, blur, grey; RandAugment is added by the method
    "infomin": Recipe(scale=(0.2, 1.0), jitter=(0.8, 0.8, 0.8, 0.2), jitter_p=0.8, gray_p=0.2, blur_p=0.5),
    # Noroozi and Favaro 2016, Jigsaw: the central square of the image, grey now and then; the method cuts the tiles
    "puzzle": Recipe(scale=(1.0, 1.0), ratio=(1.0, 1.0), flip_p=0.0, gray_p=0.3),
    # tuning: crop, flip; its cue dials switch on what is changed, in one view of two
    "tune": Recipe(
        scale=(0.4, 1.0), jitter=(0, 0, 0, 0), jitter_p=0.8, style_strength=(0.4, 1.0), one_change=True
    ),
    # Isola et al. 2017, pix2pix: crop, flip
    "pix2pix": Recipe(scale=(0.5, 1.0)),
    # the image that InfoMin's jigsaw tiles are cut from: crop, flip
    "jigsaw": Recipe(scale=(0.6, 1.0)),
}
