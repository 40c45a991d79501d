"""Where annotations lie: a folder on disk or a folder inside a zip, read in the same way."""

from __future__ import annotations

import os
import posixpath
import zipfile
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from cuewise.data.archive import Zip
from cuewise.data.folder import Folder
from cuewise.data.source import Listed
from cuewise.errors import UserError


class FileSet(Protocol):
    """A folder of text files and images."""

    @property
    def shown(self) -> str: ...
    def read(self, name: str) -> bytes | None:
        """A file below this folder, None where there is none."""
        ...

    def has_folder(self, name: str) -> bool: ...
    def names(self, folder: str) -> list[str]:
        """Sorted names of the files directly in a folder below this one."""
        ...

    def images(self, folder: str) -> Listed | None:
        """The images below a folder: as typed by the user, below this folder, or beside it; None where there is none."""
        ...


@dataclass(frozen=True)
class FilesOnDisk:
    """A folder on disk."""

    root: str

    @property
    def shown(self) -> str:
        return self.root

    def read(self, name: str) -> bytes | None:
        try:
            with open(os.path.join(self.root, name), "rb") as file:
                return file.read()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None
        except OSError as error:
            raise UserError(
                f"{os.path.join(self.root, name)} cannot be read ({error.strerror}); check it"
            ) from None

    def has_folder(self, name: str) -> bool:
        return os.path.isdir(os.path.join(self.root, name))

    def names(self, folder: str) -> list[str]:
        full = os.path.join(self.root, folder)
        return sorted(e.name for e in os.scandir(full) if e.is_file()) if os.path.isdir(full) else []

    def images(self, folder: str) -> Listed | None:
        typed = os.path.expanduser(folder)
        if ".zip" in typed:
            archive, _, inside = typed.partition(".zip")
            if os.path.isfile(archive + ".zip"):
                return Zip(archive + ".zip", inside.strip("/"))
        for path in (os.path.join(self.root, typed), typed, os.path.join(self.root, "..", typed)):
            if os.path.isdir(path):
                return Folder(os.path.normpath(path))
        return None


@dataclass(frozen=True)
class Archive:
    """A folder inside a zip; "" is all of it."""

    path: str
    inside: str = ""

    @property
    def shown(self) -> str:
        return f"{self.path}/{self.inside}" if self.inside else self.path

    @cached_property
    def file(self) -> zipfile.ZipFile:
        try:
            return zipfile.ZipFile(self.path)
        except zipfile.BadZipFile as error:
            raise UserError(
                f"{self.path} is not a complete zip archive ({error}); make or fetch it again"
            ) from None

    @cached_property
    def members(self) -> frozenset[str]:
        """Names in the archive; none where Python's reader gives up, and the images are then all that is read of it."""
        try:
            return frozenset(self.file.namelist())
        except (NotImplementedError, ValueError):  # a later version of the format, names in no known encoding
            return frozenset()

    def full(self, name: str) -> str:
        """A name below this folder as the archive knows it."""
        return posixpath.normpath(posixpath.join(self.inside, name))

    def read(self, name: str) -> bytes | None:
        if self.full(name) not in self.members:
            return None
        try:
            return self.file.read(self.full(name))
        except (zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:
            raise UserError(
                f"{self.path}/{self.full(name)} cannot be read ({error}); pack it again"
            ) from None

    def has_folder(self, name: str) -> bool:
        start = self.full(name) + "/"
        return any(member.startswith(start) for member in self.members)

    def names(self, folder: str) -> list[str]:
        start = self.full(folder) + "/"
        found = [m[len(start) :] for m in self.members if m.startswith(start) and m != start]
        return sorted(name for name in found if "/" not in name)

    def images(self, folder: str) -> Listed | None:
        for path in (posixpath.normpath(folder), self.full(folder)):
            if path in (".", "") or any(m.startswith(path + "/") for m in self.members):
                return Zip(self.path, "" if path == "." else path)
        return None


def read_all(place: FileSet, folder: str) -> dict[str, bytes]:
    """The files directly in a folder, by name."""
    return {
        name: data
        for name in place.names(folder)
        if (data := place.read(posixpath.join(folder, name))) is not None
    }


def need_images(place: FileSet, folder: str | None, spec: str) -> Listed:
    """The images of a folder that annotations name, or an error that says how to name it."""
    found = place.images(folder or ".")
    if found is None:
        raise UserError(
            f"{spec}: there is no folder {folder!r} with images; write ?images=FOLDER, from the working folder, "
            f"from the file's own folder or from the top of the zip"
        )
    return found


def need_text(place: FileSet, name: str, spec: str) -> str:
    """A text file, or an error."""
    data = place.read(name)
    if data is None:
        raise UserError(f"{spec}: there is no file {name} in {place.shown}")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"{spec} is not UTF-8 text ({error}); save it as UTF-8") from None
