"""Texture randomisation as a view operation: the style that was drawn is a parameter of the view, and can be copied."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cuewise.cues.stylize import StyleDraw, Stylizer
from cuewise.errors import UserError

Pixels = NDArray[np.uint8]
AT_HAND = 64  # styles a worker keeps ready; with more, most views would wait for a style to be prepared


@dataclass(frozen=True)
class Styles:
    """Where styles come from: a folder of style images, copies made beforehand, or drawn styles where both are None.

    copies  a folder made by `cuewise make stylized`, found by each image's name
    count   how many styles a view chooses from; None: all copies, or AT_HAND where styles are applied on the fly
    """

    styles: str | None = None
    copies: str | None = None
    count: int | None = None

    def __post_init__(self) -> None:
        if self.styles and self.copies:
            raise UserError("views.styles and views.style_copies exclude each other: give one folder")
        if self.count is not None and not 1 <= self.count <= len(self.stylizer):
            raise UserError(f"views.style_count {self.count}: there are {len(self.stylizer)} styles")

    @cached_property
    def stylizer(self) -> Stylizer:
        return Stylizer(self.styles, precomputed=self.copies)

    def __len__(self) -> int:
        """How many styles a draw chooses from."""
        return self.count or (len(self.stylizer) if self.copies else min(AT_HAND, len(self.stylizer)))

    def before_the_crop(self, image: Pixels, draw: StyleDraw | None, name: str) -> Pixels:
        """The copy of the whole image, where copies were made; otherwise the image."""
        if draw is None or self.copies is None:
            return image
        return self.stylizer.apply(image, draw, name)

    def after_the_crop(self, view: Pixels, draw: StyleDraw | None) -> Pixels:
        """The view in the drawn style, where styles are applied on the fly: a crop costs less than the whole image."""
        if draw is None or self.copies is not None:
            return view
        return self.stylizer.apply(view, draw)


DRAWN = Styles()
