"""LooC, LooC++, AddOne and MoCo++: what equals MoCo, what each queue holds, who gets gradient."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from cuewise import UserError
from cuewise.encoders import load_encoder
from cuewise.encoders.spaces import trunk
from cuewise.methods import Negatives, Setup, method

PATCH = Negatives(("patch",), (2.0,), 2)


def losses(m, batch, size: int = 8, steps: int = 4) -> list[float]:  # type: ignore[no-untyped-def]
    optimizer = torch.optim.SGD([p for p in m.parameters() if p.requires_grad], lr=0.05, momentum=0.9)
    out = []
    for i in range(steps):
        given = batch(m, batch=size, seed=i)
        m.begin_step(i / steps)
        step = m(given)
        step.loss.backward()
        m.after_backward()
        optimizer.step()
        optimizer.zero_grad()
        out.append(float(step.loss.detach()))
    return out


@pytest.mark.parametrize("size", [8, 64])  # 64: keys pass in two groups
@pytest.mark.parametrize("statistics", ["separate", "shared", "ema"])
@pytest.mark.parametrize("negatives", [None, PATCH], ids=["plain", "patch"])
@pytest.mark.slow
def test_nothing_left_out_is_moco_to_the_bit(make, batch, size, statistics, negatives):  # type: ignore[no-untyped-def]
    ours = make("looc", leave_out=(), negatives=negatives, statistics=statistics).train()
    theirs = make("moco", negatives=negatives, statistics=statistics).train()
    assert losses(ours, batch, size, 3) == losses(theirs, batch, size, 3)
    assert ours.chance_loss == theirs.chance_loss


def keys_one_by_one(m, views):  # type: ignore[no-untyped-def]
    """z_i of k_j from the momentum network in evaluation mode, as [i][j]."""
    encoder, heads = m.key_network
    roles = ["key", "key:color", "key:rotation"]
    with torch.no_grad():
        embedded = [heads(encoder, heads.trunk(encoder)(views[role])) for role in roles]
    return [[embedded[j][i] for j in range(3)] for i in range(3)]


@pytest.mark.parametrize("plus_plus", [False, True])
def test_queue_i_holds_z_i_of_k_i_only(make, batch, plus_plus):  # type: ignore[no-untyped-def]
    """Traps: one shared queue; k₀ in every queue."""
    m = make("looc", norm="group", plus_plus=plus_plus)
    given = batch(m)
    views = given.views
    before = m.queue.keys.clone()
    step = m(given)
    assert torch.equal(m.queue.keys, before)  # still only earlier keys while the loss exists
    step.loss.backward()
    m.after_backward()
    z = keys_one_by_one(m, views)
    for i in range(3):
        torch.testing.assert_close(m.queue.keys[i, :8], z[i][i], rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(m.queue.keys[i, 8:], before[i, 8:])
        for other in range(3):
            if other != i:
                assert not torch.allclose(m.queue.keys[i, :8], z[i][other], atol=1e-3)


def test_keys_stand_positive_first(make, batch):  # type: ignore[no-untyped-def]
    m = make("looc", norm="group")
    given = batch(m)
    keys, _ = m.embed_keys(given)
    z = keys_one_by_one(m, given.views)
    assert [k.shape[1] for k in keys] == [1, 3, 3]
    for i, order in ((0, [0]), (1, [1, 0, 2]), (2, [2, 0, 1])):
        for column, j in enumerate(order):
            torch.testing.assert_close(keys[i][:, column], z[i][j], rtol=1e-4, atol=1e-5)


def test_the_queues_wrap_around_together(make, batch):  # type: ignore[no-untyped-def]
    m = make("looc", norm="group", queue=20)
    held: list[torch.Tensor] = []
    for i in range(4):  # 32 keys into 20 places
        given = batch(m, seed=i)
        m(given).loss.backward()
        assert m.queue.held is not None
        held.append(m.queue.held)
        m.after_backward()
    expected = torch.cat(held)[-20:].transpose(0, 1)
    torch.testing.assert_close(m.queue.keys.roll(-int(m.queue.position), 1), expected)


def test_all_keys_pass_in_one_forward(make, batch):  # type: ignore[no-untyped-def]
    m = make("looc")
    given = batch(m, batch=64)
    seen: list[int] = []
    m.key_network[0].backbone.conv1.register_forward_hook(lambda _m, x, _y: seen.append(len(x[0])))
    m(given)
    assert seen == [192]


def test_no_key_is_recognised_by_its_batch(make, batch):  # type: ignore[no-untyped-def]
    """Keys of all kinds are mixed in the groups: the statistics of one kind reach the others."""
    m = make("looc", groups=2)
    given = batch(m, batch=64)
    keys, _ = m.embed_keys(given)
    given.views["key:rotation"] = given.views["key:rotation"] * 5 + 3
    other = make("looc", groups=2)
    changed, _ = other.embed_keys(given)
    assert not torch.allclose(keys[0], changed[0], atol=1e-3)


@pytest.mark.parametrize("name", ["looc", "addone", "moco++"])
def test_gradient_flows_through_the_query_alone(make, batch, name):  # type: ignore[no-untyped-def]
    m = make(name, negatives=PATCH)
    given = batch(m)
    step = m(given)
    step.loss.backward()
    assert all(p.grad is None for p in m.key_network.parameters())
    assert all(p.grad is not None and p.grad.any() for p in m.heads.parameters())
    assert not step.positive.requires_grad
    similarity = m.queue.keys[0] @ step.negatives.flatten(0, 1).T
    m.after_backward()
    assert float(similarity.max()) < 1 - 1e-4  # negatives are never enqueued


def test_negatives_leave_the_other_spaces_alone(make, batch):  # type: ignore[no-untyped-def]
    plain, with_patches = make("looc"), make("looc", negatives=PATCH)
    given = batch(with_patches)
    a, b = plain(given).extra, with_patches(given).extra
    assert b["loss_z0"] > a["loss_z0"]
    assert torch.equal(a["loss_color"], b["loss_color"])
    assert torch.equal(a["loss_rotation"], b["loss_rotation"])


def test_mask_equal_drops_the_keys_that_share_by_chance(make, batch):  # type: ignore[no-untyped-def]
    m, masked = make("looc"), make("looc", mask_equal=True)
    given = batch(m)
    plain = m(given).extra
    given.facts["shared"] = torch.zeros(8, 2, 3, dtype=torch.bool)
    assert torch.equal(masked(given).extra["loss_rotation"], plain["loss_rotation"])
    given.facts["shared"][:, 1] = torch.tensor([True, False, True])
    found = make("looc", mask_equal=True)(given).extra
    assert found["loss_rotation"] < plain["loss_rotation"]
    assert torch.equal(found["loss_color"], plain["loss_color"])


def test_chance_loss_counts_the_choices_of_every_space(make):  # type: ignore[no-untyped-def]
    expected = (math.log(51) + 2 * math.log(53)) / 3
    assert make("looc").chance_loss == pytest.approx(expected)
    assert make("moco++").chance_loss == pytest.approx(math.log(51))


def test_plus_plus_heads_have_a_last_stage_of_their_own(make, batch):  # type: ignore[no-untyped-def]
    m = make("looc", plus_plus=True)
    assert len(m.heads.stages) == 2
    stages = [m.encoder.backbone.layer4, *m.heads.stages]
    assert len({id(p) for s in stages for p in s.parameters()}) == 3 * len(list(stages[0].parameters()))
    losses(m, batch, steps=2)
    weights = [s[0].conv1.weight for s in stages]
    assert not torch.allclose(weights[0], weights[1])
    assert not torch.allclose(weights[1], weights[2])
    views = batch(m).views
    shared = m.heads.trunk(m.encoder)(views["query"])
    assert shared.shape == (8, 32, 4, 4)  # conv4: half of the features, twice the side


def test_the_encoder_of_plus_plus_is_trunk_and_first_head(make, batch):  # type: ignore[no-untyped-def]
    m = make("looc", plus_plus=True).eval()
    views = batch(m).views
    with torch.no_grad():
        z0 = m.heads(m.encoder, m.heads.trunk(m.encoder)(views["query"]))[0]
        torch.testing.assert_close(
            z0, F.normalize(m.similarity_networks()[0](m.encoder(views["query"])), dim=1)
        )


@pytest.mark.parametrize("arch", ["torchvision/resnet18", "timm/resnet10t", "cuewise/resnet-tiny?width=8"])
def test_backbones_split_before_their_last_stage(arch: str) -> None:
    encoder = load_encoder(arch, size=32)
    x = torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        whole = encoder.backbone.layer4(trunk(encoder)(x)).mean(dim=(2, 3))
        torch.testing.assert_close(whole, encoder(x), rtol=1e-4, atol=1e-5)


def test_plus_plus_says_what_it_cannot_split() -> None:
    kind = method("looc")
    for arch in ("timm/vit_tiny_patch16_224?img_size=32", "torchvision/mobilenet_v3_small"):
        encoder = load_encoder(arch, size=32)
        with pytest.raises(UserError, match="ResNet"):
            kind(encoder, Setup(kind.Settings(plus_plus=True, queue=16), leave_out=("color",)))


def test_moco_plus_plus_is_the_mean_of_heads_on_one_pair(make, batch):  # type: ignore[no-untyped-def]
    m = make("moco++", norm="group", heads=3)
    assert m.heads.names == ("z0", "z1", "z2")
    assert len(m.heads.stages) == 2
    given = batch(m)
    views = given.views
    assert set(views) == {"query", "key"}
    step = m(given)
    encoder, heads = m.key_network
    with torch.no_grad():
        q = m.heads(m.encoder, m.heads.trunk(m.encoder)(views["query"]))
        k = heads(encoder, heads.trunk(encoder)(views["key"]))
        expected = []
        for i in range(3):
            logits = torch.cat([(q[i] * k[i]).sum(1, keepdim=True), q[i] @ m.queue.keys[i].T], 1) / 0.2
            expected.append(F.cross_entropy(logits, torch.zeros(8, dtype=torch.long)))
    torch.testing.assert_close(step.loss.detach(), torch.stack(expected).mean(), rtol=1e-4, atol=1e-5)
    with pytest.raises(UserError, match="1 or more"):
        make("moco++", heads=0)


def test_addone_shows_other_views_than_looc() -> None:
    setup = Setup(None, leave_out=("color", "rotation"))
    shown = {v.role: v for v in method("addone").shown(setup)}
    assert list(shown) == ["query", "key", "key:color", "key:rotation"]
    assert shown["query"].drops == shown["key"].drops == ("color", "rotation")
    assert (shown["key:color"].adds, shown["key:color"].drops) == (("color",), ("rotation",))
    assert not any(v.shares for v in shown.values())
    looc = {v.role: v for v in method("looc").shown(setup)}
    assert [looc[r].shares for r in looc] == [(), (), ("color",), ("rotation",)]


def test_hidden_width_follows_the_features(make):  # type: ignore[no-untyped-def]
    first = make("looc").heads.mlps[1][0]
    assert isinstance(first, nn.Linear)
    assert (first.in_features, first.out_features) == (64, 64)
    assert make("looc", hidden=24).heads.mlps[1][0].out_features == 24
