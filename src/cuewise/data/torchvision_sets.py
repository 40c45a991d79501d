"""Sets in torchvision's own formats that already lie on disk (`torchvision:CIFAR10:ROOT?split=test`)."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuewise.data.decode import BrokenImage, Image, to_rgb
from cuewise.data.options import options
from cuewise.data.source import Unannotated, one_source
from cuewise.errors import UserError


def open_torchvision(spec: str) -> TorchvisionSet:
    """The set of that class below ROOT; never downloads. Without ?split= the training images."""
    name, colon, rest = spec.removeprefix("torchvision:").partition(":")
    root, given = options(rest, spec, "split")
    if not colon or not root:
        raise UserError(f"{spec}: write torchvision:NAME:ROOT, for example torchvision:CIFAR10:data")
    module = importlib.import_module("torchvision.datasets")
    names = sorted(n for n in module.__all__ if inspect.isclass(getattr(module, n)))
    if name not in names:
        raise UserError(f"{spec}: torchvision has no set {name!r}; it has: {', '.join(names)}")
    split = given.get("split", "train")
    root = os.path.expanduser(root)
    try:
        found = getattr(module, name)(root, **arguments(getattr(module, name), split, spec))
    except (RuntimeError, OSError, ValueError, TypeError, ImportError) as error:
        line = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise UserError(
            f"{spec}: no {name} ({split}) in {root} ({line}); put its files there, nothing is downloaded"
        ) from None
    return TorchvisionSet(spec, split, found)


def arguments(kind: Any, split: str, spec: str) -> dict[str, Any]:
    """How this class wants its split named."""
    known = inspect.signature(kind).parameters
    given: dict[str, Any] = {"download": False} if "download" in known else {}
    if "train" in known:
        if split not in ("train", "test"):
            raise UserError(f"{spec}: no split {split!r}; it has: train, test")
        given["train"] = split == "train"
    elif "split" in known:
        given["split"] = split
    elif "image_set" in known:
        given["image_set"] = split
    return given


class TorchvisionSet(Unannotated):
    """A torchvision dataset of (image, label); labels are kept where they are whole numbers."""

    def __init__(self, spec: str, split: str, found: Any) -> None:
        self.spec, self.split, self.found = spec, split, found
        self.labels, self.classes = labels_of(found)
        self.columns: dict[str, NDArray[Any]] = {}

    def __len__(self) -> int:
        return len(self.found)

    def name(self, i: int) -> str:
        return f"{self.split}/{i:06d}"

    def read(self, i: int) -> bytes | None:
        return None

    def image(self, i: int) -> Image:
        try:
            image = self.found[int(i)][0]
            image.load()
        except (OSError, SyntaxError, ValueError) as error:
            raise BrokenImage(self.name(i), f"cannot be decoded ({error})") from None
        return to_rgb(image, self.name(i))

    def fingerprint(self) -> dict[str, Any]:
        digest = hashlib.sha256(f"{type(self.found).__name__}\n{self.split}\n{len(self)}\n".encode())
        if self.labels is not None:
            digest.update(self.labels.astype("<i8").tobytes())
        return one_source(self.spec, "torchvision", len(self), digest.hexdigest())


def labels_of(found: Any) -> tuple[NDArray[np.int64] | None, tuple[str, ...]]:
    """Labels from whichever attribute the class keeps them in, or None."""
    for attribute in ("targets", "labels", "_labels", "y", "_samples"):
        values = getattr(found, attribute, None)
        if attribute == "_samples" and values:  # (file, label) each, as StanfordCars keeps them
            values = [sample[1] for sample in values]
        if values is None or len(values) != len(found):
            continue
        numbers = np.asarray(values)
        if numbers.ndim != 1 or numbers.dtype.kind not in "iu" or numbers.min() < 0:
            continue
        classes = tuple(str(c) for c in getattr(found, "classes", ()))
        if len(classes) <= int(numbers.max()):
            classes = tuple(str(i) for i in range(int(numbers.max()) + 1))
        return numbers.astype(np.int64), classes
    return None, ()
