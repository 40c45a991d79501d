"""One pass over a set: every clue of every readable image, and what copies are found by."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cuewise.data import Dataset, Sample, Shown, ordered
from cuewise.data.overlap import gradient_bits
from cuewise.inspection.clue import Clue, Look, Numbers
from cuewise.progress import Progress

BATCH = 64
THUMB = 8
Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Gathered:
    """What was read of a set; row r is image index[r].

    clues    name → N×D; a clue that no image has is left out, an image that lacks one has a row of NaN
    digests  one per image, of its encoded bytes, or of its pixels where there are none
    bits     N×2: what nearly equal pictures share (data/overlap.py)
    thumbs   N×8×8×3: where they must agree in colour, too
    objects  the class of the largest object per image, −1 without
    skipped  (name, why) of what could not be read
    """

    index: Ids
    clues: Mapping[str, Numbers]
    digests: list[bytes]
    bits: NDArray[np.uint64]
    thumbs: NDArray[np.uint8]
    objects: Ids
    skipped: list[tuple[str, str]]


@dataclass(frozen=True)
class Looking:
    """The transform of the pass: picklable, and the same for any number of workers."""

    data: Dataset
    clues: tuple[Clue, ...]

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Shown:
        look = look_at(self.data, sample)
        facts = {clue.name: clue.numbers(look) for clue in self.clues}
        content = look.content() or sample.image.tobytes() + repr(sample.image.shape).encode()
        digest = hashlib.blake2b(content, digest_size=16).digest()
        views = {
            "digest": np.frombuffer(digest, np.uint8),
            "bits": np.frombuffer(gradient_bits(sample.image), np.uint8),
            "thumb": look.resized(THUMB),
        }
        return Shown(views, {"clues": Row(facts), "object": _largest_object(sample)})


@dataclass(frozen=True)
class Row:
    """The clues of one image; kept in one piece because some images lack some."""

    values: Mapping[str, Numbers | None]


def look_at(data: Dataset, sample: Sample) -> Look:
    """A sample with its bytes, which are read only where a clue asks."""
    return Look(sample, lambda: data.read(sample.index))


def _largest_object(sample: Sample) -> int:
    boxes = sample.facts.boxes
    return int(boxes.classes[int(boxes.areas.argmax())]) if boxes is not None and len(boxes) else -1


def gather(data: Dataset, clues: Sequence[Clue], name: str, workers: int) -> Gathered:
    """Read every image once."""
    index: list[int] = []
    rows: list[Row] = []
    digests: list[bytes] = []
    bits: list[NDArray[np.uint8]] = []
    thumbs: list[NDArray[np.uint8]] = []
    objects: list[int] = []
    skipped: list[tuple[str, str]] = []
    with Progress(len(data), "images", f"looking at {name}") as bar:
        for batch in ordered(data, Looking(data, tuple(clues)), BATCH, workers):
            skipped += batch.skipped
            if len(batch):
                index += batch.index.tolist()
                rows += batch.facts["clues"]
                objects += [int(o) for o in batch.facts["object"]]
                digests += [bytes(d) for d in batch.views["digest"].numpy()]
                bits.append(batch.views["bits"].numpy())
                thumbs.append(batch.views["thumb"].numpy())
            bar.add(len(batch) + len(batch.skipped))
    return Gathered(
        np.array(index, np.int64),
        {clue.name: found for clue in clues if (found := _stack([r.values[clue.name] for r in rows])) is not None},
        digests,
        np.ascontiguousarray(np.concatenate(bits)).view("<u8").reshape(-1, 2),
        np.concatenate(thumbs),
        np.array(objects, np.int64),
        skipped,
    )  # fmt: skip


def _stack(rows: Sequence[Numbers | None]) -> Numbers | None:
    """N×D with NaN for images without the clue; None where no image has it."""
    width = next((len(r) for r in rows if r is not None), None)
    if width is None:
        return None
    missing = np.full(width, np.nan, np.float32)
    return np.stack([missing if r is None else r for r in rows])
