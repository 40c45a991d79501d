"""Patch negatives: an image of shuffled square patches, which keeps texture and colour and loses shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from cuewise.cues.cue import Cue, Drawn
from cuewise.cues.forms import Pixels
from cuewise.cues.patches_kernel import inside, tile, tile_turned
from cuewise.errors import UserError

Overlap = Literal["allow", "distinct", "avoid"]
Augment = Literal["rot90", "vflip", "hflip"]
Array = NDArray[Any]  # H×W×C or H×W, any number type
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PatchParams:
    """One drawn patch image: which d×d patches of the source, and how each is rotated and flipped; row by row.

    turns: quarter turns counter-clockwise; applied before vflips, those before hflips. Empty: none.
    """

    patch: int  # d, the side of a patch
    height: int  # of the result
    width: int
    tops: tuple[int, ...]
    lefts: tuple[int, ...]
    turns: tuple[int, ...] = ()
    vflips: tuple[int, ...] = ()
    hflips: tuple[int, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers, ready for JSON."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> PatchParams:
        """The inverse of `to_dict`."""
        plain: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
        return cls(**plain)


def default_range(size: int) -> tuple[int, int]:
    """The published patch sizes 16..72 at 224 pixels, scaled to `size`; at least 2."""
    low = max(2, round(16 * size / 224))
    return low, max(low, round(72 * size / 224))


def parse_range(text: str) -> tuple[int, int]:
    """ "16:72" → (16, 72), both ends inclusive; "32" → (32, 32)."""
    parts = text.split(":")
    if len(parts) > 2 or not all(p.strip().isascii() and p.strip().isdigit() for p in parts):
        raise UserError(f"patch size {text!r}: write low:high in pixels, such as 16:72")
    low, high = int(parts[0]), int(parts[-1])
    if not 1 <= low <= high:
        raise UserError(f"patch size {text!r}: the low end must be at least 1 and not above the high end")
    return low, high


def sample(
    rng: np.random.Generator,
    height: int,
    width: int,
    size: int | tuple[int, int],
    patch_size: tuple[int, int] | None = None,
    *,
    overlap: Overlap = "allow",
    augment: Sequence[Augment] = (),
) -> PatchParams:
    """Draw a patch image of side `size` (or height, width) from a source of height×width.

    d is uniform in patch_size, both ends inclusive (default: `default_range`), cut to the source's sides;
    ⌈size/d⌉² positions, every corner from 0 to height - d inclusive.
    overlap: "allow" draws positions independently; "distinct" never takes one corner twice while others are
    left; "avoid" takes the cells of a randomly shifted d-grid, all of them before any comes again.
    """
    out_h, out_w = (size, size) if isinstance(size, int) else size
    low, high = _checked_range(patch_size, min(out_h, out_w))
    high = min(high, height, width)
    low = min(low, high)
    d = low + int(rng.random() * (high - low + 1))  # one uniform number costs an eighth of rng.integers
    count = -(-out_h // d) * -(-out_w // d)
    tops, lefts = _positions(rng, height, width, d, count, overlap)
    places = tuple(tops.tolist()), tuple(lefts.tolist())
    if not augment:
        return PatchParams(d, out_h, out_w, *places)
    if unknown := set(augment) - set(get_args(Augment)):
        raise UserError(f"patch augment {sorted(unknown)[0]!r}: choose from {', '.join(get_args(Augment))}")
    kinds = (("turns", "rot90", 4), ("vflips", "vflip", 2), ("hflips", "hflip", 2))
    turned = {to: tuple(rng.integers(n, size=count).tolist()) for to, name, n in kinds if name in augment}
    return PatchParams(d, out_h, out_w, *places, **turned)


def _checked_range(patch_size: tuple[int, int] | None, size: int) -> tuple[int, int]:
    low, high = default_range(size) if patch_size is None else patch_size
    if not 1 <= low <= high:
        raise UserError(f"patch size {low}:{high}: give 1 <= low <= high")
    if low >= size:
        raise UserError(
            f"patch size {low}:{high} on a {size}-pixel image: a patch of the image's own size is the image "
            f"itself; give a low end below {size}"
        )
    return low, high


def _positions(
    rng: np.random.Generator, height: int, width: int, d: int, count: int, overlap: Overlap
) -> tuple[Ints, Ints]:
    """Top and left corners of `count` patches."""
    rows, columns = height - d + 1, width - d + 1
    if overlap == "allow":
        u = rng.random((2, count))
        u[0] *= rows
        u[1] *= columns
        return tuple(u.astype(np.int64))
    if overlap == "distinct":
        corner = _without_replacement(rng, rows * columns, count)
        return corner // columns, corner % columns
    if overlap == "avoid":
        cells_y, cells_x = height // d, width // d
        cell = _without_replacement(rng, cells_y * cells_x, count)
        shift_y = int(rng.integers(height - cells_y * d + 1))
        shift_x = int(rng.integers(width - cells_x * d + 1))
        return cell // cells_x * d + shift_y, cell % cells_x * d + shift_x
    raise UserError(f"patch overlap {overlap!r}: choose from {', '.join(get_args(Overlap))}")


def _without_replacement(rng: np.random.Generator, population: int, count: int) -> Ints:
    """`count` of 0..population-1 in random order; none comes again before all have come."""
    rounds = [rng.permutation(population) for _ in range(count // population)]
    rest = rng.choice(population, size=count % population, replace=False)
    return np.concatenate([*rounds, rest]).astype(np.int64)


def apply(image: Array, params: PatchParams) -> Array:
    """The patch image that `params` describes, height×width with the channels and number type of `image`."""
    height, width = image.shape[:2]
    d = params.patch
    count = -(-params.height // d) * -(-params.width // d)
    turned = (params.turns, params.vflips, params.hflips)
    tops, lefts = np.array(params.tops), np.array(params.lefts)
    if not len(tops) == len(lefts) == count or any(len(t) not in (0, count) for t in turned):
        raise UserError(
            f"patch parameters: {count} patches of {d} pixels are needed, each with its place and turn"
        )
    if not inside(tops, lefts, height - d, width - d):
        raise UserError(f"patch parameters reach outside a {width}×{height} image; draw them for that size")
    source = np.ascontiguousarray(image)
    result = np.empty((params.height, params.width, *image.shape[2:]), image.dtype)
    pixel = source.strides[1]
    flat = source.view(np.uint8).reshape(height, width * pixel)
    out = result.view(np.uint8).reshape(params.height, params.width * pixel)
    if any(turned):
        turns, vflips, hflips = (np.array(t or (0,) * count) for t in turned)
        tile_turned(flat, pixel, d, tops, lefts, turns, vflips, hflips, out)
    else:
        tile(flat, pixel, d, tops, lefts, out)
    return result


@dataclass(frozen=True)
class Patch(Cue):
    """An image of the same size, tiled with patches of the image; see `sample` and `apply`."""

    name = "patch"
    summary = "shuffled square patches: keep texture and colour, destroy shape"
    moves = True
    citation = "Ge et al. 2021"
    equation = (
        "out(p) = image(c_t + p − p_t): tile t of the grid is the patch at a random corner c_t, of a "
        "side drawn once per image"
    )
    colour_only = False
    patch_size: Annotated[str, "low:high in pixels [16:72 at 224 pixels, in proportion elsewhere]"] = ""
    overlap: Annotated[Overlap, "of patches in the source: allow, distinct, avoid"] = "allow"
    augment: Annotated[str, "of each patch: rot90, vflip, hflip, with commas"] = ""

    def draw(self, rng: np.random.Generator, height: int, width: int) -> Drawn:
        sizes = parse_range(self.patch_size) if self.patch_size else None
        chosen: Any = tuple(name.strip() for name in self.augment.split(",") if name.strip())
        size = (height, width)
        return sample(rng, *size, size, sizes, overlap=self.overlap, augment=chosen).to_dict()

    def render(self, image: Pixels, drawn: Drawn) -> Pixels:
        return apply(image, PatchParams.from_dict(drawn))
