"""Patch negatives: the law of sizes and places, every published trap, and the pixels against a plain loop."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from cuewise.cues import patches
from cuewise.cues.patches import PatchParams, apply, default_range, parse_range, sample
from cuewise.cues.registry import cue
from cuewise.errors import UserError


def image(height: int = 64, width: int = 64, channels: int = 3, kind: type = np.uint8) -> np.ndarray:
    return (np.random.default_rng(0).random((height, width, channels)) * 255).astype(kind)


def tiled(source: np.ndarray, p: PatchParams) -> np.ndarray:
    """The specification, literally: cut, rotate, flip up-down, flip left-right, tile row by row, crop."""
    d, columns = p.patch, -(-p.width // p.patch)
    canvas = np.zeros((-(-p.height // d) * d, columns * d, *source.shape[2:]), source.dtype)
    for i, (top, left) in enumerate(zip(p.tops, p.lefts)):
        patch = source[top : top + d, left : left + d]
        patch = np.rot90(patch, p.turns[i]) if p.turns else patch
        patch = patch[::-1] if p.vflips and p.vflips[i] else patch
        patch = patch[:, ::-1] if p.hflips and p.hflips[i] else patch
        y, x = i // columns * d, i % columns * d
        canvas[y : y + d, x : x + d] = patch
    return canvas[: p.height, : p.width]


@pytest.mark.slow
@given(
    height=st.integers(2, 60),
    width=st.integers(2, 60),
    size=st.integers(3, 70),
    low=st.integers(1, 40),
    more=st.integers(0, 40),
    overlap=st.sampled_from(["allow", "distinct", "avoid"]),
    augment=st.sets(st.sampled_from(["rot90", "vflip", "hflip"])),
    channels=st.sampled_from([1, 3, 4]),
    kind=st.sampled_from([np.uint8, np.float32, np.float64]),
    seed=st.integers(0, 99),
)
@settings(max_examples=150, deadline=None)
def test_pixels_equal_the_plain_loop(
    height, width, size, low, more, overlap, augment, channels, kind, seed
) -> None:
    low = min(low, size - 1)
    rng = np.random.default_rng(seed)
    source = image(height, width, channels, kind)
    params = sample(rng, height, width, size, (low, low + more), overlap=overlap, augment=tuple(augment))
    assert params.patch <= min(height, width)
    assert len(params.tops) == len(params.lefts) == (-(-size // params.patch)) ** 2
    made = apply(source, params)
    assert made.dtype == source.dtype
    np.testing.assert_array_equal(made, tiled(source, params))
    assert PatchParams.from_dict(json.loads(json.dumps(params.to_dict()))) == params


def test_d_is_uniform_with_both_ends() -> None:
    rng = np.random.default_rng(0)
    sizes = Counter(sample(rng, 64, 64, 64, (5, 12)).patch for _ in range(4000))
    assert sorted(sizes) == list(range(5, 13))
    assert stats.chisquare(list(sizes.values())).pvalue > 1e-4


@pytest.mark.parametrize("overlap", ["allow", "distinct"])
def test_corners_reach_the_last_row_and_column(overlap: patches.Overlap) -> None:
    rng = np.random.default_rng(0)
    drawn = [sample(rng, 20, 24, 40, (16, 16), overlap=overlap) for _ in range(500)]
    tops, lefts = (
        Counter(t for p in drawn for t in side(p)) for side in (lambda p: p.tops, lambda p: p.lefts)
    )
    assert sorted(tops) == list(range(5))
    assert sorted(lefts) == list(range(9))
    assert stats.chisquare(list(tops.values())).pvalue > 1e-4
    assert stats.chisquare(list(lefts.values())).pvalue > 1e-4


@pytest.mark.parametrize(
    ("size", "d", "n"), [(224, 16, 14), (224, 56, 4), (224, 72, 4), (224, 17, 14), (64, 63, 2)]
)
def test_no_row_of_patches_is_drawn_in_vain(size: int, d: int, n: int) -> None:
    assert len(sample(np.random.default_rng(0), size, size, size, (d, d)).tops) == n * n


def test_default_range_scales_with_the_image() -> None:
    assert default_range(224) == (16, 72)
    assert default_range(32) == (2, 10)
    assert default_range(64) == (5, 21)
    assert default_range(96) == (7, 31)
    assert default_range(8)[0] == 2


@pytest.mark.parametrize("low", [64, 65, 200])
def test_a_patch_as_large_as_the_image_is_refused(low: int) -> None:
    with pytest.raises(UserError, match="is the image itself; give a low end below 64"):
        sample(np.random.default_rng(0), 64, 64, 64, (low, 300))


def test_the_high_end_is_cut_to_the_source() -> None:
    rng = np.random.default_rng(0)
    assert {sample(rng, 64, 64, 64, (60, 500)).patch for _ in range(200)} == set(range(60, 65))
    small = [sample(rng, 10, 30, 64, (16, 72)) for _ in range(20)]  # smaller than the smallest patch
    assert {p.patch for p in small} == {10}
    assert apply(image(10, 30), small[0]).shape == (64, 64, 3)


def test_a_source_of_another_size() -> None:
    params = sample(np.random.default_rng(0), 300, 40, 64, (8, 20))
    assert apply(image(300, 40), params).shape == (64, 64, 3)
    assert max(params.tops) > 64


def test_distinct_never_repeats_a_corner_while_others_are_left() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        p = sample(rng, 64, 64, 64, (5, 5), overlap="distinct")
        assert len(set(zip(p.tops, p.lefts))) == len(p.tops)
    few = sample(rng, 6, 6, 64, (5, 5), overlap="distinct")  # 4 corners for 169 patches
    counts = Counter(zip(few.tops, few.lefts))
    assert len(counts) == 4
    assert max(counts.values()) - min(counts.values()) <= 1


def test_avoid_takes_grid_cells_and_uses_all_before_any_again() -> None:
    rng = np.random.default_rng(0)
    shifts = set()
    for _ in range(200):
        p = sample(rng, 70, 75, 64, (16, 16), overlap="avoid")  # 4×4 cells for 4×4 patches
        assert len({t % 16 for t in p.tops}) == len({x % 16 for x in p.lefts}) == 1
        assert len(set(zip(p.tops, p.lefts))) == 16
        shifts.add((min(p.tops), min(p.lefts)))
    assert {y for y, _ in shifts} == set(range(7))
    assert {x for _, x in shifts} == set(range(12))
    short = sample(rng, 64, 64, 64, (17, 17), overlap="avoid")  # 9 cells for 16 patches
    counts = Counter(zip(short.tops, short.lefts))
    assert len(counts) == 9
    assert max(counts.values()) == 2


def test_overlap_is_common_by_default() -> None:
    p = sample(np.random.default_rng(0), 64, 64, 64, (20, 20))
    assert any(
        abs(a - b) < 20 and abs(c - d) < 20
        for a, c in zip(p.tops, p.lefts)
        for b, d in zip(p.tops[1:], p.lefts[1:])
    )


def test_augmentation_is_drawn_for_each_patch() -> None:
    p = sample(np.random.default_rng(0), 64, 64, 64, (3, 3), augment=("hflip", "vflip", "rot90"))
    assert stats.chisquare(list(Counter(p.turns).values())).pvalue > 1e-4
    assert len(set(p.turns)) == 4
    for flips in (p.vflips, p.hflips):
        assert stats.binomtest(sum(flips), len(flips), 0.5).pvalue > 1e-4
    only = sample(np.random.default_rng(0), 64, 64, 64, (3, 3), augment=("hflip",))
    assert (only.turns, only.vflips) == ((), ())
    assert set(only.hflips) == {0, 1}


def test_augmentation_order_is_rotate_then_up_down_then_left_right() -> None:
    source = np.arange(4, dtype=np.uint8).reshape(2, 2, 1)
    made = apply(source, PatchParams(2, 2, 2, (0,), (0,), (1,), (1,), (0,)))
    np.testing.assert_array_equal(made[..., 0], np.rot90(source[..., 0])[::-1])
    assert np.any(made[..., 0] != np.rot90(source[::-1, :, 0]))


def test_augmentation_does_not_move_the_patches() -> None:
    plain = sample(np.random.default_rng(4), 64, 64, 64, (5, 21))
    turned = sample(np.random.default_rng(4), 64, 64, 64, (5, 21), augment=("rot90", "hflip"))
    assert (plain.patch, plain.tops, plain.lefts) == (turned.patch, turned.tops, turned.lefts)


def test_colours_stay() -> None:
    source = image(96, 96)
    made = apply(source, sample(np.random.default_rng(0), 96, 96, 96))
    assert abs(float(made.mean()) - float(source.mean())) < 2
    known = {tuple(c) for c in source.reshape(-1, 3)}
    assert all(tuple(c) in known for c in made.reshape(-1, 3))


@pytest.mark.parametrize(
    ("text", "expected"), [("16:72", (16, 72)), (" 4 : 9 ", (4, 9)), ("32", (32, 32)), ("7:7", (7, 7))]
)
def test_parse_range(text: str, expected: tuple[int, int]) -> None:
    assert parse_range(text) == expected


@pytest.mark.parametrize("text", ["", ":", "16:", "72:16", "0:5", "-3:5", "a:b", "1:2:3", "1.5:3", "²:3"])
def test_parse_range_says_what_to_write(text: str) -> None:
    with pytest.raises(UserError, match="patch size"):
        parse_range(text)


def test_parameters_of_another_image_are_refused() -> None:
    params = sample(np.random.default_rng(0), 64, 64, 64, (10, 10))
    with pytest.raises(UserError, match="outside a 30×30 image"):
        apply(image(30, 30), params)
    for tops, lefts in (
        ((-1, *params.tops[1:]), params.lefts),
        ((*params.tops[:-1], 55), params.lefts),
        (params.tops, (-1, *params.lefts[1:])),
        (params.tops, (*params.lefts[:-1], 55)),
    ):
        with pytest.raises(UserError, match="outside a 64×64 image"):
            apply(image(), PatchParams(10, 64, 64, tops, lefts))
    for broken in (
        PatchParams(10, 64, 64, params.tops[:-1], params.lefts),
        PatchParams(10, 64, 64, params.tops, params.lefts, turns=(1,)),
    ):
        with pytest.raises(UserError, match="49 patches of 10 pixels are needed"):
            apply(image(), broken)


def test_unknown_words_are_named() -> None:
    with pytest.raises(UserError, match="overlap 'never'"):
        sample(np.random.default_rng(0), 64, 64, 64, overlap="never")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="augment 'spin'"):
        sample(np.random.default_rng(0), 64, 64, 64, augment=("spin",))  # type: ignore[arg-type]


def test_the_cue_keeps_the_shape_of_any_image() -> None:
    source = image(50, 90)
    made = cue("patch")(source, np.random.default_rng(0))
    assert made.shape == source.shape
    settings = {"patch_size": "4:6", "overlap": "distinct", "augment": "hflip,rot90"}
    one = cue("patch")(source, np.random.default_rng(1), **settings)
    np.testing.assert_array_equal(one, cue("patch")(source, np.random.default_rng(1), **settings))
    assert np.any(one != made)
