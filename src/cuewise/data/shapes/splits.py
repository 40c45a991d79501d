"""What each split shows and how it is labelled: the law from an image's number to its shape and texture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuewise.data.shapes.compose import FULL_FRAME, LABELS, SCENE
from cuewise.data.shapes.hashing import draw_array, mix_arrays
from cuewise.data.shapes.outlines import CONTEXTS, SHAPES, SUPERCLASSES
from cuewise.data.shapes.raster import SILHOUETTE, SKETCH, TEXTURED
from cuewise.data.shapes.textures import TEXTURES, TURN

Keys = NDArray[np.uint64]
Ids = NDArray[np.int64]

# Eight directions of the chroma plane, 45° apart, from 18° on so that red is red.
HUES: tuple[str, ...] = ("violet", "magenta", "red", "orange", "lime", "green", "cyan", "blue")
ANGLES = (0, 90, 180, 270)


@dataclass(frozen=True)
class Options:
    """Every option with its default; a split takes those it names."""

    part: str = "train"  # train | test: independent random streams
    classes: int = len(SHAPES)  # the first so many outlines and textures
    palette: str = ""  # one: the same colours and background in every image
    turn: int = 20  # largest rotation of an object, degrees
    rho: float = 0.9  # how often an object wears its own class's texture
    textures: str = ""  # disjoint: train | test half of the textures; as `part` when empty
    breeds: int = 4  # fine: textures a superclass comes in
    objects: int = 5  # scenes: 2 to so many; 1: a single large object
    odd: float = 0.0  # scenes: how often one object is out of context


@dataclass(frozen=True)
class Law:
    """The facts of n images: labels and columns for the user, ids for the painter."""

    labels: Ids
    classes: tuple[str, ...]
    columns: dict[str, NDArray[np.int64] | NDArray[np.bool_]]
    shapes: Ids  # n×objects, −1 where there is none
    textures: Ids  # n×objects, likewise
    hues: Ids  # hue angle (of TURN) of the object's colours, −1 for any
    quarters: Ids  # quarter turns of the whole picture, counter-clockwise

    def first(self, n: int) -> Law:
        """The law of the first n images."""
        columns = {key: column[:n] for key, column in self.columns.items()}
        ids = (self.shapes[:n], self.textures[:n], self.hues[:n], self.quarters[:n])
        return Law(self.labels[:n], self.classes, columns, *ids)


@dataclass(frozen=True)
class Split:
    """A split: what it is, how it is painted, the columns in its file names, its options and its law."""

    summary: str
    mode: int
    named: tuple[str, ...]
    options: tuple[str, ...]
    law: Callable[[Keys, Options], Law]


def _law(labels: Ids, classes: tuple[str, ...], hues: Ids | None = None, **columns: Any) -> Law:
    """A law whose painter's ids are the columns shape, texture and angle, where present."""
    none = np.full(len(labels), -1, np.int64)
    shapes, textures = (columns.get(key, none).reshape(len(labels), -1) for key in ("shape", "texture"))
    hues = none if hues is None else hues
    quarters = columns.get("angle", np.zeros_like(labels)) // 90
    return Law(labels, classes, columns, shapes, textures, hues, quarters)


def _bits(keys: Keys, counter: int, low: int, high: int) -> Ids:
    return draw_array(mix_arrays(keys, np.array([LABELS], np.uint64)), counter, low, high)


def _happens(keys: Keys, counter: int, probability: float) -> NDArray[np.bool_]:
    return _bits(keys, counter, 0, (1 << 30) - 1) < round(probability * (1 << 30))


def balanced(keys: Keys, kinds: int) -> Ids:
    """Each block of `kinds` images holds every kind once, in random order; the last block may be cut."""
    n = len(keys)
    rank = _bits(keys, 0, 0, (1 << 30) - 1)
    result = np.empty(n, np.int64)
    order = np.lexsort((rank, np.arange(n) // kinds))  # sorted by random number within each block
    result[order] = np.arange(n) % kinds
    return result


def _other(keys: Keys, counter: int, ids: Ids, kinds: int) -> Ids:
    """A uniform id that differs from `ids`."""
    return (ids + _bits(keys, counter, 1, kinds - 1)) % kinds


def _paired(keys: Keys, shapes: Ids, o: Options) -> Ids:
    """The shape's own texture with probability rho, any other one otherwise."""
    return np.where(_happens(keys, 1, o.rho), shapes, _other(keys, 2, shapes, o.classes))


def _aligned(keys: Keys, o: Options) -> Law:
    shapes = balanced(keys, o.classes)
    return _law(shapes, SHAPES[: o.classes], shape=shapes, texture=_paired(keys, shapes, o))


def _conflict(keys: Keys, o: Options) -> Law:
    shapes = balanced(keys, o.classes)
    return _law(shapes, SHAPES[: o.classes], shape=shapes, texture=_other(keys, 2, shapes, o.classes))


def _texture_only(keys: Keys, o: Options) -> Law:
    textures = balanced(keys, o.classes)
    return _law(textures, TEXTURES[: o.classes], texture=textures)


def _bare(keys: Keys, o: Options) -> Law:
    shapes = balanced(keys, o.classes)
    return _law(shapes, SHAPES[: o.classes], shape=shapes)


def _disjoint(keys: Keys, o: Options) -> Law:
    """The training half of the textures has even ids, the test half odd ones."""
    first = 0 if (o.textures or o.part) == "train" else 1
    shapes, half = balanced(keys, o.classes), np.arange(first, o.classes, 2, dtype=np.int64)
    return _law(shapes, SHAPES[: o.classes], shape=shapes, texture=half[_bits(keys, 3, 0, len(half) - 1)])


def _members(groups: dict[str, tuple[str, ...]], classes: int) -> list[Ids]:
    """The shape ids of each group, among the first `classes`."""
    ids = {name: [SHAPES.index(s) for s in shapes] for name, shapes in groups.items()}
    return [np.array([k for k in members if k < classes], np.int64) for members in ids.values()]


def _fine(keys: Keys, o: Options) -> Law:
    """Breed = superclass × texture; every outline of the superclass occurs in every breed."""
    groups = _members(SUPERCLASSES, o.classes)
    labels = balanced(keys, len(groups) * o.breeds)
    superclass, texture = labels // o.breeds, labels % o.breeds
    shapes = np.empty_like(labels)
    for index, members in enumerate(groups):
        chosen = members[_bits(keys, 4, 0, len(members) - 1)]
        shapes = np.where(superclass == index, chosen, shapes)
    names = tuple(f"{group}-{TEXTURES[t]}" for group in SUPERCLASSES for t in range(o.breeds))
    return _law(labels, names, shape=shapes, texture=texture, superclass=superclass)


def _rotated(keys: Keys, o: Options) -> Law:
    labels = balanced(keys, len(ANGLES))
    shapes = _bits(keys, 5, 0, o.classes - 1)
    textures, angles = _paired(keys, shapes, o), np.array(ANGLES, np.int64)[labels]
    return _law(labels, tuple(map(str, ANGLES)), shape=shapes, texture=textures, angle=angles)


def _coloured(keys: Keys, o: Options) -> Law:
    """Hue is the class; shape and texture are independent of it and of each other."""
    labels, step = balanced(keys, len(HUES)), TURN // len(HUES)
    hues = (TURN // 20 + labels * step + _bits(keys, 6, -(step // 6), step // 6)) % TURN
    shapes, textures = _bits(keys, 5, 0, o.classes - 1), _bits(keys, 7, 0, o.classes - 1)
    return _law(labels, HUES, hues, shape=shapes, texture=textures, colour=labels)


def _scenes(keys: Keys, o: Options) -> Law:
    """Objects of one context together; with probability `odd` one of them is exchanged for an object of another context."""
    groups = _members(CONTEXTS, o.classes)
    n, labels = len(keys), balanced(keys, len(groups))
    counts, odd = _bits(keys, 8, min(2, o.objects), o.objects), _happens(keys, 9, o.odd)
    which = np.where(odd, _bits(keys, 10, 0, (1 << 20) - 1) % counts, -1)
    shapes, textures = np.full((2, n, o.objects), -1, np.int64)
    for j in range(o.objects):
        own = mix_arrays(keys, np.array([32 + j], np.uint64))
        for index, members in enumerate(groups):
            strangers = np.setdiff1d(np.arange(o.classes), members)
            kin = members[_bits(own, 0, 0, len(members) - 1)]
            stranger = strangers[_bits(own, 3, 0, len(strangers) - 1)]
            shapes[:, j] = np.where(labels == index, np.where(which == j, stranger, kin), shapes[:, j])
        textures[:, j] = _paired(own, shapes[:, j], o)
        shapes[j >= counts, j] = textures[j >= counts, j] = -1
    present = np.zeros((n, o.classes + 1), bool)
    np.put_along_axis(present, shapes, True, axis=1)  # −1 falls into the last column
    facts = {"context": labels, "count": counts, "out_of_context": odd, "odd": which}
    return _law(labels, tuple(CONTEXTS), shape=shapes, texture=textures, present=present[:, :-1], **facts)


_TURNED = ("part", "classes", "turn")
_COMMON = (*_TURNED, "palette")
_PAIRED = (*_TURNED, "rho", "palette")
_BOTH = ("shape", "texture")
# conflict takes rho as well, so that one option string serves aligned and conflict; there it changes nothing.
SPLITS: dict[str, Split] = {
    "aligned": Split(
        "shape with its own texture, with probability rho", TEXTURED, ("texture",), _PAIRED, _aligned
    ),
    "conflict": Split("shape with another class's texture", TEXTURED, (), _PAIRED, _conflict),
    "texture_only": Split(
        "a texture that fills the frame", FULL_FRAME, (), ("part", "classes", "palette"), _texture_only
    ),
    "silhouette": Split("black shape on white", SILHOUETTE, (), _COMMON, _bare),
    "sketch": Split("outline strokes only", SKETCH, (), _COMMON, _bare),
    "fine": Split(
        "breeds of a superclass differ by texture", TEXTURED, ("shape",), (*_COMMON, "breeds"), _fine
    ),
    "rotated": Split("turned by 0, 90, 180 or 270 degrees", TEXTURED, _BOTH, _PAIRED, _rotated),
    "coloured": Split("classes coded by hue", TEXTURED, _BOTH, _TURNED, _coloured),
    "scenes": Split("objects that belong together", SCENE, (), (*_PAIRED, "objects", "odd"), _scenes),
    "disjoint": Split(
        "no texture in both train and test", TEXTURED, ("texture",), (*_COMMON, "textures"), _disjoint
    ),
}
