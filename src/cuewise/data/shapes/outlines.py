"""The sixteen outlines, drawn by hand as paths on a 1000 × 1000 sheet (y downwards)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

HALF = 32000  # object units: the sheet spans −HALF..HALF, 64 units a sheet unit
_STEPS = 12  # straight pieces in one curve; more is invisible at 512 px

Points = NDArray[np.int64]  # k×2, (x, y) in object units


def _ellipse(cx: int, cy: int, rx: int, ry: int) -> str:
    kx, ky = rx * 5523 // 10000, ry * 5523 // 10000  # cubic arc: 4/3·(√2 − 1)
    return (
        f"M {cx - rx} {cy} C {cx - rx} {cy - ky} {cx - kx} {cy - ry} {cx} {cy - ry} "
        f"C {cx + kx} {cy - ry} {cx + rx} {cy - ky} {cx + rx} {cy} "
        f"C {cx + rx} {cy + ky} {cx + kx} {cy + ry} {cx} {cy + ry} "
        f"C {cx - kx} {cy + ry} {cx - rx} {cy + ky} {cx - rx} {cy}"
    )


def _disc(cx: int, cy: int, r: int) -> str:
    return _ellipse(cx, cy, r, r)


def _box(x0: int, y0: int, x1: int, y1: int) -> str:
    return f"M {x0} {y0} L {x1} {y0} L {x1} {y1} L {x0} {y1}"


def _line(x0: int, y0: int, x1: int, y1: int, w: int = 13) -> str:
    """A stroke of half-width w; thick enough to show at 64 px."""
    if abs(x1 - x0) > abs(y1 - y0):
        return f"M {x0} {y0 - w} L {x1} {y1 - w} L {x1} {y1 + w} L {x0} {y0 + w}"
    return f"M {x0 - w} {y0} L {x1 - w} {y1} L {x1 + w} {y1} L {x0 + w} {y0}"


_FIGURES: dict[str, Callable[..., str]] = {"ellipse": _ellipse, "disc": _disc, "box": _box, "line": _line}

# Parts are taken in order: "+" adds the part to what is there, "-" cuts it out. A part is a path, or a figure by name.
_DRAWINGS: dict[str, str] = {
    "star": """
        + M 500 25 L 620 359 L 976 370 L 695 588 L 794 930 L 500 730 L 206 930 L 305 588 L 24 370
          L 380 359
    """,
    "fish": """
        + M 30 510 C 130 330 290 250 400 235 C 440 150 540 110 640 110 C 610 170 610 230 620 300
          C 690 340 740 400 780 455 C 830 380 900 310 975 270 C 930 420 930 600 975 750
          C 900 710 830 640 780 565 C 720 640 660 690 600 720 C 580 780 520 830 450 840
          C 460 800 450 780 440 765 C 270 760 120 680 30 510
        - disc 235 445 42
        - M 370 330 C 430 430 430 560 370 670 C 400 560 400 430 340 340
    """,
    "house": """
        + M 500 50 L 690 225 L 690 100 L 810 100 L 810 335 L 970 485 L 850 485 L 850 950 L 150 950
          L 150 485 L 30 485
        - box 250 660 430 1100
        - box 560 560 740 740
    """,
    "key": """
        + disc 250 470 235
        - disc 215 470 110
        + box 405 410 970 530
        + box 680 440 775 690
        + box 860 410 970 750
    """,
    "tree": """
        + box 425 700 575 980
        + M 500 20 L 730 330 L 270 330
        + M 500 160 L 820 590 L 180 590
        + M 500 380 L 910 850 L 90 850
    """,
    "cat": """
        + ellipse 500 600 420 350
        + M 95 590 C 80 400 90 200 130 70 C 250 120 380 220 450 330 L 500 600
        + M 905 590 C 920 400 910 200 870 70 C 750 120 620 220 550 330 L 500 600
        - ellipse 335 540 52 70
        - ellipse 665 540 52 70
        - M 435 690 L 565 690 L 500 765
        - line 500 750 500 830
        - line 20 700 290 740
        - line 980 700 710 740
        - line 60 860 300 800
        - line 940 860 700 800
    """,
    "boat": """
        + M 30 730 L 970 730 C 930 860 860 930 760 950 L 240 950 C 140 930 70 860 30 730
        + box 480 40 540 800
        + M 500 70 C 700 220 860 430 900 660 L 500 660
        + M 425 150 C 370 350 250 530 90 660 L 425 660
    """,
    "cup": """
        + ellipse 715 480 255 245
        - ellipse 715 480 155 145
        + M 60 140 L 760 140 L 725 800 C 720 870 680 900 620 900 L 200 900 C 140 900 100 870 95 800
    """,
    "leaf": """
        + M 470 800 L 530 800 L 545 985 L 455 985
        + M 500 15 C 790 180 900 430 790 650 C 720 780 610 840 500 860 C 390 840 280 780 210 650
          C 100 430 210 180 500 15
        - line 500 170 500 870 16
        - line 500 420 680 270
        - line 500 420 320 270
        - line 500 600 730 420
        - line 500 600 270 420
        - line 500 760 700 610
        - line 500 760 300 610
    """,
    "bird": """
        + disc 690 275 165
        + M 750 175 L 985 275 L 750 350
        + M 330 500 L 15 640 L 60 720 L 130 770 L 430 690
        + M 570 180 C 480 330 250 430 230 600 C 230 760 400 830 560 790 C 750 740 860 560 850 300
        + M 450 700 L 495 700 L 495 915 L 565 915 L 565 965 L 450 965
        + M 600 700 L 645 700 L 645 915 L 715 915 L 715 965 L 600 965
        - disc 735 245 34
        - M 640 430 C 600 580 470 680 300 640 C 440 720 640 660 670 440
    """,
    "airplane": """
        + M 500 20 C 570 70 590 160 590 260 L 590 360 L 975 610 L 975 710 L 590 600 L 570 790 L 720 900
          L 720 970 L 500 920 L 280 970 L 280 900 L 430 790 L 410 600 L 25 710 L 25 610 L 410 360
          L 410 260 C 410 160 430 70 500 20
    """,
    "bottle": """
        + M 395 20 L 605 20 L 605 110 L 585 110 L 590 270 C 600 370 780 400 780 540 L 780 910
          C 780 960 750 980 710 980 L 290 980 C 250 980 220 960 220 910 L 220 540
          C 220 400 400 370 410 270 L 415 110 L 395 110
        - box 100 590 900 618
        - box 100 830 900 858
    """,
    "moon": """
        + M 564 48 C 340 6 119 135 45 351 C -29 566 66 803 268 908 C 470 1013 719 954 853 770
          C 649 870 402 776 318 565 C 233 354 347 115 564 48
    """,
    "rabbit": """
        + ellipse 500 700 320 280
        + M 300 560 C 170 380 160 60 270 20 C 400 10 480 270 470 500
        + M 700 560 C 830 380 840 60 730 20 C 600 10 520 270 530 500
        - disc 385 640 45
        - disc 615 640 45
        - M 450 735 L 550 735 L 500 790
        - line 500 780 500 860
    """,
    "car": """
        + M 20 640 C 20 540 80 500 190 480 C 260 350 330 230 440 220 L 640 220 C 740 230 800 340 860 480
          C 940 500 980 550 980 640 L 980 740 L 20 740
        - M 290 470 C 330 380 380 300 440 290 L 500 290 L 500 470
        - M 560 290 L 630 290 C 690 300 730 380 765 470 L 560 470
        - disc 250 740 155
        - disc 750 740 155
        + disc 250 740 125
        + disc 750 740 125
        - disc 250 740 45
        - disc 750 740 45
    """,
    "umbrella": """
        + M 466 450 L 530 450 L 530 860 C 530 926 476 980 410 980 C 344 980 290 926 290 860 L 355 860
          C 355 890 380 915 410 915 C 440 915 466 890 466 860
        + box 475 20 525 220
        + M 20 560 C 40 250 260 80 500 80 C 740 80 960 250 980 560 C 910 480 780 480 740 560
          C 690 480 560 480 500 560 C 440 480 310 480 260 560 C 220 480 90 480 20 560
    """,
}

SHAPES: tuple[str, ...] = tuple(_DRAWINGS)

# Interleaved in SHAPES, so that the first 4k outlines hold k of each superclass.
SUPERCLASSES: dict[str, tuple[str, ...]] = {
    "nature": ("star", "tree", "leaf", "moon"),
    "animal": ("fish", "cat", "bird", "rabbit"),
    "built": ("house", "boat", "airplane", "car"),
    "thing": ("key", "cup", "bottle", "umbrella"),
}

# What occurs together in a scene. Half of the kinds belong to two contexts.
CONTEXTS: dict[str, tuple[str, ...]] = {
    "sea": ("fish", "boat", "bird", "bottle", "moon", "star"),
    "garden": ("tree", "leaf", "rabbit", "cat", "bird", "umbrella"),
    "home": ("cup", "bottle", "key", "cat", "umbrella", "house"),
    "street": ("car", "airplane", "house", "tree", "moon", "star"),
}


@dataclass(frozen=True)
class Part:
    """A closed polygon that is added to the outline or cut out of it."""

    adds: bool
    points: Points


def _cubic(p: list[tuple[int, int]], k: int) -> tuple[int, int]:
    """Bernstein cubic at k/_STEPS, in integers."""
    a, b = _STEPS - k, k
    weights = (a * a * a, 3 * a * a * b, 3 * a * b * b, b * b * b)
    x, y = (sum(w * q[axis] for w, q in zip(weights, p, strict=True)) // _STEPS**3 for axis in (0, 1))
    return x, y


def flatten(path: str) -> Points:
    """The polygon of a path of M, L and C commands or of a figure, in object units."""
    words = path.split()
    if words[0] in _FIGURES:
        words = _FIGURES[words[0]](*map(int, words[1:])).split()
    points: list[tuple[int, int]] = []
    at = 0
    while at < len(words):
        count = {"M": 1, "L": 1, "C": 3}[words[at]]
        numbers = [int(w) * 64 - HALF for w in words[at + 1 : at + 1 + 2 * count]]
        ends = [(numbers[2 * j], numbers[2 * j + 1]) for j in range(count)]
        if count == 1:
            points += ends
        else:
            start = points[-1]
            points += [_cubic([start, *ends], k) for k in range(1, _STEPS + 1)]
        at += 1 + 2 * count
    return np.array(points, np.int64)


@lru_cache(maxsize=1)
def outlines() -> tuple[tuple[Part, ...], ...]:
    """The parts of every outline, in the order of SHAPES."""
    return tuple(map(_parts, _DRAWINGS.values()))


def _parts(drawing: str) -> tuple[Part, ...]:
    _, *words = re.split(r"([+-])\s", drawing)  # sign, path, sign, path, …
    return tuple(Part(sign == "+", flatten(path)) for sign, path in zip(words[::2], words[1::2]))
