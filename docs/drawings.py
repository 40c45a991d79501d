"""The pictures of the pages that are made of declarations: what a cue does, what a method sees, what an audit asks about."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from cuewise.audits.audit import Audit
from cuewise.audits.change import CLEAN, Change, Copies, Input
from cuewise.audits.engine import Engine
from cuewise.audits.head import load_model
from cuewise.audits.subject import AuditSettings, Subject
from cuewise.audits.subjects import AuditRequest, prepare
from cuewise.config import complete, resolve
from cuewise.cues.cue import Cue
from cuewise.data import Dataset, open_data
from cuewise.methods import Method
from cuewise.train.shown import build_views
from cuewise.views import contact_sheet

Pixels = NDArray[np.uint8]
HERE = Path(__file__).parent
SIDE, ROWS, MOST = 96, 3, 8


@cache
def photographs() -> list[Pixels]:
    """The three photographs of the gallery, 224 × 224."""
    strip = np.asarray(Image.open(HERE / "images" / "photographs.jpg").convert("RGB"))
    return [np.ascontiguousarray(p) for p in np.split(strip, 3, axis=1)]


def cue_picture(cue: Cue) -> Image.Image:
    """Original photographs, and as the operator leaves them with its default options."""
    columns = {
        name: np.stack([photo, cue(photo, np.random.default_rng(3))])
        for name, photo in zip(("astronaut", "chelsea", "coffee"), photographs())
    }
    return contact_sheet(columns, ("as it is", cue.name), cell=160)


def method_picture(kind: type[Method], asked: dict[str, Any]) -> Image.Image | None:
    """The views of three embedded images, by role."""
    data = open_data([f"shapes{':scenes' if kind.name == 'hcl' else ''}?n=24&size={SIDE}"])
    config = complete(
        resolve({"method": kind.name, "size": SIDE, "data": ["shapes"], "batch_size": 8, **asked}), len(data)
    )
    setup = config.setup(len(data.classes))
    data = kind.usable(setup, data)
    views = build_views(config, data)
    rng = np.random.default_rng(5)
    return contact_sheet(stacked([views(data[i], rng) for i in range(ROWS)]), rows=ROWS, cell=SIDE)


def stacked(samples: Sequence[Any]) -> dict[str, Pixels]:
    """role → images; several negatives of one kind have a column each."""
    columns: dict[str, list[Pixels]] = {}
    for sample in samples:
        for role, view in sample.views.items():
            pixels = np.asarray(view)
            for i, one in enumerate(pixels if pixels.ndim == 4 else [pixels]):
                columns.setdefault(
                    role if pixels.ndim == 3 or len(pixels) == 1 else f"{role} {i + 1}", []
                ).append(one)
    return {role: np.stack(images) for role, images in columns.items()}


@cache
def subject() -> Subject:
    """A small model on the embedded shapes, asked nothing: audits say what they would look at."""
    encoder = load_model("cuewise/resnet-tiny", size=SIDE, classifier=None)
    request = AuditRequest([], [], "auto", 0, AuditSettings(limit=8))
    return prepare("cuewise/resnet-tiny", "example", encoder, HERE, request, Engine())


def audit_picture(audit: Audit) -> Image.Image | None:
    """The first images of the sets that the audit asks about, or the changed copies that it makes of an image."""
    needs = audit.needs(subject())
    changes = [c for c in needs.changes if c != CLEAN]
    if changes:
        return copies_picture(changes)
    sets = {name: pictures(data) for name, data in needs.sets[:MOST]}
    return contact_sheet(sets, rows=ROWS, cell=SIDE) if sets else None


def copies_picture(changes: Sequence[Change]) -> Image.Image:
    """A photograph under each change; of many, some spread over the list."""
    step = max(1, -(-len(changes) // MOST))
    shown = [CLEAN, *changes[::step]]
    copies = Copies((Input(SIDE),), tuple(shown), seed=0)
    columns: dict[str, list[Pixels]] = {}
    for number, photo in enumerate(photographs()):
        views = next(iter(copies.views(photo, f"photo {number}").values()))
        for change, view in zip(shown, views):
            columns.setdefault(caption(change), []).append(view)
    return contact_sheet({name: np.stack(v) for name, v in columns.items()}, rows=ROWS, cell=SIDE)


def caption(change: Change) -> str:
    values = " ".join(str(v) for _, v in change.settings)
    return (
        "as it is" if change == CLEAN else values.strip() or (f"empty {change.cue}" if values else change.cue)
    )


def pictures(data: Dataset) -> Pixels:
    step = max(1, len(data) // ROWS)
    return np.stack([np.asarray(data.image(i * step)) for i in range(min(ROWS, len(data)))])
