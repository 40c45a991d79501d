"""Draws objects.png: scenes with their boxes, proposals, and the crops of each mode: python docs/images/objects.py

With the folder of a run of --method hcl it draws distances.png, too: how far objects are from their scenes.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from cuewise.audits.context import measure
from cuewise.audits.engine import Engine
from cuewise.audits.measured import Measured
from cuewise.audits.regions import space_of
from cuewise.cues.objects import propose
from cuewise.data import Sample, open_data
from cuewise.encoders import load_encoder
from cuewise.views import ViewParams, apply
from cuewise.views.boxes_preview import COLORS, outlined
from cuewise.views.object_crops import MODES, GivenBoxes, ObjectCrops
from cuewise.views.params import Crop, Region

DATA = "shapes:scenes?n=5&size=160&seed=3"
ODD = "shapes:scenes?n=800&size=64&odd=0.5&part=test&palette=one&rho=1"
SIDE, VIEW, GAP, HEAD = 160, 78, 4, 20


def view(sample: Sample, region: Region | None) -> np.ndarray:
    """The whole region, as a view shows it at most."""
    height, width = sample.image.shape[:2]
    crop = (
        Crop(0, 0, height, width)
        if region is None
        else Crop(region.top, region.left, region.height, region.width)
    )
    return apply(sample.image, ViewParams(crop), VIEW)


def column(sample: Sample) -> list[np.ndarray]:
    """Boxes, proposals, and the two views of each mode side by side."""
    boxes = GivenBoxes().boxes(sample)
    rows = [
        outlined(sample.image, boxes.astype(np.float64)),
        outlined(sample.image, propose(sample.image, k=5).corners.astype(np.float64)),
    ]
    for mode in MODES:
        law = ObjectCrops(GivenBoxes(), mode, minimum=40, radius=30)
        pair = law.draw(sample, np.random.default_rng(2), 2)
        row = np.full((VIEW, SIDE, 3), 255, np.uint8)
        row[:, :VIEW], row[:, SIDE - VIEW :] = (view(sample, r) for r in pair)
        rows.append(row)
    return rows


def sheet() -> Image.Image:
    names = (
        "annotated objects",
        "proposals (the best five)",
        *(f"the two regions of {mode}" for mode in MODES),
    )
    columns = [column(sample) for sample in open_data(DATA)]
    heights = [row.shape[0] + GAP + HEAD for row in columns[0]]
    page = Image.new("RGB", (len(columns) * (SIDE + GAP), sum(heights)), "white")
    draw, font, y = ImageDraw.Draw(page), ImageFont.load_default(14), 0
    for k, (name, height) in enumerate(zip(names, heights)):
        draw.text((2, y + 1), name, fill="black", font=font)
        for n, rows in enumerate(columns):
            page.paste(Image.fromarray(rows[k]), (n * (SIDE + GAP), y + HEAD))
        y += height
    return page


def distances(run: Path, width: int = 640, height: int = 260) -> Image.Image:
    """Histograms of the distance to the scene, of objects in and out of context."""
    model = Measured(run.name, load_encoder(str(run)), run, engine=Engine(workers=0))
    data = open_data(ODD)
    found = measure(model, data, space_of(model), list(range(len(data))))
    edges = np.quantile(found.distance, [0.005, 0.995])
    bins = np.linspace(*edges, 41)
    page = Image.new("RGB", (width, height), "white")
    draw, font = ImageDraw.Draw(page), ImageFont.load_default(14)
    shares = [np.histogram(found.distance[rows], bins)[0] / rows.sum() for rows in (~found.out, found.out)]
    top, floor, step = max(s.max() for s in shares), height - 30, (width - 40) / 40
    for share, color, name, y in zip(shares, COLORS[1::-1], ("in context", "out of context"), (8, 26)):
        line = [(20 + step * (k + 0.5), floor - (floor - 50) * s / top) for k, s in enumerate(share)]
        draw.line(line, fill=color, width=3)
        draw.text((width - 140, y), name, fill=color, font=font)
    draw.line([(20, floor), (width - 20, floor)], fill="black")
    for x, value in ((20, bins[0]), (width - 60, bins[-1])):
        draw.text((x, floor + 6), f"{value:.1f}", fill="black", font=font)
    draw.text((width // 2 - 90, floor + 6), "distance to the scene", fill="black", font=font)
    return page


def main() -> None:
    place = Path(__file__).parent
    sheet().save(place / "objects.png", optimize=True)
    if len(sys.argv) > 1:
        distances(Path(sys.argv[1])).save(place / "distances.png", optimize=True)


if __name__ == "__main__":
    main()
