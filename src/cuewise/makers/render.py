"""One item → the bytes and manifest rows of its files; the same on every engine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import cuewise
from cuewise.data import BrokenImage, Image
from cuewise.errors import UserError
from cuewise.makers.encode import Format
from cuewise.makers.layout import MakerTask
from cuewise.makers.names import ending
from cuewise.makers.registry import maker

Row = dict[str, Any]


@dataclass(frozen=True)
class SetSpec:
    """How items of a set are made; sent to every worker."""

    kind: str
    settings: dict[str, Any]
    seed: int
    format: Format
    both: bool = False
    version: str = cuewise.__version__


@dataclass(frozen=True)
class Made:
    """One item: its files, in order, with a row of the manifest each; or one row that says what is broken."""

    index: int
    files: tuple[tuple[str, bytes], ...]
    rows: tuple[Row, ...]

    @property
    def broken(self) -> str | None:
        """Why nothing was made."""
        return None if self.rows[0]["name"] is not None else str(self.rows[0]["broken"])


class Renderer:
    """Makes items by a spec; the maker is looked up once per process."""

    def __init__(self, spec: SetSpec) -> None:
        self.spec = spec
        self.maker = maker(spec.kind).having(**spec.settings)

    def make(self, piece: MakerTask) -> Made:
        """The item, or the row that says why it cannot be made; memory and disk errors pass."""
        try:
            pairs = list(self._files(piece) if self.maker.draws_images else self._rows(piece))
        except BrokenImage as error:
            return unreadable(self.spec.kind, piece.index, piece.names, error)
        except UserError as error:
            return broken(self.spec.kind, piece.index, piece.names, str(error))
        except Exception as error:  # one odd image must not end a run of days; it is listed with its reason
            why = f"{type(error).__name__}: {' '.join(str(error).split())}"
            return broken(self.spec.kind, piece.index, piece.names, why)
        files = tuple((name, data) for name, data, _ in pairs if data is not None)
        return Made(piece.index, files, tuple(row for _, _, row in pairs))

    def _rows(self, piece: MakerTask) -> Iterator[tuple[str, None, Row]]:
        """What was found on an image, where only that is needed."""
        for picture in self.maker.draw(piece, self.spec.seed):
            name, drawn = piece.names[0], dict(picture.drawn)
            yield name, None, row(piece, name, self.spec.kind, picture.image, None, picture.seed, drawn)

    def _files(self, piece: MakerTask) -> Iterator[tuple[str, bytes | None, Row]]:
        spec, made = self.spec, piece.files
        if spec.both:
            yield self._original(piece, made[0])
            made = made[1:]
        pictures = self.maker.draw(piece, spec.seed)
        for name, picture in zip(made, pictures, strict=True):
            data = spec.format.encode(picture.image)
            parameters = {**spec.settings, **picture.drawn}
            made_row = row(piece, name, spec.kind, picture.image, data, picture.seed, parameters)
            if len(piece.names) > 1:
                made_row[self.maker.second] = piece.names[1]
            yield name, data, made_row

    def _original(self, piece: MakerTask, name: str) -> tuple[str, bytes, Row]:
        image, data = piece.image(), piece.data[0]
        # Bytes as they are stored keep their quality; they are decoded first all the same, to know them whole.
        stored = data if isinstance(data, bytes) and name.endswith(ending(piece.names[0]) or "/") else None
        written = stored or self.spec.format.encode(image)
        return name, written, row(piece, name, "original", image, written, None, {})


def row(
    piece: MakerTask,
    name: str,
    kind: str,
    image: Image,
    data: bytes | None,
    seed: int | None,
    parameters: Row,
) -> Row:
    """A row of the manifest; data: of the file, None where none is written."""
    height, width = image.shape[:2]
    return {
        "index": piece.index,
        "name": name,
        "source": piece.names[0],
        **piece.facts,
        "kind": kind,
        "seed": seed,
        "width": width,
        "height": height,
        "bytes": None if data is None else len(data),
        "parameters": parameters,
    }


def broken(kind: str, index: int, names: tuple[str, ...], why: str) -> Made:
    """An item of which nothing can be made."""
    return Made(index, (), ({"index": index, "name": None, "source": names[0], "kind": kind, "broken": why},))


def unreadable(kind: str, index: int, names: tuple[str, ...], error: BrokenImage) -> Made:
    """An item one of whose sources is broken; the row is about the first, so another one is named."""
    return broken(kind, index, names, error.why if error.name == names[0] else str(error))
