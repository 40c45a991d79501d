"""The set of corrupted copies: <corruption>/<severity>/<class>/<name>, as ImageNet-C is laid out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cuewise.cues.corruptions import CORRUPTIONS, FAMILIES, SEVERITIES, variants
from cuewise.data import Dataset
from cuewise.errors import UserError
from cuewise.make.layout import mirror
from cuewise.make.makers import Maker, Picture, Settings
from cuewise.make.plan import Piece, Plan

GROUPS: dict[str, tuple[str, ...]] = {
    "all": tuple(c.name for c in CORRUPTIONS.values() if c.in_mce),
    "extra": tuple(c.name for c in CORRUPTIONS.values() if not c.in_mce),
    **FAMILIES,
}


def chosen(given: Any) -> tuple[str, ...]:
    """ "all" (the 15 that count), "extra" (the other 4), a family such as "blur", names, or a list of those."""
    words = [w.strip() for w in given.split(",")] if isinstance(given, str) else [str(w) for w in given]
    found = [name for word in words for name in GROUPS.get(word, (word,))]
    for name in found:
        if name not in CORRUPTIONS:
            known = ", ".join([*GROUPS, *CORRUPTIONS])
            raise UserError(f"make corrupted: no corruption {name!r}; there are: {known}")
    return tuple(dict.fromkeys(found))


def strengths(given: Any) -> tuple[int, ...]:
    """ "all", or some of 1…5: 3, "1,3,5"."""
    words = str(given).split(",") if isinstance(given, str | int) else [str(w) for w in given]
    if words == ["all"]:
        return SEVERITIES
    for word in words:
        if not (word.strip().isdigit() and int(word) in SEVERITIES):
            raise UserError(f"make corrupted: severity {word!r}: all, or some of 1,2,3,4,5")
    return tuple(dict.fromkeys(int(word) for word in words))


def lay(dataset: Dataset, settings: Settings, seed: int, end: str) -> Plan:
    """Every image once in each folder."""
    folders = [f"{c}/{s}/" for c in chosen(settings["corruption"]) for s in strengths(settings["severity"])]
    return mirror(dataset, end, folders=folders)


def draw(piece: Piece, settings: Settings, seed: int) -> Iterator[Picture]:
    """All copies of one image; the generator of each is (seed of the set, name, corruption, severity)."""
    images = variants(
        piece.image(),
        seed=seed,
        name=piece.names[0],
        corruptions=chosen(settings["corruption"]),
        severities=strengths(settings["severity"]),
        scale_to_image=settings["scale_to_image"],
        frost_images=settings["frost_images"],
    )
    for corruption, severity, image in images:
        yield Picture(image, seed, {"corruption": corruption, "severity": severity})


CORRUPTED = Maker(
    "corrupted",
    "copies under the corruptions of ImageNet-C: <corruption>/<severity>/…",
    {"corruption": "all", "severity": "all", "scale_to_image": False, "frost_images": None},
    draw,
    lay,
    takes_both=False,
)
