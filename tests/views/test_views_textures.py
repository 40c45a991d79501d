"""Texture negatives: the parameters of their view, copied; found by name or synthesised once and kept."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from pillow_views import photo

from cuewise import make
from cuewise.data import Sample, open_data
from cuewise.errors import UserError
from cuewise.views import (
    RECIPES,
    PatchNegative,
    SynthesisedTextures,
    TextureNegative,
    View,
    Views,
    apply,
    made_textures,
)
from cuewise.views.negatives.texture import moved
from cuewise.views.textures import folder as cache_folder

pytestmark = pytest.mark.usefixtures("warm_start")

MOCO = replace(RECIPES["moco-v2"], size=32)
PAIR = [View("query", MOCO), View("key", MOCO)]


def kept() -> list[Path]:
    return sorted(cache_folder().rglob("*.png"))


@pytest.fixture(autouse=True)
def fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUEWISE_CACHE", str(tmp_path / "cache"))


def test_the_view_of_a_texture_has_the_parameters_of_its_source() -> None:
    negatives = [TextureNegative("query"), TextureNegative("key")]
    views, image = Views(PAIR, negatives), photo(48, 60)
    for i in range(4):
        params = views.sample(np.random.default_rng(i), 48, 60)
        shown = views.render(Sample(image), params).views
        texture = SynthesisedTextures().texture(image, 0, 0)
        assert texture.shape == image.shape
        for source in ("query", "key"):
            (shown_texture,) = shown[f"texture:{source}"]
            np.testing.assert_array_equal(shown_texture, apply(texture, params.positives[source], 32))


def test_a_crop_keeps_its_place_when_the_texture_has_another_size() -> None:
    params = MOCO.sample(np.random.default_rng(0), 300, 400)
    there = moved(params, (300, 400, 3), (224, 224, 3))
    assert replace(there, crop=params.crop) == params  # all else is copied
    for old, new, scale in (
        (params.crop.top, there.crop.top, 224 / 300),
        (params.crop.height, there.crop.height, 224 / 300),
        (params.crop.left, there.crop.left, 224 / 400),
        (params.crop.width, there.crop.width, 224 / 400),
    ):
        assert abs(old * scale - new) <= 1
    rng = np.random.default_rng(1)
    for _ in range(200):  # never outside, however small the texture
        h, w = rng.integers(8, 400, 2)
        crop = moved(params, (300, 400, 3), (h, w, 3)).crop
        assert 0 <= crop.top < crop.top + crop.height <= h
        assert 0 <= crop.left < crop.left + crop.width <= w


def test_textures_draw_nothing_and_leave_patches_and_positives_as_they_were() -> None:
    image, texture = photo(48, 48), TextureNegative(count=2)
    plain = Views(PAIR, [PatchNegative()])(Sample(image), np.random.default_rng(3)).views
    for order in ([texture, PatchNegative()], [PatchNegative(), texture]):
        views = Views(PAIR, order)(Sample(image), np.random.default_rng(3)).views
        for role in ("query", "key", "patch:query"):
            np.testing.assert_array_equal(views[role], plain[role])
        assert np.any(views["texture:query"][0] != views["texture:query"][1])


def test_synthesised_once_for_each_image_and_seed_and_kept() -> None:
    image = photo(40, 40)
    first = SynthesisedTextures(1).texture(image, 0, 0)
    assert len(kept()) == 1
    changed = kept()[0].stat().st_mtime_ns
    np.testing.assert_array_equal(SynthesisedTextures(1).texture(image, 7, 0), first)  # any index, any run
    assert kept()[0].stat().st_mtime_ns == changed
    others = [SynthesisedTextures(2).texture(image, 0, 0), SynthesisedTextures(1).texture(image, 0, 1)]
    assert all(np.any(o != first) for o in others)
    colours = {tuple(p) for p in image.reshape(-1, 3).tolist()}
    assert {tuple(p) for p in first.reshape(-1, 3).tolist()} <= colours  # nothing but pixels of the image
    again = pickle.loads(pickle.dumps(SynthesisedTextures(1)))
    kept()[0].write_bytes(b"\x89PNG broken")  # a damaged file is made again, the same
    for file in kept():
        file.write_bytes(file.read_bytes()[:30])
    np.testing.assert_array_equal(again.texture(image, 0, 0), first)


@pytest.mark.kill
def test_a_kill_leaves_no_half_of_a_texture(tmp_path: Path) -> None:
    code = (
        "import numpy as np\nfrom cuewise.views import SynthesisedTextures\nrng = np.random.default_rng(0)\n"
        "print('go', flush=True)\n"
        "while True: SynthesisedTextures().texture(rng.integers(0, 256, (16, 16, 3), dtype=np.uint8), 0, 0)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    deadline = time.monotonic() + 30
    while len(kept()) < 5 and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert len(kept()) >= 5
    for file in kept():
        assert np.asarray(Image.open(file)).shape == (16, 16, 3)


def test_a_cache_that_cannot_be_written_costs_time_only(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    image = photo(24, 24)
    one, two = (SynthesisedTextures().texture(image, 0, 0) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    assert capfd.readouterr().err.count("textures cannot be kept") == 1


def images(root: Path, names: list[str]) -> Path:
    for i, name in enumerate(names):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(photo(40, 40, i)).save(root / name)
    return root


NAMES = ["ant/a.jpg", "ant/a.png", "bee/ü 1.jpg", "bee/z.jpg"]


def test_made_textures_are_found_by_the_manifest(tmp_path: Path) -> None:
    """a.jpg and a.png have one stem: only the manifest tells their textures apart."""
    data = open_data(str(images(tmp_path / "data", NAMES)))
    for form in ("jsonl", "parquet"):
        place = tmp_path / form
        make("texture", str(tmp_path / "data"), str(place), manifest=form, workers="0")
        found = made_textures(data, [str(place)], 1)
        if form == "jsonl":
            rows = [json.loads(line) for line in (place / "manifest.jsonl").read_text().splitlines()]
        for i in range(len(data)):
            written = next(row["name"] for row in rows if row["source"] == data.name(i))
            expected = np.asarray(Image.open(place / written))
            np.testing.assert_array_equal(found.texture(data.image(i), i, 0), expected)


def test_without_a_manifest_names_must_agree(tmp_path: Path) -> None:
    names = ["ant/a.jpg", "bee/ü 1.jpg", "bee/z.jpg"]
    data = open_data(str(images(tmp_path / "data", names)))
    place = images(tmp_path / "own", [n.replace(".jpg", ".png") for n in names])
    found = made_textures(data, [str(place)], 1)
    for i in range(3):
        expected = photo(40, 40, names.index(data.name(i)))
        np.testing.assert_array_equal(found.texture(data.image(i), i, 0), expected)
    (place / "bee/z.png").unlink()
    with pytest.raises(UserError, match=r"no texture of bee/z\.jpg \(3 images\)"):
        made_textures(data, [str(place)], 1)


def test_a_missing_partner_is_named_and_a_broken_one_too(tmp_path: Path) -> None:
    root = images(tmp_path / "data", NAMES[2:])
    place = tmp_path / "made"
    make("texture", str(root), str(place), workers="0")
    images(root, ["bee/new.jpg", "bee/other.jpg"])
    with pytest.raises(UserError, match=r"no texture of bee/new\.jpg and 1 more"):
        made_textures(open_data(str(root)), [str(place)], 1)
    data = open_data(str(root)).select([i for i in range(4) if i not in (0, 1)])
    (place / "bee" / "z.png").write_bytes((place / "bee" / "z.png").read_bytes()[:200])
    found = made_textures(data, [str(place)], 1)
    last = [data.name(i) for i in range(2)].index("bee/z.jpg")
    with pytest.raises(UserError, match=r"bee/z\.png"):
        found.texture(data.image(last), last, 0)
    (place / "bee" / "z.png").unlink()
    with pytest.raises(UserError, match=r"no texture of bee/z\.jpg"):
        made_textures(data, [str(place)], 1)


def test_an_image_that_was_broken_when_textures_were_made_has_none(tmp_path: Path) -> None:
    root = images(tmp_path / "data", NAMES[2:])
    whole = (root / "bee/z.jpg").read_bytes()
    (root / "bee/z.jpg").write_bytes(whole[:300])
    make("texture", str(root), str(tmp_path / "made"), workers="0")
    data = open_data(str(root))
    found = made_textures(data, [str(tmp_path / "made")], 1)  # it is not read while training, either
    last = [data.name(i) for i in range(2)].index("bee/z.jpg")
    with pytest.raises(UserError, match="could not be read when they were made"):
        found.texture(photo(40, 40), last, 0)


def test_each_negative_needs_a_set_of_its_own_and_names_must_be_unique(tmp_path: Path) -> None:
    root = str(images(tmp_path / "data", NAMES[2:]))
    for seed in (0, 1):
        make("texture", root, str(tmp_path / f"made{seed}"), seed=seed, workers="0")
    places = [str(tmp_path / "made0"), str(tmp_path / "made1")]
    with pytest.raises(UserError, match="one for each negative"):
        made_textures(open_data(root), places[:1], 2)
    found = made_textures(open_data(root), places, 2)
    image = open_data(root).image(0)
    assert np.any(found.texture(image, 0, 0) != found.texture(image, 0, 1))
    with pytest.raises(UserError, match=r"two images are called bee/z\.jpg"):
        made_textures(open_data([root, root]), places[:1], 1)
