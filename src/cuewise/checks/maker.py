"""What every maker promises, on a few embedded shapes."""

from __future__ import annotations

import hashlib
import json
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image

from cuewise.checks.check import need
from cuewise.data import open_data
from cuewise.errors import UserError
from cuewise.makers.maker import Maker
from cuewise.makers.run import make_set

SOURCE = "shapes?n=4&size=32"


def made(
    kind: type[Maker], out: Path, workers: int, limit: int | None = None, **settings: Any
) -> dict[str, Any]:
    """Its set as PNG files with a manifest, from the defaults."""
    return make_set(
        f"{kind.__module__}:{kind.__qualname__}",
        None if kind.has_source else SOURCE,
        out,
        set=settings,
        named=[],
        format="png",
        shards=None,
        manifest="jsonl",
        seed=3,
        workers=workers,
        limit=limit,
        dry_run=False,
        both=False,
        subset=None,
        grid=None,
        engine="local",
        address=None,
        overwrite=False,
    )


def files(folder: Path) -> dict[str, str]:
    """Everything that a set consists of, by name."""
    found = (p for p in folder.rglob("*") if p.is_file() and ".cuewise" not in p.parts)
    return {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest() for p in found}


def is_described(kind: type[Maker]) -> None:
    """It says what it makes, and its options have defaults."""
    maker = kind()
    need(maker.summary and "\n" not in maker.summary, "the summary is not one line")


def makes_images(kind: type[Maker]) -> None:
    """The set opens as DATA; its manifest has the size, seed and parameters of each image."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "set"
        found = made(kind, out, workers=0)
        need(found["made"] > 0, "it makes no image")
        need(not found["broken"], f"it fails on an image: {found['broken'][:1]}")
        rows = [json.loads(line) for line in (out / "manifest.jsonl").read_bytes().splitlines()]
        for row in rows:
            with Image.open(out / row["name"]) as image:
                need(image.mode == "RGB", f"{row['name']} is not RGB")
                need(
                    image.size == (row["width"], row["height"]),
                    f"{row['name']}: the manifest has another size",
                )
            need(set(kind().settings) <= set(row["parameters"]), "the manifest lacks an option")
        need(
            len(open_data(str(out))) == len({row["name"] for row in rows}),
            "images that were made cannot be opened",
        )


def is_deterministic_and_resumes(kind: type[Maker]) -> None:
    """Two processes, and a second call after a part, give the same bytes as one process at once."""
    with tempfile.TemporaryDirectory() as folder:
        whole, parts = Path(folder) / "whole", Path(folder) / "parts"
        made(kind, whole, workers=0)
        made(kind, parts, workers=2, limit=2)
        made(kind, parts, workers=2)
        need(
            files(whole) == files(parts), "a set made in parts by two processes differs from one made at once"
        )
        need(made(kind, whole, workers=0)["made"] == 0, "a finished set is made again")


def refuses_strange_options(kind: type[Maker]) -> None:
    """A setting that it does not have is an error, and nothing is written."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            made(kind, Path(folder) / "set", workers=0, no_such_setting=1)
        except UserError:
            return
    raise UserError("a setting that it does not have is ignored")


CHECKS = (is_described, makes_images, is_deterministic_and_resumes, refuses_strange_options)
