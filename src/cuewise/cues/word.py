"""A word pasted on the image: does a model read instead of look?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated

import cv2
import numpy as np

from cuewise.cues.cue import Cue, Drawn
from cuewise.cues.forms import Pixels
from cuewise.errors import UserError

WORDS = ("apple", "piano", "river", "seven", "lemon", "tiger", "cloud", "paper")
FONT = cv2.FONT_HERSHEY_DUPLEX


def paste_word(image: Pixels, text: str, share: float, at: float) -> Pixels:
    """Black letters on a white label `share` of the image's width wide, its centre at `at` of the height; H×W×3 uint8."""
    height, width = image.shape[:2]
    label = _label(text, max(1, round(share * width)), height)
    rows, columns = label.shape
    top = int(np.clip(round(at * height - rows / 2), 0, height - rows))
    left = (width - columns) // 2
    out = image.copy()
    out[top : top + rows, left : left + columns] = label[..., None]
    return out


@lru_cache(maxsize=256)
def _label(text: str, width: int, most: int) -> Pixels:
    """The word, drawn large and made small, at most a third as high as the image."""
    (columns, rows), base = cv2.getTextSize(text, FONT, 2.0, 4)
    margin = rows // 3
    drawn = np.full((rows + base + 2 * margin, columns + 2 * margin), 255, np.uint8)
    cv2.putText(drawn, text, (margin, margin + rows), FONT, 2.0, 0, 4, cv2.LINE_AA)
    high = min(max(1, round(drawn.shape[0] * width / drawn.shape[1])), max(1, most // 3))
    return np.asarray(cv2.resize(drawn, (width, high), interpolation=cv2.INTER_AREA), np.uint8)


@dataclass(frozen=True)
class Word(Cue):
    """See `paste_word`."""

    name = "word"
    summary = "paste a word on the image (typographic attack)"
    citation = "Goh et al. 2021 (typographic attacks)"
    text: Annotated[str, "the word [drawn from eight common ones]"] = ""
    share: Annotated[float, "width of the label relative to the image"] = 0.6

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise UserError(f"word: share {self.share} is not between 0 and 1")
        if not self.text.isascii() or not self.text.isprintable():
            raise UserError(f"word: {self.text!r} cannot be drawn; use letters, digits and spaces of ASCII")

    def draw(self, rng: np.random.Generator, height: int, width: int) -> Drawn:
        text = self.text or str(rng.choice(WORDS))
        return {"text": text, "at": float(rng.choice([0.2, 0.8]))}  # above or below the middle

    def render(self, image: Pixels, drawn: Drawn) -> Pixels:
        return paste_word(image, drawn["text"], self.share, drawn["at"])
