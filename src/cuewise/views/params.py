"""What was drawn for one view: plain frozen values that can be stored, copied between views and re-applied."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from cuewise.cues.stylize import StyleDraw
from cuewise.errors import UserError


@dataclass(frozen=True, slots=True)
class Crop:
    """A rectangle of the source image, in pixels."""

    top: int
    left: int
    height: int
    width: int


@dataclass(frozen=True, slots=True)
class Region(Crop):
    """A rectangle of the source image that a crop is taken from, e.g. the box of an object.

    low    least share of the region that the crop has; None: the recipe's
    whole  the crop is the region itself
    """

    low: float | None = None
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Jitter:
    """Colour factors; `order` names the operations that are applied, first to last.

    brightness, contrast, saturation: 1 changes nothing; hue: in [-0.5, 0.5], a turn of the colour circle.
    order: letters of "bcsh". A letter left out is an operation left out. That is not the same as a hue of 0,
    because the way through 8-bit HSV and back rounds.
    """

    brightness: float = 1.0
    contrast: float = 1.0
    saturation: float = 1.0
    hue: float = 0.0
    order: str = "bcsh"

    def __post_init__(self) -> None:
        if len(set(self.order)) != len(self.order) or not set(self.order) <= set("bcsh"):
            raise UserError(f"jitter order {self.order!r}: use each of the letters b, c, s, h at most once")
        if not -0.5 <= self.hue <= 0.5:
            raise UserError(f"jitter hue {self.hue}: must be between -0.5 and 0.5")


@dataclass(frozen=True, slots=True)
class Suppress:
    """A filter against texture and what was drawn for it, e.g. the steps of a diffusion."""

    kind: str
    drawn: tuple[tuple[str, Any], ...] = ()
    options: tuple[tuple[str, Any], ...] = ()  # of the filter, as they were asked for


@dataclass(frozen=True, slots=True)
class ViewParams:
    """One view of an image, applied in the order of the fields (a style and the user's own after the flip).

    The flip commutes to the bit with all that follows it but the rotation, so recipes that publish it last
    (MoCo-v2) give the same pixels.
    """

    crop: Crop
    flip: bool = False
    jitter: Jitter | None = None
    gray: bool = False
    blur: float | None = None  # standard deviation in output pixels
    solarize: int | None = None  # values from this threshold on are inverted
    rotation: int = 0  # degrees counter-clockwise: 0, 90, 180 or 270
    style: StyleDraw | None = None  # which style, and how much of it
    own: tuple[tuple[str, Any], ...] = ()  # what the user's augmentations drew, by name
    suppress: Suppress | None = None  # of the whole image, before the crop
    region: Region | None = None  # what the crop was taken from; None: the whole image

    def __post_init__(self) -> None:
        if self.rotation not in (0, 90, 180, 270):
            raise UserError(f"rotation {self.rotation}: must be 0, 90, 180 or 270 degrees")
        if self.blur is not None and not self.blur >= 0:
            raise UserError(f"blur {self.blur}: the standard deviation must not be negative")

    def to_dict(self) -> dict[str, Any]:
        """Plain dicts, strings and numbers, ready for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> ViewParams:
        """The inverse of `to_dict`."""
        plain = dict(values)
        for name, kind in (("crop", Crop), ("jitter", Jitter), ("style", StyleDraw), ("region", Region)):
            if plain.get(name) is not None:
                plain[name] = kind(**plain[name])
        if (found := plain.get("suppress")) is not None:
            plain["suppress"] = Suppress(found["kind"], _pairs(found["drawn"]), _pairs(found["options"]))
        plain["own"] = _pairs(plain.get("own", ()))
        return cls(**plain)


def _pairs(values: Iterable[Sequence[Any]]) -> tuple[tuple[str, Any], ...]:
    return tuple((name, tuple(value) if isinstance(value, list) else value) for name, value in values)
