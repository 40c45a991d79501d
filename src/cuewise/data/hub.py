"""Hugging Face sets by name (`hf:NAME?split=test`), through the optional `datasets` package."""

from __future__ import annotations

import hashlib
import importlib
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuewise.data.decode import BrokenImage, Image, decode
from cuewise.data.options import options
from cuewise.data.parquet import LABELS, encode
from cuewise.data.source import Unannotated, one_source
from cuewise.errors import UserError


def open_hf(spec: str) -> Hub:
    """`hf:NAME`, `hf:NAME?split=validation`, `hf:NAME?config=plain_text`, or a folder made by save_to_disk."""
    name, given = options(spec.removeprefix("hf:"), spec, "split", "config")
    if not name:
        raise UserError(f"{spec}: no name given; write hf:NAME, for example hf:cifar10")
    try:
        package = importlib.import_module("datasets")
    except ImportError:
        raise UserError(f"{spec}: needs the datasets package; run: pip install 'cuewise[hf]'") from None
    try:
        saved = ("dataset_dict.json", "dataset_info.json")
        if any(os.path.isfile(os.path.join(name, file)) for file in saved):
            found = package.load_from_disk(name)
        else:
            found = package.load_dataset(name, given.get("config"))
    except Exception as error:  # network, name, script, permission: the package raises anything
        raise UserError(f"{spec} cannot be opened ({_line(error)}); check the name and the network") from None
    return Hub(spec, choose_split(found, given.get("split"), spec), package)


def choose_split(found: Any, split: str | None, spec: str) -> Any:
    """The named split; without a name `train`, or the only one."""
    if not isinstance(found, dict):
        if split is not None:
            raise UserError(f"{spec}: this set has no splits; leave out ?split=")
        return found
    if split is None:
        split = "train" if "train" in found or len(found) != 1 else next(iter(found))
    if split not in found:
        raise UserError(f"{spec}: no split {split!r}; it has: {', '.join(found)} (write ?split=NAME)")
    return found[split]


class Hub(Unannotated):
    """Rows of a `datasets.Dataset`, whose image column is read undecoded."""

    as_stored = True

    def __init__(self, spec: str, rows: Any, package: Any) -> None:
        self.spec = spec
        column = next((k for k, v in rows.features.items() if type(v).__name__ == "Image"), None)
        if column is None:
            raise UserError(f"{spec} has no column of images among: {', '.join(rows.features)}")
        self.column, self.rows = column, rows.cast_column(column, package.Image(decode=False))
        self.labels, self.classes = self._labels()
        self.columns: dict[str, NDArray[Any]] = {}

    def _labels(self) -> tuple[NDArray[np.int64] | None, tuple[str, ...]]:
        features = self.rows.features
        label = next((k for k, v in features.items() if type(v).__name__ == "ClassLabel"), None)
        label = label or next((name for name in LABELS if name in features), None)
        if label is None:
            return None, ()
        labels, classes = encode(list(self.rows[label]), tuple(getattr(features[label], "names", None) or ()))
        return (None, ()) if labels is None else (labels.astype(np.int64), classes)

    def __len__(self) -> int:
        return len(self.rows)

    def name(self, i: int) -> str:
        return f"{i:08d}"

    def read(self, i: int) -> bytes:
        value = self.rows[int(i)][self.column] or {}
        if value.get("bytes"):
            return bytes(value["bytes"])
        try:
            with open(value["path"], "rb") as file:
                return file.read()
        except (OSError, KeyError, TypeError):
            raise BrokenImage(self.name(i), "no bytes in this row") from None

    def image(self, i: int) -> Image:
        return decode(self.read(i), self.name(i))

    def fingerprint(self) -> dict[str, Any]:
        own = str(getattr(self.rows, "_fingerprint", ""))
        digest = hashlib.sha256(f"{self.spec}\n{len(self)}\n{own}".encode()).hexdigest()
        return one_source(self.spec, "hf", len(self), digest)


def _line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
