"""Objects pasted into scenes of other images, with a table that says which objects are out of context."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import cv2
import numpy as np
from numpy.typing import NDArray

from cuewise.cues.objects import intersection_over_union
from cuewise.data import BrokenImage, Dataset, Image, open_data
from cuewise.data.annotations.annotated import read_mask
from cuewise.errors import UserError
from cuewise.makers.layout import Layout, MakerTask
from cuewise.makers.maker import Maker, Picture, item_seed
from cuewise.makers.names import Stems, safe_stem
from cuewise.views.boxes_preview import outlined

TRIES = 30  # places that are tried for an object
COVERED = 0.3  # of a scene's own object: more of it under the pasted one, and it is left out of the table
Alpha = NDArray[np.float32]


@dataclass(frozen=True)
class OutOfContext(Maker):
    """Each scene with one object of another image: of a class that is not on it (out of context), or of one that is."""

    name = "out-of-context"
    summary = (
        "objects with masks pasted into scenes of other images, and a table of objects in and out of context"
    )
    inputs = 3  # scene, image of the object, mask
    second = "object_source"
    takes_both = False
    table = "objects.csv"
    columns = ("image", "label", "xmin", "ymin", "xmax", "ymax", "context", "pasted")
    objects: Annotated[str, "DATA: images of single objects, one folder per class"] = ""
    masks: Annotated[str, "DATA: their masks, index images under the same names"] = ""
    value: Annotated[int, "the value of an object's pixels in a mask"] = 1
    share: Annotated[tuple[float, float], "longer side of an object, of the scene's shorter side"] = (
        0.3,
        0.6,
    )
    inside: Annotated[float, "how often an object is of a class that is on the scene, where there is one"] = (
        0.5
    )

    def __post_init__(self) -> None:
        low, high = self.share
        if not 0 < low <= high <= 1 or not 0 <= self.inside <= 1 or not 0 <= self.value <= 255:
            raise UserError(
                f"make out-of-context: share {self.share} must be two rising shares, inside {self.inside} from 0 to 1, "
                f"value {self.value} from 0 to 255"
            )

    def lay(self, dataset: Dataset, seed: int, end: str, both: str = "") -> Layout:
        """One object per scene; which one follows from the set's seed and the scene's name."""
        objects, masks, pairs = self.pairs()
        scenes = [i for i in range(len(dataset)) if len(own_objects(dataset, i))]
        if not scenes:
            raise UserError(
                "make out-of-context: SRC has no annotated objects, which are those in context (docs/data.md)"
            )
        assert objects.labels is not None
        names = np.array(objects.classes)[objects.labels]
        everything = Dataset([*dataset.sources, *objects.sources, *masks.sources])
        first, second = dataset.starts[-1], dataset.starts[-1] + objects.starts[-1]
        rows: list[tuple[int, int, int]] = []
        facts: dict[str, list[Any]] = {"label": [], "out": [], "own": []}
        for i in scenes:
            rng = np.random.default_rng(item_seed(seed, self.name, dataset.name(i)))
            own = own_objects(dataset, i)
            present = np.isin(names[pairs[:, 0]], [label for label, *_ in own])
            known = present if present.any() and rng.random() < self.inside else ~present
            if not known.any():
                known = present  # every class of object is on this scene
            picked, mask = pairs[rng.choice(np.flatnonzero(known))]
            at = i if dataset.selection is None else int(dataset.selection[i])
            rows.append((at, first + picked, second + mask))
            facts["label"].append(str(names[picked]))
            facts["out"].append(bool(names[picked] not in {n for n, *_ in own}))
            facts["own"].append(own)
        stems = Stems(
            lambda k: dataset.name(scenes[k]), len(scenes), lambda stem, k: (f"images/{stem}.{end}",)
        )
        return Layout(everything, np.array(rows, np.int64), stems, (("images/", f".{end}"),), None, facts)

    def pairs(self) -> tuple[Dataset, Dataset, NDArray[np.int64]]:
        """Objects, masks, and N×2: numbers of an object and of its mask."""
        if not self.objects or not self.masks:
            raise UserError(
                "make out-of-context needs objects to paste: --set objects=DATA --set masks=DATA, one folder per class, "
                "masks under the same names"
            )
        objects, masks = open_data(self.objects), open_data(self.masks)
        if objects.labels is None:
            raise UserError(
                f"make out-of-context: objects={self.objects} has no classes; give one folder per class"
            )
        if objects.selection is not None or masks.selection is not None:
            raise UserError(
                "make out-of-context: objects= and masks= take whole sets, without n= or other selections"
            )
        at = {safe_stem(masks.name(k)): k for k in range(len(masks))}
        found = [(k, at[stem]) for k in range(len(objects)) if (stem := safe_stem(objects.name(k))) in at]
        if not found:
            raise UserError(
                f"make out-of-context: no mask has the name of an object ({objects.name(0)!r} and {masks.name(0)!r})"
            )
        return objects, masks, np.array(found, np.int64)

    def draw(self, piece: MakerTask, seed: int) -> Iterator[Picture]:
        own = item_seed(seed, self.name, piece.names[0])
        rng = np.random.default_rng([own, 1])
        cut, alpha = cut_out(piece.image(1), mask_of(piece), self.value, piece.names[2])
        scene = piece.image(0)
        boxes = np.array([box for _, *box in piece.facts.get("own", [])], np.float64).reshape(-1, 4)
        image, box = paste(scene, cut, alpha, self.share, boxes, rng)
        hidden = covered(boxes, box)
        kept = [entry for entry, h in zip(piece.facts.get("own", []), hidden) if h <= COVERED]
        yield Picture(image, own, {"box": box, "kept": kept})

    def table_lines(self, row: Mapping[str, Any]) -> Iterator[Sequence[Any]]:
        """The pasted object, then those of the scene that can still be seen."""
        drawn = row["parameters"]
        yield [row["name"], row["label"], *drawn["box"], "out" if row["out"] else "in", 1]
        for label, *corners in drawn["kept"]:
            yield [row["name"], label, *(f"{v:g}" for v in corners), "in", 0]

    def shown(self, image: Image, row: Mapping[str, Any]) -> Image:
        return outlined(image, np.array([row["parameters"]["box"]], np.float64))


def own_objects(data: Dataset, i: int) -> list[tuple[Any, ...]]:
    """(class, xmin, ymin, xmax, ymax) of the annotated objects of a scene whose class is known, crowds left out."""
    boxes = data.facts(i).boxes
    if boxes is None:
        return []
    rows = boxes.classes >= 0
    if "crowd" in boxes.flags:
        rows &= ~boxes.flags["crowd"]
    return [
        (data.object_classes[k], *map(float, corners))
        for k, corners in zip(boxes.classes[rows].tolist(), boxes.corners[rows].tolist())
    ]


def mask_of(piece: MakerTask) -> NDArray[np.uint8]:
    """The mask as numbers: index images keep theirs, whatever their palette."""
    data = piece.data[2]
    return read_mask(data, piece.names[2]) if isinstance(data, bytes) else data[..., 0]


def cut_out(image: Image, mask: NDArray[np.uint8], value: int, name: str) -> tuple[Image, Alpha]:
    """The smallest rectangle around the object, and how much of each pixel is object."""
    if mask.shape != image.shape[:2]:
        raise BrokenImage(
            name, f"has {mask.shape[1]}×{mask.shape[0]} pixels, its image {image.shape[1]}×{image.shape[0]}"
        )
    ys, xs = np.nonzero(mask == value)
    if len(ys) < 16:
        raise BrokenImage(name, f"has no object: fewer than 16 pixels have the value {value}")
    rows, columns = slice(ys.min(), ys.max() + 1), slice(xs.min(), xs.max() + 1)
    return image[rows, columns], (mask[rows, columns] == value).astype(np.float32)


def paste(
    scene: Image,
    cut: Image,
    alpha: Alpha,
    share: Sequence[float],
    boxes: NDArray[np.float64],
    rng: np.random.Generator,
) -> tuple[Image, list[int]]:
    """The scene with the object where it covers least of the others; left, top, right, bottom of it."""
    height, width = scene.shape[:2]
    scale = float(rng.uniform(share[0], share[1])) * min(height, width) / max(cut.shape[:2])
    size = max(2, round(cut.shape[1] * scale)), max(2, round(cut.shape[0] * scale))
    way = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
    small, soft = cv2.resize(cut, size, interpolation=way), cv2.resize(alpha, size, interpolation=way)
    soft = cv2.GaussianBlur(soft, (0, 0), 0.7)[..., None]
    places = np.stack([rng.integers(0, n - s + 1, TRIES) for n, s in zip((width, height), size)], 1)
    tried = np.concatenate([places, places + np.array(size)], 1).astype(np.float64)
    worst = intersection_over_union(tried, boxes).max(1) if len(boxes) else np.zeros(TRIES)
    left, top = (int(v) for v in places[int(worst.argmin())])
    out = scene.copy()
    region = out[top : top + size[1], left : left + size[0]]
    region[:] = np.rint(soft * small + (1 - soft) * region).astype(np.uint8)
    return out, [left, top, left + size[0], top + size[1]]


def covered(boxes: NDArray[np.float64], box: Sequence[float]) -> NDArray[np.float64]:
    """Share of each box N×4 that lies under another box."""
    other = np.asarray(box, np.float64)
    side = np.minimum(boxes[:, 2:], other[2:]) - np.maximum(boxes[:, :2], other[:2])
    area = (boxes[:, 2:] - boxes[:, :2]).prod(1)
    return np.asarray(side.clip(min=0).prod(1) / np.maximum(area, 1e-9))
