"""The readers of benchmarks/fuzz.py: for each a valid file, how it is changed, and what reads it."""

from __future__ import annotations

import io
import json
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image as Pillow

from fuzz_changes import mutated, mutated_json, mutated_text

Change = Callable[[bytes, np.random.Generator], bytes]
BOXES = {"a": [("cat", 0, 0, 10, 12), ("dog", 5, 6, 32, 24)], "b": [("cat", 3, 4, 20, 20)], "c": []}


@dataclass(frozen=True)
class Reader:
    """A kind of file: a valid one, how it is changed, and what reads it."""

    seed: bytes
    change: Change
    read: Callable[[bytes], None]


def pictures() -> dict[str, bytes]:
    """Small images of several kinds, by name."""
    rng = np.random.default_rng(0)
    found = {}
    for k, form in enumerate(("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP")):
        out = io.BytesIO()
        Pillow.fromarray(rng.integers(0, 256, (9, 12, 3), dtype=np.uint8)).save(out, form)
        found[f"{'ab'[k % 2]}/{k}.{form.lower()}"] = out.getvalue()
    return found


def zip_seed() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for k, (name, data) in enumerate(pictures().items()):
            with file.open(zipfile.ZipInfo(name), "w", force_zip64=k % 3 == 0) as member:
                member.write(data)
            file.filelist[-1].compress_type = zipfile.ZIP_STORED
        file.writestr("a/deflated.png", pictures()["a/0.png"], zipfile.ZIP_DEFLATED)
    return out.getvalue()


def tar_seed() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as file:
        for k, (name, data) in enumerate(pictures().items()):
            member = tarfile.TarInfo(name if k % 2 else f"{'long' * 40}/{name}")
            member.size = len(data)
            if k == 3:
                member.pax_headers = {"comment": "ä"}
            file.addfile(member, io.BytesIO(data))
    return out.getvalue()


def look_at(spec: Path | str) -> None:
    """Open a set and look at every image and at all that is known of it; broken images are skipped."""
    from cuewise.data import BrokenImage, open_data

    found = open_data(spec)
    for i in range(len(found)):
        try:
            found.image(i)
            found.facts(i)
        except BrokenImage:
            continue
    found.fingerprint()


def archive(name: str, seed: Callable[[], bytes]) -> Callable[[Path], Reader]:
    def reader(place: Path) -> Reader:
        def read(data: bytes) -> None:
            (place / name).write_bytes(data)
            look_at(place / name)

        return Reader(seed(), mutated, read)

    return reader


def write_images(folder: Path) -> None:
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for name in BOXES:
        Pillow.fromarray(rng.integers(0, 256, (24, 32, 3), dtype=np.uint8)).save(folder / f"{name}.jpg")


def annotated(place: Path, file: Path, text: str, change: Change, spec: Path) -> Reader:
    """A set whose one file of annotations is changed."""
    file.parent.mkdir(parents=True, exist_ok=True)

    def read(data: bytes) -> None:
        file.write_bytes(data)
        look_at(spec)

    return Reader(text.encode(), change, read)


def voc(place: Path) -> Reader:
    root = place / "deep" / "in" / "voc"  # so that `../..` leads nowhere large
    write_images(root / "JPEGImages")
    objects = "".join(
        f"<object><name>{n}</name><difficult>0</difficult><bndbox><xmin>{x0 + 1}</xmin><ymin>{y0 + 1}</ymin>"
        f"<xmax>{x1}</xmax><ymax>{y1}</ymax></bndbox></object>"
        for n, x0, y0, x1, y1 in BOXES["a"]
    )
    text = f"<annotation><size><width>32</width><height>24</height></size>{objects}</annotation>"
    (root / "Annotations").mkdir()
    (root / "Annotations" / "b.xml").write_text(text)
    return annotated(place, root / "Annotations" / "a.xml", text, mutated_text, root)


def coco(place: Path) -> Reader:
    root, names = place / "deep" / "in" / "coco", ["bird", "cat", "dog"]
    write_images(root / "images")
    rows = [
        {"id": 10 * i + k, "image_id": i, "category_id": names.index(n), "bbox": [x0, y0, x1 - x0, y1 - y0],
         "iscrowd": 0, "segmentation": [[x0, y0, x1, y0, x1, y1]]}
        for i, own in enumerate(BOXES.values())
        for k, (n, x0, y0, x1, y1) in enumerate(own)
    ]  # fmt: skip
    content = {
        "images": [
            {"id": i, "file_name": f"{n}.jpg", "width": 32, "height": 24} for i, n in enumerate(BOXES)
        ],
        "annotations": rows,
        "categories": [{"id": k, "name": n} for k, n in enumerate(names)],
    }
    file = root / "images" / "instances.json"
    return annotated(place, file, json.dumps(content), mutated_json, file)


def yolo(place: Path) -> Reader:
    """data.yaml and the labels of one image, in one text that is cut at a line of its own."""
    root, cut = place / "deep" / "in" / "yolo", b"\n---- labels\n"
    write_images(root / "images" / "val")
    (root / "labels" / "val").mkdir(parents=True)
    (root / "labels" / "val" / "b.txt").write_text("0 0.5 0.5 0.4 0.4\n")
    seed = (
        b"val: images/val\nnames: [bird, cat, dog]\n"
        + cut
        + b"1 0.5 0.5 0.2 0.3\n2 0.1 0.1 0.4 0.1 0.4 0.4\n"
    )

    def read(data: bytes) -> None:
        about, _, labels = data.partition(cut)
        (root / "data.yaml").write_bytes(about)
        (root / "labels" / "val" / "a.txt").write_bytes(labels)
        look_at(f"{root / 'data.yaml'}?split=val")

    return Reader(seed, mutated_text, read)


def table(place: Path) -> Reader:
    root = place / "deep" / "in" / "table"
    write_images(root)
    lines = ["image,label,xmin,ymin,xmax,ymax,context"]
    lines += [f"{i}.jpg,{','.join(map(str, box))},out" for i, own in BOXES.items() for box in own]
    return annotated(
        place, root / "boxes.csv", "\n".join([*lines, "c.jpg,,,,,,"]), mutated_text, root / "boxes.csv"
    )


def run_folder(place: Path) -> Path:
    """An encoder without training."""
    from cuewise.encoders import load_encoder
    from cuewise.encoders.load import save_encoder

    place.mkdir(parents=True)
    save_encoder(load_encoder("cuewise/resnet-tiny?width=8", size=32), place / "encoder.safetensors", step=1)
    return place


def encoder_reader(place: Path) -> Reader:
    from cuewise.encoders import load_encoder

    run = run_folder(place / "run")

    def read(data: bytes) -> None:
        (run / "encoder.json").write_bytes(data)
        load_encoder(str(run))

    return Reader((run / "encoder.json").read_bytes(), mutated_json, read)


def audit_reader(place: Path) -> Reader:
    import cuewise

    run = run_folder(place / "run")
    sets: dict[str, Any] = {"train": ["shapes:aligned?n=40&size=32"], "test": ["shapes:aligned?n=20&size=32"]}
    cuewise.audit(str(run), out=str(place / "one"), only="accuracy,shape_bias", limit=10, workers="0", **sets)
    shutil.copytree(place / "one", place / "two")

    def read(data: bytes) -> None:
        (place / "two" / "audit.json").write_bytes(data)
        shutil.rmtree(place / "out", ignore_errors=True)
        cuewise.compare(str(place / "one"), str(place / "two"), out=str(place / "out"))

    return Reader((place / "one" / "audit.json").read_bytes(), mutated_json, read)


def score_reader(place: Path) -> Reader:
    """A table of decisions made elsewhere."""
    import cuewise

    lines = ["subject,image,shape,texture,response"]
    lines += [
        f"s{k % 2},{k}.png,{'cat' if k % 3 else 'dog'},car,{'cat' if k % 2 else 'car'}" for k in range(12)
    ]

    def read(data: bytes) -> None:
        (place / "decisions.csv").write_bytes(data)
        cuewise.score(place / "decisions.csv")

    return Reader("\n".join(lines).encode(), mutated_text, read)


READERS: dict[str, Callable[[Path], Reader]] = {
    "zip": archive("a.zip", zip_seed),
    "tar": archive("a.tar", tar_seed),
    "voc": voc,
    "coco": coco,
    "yolo": yolo,
    "csv": table,
    "decisions.csv": score_reader,
    "encoder.json": encoder_reader,
    "audit.json": audit_reader,
}
