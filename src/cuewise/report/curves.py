"""Training curves from metrics.jsonl rows: one small figure for each metric, all runs together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cuewise.report.declared import title_of, words
from cuewise.report.figures import Figure, figure_of, read_series
from cuewise.report.markup import clean
from cuewise.report.numbers import finite
from cuewise.report.reading import mapping

POINTS = 300  # of one curve; longer runs are averaged over equal stretches
_FIRST = ("train/loss", "val/knn", "dials/feature_std", "dials/effective_rank", "dials/negative_similarity")
_LAST = ("lr", "train/images_per_s", "train/data_wait")
_SKIP = {"step", "epoch", "time", "seconds"}
# metric → its title and what it means
_METRICS = {
    "train/loss": ("Loss", "The training objective; only runs of the same objective compare."),
    "lr": ("Learning rate", ""),
    "val/knn": ("k-NN accuracy on --val", ""),
    "train/images_per_s": ("Images per second", ""),
    "train/data_wait": ("Time spent waiting for images", "Share of the time spent waiting for images."),
    "dials/feature_std": ("Spread of the features", "Near zero means collapse."),
    "dials/effective_rank": (
        "Effective rank",
        "How many directions the features use; a fall means collapse.",
    ),
    "dials/negative_similarity": (
        "Similarity to negatives",
        "Cosine between an image and its texture or patch negatives; lower means that they are distinguished.",
    ),
    "dials/alignment": (
        "Alignment",
        "Mean squared distance between two views of one image; lower is closer.",
    ),
    "guard/accuracy": ("Accuracy (drift guard)", "By the own classifier, or by nearest neighbours."),
    "guard/drop": ("Points of accuracy lost since the start", "--max-drop is the bound that warns."),
    "guard/agreement": ("Answers as at the start", "Share of the images; no labels are needed."),
    "guard/effective_rank": ("Effective rank (drift guard)", "A fall means that directions are lost."),
    "guard/alignment": ("Similarity to the start", "Mean cosine of features with those at step 0."),
    "dials/uniformity": ("Uniformity", "How evenly features cover the sphere; lower is more even."),
}


def curve_figures(
    curves: Mapping[str, Sequence[Mapping[str, Any]]], places: Mapping[str, int]
) -> list[Figure]:
    """One line figure per metric; `places` gives each run its model's colour."""
    keys: dict[str, None] = {}
    for rows in curves.values():
        for row in rows:
            keys.update(dict.fromkeys(k for k, v in mapping(row).items() if _is_drawn(k) and finite(v)))
    out = []
    for key in sorted(keys, key=_order):
        series = [s for s in (_curve(run, rows, key, places) for run, rows in curves.items()) if s["y"]]
        title, note = _METRICS.get(key) or _watched(key)
        out.append(figure_of("lines", title, series, xlabel="step", note=note, aside=key in _LAST))
    return out


def _is_drawn(key: str) -> bool:
    """Not the bounds of an interval, which are drawn around the value."""
    bound = key.startswith(("watch/", "guard/", "val/")) and key.endswith(("_low", "_high"))
    return key not in _SKIP and not bound


def _watched(key: str) -> tuple[str, str]:
    """The title of a score that --watch followed, or of any other metric."""
    if key.startswith("watch/"):
        note = "On a small fixed part of --val while training; the report's own scores rest on more images."
        return f"{title_of(key.removeprefix('watch/'))} over training", note
    if key.startswith("val/knn"):
        return _METRICS["val/knn"]
    return words(key), ""


def _order(key: str) -> tuple[int, str]:
    if key.startswith(("watch/", "guard/")):
        return (1 if key.startswith("watch/") else 2), key
    if key in _FIRST:
        return _FIRST.index(key), key
    if key in _LAST:
        return 100 + _LAST.index(key), key
    return (20 if key.startswith("val/") else 30 if key.startswith("dials/") else 40), key


def _curve(
    run: str, rows: Sequence[Mapping[str, Any]], key: str, places: Mapping[str, int]
) -> dict[str, Any]:
    names = (key, f"{key}_low", f"{key}_high")
    found = [
        (float(row.get("step", i)), *(float(row[n]) if finite(row.get(n)) else None for n in names))
        for i, row in enumerate(rows)
        if isinstance(row, Mapping) and finite(row.get(key)) and finite(row.get("step", i))
    ]
    points = sorted(found, key=lambda point: point[0] or 0.0)
    if len(points) > POINTS:
        width = len(points) / POINTS
        stretches = [points[int(i * width) : int((i + 1) * width)] for i in range(POINTS)]
        points = [(part[-1][0], sum(p[1] or 0.0 for p in part) / len(part), None, None) for part in stretches]
    data = {name: [p[i] for p in points] for i, name in enumerate(("x", "y", "low", "high"))}
    if any(p[2] is None or p[3] is None for p in points):
        del data["low"], data["high"]
    return read_series(data, "lines", model=clean(run), place=places.get(clean(run), len(places)))
