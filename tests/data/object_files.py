"""Small sets with objects in the formats that people have, written by the tests."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

from image_files import encoded, pixels

# image (32 × 24) → objects: class, left, top, right, bottom in half-open pixels
OBJECTS: dict[str, list[tuple[str, int, int, int, int]]] = {
    "a": [("cat", 0, 0, 10, 12), ("dog", 5, 6, 32, 24)],
    "b": [("cat", 3, 4, 20, 20)],
    "c": [],
    "d": [("dog", 1, 1, 9, 9), ("dog", 10, 1, 30, 20), ("bird", 2, 12, 8, 20)],
}


def voc_xml(objects: list[tuple[str, int, int, int, int]], size: tuple[int, int] = (32, 24)) -> str:
    """An annotation file as VOC writes it: corners from 1, the last pixel included."""
    rows = "".join(
        f"<object><name>{n}</name><difficult>0</difficult><bndbox><xmin>{x0 + 1}</xmin><ymin>{y0 + 1}</ymin>"
        f"<xmax>{x1}</xmax><ymax>{y1}</ymax></bndbox></object>"
        for n, x0, y0, x1, y1 in objects
    )
    return f"<annotation><size><width>{size[0]}</width><height>{size[1]}</height></size>{rows}</annotation>"


def write_images(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number, name in enumerate(OBJECTS):
        (folder / f"{name}.jpg").write_bytes(encoded(pixels(seed=number)))


def write_voc(root: Path) -> Path:
    """JPEGImages, Annotations, and the sets train (a, b) and val (c, d)."""
    write_images(root / "JPEGImages")
    (root / "Annotations").mkdir()
    (root / "ImageSets" / "Main").mkdir(parents=True)
    for name, objects in OBJECTS.items():
        (root / "Annotations" / f"{name}.xml").write_text(voc_xml(objects))
    (root / "ImageSets" / "Main" / "train.txt").write_text("a\nb\n")
    (root / "ImageSets" / "Main" / "val.txt").write_text("c\nd\n")
    return root


def write_coco(root: Path) -> Path:
    """images/ and annotations/instances.json; returns the file."""
    write_images(root / "images")
    names = ["bird", "cat", "dog"]
    images = [{"id": i, "file_name": f"{n}.jpg", "width": 32, "height": 24} for i, n in enumerate(OBJECTS)]
    annotations = [
        {
            "id": 100 * i + k,
            "image_id": i,
            "category_id": 10 + names.index(n),
            "bbox": [x0, y0, x1 - x0, y1 - y0],
            "iscrowd": 0,
        }
        for i, objects in enumerate(OBJECTS.values())
        for k, (n, x0, y0, x1, y1) in enumerate(objects)
    ]
    content = {
        "images": images,
        "annotations": annotations,
        "categories": [{"id": 10 + k, "name": n} for k, n in enumerate(names)],
    }
    file = root / "annotations" / "instances.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(content))
    return file


def write_yolo(root: Path) -> Path:
    """data.yaml, images/val and labels/val; returns the file."""
    names = ["bird", "cat", "dog"]
    write_images(root / "images" / "val")
    (root / "labels" / "val").mkdir(parents=True)
    for image, objects in OBJECTS.items():
        lines = [
            f"{names.index(n)} {(x0 + x1) / 64} {(y0 + y1) / 48} {(x1 - x0) / 32} {(y1 - y0) / 24}"
            for n, x0, y0, x1, y1 in objects
        ]
        (root / "labels" / "val" / f"{image}.txt").write_text("\n".join(lines))
    (root / "data.yaml").write_text("val: images/val\nnames: [bird, cat, dog]\n")
    return root / "data.yaml"


def write_table(root: Path) -> Path:
    """boxes.csv and images/; returns the file. The bird is out of context."""
    write_images(root / "images")
    lines = ["image,label,xmin,ymin,xmax,ymax,context"]
    for image, objects in OBJECTS.items():
        lines += [f"{image}.jpg,{n},{x0},{y0},{x1},{y1},{'out' if n == 'bird' else ''}"
                  for n, x0, y0, x1, y1 in objects] or [f"{image}.jpg,,,,,,"]  # fmt: skip
    (root / "boxes.csv").write_text("\n".join(lines))
    return root / "boxes.csv"


def zipped(root: Path, file: Path, prefix: str = "") -> Path:
    """All files below a folder in a zip."""
    with zipfile.ZipFile(file, "w") as out:
        for path in sorted(root.rglob("*")):
            if path.is_file():
                out.write(path, prefix + path.relative_to(root).as_posix())
    return file
