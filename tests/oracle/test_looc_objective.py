"""LooC's loss against Eq. 2 in a numpy loop, with gradients, for n = 0 … 3; and what the equation says (claim 8)."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tests.methods.looc_loop import loop_looc
from torch import Tensor

from cuewise.objectives.looc import space_losses
from cuewise.objectives.nce import extended_nce

TAU = 0.2
B, C, K = 5, 8, 11


def unit(*shape: int, seed: int) -> Tensor:
    x = torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return F.normalize(x, dim=-1)


def parts(n: int) -> tuple[list[Tensor], list[list[Tensor]], Tensor]:
    """q[i]: B×C, k[i][j]: B×C, queues: (n+1)×K×C."""
    q = [unit(B, C, seed=i).requires_grad_(True) for i in range(n + 1)]
    k = [[unit(B, C, seed=100 + 10 * i + j) for j in range(n + 1)] for i in range(n + 1)]
    return q, k, unit(n + 1, K, C, seed=7)


def columns(k: list[list[Tensor]]) -> list[Tensor]:
    """The form of the objective: the positive in column 0, in space 0 it alone."""
    n = len(k) - 1
    return [
        k[0][0].unsqueeze(1),
        *(torch.stack([k[i][i], *(k[i][j] for j in range(n + 1) if j != i)], 1) for i in range(1, n + 1)),
    ]


@pytest.mark.parametrize("n", range(4))
def test_loss_and_gradient_are_those_of_the_loop(n: int) -> None:
    q, k, queues = parts(n)
    loss = space_losses(q, columns(k), queues, tau=TAU).mean()
    loss.backward()
    expected, gradients = loop_looc(
        [x.detach().numpy() for x in q], [[z.numpy() for z in row] for row in k], list(queues.numpy()), TAU
    )
    assert float(loss.detach()) == pytest.approx(expected, rel=1e-10)
    for ours, theirs in zip(q, gradients):
        assert ours.grad is not None
        np.testing.assert_allclose(ours.grad.numpy(), theirs, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("n", range(1, 4))
def test_masked_keys_are_no_negatives(n: int) -> None:
    q, k, queues = parts(n)
    rng = np.random.default_rng(n)
    equal = [rng.random((B, n + 1)) < 0.4 for _ in range(n + 1)]
    masks: list[Tensor | None] = [None]
    for i in range(1, n + 1):
        masks.append(torch.from_numpy(equal[i][:, [j for j in range(n + 1) if j != i]]))
    loss = space_losses(q, columns(k), queues, tau=TAU, equal=masks).mean()
    loss.backward()
    expected, gradients = loop_looc(
        [x.detach().numpy() for x in q],
        [[z.numpy() for z in row] for row in k],
        list(queues.numpy()),
        TAU,
        equal,
    )
    assert float(loss.detach()) == pytest.approx(expected, rel=1e-10)
    for ours, theirs in zip(q, gradients):
        assert ours.grad is not None
        assert torch.isfinite(ours.grad).all()
        np.testing.assert_allclose(ours.grad.numpy(), theirs, rtol=1e-8, atol=1e-12)


def test_without_left_out_augmentations_it_is_mocos_loss_to_the_bit() -> None:
    q, k, queues = parts(0)
    ns = unit(B, 2, C, seed=50)
    ours = space_losses(q, columns(k), queues, tau=TAU, ns=ns, alpha=2.0).mean()
    s_ns = torch.einsum("bc,bmc->bm", q[0], ns)
    theirs = extended_nce((q[0] * k[0][0]).sum(1), q[0] @ queues[0].T, s_ns, tau=TAU, alpha=2.0)
    assert float(ours.detach()) == float(theirs.detach())


def moved(key: Tensor, towards: Tensor) -> Tensor:
    return F.normalize(key + 0.3 * towards.detach(), dim=1)


@pytest.mark.parametrize("i", [1, 2])
def test_a_space_pulls_its_own_key_and_pushes_the_others(i: int) -> None:
    """Claim 8: the loss of head i falls when k_i moves to the query, and rises when k_j (j ≠ i) does."""
    q, k, queues = parts(2)
    before = space_losses(q, columns(k), queues, tau=TAU).detach()
    for j in range(3):
        changed = [list(row) for row in k]
        changed[i][j] = moved(k[i][j], q[i])
        after = space_losses(q, columns(changed), queues, tau=TAU).detach()
        assert (after[i] < before[i]) == (j == i)
        assert torch.equal(after[[s for s in range(3) if s != i]], before[[s for s in range(3) if s != i]])


def test_other_keys_play_no_role_in_space_zero() -> None:
    """Trap: in space 0 the extra keys are neither positives nor negatives."""
    q, k, queues = parts(2)
    before = space_losses(q, columns(k), queues, tau=TAU).detach()
    for j in (1, 2):
        k[0][j] = moved(k[0][j], q[0])
    assert torch.equal(space_losses(q, columns(k), queues, tau=TAU).detach(), before)
    k[0][0] = moved(k[0][0], q[0])
    assert space_losses(q, columns(k), queues, tau=TAU)[0] < before[0]


def test_negatives_stand_in_space_zero_only() -> None:
    q, k, queues = parts(2)
    plain = space_losses(q, columns(k), queues, tau=TAU).detach()
    ns = space_losses(q, columns(k), queues, tau=TAU, ns=unit(B, 2, C, seed=50), alpha=2.0).detach()
    assert ns[0] > plain[0]
    assert torch.equal(ns[1:], plain[1:])


def test_a_space_without_keys_is_an_error() -> None:
    q = [torch.eye(2), torch.eye(2)]
    with pytest.raises(ValueError, match="shorter"):
        space_losses(q, [torch.eye(2)[:, None]], torch.zeros(2, 3, 2), tau=0.2)
