"""Object proposals: boxes that may hold an object, whatever its class, from the gradients of shrunken windows (BING).

M.-M. Cheng, Z. Zhang, W.-Y. Lin, P. Torr, "BING: Binarized Normed Gradients for Objectness Estimation at 300fps", CVPR 2014,
without the binary approximation: the exact template is fast enough here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from cuewise.cues.forms import Pixels
from cuewise.cues.objects_kernel import PAD, SIDE, local_maxima, normed_gradients, suppress, template_scores
from cuewise.errors import UserError

Floats = NDArray[np.float32]
Corners = NDArray[np.int32]  # N×4: xmin, ymin, xmax, ymax; the far edges are outside
Size = tuple[int, int]  # width, height of a window

SIDES = (10, 20, 40, 80, 160, 320)
RADIUS = 2  # of local maxima, in cells of the shrunken image
CANDIDATES = 4000  # best windows that enter the overlap suppression


@dataclass(frozen=True)
class Template:
    """What is learned: an 8×8 linear template, and for each window size the (v, t) that make scores comparable.

    v·s + t is the log-odds that a window of that size with score s covers an object. A size without an entry is not used.
    """

    weights: Floats  # 8×8
    sizes: Mapping[Size, tuple[float, float]]

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers, ready for JSON."""
        sizes = [[w, h, v, t] for (w, h), (v, t) in self.sizes.items()]
        return {"weights": self.weights.tolist(), "sizes": sizes}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Template:
        """The inverse of `to_dict`."""
        weights = np.asarray(values["weights"], np.float32)
        if weights.shape != (SIDE, SIDE):
            raise UserError(f"objects: a template is {SIDE}×{SIDE}, but this one is {weights.shape}")
        return cls(weights, {(int(w), int(h)): (float(v), float(t)) for w, h, v, t in values["sizes"]})


@dataclass(frozen=True)
class Proposals:
    """Boxes, best first, with the log-odds that each covers an object."""

    corners: Corners  # N×4
    scores: Floats  # N


def propose(
    image: Pixels,
    *,
    k: int = 50,
    area: tuple[float, float] = (0.02, 0.40),
    overlap: float = 0.5,
    template: Template | None = None,
) -> Proposals:
    """At most k boxes of a uint8 image H×W×3 or H×W, best first.

    area: bounds on a box, as shares of the image; without them the best boxes are nearly the whole scene. overlap: a box that
    shares more than this (intersection over union) with a better one is left out; 1 keeps all.
    """
    pixels = _checked(image)
    if not (0 <= area[0] < area[1] <= 1 and 0 < overlap <= 1 and k > 0):
        raise UserError(
            f"objects: k {k} must be above 0, area {area} two rising shares, overlap {overlap} in (0, 1]"
        )
    boxes, scores = windows(pixels, template or default_template())
    sides = (boxes[:, 2:] - boxes[:, :2]).astype(np.int64)
    shares = sides.prod(1) / (pixels.shape[0] * pixels.shape[1])
    inside = np.flatnonzero((shares >= area[0]) & (shares <= area[1]))
    most = max(CANDIDATES, k)
    if len(inside) > most:
        inside = inside[np.argpartition(-scores[inside], most)[:most]]
    order = inside[np.argsort(-scores[inside], kind="stable")]
    kept = order[suppress(boxes[order], np.float64(overlap), k)]
    return Proposals(boxes[kept], scores[kept])


def windows(image: Pixels, template: Template) -> tuple[Corners, Floats]:
    """All windows that are local maxima at their size, with calibrated scores, in no order."""
    boxes, scores = [np.zeros((0, 4), np.int32)], [np.zeros(0, np.float32)]
    for size, (v, t) in template.sizes.items():
        found = maxima(image, size, template.weights)
        if found is not None:
            boxes.append(found[0])
            scores.append(np.float32(v) * found[1] + np.float32(t))
    return np.concatenate(boxes), np.concatenate(scores)


def maxima(image: Pixels, size: Size, weights: Floats) -> tuple[Corners, Floats] | None:
    """Windows of that size that are local maxima, with the template's scores; None where the window does not fit."""
    gradients = shrunken_gradients(image, size)
    if gradients is None:
        return None
    scores = template_scores(gradients, gradients.shape[1] - PAD, weights)
    places = local_maxima(scores, RADIUS)
    boxes = boxes_of(places, image.shape[1], image.shape[0], gradients.shape)
    return boxes, scores[places[:, 0], places[:, 1]]


def boxes_of(places: Any, width: int, height: int, shape: tuple[int, ...]) -> Corners:
    """Boxes in the image for places (y, x) of the template in the shrunken image."""
    across, down = width / (shape[1] - PAD), height / shape[0]
    left, top = np.rint(places[:, 1] * across), np.rint(places[:, 0] * down)
    right = np.minimum(left + np.rint(SIDE * across), width)
    bottom = np.minimum(top + np.rint(SIDE * down), height)
    return np.stack([left, top, right, bottom], -1).astype(np.int32)


def shrunken_gradients(image: Pixels, size: Size) -> Floats | None:
    """Normed gradients of the image shrunk so that a window of that size is 8×8; None where the window does not fit.

    A window larger than the image in one direction covers all of it there.
    """
    height, width = image.shape[:2]
    if size[0] > 2 * width or size[1] > 2 * height:
        return None
    columns, rows = (max(SIDE, round(n * SIDE / s)) for n, s in ((width, size[0]), (height, size[1])))
    small = np.asarray(cv2.resize(image, (columns, rows), interpolation=cv2.INTER_LINEAR), np.uint8)
    out = np.empty((rows, columns + PAD), np.float32)
    normed_gradients(small, out)
    return out


def default_template() -> Template:
    """The template that comes with cuewise; see `objects_template`."""
    from cuewise.cues.objects_template import TEMPLATE

    return TEMPLATE


def intersection_over_union(boxes: Any, others: Any) -> NDArray[np.float64]:
    """N×M for boxes N×4 and M×4."""
    a, b = np.asarray(boxes, np.float64)[:, None], np.asarray(others, np.float64)[None]
    side = np.minimum(a[..., 2:], b[..., 2:]) - np.maximum(a[..., :2], b[..., :2])
    both = side.clip(min=0).prod(-1)
    union = (a[..., 2:] - a[..., :2]).prod(-1) + (b[..., 2:] - b[..., :2]).prod(-1) - both
    return np.asarray(both / np.maximum(union, 1e-9))


def recall(found: Iterable[Corners], wanted: Iterable[Corners], k: int, least: float = 0.5) -> float:
    """Share of the wanted boxes that one of the first k found in the same image covers with IoU of at least `least`."""
    hits = total = 0
    for boxes, truth in zip(found, wanted):
        total += len(truth)
        if len(truth) and len(boxes):
            hits += int((intersection_over_union(boxes[:k], truth).max(0) >= least).sum())
    return hits / max(total, 1)


def _checked(image: Pixels) -> Pixels:
    if image.dtype != np.uint8 or image.ndim not in (2, 3) or min(image.shape[:2]) < SIDE:
        raise UserError(
            f"objects: an image is uint8 H×W×3 or H×W from 8 pixels, but this one is {image.dtype} {image.shape}"
        )
    if image.ndim == 2 or image.shape[2] == 1:
        return np.ascontiguousarray(np.repeat(image.reshape(*image.shape[:2], 1), 3, -1))
    return np.ascontiguousarray(image[..., :3])
