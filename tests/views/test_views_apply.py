"""Views equal torchvision on Pillow to the bit, for every operation, size and recipe."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from pillow_views import VERTICAL_FIRST, photo, reference
from torchvision import transforms as T

from cuewise.errors import UserError
from cuewise.views import RECIPES, Crop, Jitter, ViewParams, apply, center
from cuewise.views.color_kernel import turn_hue

SIZES = [(375, 500), (500, 375), (333, 333), (96, 96), (64, 48), (600, 90), (90, 600), (31, 7)]


def horizontal_first(crop: Crop, size: int) -> bool:
    shrink = crop.height - size
    return not (shrink > 0 and shrink > 2 * (crop.width - size))


def equal(image: np.ndarray, params: ViewParams, size: int, flip_last: bool = False) -> None:
    view = apply(image, params, size)
    assert view.shape == (size, size, 3)
    assert view.dtype == np.uint8
    assert view.flags.c_contiguous
    if VERTICAL_FIRST or horizontal_first(params.crop, size):
        np.testing.assert_array_equal(view, reference(image, params, size, flip_last))


@pytest.mark.slow
@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("shape", SIZES)
def test_recipes(name: str, shape: tuple[int, int]) -> None:
    image, rng = photo(*shape), np.random.default_rng(1)
    recipe = replace(RECIPES[name], rotation_p=0.3)
    for size in (224, 96, 64, 32):
        for _ in range(4):
            equal(image, recipe.sample(rng, *shape), size, flip_last=name == "moco-v2")


@pytest.mark.parametrize("size", [224, 64, 17, 2, 1])
@pytest.mark.parametrize(
    "crop",
    [
        Crop(0, 0, 375, 500),  # everything, down to the last byte
        Crop(5, 9, 20, 30),  # enlarged
        Crop(1, 2, 224, 224),  # the size itself
        Crop(0, 0, 375, 230),  # vertical pass first at 224
        Crop(0, 270, 374, 230),  # the same, at the right border
        Crop(0, 0, 375, 224),
        Crop(100, 100, 1, 300),
        Crop(0, 499, 375, 1),  # one pixel wide
        Crop(374, 499, 1, 1),
        Crop(370, 0, 5, 500),
    ],
)
def test_crop_and_resize(crop: Crop, size: int) -> None:
    for flip in (False, True):
        equal(photo(375, 500), ViewParams(crop, flip=flip), size)


@pytest.mark.skipif(not VERTICAL_FIRST, reason="this Pillow always runs the horizontal pass first")
def test_the_order_of_the_passes_matters_here() -> None:
    # else the cases above would not test the rule
    image = photo(375, 500)[:, :230]
    both = Image.fromarray(image).resize((224, 224), Image.Resampling.BILINEAR)
    across = Image.fromarray(image).resize((224, 375), Image.Resampling.BILINEAR)
    assert np.any(np.asarray(both) != np.asarray(across.resize((224, 224), Image.Resampling.BILINEAR)))


@pytest.mark.parametrize(("height", "width"), [(1, 1), (1, 200), (200, 1), (2, 3), (3, 1)])
def test_tiny_images(height: int, width: int) -> None:
    image, rng = photo(height, width), np.random.default_rng(0)
    for recipe in RECIPES.values():
        equal(image, recipe.sample(rng, height, width), 32)


@given(
    height=st.integers(1, 300),
    width=st.integers(1, 300),
    size=st.integers(1, 70),
    seed=st.integers(0, 1000),
    data=st.data(),
)
@settings(max_examples=60, deadline=None)
def test_any_crop(height: int, width: int, size: int, seed: int, data: st.DataObject) -> None:
    h, w = data.draw(st.integers(1, height)), data.draw(st.integers(1, width))
    top, left = data.draw(st.integers(0, height - h)), data.draw(st.integers(0, width - w))
    equal(photo(height, width, seed), ViewParams(Crop(top, left, h, w), flip=seed % 2 == 1), size)


@pytest.mark.parametrize("order", ["b", "c", "s", "h", "bcsh", "hscb", "chbs", "shcb", "csb", "hb", ""])
def test_jitter(order: str) -> None:
    image, rng = photo(80, 90), np.random.default_rng(2)
    crop = Crop(3, 5, 70, 80)
    for _ in range(6):
        b, c, s = rng.uniform(0, 2, 3)
        equal(image, ViewParams(crop, jitter=Jitter(b, c, s, rng.uniform(-0.5, 0.5), order)), 64)
    for edge in (0.0, 1.0, 2.0):
        equal(image, ViewParams(crop, jitter=Jitter(edge, edge, edge, 0.5, order), gray=True), 64)


@pytest.mark.slow
@pytest.mark.parametrize("shift", [0, 18, 231])
def test_hue_of_every_colour(shift: int) -> None:
    colours = np.arange(1 << 24, dtype="<u4").view(np.uint8).reshape(4096, 4096, 4)[..., :3].copy()
    channels = [np.asarray(c) for c in Image.fromarray(colours).convert("HSV").split()]
    channels[0] = channels[0] + np.uint8(shift)
    turned = Image.merge("HSV", [Image.fromarray(c) for c in channels]).convert("RGB")
    turn_hue(colours.reshape(-1), shift)
    np.testing.assert_array_equal(colours, np.asarray(turned))


@pytest.mark.parametrize("sigma", [0.0, 0.01, 0.1, 0.5, 1.0, 1.99, 2.4, 3.7, 9.0, 40.0])
@pytest.mark.parametrize("size", [64, 33, 5, 1])
def test_blur(sigma: float, size: int) -> None:
    equal(photo(50, 60), ViewParams(Crop(0, 0, 50, 60), blur=sigma), size)


@pytest.mark.parametrize("threshold", [0, 1, 128, 255, 256])
def test_solarize(threshold: int) -> None:
    equal(photo(50, 60), ViewParams(Crop(0, 0, 50, 60), solarize=threshold), 48)


@pytest.mark.parametrize("rotation", [0, 90, 180, 270])
def test_rotation(rotation: int) -> None:
    image, crop = photo(50, 60), Crop(0, 0, 50, 60)
    equal(image, ViewParams(crop, rotation=rotation, blur=1.0, flip=True), 48)
    plain = apply(image, ViewParams(crop), 48)
    turned = apply(image, ViewParams(crop, rotation=rotation), 48)
    np.testing.assert_array_equal(turned, np.rot90(plain, rotation // 90))


@pytest.mark.parametrize(
    "shape", [(300, 400), (400, 300), (256, 256), (225, 900), (100, 130), (64, 64), (1, 5)]
)
@pytest.mark.parametrize("size", [224, 64])
def test_center_is_the_evaluation_view(shape: tuple[int, int], size: int) -> None:
    image = photo(*shape)
    short = round(size * 256 / 224) if min(shape) > size else size
    steps = T.Compose([T.Resize(short), T.CenterCrop(size)])
    shrink_y, shrink_x = shape[0] - short, shape[1] - short
    if VERTICAL_FIRST or shrink_y <= 2 * shrink_x:
        np.testing.assert_array_equal(center(image, size), np.asarray(steps(Image.fromarray(image))))


def test_center_shows_a_small_image_whole() -> None:
    image = photo(64, 64)
    np.testing.assert_array_equal(center(image, 64), image)


def test_input_is_left_alone_and_need_not_be_contiguous() -> None:
    image = photo(90, 100)
    kept = image.copy()
    params = RECIPES["simclr"].sample(np.random.default_rng(0), 90, 50)
    view = apply(image[:, ::2], params, 32)
    np.testing.assert_array_equal(view, apply(image[:, ::2].copy(), params, 32))
    np.testing.assert_array_equal(image, kept)


def test_threads_do_not_share_scratch_memory() -> None:
    rng = np.random.default_rng(0)
    images = [photo(120 + 10 * i, 150, i) for i in range(8)]
    drawn = [replace(RECIPES["byol-1"], size=64).sample(rng, *x.shape[:2]) for x in images]
    alone = [apply(x, p, 64) for x, p in zip(images, drawn)]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(20):
            for view, expected in zip(pool.map(lambda i: apply(images[i], drawn[i], 64), range(8)), alone):
                np.testing.assert_array_equal(view, expected)


@pytest.mark.parametrize(
    "crop", [Crop(0, 0, 51, 60), Crop(0, 1, 50, 60), Crop(-1, 0, 5, 5), Crop(0, 0, 0, 5), Crop(3, 3, 5, -1)]
)
def test_a_crop_outside_the_image_is_refused(crop: Crop) -> None:
    with pytest.raises(UserError, match="outside an image of 60×50"):
        apply(photo(50, 60), ViewParams(crop), 32)


@pytest.mark.parametrize(
    "image",
    [
        np.zeros((5, 5), np.uint8),
        np.zeros((5, 5, 4), np.uint8),
        np.zeros((5, 5, 3)),
        np.zeros((0, 5, 3), np.uint8),
    ],
)
def test_other_arrays_are_refused(image: np.ndarray) -> None:
    with pytest.raises(UserError, match="uint8 image of height×width×3"):
        apply(image, ViewParams(Crop(0, 0, 1, 1)), 8)


AT_THE_END_OF_MEMORY = """
import ctypes, mmap
import numpy as np
from cuewise.views import Crop, ViewParams, apply
page = mmap.PAGESIZE
pages = mmap.mmap(-1, 16 * page)
whole = np.frombuffer(pages, np.uint8)
libc = ctypes.CDLL(None, use_errno=True)
assert libc.mprotect(ctypes.c_void_p(whole.ctypes.data + 15 * page), ctypes.c_size_t(page), 0) == 0
for h, w in [(5, 7), (40, 30), (90, 200), (200, 30), (7, 1), (1, 3)]:
    image = whole[15 * page - 3 * h * w : 15 * page].reshape(h, w, 3)
    for size in (1, 16, 33, 64):
        for flip in (False, True):
            apply(image, ViewParams(Crop(0, 0, h, w), flip), size)
            apply(image, ViewParams(Crop(h // 2, w // 2, h - h // 2, w - w // 2), flip), size)
print("read no further")
"""


@pytest.mark.shell
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="protects a page with Linux calls")
def test_nothing_is_read_beyond_the_image() -> None:
    done = subprocess.run(
        [sys.executable, "-c", AT_THE_END_OF_MEMORY], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "read no further", done.stderr
