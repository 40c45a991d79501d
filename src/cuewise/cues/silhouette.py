"""Silhouette: the main object as a black shape on white; no inside, no background.

Best effort without a trained segmenter: saliency by colour contrast to the border and a centre prior, then GrabCut
(Rother, Kolmogorov & Blake 2004). It fails on cluttered scenes, on objects that touch the border all around or have the
background's colours; a mask from a segmentation model, where there is one, is better: pass it to `fill`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import cv2
import numpy as np
from numpy.typing import NDArray

from cuewise.cues.cue import Cue, Drawn
from cuewise.cues.forms import Pixels, any_form
from cuewise.cues.levels import Array, as_colour, from_levels, to_bytes
from cuewise.errors import UserError

Mask = NDArray[np.bool_]


@any_form()
def silhouette(image: Array, *, rounds: int = 4, seed: int = 0) -> Array:
    """Black where `foreground` finds the main object, white elsewhere; H×W×3, uint8 or float in [0, 1]."""
    return fill(image, foreground(to_bytes(as_colour(image)), rounds=rounds, seed=seed))


def fill(image: Array, mask: Mask) -> Array:
    """Black on white in the image's shape and dtype, black where the H×W mask is true."""
    if mask.shape != image.shape[:2]:
        raise UserError(
            f"silhouette: the mask is {mask.shape} but the image is {image.shape[:2]}; resize the mask"
        )
    white = np.where(mask[..., None], np.float32(0), np.float32(255))
    return from_levels(np.repeat(white, 3, -1), image)


def foreground(image: Pixels, *, rounds: int = 4, seed: int = 0) -> Mask:
    """H×W mask of the main object: GrabCut from the first of three starts that ends in a plausible area.

    The starts: all but a margin; what is salient or central; what is salient. If none will do, the salient part itself.
    """
    height, width = image.shape[:2]
    salient = saliency(image)
    level, _ = cv2.threshold((255 * salient).astype(np.uint8), 0, 255, cv2.THRESH_BINARY + cv2.THRESH_OTSU)
    seen = salient > level / 255
    framed = np.zeros((height, width), bool)
    framed[height // 12 : -(height // 12) or None, width // 12 : -(width // 12) or None] = True
    central = (seen | _ellipse(height, width, 0.35)) & _ellipse(height, width, 0.9)
    for start in (framed, central, seen):
        mask = grab_cut(np.ascontiguousarray(image), start, rounds, seed)
        if 0.04 < mask.mean() < 0.85:
            return mask
    mask = tidy(seen)
    return mask if 0.01 < mask.mean() < 0.95 else _ellipse(height, width, 0.7)


def grab_cut(image: Pixels, start: Mask, rounds: int, seed: int) -> Mask:
    """GrabCut where `start` is probably the object and the rim surely is not; nothing where it cannot be fitted."""
    labels = np.where(start, cv2.GC_PR_FGD, cv2.GC_PR_BGD).astype(np.uint8)
    rim = max(1, min(start.shape) // 30)
    labels[:rim], labels[-rim:], labels[:, :rim], labels[:, -rim:] = (cv2.GC_BGD,) * 4
    models = np.zeros((1, 65)), np.zeros((1, 65))
    try:
        cv2.setRNGSeed(seed)  # GrabCut's k-means draws from this thread's OpenCV generator
        cv2.grabCut(image, labels, (0, 0, 1, 1), *models, rounds, cv2.GC_INIT_WITH_MASK)
    except cv2.error:  # too few pixels of one kind for its colour models
        return np.zeros(start.shape, bool)
    return tidy(np.isin(labels, (cv2.GC_FGD, cv2.GC_PR_FGD)))


def saliency(image: Pixels) -> NDArray[np.float32]:
    """H×W in [0, 1]: distance in Lab to the nearest of the border's main colours, times a wide centred Gaussian."""
    height, width = image.shape[:2]
    lab = cv2.cvtColor(cv2.GaussianBlur(image, (0, 0), max(0.5, min(height, width) / 100)), cv2.COLOR_RGB2LAB)
    lab = np.asarray(lab, np.float32)
    border = np.concatenate([lab[0], lab[-1], lab[:, 0], lab[:, -1]])
    order = np.argsort(border @ np.array([1.0, 0.5, 0.25], np.float32), kind="stable")
    palette = np.stack([part.mean(0) for part in np.array_split(border[order], 6)])
    distance = np.sqrt(((lab[:, :, None] - palette) ** 2).sum(-1)).min(-1)
    y, x = np.linspace(-1, 1, height)[:, None], np.linspace(-1, 1, width)[None]
    prior = np.exp(-(y**2 + x**2) / (2 * 0.6**2))
    salient = distance * prior
    return np.asarray(salient / max(float(salient.max()), 1e-6), np.float32)


def tidy(mask: Mask) -> Mask:
    """The largest connected part without holes, its outline smoothed."""
    count, parts, stats, _ = cv2.connectedComponentsWithStats(mask.astype(np.uint8))
    if count < 2:
        return mask
    largest = (parts == 1 + int(np.argmax(stats[1:, cv2.CC_STAT_AREA]))).astype(np.uint8)
    outlines, _ = cv2.findContours(largest, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    cv2.drawContours(largest, outlines, -1, 1, cv2.FILLED)
    return np.asarray(cv2.medianBlur(largest, 3 if min(mask.shape) < 100 else 5) > 0)


def _ellipse(height: int, width: int, radius: float) -> Mask:
    y, x = np.linspace(-1, 1, height)[:, None], np.linspace(-1, 1, width)[None]
    return np.asarray(y**2 + x**2 < radius**2)


@dataclass(frozen=True)
class Silhouette(Cue):
    """See `silhouette`."""

    name = "silhouette"
    summary = "keep the main object's outer shape, black on white (best effort)"
    citation = "GrabCut: Rother, Kolmogorov and Blake 2004"
    rounds: Annotated[int, "of GrabCut"] = 4

    def draw(self, rng: np.random.Generator, height: int, width: int) -> Drawn:
        return {"seed": int(rng.integers(2**31))}

    def render(self, image: Pixels, drawn: Drawn) -> Pixels:
        return silhouette(image, rounds=self.rounds, seed=drawn["seed"])
