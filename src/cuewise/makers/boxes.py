"""Boxes that may hold objects, for every image of a set, as one table that crops of objects and DATA read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray

from cuewise.cues.objects import Template, propose
from cuewise.cues.objects_fit import fit
from cuewise.data import BrokenImage, Dataset, Image, open_data
from cuewise.errors import UserError
from cuewise.makers.layout import Layout, MakerTask
from cuewise.makers.maker import Maker, Picture
from cuewise.makers.mirror import mirror
from cuewise.makers.state import STATE
from cuewise.registry import TYPED, import_typed
from cuewise.views.box_sources import GIVEN_ROWS, remember
from cuewise.views.boxes_preview import outlined
from cuewise.views.object_crops import GivenBoxes

FITTED_ON = 2000  # images at most that a template is fitted on
SHOWN = 10  # boxes of an image in the preview
WAYS = ("bing", "given")
Found = tuple[NDArray[np.float64], NDArray[np.float64]]  # N×4 corners and N scores, best first


@dataclass(frozen=True)
class BoxTable(Maker):
    """BING, the annotated objects, or a function of the user's own: image H×W×3 → N×4 corners, perhaps with N scores."""

    name = "boxes"
    summary = "boxes that may hold an object, for crops of objects: one table, no images"
    takes_both = False
    draws_images = False
    table = "boxes.csv"
    columns = ("image", "label", "xmin", "ymin", "xmax", "ymax", "score")
    proposer: Annotated[str, "what proposes them: bing, given, or package.module:function"] = "bing"
    k: Annotated[int, "maximum number of boxes per image"] = 50
    area: Annotated[tuple[float, float], "bing: bounds on a box, as shares of the image"] = (0.02, 0.40)
    overlap: Annotated[float, "bing: boxes that overlap a better one by more are left out; 1 keeps all"] = 0.5
    fit: Annotated[str, "DATA with boxes that BING's template is fitted on"] = ""
    template: Annotated[
        str, "bing: a folder of boxes made with --fit, or a file with a template [the shipped one]"
    ] = ""

    def __post_init__(self) -> None:
        if self.proposer not in WAYS and not TYPED.fullmatch(self.proposer):
            raise UserError(f"make boxes --with {self.proposer}: bing, given, or package.module:function")
        if self.k < 1:
            raise UserError(f"make boxes: k={self.k}: must be 1 or more")
        if self.fit and self.template and not self.template.startswith("{"):
            raise UserError("make boxes: --fit makes a template and template= names one: give one of them")
        plain = type(self)
        for key in ("area", "overlap", "fit", "template") if self.proposer != "bing" else ():
            if getattr(self, key) != getattr(plain, key):
                raise UserError(
                    f"make boxes: {key} has no meaning for --with {self.proposer}: it is for bing"
                )

    def prepared(self, seed: int) -> Self:
        """The template itself takes the place of its file, so that every worker has it."""
        if self.fit:
            return replace(self, template=json.dumps(fitted(self.fit, seed).to_dict()))
        return replace(self, template=read_template(self.template)) if self.template else self

    def lay(self, dataset: Dataset, seed: int, end: str, both: str = "") -> Layout:
        """One row of the manifest for each image; where annotated objects are asked for, they travel with it."""
        layout = replace(mirror(dataset, end), variants=())
        if self.proposer != "given":
            return layout
        if not dataset.object_classes:
            raise UserError("make boxes --with given: SRC has no annotated objects (docs/data.md)")
        own = [GivenBoxes().corners(dataset.facts(i)).tolist() for i in range(len(dataset))]
        return replace(layout, facts={**layout.facts, GIVEN_ROWS: own})

    def draw(self, piece: MakerTask, seed: int) -> Iterator[Picture]:
        image = piece.image()
        corners, scores = self.boxes(image, piece)
        rows = [[*box, round(float(s), 4)] for box, s in zip(corners.tolist(), scores)]
        yield Picture(image, seed, {"boxes": rows})

    def boxes(self, image: Image, piece: MakerTask) -> Found:
        """At most k, best first."""
        if self.proposer == "given":
            own = np.array(piece.facts.get(GIVEN_ROWS, []), np.float64).reshape(-1, 4)[: self.k]
            return own, np.zeros(len(own))
        if self.proposer == "bing":
            if min(image.shape[:2]) < 8:
                return np.zeros((0, 4)), np.zeros(0)
            known = loaded(self.template) if self.template else None
            low, high = self.area
            found = propose(image, k=self.k, area=(low, high), overlap=self.overlap, template=known)
            return found.corners.astype(np.float64), found.scores.astype(np.float64)
        corners, scores = checked(asked(self.proposer)(image), image, self.proposer)
        return corners[: self.k], scores[: self.k]

    def table_lines(self, row: Mapping[str, Any]) -> Iterator[Sequence[Any]]:
        """A line per box; an image without any has an empty one, so that it is known to have been looked at."""
        found = row["parameters"]["boxes"]
        if not found:
            yield [row["name"], "", "", "", "", "", ""]
        for *corners, score in found:
            yield [row["name"], "object", *(f"{v:.10g}" for v in corners), f"{score:g}"]

    def shown(self, image: Image, row: Mapping[str, Any]) -> Image:
        return outlined(image, np.array(row["parameters"]["boxes"], np.float64).reshape(-1, 5)[:SHOWN, :4])

    def finished(self, folder: Path, dataset: Dataset) -> None:
        """Proposals as pretraining would make them are found again by it; others are named by their file."""
        if self == type(self)():
            remember(dataset, folder / self.table)


def fitted(spec: str, seed: int) -> Template:
    """A template from the annotated objects of a set."""
    data = open_data(spec)
    if not data.object_classes:
        raise UserError(f"--fit {spec}: it has no annotated objects (docs/data.md says how to give them)")
    images, boxes = [], []
    for i in np.random.default_rng(seed).permutation(len(data))[:FITTED_ON].tolist():
        found = GivenBoxes().corners(data.facts(i))
        try:
            image = data.image(i)
        except BrokenImage:
            continue
        if len(found) and min(image.shape[:2]) >= 8:
            images.append(image)
            boxes.append(found.round().astype(np.int32))
    return fit(images, boxes, np.random.default_rng(seed))


def read_template(place: str) -> str:
    """The template that --fit left in a folder's make.json, or that a file holds."""
    path = Path(place).expanduser()
    try:
        found = json.loads((path / STATE if path.is_dir() else path).read_text(encoding="utf-8"))
        if "settings" in found:
            found = json.loads(found["settings"]["template"])
        return json.dumps(Template.from_dict(found).to_dict())
    except (OSError, ValueError, KeyError, TypeError) as error:
        why = " ".join(str(error).split())
        raise UserError(
            f"make boxes: template={place} has no template ({why}); give a folder that --fit made"
        ) from None


@lru_cache(maxsize=2)
def loaded(text: str) -> Template:
    return Template.from_dict(json.loads(text))


@lru_cache(maxsize=2)
def asked(name: str) -> Callable[[Image], Any]:
    """The user's function."""
    found = import_typed(name, "proposer")
    if not callable(found):
        raise UserError(f"make boxes --with {name}: it is not a function of an image")
    return found


def checked(found: Any, image: Image, name: str) -> Found:
    """What a function gave as N×4 corners inside the image and N scores (0 where it gives none)."""
    corners, scores = (
        (found.corners, found.scores) if hasattr(found, "corners") else found if isinstance(found, tuple) else (found, None)
    )  # fmt: skip
    boxes = np.asarray(corners, np.float64)
    boxes = boxes.reshape(-1, 4) if boxes.size == 0 else boxes
    if boxes.ndim != 2 or boxes.shape[1] != 4 or not np.isfinite(boxes).all():
        raise UserError(f"{name} gave {boxes.shape}: expected N×4 numbers (xmin, ymin, xmax, ymax in pixels)")
    values = np.zeros(len(boxes)) if scores is None else np.asarray(scores, np.float64)
    if values.shape != (len(boxes),):
        raise UserError(f"{name} gave {len(boxes)} boxes and scores of the shape {values.shape}")
    height, width = image.shape[:2]
    boxes = np.clip(boxes, 0, [width, height, width, height])
    kept = (boxes[:, 2] > boxes[:, 0]) & (boxes[:, 3] > boxes[:, 1])
    order = np.argsort(-values[kept], kind="stable")
    return boxes[kept][order], values[kept][order]
