"""Tuning: the loss against a loop, what is frozen, and how deep each parameter lies."""

from __future__ import annotations

import numpy as np
import pytest
import timm
import torch

from cuewise.encoders.depth import depths, first_depth, freeze_below
from cuewise.encoders.libraries import build
from cuewise.encoders.low_rank import add_low_rank
from cuewise.errors import UserError
from cuewise.methods import Negatives, Setup, methods
from cuewise.methods.tune import Settings
from cuewise.objectives.tune import distance, teacher_nce
from tests.methods.conftest import small_batch, small_method


def unit(rng: np.random.Generator, *shape: int) -> np.ndarray:
    x = rng.normal(size=shape)
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


@pytest.mark.parametrize("mode", ["in", "out"])
@pytest.mark.parametrize("offset", [0, 4])
def test_contrast_against_a_loop(mode: str, offset: int) -> None:
    rng = np.random.default_rng(0)
    z, everyone, ns = unit(rng, 4, 6), unit(rng, 8, 6), unit(rng, 4, 2, 6)
    t, tau, alpha = everyone[offset : offset + 4], 0.3, (2.0, 0.5)
    losses = []
    for i in range(4):
        own = np.exp(z[i] @ t[i] / tau)
        others = sum(np.exp(z[i] @ everyone[j] / tau) for j in range(8) if j != i + offset)
        weigh = (
            [np.exp(a * (ns[i, m] @ t[i]) / tau) for m, a in enumerate(alpha)]
            if mode == "in"
            else [a * np.exp(ns[i, m] @ t[i] / tau) for m, a in enumerate(alpha)]
        )
        losses.append(-np.log(own / (own + others + sum(weigh))))
    tensors = [torch.from_numpy(x) for x in (z, t, everyone, ns)]
    found = teacher_nce(*tensors, tau=tau, alpha=alpha, mode=mode, offset=offset)
    assert float(found) == pytest.approx(np.mean(losses))
    expected = np.mean([1 - z[i] @ t[i] for i in range(4)])
    assert float(distance(*tensors[:2])) == pytest.approx(expected)


def test_the_teacher_and_batch_statistics_stay() -> None:
    m = small_method("tune", negatives=Negatives(("patch",), (2.0,)))
    m.train()
    before = {k: v.clone() for k, v in m.state_dict().items() if isinstance(v, torch.Tensor)}
    optimizer = torch.optim.SGD([p for p in m.parameters() if p.requires_grad], lr=0.5)
    for seed in range(2):
        m(small_batch(m, seed=seed)).loss.backward()
        optimizer.step()
    after = m.state_dict()
    moved = {k for k, v in before.items() if not torch.equal(v, after[k])}
    assert moved
    assert all(k.startswith("encoder.") for k in moved)
    assert not any("running" in k or "batches_tracked" in k for k in moved)
    own = small_method("tune", statistics="batch")
    own.train()
    own(small_batch(own))
    assert own.encoder.backbone.bn1.num_batches_tracked == 1


def test_an_unchanged_model_has_no_distance_and_keep_weighs_what_it_says() -> None:
    m = small_method("tune", norm="group", contrast=0.0, pull=1.0)
    batch = small_batch(m)
    batch.views["changed"] = batch.views["plain"]
    assert float(m(batch).loss.detach()) == pytest.approx(0, abs=1e-5)
    with torch.no_grad():
        for p in m.encoder.parameters():
            p.add_(0.05 * torch.randn_like(p))
    step = m(batch)
    assert float(step.loss.detach()) == pytest.approx(
        float(step.extra["moved"] + step.extra["drift"]), rel=1e-5
    )
    none = small_method("tune", norm="group", contrast=0.0, pull=1.0, keep=0.0)
    none.load_state_dict(m.state_dict())
    assert float(none(batch).loss.detach()) == pytest.approx(float(step.extra["moved"]), rel=1e-5)


def test_what_has_no_meaning_is_refused() -> None:
    kind = methods()["tune"]
    for settings, words in (
        (Settings(keep=-1), "tune.keep"),
        (Settings(temperature=0), "above 0"),
        (Settings(statistics="running"), "own or batch"),
        (Settings(pull=0, contrast=0), "nothing to learn"),
    ):
        with pytest.raises(UserError, match=words):
            kind.check(Setup(settings))
    with pytest.raises(UserError, match="only affect the contrastive term"):
        kind.check(Setup(Settings(contrast=0), Negatives(("patch",), (2.0,))))


def test_views_share_the_crop_and_only_one_is_changed() -> None:
    plain, changed = methods()["tune"].shown(Setup(Settings()))
    assert "crop" in changed.shares
    assert not changed.drops
    assert {"color", "texture", "blur"} <= set(plain.drops)


def test_depths_of_common_backbones() -> None:
    found, last = depths(timm.create_model("vit_tiny_patch16_224", num_classes=0))
    assert last == 13
    assert found["cls_token"] == found["patch_embed.proj.weight"] == 0
    assert found["blocks.0.norm1.weight"] == 1
    assert found["blocks.11.norm1.weight"] == 12
    assert found["norm.weight"] == 13
    found, last = depths(timm.create_model("tf_efficientnet_lite0", num_classes=0))
    assert last == 8
    assert found["conv_stem.weight"] == found["bn1.weight"] == 0
    assert found["blocks.6.0.conv_pw.weight"] == 7
    assert found["conv_head.weight"] == found["bn2.weight"] == 8
    tiny = build("cuewise/resnet-tiny", {"width": 8}, size=16).backbone
    found, last = depths(tiny)
    assert found["conv1.weight"] == 0
    assert found["layer4.0.conv1.weight"] == 4
    assert last == 5


def test_only_the_named_layers_train() -> None:
    tiny = build("cuewise/resnet-tiny", {"width": 8}, size=16).backbone
    trained, whole = freeze_below(tiny, "last:1", "tiny")
    grads = {n.split(".")[0] for n, p in tiny.named_parameters() if p.requires_grad}
    assert grads == {"layer4"}
    assert 0 < trained < whole
    with pytest.raises(UserError, match="no parameters there"):
        freeze_below(tiny, "head", "tiny")
    with pytest.raises(UserError, match="there are 4 blocks"):
        freeze_below(tiny, "last:9", "tiny")
    with pytest.raises(UserError, match="all, last:N or head"):
        first_depth("some", 5)


def test_low_rank_updates_start_at_nothing_train_alone_and_are_merged() -> None:
    net = build("cuewise/vit-tiny", {"width": 64, "depth": 2}, size=16)
    x, keys = torch.randn(2, 3, 16, 16), set(net.backbone.state_dict())
    before = net(x)
    add_low_rank(net.backbone, 3, "last:1", "vit")
    assert torch.equal(net(x), before)
    names = [n for n, p in net.backbone.named_parameters() if p.requires_grad]
    assert names
    assert all(n.startswith("blocks.1.") and "low_rank" in n for n in names)
    for p in net.parameters():
        if p.requires_grad:
            torch.nn.init.normal_(p, std=0.1)
    changed, state = net(x), net.whole_state()
    assert set(state) == keys
    again = build("cuewise/vit-tiny", {"width": 64, "depth": 2}, size=16, weights=state)
    assert not torch.allclose(changed, before)
    assert torch.allclose(again(x), changed, atol=1e-5)
    with pytest.raises(UserError, match="no linear layers"):
        add_low_rank(build("cuewise/resnet-tiny", {"width": 8}, size=16).backbone, 3, "all", "resnet-tiny")


@pytest.mark.slow
def test_changed_views_come_nearer_to_the_teacher() -> None:
    torch.manual_seed(0)
    m = small_method("tune")
    batch = small_batch(m)
    optimizer = torch.optim.Adam([p for p in m.parameters() if p.requires_grad], lr=2e-3)
    losses = []
    for _ in range(30):
        step = m(batch)
        step.loss.backward()
        m.after_backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(float(step.loss.detach()))
    assert np.mean(losses[-5:]) < 0.9 * np.mean(losses[:2])
