"""Each loss against a numpy loop written from the paper, and its gradient against the closed form."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from cuewise.objectives.byol import byol
from cuewise.objectives.dials import alignment, effective_rank, feature_std, uniformity
from cuewise.objectives.nce import extended_nce, nce_logits, own_part
from cuewise.objectives.neighbours import knn_votes, nearest
from cuewise.objectives.nt_xent import nt_xent

TAU = 0.2


def unit(*shape: int, seed: int = 0) -> torch.Tensor:
    x = torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return F.normalize(x, dim=-1)


@pytest.fixture
def parts() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """q, k: 5×8; queue: 11×8; ns: 5×2×8."""
    return unit(5, 8), unit(5, 8, seed=1), unit(11, 8, seed=2), unit(5, 2, 8, seed=3)


def similarities(q, k, queue, ns):  # type: ignore[no-untyped-def]
    return (q * k).sum(1), q @ queue.T, torch.einsum("bc,bmc->bm", q, ns)


def loop_nce(q, k, queue, ns, alpha, mode):  # type: ignore[no-untyped-def]
    """The papers' formulas in a loop over images, negatives and dimensions."""
    total = 0.0
    for i in range(len(q)):
        positive = math.exp(float(q[i] @ k[i]) / TAU)
        denominator = positive + sum(math.exp(float(q[i] @ n) / TAU) for n in queue)
        for m in range(ns.shape[1]):
            s = float(q[i] @ ns[i, m])
            denominator += math.exp(alpha * s / TAU) if mode == "in" else alpha * math.exp(s / TAU)
        total -= math.log(positive / denominator)
    return total / len(q)


@pytest.mark.parametrize("mode", ["in", "out"])
@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.0, 3.0])
def test_extended_nce_equals_the_loop(parts, alpha, mode):  # type: ignore[no-untyped-def]
    s_p, s_n, s_ns = similarities(*parts)
    ours = extended_nce(s_p, s_n, s_ns, tau=TAU, alpha=alpha, mode=mode)
    assert float(ours) == pytest.approx(loop_nce(*parts, alpha, mode), rel=1e-6)


@pytest.mark.parametrize("mode", ["in", "out"])
@pytest.mark.parametrize("alpha", [0.5, 2.0])
def test_gradient_is_the_closed_form(parts, alpha, mode):  # type: ignore[no-untyped-def]
    q, k, queue, ns = parts
    q = q.clone().requires_grad_(True)
    extended_nce(*similarities(q, k, queue, ns), tau=TAU, alpha=alpha, mode=mode).backward()
    grad, q = q.grad, q.detach()
    expected = torch.zeros_like(q)
    for i in range(len(q)):
        e_p = math.exp(float(q[i] @ k[i]) / TAU)
        e_n = [math.exp(float(q[i] @ n) / TAU) for n in queue]
        s = [float(q[i] @ n) for n in ns[i]]
        z_ns = [math.exp(alpha * x / TAU) if mode == "in" else alpha * math.exp(x / TAU) for x in s]
        pull = [alpha * math.exp(alpha * x / TAU) if mode == "in" else alpha * math.exp(x / TAU) for x in s]
        Z = e_p + sum(e_n) + sum(z_ns)
        mean = e_p * k[i] + sum(w * n for w, n in zip(pull, ns[i])) + sum(w * n for w, n in zip(e_n, queue))
        expected[i] = (mean / Z - k[i]) / TAU / len(q)
    torch.testing.assert_close(grad, expected, rtol=1e-9, atol=1e-12)


def test_alpha_one_is_an_ordinary_negative(parts):  # type: ignore[no-untyped-def]
    s_p, s_n, s_ns = similarities(*parts)
    plain = extended_nce(s_p, torch.cat([s_n, s_ns], 1), tau=TAU)
    for mode in ("in", "out"):
        torch.testing.assert_close(extended_nce(s_p, s_n, s_ns, tau=TAU, alpha=1.0, mode=mode), plain)


def test_integer_alpha_outside_repeats_the_negative(parts):  # type: ignore[no-untyped-def]
    s_p, s_n, s_ns = similarities(*parts)
    for alpha in (2, 3, 5):
        repeated = extended_nce(s_p, torch.cat([s_n, s_ns.repeat(1, alpha)], 1), tau=TAU)
        torch.testing.assert_close(extended_nce(s_p, s_n, s_ns, tau=TAU, alpha=alpha, mode="out"), repeated)


@pytest.mark.parametrize("alpha", [0.5, 2.0, 4.0])
@pytest.mark.parametrize("s_ns", [-0.4, 0.0, 0.4])
def test_which_mode_pushes_harder(alpha, s_ns):  # type: ignore[no-untyped-def]
    """Numerators of the negative's pull: in > out iff (α−1)·s > 0; equal at s = 0."""
    weight_in = alpha * math.exp(alpha * s_ns / TAU)
    weight_out = alpha * math.exp(s_ns / TAU)
    tensors = {}
    for mode in ("in", "out"):
        s = torch.tensor([[s_ns]], dtype=torch.float64, requires_grad=True)
        logits = nce_logits(
            torch.zeros(1).double(), torch.zeros(1, 4).double(), s, tau=TAU, alpha=alpha, mode=mode
        )
        # numerator of the pull = e^{logit} · d logit / d s · τ
        (slope,) = torch.autograd.grad(logits[0, -1], s, retain_graph=True)
        tensors[mode] = float((logits[0, -1].exp() * slope * TAU).detach())
    assert tensors["in"] == pytest.approx(weight_in)
    assert tensors["out"] == pytest.approx(weight_out)
    assert np.sign(round(tensors["in"] - tensors["out"], 9)) == np.sign((alpha - 1) * s_ns)


def test_share_of_the_negative_grows_as_the_queue_shrinks(parts):  # type: ignore[no-untyped-def]
    s_p, s_n, s_ns = similarities(*parts)
    shares = []
    for n in (11, 6, 2):
        s = s_ns.clone().requires_grad_(True)
        extended_nce(s_p, s_n[:, :n], s, tau=TAU, alpha=2.0).backward()
        shares.append(float(s.grad.abs().sum()))
    assert shares[0] < shares[1] < shares[2]


def test_alpha_zero_is_refused_by_the_equation(parts):  # type: ignore[no-untyped-def]
    """e⁰ = 1 would be added to the denominator: "no negative" means that the term is dropped."""
    s_p, s_n, s_ns = similarities(*parts)
    with pytest.raises(ValueError, match="above 0"):
        extended_nce(s_p, s_n, s_ns, tau=TAU, alpha=0.0)


def test_large_logits_do_not_overflow_in_half_precision():  # type: ignore[no-untyped-def]
    s = torch.ones(2, 1, dtype=torch.float16)
    loss = extended_nce(s[:, 0], s.repeat(1, 4), s, tau=0.07, alpha=5.0)
    assert torch.isfinite(loss)


def test_each_kind_has_its_own_weight(parts):  # type: ignore[no-untyped-def]
    s_p, s_n, s_ns = similarities(*parts)
    both = nce_logits(s_p, s_n, s_ns, tau=TAU, alpha=[2.0, 0.5])
    torch.testing.assert_close(both[:, -2], 2.0 * s_ns[:, 0] / TAU)
    torch.testing.assert_close(both[:, -1], 0.5 * s_ns[:, 1] / TAU)


@pytest.mark.parametrize("mode", ["in", "out"])
@pytest.mark.parametrize("with_ns", [False, True])
def test_nt_xent_equals_the_loop(mode, with_ns):  # type: ignore[no-untyped-def]
    B, alpha, tau = 4, 2.0, 0.5
    z = (unit(B, 6), unit(B, 6, seed=1))
    ns = (unit(B, 3, 6, seed=2), unit(B, 3, 6, seed=3))
    views, negatives = torch.cat(z), torch.cat(ns)
    total = 0.0
    for i in range(2 * B):
        j = (i + B) % (2 * B)
        denominator = sum(math.exp(float(views[i] @ views[m]) / tau) for m in range(2 * B) if m != i)
        for n in negatives[i] if with_ns else ():
            s = float(views[i] @ n)
            denominator += math.exp(alpha * s / tau) if mode == "in" else alpha * math.exp(s / tau)
        total -= math.log(math.exp(float(views[i] @ views[j]) / tau) / denominator)
    ours = nt_xent(z, None, ns if with_ns else None, tau=tau, alpha=alpha, mode=mode)
    assert float(ours) == pytest.approx(total / (2 * B), rel=1e-6)


def test_byol_with_negatives_equals_squared_distances():  # type: ignore[no-untyped-def]
    p, z, n = unit(4, 6), unit(4, 6, seed=1), unit(4, 2, 6, seed=2)
    alphas = (0.05, 0.3)
    total = 0.0
    for i in range(4):
        total += float((p[i] - z[i]).square().sum())
        total -= sum(a * float((p[i] - n[i, m]).square().sum()) for m, a in enumerate(alphas))
    assert float(byol(p, z, n, alpha=alphas)) == pytest.approx(total / 4, rel=1e-6)
    # the printed expansion: 2 − 2α − 2 p·z + 2α p·n
    a = 0.05
    expansion = 2 - 2 * a - 2 * (p * z).sum(1) + 2 * a * (p * n[:, 0]).sum(1)
    assert float(byol(p, z, n[:, :1], alpha=a)) == pytest.approx(float(expansion.mean()), rel=1e-6)
    assert float(byol(p, z)) == pytest.approx(float((2 - 2 * (p * z).sum(1)).mean()), rel=1e-6)
    assert float(byol(p, z, n)) == float(byol(p, z))  # without a weight there is no repulsion


def test_byol_gradient_is_closed_form():  # type: ignore[no-untyped-def]
    p, z, n = unit(4, 6).requires_grad_(True), unit(4, 6, seed=1), unit(4, 1, 6, seed=2)
    byol(p, z, n, alpha=0.05).backward()
    torch.testing.assert_close(p.grad, (-2 * z + 2 * 0.05 * n[:, 0]) / 4)


def test_knn_votes_equal_the_loop():  # type: ignore[no-untyped-def]
    bank, queries = unit(30, 5).float(), unit(7, 5, seed=1).float()
    labels = torch.arange(30) % 3
    votes = knn_votes(queries, bank, labels, 3, k=5, tau=0.07, chunk=4)
    for i, q in enumerate(queries):
        s = (bank @ q).numpy()
        expected = np.zeros(3)
        for j in np.argsort(-s)[:5]:
            expected[labels[j]] += math.exp(s[j] / 0.07)
        np.testing.assert_allclose(votes[i] / votes[i].sum(), expected / expected.sum(), rtol=1e-4, atol=1e-6)


def test_leave_one_out_never_asks_the_image_itself():  # type: ignore[no-untyped-def]
    bank = unit(12, 5).float()
    votes = knn_votes(bank, bank, torch.arange(12), 12, k=1, leave_one_out=True, chunk=5)
    assert (votes.argmax(1) != torch.arange(12)).all()


def test_dials_at_their_ends():  # type: ignore[no-untyped-def]
    same = torch.ones(64, 8).div(8**0.5)
    spread = F.normalize(torch.randn(4096, 8, generator=torch.Generator().manual_seed(0)), dim=1)
    assert feature_std(same) < 1e-6
    assert feature_std(spread) == pytest.approx(1.0, abs=0.02)
    few = spread[:5, :3]
    assert float(feature_std(few)) == pytest.approx(few.numpy().std(0, ddof=1).mean() * 3**0.5, rel=1e-5)
    assert effective_rank(same) == pytest.approx(1.0, abs=1e-3)
    assert effective_rank(spread) == pytest.approx(8.0, abs=0.05)
    assert alignment(spread, spread) == 0
    assert uniformity(same[:32]) == pytest.approx(0.0, abs=1e-6)
    assert uniformity(spread[:256]) < -2


def test_what_all_negatives_share_is_taken_off() -> None:
    ns, everyone = unit(3, 2, 8), unit(5, 2, 8, seed=1)
    for share in (0.0, 0.25, 1.0):
        found = own_part(ns, everyone, share)
        for i in range(3):
            for m in range(2):
                mean = sum(everyone[j, m] for j in range(5)) / 5
                assert torch.allclose(found[i, m], ns[i, m] - share * mean)


def test_nearest_in_pieces() -> None:
    queries, bank = unit(7, 4), unit(9, 4, seed=1)
    for k, chunk in ((3, 2), (3, 1024), (20, 3)):
        values, places = nearest(queries, bank, k, chunk=chunk)
        assert places.shape == (7, min(k, 9))
        for i in range(7):
            order = sorted(range(9), key=lambda j: -float(queries[i] @ bank[j]))[:k]
            assert places[i].tolist() == order
            assert torch.allclose(values[i], torch.stack([queries[i] @ bank[j] for j in order]))
    values, places = nearest(queries[:0], bank, 3)
    assert values.shape == places.shape == (0, 3)
