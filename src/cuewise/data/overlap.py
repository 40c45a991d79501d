"""Images that two sets share, by content: equal bytes, equal pixels where there are no bytes, or nearly equal pictures."""

from __future__ import annotations

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image as Pillow

from cuewise.data.dataset import Dataset
from cuewise.data.decode import BrokenImage, Image
from cuewise.errors import UserError
from cuewise.folders import is_embedded

NEAR_BITS = 10  # of 128: recompressed and rescaled copies differ in fewer, different photographs in about 50
SHOWN = 20  # pairs that a result names
SAMPLED = 64  # images that `content` looks at
STUDIED = 4096  # and `identity`, before a study trains on them
CHUNK = 1 << 24  # comparisons in memory at once
Pair = tuple[str, str]


@dataclass(frozen=True)
class Overlap:
    """Which images of a test set are in the training set.

    same   rows of the test set whose content is in the training set
    near   further rows that look almost the same as a training image (None where that was not asked)
    pairs  (test name, training name) of the first of them
    """

    images: int
    same: NDArray[np.int64]
    near: NDArray[np.int64] | None
    pairs: tuple[Pair, ...]

    @property
    def count(self) -> int:
        return len(self.same) + (0 if self.near is None else len(self.near))

    @property
    def whole(self) -> bool:
        """Whether the test set holds nothing but training images."""
        return self.images > 0 and self.count == self.images

    def __str__(self) -> str:
        """One line, empty where nothing is shared."""
        if not self.count:
            return ""
        near = f", {len(self.near)} of them nearly" if self.near is not None and len(self.near) else ""
        first = f"{self.pairs[0][0]} = {self.pairs[0][1]}" if self.pairs else ""
        return f"{self.count} of {self.images} test images are training images{near} (e.g. {first})"

    def as_dict(self) -> dict[str, Any]:
        near = {} if self.near is None else {"near": len(self.near)}
        pairs = [list(pair) for pair in self.pairs]
        return {"images": self.images, "shared": len(self.same), **near, "pairs": pairs}


def check_overlap(train: Dataset, test: Dataset, *, near: bool = False) -> Overlap:
    """Which test images are training images; `near` also finds rescaled and recompressed copies."""
    by_bytes = _has_bytes(train) and _has_bytes(test)
    ours, theirs = digests(test, by_bytes), digests(train, by_bytes)
    where = {digest: i for i, digest in reversed(list(enumerate(theirs))) if digest}
    found = [(i, where[digest]) for i, digest in enumerate(ours) if digest in where]
    close: list[tuple[int, int]] = []
    if near:
        known = {i for i, _ in found}
        close = [(i, j) for i, j in near_pairs(pictures(test), pictures(train)) if i not in known]
    pairs = tuple((test.name(i), train.name(j)) for i, j in (found + close)[:SHOWN])
    same, almost = (np.array([i for i, _ in part], np.int64) for part in (found, close))
    return Overlap(_readable(test, {i for i, _ in found + close}), same, almost if near else None, pairs)


def refuse_same(overlap: Overlap, name: str) -> None:
    """A test set of nothing but training images measures memory; the error says what to do instead."""
    if overlap.whole:
        raise UserError(
            f"--test {name}: all of its {overlap.images} images are in --train as well, so the score would be of images that "
            f"were fitted; leave --test out (a part of --train is held out), or give other images"
        )


def digests(data: Dataset, by_bytes: bool) -> list[bytes]:
    """A digest per image, of its encoded bytes or of its pixels; empty where an image cannot be read."""

    def digest(i: int) -> bytes:
        try:
            content = data.read(i) if by_bytes else None
            if content is None:
                image = data.image(i)
                content = repr(image.shape).encode() + np.ascontiguousarray(image).tobytes()
        except BrokenImage:
            return b""
        return hashlib.blake2b(content, digest_size=16).digest()

    return _in_threads(digest, len(data))


def content(data: Dataset, most: int = SAMPLED) -> str:
    """A digest of the files, or of `most` that are evenly spread: the fingerprint of a set knows only their names.

    Empty where images are made and not read: their fingerprint is that of the formula.
    """
    if not len(data) or not _has_bytes(data):
        return ""
    chosen = data.select(np.unique(np.linspace(0, len(data) - 1, most).astype(np.int64)))
    return hashlib.sha256(b"".join(digests(chosen, by_bytes=True))).hexdigest()


@lru_cache(maxsize=256)
def identity(specs: tuple[str, ...]) -> list[str]:
    """What stored numbers depend on beside the names of sets: their images, by name and content; embedded ones are their name."""
    from cuewise.data.open import open_data

    read = [open_data(spec) for spec in specs if not is_embedded(spec)]
    return [f"{data.fingerprint()['hash']} {content(data, STUDIED)}" for data in read]


def pictures(data: Dataset) -> NDArray[np.uint64]:
    """N×2: 128 bits per image that say where it gets brighter from left to right and from top to bottom.

    An image that cannot be read, or that is the same everywhere, is all 0 and near nothing.
    """

    def bits(i: int) -> bytes:
        try:
            return gradient_bits(data.image(i))
        except BrokenImage:
            return bytes(16)

    packed = _in_threads(bits, len(data))
    return np.frombuffer(b"".join(packed), dtype="<u8").reshape(-1, 2)


def gradient_bits(image: Image) -> bytes:
    grey = Pillow.fromarray(image).convert("L").resize((9, 9), Pillow.Resampling.BOX)
    levels = np.asarray(grey, np.int16)
    right, down = levels[:8, 1:] > levels[:8, :-1], levels[1:, :8] > levels[:-1, :8]
    return np.packbits(np.concatenate([right.ravel(), down.ravel()])).tobytes()


def near_pairs(
    ours: NDArray[np.uint64], theirs: NDArray[np.uint64], *, within: bool = False
) -> list[tuple[int, int]]:
    """The nearest of `theirs` for each of `ours`, where it is near enough; `within` one set, none is its own."""
    found = []
    rows = max(1, CHUNK // max(1, len(theirs)))
    blank = ~theirs.any(1)
    for start in range(0, len(ours), rows):
        part = ours[start : start + rows]
        distance = np.zeros((len(part), len(theirs)), np.uint8)
        for word in range(2):
            distance += np.bitwise_count(part[:, word, None] ^ theirs[None, :, word])
        distance[:, blank] = 255
        distance[~part.any(1)] = 255
        if within:
            distance[np.arange(len(part)), start + np.arange(len(part))] = 255
        nearest = distance.argmin(1)
        close = np.flatnonzero(distance[np.arange(len(part)), nearest] <= NEAR_BITS)
        found += [(start + int(i), int(nearest[i])) for i in close]
    return found


def _readable(test: Dataset, shared: set[int]) -> int:
    """How many images count: where nearly all are shared, the others are decoded, for broken files never count."""
    others = [i for i in range(len(test)) if i not in shared]
    if not shared or len(others) > 0.1 * len(test):
        return len(test)
    return len(test) - sum(1 for i in others if _is_broken(test, i))


def _is_broken(data: Dataset, i: int) -> bool:
    try:
        data.image(i)
    except BrokenImage:
        return True
    return False


def _has_bytes(data: Dataset) -> bool:
    """Whether every source stores encoded images."""
    try:
        starts = [s for s, end in zip(data.starts, data.starts[1:]) if end > s]
        whole = Dataset(data.sources)
        return all(whole.read(s) is not None for s in starts)
    except BrokenImage:
        return True


def _in_threads(function: Any, count: int) -> list[bytes]:
    """Reading and hashing both release the interpreter's lock."""
    if count < 64:
        return [function(i) for i in range(count)]
    with ThreadPoolExecutor(min(16, 2 * (os.cpu_count() or 1))) as pool:
        return list(pool.map(function, range(count), chunksize=64))
