"""docs/growth.md and its figure, from the rows that growth.py stored; written by run.py."""

from __future__ import annotations

import math
import re
import statistics
from html import escape
from typing import Any

from row import Row, short

IMAGES, EPOCHS, HOURS, GPUS = 1_281_167, 200, 53, 8  # ImageNet; the published run of MoCo
TIMED, COUNTED, LOADED = "time ", "a step of ", "photographs "
COLOURS = (
    "#1f6feb",
    "#d1242f",
    "#1a7f37",
    "#57606a",
    "#8250df",
    "#bf8700",
    "#bf3989",
    "#57606a",
    "#1f2328",
    "#fb8f44",
)
WIDE, HIGH, LEFT, RIGHT, TOP, FOOT = 900, 420, 56, 370, 24, 48
HEAD = """# How cost grows

Written by `python benchmarks/run.py growth` ({date}, commit {commit}, {cores} cores), from {rounds} interleaved repetitions;
every repetition is on [the performance page](performance.md#scaling). One thread; a step of MoCo on
`cuewise/resnet-tiny?width=16`, views of 32 px, 64 images per step, a queue of 1,024, unless a line says otherwise. Each
number is the time per image (for a zip: per opening) over that of the first setting of its line.

"""
CURVES = """
![Time per image against the setting, each over its first](images/growth.svg)

Twice the side of the views is four times the pixels, and nearly four times the time. Larger batches cost no more per image, and
α costs nothing; a queue costs little until it is long beside the network. A patch negative is one more forward pass, an
augmentation left out one more view of the key network.
`cuewise pretrain … --dry-run` estimates your run, `cuewise cost MODEL` your model.

"""
BEYOND = """
## ImageNet on eight GPUs: an extrapolation, not a measurement

The authors of MoCo give {hours} hours for {epochs} epochs of ResNet-50 at 224 px on {gpus} V100. That is {rate:,.0f}
images/s, or {sustained:.1f} TFLOP/s per GPU for the {moco:.1f} GFLOP per image that a step of MoCo takes. At the same rate
the other methods take hours in proportion to their arithmetic, which is counted here; what is not arithmetic (batch norm,
memory, communication) is taken to grow alike. On these two cores a step costs little beside its arithmetic
([table](performance.md#training)); whether that holds on a GPU was not measured.

One core of the machine above makes two views of {loading:,.0f} photographs per second, so that a run needs the cores in the
last column to keep {gpus} such GPUs busy; faster GPUs need more of them in proportion, or `--set loop.views=device`, or
`loop.decode=reduced` for large photographs.

| a step of | GFLOP per image | {epochs} epochs | images/s | cores for loading |
| --- | --- | --- | --- | --- |
"""


def growth_page(stored: dict[str, Any]) -> str:
    """The whole page."""
    rows = [Row(**r) for r in stored["rows"]]
    rounds = max(len(r.values) for r in rows)
    lines = [HEAD.format(rounds=rounds, **stored), "| | first | |", "\n| --- | --- | --- |"]
    for axis, points in curves(rows).items():
        first, *others = points
        found = " · ".join(f"{name}: {short(ratio)} ×" for name, _, ratio in others)
        lines.append(f"\n| {axis} | {first[0]} | {found} |")
    return "".join([*lines, "\n", CURVES, beyond(rows).lstrip("\n"), ""])


def curves(rows: list[Row]) -> dict[str, list[tuple[str, float, float]]]:
    """axis → its points as (name, number, median time over the first point's), the first point among them."""
    out: dict[str, list[tuple[str, float, float]]] = {}
    for r in rows:
        if r.what.startswith(TIMED):
            axis, _, point = r.what.removeprefix("time per image, ").rpartition(": ")
            out.setdefault(axis, [(r.against, number(r.against), 1.0)])
            out[axis].append((point, number(point), statistics.median(r.values)))
    return out


def number(text: str) -> float:
    """The number in the name of a point; none: 0."""
    found = re.search(r"[\d.,]*\d", text)
    return float(found.group().replace(",", "")) if found else 0.0


def beyond(rows: list[Row]) -> str:
    """The arithmetic of a step, scaled up."""
    counted = {
        r.what.removeprefix(COUNTED).rpartition(", ")[0]: r.values[0]
        for r in rows
        if r.what.startswith(COUNTED)
    }
    loading = next(statistics.median(r.values) for r in rows if r.what.startswith(LOADED))
    rate = IMAGES * EPOCHS / (HOURS * 3600)
    moco = counted["moco"]
    words = {"hours": HOURS, "epochs": EPOCHS, "gpus": GPUS, "rate": rate, "moco": moco, "loading": loading}
    text = BEYOND.format(sustained=rate / GPUS * moco / 1e3, **words)
    for name, flop in counted.items():
        reached = rate * moco / flop
        cores = math.ceil(reached / loading)
        text += f"| {name} | {flop:.1f} | {HOURS * flop / moco:.0f} hours | {reached:,.0f} | {cores} |\n"
    return text


def growth_svg(stored: dict[str, Any]) -> str:
    """All curves in one plane: by how much the setting grew, by how much the time did; both axes logarithmic."""
    found = {
        axis: [(n / points[0][1], t) for _, n, t in points]
        for axis, points in curves([Row(**r) for r in stored["rows"]]).items()
        if points[0][1] > 0
    }
    most = max(x for points in found.values() for x, _ in points)
    high = max(t for points in found.values() for _, t in points)
    ups, acrosses = math.ceil(math.log2(high)), math.ceil(math.log2(most))

    def x(value: float) -> float:
        return LEFT + (WIDE - LEFT - RIGHT) * math.log2(value) / acrosses

    def y(value: float) -> float:
        return HIGH - FOOT - (HIGH - FOOT - TOP) * (math.log2(value) + 0.5) / (ups + 0.5)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDE}" height="{HIGH}" viewBox="0 0 {WIDE} {HIGH}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDE}" height="{HIGH}" fill="white"/>',
    ]
    for k in range(acrosses + 1):
        at = x(2**k)
        parts.append(f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{TOP}" y2="{HIGH - FOOT}" stroke="#e5e5e5"/>')
        parts.append(f'<text x="{at:.1f}" y="{HIGH - FOOT + 16}" text-anchor="middle">{2**k} ×</text>')
    for k in range(ups + 1):
        at = y(2**k)
        parts.append(f'<line x1="{LEFT}" x2="{WIDE - RIGHT}" y1="{at:.1f}" y2="{at:.1f}" stroke="#e5e5e5"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{2**k} ×</text>')
    middle = (LEFT + WIDE - RIGHT) / 2
    parts.append(
        f'<text x="{middle:.0f}" y="{HIGH - 12}" text-anchor="middle">the setting, over the first</text>'
    )
    parts.append(f'<text x="{LEFT}" y="14">time per image, over the first</text>')
    for i, (axis, points) in enumerate(found.items()):
        colour = COLOURS[i % len(COLOURS)]
        path = " ".join(f"{x(a):.1f},{y(t):.1f}" for a, t in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        parts += [f'<circle cx="{x(a):.1f}" cy="{y(t):.1f}" r="3" fill="{colour}"/>' for a, t in points]
        down = TOP + 18 * i
        parts.append(f'<rect x="{WIDE - RIGHT + 16}" y="{down}" width="10" height="10" fill="{colour}"/>')
        parts.append(f'<text x="{WIDE - RIGHT + 32}" y="{down + 10}">{escape(axis)}</text>')
    return "\n".join([*parts, "</svg>", ""])
