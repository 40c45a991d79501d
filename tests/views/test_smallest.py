"""loop.decode=reduced: JPEGs decoded smaller, as far as no view is made of fewer pixels than it has."""

from __future__ import annotations

import io
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from cuewise import pretrain
from cuewise.config import resolve
from cuewise.data import Dataset, Sample, SmallestCrop, decode, open_data
from cuewise.data.masks import Masked
from cuewise.errors import UserError
from cuewise.train import pretrain as training
from cuewise.train.fabric import Fabric
from cuewise.train.shown import build_views
from cuewise.views import RECIPES, View, Views
from cuewise.views.smallest import of_recipe, reduced, reductions, smallest_crops

TINY: dict[str, Any] = {"model": "cuewise/resnet-tiny?width=8", "size": 32}


def photograph(height: int, width: int, seed: int = 0) -> np.ndarray:
    """Smooth colours, with edges."""
    rng = np.random.default_rng(seed)
    coarse = Image.fromarray(rng.integers(0, 256, (6, 8, 3), dtype=np.uint8))
    pixels = np.array(coarse.resize((width, height), Image.Resampling.BICUBIC))
    pixels[height // 3 : height // 2, width // 4 : width // 2] //= 3
    return pixels


def jpeg(pixels: np.ndarray, quality: int = 92, **options: Any) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "JPEG", quality=quality, **options)
    return stream.getvalue()


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight photographs of 480×640 in two classes, and one PNG."""
    root = tmp_path_factory.mktemp("large")
    for i in range(8):
        place = root / "ab"[i % 2] / f"{i}.jpg"
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(jpeg(photograph(480, 640, i)))
    Image.fromarray(photograph(480, 640, 9)).save(root / "a" / "9.png")
    return root


def shown(data: Dataset, **options: Any) -> Views:
    return build_views(resolve(TINY, options), data)


# ---------------------------------------------------------------------------------------------------------------- law
@settings(max_examples=200, deadline=None)
@given(
    height=st.integers(20, 3000),
    width=st.integers(20, 3000),
    size=st.sampled_from([16, 32, 96]),
    low=st.floats(0.05, 1.0),
    seed=st.integers(0, 2**31),
)
def test_no_crop_of_a_reduced_image_is_smaller_than_its_view(
    height: int, width: int, size: int, low: float, seed: int
) -> None:
    recipe = replace(RECIPES["moco-v2"], size=size, scale=(low, 1.0))
    by = of_recipe(recipe).reduction(height, width)
    if by == 1:
        return
    small = -(-height // by), -(-width // by)
    crop = recipe.sample(np.random.default_rng(seed), *small).crop
    assert min(crop.height, crop.width) >= size - 1  # its sides are rounded


def test_the_largest_reduction_that_is_allowed_is_taken() -> None:
    crop = SmallestCrop(side=100, share=0.25)  # half of the side of a square
    sides = {
        n: [crop.reduction(200 * n, 200 * n), crop.reduction(200 * n - 1, 200 * n - 1)] for n in (2, 4, 8)
    }
    assert sides == {2: [2, 1], 4: [4, 2], 8: [8, 4]}
    assert crop.reduction(100_000, 150) == 1  # a long strip has no larger crop than its short side


# ------------------------------------------------------------------------------------------------------------- pixels
@pytest.mark.parametrize("by", [2, 4, 8])
def test_a_reduced_image_is_the_mean_of_blocks(by: int) -> None:
    pixels = photograph(256, 320)
    data = jpeg(pixels, quality=98, subsampling=0)
    found = decode(data, "photo", [SmallestCrop(256 // by, 1.0)]).astype(float)
    means = pixels.reshape(256 // by, by, 320 // by, by, 3).mean((1, 3))
    assert found.shape == means.shape
    assert abs(found - means).mean() < 1.5  # the transform's own low frequencies are no box filter


def test_all_views_must_allow_it() -> None:
    data = jpeg(photograph(512, 512))
    few, many = SmallestCrop(64, 1.0), SmallestCrop(200, 1.0)
    assert decode(data, "photo", [few]).shape == (64, 64, 3)
    assert decode(data, "photo", [few, many]).shape == (256, 256, 3)
    assert np.array_equal(decode(data, "photo", [SmallestCrop(300, 1.0)]), decode(data, "photo"))


def test_orientation_and_odd_sides() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    data = jpeg(photograph(301, 517), exif=exif)
    assert decode(data, "photo").shape == (517, 301, 3)
    assert decode(data, "photo", [SmallestCrop(75, 1.0)]).shape == (130, 76, 3)


def test_views_show_the_same(large: Path) -> None:
    data = open_data(str(large))
    recipe = replace(RECIPES["moco-v2"], size=32, scale=(0.2, 1.0), blur_p=0.0)
    views = Views([View("query", recipe), View("key", recipe)])
    smaller = reduced(data, views)
    jpegs = [i for i in range(9) if data.name(i).endswith("jpg")]
    for i in jpegs:
        assert smaller.image(i).shape == (120, 160, 3)
        full, small = (views(d[i], np.random.default_rng(i)).views for d in (data, smaller))
        for role in ("query", "key"):
            assert abs(full[role].astype(float) - small[role]).mean() < 4
    (png,) = set(range(9)) - set(jpegs)
    assert np.array_equal(smaller.image(png), data.image(png))


# ------------------------------------------------------------------------------------------------------------ sources
def test_every_stored_source_is_reduced(large: Path, tmp_path: Path) -> None:
    archive = tmp_path / "set.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for place in large.rglob("*.jpg"):
            file.write(place, place.relative_to(large).as_posix())
    crops = [SmallestCrop(32, 0.2)]
    for spec in (str(archive), f"{large}?n=4", str(large)):
        data = open_data(spec)
        smaller = data.reduced_for(crops)
        assert {smaller.image(i).shape for i in range(len(data)) if data.name(i).endswith("jpg")} == {
            (120, 160, 3)
        }
        assert smaller.select(np.array([1])).image(0).shape == smaller.image(1).shape
        assert smaller.fingerprint() == data.fingerprint()


def test_images_that_are_more_than_their_bytes_are_not(tmp_path: Path) -> None:
    for name, pixels in (
        ("images/0.jpg", photograph(480, 640)),
        ("masks/0.png", np.zeros((480, 640), np.uint8)),
    ):
        place = tmp_path / name
        place.parent.mkdir()
        Image.fromarray(pixels).save(place)
    masked = Masked(open_data(str(tmp_path / "images")), open_data(str(tmp_path / "masks")))
    assert Dataset([masked]).reduced_for([SmallestCrop(32, 0.2)]).image(0).shape == (480, 640, 3)
    drawn = open_data("shapes?n=2&size=64").reduced_for([SmallestCrop(8, 1.0)])
    assert drawn.image(0).shape == (64, 64, 3)
    assert drawn.stored(0) is None


# ----------------------------------------------------------------------------------------------------------- refusals
@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"suppress": "gaussian"}, "--suppress"),
        ({"set": ["views.style_p=0.5"]}, "styles"),
        ({"crops": "object"}, "--crops object"),
        ({"negatives": ["texture"]}, "--negatives texture"),
    ],
)
def test_whole_images_are_asked_for(large: Path, tmp_path: Path, options: dict[str, Any], why: str) -> None:
    own = {**options, "set": [*options.get("set", []), "loop.decode=reduced"]}
    with pytest.raises(UserError, match=f"loop.decode=reduced: .*{why}"):
        pretrain(str(large), out=str(tmp_path / "run"), steps=1, batch_size=4, **TINY, **own)


def test_it_is_refused_where_it_changes_nothing(large: Path) -> None:
    data = open_data(str(large))
    with pytest.raises(UserError, match=r"changes nothing: none of 9 .* from 2314 × 2314 pixels"):
        reduced(data, shown(data, size=448))
    with pytest.raises(UserError, match="changes nothing"):
        reduced(open_data("shapes?n=4"), shown(data))
    with pytest.raises(UserError, match="full or reduced"):
        resolve({"loop": {"decode": "half"}})


def test_patch_negatives_are_made_of_views(large: Path) -> None:
    data = open_data(str(large))
    views = shown(data, negatives=["patch"])
    assert smallest_crops(views) == smallest_crops(shown(data))
    assert reductions(reduced(data, views)).count(4) == 8
    assert views(reduced(data, views)[0], np.random.default_rng(0)).views["query"].shape == (32, 32, 3)
    assert isinstance(reduced(data, views)[0], Sample)


def test_a_run_says_it_and_trains(large: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    pretrain(str(large), out=str(out), steps=1, batch_size=4, **TINY, set=["loop.decode=reduced"])
    assert "of 9 images checked, 8 at 1/4 of their side, 1 in full" in capfd.readouterr().err
    assert (out / "encoder.safetensors").exists()


def test_an_unreadable_image_does_not_end_the_run(large: Path, tmp_path: Path) -> None:
    """It is skipped and reported, as without the option."""
    archive = tmp_path / "bad.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as out:
        for file in sorted(large.rglob("*.jpg")):
            out.write(file, file.relative_to(large).as_posix())
    content = bytearray(archive.read_bytes())
    content[len(content) // 2] ^= 255
    archive.write_bytes(content)
    found = pretrain(
        archive,
        out=tmp_path / "run",
        batch_size=4,
        epochs=1,
        workers="0",
        set=["loop.decode=reduced"],
        **TINY,
    )
    assert found["skipped"] == 1


def test_the_central_crop_counts_too() -> None:
    """Where no drawn crop fits, the centre is taken: with ratios that leave out squares it is narrower than the image."""
    recipe = replace(RECIPES["moco-v2"], size=32, scale=(0.9, 1.0), ratio=(2.0, 2.0))
    assert of_recipe(recipe).reduction(100, 100) == 1  # the crop has 50 × 100 pixels
    assert of_recipe(recipe).reduction(128, 128) == 2
    assert of_recipe(replace(recipe, ratio=(0.5, 0.5))).reduction(100, 100) == 1


@pytest.mark.parametrize(("subsampling", "by"), [(0, 4), (1, 2), (2, 4)], ids=["4:4:4", "4:2:2", "4:2:0"])
def test_colours_keep_their_pixels(subsampling: int, by: int) -> None:
    """Where colours are stored at half the resolution along one axis only, half the reduction is taken."""
    data = jpeg(photograph(256, 256), subsampling=subsampling)
    assert decode(data, "x", [SmallestCrop(64, 1.0)]).shape[0] == 256 // by


def test_the_guard_sees_whole_images(large: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The views that train may be smaller than those that the drift guard shows to the model."""
    more = {"data": [str(large)], "batch_size": 4, "workers": "0", "epochs": 1, "loop": {"decode": "reduced"}}
    config = resolve(TINY, more)
    data, seen = open_data(config.data), []
    monkeypatch.setattr(training, "checkup_of", lambda run, images, val, observers: seen.append(images))
    run = training.build(config, tmp_path, data, Fabric(accelerator="cpu", devices=1))
    assert run.loader.maker.ds.crops
    assert not seen[0].crops
