"""docs/images/tune.png: shape bias against accuracy of the arms of `cuewise reproduce tune`, from its results.json.

python docs/tradeoff.py runs/tune/results.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

OUT = Path(__file__).parent / "images" / "tune.png"
WIDE, HIGH, LEFT, FOOT, EDGE = 820, 540, 80, 64, 24
X, Y = "own/accuracy", "shape_bias"
COLOURS = ("#1f6feb", "#d1242f", "#1a7f37", "#8250df", "#9a6700", "#57606a", "#bf3989", "#0a7ea4")


def axis(values: list[float], length: int, start: int) -> tuple[float, float, list[float]]:
    """(pixels per unit, pixel of 0, ticks) so that all values fit."""
    low, high = min(values), max(values)
    pad = 0.08 * max(high - low, 0.01)
    low, high = low - pad, high + pad
    scale = length / (high - low)
    step = 0.02 if high - low < 0.2 else 0.05
    first = round(low / step) + 1
    ticks = [i * step for i in range(first, first + 40) if i * step < high]
    return scale, start - low * scale, ticks


def main(file: Path) -> None:
    arms = json.loads(file.read_text())["studies"]["tune"]["arms"]
    points = [(a["name"], a["means"][X], a["means"][Y]) for a in arms if X in a["means"] and Y in a["means"]]
    page = Image.new("RGB", (WIDE, HIGH), "white")
    draw, font, small = ImageDraw.Draw(page), ImageFont.load_default(15), ImageFont.load_default(13)
    sx, ox, across = axis([v for _, x, _ in points for v in x], WIDE - LEFT - 170, LEFT)
    sy, oy, up = axis([v for _, _, y in points for v in y], HIGH - FOOT - EDGE, FOOT)
    place = lambda x, y: (ox + x * sx, HIGH - (oy + y * sy))  # noqa: E731
    right = WIDE - 170
    for t in across:
        x = place(t, 0)[0]
        draw.line([(x, EDGE), (x, HIGH - FOOT)], fill="#eeeeee")
        draw.text((x, HIGH - FOOT + 6), f"{100 * t:.0f} %", fill="#333333", font=small, anchor="mt")
    for t in up:
        y = place(0, t)[1]
        draw.line([(LEFT, y), (right, y)], fill="#eeeeee")
        draw.text((LEFT - 6, y), f"{t:.2f}", fill="#333333", font=small, anchor="rm")
    for n, (name, (x, x_low, x_high), (y, y_low, y_high)) in enumerate(points):
        colour = COLOURS[n % len(COLOURS)]
        (px, py), (a, b), (c, d) = place(x, y), place(x_low, y_low), place(x_high, y_high)
        draw.line([(a, py), (c, py)], fill=colour, width=2)
        draw.line([(px, b), (px, d)], fill=colour, width=2)
        draw.ellipse([px - 5, py - 5, px + 5, py + 5], fill=colour)
        draw.text((right + 14, EDGE + 22 * n), f"● {name}", fill=colour, font=font)
    draw.text((LEFT, 4), "shape bias (own classifier, published stimuli)", fill="black", font=font)
    label = "accuracy of the own classifier among the ImageNet classes of the test set"
    draw.text((LEFT, HIGH - 28), label, fill="black", font=font)
    page.save(OUT, optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
