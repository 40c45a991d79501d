"""Diffusion against the equation in double precision, and the properties that define it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from numba.core import config

from cuewise.cues.blur import gaussian_blur
from cuewise.cues.diffusion import PeronaMalik, diffuse, perona_malik, robust_diffusion, scaled_steps
from cuewise.cues.exp2_kernel import exp2_near
from cuewise.cues.vector_ir import lanes
from cuewise.errors import UserError


def photo(height: int, width: int, seed: int = 0) -> np.ndarray:
    """Smooth regions, sharp edges and noise, in grey levels 0–255."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]
    levels = 120 + 50 * np.sin(x / 7)[..., None] * np.cos(y[..., None] / (5 + np.arange(3)))
    levels[height // 3 :, width // 2 :] += (60, -50, 90)
    return np.clip(levels + rng.normal(0, 8, levels.shape), 0, 255).round()


def reference(
    image: np.ndarray, steps: int, kappa: float, gamma: float, option: int, mode: str
) -> np.ndarray:
    """The specification, literally: δ with a zero at the end, flux, its backward difference, the sum."""
    levels = image.astype(np.float64)
    for _ in range(steps):
        change = np.zeros_like(levels)
        for axis in range(3 if mode == "medpy3d" else 2):
            moved = np.moveaxis(levels, axis, 0)
            delta = np.zeros_like(moved)
            delta[:-1] = moved[1:] - moved[:-1]
            size = np.abs(delta)
            if mode == "vector":
                size = np.sqrt((delta**2).sum(-1, keepdims=True))
            limit = kappa * np.sqrt(2)
            g = {
                1: np.exp(-((size / kappa) ** 2)),
                2: 1 / (1 + (size / kappa) ** 2),
                3: np.where(size <= limit, 0.5 * (1 - (size / limit) ** 2) ** 2, 0),
            }[option]
            flux = g * delta
            div = flux.copy()
            div[1:] -= flux[:-1]
            change += np.moveaxis(div, 0, axis)
        levels = levels + gamma * change
    return levels


@pytest.mark.parametrize(("features", "count"), [("+avx2,+fma", 8), ("+avx2,+avx512f", 16), ("", 8)])
def test_vectors_are_as_long_as_the_registers(monkeypatch, features, count):
    monkeypatch.setattr(config, "CPU_FEATURES", features)
    assert lanes() == count


@pytest.mark.parametrize("mode", ["channel", "vector", "medpy3d"])
@pytest.mark.parametrize("option", [1, 2, 3])
@pytest.mark.parametrize("shape", [(40, 56), (33, 17)])
def test_equals_the_equation(option, mode, shape):
    image = photo(*shape)
    got = diffuse(image.astype(np.float32), 20, 20.0, 0.1, option, mode)
    assert np.abs(got - reference(image, 20, 20.0, 0.1, option, mode)).max() < 1e-4


@pytest.mark.parametrize("steps", [1, 2, 5, 6])
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_any_number_of_channels_and_steps(channels, steps):
    stack = np.concatenate([photo(19, 37), photo(19, 37, 1)], -1).astype(np.float32)
    images = np.stack([stack[..., :channels], stack[..., 1 : channels + 1]])
    got = diffuse(images, steps, 20.0, 0.2, 1)
    for image, one in zip(images, got):
        assert np.abs(one - reference(image, steps, 20.0, 0.2, 1, "channel")).max() < 1e-4


@pytest.mark.parametrize("kappa", [3.0, 14.9, 15.0, 15.1, 40.0])
def test_black_beside_white_at_every_kappa(kappa):
    """The largest differences there are, on either side of the κ where the cheaper exponential takes over."""
    levels = np.float32(np.random.default_rng(0).choice([0, 20, 255], (24, 40, 3)))
    want = reference(levels, 3, kappa, 0.1, 1, "channel")
    assert np.abs(diffuse(levels, 3, kappa, 0.1, 1) - want).max() < 1e-4
    assert np.abs(want - levels).max() > 0.1 or kappa < 15


def test_the_near_exponential_is_a_power_of_two():
    """To 2e-7 while a normal number is left, then nothing; never a wrong sign or a large number."""

    @njit
    def fill(a, b, out):
        for i in range(len(a)):
            out[i] = exp2_near(-a[i], b[i], np.float32(0.1))

    a = np.linspace(0, np.sqrt(510.9), 200_001, dtype=np.float32)
    got = np.empty_like(a)
    fill(a, a, got)
    want = 0.1 * 2.0 ** -(a.astype(np.float64) ** 2)
    normal = want > 2.0**-120
    assert np.abs(got[normal] / want[normal] - 1).max() < 3e-7
    assert np.all(got[~normal] >= 0)
    assert got[~normal].max() < 2.0**-118
    assert np.all(got[want < 2.0**-130] < 2.0**-126)


@pytest.mark.parametrize("mode", ["channel", "vector", "medpy3d"])
@pytest.mark.parametrize("option", [1, 2, 3])
def test_tensor_form_agrees(option, mode):
    image = photo(31, 24).astype(np.uint8)
    batch = torch.from_numpy(image.transpose(2, 0, 1).copy())[None] / 255
    settings = {"steps": 12, "option": option, "mode": mode}
    got = PeronaMalik(**settings)(batch)[0].numpy().transpose(1, 2, 0)
    assert np.abs(got - perona_malik((image / 255).astype(np.float32), **settings)).max() * 255 < 1e-3


def test_tensor_form_is_differentiable():
    batch = torch.rand(1, 3, 9, 9, requires_grad=True)
    perona_malik(batch, steps=2).sum().backward()
    assert torch.allclose(batch.grad, torch.ones_like(batch), atol=1e-4)  # zero flux: the sum passes through


def test_kappa_is_in_grey_levels_for_float_images_too():
    """The trap: κ = 20 on an image in [0, 1] would be plain blur."""
    image = photo(40, 40).astype(np.uint8)
    as_float = perona_malik((image / 255).astype(np.float64))
    assert as_float.dtype == np.float64
    assert np.abs(as_float * 255 - perona_malik(image)).max() <= 0.5 + 1e-3
    blur = diffuse(image.astype(np.float32), 20, 1e6, 0.1, 1)
    assert np.abs(as_float * 255 - blur).max() > 10


def test_float_image_in_grey_levels_is_refused():
    with pytest.raises(UserError, match=r"\[0, 1\]"):
        perona_malik(photo(16, 16))


@settings(max_examples=25, deadline=None)
@given(
    st.integers(8, 40), st.integers(8, 40), st.integers(0, 99), st.sampled_from([1, 2, 3]), st.floats(1, 200)
)
def test_mean_range_and_variance(height, width, seed, option, kappa):
    """Zero flux keeps the mean; nothing leaves the input's range; every step lowers the variance."""
    levels = photo(height, width, seed).astype(np.float32)
    variances = [levels.astype(np.float64).var()]
    for _ in range(4):
        new = diffuse(levels, 1, kappa, 0.2, option)
        assert np.allclose(new.mean((0, 1), np.float64), levels.mean((0, 1), np.float64), atol=1e-4)
        assert new.min() >= levels.min() - 1e-4
        assert new.max() <= levels.max() + 1e-4
        levels = new
        variances.append(levels.astype(np.float64).var())
    assert all(b <= a + 1e-6 for a, b in pairwise(variances))
    assert variances[-1] < variances[0]


@pytest.mark.parametrize(("option", "speed"), [(1, 1.0), (2, 1.0), (3, 0.5)])
def test_large_kappa_is_the_heat_equation(option, speed):
    image = photo(24, 30)
    heat = image.copy()
    for _ in range(10):
        edge = np.pad(heat, ((1, 1), (1, 1), (0, 0)), "edge")
        laplace = edge[2:, 1:-1] + edge[:-2, 1:-1] + edge[1:-1, 2:] + edge[1:-1, :-2] - 4 * heat
        heat = heat + 0.1 * speed * laplace
    assert np.abs(diffuse(image.astype(np.float32), 10, 1e7, 0.1, option) - heat).max() < 1e-3


@pytest.mark.parametrize("kappa", [1e-6, 0.1])
def test_small_kappa_is_the_identity(kappa):
    image = photo(24, 30).astype(np.uint8)
    for option in (1, 3):
        assert np.array_equal(perona_malik(image, kappa=kappa, option=option), image)


def test_tukey_passes_nothing_beyond_its_cut_off():
    image = np.zeros((8, 16), np.float32)
    image[:, 8:] = 20 * np.sqrt(2) + 0.01
    assert np.array_equal(diffuse(image, 50, 20.0, 0.2, 3), image)
    image[:, 8:] = 27
    assert np.abs(diffuse(image, 50, 20.0, 0.2, 3) - image).max() > 0.1


def test_no_colour_leaks_unless_asked():
    image = photo(24, 24).astype(np.uint8)
    image[..., 2] = 200
    assert (perona_malik(image)[..., 2] == 200).all()
    assert (perona_malik(image, mode="vector")[..., 2] == 200).all()
    assert (perona_malik(image, mode="medpy3d", kappa=100.0)[..., 2] != 200).any()


def test_keeps_an_edge_better_than_a_gaussian_of_equal_smoothing():
    image = np.full((32, 64, 3), 60, np.uint8)
    image[:, 32:] = 160
    image = image + np.random.default_rng(0).integers(0, 8, image.shape, dtype=np.uint8)
    adf, blur = perona_malik(image), gaussian_blur(image, sigma=2.0)
    contrast = [out[:, 32].astype(float).mean() - out[:, 31].astype(float).mean() for out in (adf, blur)]
    assert contrast[0] > 95 > 50 > contrast[1]
    assert adf[8:-8, 8:24].std() < 1.3 * blur[8:-8, 8:24].std() + 0.2


def test_shapes_and_batches():
    image = photo(20, 28).astype(np.uint8)
    one = perona_malik(image)
    assert np.array_equal(perona_malik(np.stack([image, image[::-1]]))[0], one)
    assert np.array_equal(perona_malik(image[..., 1]), one[..., 1])
    batch = PeronaMalik()(torch.from_numpy(image.transpose(2, 0, 1).copy())[None])
    assert batch.dtype == torch.uint8
    assert np.abs(batch[0].numpy().transpose(1, 2, 0).astype(int) - one).max() <= 1


def test_robust_is_option_three_and_small_images_get_fewer_steps():
    image = photo(16, 16).astype(np.uint8)
    assert np.array_equal(robust_diffusion(image), perona_malik(image, option=3))
    assert [scaled_steps(side) for side in (32, 64, 112, 224, 500)] == [2, 3, 7, 20, 20]


@pytest.mark.parametrize(
    "bad", [{"gamma": 0.3}, {"mode": "rgb"}, {"option": 4}, {"kappa": 0.0}, {"steps": -1}]
)
def test_bad_settings_are_refused(bad):
    with pytest.raises(UserError):
        perona_malik(np.zeros((8, 8), np.uint8), **bad)
