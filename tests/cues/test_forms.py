"""Functions and kernels take every form of an image without rounding it."""

from __future__ import annotations

import time

import numpy as np
import pytest
import torch
from PIL import Image

from cuewise.cues.bilateral import bilateral
from cuewise.cues.blur import gaussian_blur
from cuewise.cues.cartoon import cartoon
from cuewise.cues.color import grey, hue_shift
from cuewise.cues.contract import photo
from cuewise.cues.diffusion import perona_malik
from cuewise.cues.edges import sketch
from cuewise.cues.forms import on_pixels
from cuewise.cues.frequency import lowpass
from cuewise.cues.registry import cue, cues
from cuewise.cues.rotation import rotate
from cuewise.cues.silhouette import silhouette
from cuewise.errors import UserError

FUNCTIONS = {
    "bilateral": bilateral,
    "cartoon": cartoon,
    "grey": grey,
    "hue": lambda image: hue_shift(image, turn=0.3),
    "gaussian": lambda image: gaussian_blur(image, sigma=1.5),
    "diffusion": perona_malik,
    "sketch": sketch,
    "silhouette": silhouette,
    "lowpass": lowpass,
    "rotate": lambda image: rotate(image, quarters=1),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_gives_one_image_for_every_form(name):
    function, image = FUNCTIONS[name], photo(48, 48)
    want = function(image)
    np.testing.assert_array_equal(np.asarray(function(Image.fromarray(image))), want)
    planes = torch.from_numpy(image).permute(2, 0, 1)
    for batch in (planes / 255, (planes / 255)[None], planes, planes[None]):
        out = function(batch)
        assert out.shape == batch.shape
        assert out.dtype == batch.dtype
        pixels = out.reshape(3, 48, 48).permute(1, 2, 0).double() * (1 if batch.dtype == torch.uint8 else 255)
        np.testing.assert_allclose(pixels.numpy(), want, atol=1.01)  # floats are not rounded to levels


def test_floats_are_not_rounded_by_a_function():
    image = np.random.default_rng(0).random((24, 24, 3)).astype(np.float32)
    out = bilateral(torch.from_numpy(image).permute(2, 0, 1))
    np.testing.assert_allclose(out.permute(1, 2, 0).numpy(), bilateral(image), atol=1e-6)
    assert len(np.unique(out.numpy())) > 256


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_floats_come_back_as_they_were(dtype):
    batch = torch.rand(2, 3, 16, 16, generator=torch.Generator().manual_seed(0)).to(dtype)
    assert cue("bilateral")(batch, np.random.default_rng(0)).dtype == dtype


@pytest.mark.parametrize("name", [n for n, c in cues().items() if c.colour_only])
def test_grey_images_stay_grey(name):
    flat = photo(32, 32, "grey")[..., 0]
    out = cue(name)(Image.fromarray(flat), np.random.default_rng(0))
    assert out.mode == "L"
    colour = cue(name)(np.repeat(flat[..., None], 3, -1), np.random.default_rng(0))
    luma = colour @ np.array([0.299, 0.587, 0.114])
    np.testing.assert_allclose(np.asarray(out), luma, atol=0.51)


def test_the_way_of_uint8_arrays_costs_nothing():
    image = photo(224, 224)
    begin = time.perf_counter()
    for _ in range(1000):
        assert on_pixels(image, lambda pixels: pixels, colour_only=True) is image
    assert time.perf_counter() - begin < 0.1  # 100 µs would be a copy or two


def test_a_wrong_count_of_channels_is_refused():
    with pytest.raises(UserError, match="H×W×3"):
        cue("sketch")(np.zeros((32, 32, 2), np.uint8), np.random.default_rng(0))
