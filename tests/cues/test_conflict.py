"""Cue-conflict images: shape from one, texture from the other; balanced plans."""

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from cuewise.cues.conflict import Pair, conflict, pairs, texture_sheet
from cuewise.cues.quilt_kernel import seam
from cuewise.errors import UserError


def disk(side: int, seed: int = 0) -> np.ndarray:
    y, x = np.mgrid[0:side, 0:side] / side
    inside = ((y - 0.5) ** 2 + (x - 0.4) ** 2 < 0.08)[..., None]
    image = np.where(inside, (220, 200, 180), (40, 60, 50)) + np.random.default_rng(seed).normal(
        0, 4, (side, side, 3)
    )
    return np.clip(image, 0, 255).astype(np.uint8)


def stripes(side: int) -> np.ndarray:
    """Blue and orange bars, with dark and light ones among them."""
    x = np.arange(side)
    colours = np.array([[240, 150, 40], [30, 60, 160], [250, 210, 120], [10, 20, 70]], float)
    row = colours[(x // 4) % 4]
    image = np.broadcast_to(row, (side, side, 3)) + np.random.default_rng(2).normal(0, 3, (side, side, 3))
    return np.clip(image, 0, 255).astype(np.uint8)


def coarse(image: np.ndarray, side: int = 10) -> np.ndarray:
    return np.asarray(
        Image.fromarray(image).convert("L").resize((side, side), Image.Resampling.BOX), float
    ).ravel()


@pytest.mark.slow
@pytest.mark.parametrize("side", [64, 96])
def test_shape_of_one_texture_of_the_other(side):
    content, texture = disk(side), stripes(side)
    out = conflict(content, texture, np.random.default_rng(0))
    assert out.shape == content.shape
    assert out.dtype == np.uint8
    assert np.corrcoef(coarse(out), coarse(content))[0, 1] > 0.85
    changes = [
        np.abs(np.diff(i.astype(float), axis=1)).mean() / np.abs(np.diff(i.astype(float), axis=0)).mean()
        for i in (content, texture, out)
    ]
    assert (
        changes[0] < 1.5
    )  # the content's fine structure has no direction, the bars' has, and so has the result's
    assert changes[1] > 4
    assert changes[2] > 1.8
    blue = [float((i[..., 2].astype(int) - i[..., 0] > 30).mean()) for i in (content, texture, out)]
    assert blue[0] < 0.01
    assert blue[2] > 0.3 * blue[1]


def test_a_bare_sheet_is_made_of_the_textures_pixels():
    content, texture = disk(64), stripes(64)
    sheet = texture_sheet(content, texture, np.random.default_rng(0), focus=1.0)
    known = {tuple(p) for p in texture.reshape(-1, 3).tolist()}
    assert all(tuple(p) in known for p in sheet.reshape(-1, 3).tolist())
    np.testing.assert_array_equal(
        conflict(content, texture, np.random.default_rng(0), shape=0.0, focus=1.0), sheet.astype(np.uint8)
    )


def test_focus_takes_the_texture_from_the_centre():
    texture = np.zeros((64, 64, 3), np.uint8)
    texture[..., 2] = 200
    texture[16:48, 16:48] = (200, 0, 0)
    sheet = texture_sheet(disk(64), texture, np.random.default_rng(0), focus=0.5)
    assert (sheet[..., 0] == 200).all()


def test_more_shape_means_more_of_the_contents_brightness():
    content, texture = disk(96), stripes(96)
    close = [
        np.corrcoef(
            coarse(conflict(content, texture, np.random.default_rng(0), shape=s), 24), coarse(content, 24)
        )[0, 1]
        for s in (0.0, 0.5, 1.0)
    ]
    assert close[0] < close[1] < close[2]


def test_a_mask_leaves_texture_in_the_silhouette_only():
    content, texture = disk(64), stripes(64)
    mask = content[..., 0] > 128
    out = conflict(content, texture, np.random.default_rng(0), mask=mask).astype(float)
    change = np.abs(np.diff(out, axis=1)).mean(axis=2)
    assert np.median(change[mask[:, 1:]]) > 3 * np.median(change[~mask[:, 1:]])


def test_another_style_transfer_can_be_used():
    seen = []

    def method(image, style, strength):
        seen.append((style.shape, strength))
        return 255 - image

    content = disk(64)
    out = conflict(content, stripes(80), np.random.default_rng(0), focus=0.5, method=method)
    np.testing.assert_array_equal(out, 255 - content)
    assert seen == [((32, 32, 3), 1.0)]


def test_same_seed_same_image():
    a, b, c = (conflict(disk(48), stripes(48), np.random.default_rng(s)) for s in (1, 1, 2))
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(a, c)


@settings(max_examples=20, deadline=None)
@given(st.tuples(*[st.integers(16, 65)] * 4), st.sampled_from([None, 0, 255]))
def test_any_sizes(sizes, fill):
    rng = np.random.default_rng(sizes[0])
    content = rng.integers(0, 256, (*sizes[:2], 3), dtype=np.uint8)
    texture = rng.integers(0, 256, (*sizes[2:], 3), dtype=np.uint8)
    if fill is not None:
        content[:] = fill
        texture[:] = fill
    assert conflict(content, texture, rng).shape == content.shape


@given(st.integers(2, 6), st.integers(2, 5), st.integers(0, 1000))
@pytest.mark.slow
def test_the_seam_is_the_cheapest_path(rows, columns, seed):
    errors = np.random.default_rng(seed).random((rows, columns)).astype(np.float32)
    path = seam(errors)
    assert np.abs(np.diff(path)).max() <= 1
    every = (
        p
        for p in itertools.product(range(columns), repeat=rows)
        if all(abs(a - b) <= 1 for a, b in itertools.pairwise(p))
    )
    best = min(sum(errors[y, x] for y, x in enumerate(p)) for p in every)
    assert sum(errors[y, x] for y, x in enumerate(path)) == pytest.approx(best, rel=1e-5)


@settings(deadline=None)
@given(st.lists(st.integers(1, 7), min_size=2, max_size=6), st.integers(0, 60), st.integers(0, 99))
@pytest.mark.slow
def test_plans_are_balanced_and_never_repeat(counts, n, seed):
    classes = {f"class {i}": count for i, count in enumerate(counts)}
    possible = sum(a * b for a, b in itertools.permutations(counts, 2))
    n = min(n, possible)
    plan = pairs(classes, n, seed)
    assert len(plan) == len(set(plan)) == len({p.name for p in plan}) == n
    assert plan == pairs(classes, n, seed)
    for p in plan:
        assert p.shape != p.texture
        assert 0 <= p.shape_index < classes[p.shape]
        assert 0 <= p.texture_index < classes[p.texture]
    if n <= min(a * b for a, b in itertools.combinations(counts, 2)) * len(counts) * (len(counts) - 1):
        many = Counter((p.shape, p.texture) for p in plan)
        every = [many[pair] for pair in itertools.permutations(classes, 2)]
        assert max(every) - min(every) <= 1
        shapes = Counter(p.shape for p in plan)
        assert max(shapes.values(), default=0) - min((shapes[c] for c in classes), default=0) <= 1


def test_images_of_a_class_take_turns():
    plan = [p for p in pairs({"cat": 5, "car": 5}, 20, 0) if p.shape == "cat"]
    assert sorted(p.shape_index for p in plan) == sorted([*range(5)] * 2)
    assert sorted(p.texture_index for p in plan) == sorted([*range(5)] * 2)


def test_names_are_those_of_the_published_stimuli():
    assert Pair("cat", 6, "elephant", 0).name == "cat7-elephant1.png"


def test_errors_a_user_can_fix():
    rng = np.random.default_rng(0)
    with pytest.raises(UserError, match="two or more classes"):
        pairs({"cat": 3, "dog": 0}, 2, 0)
    with pytest.raises(UserError, match="only 4"):
        pairs({"cat": 1, "dog": 2}, 5, 0)
    with pytest.raises(UserError, match="texture image"):
        conflict(disk(32), disk(32)[..., 0], rng)
    with pytest.raises(UserError, match="shape="):
        conflict(disk(32), disk(32), rng, shape=2)
    with pytest.raises(UserError, match="mask"):
        conflict(disk(32), disk(32), rng, mask=np.ones((3, 3), bool))
