"""Bilateral against OpenCV, Gaussian against the definition, the frequency mask, the cartoon."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cuewise.cues.bilateral import Bilateral, bilateral
from cuewise.cues.blur import GaussianBlur, draw_sigma, gaussian_blur
from cuewise.cues.cartoon import cartoon
from cuewise.cues.frequency import Lowpass, frequency_mask, lowpass
from cuewise.errors import UserError


def photo(height: int, width: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]
    image = 120 + 70 * np.sin(x / 9)[..., None] * np.cos(y / 6)[..., None] * np.array([1, -0.7, 0.4])
    image[height // 2 :, : width // 2] += (50, -60, 30)
    return np.clip(image + rng.normal(0, 9, image.shape), 0, 255).astype(np.uint8)


def tensor(image: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(image.transpose(2, 0, 1).copy())[None]


@pytest.mark.parametrize("shape", [(60, 90), (33, 17), (8, 8)])
@pytest.mark.parametrize(("diameter", "sigma"), [(9, 75.0), (5, 30.0), (9, 9.0)])
def test_bilateral_is_opencvs(shape, diameter, sigma):
    image = photo(*shape)
    got = bilateral(image, diameter=diameter, sigma_range=sigma, sigma_space=sigma)
    difference = np.abs(got.astype(int) - cv2.bilateralFilter(image, diameter, sigma, sigma))
    assert difference.max() <= 1
    assert (difference > 0).mean() < 0.01


@pytest.mark.parametrize("diameter", [1, 3, 4, 17, 37])
def test_bilateral_of_any_diameter_is_opencvs(diameter):
    """Windows of no neighbour, and such as are larger than a vector, a line of the cache and the image."""
    image = photo(21, 30)
    got = bilateral(image, diameter=diameter, sigma_range=40.0, sigma_space=10.0)
    want = image if diameter == 1 else cv2.bilateralFilter(image, diameter, 40.0, 10.0)
    assert np.abs(got.astype(int) - want).max() <= 1


def test_bilateral_on_grey_float_and_batches():
    image = photo(30, 26)
    plane = np.ascontiguousarray(image[..., 0])
    assert np.abs(bilateral(plane).astype(int) - cv2.bilateralFilter(plane, 9, 75, 75)).max() <= 1
    as_float = bilateral((image / 255).astype(np.float32))
    assert np.abs(as_float * 255 - bilateral(image)).max() < 0.51
    batch = Bilateral()(torch.cat([tensor(image), tensor(image[::-1])]))
    assert np.array_equal(batch[0].permute(1, 2, 0).numpy(), bilateral(image))


def test_bilateral_keeps_an_edge_and_smooths_beside_it():
    image = photo(40, 40) // 16 + 50
    image[:, 20:] += 120
    out = bilateral(image.astype(np.uint8), sigma_range=30.0)
    assert out[:, 20].mean() - out[:, 19].mean() > 110
    assert out[:, :20].std() < image[:, :20].std()


@settings(max_examples=20, deadline=None)
@given(st.integers(8, 40), st.integers(8, 40), st.floats(0.1, 6))
def test_gaussian_keeps_mean_and_range(height, width, sigma):
    image = photo(height, width).astype(np.float32) / 255
    out = gaussian_blur(image, sigma=sigma)
    assert np.allclose(out.mean((0, 1)), image.mean((0, 1)), atol=2e-3)  # a mirrored border loses nothing
    assert out.min() >= image.min() - 1e-5
    assert out.max() <= image.max() + 1e-5
    assert out.var() <= image.var() + 1e-7


def test_gaussian_impulse_is_a_gaussian_and_the_tensor_form_agrees():
    impulse = np.zeros((33, 33, 3), np.float32)
    impulse[16, 16] = 1
    y, x = np.mgrid[-16:17, -16:17]
    expected = np.exp(-(y**2 + x**2) / (2 * 2.0**2)) / (2 * np.pi * 2.0**2)
    assert np.abs(gaussian_blur(impulse, sigma=2.0)[..., 0] - expected).max() < 1e-4
    for sigma in (0.0, 0.7, 5.0):
        image = photo(12, 19)
        got = GaussianBlur(sigma)(tensor(image) / 255)[0].permute(1, 2, 0).numpy()
        assert np.abs(got - gaussian_blur((image / 255).astype(np.float32), sigma=sigma)).max() < 1e-5


def test_gaussian_forms():
    rng = np.random.default_rng(0)
    supervised = [draw_sigma(rng, 224, "supervised") for _ in range(200)]
    assert 10**0.5 <= min(supervised) < 3.3 < 4.3 < max(supervised) <= 20**0.5
    ssl = np.array([draw_sigma(rng, 224, "ssl") for _ in range(400)])
    assert 0.4 < (ssl == 0).mean() < 0.6
    assert ssl.max() <= 2
    with pytest.raises(UserError):
        draw_sigma(rng, 224, "other")


@settings(max_examples=25, deadline=None)
@given(st.integers(8, 33), st.integers(8, 33), st.floats(0, 1), st.sampled_from(["square", "circle"]))
def test_mask_is_symmetric_at_every_size(height, width, keep, shape):
    """The full mask built from the half one equals its point mirror, so the masked spectrum is that of a real image."""
    half = frequency_mask(height, width, keep, shape)
    image = photo(height, width)[..., 0].astype(float)
    index = np.arange(width)
    folded = np.minimum(index, width - index)
    full = half[:, folded]
    assert np.array_equal(full, full[(-np.arange(height)) % height][:, (-index) % width])
    back = np.fft.ifft2(np.fft.fft2(image) * full)
    assert np.abs(back.imag).max() < 1e-9
    clipped = np.clip(back.real, 0, 255)
    assert np.abs(lowpass(image / 255, keep=keep, shape=shape) * 255 - clipped).max() < 1e-3


@pytest.mark.parametrize("shape", [(16, 16), (17, 17), (16, 17), (21, 8)])
def test_lowpass_identity_and_monotone_energy(shape):
    image = photo(*shape)
    assert np.array_equal(lowpass(image, keep=1.0), image)
    spectrum = np.abs(np.fft.rfft2(image[..., 0].astype(float))) ** 2
    for kind in ("square", "circle"):
        kept = [(spectrum * frequency_mask(*shape, keep, kind)).sum() for keep in np.linspace(0, 1, 12)]
        assert kept == sorted(kept)
    mean = lowpass(image, keep=0.0)
    assert np.abs(mean - image.mean((0, 1))).max() <= 0.5


def test_lowpass_tensor_form_and_errors():
    image = photo(20, 15)
    assert np.array_equal(Lowpass(0.3)(tensor(image))[0].permute(1, 2, 0).numpy(), lowpass(image, keep=0.3))
    with pytest.raises(UserError):
        lowpass(image, keep=2.0)


def test_cartoon_has_few_colours_and_black_outlines():
    image = np.full((120, 120, 3), (200, 180, 90), np.uint8)
    y, x = np.mgrid[:120, :120]
    image[(y - 60) ** 2 + (x - 60) ** 2 < 900] = (60, 90, 200)
    image = np.clip(image + np.random.default_rng(0).normal(0, 4, image.shape), 0, 255).astype(np.uint8)
    out = cartoon(image)
    black = (out == 0).all(-1)
    ring = np.abs(np.hypot(y - 60, x - 60) - 29) < 3
    assert black[ring].mean() > 0.5 > 0.1 > black[~ring].mean()
    assert out[5:20, 5:20].std((0, 1)).max() < image[5:20, 5:20].std((0, 1)).max()
    assert cartoon(image / 255.0).dtype == np.float64
