"""Corruptions keep their promises: shapes, seeds, any size and channel count, severity, sharing, errors."""

import hashlib
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from cuewise.cues.corruptions import (
    CORRUPTIONS,
    FAMILIES,
    SEVERITIES,
    corrupt,
    corruption_rng,
    variants,
)
from cuewise.cues.registry import cue
from cuewise.errors import UserError

NAMES = sorted(CORRUPTIONS)


def scene(height: int, width: int, channels: int | None = 3, seed: int = 0) -> np.ndarray:
    """Smooth ground, hard-edged blocks and some grain, far from black and white."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    depth = channels or 1
    image = 110 + 50 * np.sin(x / 9.0)[..., None] * np.cos(y[..., None] / 7.0 + np.arange(depth))
    for _ in range(6):
        top, left = rng.integers(0, height), rng.integers(0, width)
        image[top : top + height // 4, left : left + width // 4] = rng.uniform(60, 200, depth)
    image = np.clip(image + rng.normal(0, 4, image.shape), 0, 255).astype(np.uint8)
    return image if channels else image[:, :, 0]


def mse(a: np.ndarray, b: np.ndarray) -> float:
    return float(((a.astype(float) - b) ** 2).mean())


def test_the_table_is_that_of_imagenet_c():
    assert sum(c.in_mce for c in CORRUPTIONS.values()) == 15
    assert len(CORRUPTIONS) == 19
    assert {f: len(names) for f, names in FAMILIES.items()} == {
        "noise": 3,
        "blur": 4,
        "weather": 4,
        "digital": 4,
    }
    assert FAMILIES["weather"] == ("snow", "frost", "fog", "brightness")
    assert {c.name for c in CORRUPTIONS.values() if not c.in_mce} == {
        "speckle_noise",
        "gaussian_blur",
        "spatter",
        "saturate",
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "shape", [(8, 8, 3), (8, 23), (33, 32, 3), (32, 32, 1), (9, 65, 3), (17, 12, 2), (20, 11, 5)]
)
def test_any_size_and_channel_count(name, shape):
    image = scene(shape[0], shape[1], shape[2] if len(shape) == 3 else None)
    before = image.copy()
    for severity in SEVERITIES:
        for scaled in (False, True):
            out = corrupt(image, name, severity, np.random.default_rng(1), scale_to_image=scaled)
            assert out.shape == image.shape
            assert out.dtype == np.uint8
            assert out.flags.c_contiguous
            assert not np.shares_memory(out, image)
    np.testing.assert_array_equal(image, before)


@pytest.mark.parametrize("name", NAMES)
def test_same_seed_same_image_other_seed_other_image(name):
    image = scene(48, 40)
    a, b, c = (corrupt(image, name, 3, np.random.default_rng(seed)) for seed in (5, 5, 6))
    np.testing.assert_array_equal(a, b)
    fixed = {
        "defocus_blur",
        "zoom_blur",
        "brightness",
        "contrast",
        "pixelate",
        "jpeg_compression",
        "gaussian_blur",
    }
    assert np.array_equal(a, c) == (name in fixed | {"saturate"})


@pytest.mark.parametrize("name", NAMES)
def test_severity_raises_the_error(name):
    """Claim 6: at each step for noise, blur and contrast; from the first to the last for all others."""
    images = [scene(224, 224, seed=s) for s in range(2)]
    draws = 4 if name in ("fog", "frost", "motion_blur", "snow") else 1
    errors = [
        np.mean(
            [
                mse(i, corrupt(i, name, s, corruption_rng(d, "x", name, s)))
                for i in images
                for d in range(draws)
            ]
        )
        for s in SEVERITIES
    ]
    if name == "saturate":  # two severities take colour away, three add it
        assert errors[0] < errors[1]
        assert errors[2] < errors[3] < errors[4]
    elif CORRUPTIONS[name].family == "noise" or name in (
        "contrast",
        "brightness",
        "defocus_blur",
        "gaussian_blur",
    ):
        assert all(a < b for a, b in pairwise(errors)), errors
    elif name in ("zoom_blur", "motion_blur", "elastic_transform"):
        assert all(a < 1.02 * b for a, b in pairwise(errors)), errors
    assert errors[0] < errors[4]


@pytest.mark.parametrize(
    "name", ["defocus_blur", "glass_blur", "motion_blur", "gaussian_blur", "elastic_transform"]
)
def test_scaled_radii_spare_small_images(name):
    image = scene(32, 32)
    plain, scaled = (
        mse(image, corrupt(image, name, 4, np.random.default_rng(0), scale_to_image=s)) for s in (False, True)
    )
    assert 0 < scaled < 0.7 * plain
    large = scene(224, 224)
    a, b = (corrupt(large, name, 4, np.random.default_rng(0), scale_to_image=s) for s in (False, True))
    np.testing.assert_array_equal(a, b)  # 224 is the size the radii are made for


@pytest.mark.parametrize("name", ["defocus_blur", "gaussian_blur", "motion_blur", "glass_blur"])
def test_scaled_severities_still_grow_at_32_pixels(name):
    images = [scene(32, 32, seed=s) for s in range(6)]
    errors = [
        np.mean(
            [
                mse(i, corrupt(i, name, s, np.random.default_rng(k), scale_to_image=True))
                for k, i in enumerate(images)
            ]
        )
        for s in SEVERITIES
    ]
    assert errors[0] > 0
    assert errors[0] < errors[2] < errors[4]


def test_variants_are_what_corrupt_gives_one_by_one():
    image = scene(40, 56)
    found = list(variants(image, seed=3, name="a/b.jpg"))
    assert [(c, s) for c, s, _ in found] == [(c, s) for f in FAMILIES.values() for c in f for s in SEVERITIES]
    for corruption, severity, out in found:
        alone = corrupt(image, corruption, severity, corruption_rng(3, "a/b.jpg", corruption, severity))
        np.testing.assert_array_equal(out, alone)


def test_variants_of_the_asked_kinds_only():
    grey = scene(24, 24, None)
    found = list(variants(grey, seed=0, name="x", corruptions=["spatter", "fog"], severities=(2, 4)))
    assert [(c, s) for c, s, _ in found] == [("spatter", 2), ("spatter", 4), ("fog", 2), ("fog", 4)]
    assert all(out.shape == grey.shape for _, _, out in found)


def test_the_key_of_a_variant_is_stable_and_distinguishes_all_four():
    keys = [
        (0, "a", "fog", 1),
        (1, "a", "fog", 1),
        (0, "b", "fog", 1),
        (0, "a", "snow", 1),
        (0, "a", "fog", 2),
    ]
    draws = [corruption_rng(*key).integers(2**62) for key in keys]
    assert len(set(draws)) == len(keys)
    digest = hashlib.blake2b(b"0\0a\0fog\x001", digest_size=16).digest()
    assert draws[0] == np.random.default_rng(int.from_bytes(digest, "little")).integers(2**62)
    corruption_rng(0, "caf\udce9.jpg", "fog", 1)  # a file name that is not UTF-8


def test_the_severities_of_one_image_do_not_share_their_noise():
    image = np.full((64, 64, 3), 128, np.uint8)
    found = {
        s: out.astype(float)
        for _, s, out in variants(image, seed=0, name="x", corruptions=["gaussian_noise"])
    }
    assert abs(np.corrcoef(found[1].ravel(), found[2].ravel())[0, 1]) < 0.05


def test_frost_photographs_are_used_when_given(tmp_path):
    red = np.zeros((300, 400, 3), np.uint8)
    red[..., 0] = 200
    Image.fromarray(red).save(tmp_path / "frost.png")
    image = scene(32, 32) // 4
    out = corrupt(image, "frost", 5, np.random.default_rng(0), frost_images=str(tmp_path)).astype(int)
    expected = np.floor(0.6 * image + 0.75 * np.array([200, 0, 0]))
    assert np.abs(out - expected).max() <= 1
    big = np.zeros((700, 500, 3), np.uint8)  # larger than the photograph: it is enlarged
    out = corrupt(big, "frost", 1, np.random.default_rng(0), frost_images=str(tmp_path))
    assert (out[..., 0] == 80).all()


def test_frost_folder_without_pictures(tmp_path):
    with pytest.raises(UserError, match="frost"):
        corrupt(scene(32, 32), "frost", 1, np.random.default_rng(0), frost_images=str(tmp_path / "none"))
    (tmp_path / "broken.png").write_bytes(b"not a picture")
    with pytest.raises(UserError, match=r"broken\.png"):
        corrupt(scene(32, 32), "frost", 1, np.random.default_rng(0), frost_images=str(tmp_path))


def test_errors_a_user_can_fix():
    image, rng = scene(32, 32), np.random.default_rng(0)
    with pytest.raises(UserError, match="gaussian_noise"):
        corrupt(image, "gausian_noise", 1, rng)
    with pytest.raises(UserError, match="severity"):
        corrupt(image, "fog", 6, rng)
    with pytest.raises(UserError, match="7×32"):
        corrupt(image[:7], "fog", 1, rng)
    with pytest.raises(UserError, match="uint8"):
        corrupt(image.astype(np.float32), "fog", 1, rng)


def test_the_registered_cue():
    image = scene(32, 32)
    out = cue("corrupted")(image, np.random.default_rng(2), corruption="snow", severity=2)
    np.testing.assert_array_equal(out, corrupt(image, "snow", 2, np.random.default_rng(2)))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    height=st.integers(8, 65),
    width=st.integers(8, 65),
    name=st.sampled_from(NAMES),
    severity=st.sampled_from(SEVERITIES),
    fill=st.sampled_from(["black", "white", "noise", "scene"]),
    scaled=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_never_fails(height, width, name, severity, fill, scaled, seed):
    image = scene(height, width, seed=seed % 7)
    if fill == "noise":
        image = np.random.default_rng(seed).integers(0, 256, image.shape, dtype=np.uint8)
    elif fill != "scene":
        image[:] = 0 if fill == "black" else 255
    with np.errstate(all="raise"):
        out = corrupt(image, name, severity, np.random.default_rng(seed), scale_to_image=scaled)
    assert out.shape == image.shape
    if fill in ("black", "white") and CORRUPTIONS[name].family == "blur":
        assert np.abs(out.astype(int) - image).max() <= (3 if name == "defocus_blur" else 1)
