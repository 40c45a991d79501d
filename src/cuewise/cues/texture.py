"""Texture synthesis: an image with the local texture of its examples and nothing of their layout.

Multiresolution stochastic synthesis, pixel by pixel, as used for texture-based negatives (Ge et al. 2021).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from cuewise.cues.cue import Cue, Drawn
from cuewise.cues.forms import Pixels
from cuewise.cues.levels import Array
from cuewise.cues.texture_kernel import synthesize_sources
from cuewise.cues.texture_patches import Places, cut_patches, draw_patches
from cuewise.errors import UserError


@dataclass(frozen=True)
class Search:
    """How the synthesiser looks for each pixel: its parameters k, m, σ, p, T.

    Fewer neighbours and random candidates than published take a third of the time, and the textures are still no worse
    than those of the published program (benchmarks/texture_quality.py).
    """

    neighbours: int = 24
    random: int = 10
    sigma: float = 1.0
    backtrack: float = 0.5
    stages: int = 5
    mirror_random: bool = False  # the published program's sign slip, for comparison

    def __post_init__(self) -> None:
        if self.neighbours < 1 or self.random < 0 or self.stages < 1:
            raise UserError("texture: neighbours and stages must be at least 1, random at least 0")
        if not (self.sigma > 0 and 0 < self.backtrack < 1):
            raise UserError("texture: sigma must be above 0 and backtrack between 0 and 1")


PUBLISHED = Search(neighbours=50, random=50)


def synthesize(
    examples: Sequence[Pixels],
    size: tuple[int, int],
    *,
    rng: np.random.Generator | int,
    search: Search | None = None,
) -> Pixels:
    """H×W×3 uint8 texture from one or more uint8 example patches; every output pixel is a pixel of an example.

    rng: a generator, or the number below 2⁶⁴ that `draw_seed` drew from one.
    Stages s = T…0 of ⌊pˢN⌋ pixels each, from a blurred level of the examples to the examples themselves; each stage first
    resolves again what was there, then new pixels in random order. A pixel takes the candidate c (its k nearest resolved
    neighbours' sources, shifted, and m random ones) with the least
    Σ_v w_v Σ_channels ln(1 + ((out(v) − example(c + v − u))/255)²/σ²).
    """
    search = search or Search()
    pyramids = [example_pyramid(checked(example), search.stages) for example in examples]
    if not pyramids:
        raise UserError("texture: needs at least one example patch")
    height, width = size
    field, boxes, stride = pack(pyramids, height, width)
    sources = synthesize_sources(
        field,
        boxes,
        stride,
        sorted_offsets(height, width),
        (height, width),
        quotas(height * width, search),
        (search.neighbours, search.random, search.mirror_random),
        cost_table(search.sigma),
        np.uint64(draw_seed(rng)),
    )
    packed = field[-1][sources].reshape(height, width)
    return np.stack([packed & 255, (packed >> 8) & 255, packed >> 16], -1).astype(np.uint8)


def draw_seed(rng: np.random.Generator | int) -> int:
    """64 random bits, from which the kernels draw all their random numbers; a number stays as it is."""
    return rng if isinstance(rng, int) else int(rng.integers(2**64, dtype=np.uint64))


def checked(example: Array) -> Pixels:
    """The example, or an error that says what an example is."""
    if example.dtype != np.uint8 or example.ndim != 3 or example.shape[2] != 3 or 0 in example.shape:
        raise UserError(
            f"texture: an example must be uint8 H×W×3, but this one is {example.dtype} {example.shape}"
        )
    return example


def quotas(pixels: int, search: Search) -> NDArray[np.int64]:
    """⌊pˢN⌋ for s = T…0."""
    stages = np.arange(search.stages, -1, -1)
    return np.floor(search.backtrack**stages * pixels).astype(np.int64)


def example_pyramid(example: Pixels, levels: int) -> list[Pixels]:
    """All of full size, from blurred by 2^(levels−1) to the example itself: shrunk and enlarged with a Gaussian."""
    pyramid = []
    for level in range(levels - 1, 0, -1):
        rows, columns = (blur_matrix(side, max(1, side >> level)) for side in example.shape[:2])
        blurred = np.einsum("yi,ijc,xj->yxc", rows, example.astype(np.float32), columns, optimize=True)
        pyramid.append(np.clip(np.rint(blurred), 0, 255).astype(np.uint8))
    return [*pyramid, example]


@lru_cache(maxsize=256)
def blur_matrix(side: int, small: int) -> NDArray[np.float32]:
    """side×side matrix that resamples to `small` samples and back, Gaussian kernel of σ = ½ sample of the coarser grid."""
    return np.asarray(_resample(small, side) @ _resample(side, small), np.float32)


def _resample(source: int, target: int) -> Array:
    scale = source / target
    centres = (np.arange(target) + 0.5) * scale - 0.5
    away = (np.arange(source)[None] - centres[:, None]) / max(scale, 1.0)
    weights = np.where(np.abs(away) <= 3, np.exp(-2 * away**2), 0)
    return np.asarray(weights / weights.sum(1, keepdims=True))


def pack(pyramids: Sequence[list[Pixels]], height: int, width: int) -> tuple[Array, Array, int]:
    """All examples in one black field per level: uint32 [levels, field], boxes (position, height, width), row stride."""
    stride = max(p[0].shape[1] for p in pyramids) + width
    rows = height + sum(p[0].shape[0] + height for p in pyramids)
    field = np.zeros((len(pyramids[0]), rows + 1, stride), np.uint32)
    boxes = []
    top = height
    for pyramid in pyramids:
        h, w = pyramid[0].shape[:2]
        boxes.append((top * stride + width, h, w))
        for level, image in enumerate(pyramid):
            packed = image.astype(np.uint32) @ np.array([1, 1 << 8, 1 << 16], np.uint32)
            field[level, top : top + h, width : width + w] = packed
        top += h + height
    return field.reshape(len(field), -1), np.array(boxes, np.int64), stride


@lru_cache(maxsize=8)
def sorted_offsets(height: int, width: int) -> tuple[Array, Array, Array, Array]:
    """All offsets by distance (ties: dy, dx): (dy, dx) pairs, jumps in the bitmap, normalised squares, ranks."""
    dy, dx = np.mgrid[1 - height : height, 1 - width : width].reshape(2, -1)
    order = np.lexsort((dx, dy, dy**2 + dx**2))
    dy, dx = dy[order], dx[order]
    ranks = np.empty(len(order), np.int32)
    ranks[order] = np.arange(len(order), dtype=np.int32)
    distances = ((dy / height) ** 2 + (dx / width) ** 2).astype(np.float32)
    offsets = np.stack([dy, dx], -1).astype(np.int64)
    return offsets, dy * 2 * width + dx, distances, ranks.reshape(2 * height - 1, 2 * width - 1)


@lru_cache(maxsize=8)
def cost_table(sigma: float) -> NDArray[np.float32]:
    """ln(1 + (d/255)²/σ²) for d = −255…255."""
    return np.log1p((np.arange(-255, 256) / 255 / sigma) ** 2).astype(np.float32)


@dataclass(frozen=True)
class FromPatches(Cue):
    """What `texture` and `quilting` share: examples are the centre patch of an image and a random one."""

    patch: Annotated[str | int, "of the examples: a side in pixels, auto or paper"] = "auto"

    def draw(self, rng: np.random.Generator, height: int, width: int) -> Drawn:
        side, rule = (self.patch, "auto") if isinstance(self.patch, int) else (None, self.patch)
        places = draw_patches(rng, height, width, side=side, rule=rule)
        return {**places.to_dict(), "seed": draw_seed(rng)}

    def examples(self, image: Pixels, drawn: Drawn) -> Sequence[Pixels]:
        return cut_patches(image, Places.from_dict(drawn)).examples


@dataclass(frozen=True)
class Texture(FromPatches):
    """A texture of the image's size; see `synthesize`."""

    name = "texture"
    summary = "keep local texture, destroy all layout (multiresolution synthesis)"
    moves = True
    citation = "Ge et al. 2021"
    equation = (
        "each pixel takes the candidate c with the least Σ_v w_v Σ_channels ln(1 + ((out(v) − example(c "
        "+ v − u)) / 255)² / σ²)"
    )
    neighbours: Annotated[
        int, "k, the resolved neighbours that a candidate is compared on (published: 50)"
    ] = 24
    random: Annotated[int, "m, random candidates per pixel (published: 50)"] = 10
    sigma: Annotated[float, "σ of the robust difference of colours"] = 1.0
    backtrack: Annotated[float, "p, share of the pixels of a stage that the stage before resolves"] = 0.5
    stages: Annotated[int, "T, levels of the pyramid"] = 5
    mirror_random: Annotated[bool, "reproduce a sign slip of the published program"] = False

    @property
    def search(self) -> Search:
        return Search(**{k: v for k, v in self.settings.items() if k != "patch"})

    def render(self, image: Pixels, drawn: Drawn) -> Pixels:
        size = (image.shape[0], image.shape[1])
        return synthesize(self.examples(image, drawn), size, rng=drawn["seed"], search=self.search)
