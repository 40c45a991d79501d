"""Some classes of a set, by a list in a file: one id or name a line, or a JSON list (ImageNet-100, for one)."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np

from cuewise.data import Dataset
from cuewise.errors import UserError


def read_list(file: str | os.PathLike[str]) -> list[str]:
    """The lines (what is behind # is a remark), or the entries of a JSON list."""
    try:
        text = Path(file).read_text(encoding="utf-8")
        if text.lstrip().startswith("["):
            return [str(entry) for entry in json.loads(text)]
    except (OSError, ValueError) as error:
        raise UserError(
            f"the list of classes {file} cannot be read ({error}); give one class a line"
        ) from None
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    return [line for line in lines if line]


def choose(dataset: Dataset, file: str | os.PathLike[str]) -> Dataset:
    """The images whose class is in the list; a line may go on behind the class's id ("n02869837 bonnet")."""
    if dataset.labels is None:
        raise UserError("--subset needs a set with classes: one folder a class")
    known = {name: k for k, name in enumerate(dataset.classes)}
    entries = read_list(file)
    found = [known.get(line, known.get(line.split()[0])) for line in entries]
    missing = [line for line, k in zip(entries, found) if k is None]
    if missing or not entries:
        what = (
            f"{missing[0]!r} and {len(missing) - 1} more" if len(missing) > 1 else repr((missing or [""])[0])
        )
        raise UserError(
            f"{file}: {what} of {len(entries)} listed classes not in the source, whose classes are like "
            f"{dataset.classes[0]!r}; mend the list or give the whole source"
        )
    return dataset.select(np.isin(dataset.labels, [k for k in found if k is not None]))
