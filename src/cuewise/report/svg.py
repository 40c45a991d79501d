"""Figures as still pictures, for places without JavaScript: bars, lines and histograms with their intervals."""

from __future__ import annotations

from typing import Any

from cuewise.report.figures import Figure, series_name
from cuewise.report.markup import Html, el
from cuewise.report.numbers import digits

COLOURS = ("#0b6bb3", "#c04a06", "#0a7d5c", "#a8417d", "#8a6a00", "#5d5bc4", "#3f7f93", "#7d5a4a")
WIDTH, HEIGHT, LEFT, BELOW, ABOVE = 460, 220, 48, 46, 24
MOST_WORDS = 12  # on the horizontal axis; more are numbered in the report only
DRAWN = ("bars", "lines", "histogram")


def can_draw(figure: Figure) -> bool:
    """Whether a still picture shows it: a known kind with numbers, and not too many words below it."""
    words = {x for s in figure["series"] for x in s["x"] if isinstance(x, str)}
    return figure["kind"] in DRAWN and bool(_values(figure)) and len(words) <= MOST_WORDS


def figure_svg(figure: Figure) -> Html:
    """The figure with its axes; the title is the caller's."""
    low, high = _range(figure)
    at = _Axes(figure, low, high)
    parts: list[Html] = []
    for value in (low, (low + high) / 2, high):
        y = at.y(value)
        parts += [_line(LEFT, y, WIDTH - 6, y, "#ccd0d4"), _text(LEFT - 6, y + 4, digits(value), "end")]
    for x, name in at.ticks():
        parts.append(_text(x, HEIGHT - BELOW + 16, name, "middle"))
    for i, series in enumerate(figure["series"]):
        parts += _series(figure, series, i, at)
    parts.append(_text((LEFT + WIDTH) / 2, HEIGHT - 8, figure["xlabel"], "middle"))
    parts.append(_text(4, 12, figure["ylabel"], "start"))
    return el("svg", parts, viewBox=f"0 0 {WIDTH} {HEIGHT}", width=WIDTH, height=HEIGHT, role="img",
              aria_label=figure["title"], xmlns="http://www.w3.org/2000/svg",
              style="background:#fff;max-width:100%")  # fmt: skip


def legend(figure: Figure) -> Html:
    """Colours and names of the series, where there are several."""
    if len(figure["series"]) < 2:
        return Html("")
    marks = [
        el("span", "■ ", el("bdi", series_name(s)), " ", style=f"color:{colour};margin-right:1em")
        for s, colour in zip(figure["series"], _colours(figure))
    ]
    return el("div", marks)


class _Axes:
    """Where values lie in the picture; words have places of equal width, bars of several series stand side by side."""

    def __init__(self, figure: Figure, low: float, high: float) -> None:
        self.low, self.high = low, high if high > low else low + 1
        xs = [x for s in figure["series"] for x in s["x"] if x is not None]
        worded = figure["kind"] == "bars" or any(isinstance(x, str) for x in xs)
        self.words = list(dict.fromkeys(xs)) if worded else []
        ends = [float(x) for x in xs if not isinstance(x, str)] + [
            float(x) for s in figure["series"] for x in s.get("x2", ()) if x is not None
        ]
        self.first, self.last = (min(ends), max(ends)) if ends else (0.0, 1.0)

    def y(self, value: float) -> float:
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return HEIGHT - BELOW - share * (HEIGHT - BELOW - ABOVE)

    @property
    def step(self) -> float:
        return (WIDTH - LEFT - 10) / max(len(self.words), 1)

    def x(self, value: Any) -> float:
        if self.words:
            return LEFT + (self.words.index(value) + 0.5) * self.step
        return LEFT + 8 + (float(value) - self.first) / ((self.last - self.first) or 1) * (WIDTH - LEFT - 26)

    def ticks(self) -> list[tuple[float, str]]:
        if self.words:
            most = max(3, int(self.step / 6.2))  # letters that fit
            return [(self.x(w), _short(w if isinstance(w, str) else digits(w), most)) for w in self.words]
        middle = (self.first + self.last) / 2
        return [(self.x(v), digits(v)) for v in (self.first, middle, self.last)]


def _series(figure: Figure, series: dict[str, Any], i: int, at: _Axes) -> list[Html]:
    colour, out, points = _colours(figure)[i], [], []
    count = len(figure["series"])
    for k, (x, y) in enumerate(zip(series["x"], series["y"])):
        if x is None or y is None:
            continue
        centre = at.x(x)
        if figure["kind"] == "bars":
            width = 0.8 * at.step / count
            centre += (i - (count - 1) / 2) * width
            out.append(_bar(centre - width / 2, centre + width / 2, at.y(y), at.y(max(at.low, 0.0)), colour))
        elif figure["kind"] == "histogram" and "x2" in series:
            out.append(_bar(centre, at.x(series["x2"][k]), at.y(y), at.y(max(at.low, 0.0)), colour, 0.5))
        else:
            points.append(f"{centre:.1f},{at.y(y):.1f}")
            out.append(el("circle", cx=f"{centre:.1f}", cy=f"{at.y(y):.1f}", r=3, fill=colour))
        ends = [series[key][k] for key in ("low", "high") if key in series and series[key][k] is not None]
        if len(ends) == 2:
            out.append(_line(centre, at.y(ends[0]), centre, at.y(ends[1]), "#1c2024"))
    if len(points) > 1:
        out.append(el("polyline", points=" ".join(points), fill="none", stroke=colour, stroke_width=2))
    return out


def _bar(left: float, right: float, y: float, base: float, colour: str, opacity: float = 0.85) -> Html:
    return el("rect", x=f"{left:.1f}", y=f"{min(y, base):.1f}", width=f"{max(right - left, 1):.1f}",
              height=f"{abs(base - y):.1f}", fill=colour, fill_opacity=opacity)  # fmt: skip


def _line(x1: float, y1: float, x2: float, y2: float, colour: str) -> Html:
    return el("line", x1=f"{x1:.1f}", y1=f"{y1:.1f}", x2=f"{x2:.1f}", y2=f"{y2:.1f}", stroke=colour)


def _text(x: float, y: float, words: str, anchor: str) -> Html:
    return el("text", words, x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor, font_size=11, fill="#3a424a")


def _colours(figure: Figure) -> list[str]:
    """A model's own colour where each has one series; else one for each series."""
    places = [s["place"] for s in figure["series"]]
    return [
        COLOURS[p % len(COLOURS)] for p in (places if len({*places}) == len(places) else range(len(places)))
    ]


def _values(figure: Figure) -> list[float]:
    keys = ("y", "low", "high")
    return [v for s in figure["series"] for k in keys for v in s.get(k, ()) if v is not None]


def _range(figure: Figure) -> tuple[float, float]:
    values = _values(figure)
    low, high = min(values), max(values)
    return (min(low, 0.0), high) if figure["kind"] != "lines" or 0 <= low < high / 2 else (low, high)


def _short(word: str, most: int) -> str:
    return word if len(word) <= most else word[: most - 1] + "…"
