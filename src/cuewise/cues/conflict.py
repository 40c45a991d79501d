"""Cue-conflict images: the shape of one picture, the texture of another, for the user's own classes.

The texture source is quilted into a sheet whose blocks are chosen so that their brightness follows the content image; then the
sheet's own large-scale brightness gives way to an edge-preserving smooth copy of the content's. What is fine is the texture's,
what is large is the content's. After the stimuli of R. Geirhos et al., "ImageNet-trained CNNs are biased towards texture ...",
ICLR 2019, which are made with a network; names are theirs: `<shape><i>-<texture><j>.png`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from cuewise.cues.edges import sketch
from cuewise.cues.quilt_kernel import quilt
from cuewise.cues.style_statistics import cover
from cuewise.errors import UserError

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]

CANDIDATES = 160
SMALLEST = 16
SPREAD = 1.2  # of the brightness that the content brings, in spreads of the texture
LUMA = np.array([0.299, 0.587, 0.114], np.float32)


@dataclass(frozen=True)
class Pair:
    """One stimulus to make: which image of which class gives the shape, and which the texture."""

    shape: str
    shape_index: int
    texture: str
    texture_index: int

    @property
    def name(self) -> str:
        """File name; the numbers count from 1, as in the published stimuli."""
        return f"{self.shape}{self.shape_index + 1}-{self.texture}{self.texture_index + 1}.png"


def pairs(classes: Mapping[str, int], n: int, seed: int) -> list[Pair]:
    """n distinct stimuli with shape ≠ texture, balanced over the ordered pairs of classes.

    classes: how many images each has. Every pair of classes occurs ⌊n/m⌋ or ⌈n/m⌉ times, m = C(C − 1), and every class
    about equally often on either side; within a pair, images are used in turn, in an order that the seed gives.
    """
    names = [name for name, count in classes.items() if count > 0]
    if len(names) < 2:
        raise UserError("cue conflict: two or more classes with images are needed, to give shape and texture")
    most = sum(classes[a] * classes[b] for a, b in itertools.permutations(names, 2))
    if n > most:
        raise UserError(
            f"cue conflict: {n} stimuli were asked for, but these images give only {most}; ask for fewer"
        )
    rng = np.random.default_rng(seed)
    order = _class_pairs(names, rng)
    stacks = {pair: _image_pairs(classes[pair[0]], classes[pair[1]], rng) for pair in order}
    found: list[Pair] = []
    for a, b in itertools.cycle(order):
        if len(found) == n:
            return found
        if stacks[a, b]:
            i, j = stacks[a, b].pop()
            found.append(Pair(a, i, b, j))
    return found


def _class_pairs(names: list[str], rng: np.random.Generator) -> list[tuple[str, str]]:
    """All ordered pairs: rounds in which each class is shape once and texture once, rounds in random order."""
    shuffled = [names[i] for i in rng.permutation(len(names))]
    shifts = rng.permutation(np.arange(1, len(names)))
    return [(a, shuffled[(i + int(s)) % len(names)]) for s in shifts for i, a in enumerate(shuffled)]


def _image_pairs(shapes: int, textures: int, rng: np.random.Generator) -> list[tuple[int, int]]:
    """All (i, j), ordered so that both images change from one to the next for as long as possible."""
    rows, columns = rng.permutation(shapes), rng.permutation(textures)
    grid = [(k % shapes, (k + k // np.lcm(shapes, textures)) % textures) for k in range(shapes * textures)]
    return [(int(rows[i]), int(columns[j])) for i, j in reversed(grid)]


def conflict(
    content: Bytes,
    texture: Bytes,
    rng: np.random.Generator,
    *,
    shape: float = 0.9,
    block: float = 1 / 4,
    focus: float = 0.8,
    lines: float = 1 / 3,
    mask: NDArray[np.bool_] | None = None,
    method: Callable[[Bytes, Bytes, float], Bytes] | None = None,
) -> Bytes:
    """The content's shape in the other image's texture (both uint8, H×W×3); returns the content's size.

    shape: how much of the large-scale brightness is the content's (0 a bare sheet of texture, 1 all).
    block: side of the texture blocks, as a part of the shorter side. focus: the central part of the texture image that
    blocks are taken from: objects tend to stand there, sky and grass do not. lines: how dark the content's edges are drawn
    (0 not at all, 1 black, times shape). mask: where the content's object is (H×W);
    outside it the texture fades to its mean colour, so that only the silhouette carries it. method: a style transfer,
    such as `AdaIN(encoder, decoder)`, used instead of quilting.
    """
    _check(content, texture, mask, shape=shape, focus=focus, lines=lines)
    if method is not None:
        centre = _centre(cover(texture, *content.shape[:2]), focus, SMALLEST)
        image = method(content, centre, 1.0).astype(np.float32)
    else:
        image = _reshaped(texture_sheet(content, texture, rng, block, focus), content, shape)
        if lines * shape > 0:
            image *= 1 - np.float32(lines * shape) * (1 - sketch(content)[..., :1] / np.float32(255))
    if mask is not None:
        soft = cv2.GaussianBlur(mask.astype(np.float32), (0, 0), max(min(mask.shape) / 224, 0.5))[..., None]
        mean = image.mean(axis=(0, 1))
        image = soft * image + (1 - soft) * (mean + 0.15 * (image - mean))
    return np.clip(image + 0.5, 0, 255).astype(np.uint8)


def _reshaped(sheet: Floats, content: Bytes, shape: float) -> Floats:
    """The sheet with its large-scale brightness replaced, in part, by the content's, edges kept."""
    luma = sheet @ LUMA
    smooth = cv2.GaussianBlur(luma, (0, 0), min(luma.shape) / 28)
    wanted = _structure(content)
    wanted = (wanted - wanted.mean()) / max(float(wanted.std()), 1.0)
    # flat textures must still show a shape
    spread = max(float(smooth.std()), SPREAD * float(luma.std()), 22.0)
    base = np.float32(smooth.mean()) + wanted * np.float32(spread)
    return np.asarray(sheet + (np.float32(shape) * (base - smooth))[..., None], dtype=np.float32)


def _centre(image: Bytes, focus: float, least: int) -> Bytes:
    """The central part of the image, at least `least` pixels wide and high."""
    height, width = image.shape[:2]
    top, left = (max(0, min(round(n * (1 - focus) / 2), (n - least) // 2)) for n in (height, width))
    return np.ascontiguousarray(image[top : height - top, left : width - left])


def texture_sheet(
    content: Bytes, texture: Bytes, rng: np.random.Generator, block: float = 1 / 4, focus: float = 0.8
) -> Floats:
    """The texture image quilted to the content's size (H×W×3), its brightness following the content's."""
    height, width = content.shape[:2]
    side = min(max(6, round(min(height, width) * block)), min(height, width))
    source = _centre(cover(texture, height, width), focus, side).astype(np.float32)
    overlap = max(2, side // 3)
    have, want = _guide(source), _guide(content.astype(np.float32))
    want = _matched(want, have)
    rows, columns = (len(range(0, max(n - overlap, 1), side - overlap)) for n in (height, width))
    numbers = rng.random((rows * columns, CANDIDATES, 2), dtype=np.float32) * np.float32(1 - 1e-6)
    return quilt(source, have, want, numbers, side, overlap, np.float32(1.5))


def _guide(image: Floats) -> Floats:
    """Brightness, blurred to the scale at which shapes are drawn. H×W."""
    luma = image @ LUMA
    return np.asarray(cv2.GaussianBlur(luma, (0, 0), max(min(luma.shape) / 75, 0.6)), dtype=np.float32)


def _matched(values: Floats, other: Floats) -> Floats:
    """`values` with the histogram of `other`."""
    places = np.linspace(0, 1, 128)
    knots, index = np.unique(np.quantile(values, places), return_index=True)
    return np.interp(values, knots, np.quantile(other, places)[index]).astype(np.float32)


def _structure(content: Bytes) -> Floats:
    """Brightness without texture, edges kept: a bilateral filter, twice."""
    side = min(content.shape[:2])
    luma: Any = cv2.cvtColor(content, cv2.COLOR_RGB2GRAY).astype(np.float32)
    for _ in range(2):
        luma = cv2.bilateralFilter(luma, -1, 40.0, max(side / 56, 1.0))
    return np.asarray(luma, dtype=np.float32)


def _check(content: Bytes, texture: Bytes, mask: NDArray[np.bool_] | None, **parts: float) -> None:
    for what, array in (("content", content), ("texture", texture)):
        good = array.dtype == np.uint8 and array.ndim == 3 and array.shape[2] == 3
        if not good or min(array.shape[:2]) < SMALLEST:
            raise UserError(
                f"cue conflict: the {what} image is {array.dtype} {array.shape}; it must be uint8, H×W×3, "
                f"at least {SMALLEST}×{SMALLEST}"
            )
    for what, value in parts.items():
        if not 0.0 <= value <= 1.0:
            raise UserError(f"cue conflict: {what}={value} must be between 0 and 1")
    if mask is not None and mask.shape != content.shape[:2]:
        raise UserError(
            f"cue conflict: the mask is {mask.shape}, the image {content.shape[:2]}; they must agree"
        )
