"""Draws shapes.png, a row of eight images for each split: python docs/images/shapes.py"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from cuewise.data.shapes import SPLITS, ShapeSet

COLUMNS, SIZE, GAP = 8, 64, 3


def main() -> None:
    step = SIZE + GAP
    sheet = np.full((len(SPLITS) * step - GAP, COLUMNS * step - GAP, 3), 255, np.uint8)
    for row, split in enumerate(SPLITS):
        options = {"odd": 0.5} if split == "scenes" else {}
        images = ShapeSet(split, n=COLUMNS, size=SIZE, seed=1, **options).batch(range(COLUMNS))
        for column, image in enumerate(images):
            sheet[row * step : row * step + SIZE, column * step : column * step + SIZE] = image
    Image.fromarray(sheet).save(Path(__file__).with_suffix(".png"), optimize=True)


if __name__ == "__main__":
    main()
