"""A cue operator: draws its parameters from a generator, then renders an image with them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np

from cuewise.cues.forms import Form, Pixels, on_pixels
from cuewise.errors import unknown

Drawn = Mapping[str, Any]  # plain values by name, ready for JSON


@dataclass(frozen=True)
class Cue(ABC):
    """An image → image operator that keeps some cues and removes others. A subclass is a frozen dataclass:

        @dataclass(frozen=True)
        class Gaussian(Cue):
            name = "gaussian"
            summary = "blur texture and edges alike"
            sigma: Annotated[float | None, "width in pixels [drawn]"] = None

            def draw(self, rng, height, width):
                return {"sigma": self.sigma or rng.uniform(0.1, 2.0)}

            def render(self, image, drawn):
                return gaussian_blur(image, sigma=drawn["sigma"])

    Its fields are its options. All random numbers come from `draw`; `render` is a function of its arguments.
    """

    name: ClassVar[str]
    summary: ClassVar[str]  # one line, for lists
    citation: ClassVar[str] = ""
    equation: ClassVar[str] = ""  # in plain text
    # a filter against texture that keeps the layout: `--suppress` takes it
    suppresses: ClassVar[bool] = False
    moves: ClassVar[bool] = False  # content changes its place: boxes and masks of the image no longer fit
    # `render` is given H×W×3 only; if false, H×W and other channel counts too
    colour_only: ClassVar[bool] = True

    def draw(self, rng: np.random.Generator, height: int, width: int) -> Drawn:
        """What is random about the result, for an image of that size; nothing by default."""
        return {}

    @abstractmethod
    def render(self, image: Pixels, drawn: Drawn) -> Pixels:
        """The image (uint8, H×W×3) under what was drawn, as a new array of the same shape."""

    def draw_view(self, u: float, height: int, width: int) -> Drawn:
        """What a training view draws, from one uniform number u in [0, 1)."""
        return self.draw(np.random.default_rng(int(u * 2**53)), height, width)

    def __call__(self, image: Form, rng: np.random.Generator, **options: Any) -> Form:
        """Draw and render an image of any form (see `forms.on_pixels`); options replace those of this cue."""
        cue = self.having(**options) if options else self
        return on_pixels(image, lambda pixels: cue.rendered(pixels, rng)[0], colour_only=self.colour_only)

    def rendered(self, image: Pixels, rng: np.random.Generator) -> tuple[Pixels, Drawn]:
        """The rendered image and what was drawn for it."""
        drawn = self.draw(rng, image.shape[0], image.shape[1])
        return self.render(image, drawn), drawn

    def having(self, **options: Any) -> Self:
        """This cue with other options, or an error that lists the options there are."""
        for name in options:
            if name not in self.settings:
                raise unknown(f"{self.name}: no setting", name, self.settings)
        return replace(self, **options)

    @property
    def settings(self) -> dict[str, Any]:
        """Options by name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}
