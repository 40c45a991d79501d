"""A scatter of several models: accuracy on images against accuracy on their textures."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from cuewise.audits.rank_statistics import rank_correlation
from cuewise.report.declared import declared
from cuewise.report.figures import Figure, figure_of, read_series
from cuewise.report.markup import clean
from cuewise.report.reading import ReadAudit
from cuewise.scores import Score

FEWEST = 3  # models


def zoo(audits: Sequence[ReadAudit]) -> tuple[list[Figure], list[dict[str, Any]]]:
    """The scatter with a name at each model, and how clean and texture accuracy go together with each family left out."""
    names = _shared_names(audits)
    if len(audits) < FEWEST or names is None:
        return [], []
    pairs = [(a, a.score(names[0]), a.score(names[1])) for a in audits]
    points = [(a, c, t) for a, c, t in pairs if c and t and math.isfinite(c.value) and math.isfinite(t.value)]
    if len(points) < FEWEST:
        return [], []
    series = [_point(a, c, t) for a, c, t in points]
    labels = {
        "xlabel": f"accuracy, {names[0].partition('/')[2] or names[0]}",
        "ylabel": "accuracy from texture alone",
    }
    figure = figure_of("scatter", "Accuracy on images and on their textures", series, **labels)
    return [figure], [_correlations(points)]


def _shared_names(audits: Sequence[ReadAudit]) -> tuple[str, str] | None:
    """Accuracy on images and on textures: the first scores that audits declare for these axes and every model has."""
    held = [{s.name for s in a.scores} for a in audits]
    shared = set.intersection(*held) if held else set()
    images, textures = (
        _first(axis, audits[0].scores, shared) if shared else None for axis in ("images", "textures")
    )
    return (images, textures) if images and textures else None


def _first(axis: str, scores: Sequence[Score], shared: set[str]) -> str | None:
    kinds = [k for audit in declared().values() for k in audit.kinds if k.zoo == axis]
    names = [s.name for s in scores if s.name in shared and "conflict" not in s.name]
    return next((name for k in kinds for name in names if k.matches(name)), None)


def _point(audit: ReadAudit, on_images: Score, on_textures: Score) -> dict[str, Any]:
    data = {"x": [on_images.value], "y": [on_textures.value], "text": [audit.name]}
    bounds = {"low": [on_textures.low], "high": [on_textures.high]}
    return read_series({**data, **bounds}, "scatter", model=audit.name, place=audit.place)


def family(arch: object) -> str:
    """`torchvision/vgg16_bn` is of the family vgg."""
    found = re.match(r"[a-z]+", clean(arch or "").rpartition("/")[2].lower())
    return found[0] if found else "other"


def pearson(x: Sequence[float], y: Sequence[float]) -> float:
    """Correlation of the values; NaN where one of them never changes."""
    a, b = np.asarray(x, np.float64), np.asarray(y, np.float64)
    a, b = a - a.mean(), b - b.mean()
    scale = math.sqrt(float((a @ a) * (b @ b)))
    return float(a @ b) / scale if scale > 0 else math.nan


def _correlations(points: Sequence[tuple[ReadAudit, Score, Score]]) -> dict[str, Any]:
    families = [family(a.model.get("arch")) for a, _, _ in points]
    rows: list[list[Any]] = []
    for left_out in [None, *sorted(set(families))]:
        kept = [(c.value, t.value) for (_, c, t), f in zip(points, families) if f != left_out]
        if len(kept) < FEWEST or (left_out and len(kept) == len(points)):
            continue
        x, y = zip(*kept)
        rows.append(
            [
                f"without {left_out}" if left_out else "all",
                len(kept),
                pearson(x, y),
                rank_correlation(np.array(x), np.array(y)),
            ]
        )
    title = "How accuracy on images and on textures go together"
    return {"title": title, "columns": ["models", "count", "Pearson", "Spearman"], "rows": rows}
