"""From what the user typed to an image set."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Iterable
from dataclasses import replace
from itertools import product

from cuewise.data.annotations import FORMATS, open_annotated
from cuewise.data.annotations.places import Archive, FilesOnDisk
from cuewise.data.annotations.voc import is_voc, voc_root
from cuewise.data.archive import Zip
from cuewise.data.dataset import Dataset
from cuewise.data.folder import Folder
from cuewise.data.headers import kind
from cuewise.data.openers import open_outside
from cuewise.data.options import options
from cuewise.data.selection import Selected, Selection, split_selection
from cuewise.data.source import Source
from cuewise.data.subset import Subset, split_classes
from cuewise.errors import UserError, nearest
from cuewise.folders import is_embedded
from cuewise.memory import uncollected

KINDS = (
    "a folder of images, a .zip (or a folder inside one: set.zip/photo), .tar shards (shards-{000..099}.tar), "
    "a parquet file, hf:NAME, torchvision:CIFAR10:ROOT, shapes, or package.module:Name; with ?classes=FILE some of its "
    "classes; with objects: a folder or zip in VOC's layout (DIR?set=val), FILE.json?images=DIR (COCO), "
    "data.yaml?split=val (YOLO), FILE.csv?images=DIR"
)


def open_data(data: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> Dataset:
    """Open one image set, or several joined; docs/data.md says what each can be."""
    given = [data] if isinstance(data, str | os.PathLike) else list(data)
    if not given:
        raise UserError(f"no image set given; give {KINDS}")
    sources: list[Source] = []
    with uncollected():
        for item in given:
            sources += open_sources(os.fspath(item))
        return Dataset(sources)


def open_sources(spec: str) -> list[Source]:
    """The sources that one piece of DATA names."""
    typed = spec
    spec, classes = split_classes(spec)
    spec, asked = split_selection(spec)
    if classes is not None or asked:
        whole = Dataset(open_sources(spec))
        if classes is not None and not whole.object_classes:
            whole, classes = Dataset([Subset(whole, classes, spec)]), None
        if not asked and classes is None:
            return list(whole.sources)
        return [Selected(whole, replace(Selection.of(asked, typed), classes=classes), typed)]
    if is_embedded(spec):
        return [importlib.import_module("cuewise.data.embedded").ShapesSource(spec)]
    if spec.startswith("hf:"):
        return [importlib.import_module("cuewise.data.hub").open_hf(spec)]
    if spec.startswith("torchvision:"):
        return [importlib.import_module("cuewise.data.torchvision_sets").open_torchvision(spec)]
    own = None if os.path.exists(spec) else open_outside(spec)
    if own is not None:
        return [own]
    annotated = _open_annotated(spec)
    if annotated is not None:
        return [annotated]
    path = os.path.expanduser(spec)
    paths = [path] if os.path.exists(path) else expand(path)
    if all(_form(p) == "tar" for p in paths):
        return [_filled(importlib.import_module("cuewise.data.shards").Shards(paths), spec)]
    return [_filled(_open_path(p), p) for p in paths]


def _open_annotated(spec: str) -> Source | None:
    """The set with objects that the spec names, None where it names none."""
    path = os.path.expanduser(spec)
    given: dict[str, str] = {}
    if not os.path.exists(path):
        path, given = options(path, spec, "set", "images", "masks", "split") if "?" in path else (path, {})
    ending = os.path.splitext(path)[1].lower()
    if ending in FORMATS and ending and os.path.isfile(path):
        return open_annotated(FilesOnDisk(os.path.dirname(path) or "."), os.path.basename(path), given, spec)
    if os.path.isdir(path):
        if is_voc(FilesOnDisk(path)):
            return open_annotated(FilesOnDisk(path), "", given, spec)
    elif ".zip" in path.lower():
        archive, inside = _split(path)
        if _form(archive) == "zip":
            folder, _, name = inside.rpartition("/")
            if ending in FORMATS and ending != "" and name:
                return open_annotated(Archive(archive, folder), name, given, spec)
            root = voc_root(Archive(archive, inside))
            if root is not None:
                return open_annotated(root, "", given, spec)
    if given:
        raise UserError(
            f"{spec}: ?{next(iter(given))}= is for sets with objects: a folder or zip with JPEGImages and Annotations "
            f"(set=), a .json or .csv file (images=), a data.yaml (split=)"
        )
    return None


def _open_path(path: str) -> Source:
    if os.path.isdir(path):
        return Folder(path)
    archive, inside = _split(path)
    form = _form(archive)
    if form == "zip":
        return Zip(archive, inside)
    if inside:
        raise UserError(f"{path}: only .zip archives can be opened; {archive} is not one")
    if form == "tar":
        return importlib.import_module("cuewise.data.shards").Shards([archive])
    if form == "parquet":
        return importlib.import_module("cuewise.data.parquet").Parquet(archive)
    if form == "image":
        raise UserError(f"{path} is a single image; give the folder that it lies in")
    raise UserError(f"{path} is no image set that cuewise knows; give {KINDS}")


def _split(path: str) -> tuple[str, str]:
    """'a/set.zip/photo' → 'a/set.zip', 'photo'; an error where nothing of that name exists."""
    archive, inside = path, ""
    while archive and not os.path.exists(archive):
        head, tail = os.path.split(archive)
        if head == archive:
            break
        archive, inside = head, f"{tail}/{inside}" if inside else tail
    if not os.path.isfile(archive):
        folder, name = os.path.split(path.rstrip("/"))
        beside = os.listdir(folder or ".") if os.path.isdir(folder or ".") else []
        near = nearest(name, beside)
        hint = f"did you mean {os.path.join(folder, near)}?" if near else f"give {KINDS}"
        raise UserError(f"{path}: there is no such folder or file; {hint}")
    return archive, inside.strip("/")


def _form(path: str) -> str | None:
    """What the file's first bytes say it is."""
    if not os.path.isfile(path):
        return None
    try:
        with open(path, "rb") as file:
            head = file.read(512)
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}); check its permissions") from None
    if head[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
        return "zip"
    if head[:4] == b"PAR1":
        return "parquet"
    if head[257:262] == b"ustar" or path.lower().endswith(".tar"):
        return "tar"
    if path.lower().endswith(".zip"):
        raise UserError(f"{path} is not a zip archive, although its name says so; make or fetch it again")
    if re.search(r"\.(tar\.(gz|bz2|xz|zst|lz4)|tgz|tbz2?|txz)$", path.lower()):
        raise UserError(
            f"{path} is a compressed tar, in which images cannot be found without unpacking all of it; "
            "unpack it once (for example: gunzip) and give the .tar"
        )
    return "image" if kind(head) else None


def _filled(source: Source, spec: str) -> Source:
    if len(source):
        return source
    skipped = source.fingerprint()["skipped"]
    if skipped:
        first = skipped[0]
        raise UserError(
            f"{spec}: none of the {len(skipped)} image files can be used "
            f"(the first is {first['path']}: {first['why']}); fix or replace them"
        )
    names = sorted(os.listdir(spec)) if os.path.isdir(spec) else []
    packed = [os.path.join(spec, name) for name in names if name.endswith((".zip", ".tar", ".parquet"))]
    if packed:
        raise UserError(f"{spec} holds no images but archives; give them by name, for example {packed[0]}")
    raise UserError(f"{spec} holds no images; it needs .jpg, .png, .webp, .bmp, .tif, .gif or .ppm files")


def expand(text: str) -> list[str]:
    """'s-{000..002}.tar' → three names, '{a,b}.zip' → two; names without braces stay."""
    parts = re.split(r"(\{[^{}]*(?:,|\.\.)[^{}]*\})", text)
    return ["".join(choice) for choice in product(*(_choices(part) for part in parts))]


def _choices(part: str) -> list[str]:
    span = re.fullmatch(r"\{(\d+)\.\.(\d+)\}", part)
    if span:
        first, last = span.groups()
        width = max(len(first), len(last)) if first.startswith("0") or last.startswith("0") else 0
        low, high = int(first), int(last)
        numbers = range(low, high + 1) if low <= high else range(low, high - 1, -1)
        return [str(number).zfill(width) for number in numbers]
    if part.startswith("{") and "," in part:
        return part[1:-1].split(",")
    return [part]
