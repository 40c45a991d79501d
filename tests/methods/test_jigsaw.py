"""Jigsaw: its permutations, tiles and loss against loops, and suppression tile by tile."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cuewise.config import resolve
from cuewise.data import Batch, Sample, open_data
from cuewise.encoders.libraries import build
from cuewise.errors import UserError
from cuewise.methods import Setup, method
from cuewise.methods.jigsaw import channel_shift, cut_tiles, normalised, tile_side
from cuewise.methods.permutations import greedy_permutations, permutation_set
from cuewise.probes.linear import CONV_NUMBERS, ConvMap
from cuewise.train.shown import build_views

pytestmark = pytest.mark.slow


def hamming(a: Any, b: Any) -> int:
    return sum(int(x != y) for x, y in zip(a, b))


def test_each_permutation_is_the_farthest_by_brute_force() -> None:
    every = list(permutations(range(4)))
    found = [tuple(int(v) for v in row) for row in greedy_permutations(24, 4)]
    assert sorted(found) == every  # each once
    for n in range(1, 12):
        means = {p: np.mean([hamming(p, c) for c in found[:n]]) for p in every if p not in found[:n]}
        best = max(means.values())
        assert found[n] == min(p for p, mean in means.items() if mean == best)


def test_a_thousand_permutations_in_seconds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUEWISE_CACHE", str(tmp_path))
    began = time.process_time()
    found = permutation_set(1000)
    assert time.process_time() - began < 20
    assert len(np.unique(found, axis=0)) == 1000
    assert all(sorted(row) == list(range(9)) for row in found.tolist())
    differ = (found[:, None] != found[None]).sum(2).sum() / (1000 * 999)
    assert differ > 8.0  # two random orders differ in 8 places on average
    (file,) = tmp_path.rglob("*.npy")
    np.testing.assert_array_equal(permutation_set(1000), found)  # from the cache
    few = permutation_set(24)
    np.testing.assert_array_equal(few, found[:24])  # more orders begin with the same ones
    next(f for f in tmp_path.rglob("*.npy") if f != file).write_bytes(b"cut off")
    np.testing.assert_array_equal(permutation_set(24), few)
    with pytest.raises(UserError, match="give 2 to 24"):
        greedy_permutations(25, 4)


def test_tiles_are_cut_where_a_loop_cuts_them() -> None:
    g = torch.Generator().manual_seed(0)
    images = torch.randn(2, 3, 51, 51, generator=g)
    corner, moved = torch.rand(2, 9, 2, generator=g), torch.rand(2, 9, 3, 2, generator=g)
    found = cut_tiles(images, corner, moved, 2)
    t, cell = tile_side(51), 17
    assert (t, found.shape) == (13, (2, 9, 3, 13, 13))
    for b in range(2):
        for n in range(9):
            top, left = (
                p * cell + int(float(c) * (cell - t + 1)) for p, c in zip(divmod(n, 3), corner[b, n])
            )
            for c in range(3):
                y, x = (
                    min(max(a + int(float(m) * 5) - 2, 0), 51 - t)
                    for a, m in zip((top, left), moved[b, n, c])
                )
                torch.testing.assert_close(found[b, n, c], images[b, c, y : y + t, x : x + t])


def test_published_geometry() -> None:
    """Cells of 85 pixels, tiles of 64, channels moved by up to 2: a gap of at least 0 and at most 42 between tiles."""
    assert (tile_side(255), channel_shift(255), 255 // 3) == (64, 2, 85)
    assert (tile_side(64), channel_shift(64), channel_shift(32)) == (16, 1, 0)
    rows = torch.arange(255.0).expand(1, 3, 255, 255)
    ends = cut_tiles(rows, torch.tensor([0.0, 0.999]).expand(1, 9, 2), torch.full((1, 9, 3, 2), 0.5), 2)
    assert ends[0, 0, 0, 0, 0] == 21  # 85 − 64
    assert ends[0, 8, 0, 0, -1] == 170 + 21 + 63


def test_each_tile_is_normalised_by_itself_and_added_values_cancel() -> None:
    x = torch.randn(2, 9, 3, 8, 8, generator=torch.Generator().manual_seed(0)) * 7 + 3
    x[0, 0, 1] = 5.0  # a channel of one value
    found = normalised(x)
    flat = x.numpy().astype(np.float64)
    for b, n, c in np.ndindex(2, 9, 3):
        tile = flat[b, n, c]
        expected = (tile - tile.mean()) / (tile.std() or 1)
        np.testing.assert_allclose(found[b, n, c], expected, atol=1e-4)
    jittered = x + torch.randint(-2, 3, (2, 1, 3, 1, 1), generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(normalised(jittered), found, atol=1e-4, rtol=1e-4)


def test_the_loss_is_that_of_a_loop_over_images_and_tiles(make, batch) -> None:  # type: ignore[no-untyped-def]
    m = make("jigsaw", norm="group", permutations=24)
    given = batch(m)
    again = torch.Generator()
    again.set_state(m.generator.get_state())
    label = torch.randint(24, (8,), generator=again)
    corner, moved, _ = (torch.rand(8, 9, *rest, generator=again) for rest in ((2,), (3, 2), ()))
    x = normalised(cut_tiles(given.views["image"], corner, moved, channel_shift(16)))
    losses, right = [], 0
    with torch.no_grad():
        for b in range(8):
            order = permutation_set(24)[int(label[b])]
            towers = [m.encoder(x[b, int(tile)].unsqueeze(0))[0] for tile in order]
            logits = m.classifier(torch.cat(towers).unsqueeze(0))[0]
            losses.append(-torch.log_softmax(logits, 0)[label[b]])
            right += int(logits.argmax() == label[b])
    step = m(given)
    torch.testing.assert_close(step.loss.detach(), torch.stack(losses).mean(), rtol=1e-4, atol=1e-5)
    assert float(step.extra["accuracy"]) == right / 8


def patchwise(share: float) -> Any:
    torch.manual_seed(0)
    kind = method("jigsaw")
    settings = kind.Settings(permutations=10, hidden=32, patchwise=True)
    return kind(
        build("cuewise/resnet-tiny", {"width": 8}, size=48), Setup(settings, size=48, suppressed=share)
    )


def test_a_share_of_the_tiles_is_filtered_and_both_are_cut_at_the_same_place() -> None:
    m = patchwise(0.5)
    assert [v.role for v in type(m).shown(m.setup)] == ["image", "filtered"]
    images = torch.randn(64, 3, 48, 48, generator=torch.Generator().manual_seed(0))
    marked = Batch(
        {"image": images, "filtered": images.flip(1)}, torch.arange(64)
    )  # channels in another order
    rows = torch.arange(64)
    state = m.generator.get_state()
    found = m.tiles(marked, 64, rows)
    m.generator.set_state(state)
    plain = m.tiles(Batch({"image": images, "filtered": images}, rows), 64, rows)
    m.generator.set_state(state)
    all_filtered = m.tiles(Batch({"image": images.flip(1), "filtered": images.flip(1)}, rows), 64, rows)
    from_image = (found == plain).flatten(2).all(2)
    from_filtered = (found == all_filtered).flatten(2).all(2)
    assert torch.equal(from_image, ~from_filtered)
    assert from_filtered.float().mean() == pytest.approx(0.5, abs=0.06)
    mixed = from_filtered.float().mean(1)
    assert ((mixed > 0) & (mixed < 1)).float().mean() > 0.9  # tile by tile, not image by image


def test_the_two_views_differ_in_nothing_but_the_filter() -> None:
    config = resolve(
        {"method": "jigsaw", "jigsaw": {"patchwise": True}, "size": 48, "suppress": {"name": "anisotropic"}}
    )
    data = open_data("shapes?n=8&size=64")
    views = build_views(config, data)
    for i in range(8):
        drawn = views.sample(np.random.default_rng(i), 64, 64).positives
        assert drawn["image"].suppress is None
        assert drawn["filtered"].suppress is not None
        assert replace(drawn["filtered"], suppress=None) == drawn["image"]
        assert drawn["image"].blur is None
        shown = views(Sample(data.image(i), i), np.random.default_rng(i)).views
        assert (shown["image"] != shown["filtered"]).any()


@pytest.mark.parametrize("arch", ["torchvision/resnet18", "torchvision/alexnet?stem=stride2"])
def test_towers_of_the_paper(arch: str) -> None:
    """Tiles of 64 pixels pass; AlexNet's 4,096 features are narrowed to 1,024 per tile."""
    name, _, stem = arch.partition("?stem=")
    encoder = build(name, {"stem": stem} if stem else {}, size=255)
    m = method("jigsaw")(encoder, Setup(method("jigsaw").Settings(permutations=24, hidden=16), size=255))
    images = torch.randn(2, 3, 255, 255, generator=torch.Generator().manual_seed(0))
    step = m(Batch({"image": images}, torch.arange(2)))
    step.loss.backward()
    assert m.classifier[0].in_features == 9 * (1024 if "alexnet" in arch else 512)
    side = {"torchvision/resnet18": 4, "torchvision/alexnet": 6}[
        name
    ]  # what a probe on frozen layers is fitted on
    frozen = ConvMap(encoder.eval())(images)
    assert frozen.shape == (2, (512 if "resnet" in arch else 256) * side**2)
    assert frozen.shape[1] <= CONV_NUMBERS
    if stem:
        assert encoder.backbone.features[0].stride == (2, 2)
        assert float(encoder.backbone.features[0].weight.grad.abs().sum()) > 0


def test_mistakes_are_named(make) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UserError, match="add --suppress"):
        make("jigsaw", patchwise=True)
    with pytest.raises(UserError, match=r"jigsaw\.permutations 1: must be from 2 to 362880"):
        make("jigsaw", permutations=1)
    with pytest.raises(
        UserError, match=r"tiles of 16×16 pixels \(--size 64\) are too small for torchvision/alexnet"
    ):
        method("jigsaw")(
            build("torchvision/alexnet", size=64), Setup(method("jigsaw").Settings(permutations=2), size=64)
        )
    with pytest.raises(UserError, match="AlexNet takes the stems stride4"):
        build("torchvision/alexnet", {"stem": "3x3"})
