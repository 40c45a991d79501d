"""Views rendered by the training process are those of the host: the same draws, the same pixels within a grey level."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from cuewise.cues import patches
from cuewise.cues.diffusion import perona_malik
from cuewise.data import Loader, open_data
from cuewise.errors import UserError
from cuewise.views import (
    RECIPES,
    Crop,
    Jitter,
    PatchNegative,
    TextureNegative,
    View,
    ViewParams,
    Views,
    apply,
    batched,
)
from cuewise.views.deferred import DeferredViews, packed_views

CPU = torch.device("cpu")
RECIPE = replace(RECIPES["moco-v2"], size=48)


def images(count: int = 6, same: bool = False) -> list[np.ndarray]:
    """Smooth colours with noise, of several sizes."""
    rng = np.random.default_rng(0)
    out = []
    for i in range(count):
        height, width = (80, 64) if same else (60 + 17 * i, 120 - 11 * i)
        ramp = (
            np.linspace(0, 200, height)[:, None, None] * np.array([1, 0.5, 0.2])
            + np.linspace(0, 80, width)[None, :, None]
        )
        out.append(np.clip(ramp + rng.normal(0, 30, (height, width, 3)), 0, 255).astype(np.uint8))
    return out


def padded(pictures: list[np.ndarray]) -> torch.Tensor:
    height, width = (max(p.shape[k] for p in pictures) for k in (0, 1))
    out = torch.full((len(pictures), height, width, 3), 77, dtype=torch.uint8)  # padding must not matter
    for place, p in zip(out, pictures):
        place[: p.shape[0], : p.shape[1]] = torch.from_numpy(p)
    return out


def views_of(
    pictures: list[np.ndarray], drawn: list[ViewParams], size: int = 48
) -> tuple[np.ndarray, np.ndarray]:
    """(by the host, by the device's code)."""
    views = Views([View("query", replace(RECIPE, size=size))])
    deferred = DeferredViews(views)
    sizes = torch.tensor([p.shape[:2] for p in pictures])
    found = deferred.rendered(padded(pictures), sizes, packed_views(drawn), size, views.positives[0].recipe)
    return np.stack([apply(p, d, size) for p, d in zip(pictures, drawn)]), found.numpy()


def whole(picture: np.ndarray, **changes: Any) -> ViewParams:
    """A crop of the picture's own pixels, so that nothing is resized."""
    return ViewParams(Crop(3, 5, 48, 48), **changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"flip": True},
        {"gray": True},
        {"blur": 0.4},
        {"blur": 1.9},
        {"blur": 3.5},
        {"solarize": 128},
        {"solarize": 0},
        {"rotation": 90},
        {"rotation": 180},
        {"rotation": 270},
        {"jitter": Jitter(1.3, order="b")},
        {"jitter": Jitter(contrast=0.6, order="c")},
        {"jitter": Jitter(saturation=1.7, order="s")},
        {"jitter": Jitter(hue=0.1, order="h")},
        {"jitter": Jitter(hue=-0.4, order="h")},
        {"jitter": Jitter(0.7, 1.4, 0.5, 0.05, "hscb"), "gray": True, "blur": 1.2, "solarize": 100, "rotation": 90},
        {"jitter": Jitter(1.4, 0.6, 1.5, -0.1, "cbhs"), "flip": True},
    ],
)  # fmt: skip
def test_each_operation_equals_the_hosts_bytes(changes: dict[str, Any]) -> None:
    pictures = images()
    host, device = views_of(
        pictures, [whole(p, **(changes if i % 2 else {})) for i, p in enumerate(pictures)]
    )
    assert np.array_equal(host, device)


def test_every_hue_of_a_coarse_cube_is_exact() -> None:
    line = np.arange(0, 256, 15, dtype=np.uint8)
    cube = np.stack(np.meshgrid(line, line, line, indexing="ij"), -1).reshape(1, -1, 1, 3)
    x = torch.from_numpy(cube).float()
    from cuewise.views import color_kernel

    for shift in (0, 1, 25, 128, 255):
        row = cube.reshape(-1).copy()
        color_kernel.turn_hue(row, shift)
        found = batched.turned_hue(x.clone(), torch.tensor([float(shift)]))
        assert np.array_equal(found.numpy().reshape(-1), row)


def test_crops_agree_within_a_grey_level() -> None:
    """Up and down, narrow and tall (where the vertical pass comes first), at the borders."""
    pictures = images(7)
    rng = np.random.default_rng(1)
    drawn = []
    for i, p in enumerate(pictures):
        height, width = p.shape[:2]
        h, w = (
            (height, 14)
            if i == 0
            else (12, width)
            if i == 1
            else (int(rng.integers(8, height)), int(rng.integers(8, width)))
        )
        drawn.append(ViewParams(Crop(height - h, width - w, h, w), flip=bool(i % 2)))
    assert any(d.crop.height - 24 > 2 * (d.crop.width - 24) for d in drawn), "both orders of the passes"
    host, device = views_of(pictures, drawn, 24)
    apart = np.abs(host.astype(int) - device)
    assert apart.max() <= 1
    assert (apart > 0).mean() < 0.01


def test_crops_in_pieces_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    x, crops, flips = padded(images()), torch.tensor([[2, 3, 40, 30]] * 6), torch.tensor([True, False] * 3)
    together = batched.cropped(x, crops, flips, 16)
    monkeypatch.setattr(batched, "PIECE", 2 * x[0].numel())
    assert torch.equal(batched.cropped(x, crops, flips, 16), together)


@pytest.mark.parametrize("augment", [(), ("rot90",), ("vflip", "hflip"), ("rot90", "vflip", "hflip")])
def test_patches_equal_the_hosts_bytes(augment: tuple[Any, ...]) -> None:
    rng = np.random.default_rng(2)
    views = rng.integers(0, 256, (4, 32, 32, 3), dtype=np.uint8)
    drawn = [patches.sample(rng, 32, 32, 32, (3, 20), augment=augment) for _ in range(8)]  # two of each
    x = torch.from_numpy(views).float().repeat_interleave(2, 0)
    kind = PatchNegative(count=2)
    found = kind.render_packed(x, kind.packed(drawn)).numpy()
    wanted = np.stack([patches.apply(views[i // 2], p) for i, p in enumerate(drawn)])
    assert np.array_equal(found, wanted)


@pytest.mark.parametrize("option", [1, 3])
def test_diffusion_of_padded_images(option: int) -> None:
    pictures = images()
    steps = torch.tensor([3, 0, 9, 1, 6, 12])
    sizes = torch.tensor([p.shape[:2] for p in pictures])
    found = batched.diffused(padded(pictures), sizes, steps, 20.0, 0.1, option).numpy()
    for p, n, got in zip(pictures, steps.tolist(), found):
        wanted = perona_malik(p, steps=n, kappa=20.0, gamma=0.1, option=option)
        apart = np.abs(wanted.astype(int) - got[: p.shape[0], : p.shape[1]])
        assert apart.max() <= 1
        assert (apart > 0).mean() < 0.001


def loaded(views: Views, workers: int = 0, same: bool = False) -> tuple[Any, Any]:
    """The same batch by the host, and deferred and rendered."""
    spec = "shapes:scenes?n=8&size=96"
    host = next(iter(Loader(open_data(spec), views, batch_size=8, seed=3, workers=0).batches()))
    deferred = DeferredViews(views)
    batch = next(iter(Loader(open_data(spec), deferred, batch_size=8, seed=3, workers=workers).batches()))
    return host, deferred.render(batch, CPU)


@pytest.mark.parametrize("workers", [0, 1])
def test_a_batch_has_the_hosts_views_and_facts(workers: int) -> None:
    recipe = replace(RECIPE, suppress="anisotropic", suppress_p=0.5, rotation_p=0.5, solarize_p=0.3)
    views = Views(
        [View("query", recipe), View("key", recipe, copy=("color",))],
        [PatchNegative("query", 2), PatchNegative("key", 1, augment=("rot90",))],
        compared=("color",),
        follows=("boxes",),
    )
    host, device = loaded(views, workers)
    assert list(host.views) == list(device.views)
    assert torch.equal(host.index, device.index)
    for role in host.views:
        assert host.views[role].shape == device.views[role].shape
        assert device.views[role].dtype == torch.uint8
    for role in ("query", "key"):
        apart = (host.views[role].int() - device.views[role].int()).abs()
        assert (apart > 1).float().mean() < 0.01, role  # a level before the colours can be more behind them
        assert apart.float().mean() < 0.1
    assert host.facts.keys() == device.facts.keys()
    assert torch.equal(host.facts["shared"], device.facts["shared"])
    for a, b in zip(host.facts["query.boxes"], device.facts["query.boxes"]):
        assert np.array_equal(a.corners, b.corners)


def test_what_cannot_be_rendered_there_is_refused() -> None:
    cases = [
        (Views([View("query", replace(RECIPE, style_p=0.5))]), "styles"),
        (Views([View("query", replace(RECIPE, suppress="bilateral", suppress_p=0.5))]), "--suppress bilateral"),
        (
            Views([View("query", replace(RECIPE, suppress="robust", suppress_p=0.5, suppress_options=(("mode", "vector"),)))]),
            "suppress.mode=vector",
        ),
        (Views([View("query", RECIPE)], [TextureNegative("query", 1)]), "--negatives texture"),
    ]  # fmt: skip
    for views, words in cases:
        with pytest.raises(UserError, match=r"loop\.views=device") as error:
            DeferredViews(views)
        assert words in str(error.value)


def test_rendering_reads_nothing_back_from_the_device() -> None:
    """Tensors of the meta device have no values: whatever would wait for one fails."""
    recipe = replace(RECIPE, suppress="anisotropic", suppress_p=0.5, rotation_p=0.5, solarize_p=0.3)
    views = Views([View("query", recipe)], [PatchNegative("query", 2, augment=("rot90",))])
    deferred = DeferredViews(views)
    data = open_data("shapes:scenes?n=8&size=96")
    batch = next(iter(Loader(data, deferred, batch_size=8, seed=3, workers=0).batches()))
    found = deferred.render(batch, torch.device("meta"))
    assert {role: (x.device.type, *x.shape) for role, x in found.views.items()} == {
        "query": ("meta", 8, 48, 48, 3),
        views.negatives[0].role: ("meta", 8, 2, 48, 48, 3),
    }
