"""Is the nearest image one of the same shape when pose, texture and colour change? For encoders without a head.

After ShapeY (Nam, Mel et al.): each image is a query; images of its shape that are too much like it otherwise are excluded,
by a growing margin, while all images of other shapes stay. A model of shape keeps finding the shape; one that goes by
appearance prefers another shape in the same colour.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from cuewise.audits.answerer import Ids, Unasked
from cuewise.audits.audit import Finding, Needs, audit
from cuewise.audits.figures import figure, series
from cuewise.audits.kinds import Kind
from cuewise.audits.measures import cues_of, inseparable
from cuewise.audits.retrieval import CHUNK, finite
from cuewise.audits.subject import Named, Subject
from cuewise.data import Dataset, open_data
from cuewise.scores import Score, proportion

EMBEDDED = ("shapes:coloured?n=800&part=test&size={}", "shapes:rotated?rho=0&n=800&part=test&size={}")
DRAWING = re.compile(r"^(.*?\d*)-")  # "cat7-elephant1.png": the 7th drawing of a cat


@dataclass(frozen=True)
class Attribute:
    """What may differ between images of one shape: a number per image, and the growing differences that are asked for.

    period  of a circle on which the values lie; 0: values are names, which are equal (0) or not (1)
    """

    name: str
    values: Ids
    period: int = 0
    steps: tuple[tuple[int, str], ...] = ((1, ""),)  # (least difference, how it is called)

    def apart(self, rows: Ids) -> NDArray[np.int64]:
        """Difference of each of `rows` to every image."""
        gap = np.abs(self.values[rows][:, None] - self.values[None])
        return np.minimum(gap, self.period - gap) if self.period else (gap > 0).astype(np.int64)


STEPS = {
    "texture": (0, ((1, ""),)),
    "drawing": (0, ((1, ""),)),
    "colour": (8, ((1, " 45°"), (2, " 90°"), (4, " 180°"))),
    "angle": (360, ((90, " 90°"), (180, " 180°"))),
}  # attribute → period, steps; in the order in which they are excluded
Level = tuple[str, tuple[tuple[Attribute, int], ...]]  # its name; what a match must differ in, by how much


def levels(attributes: Sequence[Attribute]) -> list[Level]:
    """Growing exclusion: nothing, then one attribute after the other, each by its growing steps."""
    out: list[Level] = [("anything", ())]
    fixed: list[tuple[Attribute, int]] = []
    words: list[str] = []
    for attribute in attributes:
        for least, called in attribute.steps:
            out.append((", ".join([*words, attribute.name + called]), (*fixed, (attribute, least))))
        fixed.append((attribute, attribute.steps[-1][0]))
        words.append(attribute.name + attribute.steps[-1][1])
    return out


def matched(features: NDArray[np.float32], shapes: Ids, level: Level) -> tuple[NDArray[np.bool_], float]:
    """Of each query that has a match left: whether its nearest candidate has its shape; and what guessing gives."""
    z = F.normalize(torch.from_numpy(np.asarray(features, np.float32)), dim=1)
    hits, guesses = [], []
    for start in range(0, len(z), CHUNK):
        rows = np.arange(start, min(len(z), start + CHUNK))
        same = shapes[rows][:, None] == shapes[None]
        far = np.ones_like(same)
        for attribute, least in level[1]:
            far &= attribute.apart(rows) >= least
        allowed = ~same | far
        allowed[rows - start, rows] = False
        matches = (allowed & same).sum(1)
        likeness = (z[start : start + CHUNK] @ z.T).numpy()
        nearest = np.where(allowed, likeness, -np.inf).argmax(1)
        asked = (matches > 0) & (matches < allowed.sum(1))
        hits.append((shapes[nearest] == shapes[rows])[asked])
        guesses.append((matches / np.maximum(1, allowed.sum(1)))[asked])
    found = np.concatenate(guesses)
    return np.concatenate(hits), float(found.mean()) if len(found) else float("nan")


def described(data: Dataset) -> tuple[Ids, list[Attribute]]:
    """The shape of each image (−1: not known) and what else is known of it, from columns or from names of stimuli."""
    columns = {k: v for k, v in data.columns.items() if v.ndim == 1 and np.issubdtype(v.dtype, np.integer)}
    if "shape" in columns:
        known = {k: columns[k] for k in STEPS if k in columns}
        shapes = columns["shape"].astype(np.int64)
    else:
        cues = [cues_of(data, i, set(data.classes)) for i in range(len(data))]
        drawn = [DRAWING.match(data.name(i).rpartition("/")[2]) for i in range(len(data))]
        shapes = _numbers([c[0] if c else "" for c in cues])
        shapes = np.where([c is not None for c in cues], shapes, -1)
        known = {"texture": _numbers([c[1] if c else "" for c in cues])}
        known["drawing"] = _numbers([d[1] if d else "" for d in drawn])
    found = [Attribute(name, v.astype(np.int64), *STEPS[name]) for name, v in known.items()]
    return shapes, [a for a in found if len(np.unique(a.values)) > 1]


def _numbers(names: Sequence[str]) -> Ids:
    return np.unique(names, return_inverse=True)[1].astype(np.int64)


@lru_cache(maxsize=4)
def _embedded(size: int) -> tuple[Named, ...]:
    specs = [spec.format(size) for spec in EMBEDDED]
    return tuple((spec.partition("?")[0], open_data(spec)) for spec in specs)


def asked(subject: Subject) -> list[Named]:
    """Sets of which shape and something else is known: the test sets, the stimuli; with the embedded data two of their own."""
    if subject.embedded:
        return list(_embedded(subject.encoder.card.size))
    return [(name, data) for name, data in [*subject.test, *subject.conflicts] if _knows_shapes(data)]


def _knows_shapes(data: Dataset) -> bool:
    if "shape" in data.columns and data.columns["shape"].ndim == 1:
        return bool(set(STEPS) & set(data.columns))
    looked = range(0, len(data), max(1, len(data) // 50))
    return all(cues_of(data, i, set(data.classes)) is not None for i in looked)


@audit(
    "matching",
    "is the nearest image of the same shape when texture, colour and pose must differ?",
    question="Does it find the same shape when everything else changes?",
    topic="shape_bias",
    rank=14,
    citation="after ShapeY (Nam, Mel et al.)",
    equation="matching = queries whose nearest image, of those not excluded, has their shape / queries",
    kinds=(
        Kind(
            "matching/*",
            "Nearest image has the shape ({})",
            "Share of images whose nearest neighbour has the same shape, where images of that shape count only if they "
            "differ from the query in what is named; images of other shapes always count.",
            better="high",
        ),
    ),
    needs=lambda subject: Needs(sets=asked(subject)),
    needs_answers=False,
)
def matching(subject: Subject) -> Finding:
    """Cosine neighbours of pooled features under growing exclusion, on every set whose shapes are known."""
    out = Finding()
    for name, data in asked(subject):
        found = finite(subject.features(data, name))
        shapes, attributes = described(data)
        kept = shapes[found.index] >= 0
        rows = found.index[kept]
        own = [replace(a, values=a.values[rows]) for a in attributes]
        textures = next((a.values for a in own if a.name == "texture"), None)
        if textures is not None and (why := inseparable([*zip(shapes[rows], textures)])):
            out.left[name] = why
            continue
        drawn: dict[str, Score] = {}
        for level in levels(own):
            hits, guess = matched(found.features[kept], shapes[rows], level)
            if not len(hits):
                continue
            few = len(rows) - len(hits)
            left = f"; {few} images without a match left out" if few else ""
            text = f"cosine on pooled features; {name}; a match must differ in {level[0]}{left}; interval over queries"
            text = text.replace("must differ in anything", "may be any other image")
            score = proportion(f"matching/{name}/{level[0]}", int(hits.sum()), len(hits), text)
            out.add(score, chance=guess)
            drawn[level[0]] = score
        if drawn:
            title = f"Nearest image has the shape, {name}"
            bars = series(subject.name, list(drawn), list(drawn.values()))
            out.figures[f"matching/{name}"] = figure(
                "bars", title, "what a match must differ in", bars, ylabel="share of images"
            )
    if not out.scores:
        raise Unasked(
            "; ".join(f"{name}: {why}" for name, why in out.left.items())
            or "no set says which shape, texture, colour or angle its images have: stimuli such as cat7-elephant1.png, or shapes"
        )
    return out
