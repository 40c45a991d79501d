"""One corruption of ImageNet-C as a cue operator; see `cuewise.cues.corruptions`."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from cuewise.cues.corruptions import corrupt
from cuewise.cues.cue import Cue, Drawn
from cuewise.cues.forms import Pixels


@dataclass(frozen=True)
class Corrupted(Cue):
    """See `corrupt`. A corruption draws as many numbers as there are pixels: the state of the generator stands for them."""

    name = "corrupted"
    summary = "one of the ImageNet-C corruptions at severity 1 to 5"
    citation = "Hendrycks and Dietterich 2019"
    colour_only = False
    corruption: Annotated[str, "its name, e.g. fog"] = "gaussian_noise"
    severity: Annotated[int, "1 to 5"] = 3
    scale_to_image: Annotated[bool, "radii are of 224 px; multiply them by side/224"] = False

    def draw(self, rng: np.random.Generator, height: int, width: int) -> Drawn:
        state = deepcopy(rng.bit_generator.state)
        bits: Any = rng.bit_generator
        bits.state = bits.jumped().state  # whatever the caller draws next is independent
        return {"state": state}

    def render(self, image: Pixels, drawn: Drawn) -> Pixels:
        rng = np.random.Generator(getattr(np.random, drawn["state"]["bit_generator"])())
        rng.bit_generator.state = drawn["state"]
        return corrupt(image, self.corruption, self.severity, rng, scale_to_image=self.scale_to_image)
