"""Grad-CAM against networks whose gradients are known in closed form, and on real architectures."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import timm
import torch
import torchvision
from PIL import Image
from torch import Tensor, nn

from cuewise import audit as verb
from cuewise import compare
from cuewise.audits.gradcam import grad_cam, lay_out, stretch
from cuewise.audits.masks import coverage
from cuewise.audits.saliency import overlay, spread_area, spread_entropy
from cuewise.errors import UserError
from tests.conftest import photograph


class Pooled(nn.Module):
    """The image itself as feature map (three channels), mean-pooled."""

    def __init__(self) -> None:
        super().__init__()
        self.keep = nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return self.keep(x * 1.0).mean((2, 3))


def test_closed_form_of_a_linear_head_on_mean_pooling() -> None:
    """logit_c = Σ_k v_ck mean(A_k), so w_k = v_ck / (h·w) and the map is ReLU(Σ_k v_ck A_k) up to its scale."""
    rng = np.random.default_rng(0)
    a, v = rng.normal(size=(2, 3, 6, 6)).astype(np.float32), rng.normal(size=(3, 4)).astype(np.float32)
    net = Pooled()
    maps, logits = grad_cam(net, torch.from_numpy(a), lambda x: net(x) @ torch.from_numpy(v))
    for b in range(2):
        by_hand = a[b].mean((1, 2)) @ v
        assert logits[b].numpy() == pytest.approx(by_hand, abs=1e-5)
        c = int(by_hand.argmax())
        raw = np.maximum(np.tensordot(v[:, c], a[b], 1), 0)
        expected = (raw - raw.min()) / (raw.max() - raw.min())
        np.testing.assert_allclose(maps[b].numpy(), expected, atol=1e-5)


def test_target_and_nonlinear_gradient() -> None:
    """With logit = Σ_k u_k mean(A_k)², w_k = 2 u_k mean(A_k) / (h·w)."""
    a = torch.rand(1, 3, 4, 4, generator=torch.Generator().manual_seed(1))
    u = torch.tensor([[1.0, -2.0, 0.5], [0.2, 0.1, 3.0]])
    net = Pooled()
    for target in (0, 1):
        maps, _ = grad_cam(net, a, lambda x: net(x).square() @ u.T, torch.tensor([target]))
        m = a.mean((2, 3))[0]
        raw = torch.relu((2 * u[target] * m)[:, None, None] * a[0]).sum(
            0
        )  # wrong on purpose where signs differ
        raw = torch.relu(((2 * u[target] * m)[:, None, None] * a[0]).sum(0))
        expected = stretch(raw[None])[0]
        torch.testing.assert_close(maps[0], expected, atol=1e-5, rtol=1e-5)


def test_a_map_without_saliency_is_zeros() -> None:
    net = Pooled()
    maps, _ = grad_cam(net, torch.rand(2, 3, 4, 4), lambda x: -net(x)[:, :1] * torch.ones(1, 1))
    assert torch.equal(maps, torch.zeros(2, 4, 4))
    constant, _ = grad_cam(net, torch.rand(1, 3, 4, 4), lambda x: net(x) * 0)
    assert torch.equal(constant, torch.zeros(1, 4, 4))


def test_nothing_is_left_behind() -> None:
    torch.manual_seed(0)
    net = torchvision.models.resnet18(num_classes=5).train()
    for p in net.parameters():
        p.requires_grad_(False)
    before = {k: v.clone() for k, v in net.state_dict().items()}
    x = torch.rand(2, 3, 64, 64)
    maps, logits = grad_cam(net, x, net)
    assert maps.shape == (2, 64, 64)
    assert logits.shape == (2, 5)
    assert maps.amax((1, 2)) == pytest.approx([1, 1])
    assert net.training
    assert not x.requires_grad
    assert all(p.grad is None for p in net.parameters())
    assert all(torch.equal(v, before[k]) for k, v in net.state_dict().items())
    assert not any(m._forward_hooks for m in net.modules())


def test_resnet_uses_its_last_block() -> None:
    """The general rule picks what a hook on layer4 would have."""
    torch.manual_seed(0)
    net = torchvision.models.resnet18(num_classes=5).eval()
    x, kept = torch.rand(2, 3, 64, 64), []
    hook = net.layer4.register_forward_hook(lambda m, i, o: kept.append(o))
    out = net(x)
    (g,) = torch.autograd.grad(out.gather(1, out.argmax(1)[:, None]).sum(), kept[0])
    hook.remove()
    raw = torch.relu((g.mean((2, 3), keepdim=True) * kept[0]).sum(1, keepdim=True))
    want = stretch(nn.functional.interpolate(raw, (64, 64), mode="bilinear", align_corners=False)[:, 0])
    torch.testing.assert_close(grad_cam(net, x, net)[0], want.detach())


def test_tokens_lie_on_their_grid_row_by_row() -> None:
    tokens = torch.arange(2 * 17 * 3).float().view(2, 17, 3)
    grid = lay_out(tokens, nn.Identity())
    assert grid.shape == (2, 3, 4, 4)
    assert torch.equal(grid[1, :, 2, 3], tokens[1, 1 + 2 * 4 + 3])
    registers = lay_out(torch.rand(1, 5 + 4, 3), nn.Identity(), prefix=5)  # 9 would pass for 3×3
    assert registers.shape == (1, 3, 2, 2)
    with pytest.raises(UserError, match="square"):
        lay_out(torch.rand(1, 9, 3), nn.Identity(), prefix=1)


@pytest.mark.parametrize("pool", ["token", "avg"])
def test_vision_transformer(pool: str) -> None:
    """Also where only the class token is read: the tokens before the last attention carry the gradient."""
    torch.manual_seed(0)
    net = timm.create_model(
        "vit_tiny_patch16_224", img_size=64, depth=2, num_classes=4, global_pool=pool
    )  # fmt: skip
    nn.init.normal_(net.head.weight)
    maps, _ = grad_cam(net, torch.rand(2, 3, 64, 64), net, torch.tensor([0, 1]))
    assert maps.shape == (2, 64, 64)
    assert (maps.amax((1, 2)) > 0).any()
    assert torch.isfinite(maps).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["convnext_atto", "swin_s3_tiny_224", "efficientnet_lite0"])
def test_other_families(name: str) -> None:
    size = 224 if name.startswith("swin") else 64
    net = timm.create_model(name, num_classes=3)
    maps, _ = grad_cam(net, torch.rand(1, 3, size, size), net)
    assert maps.shape == (1, size, size)


def test_spread_by_hand() -> None:
    maps = np.zeros((3, 4, 4), np.float32)
    maps[0] = 1  # even: all pixels, ln 16
    maps[1, 0, 0], maps[1, 0, 1] = 1, 1  # two pixels, ln 2
    assert spread_area(maps).tolist() == [1.0, 2 / 16, 0.0]
    assert spread_entropy(maps) == pytest.approx([np.log(16), np.log(2), 0])
    masks = np.zeros((3, 4, 4), bool)
    masks[:, 0, 0] = True
    assert coverage(maps, masks)[:2] == pytest.approx([1 / 16, 1 / 2])
    assert np.isnan(coverage(maps, masks)[2])
    picture = overlay(np.full((4, 4, 3), 100, np.uint8), maps[1])
    assert picture.shape == (192, 192, 3)
    assert picture[0, 0].astype(int).sum() > picture[-1, -1].astype(int).sum()


@pytest.mark.slow
def test_masks_of_a_user(tmp_path: Path) -> None:
    """All white covers everything, all black nothing, half of an image what falls there; names match without endings."""
    rng = np.random.default_rng(0)
    for name in ("ant", "bee"):
        for part in ("train", "images", "white", "black", "left", "right", "other"):
            (tmp_path / part / name).mkdir(parents=True)
        for i in range(6):
            for part in ("images", "train"):
                Image.fromarray(photograph(rng)).resize((32, 32)).save(tmp_path / part / name / f"{i}.jpg")
            x = np.zeros((32, 32), np.uint8)
            x[:, :16] = 255
            drawn = {"white": x * 0 + 255, "black": x * 0, "left": x, "right": 255 - x, "other": x}
            for part, mask in drawn.items():
                file = f"{i}.png" if part != "other" else f"x{i}.png"
                if i or part != "left":
                    Image.fromarray(mask).save(tmp_path / part / name / file)

    def covered(part: str) -> dict[str, Any]:
        train, test, out = str(tmp_path / "train"), str(tmp_path / "images"), tmp_path / f"audit-{part}"
        verb("cuewise/resnet-tiny?width=8", out=str(out), train=[train], test=[test], size=32, only="saliency",
             masks=str(tmp_path / part))  # fmt: skip
        found = json.loads((out / "audit.json").read_text())["scores"]
        return next(s for s in found if s["name"] == "saliency_coverage")

    white, black, left, right = (covered(part) for part in ("white", "black", "left", "right"))
    assert white["value"] == pytest.approx(1, abs=1e-6)
    assert black["value"] == 0
    assert (white["n"], left["n"]) == (12, 10)  # two images have no left mask
    assert "masks of 10 of 12 images" in left["protocol"]
    assert 0 < right["value"] < 1
    with pytest.raises(UserError, match="none of its 12 files is named as an image of"):
        covered("other")
    with pytest.raises(UserError, match="nowhere"):  # before any work
        covered("nowhere")


@pytest.mark.slow
def test_saliency_on_any_test_set(tmp_path: Path) -> None:
    """The first set keeps its names; others are asked for by name, and two models are split four ways on each."""
    sets = {name: f"shapes:{name}?n=16&size=32&part=test" for name in ("silhouette", "sketch")}
    train = "shapes:aligned?n=32&size=32"

    def audited(name: str, **options: Any) -> dict[str, Any]:
        out = tmp_path / name
        test = [f"{role}={spec}" for role, spec in sets.items()]
        verb(
            "cuewise/resnet-tiny?width=8",
            out=str(out),
            train=[train],
            test=test,
            size=32,
            only="saliency",
            **options,
        )
        return json.loads((out / "audit.json").read_text())  # type: ignore[no-any-return]

    first = audited("first")
    (area, *_) = first["scores"]
    assert [s["name"] for s in first["scores"]] == ["saliency_area", "saliency_entropy"]
    both = audited("both", saliency_sets="all")
    found = {s["name"]: s for s in both["scores"]}
    name = next(n.partition("/")[2] for n in found if "/" in n)
    assert set(found) == {
        "saliency_area",
        "saliency_entropy",
        f"saliency_area/{name}",
        f"saliency_entropy/{name}",
    }
    assert found["saliency_area"]["value"] == area["value"]
    other = found[f"saliency_area/{name}"]
    assert other["low"] <= other["value"] <= other["high"]
    assert other["low"] < other["high"]
    rows = both["tables"][f"saliency/{name}/decisions"]
    assert len(rows["rows"]) == 16
    assert np.mean([r[rows["columns"].index("area")] for r in rows["rows"]]) == pytest.approx(
        other["value"], abs=1e-4
    )
    shutil.copytree(tmp_path / "both", tmp_path / "again")
    page = compare(str(tmp_path / "both"), str(tmp_path / "again"), out=str(tmp_path / "page"))
    text = Path(page["report"]).read_text()
    assert f"Saliency by who is right, {name}" in text
    with pytest.raises(UserError, match=r"no labelled test set .* has that name; there are: "):
        audited("x", saliency_sets="nowhere")
