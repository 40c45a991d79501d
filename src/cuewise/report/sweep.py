"""One dial over several models: every score as a line over the dial (as in Figure 6 of Ge et al. 2021)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cuewise.report.declared import declared, kind_of, title_of
from cuewise.report.figures import Figure, figure_of, read_series
from cuewise.report.numbers import finite
from cuewise.report.reading import ReadAudit, mapping
from cuewise.scores import Score

FEWEST = 3  # settings of the dial
# 97.5 % points of Student's t by degrees of freedom; from ten on the normal one is near enough
T975 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)


def sweep_figures(points: Sequence[tuple[float, Sequence[Score]]], dial: str = "α") -> list[Figure]:
    """Panels of lines over the dial. A setting given several times is several seeds: their mean and its t interval."""
    names = list(dict.fromkeys(s.name for _, scores in points for s in scores))
    panels: dict[str, list[str]] = {
        k.panel: [] for audit in declared().values() for k in audit.kinds if k.panel
    }
    for name in names:
        if panel := kind_of(name).panel:
            panels[panel].append(name)
    figures = [
        _panel(panel, [(name, _line(points, name)) for name in own], dial) for panel, own in panels.items()
    ]
    return [figure for figure in figures if figure["series"]]


def _panel(panel: str, lines: Sequence[tuple[str, dict[str, list[float]]]], dial: str) -> Figure:
    """One figure; `panel` is "TITLE: AXIS" as audits declare it."""
    title, _, axis = panel.partition(": ")
    series = [
        read_series(line, "lines", model="", place=k, label=title_of(name), position=k)
        for k, (name, line) in enumerate((n, line) for n, line in lines if len(line["x"]) > 1)
    ]
    return figure_of("lines", f"{title} over {dial}", series, xlabel=dial, ylabel=axis)


def _line(points: Sequence[tuple[float, Sequence[Score]]], name: str) -> dict[str, list[float]]:
    groups: dict[float, list[Score]] = {}
    for setting, scores in points:
        groups.setdefault(setting, []).extend(s for s in scores if s.name == name and math.isfinite(s.value))
    out: dict[str, list[float]] = {"x": [], "y": [], "low": [], "high": []}
    for setting in sorted(groups):
        if groups[setting]:
            for key, value in zip(out, (setting, *_summary(groups[setting]))):
                out[key].append(value)
    return out


def _summary(found: Sequence[Score]) -> tuple[float, float, float]:
    """Value and interval of one measurement, or mean over seeds with Student's interval."""
    if len(found) == 1:
        return found[0].value, found[0].low, found[0].high
    values = np.array([s.value for s in found])
    degrees = len(values) - 1
    t = T975[degrees - 1] if degrees <= len(T975) else 1.96
    half = t * float(values.std(ddof=1)) / math.sqrt(len(values))
    mean = float(values.mean())
    return mean, mean - half, mean + half


def alpha_of(model: Mapping[str, Any]) -> float | None:
    """The weight of the negatives a model was trained with; 0 without negatives, None where that is not known."""
    cues = model.get("cues")
    if not isinstance(cues, Mapping) or not model.get("method"):
        return None
    if not cues.get("negatives"):
        return 0.0
    value = cues.get("alpha")
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        value = value[0] if len(set(value)) == 1 else None
    return float(value) if finite(value) else None  # type: ignore[arg-type]


def sweep(audits: Sequence[ReadAudit]) -> list[Figure]:
    """The panels where models of one method and architecture differ in α, over three settings or more."""
    known = [(alpha_of(mapping(a.model)), a) for a in audits]
    points = [(alpha, a.scores) for alpha, a in known if alpha is not None]
    kinds = {(str(a.model.get("method")), str(a.model.get("arch"))) for _, a in known}
    if len(points) < len(audits) or len(kinds) != 1 or len({alpha for alpha, _ in points}) < FEWEST:
        return []
    return sweep_figures(points)
