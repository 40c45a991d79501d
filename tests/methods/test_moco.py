"""MoCo against an independent re-derivation, and the traps of its queue, its keys and its negatives."""

from __future__ import annotations

import copy
import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from cuewise.encoders.momentum import forward_in_groups
from cuewise.methods import Negatives


def rederived_loss(m, views, alpha):  # type: ignore[no-untyped-def]
    """Logits image by image from copies of the networks, before anything is enqueued."""
    query = copy.deepcopy(nn.Sequential(m.encoder, m.projector))
    key = copy.deepcopy(m.key_network)
    q = F.normalize(query(views["query"]), dim=1)
    with torch.no_grad():
        k = F.normalize(key(views["key"]), dim=1)
        ns = (
            F.normalize(key(views["patch:query"].flatten(0, 1)), dim=1).unflatten(0, (len(q), -1))
            if alpha
            else None
        )
    total = 0.0
    for i in range(len(q)):
        logits = [q[i] @ k[i], *(q[i] @ row for row in m.queue.keys)]
        logits += [alpha * (q[i] @ n) for n in ns[i]] if ns is not None else []
        total = total - torch.log_softmax(torch.stack(logits) / 0.2, 0)[0]
    return total / len(q)


@pytest.mark.parametrize("alpha", [0.0, 2.0])
def test_loss_equals_an_independent_derivation(make, batch, alpha):  # type: ignore[no-untyped-def]
    m = make("moco", negatives=Negatives(("patch",), (alpha,), count=2), groups=1)
    given = batch(m)
    views = given.views
    if not alpha:
        assert set(views) == {"query", "key"}
    expected = rederived_loss(m, views, alpha)
    torch.testing.assert_close(m(given).loss, expected, rtol=1e-5, atol=1e-6)


def test_the_key_is_enqueued_after_the_logits(make, batch):  # type: ignore[no-untyped-def]
    m = make("moco", groups=1)
    given = batch(m)
    before = m.queue.keys.clone()
    step = m(given)
    torch.testing.assert_close(m.queue.keys, before)  # still only earlier keys while the loss exists
    step.loss.backward()
    m.after_backward()
    torch.testing.assert_close(m.queue.keys[:8], step.positive)
    torch.testing.assert_close(m.queue.keys[8:], before[8:])
    assert not torch.isclose(m.queue.keys @ m.queue.keys.T, torch.tensor(0.0)).all()


def test_queue_length_need_not_divide_the_batch(make, batch):  # type: ignore[no-untyped-def]
    m = make("moco", groups=1, queue=20)
    keys = []
    for i in range(4):  # 32 keys into 20 places
        given = batch(m, seed=i)
        step = m(given)
        step.loss.backward()
        m.after_backward()
        keys.append(step.positive)
    expected = torch.cat(keys)[-20:]
    torch.testing.assert_close(m.queue.keys.roll(-int(m.queue.position), 0), expected)
    torch.testing.assert_close(m.queue.keys.norm(dim=1), torch.ones(20))


def test_a_batch_longer_than_the_queue_keeps_its_last_keys(make, batch):  # type: ignore[no-untyped-def]
    m = make("moco", groups=1, queue=5)
    given = batch(m)
    step = m(given)
    step.loss.backward()
    m.after_backward()
    assert sorted(m.queue.keys[:, 0].tolist()) == sorted(step.positive[-5:, 0].tolist())


def test_negatives_are_never_enqueued_and_take_no_gradient(make, batch):  # type: ignore[no-untyped-def]
    m = make("moco", negatives=Negatives(("patch",), (2.0,)), groups=1)
    given = batch(m)
    step = m(given)
    step.loss.backward()
    m.after_backward()
    similarity = m.queue.keys @ step.negatives.flatten(0, 1).T
    assert float(similarity.max()) < 1 - 1e-4  # none of the rows is one of the negatives
    assert all(p.grad is None for p in m.key_network.parameters())
    assert all(p.grad is not None for p in m.encoder.parameters())


def test_negatives_do_not_change_the_keys(make, batch):  # type: ignore[no-untyped-def]
    """A separate pass: the batch statistics of the keys do not know of the negatives."""
    with_ns = make("moco", negatives=Negatives(("patch",), (2.0,)), groups=1)
    without = make("moco", groups=1)
    given = batch(with_ns)
    torch.testing.assert_close(with_ns(given).positive, without(given).positive)
    shared = make("moco", negatives=Negatives(("patch",), (2.0,)), groups=1, statistics="shared")
    assert not torch.allclose(shared(given).positive, without(given).positive, atol=1e-4)


def test_momentum_moves_before_the_forward(make, batch):  # type: ignore[no-untyped-def]
    m = make("moco")
    with torch.no_grad():
        for p in m.encoder.parameters():
            p.add_(1.0)
    old = [p.clone() for p in m.key_network[0].parameters()]
    m.begin_step(0.0)
    for was, now, source in zip(old, m.key_network[0].parameters(), m.encoder.parameters()):
        torch.testing.assert_close(now, 0.9 * was + 0.1 * source)


@pytest.mark.parametrize("name", ["moco", "looc", "byol", "infomin"])
def test_what_takes_no_gradient_is_embedded_first(name, make, batch):  # type: ignore[no-untyped-def]
    """Behind the query's held activations each of its maps is fresh memory: 5 % of a step with ResNet-50."""
    m = make(name, negatives=Negatives(("patch",), (0.5,)))
    momentum, seen = m.target if name == "byol" else m.key_network, []
    for network in (m.encoder, momentum[0]):
        norm = next(x for x in network.modules() if isinstance(x, nn.BatchNorm2d))
        norm.register_forward_hook(lambda *_: seen.append(torch.is_grad_enabled()))
    m.train()(batch(m))
    assert set(seen) == {True, False}
    assert seen == sorted(seen)  # all without gradient before all with


def test_groups_have_statistics_of_their_own_and_keep_the_order() -> None:
    norm = nn.BatchNorm2d(3, affine=False)
    x = torch.randn(16, 3, 4, 4)
    g = torch.Generator().manual_seed(3)
    out = forward_in_groups(norm, x, 4, g)
    order = torch.randperm(16, generator=torch.Generator().manual_seed(3))
    for part in order.chunk(4):
        torch.testing.assert_close(out[part], nn.BatchNorm2d(3, affine=False)(x[part]), rtol=1e-4, atol=1e-5)
    assert not torch.allclose(out, nn.BatchNorm2d(3, affine=False)(x), atol=1e-3)


def test_grouped_norms_equal_one_forward_a_part(make) -> None:  # type: ignore[no-untyped-def]
    """One forward with grouped batch norms gives what separate forwards of the same parts give, statistics included."""
    from cuewise.encoders.momentum import GroupedBatchNorm2d, momentum_copy

    plain = make("moco").encoder.train()
    grouped = momentum_copy(plain).train()
    assert any(isinstance(m, GroupedBatchNorm2d) for m in grouped.modules())
    x = torch.randn(12, 3, 16, 16)
    one = forward_in_groups(grouped, x, 3, torch.Generator().manual_seed(1))
    parts = forward_in_groups(plain, x, 3, torch.Generator().manual_seed(1))
    torch.testing.assert_close(one, parts, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(grouped.backbone.bn1.running_mean, plain.backbone.bn1.running_mean)
    assert grouped.state_dict().keys() == plain.state_dict().keys()


@pytest.mark.parametrize("layout", [torch.channels_last, torch.contiguous_format])
def test_shuffled_groups_keep_their_layout_in_memory(layout):
    seen = []

    class Looks(nn.Identity):
        def forward(self, x):
            seen.append(x.is_contiguous(memory_format=layout))
            return x

    x = torch.randn(8, 3, 5, 5).contiguous(memory_format=layout)
    forward_in_groups(Looks(), x, 2, torch.Generator().manual_seed(1))
    assert seen == [True, True]


def test_chance_loss_is_the_log_of_the_choices(make):  # type: ignore[no-untyped-def]
    assert make("moco", queue=4096).chance_loss == pytest.approx(math.log(4097))


def test_settings_fit_the_run() -> None:
    from cuewise.methods.moco import Settings

    assert Settings().fitted(1_281_167, 10**6).queue == 65536
    assert Settings().fitted(126_689, 10**6).queue == 16384
    assert Settings().fitted(1_281_167, 10).momentum == 0.999
    assert Settings().fitted(25_000, 10).momentum == 0.999
    assert Settings(queue=512).fitted(25_000, 10).momentum == pytest.approx(1 - 4 / 512)
    assert Settings().fitted(1_000, 10).momentum == 0.99
    assert Settings(queue=77, momentum=0.5).fitted(25_000, 10) == Settings(queue=77, momentum=0.5)


def test_running_statistics_do_not_depend_on_the_batch(make, batch):  # type: ignore[no-untyped-def]
    """With statistics="ema" a key is the same whatever images stand beside it, and the statistics follow the query's."""
    m = make("moco", statistics="ema").train()
    assert not m.key_network.training
    assert m.encoder.training
    views = batch(m).views
    (whole,) = m.key_network.embed([views["key"]])
    (part,) = m.key_network.embed([views["key"][:3]])
    torch.testing.assert_close(whole[:3], part, rtol=1e-4, atol=1e-5)
    with torch.no_grad():
        m.encoder.backbone.bn1.running_mean.fill_(2.0)
        m.key_network[0].backbone.bn1.running_mean.fill_(1.0)
    m.begin_step(0.0)
    torch.testing.assert_close(m.key_network[0].backbone.bn1.running_mean, torch.full((8,), 1.1))


@pytest.mark.parametrize("name", ["moco", "looc", "infomin", "simclr", "byol"])
def test_unknown_statistics_are_refused(make, name):  # type: ignore[no-untyped-def]
    from cuewise import UserError

    known = "separate or shared" if name in ("simclr", "byol") else "separate, shared or ema"
    with pytest.raises(UserError, match=f"{name}.statistics 'magic': {known}"):
        make(name, statistics="magic")


@pytest.mark.parametrize("statistics", ["separate", "shared"])
def test_negatives_can_take_gradient(make, batch, statistics):  # type: ignore[no-untyped-def]
    """They pass the query's encoder, so loss and gradient are those of the same logits with q and n both learned."""
    dial = Negatives(("patch",), (2.0,), count=2)
    m = make("moco", negatives=dial, groups=1, norm="group", negatives_gradient=True, statistics=statistics)
    with torch.no_grad():
        for p in m.key_network.parameters():
            p.mul_(1.1)  # another network than the query's
    given = batch(m)
    views = given.views
    network = nn.Sequential(m.encoder, m.projector)
    q, n = (
        F.normalize(network(views["query"]), dim=1),
        F.normalize(network(views["patch:query"].flatten(0, 1)), dim=1),
    )
    k = F.normalize(m.key_network(views["key"]), dim=1)
    total = 0.0
    for i in range(8):
        logits = [
            q[i] @ k[i],
            *(q[i] @ row for row in m.queue.keys),
            *(2.0 * (q[i] @ n[2 * i + j]) for j in range(2)),
        ]
        total = total - torch.log_softmax(torch.stack(logits) / 0.2, 0)[0] / 8
    expected = torch.autograd.grad(total, list(network.parameters()))
    step = m(given)
    torch.testing.assert_close(step.loss, total, rtol=1e-5, atol=1e-6)
    found = torch.autograd.grad(step.loss, list(network.parameters()))
    for ours, theirs in zip(found, expected):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-5)
    assert not step.negatives.requires_grad
    fixed = make("moco", negatives=dial, groups=1, norm="group", statistics=statistics)
    fixed.load_state_dict(m.state_dict())
    assert fixed(given).loss != step.loss


def test_negatives_with_gradient_share_the_batch_of_the_query(make, batch):  # type: ignore[no-untyped-def]
    dial = Negatives(("patch",), (2.0,))
    z = {}
    for statistics in ("separate", "shared"):
        m = make("moco", negatives=dial, negatives_gradient=True, statistics=statistics)
        given = batch(m)
        z[statistics] = m(given).z
        alone = make("moco")(given)
        same = torch.allclose(z[statistics], alone.z, atol=1e-5)
        assert same == (statistics == "separate")


def test_infomin_passes_gradient_through_negatives_too(make, batch):  # type: ignore[no-untyped-def]
    dial = Negatives(("patch",), (2.0,))
    loss = {}
    for learned in (False, True):
        m = make("infomin", negatives=dial, norm="group", negatives_gradient=learned)
        with torch.no_grad():
            for p in m.key_network.parameters():
                p.mul_(1.1)  # another network than the query's
        step = m(batch(m))
        step.loss.backward()
        loss[learned] = float(step.loss.detach())
    assert loss[False] != loss[True]


def test_looc_refuses_gradient_through_negatives(make):  # type: ignore[no-untyped-def]
    from cuewise import UserError

    with pytest.raises(UserError, match="for moco"):
        make("looc", negatives_gradient=True)


@pytest.mark.parametrize("name", ["moco", "simclr"])
def test_centred_negatives_hide_what_all_negatives_share(make, batch, name):  # type: ignore[no-untyped-def]
    """s = q·(ns_i − mean_j ns_j), by a loop; a common shift of all negatives changes nothing."""
    m = make(name, negatives=Negatives(("patch",), (2.0,)), center=1.0)
    ns = torch.randn(6, 2, 16, generator=torch.Generator().manual_seed(0))
    q = torch.randn(6, 16, generator=torch.Generator().manual_seed(1))
    own = m.own(ns)
    for i in range(6):
        for j in range(2):
            expected = q[i] @ ns[i, j] - sum(q[i] @ ns[k, j] for k in range(6)) / 6
            torch.testing.assert_close(q[i] @ own[i, j], expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(m.own(ns + torch.randn(16)), own, rtol=1e-4, atol=1e-5)
    given = batch(m)
    plain = make(name, negatives=Negatives(("patch",), (2.0,)))
    assert m(given).loss != plain(given).loss


@pytest.mark.parametrize("name", ["moco", "simclr", "looc", "infomin"])
def test_a_share_is_from_0_to_1(make, name):  # type: ignore[no-untyped-def]
    from cuewise import UserError

    with pytest.raises(UserError, match="must be from 0 to 1"):
        make(name, center=1.5)
