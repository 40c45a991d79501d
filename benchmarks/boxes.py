"""How good and how fast are the object proposals? Recall at IoU 0.5, area of the best ten, milliseconds per image.

    python benchmarks/boxes.py [--voc ZIP] [--coco ZIP] [--fit] [--limit 0]

--voc: an archive in Pascal VOC's layout (its val part is measured), --coco: one in COCO's. --fit prints a template fitted on
the train part of --voc, the one that comes with cuewise. Selective search is measured too where OpenCV has its contributed
modules: run this in a separate environment with opencv-contrib-python. (OpenCV's BING needs model files that its packages lack.)
"""

from __future__ import annotations

import argparse
import json
import time
import xml.etree.ElementTree as ET
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from cuewise.cues.objects import propose, recall
from cuewise.cues.objects_fit import fit
from cuewise.data import decode
from row import row

Pixels = NDArray[np.uint8]
Known = tuple[list[Pixels], list[NDArray[Any]]]
AT = (10, 50, 100, 1000)
OPENCV = 0.12  # seconds of OpenCV's BING for 384×288 pixels on one core
SIZE = (384, 288)


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
    search = cv2.ximgproc.segmentation.createSelectiveSearchSegmentation()
    search.setBaseImage(np.ascontiguousarray(image[..., ::-1]))
    search.switchToSelectiveSearchFast()
    found = np.array(search.process(), np.int64).reshape(-1, 4)
    found[:, 2:] += found[:, :2]
    return found


def measure(what: str, known: Known, propose_boxes: Callable[[Pixels], NDArray[Any]]) -> None:
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
        f"recall {at}; area of the top 10 {np.mean(areas):.2f}; {each:.1f} ms",
    )


def speed(image: Pixels) -> None:
    image = np.ascontiguousarray(cv2.resize(image, SIZE), np.uint8)
    propose(image)
    times = []
    for _ in range(50):
        begin = time.perf_counter()
        propose(image)
        times.append(time.perf_counter() - begin)
    best = min(times)
    row("object proposals, 384×288", "OpenCV's BING, 120 ms", f"{1000 * best:.1f} ms, {OPENCV / best:.0f} ×")


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
    for name, (images, boxes) in sets.items():
        known = (images[: given.limit or None], boxes[: given.limit or None])
        for what, options in settings.items():
            measure(f"{name}, {what}", known, lambda image, o=options: propose(image, k=1000, **o).corners)
        if hasattr(cv2, "ximgproc"):
            measure(f"{name}, OpenCV's selective search", known, selective_search)
        speed(images[0])
    if not sets:
        speed(np.random.default_rng(0).integers(0, 256, (288, 384, 3), dtype=np.uint8))


if __name__ == "__main__":
    main()
