"""Sketch, silhouette, colour and rotation, and quilting: what each keeps and what it destroys."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from cuewise.cues.color import Grey, HueShift, grey, hue_shift
from cuewise.cues.edges import sketch
from cuewise.cues.quilting import quilt
from cuewise.cues.quilting_kernel import seam
from cuewise.cues.rotation import Rotate, rotate
from cuewise.cues.silhouette import fill, foreground, silhouette
from cuewise.errors import UserError


def scene(side: int = 96) -> tuple[np.ndarray, np.ndarray]:
    """A textured disc on a textured ground, and where it is."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:side, :side]
    disc = (y - side / 2) ** 2 + (x - side / 2) ** 2 < (side / 4) ** 2
    image = np.where(disc[..., None], (200, 60, 40), (70, 120, 90)) + rng.normal(0, 6, (side, side, 3))
    return np.clip(image, 0, 255).astype(np.uint8), disc


def test_sketch_draws_the_outline_only():
    image, _ = scene()
    out = sketch(image)
    y, x = np.mgrid[:96, :96]
    ring = np.abs(np.hypot(y - 48, x - 48) - 24) < 3
    assert (out[..., 0] == out[..., 2]).all()
    assert out[ring].mean() < 160 < 235 < out[~ring].mean()


def test_sketch_ignores_what_colour_things_have():
    image, _ = scene()
    negative = sketch(255 - image).astype(float)
    assert abs(negative.mean() - sketch(image).astype(float).mean()) < 15
    assert (sketch(np.full((32, 32, 3), 90, np.uint8)) >= 250).all()


def test_silhouette_is_the_object():
    image, disc = scene()
    mask = foreground(image)
    assert (mask & disc).sum() / (mask | disc).sum() > 0.9
    out = silhouette(image)
    assert set(np.unique(out)) == {0, 255}
    assert (out[48, 48] == 0).all()
    assert (out[0] == 255).all()
    with pytest.raises(UserError, match="mask"):
        fill(image, disc[:50])


def test_grey_is_luma_in_both_forms():
    image, _ = scene(16)
    expected = np.rint(image.astype(float) @ [0.299, 0.587, 0.114])
    assert np.abs(grey(image)[..., 1] - expected).max() <= 1
    batch = torch.from_numpy(image.transpose(2, 0, 1).copy())[None]
    assert np.array_equal(Grey()(batch)[0].permute(1, 2, 0).numpy(), grey(image))


def test_hue_turns_and_comes_back():
    primary = np.array([[[200, 0, 0], [0, 200, 0], [90, 90, 90]]], np.uint8)
    assert hue_shift(primary, turn=1 / 3).tolist() == [[[0, 200, 0], [0, 0, 200], [90, 90, 90]]]
    image, _ = scene(20)
    for turn in (0.0, 1.0, -2.0):
        assert np.abs(hue_shift(image, turn=turn).astype(int) - image).max() <= 1
    turned = hue_shift((image / 255).astype(np.float32), turn=0.37)
    assert np.abs(hue_shift(turned, turn=-0.37) * 255 - image).max() < 0.1
    assert np.allclose(turned.max(-1), (image / 255).max(-1), atol=1e-4)  # value stays
    batch = torch.from_numpy(image.transpose(2, 0, 1).copy())[None]
    got = HueShift(0.2)(batch)[0].permute(1, 2, 0).numpy().astype(int)
    assert np.abs(got - hue_shift(image, turn=0.2)).max() <= 1


def test_rotation_is_exact_and_has_order_four():
    image = np.random.default_rng(0).integers(0, 256, (9, 14, 3), dtype=np.uint8)
    assert np.array_equal(rotate(image, quarters=1), np.rot90(image))
    assert np.array_equal(rotate(rotate(image, quarters=1), quarters=3), image)
    batch = torch.from_numpy(image.transpose(2, 0, 1).copy())[None]
    assert np.array_equal(Rotate(1)(batch)[0].permute(1, 2, 0).numpy(), np.rot90(image))


def stripes(seed: int, height: int = 40, width: int = 44) -> np.ndarray:
    y, x = np.mgrid[:height, :width]
    image = 128 + 90 * np.sin((x + seed * y)[..., None] / (2 + np.arange(3)))
    return np.clip(image + np.random.default_rng(seed).normal(0, 5, image.shape), 0, 255).astype(np.uint8)


def test_quilt_has_only_source_pixels_and_whole_blocks():
    examples = [stripes(1), stripes(2, 36, 50)]
    out = quilt(examples, (75, 90), rng=np.random.default_rng(0), block=16)
    known = {tuple(p) for e in examples for p in e.reshape(-1, 3)}
    assert out.shape == (75, 90, 3)
    assert {tuple(p) for p in out.reshape(-1, 3)} <= known
    first = out[:12, :12]  # before the next block's overlap
    views = [np.lib.stride_tricks.sliding_window_view(e, (12, 12), (0, 1)) for e in examples]
    assert any((v == first.transpose(2, 0, 1)).all((-1, -2, -3)).any() for v in views)


def test_quilt_seams_are_better_than_random_blocks():
    example = stripes(1, 64, 64)
    jump = [
        np.abs(np.diff(quilt([example], (96, 96), rng=np.random.default_rng(0), block=24, tries=t).astype(float), axis=1)).mean()
        for t in (1, 400)
    ]  # fmt: skip
    natural = np.abs(np.diff(example.astype(float), axis=1)).mean()
    assert jump[1] - natural < 0.5 * (jump[0] - natural)


def test_seam_is_the_cheapest_connected_path():
    errors = np.random.default_rng(0).random((6, 4)).astype(np.float32)

    def best(i, j):
        rest = min(best(i + 1, k) for k in range(max(j - 1, 0), min(j + 2, 4))) if i < 5 else 0
        return errors[i, j] + rest

    path = np.zeros(6, np.int64)
    seam(errors.copy(), path)
    assert (np.abs(np.diff(path)) <= 1).all()
    assert errors[np.arange(6), path].sum() == pytest.approx(min(best(0, j) for j in range(4)))


def test_quilt_refuses_blocks_larger_than_the_examples():
    with pytest.raises(UserError, match="block"):
        quilt([stripes(1, 16, 16)], (40, 40), rng=np.random.default_rng(0), block=20)
