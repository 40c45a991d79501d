"""Object proposals: kernels against plain loops, and what must hold of the boxes."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest

from cuewise.cues.objects import (
    SIDES,
    Template,
    default_template,
    intersection_over_union,
    propose,
    recall,
    shrunken_gradients,
    windows,
)
from cuewise.cues.objects_fit import fit, logistic
from cuewise.cues.objects_kernel import PAD, local_maxima, normed_gradients, suppress, template_scores
from cuewise.errors import UserError


def scene(seed: int, height: int = 120, width: int = 160, count: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Bright textured rectangles on a smooth ground, and their boxes."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]
    image = (70 + 20 * np.sin(x / 40) + 15 * np.cos(y / 30))[..., None] + rng.normal(0, 2, (height, width, 3))
    boxes = []
    for _ in range(count):
        w, h = rng.integers(24, 70, 2)
        left, top = rng.integers(0, width - w), rng.integers(0, height - h)
        image[top : top + h, left : left + w] = rng.uniform(120, 255, 3) + rng.normal(0, 4, (h, w, 3))
        boxes.append((left, top, left + w, top + h))
    return np.clip(image, 0, 255).astype(np.uint8), np.array(boxes)


def test_normed_gradients_are_the_specification():
    image = np.random.default_rng(0).integers(0, 256, (13, 17, 3), dtype=np.uint8)
    wide = image.astype(int)
    gx, gy = np.zeros((13, 17)), np.zeros((13, 17))
    for yy in range(13):
        for xx in range(17):
            left, right = wide[yy, max(xx - 1, 0)], wide[yy, min(xx + 1, 16)]
            up, down = wide[max(yy - 1, 0), xx], wide[min(yy + 1, 12), xx]
            gx[yy, xx] = np.abs(right - left).max() * (2 if xx in (0, 16) else 1)
            gy[yy, xx] = np.abs(down - up).max() * (2 if yy in (0, 12) else 1)
    out = np.empty((13, 17 + PAD), np.float32)
    normed_gradients(image, out)
    np.testing.assert_array_equal(out[:, :17], np.minimum(gx + gy, 255))
    assert not out[:, 17:].any()


def test_template_scores_are_a_correlation():
    rng = np.random.default_rng(1)
    gradients, template = (
        rng.random((20, 31 + PAD)).astype(np.float32),
        rng.normal(size=(8, 8)).astype(np.float32),
    )
    windowed = np.lib.stride_tricks.sliding_window_view(gradients[:, :31], (8, 8))
    want = np.einsum("yxij,ij->yx", windowed, template)
    np.testing.assert_allclose(template_scores(gradients, 31, template), want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("values", ["distinct", "ties", "constant"])
@pytest.mark.parametrize("size", [(1, 1), (2, 9), (23, 18)], ids=str)
def test_local_maxima_are_the_largest_near_them(values, size):
    rng = np.random.default_rng(2)
    scores = {"distinct": rng.random(size), "ties": rng.integers(0, 4, size), "constant": np.ones(size)}[
        values
    ]
    scores = scores.astype(np.float32)
    found = {tuple(p) for p in local_maxima(scores, 2).tolist()}
    for y in range(size[0]):
        for x in range(size[1]):
            top, left = max(y - 2, 0), max(x - 2, 0)
            near = scores[top : y + 3, left : x + 3]
            first = np.unravel_index(np.argmax(near), near.shape)  # the first of equal ones
            assert ((y, x) in found) == ((top + first[0], left + first[1]) == (y, x))


def test_suppression_keeps_the_best_of_overlapping_boxes():
    rng = np.random.default_rng(3)
    corner = rng.integers(0, 50, (60, 2))
    boxes = np.concatenate([corner, corner + rng.integers(5, 40, (60, 2))], 1).astype(np.int32)
    kept = []
    for i in range(60):
        if all(intersection_over_union(boxes[i : i + 1], boxes[j : j + 1])[0, 0] <= 0.4 for j in kept):
            kept.append(i)
    assert suppress(boxes, 0.4, 1000).tolist() == kept
    assert suppress(boxes, 0.4, 5).tolist() == kept[:5]


def test_boxes_lie_in_the_image_within_the_bounds_best_first():
    for height, width in ((8, 8), (30, 200), (97, 64), (288, 384)):
        image = np.random.default_rng(height).integers(0, 256, (height, width, 3), dtype=np.uint8)
        found = propose(image, k=40)
        b = found.corners
        assert len(b) <= 40
        assert b.dtype == np.int32
        assert ((b[:, :2] >= 0) & (b[:, :2] < b[:, 2:])).all()
        assert (b[:, 2] <= width).all()
        assert (b[:, 3] <= height).all()
        share = (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1]) / (height * width)
        assert ((share >= 0.02) & (share <= 0.40)).all()
        assert (np.diff(found.scores) <= 0).all()
        overlaps = intersection_over_union(b, b) - np.eye(len(b))
        assert (overlaps <= 0.5 + 1e-9).all()


def test_it_finds_what_is_there():
    scenes = [scene(seed) for seed in range(20)]
    found = [propose(image, k=1000, area=(0.0, 1.0)).corners for image, _ in scenes]
    truth = [boxes for _, boxes in scenes]
    assert recall(found, truth, 50) > 0.5
    assert recall(found, truth, 1000) > 0.85
    at = [recall(found, truth, k) for k in (1, 10, 50, 100, 1000)]
    assert at == sorted(at)


def test_a_mirrored_image_has_mirrored_scores():
    """The template is symmetric, so a pattern and its mirror image score the same."""
    weights = default_template().weights
    np.testing.assert_array_equal(weights, weights[:, ::-1])


def test_a_window_is_its_size_in_the_image():
    image, _ = scene(0, 160, 240)
    boxes, _ = windows(image, Template(default_template().weights, {(40, 80): (1.0, 0.0)}))
    sides = boxes[:, 2:] - boxes[:, :2]
    assert np.abs(sides - (40, 80)).max() <= 2
    gradients = shrunken_gradients(image, (40, 80))
    assert gradients is not None
    assert gradients.shape == (16, 48 + PAD)
    assert shrunken_gradients(image[:30, :30], (320, 320)) is None


@pytest.mark.slow
def test_a_fitted_template_beats_one_of_noise():
    train, test = [scene(seed) for seed in range(60)], [scene(1000 + seed) for seed in range(20)]
    images, boxes = [i for i, _ in train], [b for _, b in train]
    fitted = fit(images, boxes, np.random.default_rng(0))
    again = fit(images, boxes, np.random.default_rng(0))
    np.testing.assert_array_equal(fitted.weights, again.weights)
    assert set(fitted.sizes) <= {(w, h) for w in SIDES for h in SIDES}
    noise = Template(np.random.default_rng(0).normal(size=(8, 8)).astype(np.float32), fitted.sizes)
    truth = [b for _, b in test]

    def at_10(template: Template) -> float:
        return recall(
            [propose(i, k=10, area=(0.0, 1.0), template=template).corners for i, _ in test], truth, 10
        )

    assert at_10(fitted) > 0.5
    assert at_10(fitted) > at_10(noise) + 0.2
    back = Template.from_dict(json.loads(json.dumps(fitted.to_dict())))
    np.testing.assert_array_equal(back.weights, fitted.weights)
    assert back.sizes == dict(fitted.sizes)


def test_logistic_regression_finds_the_odds():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20_000, 2)) * 40
    y = rng.random(len(x)) < 1 / (1 + np.exp(-(0.05 * x[:, 0] - 0.02 * x[:, 1] - 1)))
    w, b = logistic(x, y.astype(float), penalty=0.0)
    np.testing.assert_allclose(w, (0.05, -0.02), atol=0.004)
    assert abs(b + 1) < 0.08


def test_grey_images_and_wrong_ones():
    image, _ = scene(4)
    grey = image[..., 0]
    np.testing.assert_array_equal(propose(grey).corners, propose(np.repeat(grey[..., None], 3, -1)).corners)
    with pytest.raises(UserError, match="uint8"):
        propose(image / 255)
    with pytest.raises(UserError, match="rising"):
        propose(image, area=(0.5, 0.1))
    with pytest.raises(UserError, match="no boxes"):
        fit([image], [np.zeros((0, 4))], np.random.default_rng(0))
    constant = propose(np.full((64, 64, 3), 9, np.uint8))
    assert len(constant.corners) == len(constant.scores)


def test_it_is_fast():
    """OpenCV's BING takes 120 ms for this size; the bound is loose for busy machines."""
    image, _ = scene(5, 288, 384, 6)
    propose(image)
    best = min(_timed(lambda: propose(image)) for _ in range(10))
    assert best < 0.03


def _timed(call) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin
