"""One key for the content of an image set: two sets of the same file names are not the same set."""

from __future__ import annotations

import hashlib
import json
from weakref import WeakKeyDictionary

import numpy as np

from cuewise.data import Dataset
from cuewise.encoders.cached import content_stamp

_known: WeakKeyDictionary[Dataset, str] = WeakKeyDictionary()


def data_key(data: Dataset) -> str:
    """Changes with the list of images, with their files and with where they lie."""
    if data not in _known:
        _known[data] = hashlib.sha256(_content(data).encode()).hexdigest()
    return _known[data]


def _content(data: Dataset) -> str:
    own = [getattr(source, "content_key", None) for source in data.sources]
    if all(own):  # sets made of other sets
        rows = data.selection
        chosen = "" if rows is None else hashlib.sha256(rows.astype(np.int64).tobytes()).hexdigest()
        return " ".join([*(key() for key in own if key), chosen])
    facts = data.fingerprint()
    return json.dumps([content_stamp(data), facts["hash"], facts["sources"]], default=str)
