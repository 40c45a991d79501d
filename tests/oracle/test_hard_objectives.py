"""Losses with harder negatives against loops written from the papers, and their gradients against differences."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from cuewise.objectives.debiased import debiased_nce
from cuewise.objectives.ifm import ifm_nce
from cuewise.objectives.mochi import Mixes, draw_mixes, mochi
from cuewise.objectives.nce import extended_nce
from cuewise.objectives.nt_xent import in_batch, nt_xent

TAU = 0.2


def unit(*shape: int, seed: int = 0) -> torch.Tensor:
    x = torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return F.normalize(x, dim=-1)


Q, K, QUEUE, NS = unit(5, 8), unit(5, 8, seed=1), unit(11, 8, seed=2), unit(5, 2, 8, seed=3)


def similarities(q: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return (q * K).sum(1), q @ QUEUE.T, torch.einsum("bc,bmc->bm", q, NS)


def ns_terms(q: np.ndarray, i: int, alpha: float, mode: str, shift: float = 0.0) -> float:
    s = [float(q @ n) + shift for n in NS[i].numpy()]
    return sum(math.exp(alpha * x / TAU) if mode == "in" else alpha * math.exp(x / TAU) for x in s)


def loop_ifm(q: np.ndarray, epsilon: float, alpha: float, mode: str) -> float:
    total = 0.0
    for i in range(len(q)):
        for e in (0.0, epsilon):
            positive = math.exp((float(q[i] @ K[i].numpy()) - e) / TAU)
            others = sum(math.exp((float(q[i] @ n) + e) / TAU) for n in QUEUE.numpy())
            total -= math.log(positive / (positive + others + ns_terms(q[i], i, alpha, mode, e))) / 2
    return total / len(q)


def loop_debiased(q: np.ndarray, prior: float, beta: float, alpha: float, mode: str) -> float:
    total = 0.0
    for i in range(len(q)):
        pos = math.exp(float(q[i] @ K[i].numpy()) / TAU)
        neg = [math.exp(float(q[i] @ n) / TAU) for n in QUEUE.numpy()]
        w = [x**beta for x in neg]
        mean = sum(w) / len(w)
        reweighed = sum(a * b for a, b in zip(w, neg)) / mean
        n = len(neg)
        g = max((-prior * n * pos + reweighed) / (1 - prior), n * math.exp(-1 / TAU))
        total -= math.log(pos / (pos + g + ns_terms(q[i], i, alpha, mode)))
    return total / len(q)


def differences(f, q: np.ndarray, h: float = 1e-6) -> np.ndarray:  # type: ignore[no-untyped-def]
    grad = np.zeros_like(q)
    for at in np.ndindex(*q.shape):
        up, down = q.copy(), q.copy()
        up[at] += h
        down[at] -= h
        grad[at] = (f(up) - f(down)) / (2 * h)
    return grad


@pytest.mark.parametrize("mode", ["in", "out"])
@pytest.mark.parametrize("alpha", [0.5, 2.0])
@pytest.mark.parametrize("epsilon", [0.05, 0.2])
def test_ifm_and_its_gradient(epsilon: float, alpha: float, mode: str) -> None:
    q = Q.clone().requires_grad_(True)
    loss = ifm_nce(*similarities(q), tau=TAU, epsilon=epsilon, alpha=alpha, mode=mode)
    loss.backward()  # type: ignore[no-untyped-call]
    assert float(loss.detach()) == pytest.approx(loop_ifm(Q.numpy(), epsilon, alpha, mode), rel=1e-9)
    expected = differences(lambda x: loop_ifm(x, epsilon, alpha, mode), Q.numpy())
    np.testing.assert_allclose(q.grad, expected, rtol=1e-5, atol=1e-8)


@pytest.mark.slow
def test_ifm_applies_epsilon_before_the_temperature_and_vanishes_with_it() -> None:
    s_p, s_n, s_ns = similarities(Q)
    plain = extended_nce(s_p, s_n, s_ns, tau=TAU)
    torch.testing.assert_close(ifm_nce(s_p, s_n, s_ns, tau=TAU, epsilon=0.0), plain)
    moved = extended_nce(s_p, s_n + 2 * 0.1, s_ns + 2 * 0.1, tau=TAU)  # only differences of logits count
    torch.testing.assert_close(ifm_nce(s_p, s_n, s_ns, tau=TAU, epsilon=0.1), (plain + moved) / 2)


@pytest.mark.parametrize("mode", ["in", "out"])
@pytest.mark.parametrize(("prior", "beta"), [(0.1, 0.0), (0.1, 1.0), (0.02, 2.5), (0.9, 0.5)])
def test_debiased_and_reweighted_and_their_gradient(prior: float, beta: float, mode: str) -> None:
    q = Q.clone().requires_grad_(True)
    loss = debiased_nce(*similarities(q), tau=TAU, prior=prior, beta=beta, alpha=2.0, mode=mode)
    loss.backward()  # type: ignore[no-untyped-call]
    assert float(loss.detach()) == pytest.approx(loop_debiased(Q.numpy(), prior, beta, 2.0, mode), rel=1e-9)
    expected = differences(lambda x: loop_debiased(x, prior, beta, 2.0, mode), Q.numpy())
    np.testing.assert_allclose(q.grad, expected, rtol=1e-5, atol=1e-8)


def test_without_prior_and_weights_it_is_the_plain_loss() -> None:
    s_p, s_n, s_ns = similarities(Q)
    for extra in (None, s_ns):
        expected = extended_nce(s_p, s_n, extra, tau=TAU, alpha=2.0)
        torch.testing.assert_close(debiased_nce(s_p, s_n, extra, tau=TAU, prior=0.0, alpha=2.0), expected)
    z, other = unit(4, 8, seed=4), unit(4, 8, seed=5)
    s_p, s_n, _ = in_batch((z, other))
    torch.testing.assert_close(debiased_nce(s_p, s_n, tau=0.5, prior=0.0), nt_xent((z, other), tau=0.5))
    plain, named = (
        debiased_nce(s_p, s_n, s_n, tau=0.5),
        debiased_nce(s_p, s_n, s_n, tau=0.5, prior=0.1, beta=0.0, alpha=1.0),
    )
    assert plain == named  # the published defaults


@pytest.mark.parametrize("tau", [0.02, 0.07, 0.5])
def test_single_precision_is_enough_at_any_temperature(tau: float) -> None:
    s_p, s_n, s_ns = similarities(Q)
    exact = debiased_nce(s_p, s_n, s_ns, tau=tau, beta=1.0, alpha=3.0)
    single = debiased_nce(s_p.float(), s_n.float(), s_ns.float(), tau=tau, beta=1.0, alpha=3.0)
    assert math.isfinite(float(single))
    assert float(single) == pytest.approx(float(exact), rel=1e-3)


def loop_mochi(q: np.ndarray, frozen: np.ndarray, mixes: Mixes, n: int) -> np.ndarray:
    """Every synthetic negative written out; `frozen` are the queries that go into them."""
    rows = []
    for i in range(len(q)):
        order = np.argsort(-(QUEUE.numpy() @ frozen[i]), kind="stable")[:n]
        hardest = QUEUE.numpy()[order]
        made = []
        for a, b, share in zip(mixes.first[i], mixes.second[i], mixes.share[i]):
            made.append(float(share) * hardest[a] + (1 - float(share)) * hardest[b])
        for b, share in zip(mixes.other[i], mixes.of_query[i]):
            made.append(float(share) * frozen[i] + (1 - float(share)) * hardest[b])
        rows.append([float(q[i] @ (h / np.linalg.norm(h))) for h in made])
    return np.array(rows)


def test_mochi_and_its_gradient() -> None:
    mixes = draw_mixes(5, 4, 6, 3, torch.Generator().manual_seed(0))
    q = Q.clone().requires_grad_(True)
    made = mochi(q, QUEUE, q @ QUEUE.T, mixes, 4)
    np.testing.assert_allclose(made.detach(), loop_mochi(Q.numpy(), Q.numpy(), mixes, 4), rtol=1e-6)
    weights = torch.rand(made.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    (made * weights).sum().backward()  # type: ignore[no-untyped-call]
    expected = differences(
        lambda x: float((loop_mochi(x, Q.numpy(), mixes, 4) * weights.numpy()).sum()), Q.numpy()
    )
    np.testing.assert_allclose(q.grad, expected, rtol=1e-4, atol=1e-6)


def test_mochi_takes_the_rows_behind_the_columns() -> None:
    """Each query's similarities in an order of their own."""
    mixes = draw_mixes(5, 4, 6, 3, torch.Generator().manual_seed(0))
    rng = torch.Generator().manual_seed(2)
    columns = torch.stack([torch.randperm(len(QUEUE), generator=rng) for _ in range(5)])
    made = mochi(Q, QUEUE, (Q @ QUEUE.T).gather(1, columns), mixes, 4, columns)
    assert torch.allclose(made, mochi(Q, QUEUE, Q @ QUEUE.T, mixes, 4))


def test_mochi_draws_below_one_half_of_the_query() -> None:
    mixes = draw_mixes(50, 4, 20, 20, torch.Generator().manual_seed(0))
    assert float(mixes.of_query.max()) < 0.5
    assert float(mixes.share.max()) > 0.9
    assert {int(i) for i in mixes.first.unique()} == {0, 1, 2, 3}


def test_in_batch_is_nt_xent_taken_apart_on_any_process() -> None:
    everyone = unit(6, 8, seed=7), unit(6, 8, seed=8)
    for offset in (0, 2, 4):
        z = everyone[0][offset : offset + 2], everyone[1][offset : offset + 2]
        s_p, s_n, columns = in_batch(z, everyone, offset=offset)
        assert s_n.shape == (4, 10)
        expected = nt_xent(z, everyone, tau=0.5, offset=offset)
        torch.testing.assert_close(extended_nce(s_p, s_n, tau=0.5), expected)
        bank = torch.cat(everyone)
        torch.testing.assert_close(torch.einsum("ac,anc->an", torch.cat(z), bank[columns]), s_n)
