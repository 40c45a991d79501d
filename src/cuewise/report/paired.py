"""Paired differences: two models' decisions on the same images, which cancels how hard each image is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cuewise.report.markup import clean
from cuewise.report.numbers import finite
from cuewise.report.reading import mapping, sequence
from cuewise.scores import Z95

DRAWS = 4000
_TRUTHS = ("label", "class", "target", "truth")
_TRUE = {True, "1", "true", "True", "yes"}


@dataclass(frozen=True)
class Paired:
    """A statistic of two models on the same `n` images, and the 95 % interval of other − base."""

    base: float
    other: float
    low: float
    high: float
    how: str
    p: float = math.nan


def paired_scores(
    base: Mapping[str, Mapping[str, Any]], other: Mapping[str, Mapping[str, Any]], rng: np.random.Generator
) -> dict[str, Paired]:
    """Score name → paired difference, from every `…/decisions` table that both models have."""
    out: dict[str, Paired] = {}
    for table in base:
        if not table.endswith("decisions") or table not in other:
            continue
        out = {**_declared(base[table], other[table]), **out}
        a, b = outcomes(base[table]), outcomes(other[table])
        shared = [key for key in a if key in b]
        if not shared or len(shared) < max(len(a), len(b)):
            continue  # not the same images: the scores rest on different sets, and pairing would misstate them
        for name, found in _statistics([a[k] for k in shared], [b[k] for k in shared], rng).items():
            for score in _names(table.removesuffix("decisions").rstrip("/"), name):
                out.setdefault(score, found)
    return out


def _declared(a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, Paired]:
    """What a table itself says it pairs: `pairs` is score name → column, of yes and no or of numbers."""
    out: dict[str, Paired] = {}
    rows, others = per_image(a), per_image(b)
    if not rows or rows.keys() != others.keys():
        return out
    for score, column in mapping(a.get("pairs")).items():
        x, y = ([row.get(column) for row in part] for part in (rows.values(), [others[k] for k in rows]))
        if all(isinstance(v, bool) for v in (*x, *y)):
            out[clean(score)] = mcnemar(x, y)  # type: ignore[arg-type]
        elif all(finite(v) for v in (*x, *y)):
            out[clean(score)] = mean_difference([float(v) for v in x], [float(v) for v in y])  # type: ignore[arg-type]
    return out


def common_scores(a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, Paired]:
    """Means over the images that both models get right; `common` of a table is score name → column."""
    rows, others = per_image(a), per_image(b)
    both = [k for k, row in rows.items() if k in others and is_right(row) and is_right(others[k])]
    out: dict[str, Paired] = {}
    for score, column in mapping(a.get("common")).items():
        pairs = [(rows[k].get(column), others[k].get(column)) for k in both]
        kept = [(float(x), float(y)) for x, y in pairs if finite(x) and finite(y)]  # type: ignore[arg-type]
        if kept:
            found = mean_difference([x for x, _ in kept], [y for _, y in kept])
            out[clean(score)] = replace(found, how=f"on the {len(kept):,} images that both get right, paired")
    return out


def is_right(row: Mapping[str, Any]) -> bool:
    """Whether a row of a decisions table is a right answer."""
    return _outcome(row) == "right"


def per_image(table: Mapping[str, Any]) -> dict[tuple[str, int], dict[str, Any]]:
    """(image, its how-many-th row) → the row by column."""
    columns = [clean(c) for c in sequence(table.get("columns"))]
    out: dict[tuple[str, int], dict[str, Any]] = {}
    seen: dict[str, int] = {}
    for values in sequence(table.get("rows")):
        row = dict(zip(columns, sequence(values)))
        if "image" in row:
            image = clean(row["image"])
            seen[image] = seen.get(image, 0) + 1
            out[image, seen[image]] = row
    return out


def outcomes(table: Mapping[str, Any]) -> dict[tuple[str, int], str]:
    """(image, its how-many-th row) → `shape`, `texture` or `other`; `right` or `wrong` where there is one truth."""
    found = {key: _outcome(row) for key, row in per_image(table).items()}
    return {key: outcome for key, outcome in found.items() if outcome is not None}


def _outcome(row: Mapping[str, Any]) -> str | None:
    response = row.get("response")
    if {"shape", "texture", "response"} <= row.keys():
        if row["shape"] == row["texture"]:
            return None  # no conflict, no decision between cues
        return "shape" if response == row["shape"] else "texture" if response == row["texture"] else "other"
    if "correct" in row:
        return "right" if row["correct"] in _TRUE else "wrong"
    truth = next((row[key] for key in _TRUTHS if key in row), None)
    if truth is None or "response" not in row:
        return None
    return "right" if response == truth else "wrong"


def _names(prefix: str, statistic: str) -> list[str]:
    names = [f"{prefix}/{statistic}", statistic] if prefix else [statistic]
    if statistic == "accuracy":
        names.append(f"{prefix}/top1")
    return names + [prefix] if statistic in {"accuracy", "shape_bias"} and prefix else names


def _statistics(a: Sequence[str], b: Sequence[str], rng: np.random.Generator) -> dict[str, Paired]:
    if "right" in a or "wrong" in a:
        return {"accuracy": mcnemar([x == "right" for x in a], [x == "right" for x in b])}
    return {
        "shape_bias": bootstrap_bias(a, b, rng),
        "shape_accuracy": mcnemar([x == "shape" for x in a], [x == "shape" for x in b]),
        "texture_accuracy": mcnemar([x == "texture" for x in a], [x == "texture" for x in b]),
    }


def mcnemar(a: Sequence[bool], b: Sequence[bool]) -> Paired:
    """Difference of two accuracies on the same images: exact McNemar p, Bonett and Price's interval (2012).

    gained = images only b has right, lost = images only a has right; the others say nothing about the difference.
    """
    n = len(a)
    gained = sum(y and not x for x, y in zip(a, b))
    lost = sum(x and not y for x, y in zip(a, b))
    up, down = (gained + 1) / (n + 2), (lost + 1) / (n + 2)
    centre = up - down
    half = Z95 * math.sqrt(max(0.0, up + down - centre**2) / (n + 2))
    how = f"paired over {n:,} images, exact McNemar test"
    return Paired(
        sum(a) / n, sum(b) / n, centre - half, centre + half, how, binomial_p(gained, gained + lost)
    )


def mean_difference(a: Sequence[float], b: Sequence[float]) -> Paired:
    """Difference of two means over the same images, with the normal interval of the mean of the differences."""
    x, y = np.asarray(a, np.float64), np.asarray(b, np.float64)
    d, n = y - x, len(x)
    half = Z95 * float(d.std(ddof=1)) / math.sqrt(n) if n > 1 else math.nan
    centre = float(d.mean())
    return Paired(float(x.mean()), float(y.mean()), centre - half, centre + half, f"paired over {n:,} images")


def binomial_p(hits: int, n: int) -> float:
    """Two-sided p of `hits` in `n` fair coin throws."""
    if n == 0:
        return 1.0
    tail = min(hits, n - hits)
    logs = [
        math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) - n * math.log(2)
        for k in range(tail + 1)
    ]
    return min(1.0, 2 * sum(math.exp(x) for x in logs))


def bootstrap_bias(a: Sequence[str], b: Sequence[str], rng: np.random.Generator) -> Paired:
    """Difference of two shape biases on the same images, by resampling images.

    An image falls into one of 3 × 3 cells (what a decided × what b decided), so a resample is one multinomial draw.
    """
    kinds = {"shape": 0, "texture": 1, "other": 2}
    cells = np.zeros((3, 3))
    for x, y in zip(a, b):
        cells[kinds[x], kinds[y]] += 1
    n = len(a)
    draws = rng.multinomial(n, cells.ravel() / n, size=DRAWS).reshape(DRAWS, 3, 3)
    gap = _bias(draws.sum(1)) - _bias(draws.sum(2))
    gap = gap[np.isfinite(gap)]
    low, high = np.quantile(gap, [0.025, 0.975]) if len(gap) else (math.nan, math.nan)
    values = [float(_bias(cells.sum(axis)[None])[0]) for axis in (1, 0)]
    how = f"paired over {n:,} images, bootstrapped {DRAWS:,} times"
    return Paired(values[0], values[1], float(low), float(high), how)


def _bias(counts: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    decided = counts[:, 0] + counts[:, 1]
    return np.where(decided > 0, counts[:, 0] / np.maximum(decided, 1), np.nan)
