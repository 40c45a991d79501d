"""Mutation fuzzing of the readers of files from strangers: no traceback, no hang, bounded memory.

    python benchmarks/fuzz.py [zip tar audit.json encoder.json] [--minutes 2] [--seed 0] [--keep FOLDER]

Each case is a valid file with a few bytes (or JSON values) replaced. A reader may accept it, skip images and say why, or
end in one line (UserError); anything else is a failure, and so are 10 seconds or 1 GB more than at the start. Failing
cases are written to --keep. Prints counts as JSON, then as a table.
"""

from __future__ import annotations

import argparse
import io
import json
import resource
import shutil
import signal
import sys
import tarfile
import tempfile
import time
import traceback
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image as Pillow

SECONDS, GIGABYTE = 10, 1 << 30
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
    *(
        None,
        True,
        -1,
        0,
        1e308,
        float("nan"),
        2**80,
        "",
        "\0",
        "../..",
        "<script>",
        "x" * 10_000,
        [],
        {},
        [[]],
    ),
    *(
        {"name": 1},
        ["a", 1],
        "timm/resnet18",
        "os:system",
        "cuewise/resnet-tiny?width=-1",
        "torchvision/none",
    ),
)


class Slow(BaseException):
    """A case took too long; no reader catches it."""


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
        holder, key = None, None
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


def pictures() -> dict[str, bytes]:
    """Small images of several kinds, by name."""
    rng = np.random.default_rng(0)
    found = {}
    for k, form in enumerate(("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP")):
        out = io.BytesIO()
        Pillow.fromarray(rng.integers(0, 256, (9, 12, 3), dtype=np.uint8)).save(out, form)
        found[f"{'ab'[k % 2]}/{k}.{form.lower()}"] = out.getvalue()
    return found


def zip_seed() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for k, (name, data) in enumerate(pictures().items()):
            with file.open(zipfile.ZipInfo(name), "w", force_zip64=k % 3 == 0) as member:
                member.write(data)
            file.filelist[-1].compress_type = zipfile.ZIP_STORED
        file.writestr("a/deflated.png", pictures()["a/0.png"], zipfile.ZIP_DEFLATED)
    return out.getvalue()


def tar_seed() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as file:
        for k, (name, data) in enumerate(pictures().items()):
            member = tarfile.TarInfo(name if k % 2 else f"{'long' * 40}/{name}")
            member.size = len(data)
            if k == 3:
                member.pax_headers = {"comment": "ä"}
            file.addfile(member, io.BytesIO(data))
    return out.getvalue()


class Reader:
    """A kind of file: a valid one, how it is changed, and what reads it."""

    def __init__(
        self,
        seed: bytes,
        change: Callable[[bytes, np.random.Generator], bytes],
        read: Callable[[bytes], None],
    ) -> None:
        self.seed, self.change, self.read = seed, change, read


def images_of(place: Path, name: str) -> Callable[[bytes], None]:
    from cuewise.data import BrokenImage, open_data

    def read(data: bytes) -> None:
        (place / name).write_bytes(data)
        found = open_data(place / name)
        for i in range(len(found)):
            try:
                found.image(i)
            except BrokenImage:
                continue

    return read


def run_folder(place: Path) -> Path:
    """An encoder without training."""
    from cuewise.encoders import load_encoder
    from cuewise.encoders.load import save_encoder

    place.mkdir(parents=True)
    save_encoder(load_encoder("cuewise/resnet-tiny?width=8", size=32), place / "encoder.safetensors", step=1)
    return place


def encoder_reader(place: Path) -> Reader:
    from cuewise.encoders import load_encoder

    run = run_folder(place / "run")

    def read(data: bytes) -> None:
        (run / "encoder.json").write_bytes(data)
        load_encoder(str(run))

    return Reader((run / "encoder.json").read_bytes(), mutated_json, read)


def audit_reader(place: Path) -> Reader:
    import cuewise

    run = run_folder(place / "run")
    options: dict[str, Any] = {
        "train": ["shapes:aligned?n=40&size=32"],
        "test": ["shapes:aligned?n=20&size=32"],
    }
    cuewise.audit(
        str(run), out=str(place / "one"), only="accuracy,shape_bias", limit=10, workers="0", **options
    )
    shutil.copytree(place / "one", place / "two")

    def read(data: bytes) -> None:
        (place / "two" / "audit.json").write_bytes(data)
        shutil.rmtree(place / "out", ignore_errors=True)
        cuewise.compare(str(place / "one"), str(place / "two"), out=str(place / "out"))

    return Reader((place / "one" / "audit.json").read_bytes(), mutated_json, read)


READERS: dict[str, Callable[[Path], Reader]] = {
    "zip": lambda place: Reader(zip_seed(), mutated, images_of(place, "a.zip")),
    "tar": lambda place: Reader(tar_seed(), mutated, images_of(place, "a.tar")),
    "encoder.json": encoder_reader,
    "audit.json": audit_reader,
}


def too_slow(number: int, frame: Any) -> None:
    raise Slow


def judge(reader: Reader, data: bytes) -> str:
    """accepted, refused, or what went wrong."""
    from cuewise.errors import UserError

    signal.alarm(SECONDS)
    try:
        reader.read(data)
    except UserError as error:
        return "refused" if len(str(error).splitlines()) == 1 else f"{len(str(error).splitlines())} lines"
    except Slow:
        return "hang"
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__} in {Path(place.filename).name}:{place.lineno}"
    finally:
        signal.alarm(0)
    return "accepted"


def fuzz(name: str, minutes: float, seed: int, keep: Path | None, place: Path) -> dict[str, Any]:
    """Counts of what became of the cases of one reader."""
    reader, rng = READERS[name](place), np.random.default_rng(seed)
    reader.read(reader.seed)
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    counts: Counter[str] = Counter()
    end = time.monotonic() + 60 * minutes
    while time.monotonic() < end:
        data = reader.change(reader.seed, rng)
        found = judge(reader, data)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - base
        if grown > GIGABYTE:
            found, base = "memory", base + grown
        if found not in ("accepted", "refused") and counts[found] == 0 and keep is not None:
            keep.mkdir(parents=True, exist_ok=True)
            (keep / f"{sum(counts.values())}-{name}").write_bytes(data)
        counts[found] += 1
    total = sum(counts.values())
    wrong = {k: n for k, n in counts.items() if k not in ("accepted", "refused")}
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - base
    return {"reader": name, "cases": total, "accepted": counts["accepted"], "refused": counts["refused"],
            "failures": wrong, "more_memory_mb": grown >> 20}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("readers", nargs="*", default=list(READERS), help=", ".join(READERS))
    parser.add_argument("--minutes", type=float, default=2, help="for each reader")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="folder for failing cases")
    given = parser.parse_args()
    signal.signal(signal.SIGALRM, too_slow)
    rows = []
    for name in given.readers:
        with tempfile.TemporaryDirectory() as place:
            rows.append(fuzz(name, given.minutes, given.seed, given.keep, Path(place)))
        print(json.dumps(rows[-1]), flush=True)
    print("\n| reader | cases | accepted | refused | failures | more memory |\n|---|---|---|---|---|---|")
    for r in rows:
        wrong = "; ".join(f"{n} × {k}" for k, n in r["failures"].items()) or "none"
        cells = (r["reader"], r["cases"], r["accepted"], r["refused"], wrong, f"{r['more_memory_mb']} MB")
        print("| " + " | ".join(map(str, cells)) + " |")
    return 1 if any(r["failures"] for r in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
