"""How good and how fast are the object proposals? Recall at IoU 0.5, area of the best ten, milliseconds per image.

    python benchmarks/boxes.py [--voc ZIP] [--coco ZIP] [--fit] [--limit 0]

--voc: an archive in Pascal VOC's layout (its val part is measured), --coco: one in COCO's. --fit prints a template fitted on
the train part of --voc, the one that comes with cuewise. OpenCV's BING and selective search are measured too, in the same run,
where OpenCV has its contributed modules:

    pip install --target contrib --no-deps opencv-contrib-python-headless
    PYTHONPATH=contrib python benchmarks/boxes.py --voc ZIP --coco ZIP

OpenCV's packages come without the trained model of its BING, so it runs with the numbers of our template, in its own format
and at its own window sizes (16 … 512). Its time does not depend on those numbers.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import tempfile
import time
import xml.etree.ElementTree as ET
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from cuewise.cues.objects import SIDES, default_template, propose, recall
from cuewise.cues.objects_fit import fit
from cuewise.data import decode
from row import row

Pixels = NDArray[np.uint8]
Known = tuple[list[Pixels], list[NDArray[Any]]]
AT = (10, 50, 100, 1000)
SIZE = (384, 288)
COLOURS = ("MAXBGR", "HSV", "I")  # OpenCV proposes three times, in three colour spaces
Propose = Callable[[Pixels], NDArray[Any]]


def voc(file: Path, part: str) -> Known:
    """Images and boxes of one part."""
    z = zipfile.ZipFile(file)
    images, boxes = [], []
    for name in z.read(f"ImageSets/Main/{part}.txt").decode().split():
        things = ET.fromstring(z.read(f"Annotations/{name}.xml")).iter("object")
        rows = [
            [float(t.findtext(f"bndbox/{k}", "0")) for k in ("xmin", "ymin", "xmax", "ymax")] for t in things
        ]
        box = np.array(rows, np.float64).reshape(-1, 4)
        box[:, :2] -= 1  # VOC counts pixels from 1
        images.append(decode(z.read(f"JPEGImages/{name}.jpg"), name))
        boxes.append(box)
    return images, boxes


def coco(file: Path) -> Known:
    """Images and boxes of both parts."""
    z = zipfile.ZipFile(file)
    images, boxes = [], []
    for part in ("train", "val"):
        table = json.loads(z.read(f"annotations/instances_{part}2017.json"))
        by_image: dict[int, list[Any]] = {}
        for a in table["annotations"]:
            by_image.setdefault(a["image_id"], []).append(a["bbox"])
        for image in table["images"]:
            box = np.array(by_image.get(image["id"], []), np.float64).reshape(-1, 4)
            box[:, 2:] += box[:, :2]
            images.append(decode(z.read(f"{part}2017/{image['file_name']}"), image["file_name"]))
            boxes.append(box)
    return images, boxes


def selective_search(image: Pixels) -> NDArray[Any]:
    """OpenCV's, in its fast mode; xmin, ymin, xmax, ymax."""
    search = vars(cv2)["ximgproc"].segmentation.createSelectiveSearchSegmentation()
    search.setBaseImage(np.ascontiguousarray(image[..., ::-1]))
    search.switchToSelectiveSearchFast()
    found = np.array(search.process(), np.int64).reshape(-1, 4)
    found[:, 2:] += found[:, :2]
    return found


def opencv_bing(folder: Path) -> Propose:
    """OpenCV's BING with our template; model files are written to the folder."""
    template = default_template()
    rows = [(SIDES.index(h) * len(SIDES) + SIDES.index(w), v, t) for (w, h), (v, t) in template.sizes.items()]
    numbers = {
        "wS1": template.weights.astype(np.float32),
        "wS2": np.array([[v, t] for _, v, t in rows], np.float32),
        "idx": np.array([[r] for r, _, _ in rows], np.int32),
    }
    for colour in COLOURS:
        for kind, values in numbers.items():
            name = f"ObjNessB2W8{colour}"
            file = cv2.FileStorage(str(folder / f"{name}.{kind}.yml.gz"), cv2.FILE_STORAGE_WRITE)
            file.write(name, np.asarray(values))
            file.release()
    bing = vars(cv2)["saliency"].ObjectnessBING.create()
    bing.setTrainingPath(str(folder))
    bing.setBBResDir(str(folder / "results"))

    def boxes(image: Pixels) -> NDArray[Any]:
        with silent():
            done, found = bing.computeSaliency(np.ascontiguousarray(image[..., ::-1]))
        if not done:
            return np.zeros((0, 4))
        return np.asarray(found, np.float64).reshape(-1, 4) - np.array([1, 1, 0, 0])  # the best first

    return boxes


@contextlib.contextmanager
def silent() -> Iterator[None]:
    """OpenCV prints its times for every image, from C."""
    kept, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)


def measure(what: str, known: Known, propose_boxes: Propose) -> None:
    images, truth = known
    begin = time.perf_counter()
    found = [propose_boxes(image) for image in images]
    each = 1000 * (time.perf_counter() - begin) / len(images)
    areas = [
        ((f[:10, 2] - f[:10, 0]) * (f[:10, 3] - f[:10, 1])).mean() / (i.shape[0] * i.shape[1])
        for f, i in zip(found, images)
        if len(f)
    ]
    at = ", ".join(f"@{k} {recall(found, truth, k):.3f}" for k in AT)
    row(
        what,
        f"{sum(map(len, truth))} boxes",
        each,
        "ms",
        note=f"recall {at}; area of the top 10 {np.mean(areas):.2f}",
    )


def best_of(propose_boxes: Propose, image: Pixels, times: int) -> float:
    """Seconds of the fastest call."""
    propose_boxes(image)
    found = []
    for _ in range(times):
        begin = time.perf_counter()
        propose_boxes(image)
        found.append(time.perf_counter() - begin)
    return min(found)


def speed(image: Pixels, theirs: Propose | None) -> None:
    """One image of 384×288 on one core, ours and OpenCV's by turns in one process."""
    image = np.ascontiguousarray(cv2.resize(image, SIZE), np.uint8)
    ours = best_of(lambda x: propose(x).corners, image, 50)
    if theirs is None:
        row("object proposals, 384×288", "OpenCV's BING: not in this OpenCV", 1000 * ours, "ms")
        return
    other = best_of(theirs, image, 10)
    ours = min(ours, best_of(lambda x: propose(x).corners, image, 50))
    row(
        "object proposals, 384×288",
        f"OpenCV's BING, {1000 * other:.0f} ms",
        other / ours,
        goal="≥ 20",
        note=f"{1000 * ours:.1f} ms",
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--voc", type=Path)
    parser.add_argument("--coco", type=Path)
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--limit", type=int, default=0)
    given = parser.parse_args()
    cv2.setNumThreads(1)
    if given.fit and given.voc:
        print(json.dumps(fit(*voc(given.voc, "train"), np.random.default_rng(0)).to_dict()))
    sets = {"VOC val": voc(given.voc, "val")} if given.voc else {}
    sets |= {"COCO": coco(given.coco)} if given.coco else {}
    settings: dict[str, dict[str, Any]] = {
        "plain": {"area": (0.0, 1.0), "overlap": 1.0},
        "suppression at 0.5": {"area": (0.0, 1.0)},
        "default (2–40 % of the image)": {},
    }
    with tempfile.TemporaryDirectory() as folder:
        theirs = opencv_bing(Path(folder)) if hasattr(cv2, "saliency") else None
        for name, (images, boxes) in sets.items():
            known = (images[: given.limit or None], boxes[: given.limit or None])
            for what, options in settings.items():

                def proposed(image: Pixels, options: dict[str, Any] = options) -> NDArray[Any]:
                    return propose(image, k=1000, **options).corners

                measure(f"{name}, {what}", known, proposed)
            if theirs is not None:
                measure(f"{name}, OpenCV's BING with our template", known, theirs)
            if hasattr(cv2, "ximgproc"):
                measure(f"{name}, OpenCV's selective search", known, selective_search)
        noise = np.random.default_rng(0).integers(0, 256, (288, 384, 3), dtype=np.uint8)
        speed(next(iter(sets.values()))[0][0] if sets else noise, theirs)


if __name__ == "__main__":
    main()
