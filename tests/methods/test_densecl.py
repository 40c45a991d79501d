"""DenseCL: both branches from one pass, queues that hold what they should, λ and its warm-up."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from cuewise.errors import UserError
from cuewise.methods import Negatives


def test_the_loss_is_put_together_from_independent_parts(make, batch):  # type: ignore[no-untyped-def]
    m = make("densecl", norm="group", weight=0.3)
    given = batch(m)
    query, key = given.views["query"], given.views["key"]
    with torch.no_grad():
        f_q = m.encoder.feature_map(query)
        f_k = m.key_network[0].feature_map(key)
        d_q, d_k = (F.normalize(p(f).flatten(2), dim=1) for p, f in ((m.dense, f_q), (m.key_network[2], f_k)))
        z_q = F.normalize(m.projector(m.encoder(query)), dim=1)
        z_k = F.normalize(m.key_network[1](m.key_network[0](key)), dim=1)
        whole, cells = [], []
        for b in range(8):
            logits = torch.cat([(z_q[b] @ z_k[b]).view(1), m.queue.keys @ z_q[b]]) / 0.2
            whole.append(-torch.log_softmax(logits, 0)[0])
            a, c = F.normalize(f_q[b].flatten(1), dim=0), F.normalize(f_k[b].flatten(1), dim=0)
            for i in range(a.shape[1]):
                j = int((a[:, i] @ c).argmax())
                logits = (
                    torch.cat([(d_q[b, :, i] @ d_k[b, :, j]).view(1), m.dense_queue.keys @ d_q[b, :, i]])
                    / 0.2
                )
                cells.append(-torch.log_softmax(logits, 0)[0])
    assert len(cells) > 8  # the map has several cells
    step = m(given)
    torch.testing.assert_close(step.extra["loss_global"], torch.stack(whole).mean(), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(step.extra["loss_dense"], torch.stack(cells).mean(), rtol=1e-4, atol=1e-5)
    expected = 0.7 * torch.stack(whole).mean() + 0.3 * torch.stack(cells).mean()
    torch.testing.assert_close(step.loss.detach(), expected, rtol=1e-4, atol=1e-5)
    step.loss.backward()
    m.after_backward()
    torch.testing.assert_close(m.queue.keys[:8], z_k, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(m.dense_queue.keys[:8], F.normalize(d_k.mean(2), dim=1), rtol=1e-4, atol=1e-5)


def test_the_backbone_passes_once_for_both_branches(make, batch):  # type: ignore[no-untyped-def]
    m = make("densecl")
    given, seen = batch(m, batch=64), []
    for network in (m.encoder, m.key_network[0]):
        network.backbone.conv1.register_forward_hook(lambda _m, x, _y: seen.append(len(x[0])))
    m(given)
    assert seen == [64, 64]


def test_no_gradient_through_the_match_or_the_keys(make, batch):  # type: ignore[no-untyped-def]
    m = make("densecl", norm="group", weight=1.0)
    m(batch(m)).loss.backward()
    assert all(p.grad is None for p in m.key_network.parameters())
    assert all(
        float(p.grad.abs().sum()) == 0 for p in m.projector.parameters()
    )  # the global branch has no weight
    assert all(float(p.grad.abs().sum()) > 0 for p in m.dense.parameters())


def test_lambda_is_zero_in_the_warm_up(make, batch):  # type: ignore[no-untyped-def]
    m = make("densecl", norm="group", warmup=0.5)
    m.begin_step(0.4)
    step = m(batch(m))
    torch.testing.assert_close(step.loss, step.extra["loss_global"])
    m.begin_step(0.5)
    step = m(batch(m))
    half = (step.extra["loss_global"] + step.extra["loss_dense"]) / 2
    torch.testing.assert_close(step.loss.detach(), half)


def test_without_the_dense_branch_it_is_moco(make, batch):  # type: ignore[no-untyped-def]
    dial = Negatives(("patch",), (2.0,))
    ours, theirs = (
        make(name, negatives=dial, **more) for name, more in (("densecl", {"weight": 0.0}), ("moco", {}))
    )
    theirs.load_state_dict(
        {k: v for k, v in ours.state_dict().items() if "dense" not in k and "key_network.2" not in k}
    )
    given = batch(ours)
    torch.testing.assert_close(ours(given).loss, theirs(given).loss)


def test_mistakes_are_named(make):  # type: ignore[no-untyped-def]
    with pytest.raises(UserError, match=r"densecl\.weight 1\.5: must be from 0 to 1"):
        make("densecl", weight=1.5)
