"""Every maker: runs from the defaults, is deterministic, resumes, tells the truth in its manifest, opens as DATA."""

from __future__ import annotations

import hashlib
import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image as Pillow

import cuewise
from cuewise.catalogue import catalogue
from cuewise.data import open_data
from cuewise.encoders.libraries import build
from cuewise.encoders.load import save_encoder
from cuewise.errors import UserError
from cuewise.makers.registry import makers

NAMED = {  # what the documentation promises
    *("texture", "patch", "anisotropic", "robust", "bilateral", "cartoon", "gaussian", "corrupted"),
    *(
        "cue-conflict",
        "stylized",
        "sketch",
        "silhouette",
        "lowpass",
        "shapes",
        "boxes",
        "out-of-context",
        "learned",
        "background",
        "position",
        "size",
    ),
}
QUICK = {
    "texture": {"neighbours": 6, "random": 4},
    "corrupted": {"corruption": "all,extra", "severity": "1,5"},
    "shapes": {"n": 5},
    "cue-conflict": {"n": 4},
}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("source")
    rng = np.random.default_rng(0)
    for k, (kind, height, width) in enumerate(
        [("cat", 32, 40), ("cat", 40, 32), ("dog", 48, 48), ("dog", 33, 57)]
    ):
        small = Pillow.fromarray(rng.integers(0, 256, (6, 6, 3), dtype=np.uint8))
        path = folder / kind / f"{k}.jpg"
        path.parent.mkdir(exist_ok=True)
        small.resize((width, height), Pillow.Resampling.BICUBIC).save(path)
    return folder


@pytest.fixture(scope="module")
def generator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A generator with random weights, as a run of pix2pix leaves it."""
    folder = tmp_path_factory.mktemp("generator")
    torch.manual_seed(0)
    encoder = build(
        "cuewise/unet", {"width": 4, "residual": False}, size=16, spec="cuewise/unet?width=4&residual=False"
    )
    encoder.card = replace(encoder.card, method="pix2pix")
    save_encoder(encoder, folder / "encoder.safetensors", step=1)
    return folder


def masks_of(source: Path, folder: Path) -> Path:
    """The middle of each image, white on black."""
    for file in source.rglob("*.jpg"):
        with Pillow.open(file) as image:
            mask = Pillow.new("L", image.size)
            mask.paste(255, (10, 10, 22, 24))
        place = folder / file.relative_to(source).with_suffix(".png")
        place.parent.mkdir(parents=True, exist_ok=True)
        mask.save(place)
    return folder


def files(folder: Path) -> dict[str, str]:
    found = (p for p in folder.rglob("*") if p.is_file() and ".cuewise" not in p.parts)
    return {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest() for p in found}


def test_all_that_is_promised_is_there() -> None:
    assert set(makers()) >= NAMED


def test_the_catalogue_lists_every_maker_with_a_summary() -> None:
    listed = catalogue("makers")
    assert list(listed) == sorted(makers())
    assert all(listed.values())


OWN_SETS = ("boxes", "out-of-context")  # they need annotations, or write no images: tests/makers has them


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(set(makers()) - set(OWN_SETS)))
def test_contract(kind: str, source: Path, generator: Path, tmp_path: Path) -> None:
    options = {"set": QUICK.get(kind, {}), "seed": 3}
    if kind == "learned":
        options["set"] = {"generator": str(generator)}
    if kind in ("background", "position", "size"):
        options["set"] = {"masks": str(masks_of(source, tmp_path / "masks"))}
    sets = [kind] if makers()[kind].has_source else [kind, source]
    first = cuewise.make(*sets, tmp_path / "a", workers=0, **options)
    assert first["made"] > 0
    assert first["broken"] == []
    rows = [json.loads(line) for line in (tmp_path / "a" / "manifest.jsonl").read_bytes().splitlines()]
    for row in rows:
        with Pillow.open(io.BytesIO((tmp_path / "a" / row["name"]).read_bytes())) as image:
            assert image.format == "PNG"
            assert image.mode == "RGB"
            assert image.size == (row["width"], row["height"])
        assert set(makers()[kind].settings) <= set(row["parameters"])
        assert isinstance(row["seed"], int)
    assert len(open_data(str(tmp_path / "a"))) == len({row["name"] for row in rows})
    cuewise.make(*sets, tmp_path / "b", workers=2, limit=2, **options)
    cuewise.make(*sets, tmp_path / "b", workers=2, **options)
    assert files(tmp_path / "a") == files(tmp_path / "b")
    again = cuewise.make(*sets, tmp_path / "a", workers=0, **options)
    assert again["made"] == 0


OUTSIDE = """
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from cuewise.cues.cue import Cue
from cuewise.makers.maker import Maker, Picture


@dataclass(frozen=True)
class Mirrored(Maker):
    name = "mirrored"
    summary = "left and right exchanged"
    vertical: Annotated[bool, "top and bottom instead"] = False

    def draw(self, piece, seed):
        yield Picture(np.ascontiguousarray(np.flip(piece.image(), 0 if self.vertical else 1)), seed)


@dataclass(frozen=True)
class Inverted(Cue):
    name = "inverted"
    summary = "a negative"

    def render(self, image, drawn):
        return 255 - image
"""


def test_a_maker_and_a_cue_from_outside(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "outside_makers.py").write_text(OUTSIDE)
    monkeypatch.chdir(tmp_path)
    first = open_data(str(source)).image(0)
    for workers, options, axis in ((0, {}, 1), (2, {"vertical": True}, 0)):
        out = tmp_path / f"mirrored-{axis}"
        cuewise.make("outside_makers:Mirrored", source, out, set=options, workers=workers)
        assert np.array_equal(open_data(str(out)).image(0), np.flip(first, axis))
    cuewise.make("outside_makers:Inverted", source, tmp_path / "inverted", workers=0)
    assert np.array_equal(open_data(str(tmp_path / "inverted")).image(0), 255 - first)
    with pytest.raises(UserError, match="no setting 'speed'"):
        cuewise.make("outside_makers:Mirrored", source, tmp_path / "x", set={"speed": 1})
    with pytest.raises(UserError, match=r"did you mean gaussian\?"):
        cuewise.make("gausian", source, tmp_path / "x")
