"""docs/images/tune.svg: shape bias against accuracy and other domains, for the arms of the stored study `tune`.

python docs/tradeoff.py
"""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from cuewise.studies.statistics import t_interval

DOCS = Path(__file__).parent
WIDE, HIGH, TOP, FOOT, LEFT, GAP = 940, 470, 44, 62, 62, 70
Y = "shape_bias"
PANELS = {
    "own/accuracy": "accuracy of the own classifier, %",
    "ood": "probe on photographs → paintings, cartoons, sketches, %",
}
CURVE = ("α = 0", "α = 1", "α = 2", "α = 4")  # the dial, joined by a line
DIAL, OTHER, START = "#1f6feb", "#6e7781", "#d1242f"
STYLE = "font-family:system-ui,Helvetica,Arial,sans-serif;font-size:13px"


class Axis:
    """Values to pixels, with a margin around all of them."""

    def __init__(self, low: float, high: float, start: float, end: float, step: float) -> None:
        pad = 0.06 * (high - low)
        self.low, self.scale, self.start = low - pad, (end - start) / (high - low + 2 * pad), start
        first = int(np.ceil(self.low / step))
        self.ticks = [i * step for i in range(first, first + 30) if i * step <= high + pad]

    def __call__(self, value: float) -> float:
        return self.start + (value - self.low) * self.scale


def intervals(arms: dict[str, Any]) -> dict[str, dict[str, tuple[float, float, float]]]:
    """arm → quantity → mean and 95 % interval over seeds."""
    out: dict[str, dict[str, tuple[float, float, float]]] = {}
    for name, arm in arms.items():
        out[name] = {q: t_interval(arm["values"][q]) for q in (Y, *PANELS)}
    return out


def panel(
    found: dict[str, dict[str, tuple[float, float, float]]], quantity: str, left: float, right: float
) -> list[str]:
    lows, highs = [[v[quantity][k] for v in found.values()] for k in (1, 2)]
    across = Axis(min(lows), max(highs), left, right, 0.05)
    up = Axis(
        min(v[Y][1] for v in found.values()), max(v[Y][2] for v in found.values()), HIGH - FOOT, TOP, 0.05
    )
    out = []
    for tick in across.ticks:
        x = across(tick)
        out.append(f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{HIGH - FOOT}" stroke="#eaeef2"/>')
        out.append(
            f'<text x="{x:.1f}" y="{HIGH - FOOT + 18}" text-anchor="middle" fill="#57606a">{100 * tick:.0f}</text>'
        )
    for tick in up.ticks:
        y = up(tick)
        out.append(f'<line x1="{left}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}" stroke="#eaeef2"/>')
        out.append(f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end" fill="#57606a">{tick:.2f}</text>')
    out.append(
        f'<text x="{(left + right) / 2:.1f}" y="{HIGH - 18}" text-anchor="middle">{escape(PANELS[quantity])}</text>'
    )
    path = " ".join(f"{across(found[a][quantity][0]):.1f},{up(found[a][Y][0]):.1f}" for a in CURVE)
    out.append(f'<polyline points="{path}" fill="none" stroke="{DIAL}" stroke-width="2"/>')
    for name, values in found.items():
        (x, x0, x1), (y, y0, y1) = values[quantity], values[Y]
        colour = DIAL if name in CURVE else START if name == "as it was" else OTHER
        px, py = across(x), up(y)
        out.append(
            f'<g stroke="{colour}" stroke-opacity="0.45"><line x1="{across(x0):.1f}" y1="{py:.1f}" x2="{across(x1):.1f}" y2="{py:.1f}"/>'
        )
        out.append(f'<line x1="{px:.1f}" y1="{up(y0):.1f}" x2="{px:.1f}" y2="{up(y1):.1f}"/></g>')
        out.append(f'<circle cx="{px:.1f}" cy="{py:.1f}" r="4.5" fill="{colour}"/>')
    return out + labels(found, quantity, across, up, right)


def labels(
    found: dict[str, dict[str, tuple[float, float, float]]],
    quantity: str,
    across: Axis,
    up: Axis,
    right: float,
) -> list[str]:
    """A name beside each mark, moved down where it would cover another one."""
    out, taken = [], []
    for name, values in sorted(found.items(), key=lambda item: up(item[1][Y][0])):
        px, py = across(values[quantity][0]), up(values[Y][0])
        turned = px > right - 95
        x, y = (px - 9 if turned else px + 9), py - 6
        width = 7.2 * len(name)
        while any(
            abs(y - b) < 14 and (x - width if turned else x) < r and left < (x if turned else x + width)
            for b, left, r in taken
        ):
            y += 5
        taken.append((y, x - width if turned else x, x if turned else x + width))
        colour = DIAL if name in CURVE else START if name == "as it was" else OTHER
        anchor = "end" if turned else "start"
        out.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}" font-weight="600">{escape(name)}</text>'
        )
    return out


def picture(stored: Path) -> str:
    found = intervals(json.loads(stored.read_text(encoding="utf-8"))["studies"]["tune"])
    middle = (WIDE - LEFT) / 2 + LEFT
    parts = panel(found, "own/accuracy", LEFT, middle - GAP / 2) + panel(
        found, "ood", middle + GAP / 2, WIDE - 16
    )
    title = f'<text x="{LEFT}" y="22" font-weight="600">shape bias, own classifier, published cue-conflict stimuli</text>'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {HIGH}" style="{STYLE}"><rect width="{WIDE}" height="{HIGH}" fill="white"/>'
    return "\n".join([head, title, *parts, "</svg>", ""])


if __name__ == "__main__":
    (DOCS / "images" / "tune.svg").write_text(picture(DOCS / "results" / "tune.json"), encoding="utf-8")
