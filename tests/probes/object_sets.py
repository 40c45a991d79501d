"""Small real sets with boxes and masks: one bright square or disc on a dark photograph."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from tests.conftest import photograph

SIDE = 32
CLASSES = ("disc", "square")


def objects(seed: int) -> tuple[np.ndarray, np.ndarray, list[tuple[str, int, int, int, int]]]:
    """An image, its mask (0, 1 disc, 2 square, 255 around the object), and its boxes."""
    rng = np.random.default_rng(seed)
    name = CLASSES[seed % 2]
    side = int(rng.integers(10, 16))
    x, y = (int(v) for v in rng.integers(1, SIDE - side - 1, 2))
    image = Image.fromarray((photograph(rng, SIDE) // 3).astype(np.uint8))
    mask = Image.new("L", (SIDE, SIDE))
    inner = (x, y, x + side - 1, y + side - 1)
    outer = (x - 1, y - 1, x + side, y + side)
    for picture, fill, ring in (
        (image, (250, 240, 90) if name == "disc" else (90, 240, 250), None),
        (mask, CLASSES.index(name) + 1, 255),
    ):
        draw = ImageDraw.Draw(picture)
        shape = draw.ellipse if name == "disc" else draw.rectangle
        if ring is not None:
            shape(outer, fill=ring)
        shape(inner, fill=fill)
    return np.asarray(image), np.asarray(mask), [(name, x, y, x + side, y + side)]


def write_voc(root: Path, count: int = 12, seed: int = 0) -> Path:
    """VOC's layout with SegmentationClass; set train: all but the last third, val: the last third."""
    for folder in ("JPEGImages", "Annotations", "SegmentationClass", "ImageSets/Main"):
        (root / folder).mkdir(parents=True)
    names = [f"{i:03d}" for i in range(count)]
    for i, name in enumerate(names):
        image, mask, boxes = objects(seed + i)
        Image.fromarray(image).save(root / "JPEGImages" / f"{name}.jpg", quality=95)
        Image.fromarray(mask).save(root / "SegmentationClass" / f"{name}.png")
        rows = "".join(
            f"<object><name>{n}</name><difficult>0</difficult><bndbox><xmin>{x0 + 1}</xmin><ymin>{y0 + 1}</ymin>"
            f"<xmax>{x1}</xmax><ymax>{y1}</ymax></bndbox></object>"
            for n, x0, y0, x1, y1 in boxes
        )
        size = f"<size><width>{SIDE}</width><height>{SIDE}</height></size>"
        (root / "Annotations" / f"{name}.xml").write_text(f"<annotation>{size}{rows}</annotation>")
    cut = count - count // 3
    (root / "ImageSets/Main/train.txt").write_text("\n".join(names[:cut]))
    (root / "ImageSets/Main/val.txt").write_text("\n".join(names[cut:]))
    return root


def write_coco(root: Path, count: int = 4) -> Path:
    """Squares as polygons, discs as crowds without one."""
    (root / "images").mkdir(parents=True)
    images, annotations = [], []
    for i in range(count):
        image, _, boxes = objects(i)
        Image.fromarray(image).save(root / "images" / f"{i}.png")
        images.append({"id": i, "file_name": f"{i}.png", "width": SIDE, "height": SIDE})
        for name, x0, y0, x1, y1 in boxes:
            polygon = [x0, y0, x1 - 1, y0, x1 - 1, y1 - 1, x0, y1 - 1]
            crowd = name == "disc"
            annotations.append({"id": len(annotations) + 1, "image_id": i, "category_id": 1 + CLASSES.index(name),
                                "bbox": [x0, y0, x1 - x0, y1 - y0], "iscrowd": int(crowd),
                                "segmentation": {"counts": [], "size": [SIDE, SIDE]} if crowd else [polygon]})  # fmt: skip
    categories = [{"id": 1 + k, "name": n} for k, n in enumerate(CLASSES)]
    file = root / "instances.json"
    file.write_text(json.dumps({"images": images, "annotations": annotations, "categories": categories}))
    return file
