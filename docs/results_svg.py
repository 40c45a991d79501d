"""One figure per family of claims: the decisive difference of each claim with its interval, by verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from results_store import Judged

WIDE, LEFT, RIGHT, ROW, HEAD, FOOT = 880, 400, 24, 22, 34, 44
MOST = 0.5  # a longer interval is cut here
FAR = 2.0  # a claim so many times as far out as nine tenths of the others does not set the scale
COLOURS = {"held": "#1a7f37", "leaning": "#9a6700", "not held": "#57606a", "opposite": "#d1242f"}


def figure(title: str, claims: Sequence[Judged]) -> str:
    """Right of the line: as claimed, by more than the margin that the claim names."""
    rows = [(j, *beyond(j)) for j in claims]
    reach = min(
        MOST, extent([max(map(abs, values)) for _, *values in rows if all(map(math.isfinite, values))])
    )
    step = next(s for s in (0.005, 0.01, 0.02, 0.05, 0.1, 0.25) if reach / s <= 4 or s == 0.25)
    reach = min(MOST, math.ceil(reach / step - 1e-9) * step)
    high = HEAD + ROW * len(rows) + FOOT
    across = (WIDE - LEFT - RIGHT) / (2 * reach)

    def x(value: float) -> float:
        return LEFT + (min(reach, max(-reach, value)) + reach) * across

    bottom = HEAD + ROW * len(rows)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDE}" height="{high}" viewBox="0 0 {WIDE} {high}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDE}" height="{high}" fill="white"/>',
        f'<text x="8" y="20" font-size="14" font-weight="bold">{escape(title)}</text>',
        *legend(),
    ]
    for n in range(-round(reach / step), round(reach / step) + 1):
        at, zero = x(n * step), n == 0
        line = f'stroke="{"#1f2328" if zero else "#e5e5e5"}"'
        parts.append(f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{HEAD}" y2="{bottom}" {line}/>')
        mark = f"{n * step:+.3g}" if n else "0"
        parts.append(
            f'<text x="{at:.1f}" y="{bottom + 15}" text-anchor="middle" fill="#57606a">{mark}</text>'
        )
    for n, (j, mean, low, top) in enumerate(rows):
        parts += row(j, HEAD + ROW * n + ROW // 2, x(mean), x(low), x(top))
        if abs(mean) > reach:
            parts.append(outside(HEAD + ROW * n + ROW // 2, x(mean), mean))
    parts.append(
        f'<text x="{x(0):.1f}" y="{bottom + 33}" text-anchor="middle" fill="#57606a">'
        "weakest decisive difference beyond its margin, in the claimed direction, with its 95 % interval</text>"
    )
    return "\n".join([*parts, "</svg>", ""])


def extent(ends: Sequence[float]) -> float:
    """How far the axis goes: to the farthest end, or to the ninth tenth where few are much farther out."""
    if not ends:
        return 0.1
    most, usual = max(ends), sorted(ends)[math.ceil(0.9 * len(ends)) - 1]
    return most if most <= FAR * usual else usual


def outside(y: int, at: float, mean: float) -> str:
    """The value of a claim that is beyond the axis, beside its point at the border."""
    side, anchor, arrow = (-10, "end", "→") if mean > 0 else (10, "start", "←")
    return f'<text x="{at + side:.1f}" y="{y + 4}" text-anchor="{anchor}" fill="#57606a">{mean:+.2f} {arrow}</text>'


def beyond(j: Judged) -> tuple[float, float, float]:
    """(mean, low, high) of the weakest difference in the claimed direction, counted from the margin."""
    found, d = j.weakest, j.weakest.difference
    ends = [d.sign * v - d.margin for v in (found.low, found.high)]
    mean = d.sign * found.mean - d.margin
    return (mean, min(ends), max(ends)) if all(map(math.isfinite, ends)) else (mean, mean, mean)


def row(j: Judged, y: int, mean: float, low: float, high: float) -> list[str]:
    colour = COLOURS[j.verdict.word]
    name = f"{j.claim.number} {j.claim.sentence}"
    short = name if len(name) <= 52 else name[:51].rstrip() + "…"
    words = f"{short} ({j.where.split(',')[0]})"
    return [
        f'<text x="{LEFT - 10}" y="{y + 4}" text-anchor="end" fill="{colour}">{escape(words)}</text>',
        f'<line x1="{low:.1f}" x2="{high:.1f}" y1="{y}" y2="{y}" stroke="{colour}" stroke-width="2"/>',
        f'<circle cx="{mean:.1f}" cy="{y}" r="4" fill="{colour}"/>',
    ]


def legend() -> list[str]:
    out, at = [], WIDE - RIGHT
    for word in reversed(COLOURS):
        at -= 8 * len(word) + 22
        out += [
            f'<circle cx="{at}" cy="16" r="4" fill="{COLOURS[word]}"/>',
            f'<text x="{at + 8}" y="20" fill="{COLOURS[word]}">{word}</text>',
        ]
    return out
