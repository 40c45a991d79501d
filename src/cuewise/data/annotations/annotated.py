"""Images with annotated objects: what all formats share, and the checks that every annotation passes."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import isfinite
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image as Pillow

from cuewise.data.decode import BrokenImage, Image, check_size, decode
from cuewise.data.index import Skipped
from cuewise.data.sample import Boxes, Facts, Mask
from cuewise.data.source import Listed, one_source
from cuewise.data.unusable import CUT, LEFT_OUT
from cuewise.errors import UserError

SLACK = 1.0  # pixels by which a rounded box may reach beyond its image without being listed
MOST = 0.9  # share of a set's boxes that must lie in 0…1 to ask whether all are shares of the image
LEAST = 0.99  # pixels of a box's width and height: one, less what rounded shares lose
MOST_PIXELS = 1 << 24  # of a side, and of a coordinate
MOST_MASKED = 254  # classes that fit into a mask beside background (0) and what is not counted (VOID)
VOID = 255


class Box(NamedTuple):
    """One annotated object: class name, corners (left, top, right, bottom; pixels, half open), and its flags."""

    label: str | None
    corners: tuple[float, float, float, float]
    flags: tuple[str, ...] = ()
    outline: tuple[tuple[float, ...], ...] = ()  # polygons x0, y0, x1, y1, …


class LostBox(NamedTuple):
    """A box that is left out, or cut to its image; label: its class, where that is unknown."""

    path: str
    why: str
    fate: str = LEFT_OUT
    label: str = ""

    @property
    def about(self) -> dict[str, str]:
        """What a fingerprint says of it beside `path` and `why`."""
        return {"box": self.fate} | ({"class": self.label} if self.label else {})


@dataclass
class Record:
    """One image and its objects; size (width, height) as the annotation states it; relative: corners are shares of it."""

    image: str
    boxes: list[Box]
    size: tuple[int, int] | None = None
    relative: bool = False


@dataclass
class Packed:
    """The objects of all images in flat arrays, which forked and started workers share cheaply."""

    starts: NDArray[np.int64]  # N+1: the objects of image i are starts[i]:starts[i + 1]
    corners: NDArray[np.float32]
    classes: NDArray[np.int64]
    flags: dict[str, NDArray[np.bool_]]
    outlines: dict[int, list[NDArray[np.int32]]] = field(default_factory=dict)  # object → polygons


class Annotated:
    """A source of images with boxes: `images` holds the pixels, `records` say what is on them.

    classes  the names that annotations may use, in order; None: the names that occur, sorted
    masks    index images (one class per pixel) named as the images, if there are any
    """

    labels = None
    classes: tuple[str, ...] = ()
    as_stored = False  # an image must have the size that its annotation says

    def __init__(
        self,
        kind: str,
        spec: str,
        images: Listed,
        records: Iterable[Record],
        *,
        classes: Sequence[str] | None = None,
        skipped: Iterable[Skipped | LostBox] = (),
        masks: Listed | None = None,
    ) -> None:
        self.kind, self.spec, self.images, self.masks = kind, spec, images, masks
        self.columns: dict[str, NDArray[Any]] = {}
        checked = Checked(images, [*skipped])
        kept = [found for record in records if (found := checked.record(record, classes)) is not None]
        kept.sort(key=lambda pair: pair[0])
        names = sorted({b.label for _, r in kept for b in r.boxes if b.label}) if classes is None else classes
        self.object_classes = tuple(names)
        self.rows = np.array([row for row, _ in kept], np.int64)
        self.sizes = np.array([r.size for _, r in kept], np.int64).reshape(-1, 2)
        self.objects = pack([r.boxes for _, r in kept], self.object_classes)
        self.skipped = [*checked.skipped, *(s for s in images.index.skipped if s.path in checked.seen)]
        self.doubt = checked.doubt(sized=kind.startswith("coco"))
        self._masks = {stem(masks.name(i)): i for i in range(len(masks))} if masks is not None else {}

    def __len__(self) -> int:
        return len(self.rows)

    def name(self, i: int) -> str:
        return self.images.name(int(self.rows[i]))

    def read(self, i: int) -> bytes:
        return self.images.read(int(self.rows[i]))

    def image(self, i: int) -> Image:
        """H×W×3; an image of another size than its annotation says is broken: its boxes would lie elsewhere."""
        pixels = decode(self.read(i), self.name(i))
        height, width = pixels.shape[:2]
        if (width, height) != tuple(self.sizes[i]):
            stated = "×".join(map(str, self.sizes[i]))
            raise BrokenImage(self.name(i), f"has {width}×{height} pixels, its annotation says {stated}")
        return pixels

    def facts(self, i: int) -> Facts:
        """Boxes, the classes that are on the image (objects marked difficult do not count), and the mask."""
        own = slice(int(self.objects.starts[i]), int(self.objects.starts[i + 1]))
        flags = {name: flag[own] for name, flag in self.objects.flags.items()}
        boxes = Boxes(self.objects.corners[own], self.objects.classes[own], flags)
        counted = boxes.classes[~flags["difficult"]] if "difficult" in flags else boxes.classes
        labels = np.zeros(len(self.object_classes), bool)
        labels[counted] = True
        return Facts(labels=labels, boxes=boxes, masked=partial(self.mask, i))

    def mask(self, i: int) -> Mask | None:
        """The class of each pixel: from an index image, or drawn from outlines (0 background, class + 1, VOID in the box
        of an object without outline)."""
        at = self._masks.get(stem(self.name(i)))
        if self.masks is not None and at is not None:
            return read_mask(self.masks.read(at), self.masks.name(at))
        first, last = self.objects.starts[i], self.objects.starts[i + 1]
        drawn = [k for k in range(first, last) if k in self.objects.outlines]
        if not self.objects.outlines or len(self.object_classes) > MOST_MASKED:
            return None
        width, height = self.sizes[i]
        check_size(int(width), int(height), self.name(i))
        mask = np.zeros((height, width), np.uint8)
        corners = self.objects.corners
        area = (corners[:, 2] - corners[:, 0]) * (corners[:, 3] - corners[:, 1])
        for k in set(range(first, last)) - set(drawn):  # a crowd, or an object without outline: unknown
            left, top, right, bottom = corners[k].round().astype(int)
            mask[top:bottom, left:right] = VOID
        for k in sorted(drawn, key=lambda k: -float(area[k])):  # small objects lie in front of large ones
            cv2.fillPoly(mask, self.objects.outlines[k], int(self.objects.classes[k]) + 1)
        return mask

    def fingerprint(self) -> dict[str, Any]:
        """Count, hash of names and objects, and everything that was left out and why.

        An entry about a box has `box` ("left out" or "cut") and, of an unknown class, its `class`; `doubt` stands in the first
        of them.
        """
        digest = hashlib.sha256("\0".join(self.name(i) for i in range(len(self))).encode("utf-8", "replace"))
        for array in (self.objects.starts, self.objects.corners, self.objects.classes):
            digest.update(np.ascontiguousarray(array).data)
        digest.update("\0".join(self.object_classes).encode())
        found, objects = digest.hexdigest(), len(self.objects.classes)
        listed = sorted(self.skipped, key=lambda s: s[:2])
        plain = [Skipped(s.path, s.why) for s in listed]
        out = one_source(self.spec, self.kind, len(self), found, plain, objects=objects)
        boxes = [(entry, s.about) for entry, s in zip(out["skipped"], listed) if isinstance(s, LostBox)]
        for entry, about in boxes:
            entry.update(about)
        if boxes and self.doubt:
            boxes[0][0]["doubt"] = self.doubt
        return out


class Checked:
    """Finds the image of each record and checks its boxes; what cannot be used is listed in `skipped`."""

    def __init__(self, images: Listed, skipped: list[Skipped | LostBox]) -> None:
        self.images, self.skipped = images, skipped
        self.counted = self.shares = self.swapped = 0  # boxes with an area; in 0…1; that fit as two corners
        self.at = {images.name(i): i for i in range(len(images))}
        self.broken = {s.path for s in images.index.skipped}
        self.seen: set[str] = set()  # images that a record names

    def record(self, record: Record, classes: Sequence[str] | None) -> tuple[int, Record] | None:
        """The image's row and the record with usable boxes in pixels; None where the image cannot be used."""
        row = self.at.get(record.image)
        if record.image in self.seen:
            self.skip(record.image, "annotated twice: the first annotation is used")
            return None
        self.seen.add(record.image)
        if row is None:
            if record.image not in self.broken:  # those are listed with the images
                self.skip(record.image, "annotated, but there is no such image")
            return None
        try:
            size = record.size or measured_size(self.images.read(row), record.image)
        except BrokenImage as error:
            self.skip(record.image, error.why)
            return None
        boxes = [self.box(record, box, number, size, classes) for number, box in enumerate(record.boxes, 1)]
        return row, Record(record.image, [box for box in boxes if box is not None], size)

    def box(
        self, record: Record, box: Box, number: int, size: tuple[int, int], classes: Sequence[str] | None
    ) -> Box | None:
        """The box in pixels, inside the image; None where it is no box."""
        name = f"{record.image}#{number}"
        if not record.relative:
            self.count(box.corners, size)
        if not box.label:
            self.lose(name, "box without a class")
            return None
        if classes is not None and box.label not in classes:
            self.lose(name, f"unknown class {box.label!r}", label=box.label)
            return None
        corners = np.array(box.corners, np.float64)
        if not np.isfinite(corners).all():
            self.lose(name, f"box with corners {box.corners} that are no numbers")
            return None
        limit = np.array([*size, *size], np.float64)
        corners = corners * limit if record.relative else corners
        inside = np.clip(corners, 0, limit)
        if (corners[2:] <= corners[:2]).any():
            self.lose(name, f"box of zero area {_shown(corners)}")
            return None
        sides = inside[2:] - inside[:2]
        if (sides < LEAST).any():
            tiny = (sides > 0).all() and (corners[2:] - corners[:2] < LEAST).any()
            small = f"box {_shown(corners, 3)} is below one pixel in width or height"
            outside = f"box {_shown(corners)} lies outside the image of {size[0]}×{size[1]}"
            self.lose(name, small if tiny else outside)
            return None
        if np.abs(inside - corners).max() > SLACK:
            why = f"box {_shown(corners)} reaches outside the image of {size[0]}×{size[1]}: cut to it"
            self.lose(name, why, CUT)
        left, top, right, bottom = inside.tolist()
        return box._replace(corners=(left, top, right, bottom))

    def count(self, corners: tuple[float, float, float, float], size: tuple[int, int]) -> None:
        """Count a box for `doubt`."""
        left, top, right, bottom = corners
        width, height = right - left, bottom - top
        if not all(map(isfinite, corners)) or width <= 0 or height <= 0:
            return
        self.counted += 1
        self.shares += min(left, top) >= 0 and max(left, top, width, height) <= 1
        outside = right > size[0] + SLACK or bottom > size[1] + SLACK
        self.swapped += outside and left < width <= size[0] + SLACK and top < height <= size[1] + SLACK

    def doubt(self, sized: bool) -> str:
        """What the boxes look like where they cannot be meant so; sized: they are x, y, width, height."""
        if self.counted and self.shares >= MOST * self.counted:
            number = "all" if self.shares == self.counted else f"{self.shares:,} of {self.counted:,}"
            return f"{number} boxes lie in 0…1: are they shares of the image instead of pixels?"
        if sized and 2 * self.swapped > self.counted:
            return "are the boxes xmin,ymin,xmax,ymax instead of x,y,width,height?"
        return ""

    def skip(self, name: str, why: str) -> None:
        self.skipped.append(Skipped(name, why))

    def lose(self, name: str, why: str, fate: str = LEFT_OUT, label: str = "") -> None:
        self.skipped.append(LostBox(name, why, fate, label))


def stated_size(width: Any, height: Any) -> tuple[int, int] | None:
    """The size that an annotation states; None where it is no size of an image."""
    usable = all(isinstance(n, int | float) and 1 <= n < MOST_PIXELS for n in (width, height))
    return (int(width), int(height)) if usable else None


def pack(boxes: list[list[Box]], classes: tuple[str, ...]) -> Packed:
    """Objects of all images in flat arrays."""
    flat = [box for own in boxes for box in own]
    number = {name: k for k, name in enumerate(classes)}
    starts = np.cumsum([0, *map(len, boxes)], dtype=np.int64)
    names = sorted({flag for box in flat for flag in box.flags})
    return Packed(
        starts,
        np.array([box.corners for box in flat], np.float32).reshape(-1, 4),
        np.array([number[box.label or ""] for box in flat], np.int64),
        {name: np.array([name in box.flags for box in flat], bool) for name in names},
        {k: [_points(p) for p in box.outline] for k, box in enumerate(flat) if box.outline},
    )


def _points(polygon: tuple[float, ...]) -> NDArray[np.int32]:
    return np.round(np.array(polygon, np.float64).reshape(-1, 2)).astype(np.int32)


def measured_size(data: bytes, name: str) -> tuple[int, int]:
    """Width and height of the upright image, from its header."""
    try:
        with Pillow.open(io.BytesIO(data)) as image:
            width, height = image.size
            turned = image.getexif().get(0x0112, 1) in (5, 6, 7, 8)
    except Exception as error:  # Pillow's readers raise whatever the damaged bytes lead them into
        raise BrokenImage(name, f"cannot be decoded ({' '.join(str(error).split())})") from None
    return (height, width) if turned else (width, height)


def read_mask(data: bytes, name: str, modes: tuple[str, ...] = ("P", "L")) -> Mask:
    """The pixel values of an index image, palette or grey; an image of none of `modes` is converted to the last of them."""
    try:
        with Pillow.open(io.BytesIO(data)) as image:
            check_size(*image.size, name)
            plain = image if image.mode in modes else image.convert(modes[-1])
            return np.asarray(plain, np.uint8).copy()
    except BrokenImage:
        raise
    except Exception as error:  # as above
        raise BrokenImage(name, f"mask cannot be read ({' '.join(str(error).split())})") from None


def usable(source: Annotated) -> Annotated:
    """The set, or an error where nothing of it can be used."""
    if len(source):
        return source
    listed = source.fingerprint()["skipped"]
    skipped = [s for s in listed if "box" not in s] or listed
    first = f" (the first is {skipped[0]['path']}: {skipped[0]['why']})" if skipped else ""
    raise UserError(f"{source.spec}: no annotated image can be used, {len(skipped)} were left out{first}")


def _shown(corners: NDArray[np.float64], digits: int = 1) -> str:
    return "(" + ", ".join(f"{c:g}" for c in np.round(corners, digits)) + ")"


def stem(name: str) -> str:
    """A name without its ending."""
    return name.rpartition(".")[0] if "." in name.rpartition("/")[2] else name
