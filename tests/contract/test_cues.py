"""Every registered cue keeps the same promises."""

from __future__ import annotations

import inspect
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from cuewise.cues.registry import Cue, cue, cues
from cuewise.errors import UserError

SIZES = [(8, 8), (9, 31), (33, 17), (64, 64), (65, 48)]
ALL = [pytest.param(each, id=name) for name, each in cues().items()]


def photo(height: int, width: int, kind: str = "colour") -> np.ndarray:
    rng = np.random.default_rng(height * 100 + width)
    if kind == "constant":
        return np.full((height, width, 3), 77, np.uint8)
    y, x = np.mgrid[:height, :width]
    image = 110 + 60 * np.sin(x / 3)[..., None] * np.cos(y / 4)[..., None] * np.array([1.0, 0.6, -0.8])
    disc = (y - height / 2) ** 2 + (x - width / 2) ** 2 < (min(height, width) / 3) ** 2
    image[disc] += (70, 20, -60)
    image = np.clip(image + rng.normal(0, 6, image.shape), 0, 255)
    if kind == "grey":
        image[:] = image.mean(-1, keepdims=True)
    return image.astype(np.uint8)


def run(operator: Cue, image: np.ndarray, seed: int = 0) -> np.ndarray:
    return operator(image, np.random.default_rng(seed))


@pytest.mark.parametrize("operator", ALL)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_keeps_shape_and_type_and_leaves_its_input_alone(operator, size):
    image = photo(*size)
    before = image.copy()
    out = run(operator, image)
    assert out.shape == image.shape
    assert out.dtype == np.uint8
    assert out.flags.c_contiguous
    assert not np.shares_memory(out, image)
    assert np.array_equal(image, before)


@pytest.mark.parametrize("operator", ALL)
def test_same_seed_same_image(operator):
    image = photo(40, 40)
    assert np.array_equal(run(operator, image, 3), run(operator, image, 3))


@pytest.mark.parametrize("operator", ALL)
def test_threads_do_not_disturb_each_other(operator):
    images = [photo(32, 32 + i) for i in range(6)]
    with ThreadPoolExecutor(3) as pool:
        together = list(pool.map(lambda image: run(operator, image), images))
    assert all(np.array_equal(a, run(operator, image)) for a, image in zip(together, images))


@pytest.mark.parametrize("operator", ALL)
def test_ignores_the_global_generators(operator):
    image = photo(32, 32)
    np.random.seed(1)  # noqa: NPY002 — the very thing that must not matter
    one = run(operator, image, 3)
    np.random.seed(2)  # noqa: NPY002
    assert np.array_equal(one, run(operator, image, 3))


@pytest.mark.parametrize("operator", ALL)
@pytest.mark.parametrize("kind", ["grey", "constant"])
def test_works_on_dull_images(operator, kind):
    image = photo(24, 31, kind)
    assert run(operator, image).shape == image.shape


@pytest.mark.parametrize("operator", ALL)
def test_takes_a_view_that_is_not_contiguous(operator):
    image = photo(24, 24)
    flipped = image[:, ::-1]
    assert np.array_equal(run(operator, flipped), run(operator, np.ascontiguousarray(flipped)))


@pytest.mark.parametrize("operator", ALL)
def test_settings_are_the_operators_own_defaults(operator):
    """What is registered as default is what the function does without arguments."""
    for name, parameter in inspect.signature(operator.operator).parameters.items():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            assert operator.settings[name] == parameter.default
    assert operator.summary
    assert operator.summary[0].islower()


@pytest.mark.parametrize("operator", ALL)
def test_unknown_setting_is_refused(operator):
    with pytest.raises(UserError, match="no setting 'nonsense'"):
        operator(photo(8, 8), np.random.default_rng(0), nonsense=1)


def test_unknown_cue_lists_the_known_ones():
    with pytest.raises(UserError, match=r"anisotropic.*texture"):
        cue("nonsense")


def test_the_documented_cues_are_there():
    expected = {
        "texture", "quilting", "anisotropic", "robust", "bilateral", "cartoon", "gaussian",
        "lowpass", "sketch", "silhouette", "grey", "hue", "rotation",
    }  # fmt: skip
    assert expected <= set(cues())
