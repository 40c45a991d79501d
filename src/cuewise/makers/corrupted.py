"""The set of corrupted copies: <corruption>/<severity>/<class>/<name>, as ImageNet-C is laid out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

from cuewise.cues.corruptions import CORRUPTIONS, FAMILIES, SEVERITIES, variants
from cuewise.data import Dataset
from cuewise.errors import UserError
from cuewise.makers.layout import Layout, MakerTask
from cuewise.makers.maker import Maker, Picture
from cuewise.makers.mirror import mirror

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


@dataclass(frozen=True)
class CorruptedCopies(Maker):
    """All copies of one image; the generator of each follows from the set's seed, name, corruption and severity."""

    name = "corrupted"
    summary = "copies under the corruptions of ImageNet-C: <corruption>/<severity>/…"
    takes_both = False
    corruption: Annotated[str, "all (the 15 of mCE), extra (the other 4), a family, or names"] = "all"
    severity: Annotated[str, "all, or some of 1 to 5"] = "all"
    scale_to_image: Annotated[bool, "radii are of 224 px; multiply them by side/224"] = False
    frost_images: Annotated[str | None, "a folder of frost photographs [drawn patterns]"] = None

    def lay(self, dataset: Dataset, seed: int, end: str, both: str = "") -> Layout:
        """Every image once in each folder."""
        folders = [f"{c}/{s}/" for c in chosen(self.corruption) for s in strengths(self.severity)]
        return mirror(dataset, end, folders=folders)

    def draw(self, piece: MakerTask, seed: int) -> Iterator[Picture]:
        images = variants(
            piece.image(),
            seed=seed,
            name=piece.names[0],
            corruptions=chosen(self.corruption),
            severities=strengths(self.severity),
            scale_to_image=self.scale_to_image,
            frost_images=self.frost_images,
        )
        for corruption, severity, image in images:
            yield Picture(image, seed, {"corruption": corruption, "severity": severity})
