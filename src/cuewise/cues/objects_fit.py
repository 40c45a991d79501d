"""Training of the proposals' template from images with boxes: a linear classifier, then one calibration per window size."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from cuewise.cues.forms import Pixels
from cuewise.cues.objects import SIDES, Corners, Size, Template, intersection_over_union, maxima
from cuewise.cues.objects_kernel import PAD, SIDE, normed_gradients
from cuewise.errors import UserError

Floats64 = NDArray[np.float64]
NEGATIVES = 50  # random windows per image
LEAST = 30  # windows that cover an object, for a size to be used


def fit(images: Sequence[Pixels], boxes: Sequence[Corners], rng: np.random.Generator) -> Template:
    """A template from images (uint8 H×W×3) and their objects' boxes (N×4: xmin, ymin, xmax, ymax).

    Positives: every box in every window size that overlaps it by IoU > 0.5, and its mirror image. Negatives: random windows with
    IoU < 0.5 to every box.
    """
    if not sum(map(len, boxes)):
        raise UserError("objects: no boxes to fit a template on; give images with annotated objects")
    examples: list[tuple[Floats64, float]] = []
    for image, truth in zip(images, boxes):
        examples += _examples(image, np.asarray(truth, np.float64).reshape(-1, 4), rng)
    windows, labels = zip(*examples)
    weights, _ = logistic(np.stack(windows).reshape(len(windows), -1), np.array(labels))
    square = weights.reshape(SIDE, SIDE)
    template = ((square + square[:, ::-1]) / 2).astype(np.float32)  # a mirrored image has mirrored boxes
    return Template(template, calibrate(images, boxes, template))


def calibrate(
    images: Sequence[Pixels], boxes: Sequence[Corners], template: NDArray[np.float32]
) -> dict[Size, tuple[float, float]]:
    """(v, t) for each window size that covers enough objects."""
    found: dict[Size, tuple[float, float]] = {}
    for size in ((w, h) for w in SIDES for h in SIDES):
        scores, hits = [], []
        for image, truth in zip(images, boxes):
            windows = maxima(image, size, template)
            if windows is None:
                continue
            at, values = windows
            scores.append(values)
            hit = intersection_over_union(at, truth).max(1) >= 0.5 if len(truth) else np.zeros(len(at), bool)
            hits.append(hit)
        if not scores:
            continue
        s, y = np.concatenate(scores).astype(np.float64), np.concatenate(hits).astype(np.float64)
        if y.sum() >= LEAST:
            v, t = logistic(s[:, None], y)
            found[size] = (float(v[0]), t)
    if not found:
        raise UserError(f"objects: no window size covers {LEAST} objects; give more images with boxes")
    return found


def logistic(x: Floats64, y: Floats64, penalty: float = 1e-3) -> tuple[Floats64, float]:
    """Weights and bias of a logistic regression by Newton's method; features are scaled by one common factor inside.  x  N×D"""
    scale = max(float(x.std()), 1e-9)
    design = np.concatenate([x / scale, np.ones((len(x), 1))], 1)
    ridge = np.diag([penalty * len(x)] * x.shape[1] + [0.0])
    w = np.zeros(design.shape[1])
    mean = min(max(float(y.mean()), 1e-9), 1 - 1e-9)
    w[-1] = np.log(mean / (1 - mean))
    for _ in range(25):
        p = 1 / (1 + np.exp(-np.clip(design @ w, -30, 30)))
        gradient = design.T @ (p - y) + ridge @ w
        curvature = (design * (p * (1 - p))[:, None]).T @ design + ridge + 1e-9 * np.eye(len(w))
        step = np.linalg.solve(curvature, gradient)
        w = w - step
        if np.abs(step).max() < 1e-8:
            break
    return w[:-1] / scale, float(w[-1])


def _examples(image: Pixels, truth: Floats64, rng: np.random.Generator) -> list[tuple[Floats64, float]]:
    height, width = image.shape[:2]
    found: list[tuple[Floats64, float]] = []
    for box in truth:
        if box[2] - box[0] < SIDE or box[3] - box[1] < SIDE:
            continue
        window = _window(image, box)
        found += [(window, 1.0), (window[:, ::-1], 1.0)]
    sides = np.array(SIDES)
    for _ in range(NEGATIVES):
        w, h = (int(min(rng.choice(sides), n)) for n in (width, height))
        x, y = int(rng.integers(width - w + 1)), int(rng.integers(height - h + 1))
        box = np.array([x, y, x + w, y + h], np.float64)
        if not len(truth) or intersection_over_union(box[None], truth).max() < 0.5:
            found.append((_window(image, box), 0.0))
    return found


def _window(image: Pixels, box: Floats64) -> Floats64:
    """The 8×8 normed gradients of a window: those of the window itself, so that its edges count."""
    height, width = image.shape[:2]
    w, h = box[2] - box[0], box[3] - box[1]
    # one cell more on every side, so that central differences at the window's edge see what is beside it
    x0, y0, x1, y1 = box[0] - w / SIDE, box[1] - h / SIDE, box[2] + w / SIDE, box[3] + h / SIDE
    side = SIDE + 2
    across = (np.arange(side) + 0.5) * (x1 - x0) / side + x0 - 0.5
    down = (np.arange(side) + 0.5) * (y1 - y0) / side + y0 - 0.5
    xs, ys = np.meshgrid(np.clip(across, 0, width - 1), np.clip(down, 0, height - 1))
    small = cv2.remap(image, xs.astype(np.float32), ys.astype(np.float32), cv2.INTER_LINEAR)
    out = np.empty((side, side + PAD), np.float32)
    normed_gradients(np.asarray(small, np.uint8), out)
    return out[1:-1, 1 : SIDE + 1].astype(np.float64)
