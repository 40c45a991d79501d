"""Are home-made cue-conflict images valid? The share that a reference answers with the class of the shape or of the texture.

    python benchmarks/stimuli.py --model timm/tf_efficientnet_lite0:FILE [--coco ZIP] [--voc ZIP] [--pacs ZIP] [--tiny ZIP…]
                                 [--train ZIP…] [--published ZIP] [--n 240] [--gram 60]

Sources are photographs of the 16 categories that the model recognises (as the published stimuli were chosen): boxes of COCO
and VOC archives, whole images of PACS and Tiny-ImageNet archives with an index.csv. Every back-end gets the same pairs.
--model answers, and its maps drive the back-end `gram`: its texture answers on those stimuli are circular. With --train
(training images of Tiny-ImageNet) a small network is trained from scratch as a second reference, for the categories it knows.
"""

from __future__ import annotations

import argparse
import csv
import io
import itertools
import json
import time
import xml.etree.ElementTree as ET
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from cuewise.audits.head import imagenet16
from cuewise.cues.conflict import conflict
from cuewise.cues.style_gram import Gram
from cuewise.data import decode
from cuewise.encoders import load_encoder
from cuewise.encoders.embed import evaluation_view
from row import row

Pixels = NDArray[np.uint8]
Ask = Callable[[list[Pixels]], list[str]]
SIDE, PER_CLASS = 224, 8
TINY = {
    "brown bear": "bear", "goose": "bird", "king penguin": "bird", "black stork": "bird", "gondola": "boat",
    "beer bottle": "bottle", "pop bottle": "bottle", "convertible": "car", "sports car": "car", "tabby": "cat",
    "Persian cat": "cat", "Egyptian cat": "cat", "rocking chair": "chair", "Chihuahua": "dog", "golden retriever": "dog",
    "German shepherd": "dog", "African elephant": "elephant", "computer keyboard": "keyboard", "police van": "truck",
}  # fmt: skip


def read(archive: zipfile.ZipFile, name: str) -> Pixels:
    return decode(archive.read(name), name)


def square(image: Pixels, box: tuple[float, ...]) -> Pixels:
    """The square about a box, a tenth larger, as far as the image goes."""
    height, width = image.shape[:2]
    side = int(min(1.1 * max(box[2] - box[0], box[3] - box[1]), height, width))
    left, top = (
        int(min(max((a + b - side) / 2, 0), n - side))
        for a, b, n in ((box[0], box[2], width), (box[1], box[3], height))
    )
    return evaluation_view(np.ascontiguousarray(image[top : top + side, left : left + side]), SIDE, "bicubic")


def from_coco(file: Path) -> Iterator[tuple[str, Pixels]]:
    z = zipfile.ZipFile(file)
    for part in ("train", "val"):
        table = json.loads(z.read(f"annotations/instances_{part}2017.json"))
        names = {c["id"]: c["name"] for c in table["categories"]}
        files = {i["id"]: i["file_name"] for i in table["images"]}
        for a in table["annotations"]:
            x, y, w, h = a["bbox"]
            if min(w, h) >= 40 and max(w, h) >= 56:
                image = read(z, f"{part}2017/{files[a['image_id']]}")
                yield names[a["category_id"]], square(image, (x, y, x + w, y + h))


def from_voc(file: Path) -> Iterator[tuple[str, Pixels]]:
    z = zipfile.ZipFile(file)
    for name in z.read("ImageSets/Main/val.txt").decode().split():
        for thing in ET.fromstring(z.read(f"Annotations/{name}.xml")).iter("object"):
            box = tuple(float(thing.findtext(f"bndbox/{k}", "0")) for k in ("xmin", "ymin", "xmax", "ymax"))
            if min(box[2] - box[0], box[3] - box[1]) >= 90:
                yield thing.findtext("name", ""), square(read(z, f"JPEGImages/{name}.jpg"), box)


def from_index(file: Path) -> Iterator[tuple[str, Pixels]]:
    """PACS (photographs of its validation part) and Tiny-ImageNet."""
    z = zipfile.ZipFile(file)
    for line in csv.DictReader(io.TextIOWrapper(z.open("index.csv"))):
        if line.get("domain", "photo") == "photo" and line.get("split", "val") == "val":
            name = TINY.get(line.get("name", ""), line["label"])
            if name in imagenet16():
                yield name, evaluation_view(read(z, line["file"]), SIDE, "bicubic")


def reference(spec: str) -> tuple[Any, Ask]:
    """A classifier of the 1,000 ImageNet classes, and its answers among the 16 categories."""
    model = load_encoder(spec, head=True)
    map16 = imagenet16()

    def ask(images: list[Pixels]) -> list[str]:
        found: list[str] = []
        for at in range(0, len(images), 32):
            batch = np.stack([evaluation_view(i, model.card.size, "bicubic") for i in images[at : at + 32]])
            with torch.inference_mode():
                p = model.logits(model.normalise(torch.from_numpy(batch))).softmax(-1)
            means = torch.stack([p[:, rows].mean(-1) for rows in map16.values()], -1)
            found += [list(map16)[k] for k in means.argmax(-1).tolist()]
        return found

    return model, ask


class Small(nn.Module):
    """A ResNet of three blocks for 64 pixels."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        widths = (32, 48, 96, 160)
        self.stem = nn.Sequential(nn.Conv2d(3, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU())
        self.ways = nn.ModuleList(self.way(a, b) for a, b in itertools.pairwise(widths))
        self.skips = nn.ModuleList(nn.Conv2d(a, b, 1, 2) for a, b in itertools.pairwise(widths))
        self.head = nn.Linear(widths[-1], classes)

    @staticmethod
    def way(a: int, b: int) -> nn.Module:
        one = [nn.Conv2d(a, b, 3, 2, 1, bias=False), nn.BatchNorm2d(b), nn.ReLU()]
        return nn.Sequential(*one, nn.Conv2d(b, b, 3, 1, 1, bias=False), nn.BatchNorm2d(b))

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for way, skip in zip(self.ways, self.skips):
            x = F.relu(way(x) + skip(x))
        return self.head(x.mean((2, 3)))


def trained(files: list[Path], epochs: int = 16, batch: int = 64) -> tuple[list[str], Ask]:
    """The categories and the answers of a network trained from scratch on them."""
    torch.manual_seed(0)
    pairs = []
    for file in files:
        z = zipfile.ZipFile(file)
        for line in csv.DictReader(io.TextIOWrapper(z.open("index.csv"))):
            if line["name"] in TINY:
                pairs.append((TINY[line["name"]], read(z, line["file"])))
    names = sorted({name for name, _ in pairs})
    x = torch.from_numpy(np.stack([image for _, image in pairs])).permute(0, 3, 1, 2)
    y = torch.tensor([names.index(name) for name, _ in pairs])
    weight = 1 / torch.bincount(y).float()
    model, steps = Small(len(names)), epochs * (len(x) // batch)
    optimiser = torch.optim.SGD(model.parameters(), 0.1, 0.9, weight_decay=5e-4, nesterov=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 0.1, total_steps=steps)
    for rows in (r for _ in range(epochs) for r in torch.randperm(len(x)).split(batch) if len(r) == batch):
        views = augmented(x[rows])
        loss = F.cross_entropy(model(views), y[rows], weight=weight / weight.mean(), label_smoothing=0.1)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    model.eval()

    def ask(images: list[Pixels]) -> list[str]:
        small = np.stack([evaluation_view(i, 64, "bicubic") for i in images])
        with torch.inference_mode():
            found = model(normal(torch.from_numpy(small).permute(0, 3, 1, 2))).argmax(-1)
        return [names[k] for k in found.tolist()]

    return names, ask


def normal(x: Tensor) -> Tensor:
    return (x.float() / 255 - 0.45) / 0.25


def augmented(x: Tensor) -> Tensor:
    """A crop of 44 to 64 pixels, mirrored or not, for the batch; brightness and tint for each image."""
    side = int(torch.randint(44, 65, ()))
    top, left = (int(torch.randint(0, 65 - side, ())) for _ in range(2))
    x = normal(x[..., top : top + side, left : left + side])
    x = x.flip(-1) if torch.rand(()) < 0.5 else x
    x = x * (0.7 + 0.6 * torch.rand(len(x), 1, 1, 1)) + 0.2 * torch.randn(len(x), 3, 1, 1)
    return F.interpolate(x, 64, mode="bilinear")


def report_shares(
    what: str, against: str, answers: list[str], shapes: list[str], textures: list[str]
) -> None:
    shape = np.mean([a == s for a, s in zip(answers, shapes)])
    texture = np.mean([a == t for a, t in zip(answers, textures)])
    note = f"shape {shape:.3f}, texture {texture:.3f}, {len(answers)} images"
    row(f"cue accuracy, {what}", against, float(shape + texture), "of the images", note=note)


def report(
    what: str,
    images: list[Pixels],
    shapes: list[str],
    textures: list[str],
    ask: Ask,
    names: list[str],
    second: Ask | None,
) -> None:
    report_shares(what, "reference", ask(images), shapes, textures)
    known = [i for i, pair in enumerate(zip(shapes, textures)) if set(pair) <= set(names)]
    if second is not None and known:
        shapes, textures = [shapes[i] for i in known], [textures[i] for i in known]
        report_shares(what, "second reference", second([images[i] for i in known]), shapes, textures)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", required=True)
    for name in ("coco", "voc", "pacs", "published"):
        parser.add_argument(f"--{name}", type=Path)
    for name in ("tiny", "train"):
        parser.add_argument(f"--{name}", type=Path, nargs="*", default=[])
    parser.add_argument("--n", type=int, default=240)
    parser.add_argument("--gram", type=int, default=60)
    given = parser.parse_args()
    torch.set_num_threads(1)
    model, ask = reference(given.model)
    large = [*(from_coco(given.coco) if given.coco else ()), *(from_voc(given.voc) if given.voc else ())]
    large += list(from_index(given.pacs)) if given.pacs else []
    small = [pair for file in given.tiny for pair in from_index(file)]
    found: dict[str, list[Pixels]] = {name: [] for name in imagenet16()}
    for pairs in (large, small):  # images with more pixels first
        wanted = [(name, image) for name, image in pairs if name in found]
        for (name, image), answer in zip(wanted, ask([image for _, image in wanted]) if wanted else []):
            if answer == name and len(found[name]) < PER_CLASS:
                found[name].append(image)
    print({name: len(images) for name, images in found.items()})
    names, second = trained(given.train) if given.train else ([], None)
    rng = np.random.default_rng(0)
    order = list(itertools.permutations([n for n, images in found.items() if images], 2))
    rng.shuffle(order)
    plan = [(a, rng.integers(len(found[a])), b, rng.integers(len(found[b]))) for a, b in order[: given.n]]
    gram = Gram(model.backbone, model.card.mean, model.card.std)
    backends: dict[str, tuple[int, dict[str, Any]]] = {
        "quilt": (given.n, {}),
        "quilt, blocks of 1/6, no lines": (given.n, {"block": 1 / 6, "lines": 0.0}),
        "quilt, blocks of 0.6, lines 0.5": (given.n, {"block": 0.6, "lines": 0.5}),
        "gram": (given.gram, {"method": gram}),
    }
    if given.published:
        z = zipfile.ZipFile(given.published)
        lines = [
            r for r in csv.DictReader(io.TextIOWrapper(z.open("index.csv"))) if r["shape"] != r["texture"]
        ]
        images = [read(z, r["file"]) for r in lines]
        report(
            "published set",
            images,
            [r["shape"] for r in lines],
            [r["texture"] for r in lines],
            ask,
            names,
            second,
        )
    for what, (n, options) in backends.items():
        begin = time.perf_counter()
        pairs = plan[:n]
        images = [
            conflict(found[a][i], found[b][j], np.random.default_rng(k), **options)
            for k, (a, i, b, j) in enumerate(pairs)
        ]
        each = 1000 * (time.perf_counter() - begin) / max(len(pairs), 1)
        report(
            f"{what} ({each:.0f} ms)",
            images,
            [p[0] for p in pairs],
            [p[2] for p in pairs],
            ask,
            names,
            second,
        )


if __name__ == "__main__":
    main()
