"""The embedded image set as a set of images: lengths, names, labels and pixels on demand."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import cached_property
from typing import Any
from urllib.parse import parse_qsl

import numpy as np
from numpy.typing import NDArray

from cuewise import compiled
from cuewise.data.shapes.compose import (
    FULL_FRAME,
    SCENE,
    pictures,
    scene_boxes,
    scene_mask,
    single_mask,
    turn_steps,
)
from cuewise.data.shapes.fields import distance_fields
from cuewise.data.shapes.hashing import stream_keys
from cuewise.data.shapes.outlines import SHAPES, outlines
from cuewise.data.shapes.raster import SILHOUETTE, SKETCH
from cuewise.data.shapes.splits import SPLITS, Keys, Law, Options
from cuewise.data.shapes.textures import TEXTURES
from cuewise.errors import UserError
from cuewise.options import SEEDS

VERSION = 1  # raise when any pixel or label changes
MOST_LABELS = 4 * len(TEXTURES)  # `fine` with every texture as a breed
Images = NDArray[np.uint8]


class ShapeSet:
    """`n` images of a split, generated on demand; image i depends on (seed, split, options, i) only.

    split: a name of SPLITS.  n: how many.  size: pixels per side, ≥ 16.  seed: ≥ 0.  options: see Options.
    """

    def __init__(
        self, split: str = "aligned", n: int = 4000, size: int = 64, seed: int = 0, **options: Any
    ) -> None:
        if split not in SPLITS:
            raise UserError(f"shapes: no split {split!r}; there are: {', '.join(SPLITS)}")
        self.split, self.n, self.size, self.seed = split, n, size, seed
        self.options = _checked(split, n, size, seed, options)

    @classmethod
    def parse(cls, text: str) -> ShapeSet:
        """The set of "shapes", "shapes:SPLIT" or "shapes:SPLIT?n=500&size=64&seed=3&rho=0.9"."""
        head, _, query = text.partition("?")
        name, colon, split = head.partition(":")
        if name != "shapes" or (colon and not split):
            raise UserError(f"{text!r} is not a shapes set; write shapes, shapes:SPLIT or shapes:SPLIT?n=500")
        pairs = parse_qsl(query, keep_blank_values=True)
        if query and not all("=" in pair for pair in query.split("&")):
            raise UserError(
                f"{text!r}: after ? come name=value pairs joined by &, for example ?n=500&size=64"
            )
        return cls(split or "aligned", **{key: _value(text, key, value) for key, value in pairs})

    def __len__(self) -> int:
        return self.n

    def __repr__(self) -> str:
        return f"ShapeSet({self.spec()!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("split", "n", "size", "seed", "options")}

    def spec(self) -> str:
        """The set in one canonical string; `parse` reads it back."""
        options = {
            k: v for k, v in asdict(self.options).items() if k in SPLITS[self.split].options and v != ""
        }
        pairs = {"n": self.n, "size": self.size, "seed": self.seed, **options}
        return f"shapes:{self.split}?" + "&".join(f"{k}={v}" for k, v in pairs.items())

    def fingerprint_hash(self) -> str:
        """Equal for equal pixels and labels: the images follow from the spec and the version."""
        return hashlib.sha256(f"{self.spec()} version {VERSION}".encode()).hexdigest()

    @property
    def labels(self) -> NDArray[np.int64]:
        return self._law[1].labels

    @property
    def classes(self) -> tuple[str, ...]:
        return self._law[1].classes

    @property
    def shapes(self) -> tuple[str, ...]:
        """The names that the column "shape" indexes."""
        return SHAPES[: self.options.classes]

    @property
    def textures(self) -> tuple[str, ...]:
        """The names that the column "texture" indexes; class k's own texture is number k."""
        return TEXTURES[: self.options.classes]

    @cached_property
    def columns(self) -> dict[str, NDArray[Any]]:
        """Facts of each image beside its label: shape, texture, angle, colour, superclass, boxes…"""
        keys, law = self._law
        boxes = {"boxes": self._boxes(keys, law.shapes)} if self.split == "scenes" else {}
        return {**law.columns, **boxes}

    def name(self, i: int) -> str:
        """A path-like name: "star/000123-bricks.png"; in conflict "star/star12-house7.png".

        conflict: the 12th star, wearing the 7th texture of the class house.
        """
        law = self._law[1]
        folder = law.classes[law.labels[i]]
        if self.split == "conflict":
            shape, texture = self._ordinals
            wearer = SHAPES[law.textures[i, 0]]
            return f"{folder}/{folder}{shape[i]}-{wearer}{texture[i]}.png"
        words = {"shape": SHAPES, "texture": TEXTURES}
        shown = [words[column][law.columns[column][i]] for column in SPLITS[self.split].named]
        return f"{folder}/{'-'.join([f'{i:06d}', *shown])}.png"

    def image(self, i: int) -> Images:
        """The i-th image, uint8 size×size×3."""
        return self.batch([i])[0]

    def batch(self, indices: Sequence[int] | NDArray[Any]) -> Images:
        """The images of `indices`, uint8 k×size×size×3."""
        at = np.asarray(indices, np.int64)
        if at.size and (at.min() < 0 or at.max() >= self.n):
            raise IndexError(f"{self!r} has images 0 to {self.n - 1}, not {int(at.min())} to {int(at.max())}")
        compiled.wait()
        keys, law = self._law
        out = np.empty((len(at), self.size, self.size, 3), np.uint8)
        mode, turn = SPLITS[self.split].mode, turn_steps(self.options.turn)
        ids = (law.shapes[at], law.textures[at], law.hues[at])
        pictures(out, distance_fields(), keys[at], mode, *ids, turn, self.options.palette == "one")
        for picture, quarters in zip(out, law.quarters[at], strict=True):
            if quarters:
                picture[:] = np.rot90(picture, quarters).copy()
        return out

    def mask(self, i: int) -> NDArray[np.uint8]:
        """Of a scene: the shape of each pixel plus one, 0 for the background; uint8 size×size."""
        keys, law = self._law
        out = np.empty((self.size, self.size), np.uint8)
        scene_mask(out, distance_fields(), keys[i], law.shapes[i], turn_steps(self.options.turn))
        return out

    def outline(self, i: int) -> NDArray[np.bool_] | None:
        """size×size, true where an object is; None where the texture fills the frame."""
        mode = SPLITS[self.split].mode
        if mode == FULL_FRAME:
            return None
        if mode == SCENE:
            return self.mask(i) > 0
        keys, law = self._law
        out = np.empty((self.size, self.size), np.uint8)
        flat, turn = mode in (SILHOUETTE, SKETCH), turn_steps(self.options.turn)
        single_mask(out, distance_fields(), keys[i], law.shapes[i, 0], turn, flat)
        return np.rot90(out, law.quarters[i]).astype(bool)

    @cached_property
    def _law(self) -> tuple[Keys, Law]:
        stream = 2 * list(SPLITS).index(self.split) + (self.options.part == "test")
        # a few more images than asked for, so that the last block of balanced labels does not depend on n
        keys = stream_keys(self.seed, stream, self.n + MOST_LABELS)
        return keys[: self.n], SPLITS[self.split].law(keys, self.options).first(self.n)

    def _boxes(self, keys: Keys, shapes: NDArray[np.int64]) -> NDArray[np.int64]:
        """x0, y0, x1, y1 (half open) of each object, [n, objects, 4], −1 where there is none."""
        solid = [np.concatenate([p.points for p in parts if p.adds]) for parts in outlines()]
        starts = np.cumsum([0, *map(len, solid)])
        boxes = np.full((*shapes.shape, 4), -1, np.int64)
        turn = turn_steps(self.options.turn)
        scene_boxes(keys, shapes, turn, self.size, np.concatenate(solid), starts, boxes)
        return boxes

    @cached_property
    def _ordinals(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """How many images up to and with each one have its shape, and its texture."""
        law = self._law[1]
        return _running(law.shapes[:, 0]), _running(law.textures[:, 0])


def _running(ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """ids[i]'s number of occurrences in ids[: i + 1]."""
    order = np.argsort(ids, kind="stable")
    first = np.searchsorted(ids[order], ids[order])
    count = np.empty_like(ids)
    count[order] = np.arange(len(ids)) - first + 1
    return count


def _value(text: str, key: str, value: str) -> Any:
    defaults = {"n": 0, "size": 0, "seed": 0, **asdict(Options())}
    try:
        return type(defaults.get(key, ""))(value)
    except ValueError:
        raise UserError(f"{text!r}: {key} must be a number, not {value!r}") from None


def _checked(split: str, n: int, size: int, seed: int, given: dict[str, Any]) -> Options:
    legal = SPLITS[split].options
    for key in given:
        if key not in legal:
            raise UserError(
                f"shapes:{split} has no option {key!r}; it takes: {', '.join(('n', 'size', 'seed', *legal))}"
            )
    o = replace(Options(), **given)
    most = len(SHAPES)
    least = 8 if split in ("fine", "scenes") else 3
    laws = (
        ("n", n, n >= 1, "at least 1"),
        ("size", size, 16 <= size <= 4096, "16 to 4096"),
        ("seed", seed, 0 <= seed < 1 << 63, f"0 to {SEEDS.most}"),
        ("part", o.part, o.part in ("train", "test"), "train or test"),
        ("palette", o.palette, o.palette in ("", "one"), "one"),
        ("textures", o.textures, o.textures in ("", "train", "test"), "train or test"),
        ("classes", o.classes, least <= o.classes <= most, f"{least} to {most}"),
        ("turn", o.turn, 0 <= o.turn <= 180, "0 to 180 degrees"),
        ("rho", o.rho, 0 <= o.rho <= 1, "0 to 1"),
        ("breeds", o.breeds, 2 <= o.breeds <= o.classes, "2 to the number of classes"),
        ("objects", o.objects, 1 <= o.objects <= 8, "1 to 8"),
        ("odd", o.odd, 0 <= o.odd <= 1, "0 to 1"),
        ("odd", o.odd, o.odd == 0 or o.objects > 1, "0 where there is one object"),
    )
    for key, value, fine, range_ in laws:
        if not fine:
            raise UserError(f"shapes:{split}: {key} must be {range_}, not {value!r}")
    return o
