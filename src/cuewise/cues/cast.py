"""A colour cast: another light on the same scene."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from cuewise.cues.cue import Cue, Drawn
from cuewise.cues.forms import Pixels
from cuewise.errors import unknown

# gains of red, green, blue at strength 1; the mean gain is 1, so that the brightness of grey stays
LIGHTS = {
    "warm": (1.4, 1.0, 0.6),
    "cold": (0.6, 1.0, 1.4),
    "green": (0.75, 1.5, 0.75),
    "magenta": (1.25, 0.5, 1.25),
}


def color_cast(image: Pixels, gains: NDArray[np.float64]) -> Pixels:
    """Each channel in linear light times its gain (von Kries), H×W×3 uint8."""
    linear = (np.arange(256) / 255) ** 2.2
    table = np.clip(gains[:, None] * linear, 0, 1) ** (1 / 2.2) * 255
    lookup = np.round(table).astype(np.uint8)
    return np.stack([lookup[c][image[..., c]] for c in range(3)], -1)


@dataclass(frozen=True)
class Cast(Cue):
    """See `color_cast`."""

    name = "cast"
    summary = "a colour cast, as of another light"
    citation = "von Kries gains"
    equation = "out = (gain · linear)^(1/2.2),   linear = value^2.2, one gain per channel"
    light: Annotated[str | None, "warm, cold, green or magenta [drawn]"] = None
    strength: Annotated[float, "0 is no cast"] = 1.0

    def __post_init__(self) -> None:
        if self.light is not None and self.light not in LIGHTS:
            raise unknown("cast: no light", self.light, LIGHTS)

    def draw(self, rng: np.random.Generator, height: int, width: int) -> Drawn:
        return {"light": self.light or str(rng.choice(sorted(LIGHTS)))}

    def render(self, image: Pixels, drawn: Drawn) -> Pixels:
        return color_cast(image, 1 + self.strength * (np.array(LIGHTS[drawn["light"]]) - 1))
