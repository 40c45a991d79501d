"""A clue: a few numbers per image that hold one cue and nothing else."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image as Pillow

from cuewise.data import Image, Sample
from cuewise.registry import Registry, subclasses_of

Numbers = NDArray[np.float32]
Grey = NDArray[np.float32]
SIDE = 64  # small copies are at most this large; every clue but those of the file looks at one


@dataclass(frozen=True)
class Look:
    """An image as clues see it: the sample, its encoded bytes where there are any, and small copies made once."""

    sample: Sample
    content: Callable[[], bytes | None]

    @cached_property
    def small(self) -> Image:
        """SIDE×SIDE×3, whatever the proportions were: size and aspect are clues of their own."""
        return self.resized(SIDE)

    @cached_property
    def grey(self) -> Grey:
        """SIDE×SIDE luminance, 0 to 255."""
        weights = np.array([0.299, 0.587, 0.114], np.float32)
        return np.asarray(self.small @ weights, np.float32)

    def resized(self, side: int) -> Image:
        """side×side×3, every pixel the mean of its area."""
        image = self.sample.image
        if image.shape[:2] == (side, side):
            return image
        return np.asarray(Pillow.fromarray(image).resize((side, side), Pillow.Resampling.BOX))


class Clue(ABC):
    """One cue alone. A clue that an image does not have (no boxes, no file) is None."""

    name: ClassVar[str]
    summary: ClassVar[str]  # one line, for lists
    subject: ClassVar[str]  # begins the sentence "… alone predicts the class of 71 % of the images"
    shortcut: ClassVar[bool] = True  # nobody would want a model to answer by this cue
    needs: ClassVar[str] = ""  # what a set may lack for it, and what to do then

    @abstractmethod
    def numbers(self, look: Look) -> Numbers | None:
        """The same number of values for every image of a set."""

    def picture(self, look: Look) -> Image | None:
        """What is left of the image, where that can be drawn."""
        return None


CLUES: Registry[type[Clue]] = Registry(
    kind="clue", package="cuewise.inspection.clues", is_member=subclasses_of(Clue)
)
