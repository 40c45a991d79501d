"""Corruptions against the imagecorruptions package, where it is installed: the same pixels, or the same law."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from cuewise.cues.corruptions import SEVERITIES, blur, corrupt, digital, weather
from cuewise.cues.corruptions.source import CorruptionInput

if importlib.util.find_spec("imagecorruptions") is None:
    pytest.skip("imagecorruptions is not installed", allow_module_level=True)


@pytest.fixture(scope="module")
def package():
    path = Path(__file__).parents[2] / "benchmarks" / "corruptions.py"
    spec = importlib.util.spec_from_file_location("benchmark_corruptions", path)
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(path.parent)  # benchmarks import each other by name
        spec.loader.exec_module(module)
    known = sys.modules.get("pkg_resources")
    found = module.peer()
    if known is None:  # the peer has got a stand-in, which would mislead other tests
        sys.modules.pop("pkg_resources", None)
    return found


@pytest.fixture(scope="module")
def image() -> np.ndarray:
    y, x = np.mgrid[0:64, 0:80]
    image = np.stack([128 + 100 * np.sin(x / 7 + c) * np.cos(y / (9 + c)) for c in range(3)], axis=2)
    image[10:30, 20:50] = (240, 30, 60)
    return np.clip(image + np.random.default_rng(0).normal(0, 6, image.shape), 0, 255).astype(np.uint8)


def worst(a: np.ndarray, b: np.ndarray) -> int:
    return int(np.abs(a.astype(int) - b).max())


@pytest.mark.parametrize(
    "name",
    [
        "defocus_blur",
        "zoom_blur",
        "brightness",
        "contrast",
        "pixelate",
        "jpeg_compression",
        "gaussian_blur",
        "saturate",
    ],
)
@pytest.mark.parametrize("severity", SEVERITIES)
def test_deterministic_ones_agree_to_a_grey_level(package, image, name, severity):
    assert (
        worst(
            corrupt(image, name, severity, np.random.default_rng(0)), package.corrupt(image, severity, name)
        )
        <= 1
    )


@pytest.mark.parametrize("severity", SEVERITIES)
def test_same_random_numbers_same_pixels(package, image, severity):
    h, w = image.shape[:2]
    source = CorruptionInput(image)

    def theirs(name: str) -> np.ndarray:
        np.random.seed(severity)  # noqa: NPY002
        return package.corrupt(image, severity, name)

    legacy = np.random.RandomState(severity)
    assert worst(blur.blur_along(source, severity, legacy.uniform(-45, 45)), theirs("motion_blur")) <= 1
    legacy = np.random.RandomState(severity)
    fields = np.stack([legacy.uniform(-1, 1, (h, w)) for _ in range(2)], axis=2).astype(np.float32)
    assert worst(digital.bend(source, severity, fields), theirs("elastic_transform")) <= 1
    legacy = np.random.RandomState(severity)
    assert (
        worst(weather.fog_of(source, severity, legacy.uniform(-1, 1, 128 * 128), 1.0, 0.0), theirs("fog"))
        <= 1
    )
    _, reach, rounds = blur.GLASS[severity - 1]
    steps = (h - 2 * reach) * (w - 2 * reach)
    legacy = np.random.RandomState(severity)
    pairs = legacy.randint(-reach, reach, size=(rounds, steps, 2)) + reach
    moves = pairs[..., 1] * 2 * reach + pairs[..., 0]
    assert worst(blur.blur_through_glass(source, severity, moves, reach), theirs("glass_blur")) <= 1


@pytest.mark.parametrize("name", ["gaussian_noise", "shot_noise", "impulse_noise", "speckle_noise"])
@pytest.mark.parametrize("severity", [1, 5])
def test_noises_change_the_image_as_much(package, image, name, severity):
    np.random.seed(1)  # noqa: NPY002
    ours = [
        np.abs(corrupt(image, name, severity, np.random.default_rng(k)).astype(int) - image).mean()
        for k in range(30)
    ]
    theirs = [np.abs(package.corrupt(image, severity, name).astype(int) - image).mean() for _ in range(30)]
    assert np.mean(ours) == pytest.approx(np.mean(theirs), rel=0.05)
