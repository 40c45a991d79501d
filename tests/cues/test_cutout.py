"""Object and background apart: what is kept is kept to the pixel, what is removed leaves no trace."""

from __future__ import annotations

import numpy as np
import pytest

from cuewise.cues.cutout import BACKGROUNDS, GREY, change_background, fill_hole, hole_of, object_at
from cuewise.errors import UserError


def picture(seed: int, height: int = 40, width: int = 56) -> tuple[np.ndarray, np.ndarray]:
    """Noise, and the mask of an L in it."""
    image = np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)
    mask = np.zeros((height, width), bool)
    mask[10:25, 12:16] = mask[20:25, 12:30] = True
    return image, mask


def test_the_hole_is_the_boxes_of_the_parts() -> None:
    _, mask = picture(0)
    mask[35:38, 50:53] = True
    wanted = np.zeros_like(mask)
    for part in (np.s_[9:26, 11:31], np.s_[34:39, 49:54]):
        wanted[part] = True
    assert np.array_equal(hole_of(mask), wanted)
    assert not hole_of(np.zeros((8, 8), bool)).any()


def test_filling_does_not_see_the_object() -> None:
    image, mask = picture(1)
    other = image.copy()
    other[mask] = 255 - other[mask]
    filled = fill_hole(image, mask)
    assert np.array_equal(filled, fill_hole(other, mask))
    assert np.array_equal(filled[~hole_of(mask)], image[~hole_of(mask)])
    flat = np.full_like(image, 70)
    flat[mask] = 200
    assert (fill_hole(flat, mask) == 70).all()
    assert (fill_hole(flat, np.ones_like(mask)) == GREY).all()


def test_filling_continues_a_ramp() -> None:
    ramp = np.repeat(np.linspace(20, 220, 64).astype(np.uint8)[None, :, None], 64, 0).repeat(3, 2)
    mask = np.zeros((64, 64), bool)
    mask[24:40, 24:40] = True
    apart = np.abs(fill_hole(ramp, mask).astype(int) - ramp)[mask]
    assert apart.mean() < 12  # of a span of 50 inside the hole


@pytest.mark.parametrize("kind", BACKGROUNDS)
def test_the_object_stays_and_the_background_goes(kind: str) -> None:
    (image, mask), (other, other_mask) = picture(2), picture(3, 30, 90)
    out = change_background(image, mask, kind, (other, other_mask))
    assert out.shape == image.shape
    assert out.dtype == np.uint8
    if kind == "only":
        assert np.array_equal(out, fill_hole(image, mask))
        return
    assert np.array_equal(out[mask], image[mask])
    changed = image.copy()
    changed[~mask] = 0
    assert np.array_equal(out, change_background(changed, mask, kind, (other, other_mask)))
    if kind == "removed":
        assert (out[~mask] == GREY).all()


def test_a_background_of_the_same_size_is_taken_as_it_is() -> None:
    (image, mask), (other, other_mask) = picture(4), picture(5)
    out = change_background(image, mask, "other", (other, other_mask))
    assert np.array_equal(out[~mask], fill_hole(other, other_mask)[~mask])


@pytest.mark.parametrize("place", [(0.0, 0.0), (1.0, 0.5), (0.5, 1.0)])
def test_the_object_is_moved_whole(place: tuple[float, float]) -> None:
    image, mask = picture(6)
    out = object_at(image, mask, place)
    top, left = round(place[0] * (40 - 15)), round(place[1] * (56 - 18))
    cut, form = image[10:25, 12:30], mask[10:25, 12:30]
    assert np.array_equal(out[top : top + 15, left : left + 18][form], cut[form])
    moved = np.zeros_like(mask)
    moved[top : top + 15, left : left + 18] = form
    assert np.array_equal(out[~moved], fill_hole(image, mask)[~moved])


def test_scaling_takes_no_background_along() -> None:
    image = np.zeros((64, 64, 3), np.uint8)
    mask = np.zeros((64, 64), bool)
    mask[8:24, 8:24] = True
    image[mask] = 200
    for share, side in ((0.125, 8), (0.5, 32), (1.0, 64)):
        out = object_at(image, mask, (0.5, 0.5), share)
        assert int((out[..., 0] == 200).sum()) == side * side
        assert set(np.unique(out)) <= {0, 200}


def test_an_image_without_an_object_is_left_alone() -> None:
    image, mask = picture(7)
    assert np.array_equal(object_at(image, np.zeros_like(mask), (0, 0)), image)
    with pytest.raises(UserError, match="resize the mask"):
        fill_hole(image, mask[:-1])
