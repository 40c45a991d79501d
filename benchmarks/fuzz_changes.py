"""How benchmarks/fuzz.py changes a valid file: its bytes, the values of JSON, the words and numbers of a text."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np

NUMBERS = (
    0,
    1,
    127,
    128,
    255,
    2**15,
    2**16 - 1,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**40,
    2**63 - 1,
    2**63,
    2**64 - 1,
)
VALUES: tuple[Any, ...] = (
    *(None, True, -1, 0, 1e308, float("nan"), 2**80, "", "\0", "../..", "<script>", "x" * 10_000, [], {}, [[]]),
    *({"name": 1}, ["a", 1], "timm/resnet18", "os:system", "cuewise/resnet-tiny?width=-1", "torchvision/none"),
)  # fmt: skip
WORDS = (
    *("", "0", "-1", "1e308", "-1e308", "nan", "inf", "1" + "0" * 30, "0x10", "٣", "ä", "\0", "../..", "<a>" * 3000),
    *("</a>", "<!DOCTYPE a>", "&lt;", "&amp", "&a;", "*a", "&a [*a]", "{}", "[" * 3000, '"', "\n", "\r", ",", "," * 50),
    *("x" * 200_000, "999999999", "images", "a.jpg", "cat", "!!python/object:os.system", "%", "\ufeff", "\u2028"),
)  # fmt: skip


def mutated(data: bytes, rng: np.random.Generator) -> bytes:
    """A few bytes replaced, removed, doubled or cut off."""
    out = bytearray(data)
    for _ in range(int(rng.integers(1, 6))):
        at, n = int(rng.integers(len(out) or 1)), int(rng.choice([1, 2, 4, 8, 12, 64]))
        way = int(rng.integers(7))
        if way == 0:
            out[at : at + 1] = bytes([int(rng.integers(256))])
        elif way == 1:
            width = int(rng.choice([1, 2, 4, 8]))
            number = NUMBERS[int(rng.integers(len(NUMBERS)))] % 256**width
            out[at : at + width] = number.to_bytes(width, "little" if rng.random() < 0.7 else "big")
        elif way == 2:
            del out[at : at + n]
        elif way == 3:
            out[at:at] = out[at : at + n]
        elif way == 4:
            out[at : at + n] = b"\xff" * n if rng.random() < 0.5 else bytes(n)
        elif way == 5:
            other = int(rng.integers(len(out) or 1))
            out[at : at + n] = out[other : other + n]
        elif rng.random() < 0.3:
            del out[at:]
    return bytes(out)


def mutated_json(data: bytes, rng: np.random.Generator) -> bytes:
    """A few values replaced by others that JSON allows, or bytes as above."""
    if rng.random() < 0.3:
        return mutated(data, rng)
    tree = json.loads(data)
    for _ in range(int(rng.integers(1, 4))):
        holder: Any = None
        key: Any = None
        node = tree
        while isinstance(node, dict | list) and node and (holder is None or rng.random() < 0.8):
            keys: list[Any] = list(node) if isinstance(node, dict) else list(range(len(node)))
            holder, key = node, keys[int(rng.integers(len(keys)))]
            node = holder[key]
        if holder is None:
            break
        if rng.random() < 0.2:
            del holder[key]
        else:
            holder[key] = json.loads(json.dumps(VALUES[int(rng.integers(len(VALUES)))]))
    return json.dumps(tree).encode()


def mutated_text(data: bytes, rng: np.random.Generator) -> bytes:
    """A few words or numbers replaced by odd ones, or bytes as above."""
    if rng.random() < 0.4:
        return mutated(data, rng)
    parts = re.split(r"([\w.]+)", data.decode())
    for _ in range(int(rng.integers(1, 4))):
        parts[int(rng.integers(len(parts)))] = WORDS[int(rng.integers(len(WORDS)))]
    return "".join(parts).encode("utf-8", "surrogatepass")
