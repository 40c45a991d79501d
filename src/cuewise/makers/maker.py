"""A maker: plans which files an image set will have, and makes those of one item."""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Self, get_args, get_type_hints

import numpy as np

from cuewise.cues.cue import Cue
from cuewise.data import Dataset, Image
from cuewise.errors import UserError
from cuewise.makers.layout import Layout, MakerTask
from cuewise.makers.mirror import mirror


@dataclass(frozen=True)
class Picture:
    """One made image, the seed it was made with, and what was drawn with that seed."""

    image: Image
    seed: int
    drawn: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Maker(ABC):
    """A kind of image set. A subclass is a frozen dataclass whose fields are its options:

        @dataclass(frozen=True)
        class Mirrored(Maker):
            name = "mirrored"
            summary = "every image, left and right exchanged"
            vertical: Annotated[bool, "top and bottom instead"] = False

            def draw(self, piece, seed):
                yield Picture(np.flip(piece.image(), 0 if self.vertical else 1), seed)

    Two machines make the same bytes: everything random follows from `item_seed`.
    """

    inputs: ClassVar[int] = 1  # images that an item is made of
    second: ClassVar[str] = "texture_source"  # what the manifest calls the second of them
    takes_both: ClassVar[bool] = True  # whether originals can be written beside the results
    has_source: ClassVar[bool] = False  # whether it brings its own images: SRC is left out
    table: ClassVar[str] = ""  # a CSV beside (or instead of) the images, from what was drawn for each
    columns: ClassVar[tuple[str, ...]] = ()  # of that table
    draws_images: ClassVar[bool] = True  # False: only the table is written

    @property
    @abstractmethod
    def name(self) -> str:
        """What the user types."""

    @property
    @abstractmethod
    def summary(self) -> str:
        """One line, for lists."""

    @abstractmethod
    def draw(self, piece: MakerTask, seed: int) -> Iterator[Picture]:
        """The variants of one item, in the order of its files; `seed` is that of the set."""

    def lay(self, dataset: Dataset, seed: int, end: str, both: str = "") -> Layout:
        """Which files there will be, with the ending `end`: by default one for each image, under its own name.

        both: a word that distinguishes results from originals, if those are written too.
        """
        return mirror(dataset, end, both=both)

    def prepared(self, seed: int) -> Self:
        """This maker with what has to be computed once, before any image is made."""
        return self

    def table_lines(self, row: Mapping[str, Any]) -> Iterator[Sequence[Any]]:
        """The lines of the table that a row of the manifest gives."""
        return iter(())

    def shown(self, image: Image, row: Mapping[str, Any]) -> Image:
        """How an image that was made (or looked at) is shown in the preview."""
        return image

    def finished(self, folder: Path, dataset: Dataset) -> None:
        """Called when all images of `dataset` are made."""
        return

    def source(self, seed: int) -> str:
        """The DATA to use where SRC is left out."""
        raise UserError(
            f"make {self.name} needs images and a folder to write: cuewise make {self.name} SRC DST"
        )

    @property
    def settings(self) -> dict[str, Any]:
        """Options by name."""
        return {f.name: getattr(self, f.name) for f in fields(self.declares)}

    def having(self, **options: Any) -> Self:
        """This maker with other options."""
        return replace(self, **options)

    @property
    def declares(self) -> Any:
        """The dataclass whose fields are the options."""
        return self

    @property
    def numbers(self) -> frozenset[str]:
        """Options with a word as default that take a whole number, too."""
        hints = get_type_hints(type(self.declares))
        texts = [name for name, default in self.settings.items() if isinstance(default, str)]
        return frozenset(name for name in texts if int in get_args(hints[name]))


@dataclass(frozen=True)
class OfCue(Maker):
    """The maker that applies one cue operator to every image; its options are those of the operator."""

    cue: Cue

    @property
    def name(self) -> str:
        return self.cue.name

    @property
    def summary(self) -> str:
        return self.cue.summary

    @property
    def settings(self) -> dict[str, Any]:
        return self.cue.settings

    def having(self, **options: Any) -> Self:
        return replace(self, cue=self.cue.having(**options))

    @property
    def declares(self) -> Cue:
        return self.cue

    def draw(self, piece: MakerTask, seed: int) -> Iterator[Picture]:
        own = item_seed(seed, self.name, piece.names[0])
        image, drawn = self.cue.rendered(piece.image(), np.random.default_rng(own))
        yield Picture(image, own, drawn)


def item_seed(seed: int, kind: str, name: str) -> int:
    """A stable 63-bit hash of the set's seed, the kind and the image's name: the same in any order and process."""
    key = f"{seed}\0{kind}\0".encode() + os.fsencode(name)
    return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "little") >> 1
