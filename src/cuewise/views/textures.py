"""Textures of training images: made beforehand, or synthesised when first needed and kept on disk."""

from __future__ import annotations

import hashlib
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import cv2
import numpy as np
from numpy.typing import NDArray

from cuewise.compiled import cache_root
from cuewise.cues.texture import Search, synthesize
from cuewise.cues.texture_patches import extract_patches
from cuewise.data import BrokenImage, Dataset, decode
from cuewise.errors import UserError
from cuewise.files import write_bytes

Pixels = NDArray[np.uint8]
LARGEST = 224  # side of a synthesised texture, unless the image is smaller
VERSION = 1  # of what the cache holds: raise it when a texture would come out differently


class Textures(Protocol):
    """Where textures come from."""

    def texture(self, image: Pixels, index: int, number: int) -> Pixels:
        """Texture `number` of the image, which is image `index` of the training set."""
        ...

    def warm_up(self) -> None:
        """Compile what is needed, on noise."""
        ...


@dataclass(frozen=True)
class MadeCopies:
    """Copies from image sets that mirror the training set."""

    sets: tuple[Dataset, ...]
    partners: tuple[NDArray[np.int64], ...]  # for each set: training image → image of the set, −1 without
    option: str = "--texture-data"  # that names the sets
    kind: str = "texture"  # of `cuewise make`

    def image(self, index: int, number: int) -> Pixels:
        """The copy of training image `index` in set `number`."""
        there, partner = self.sets[number], int(self.partners[number][index])
        if partner < 0:
            raise UserError(
                f"{self.option} has no {self.kind} of image {index}: it could not be read when they were made; "
                f"run `cuewise make {self.kind}` again"
            )
        try:
            return there.image(partner)
        except BrokenImage as error:
            raise UserError(
                f"{self.option}: {error.name} {error.why}; delete it and run `cuewise make {self.kind}` again"
            ) from None

    def copy(self, image: Pixels, index: int, number: int) -> Pixels:
        """The same, of the size of the image: crops are drawn for that."""
        found = self.image(index, number)
        if found.shape != image.shape:
            raise UserError(
                f"{self.option}: the copy of image {index} has {found.shape[1]}×{found.shape[0]} pixels and the image "
                f"{image.shape[1]}×{image.shape[0]}; make the copies from this set"
            )
        return found


@dataclass(frozen=True)
class MadeTextures(MadeCopies):
    """One set of textures for each negative of an image."""

    def texture(self, image: Pixels, index: int, number: int) -> Pixels:
        return self.image(index, number)

    def warm_up(self) -> None:
        """Nothing to compile."""


@dataclass(frozen=True)
class SynthesisedTextures:
    """Textures made when they are first needed (the fast preset) and kept on disk.

    One file for each (image, seed, number), named by a digest of the pixels: the same picture is never synthesised twice,
    from any file, archive or run. Files are written aside and renamed, so a kill leaves no partial file.
    """

    seed: int = 0

    def texture(self, image: Pixels, index: int, number: int) -> Pixels:
        digest = hashlib.blake2b(np.ascontiguousarray(image).data, digest_size=20)
        digest.update(f"{VERSION} {image.shape} {Search()} {self.seed} {number}".encode())
        name = digest.hexdigest()
        file = folder() / name[:2] / f"{name}.png"
        found = stored(file)
        if found is None:
            found = fast_texture(image, np.random.default_rng(int.from_bytes(digest.digest(), "little")))
            store(file, found)
        return found

    def warm_up(self) -> None:
        rng = np.random.default_rng(0)
        fast_texture(rng.integers(0, 256, (16, 16, 3), dtype=np.uint8), rng)


def fast_texture(image: Pixels, rng: np.random.Generator) -> Pixels:
    """A texture of the image's size, 224×224 where it is larger, from its centre patch and a random one."""
    size = image.shape[:2] if max(image.shape[:2]) <= LARGEST else (LARGEST, LARGEST)
    examples = extract_patches(image, rng).examples
    return synthesize(examples, (size[0], size[1]), rng=rng)


def folder() -> Path:
    """Where synthesised textures are kept."""
    return cache_root() / "textures"


def stored(file: Path) -> Pixels | None:
    """The texture in a file, None where there is none or it cannot be read (then it is made again)."""
    try:
        return decode(file.read_bytes(), file.name)
    except (OSError, BrokenImage):
        return None


_warned: set[str] = set()


def store(file: Path, texture: Pixels) -> None:
    """Write aside, then rename; where the cache cannot be written training continues without it, and says so once."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        _, data = cv2.imencode(".png", np.ascontiguousarray(texture[:, :, ::-1]))
        write_bytes(file, data.tobytes(), shared=True, sync=False)
    except OSError as error:
        why = error.strerror or str(error)
        if why not in _warned:
            _warned.add(why)
            print(f"cuewise: textures cannot be kept in {folder()} ({why}): made again each time; "
                  "free some space or set CUEWISE_CACHE", file=sys.stderr, flush=True)  # fmt: skip
