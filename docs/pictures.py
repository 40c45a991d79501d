"""The pictures in docs/images: every cue operator and corruption on real photographs (`make pictures`).

The photographs are three of scikit-image's (astronaut: NASA, public domain; chelsea and coffee: CC0); scikit-image comes
with the `bench` extra. Only the small results are kept here.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from cuewise.cues.conflict import conflict
from cuewise.cues.corruptions import CORRUPTIONS, corrupt
from cuewise.cues.registry import cues

OUT = Path(__file__).parent / "images"
SIDE, HEAD = 160, 20
NAMES = ("astronaut", "chelsea", "coffee")


def photographs() -> list[np.ndarray]:
    """Three photographs, 224 × 224."""
    try:
        from skimage import data
    except ImportError:
        sys.exit("the pictures need scikit-image: pip install 'cuewise[bench]'")
    out = []
    for name in NAMES:
        image = Image.fromarray(getattr(data, name)()[..., :3])
        side = min(image.size)
        left, top = (image.width - side) // 2, 0 if name == "astronaut" else (image.height - side) // 2
        out.append(
            np.asarray(
                image.crop((left, top, left + side, top + side)).resize((224, 224), Image.Resampling.LANCZOS)
            )
        )
    return out


def sheet(columns: dict[str, list[np.ndarray]], per_row: int) -> Image.Image:
    """Named columns of pictures, `per_row` columns side by side."""
    rows = len(next(iter(columns.values())))
    blocks = -(-len(columns) // per_row)
    page = Image.new("RGB", (per_row * (SIDE + 6), blocks * (HEAD + rows * (SIDE + 4) + 6)), "white")
    draw, font = ImageDraw.Draw(page), ImageFont.load_default(14)
    for n, (name, pictures) in enumerate(columns.items()):
        x, y = n % per_row * (SIDE + 6), n // per_row * (HEAD + rows * (SIDE + 4) + 6)
        draw.text((x + 2, y + 1), name.replace("_", " "), fill="black", font=font)
        for i, picture in enumerate(pictures):
            small = Image.fromarray(picture).resize((SIDE, SIDE), Image.Resampling.LANCZOS)
            page.paste(small, (x, y + HEAD + i * (SIDE + 4)))
    return page


def main() -> None:
    OUT.mkdir(exist_ok=True)
    photos = photographs()
    Image.fromarray(np.concatenate(photos, 1)).save(
        OUT / "photographs.jpg", quality=92
    )  # for docs/drawings.py
    columns = {"original": photos}
    for name, cue in cues().items():
        if name != "corrupted":
            columns[name] = [cue(p, np.random.default_rng(3)) for p in photos]
    columns["cue-conflict"] = [
        conflict(photos[i], photos[(i + 1) % 3], np.random.default_rng(0)) for i in range(3)
    ]
    sheet(columns, 6).save(OUT / "gallery.jpg", quality=85)
    corrupted = {
        name: [corrupt(photos[1], name, severity, np.random.default_rng(0)) for severity in (1, 3, 5)]
        for name in CORRUPTIONS
    }
    sheet(corrupted, 7).save(OUT / "corruptions.jpg", quality=85)


if __name__ == "__main__":
    main()
