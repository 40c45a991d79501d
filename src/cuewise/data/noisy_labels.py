"""Labels that may be wrong: which images are trusted (gold), and what the labels of the others (silver) have become."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuewise.data.dataset import Dataset
from cuewise.data.headers import has_image_ending
from cuewise.data.relabelled import Relabelled
from cuewise.data.sample import Facts
from cuewise.errors import UserError

Labels = NDArray[np.int64]
SHOWN = 3  # names that an error lists


@dataclass(frozen=True)
class Noise:
    """How labels become noisy.

    share  of the silver labels that are replaced at random, uniformly over all classes, the right one included
    gold   share of the images whose labels are trusted, or a file that lists those images; None: none
    seed   of the split and of the new labels
    """

    share: float = 0.0
    gold: float | str | None = None
    seed: int = 0


class NoisyLabels(Relabelled):
    """A set whose labels are `given`; `facts(i).trusted` says which of them are known to be right. Picklable.

    clean  the labels that the set itself has: the truth where noise was added, the same as `given` otherwise
    """

    labels: Labels

    def __init__(self, whole: Dataset, given: Labels, trusted: NDArray[np.bool_]) -> None:
        assert whole.labels is not None
        super().__init__(whole, given, whole.classes)
        self.whole, self.trusted, self.clean = whole, trusted, whole.labels

    def facts(self, i: int) -> Facts:
        return replace(super().facts(i), trusted=bool(self.trusted[i]))

    def fingerprint(self) -> dict[str, Any]:
        """That of the images, with the labels and the split in its hash."""
        found = super().fingerprint()
        own = self.labels.astype("<i8").tobytes() + self.trusted.tobytes()
        return {**found, "hash": hashlib.sha256(str(found["hash"]).encode() + own).hexdigest()}


def noisy(data: Dataset, noise: Noise) -> NoisyLabels:
    """The set under `noise`. What is drawn follows from seed, class and name of the original alone, so a filtered copy of
    an image has its label and its side of the split, whatever else is in the set and in whatever order."""
    assert data.labels is not None
    keys = [f"{data.classes[k]}\0{key}" for k, key in zip(data.labels.tolist(), originals(data))]
    if noise.gold is None:
        trusted = np.zeros(len(data), bool)
    elif isinstance(noise.gold, str):
        trusted = listed(data, keys, noise.gold)
    else:
        trusted = chosen(keys, data.labels, noise.gold, noise.seed)
    given = data.labels.copy()
    if noise.share:
        silver = np.flatnonzero(~trusted)
        redrawn = silver[[uniform(noise.seed, "redraw", keys[i]) < noise.share for i in silver]]
        count = len(data.classes)
        given[redrawn] = [int(uniform(noise.seed, "label", keys[i]) * count) for i in redrawn]
    return NoisyLabels(data, given, trusted)


def uniform(seed: int, use: str, key: str) -> float:
    """A number in [0, 1) that follows from its arguments."""
    digest = hashlib.blake2b(f"{seed}\0{use}\0".encode() + os.fsencode(key), digest_size=8).digest()
    return (int.from_bytes(digest, "little") >> 11) / 2**53


def stem(name: str) -> str:
    """'dog/rex.JPG' → 'dog/rex'."""
    return name.rpartition(".")[0] if has_image_ending(os.fsencode(name).rpartition(b"/")[2]) else name


def originals(data: Dataset) -> list[str]:
    """For each image the name that it shares with its copies: 'dog/rex' for dog/rex.jpg, and for dog/rex.anisotropic.png
    where there is a dog/rex of any ending, too."""
    stems = [_bare(data.name(i)) for i in range(len(data))]
    known = set(stems)
    found = []
    for name in stems:
        base, _, word = name.rpartition(".")
        found.append(base if base in known and word.replace("-", "").isalpha() else name)
    return found


def _bare(name: str) -> str:
    """Without any ending of an image: made of rex.jpg and rex.png, rex.jpg.png is a copy of both names."""
    while (shorter := stem(name)) != name:
        name = shorter
    return name


def chosen(keys: Sequence[str], labels: Labels, share: float, seed: int) -> NDArray[np.bool_]:
    """A share of the originals of every class, at least one of each, with all their copies."""
    by_class: dict[int, dict[str, float]] = {}
    for key, label in zip(keys, labels.tolist()):
        by_class.setdefault(label, {}).setdefault(key, uniform(seed, "gold", key))
    gold: set[str] = set()
    for own in by_class.values():
        order = sorted(own, key=lambda key: (own[key], key))
        gold.update(order[: max(1, round(share * len(order)))])
    return np.array([key in gold for key in keys])


def listed(data: Dataset, keys: Sequence[str], file: str) -> NDArray[np.bool_]:
    """The images that a file names, one per line as in the set, with all their copies; lines that begin with # are remarks."""
    try:
        text = Path(file).expanduser().read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is not text"
        raise UserError(
            f"labels.gold={file}: the list of trusted images cannot be read ({why}); give a share such as 0.05, "
            "or a file with one image name per line"
        ) from None
    lines = [line.strip() for line in text.splitlines()]
    wanted = [line for line in lines if line and not line.startswith("#")]
    by_name: dict[str, str] = {}
    for i, key in enumerate(keys):
        by_name.setdefault(data.name(i), key)
        by_name.setdefault(_bare(data.name(i)), key)
    missing = [line for line in wanted if line not in by_name]
    if missing or not wanted:
        what = "it names no image"
        if wanted:
            more = f" and {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""
            some = ", ".join(missing[:SHOWN]) + more
            what = f"{len(missing)} of its {len(wanted)} images are not in DATA: {some}"
        raise UserError(f"labels.gold={file}: {what} (names there are like {data.name(0)!r}); fix the list")
    gold = {by_name[line] for line in wanted}
    return np.array([key in gold for key in keys])


def copies(data: Dataset) -> int:
    """How many images are a copy of an earlier one, by name."""
    return len(data) - len(Counter(originals(data)))
