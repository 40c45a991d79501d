"""Losses on noisy labels, and estimates of the confusion, against numpy loops and closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from cuewise.objectives.corrected import (
    SMALLEST,
    anchor_confusion,
    confusion_of,
    corrected_cross_entropy,
    gold_confusion,
)

N, K = 7, 4


@pytest.fixture
def drawn() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Logits N×K, labels N, a confusion K×K."""
    g = torch.Generator().manual_seed(0)
    C = torch.rand(K, K, generator=g, dtype=torch.float64)
    logits = 3 * torch.randn(N, K, generator=g, dtype=torch.float64)
    return logits, torch.randint(K, (N,), generator=g), C / C.sum(1, keepdim=True)


def test_loss_is_that_of_the_loop(drawn: tuple[torch.Tensor, torch.Tensor, torch.Tensor]) -> None:
    logits, given, C = drawn
    expected = []
    for i in range(N):
        e = np.exp(logits[i].numpy() - logits[i].max().item())
        p = e / e.sum()
        expected.append(-math.log(sum(C[c, given[i]].item() * p[c] for c in range(K))))
    np.testing.assert_allclose(corrected_cross_entropy(logits, given, C).numpy(), expected, rtol=1e-7)


def test_without_confusion_it_is_cross_entropy_and_never_infinite(
    drawn: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
) -> None:
    logits, given, _ = drawn
    eye = torch.eye(K, dtype=torch.float64)
    plain = F.cross_entropy(logits, given, reduction="none")
    torch.testing.assert_close(corrected_cross_entropy(logits, given, eye), plain, rtol=1e-4, atol=1e-6)
    sure = torch.full((1, K), -1e4).requires_grad_(True)
    loss = corrected_cross_entropy(sure + torch.tensor([[2e4, 0, 0, 0]]), torch.tensor([1]), torch.eye(K))
    loss.sum().backward()  # type: ignore[no-untyped-call]
    assert float(loss.detach()) == pytest.approx(-math.log(SMALLEST), rel=1e-4)
    assert sure.grad is not None
    assert torch.isfinite(sure.grad).all()


def test_confusion_by_trusted_images_is_the_mean_answer_of_each_class() -> None:
    g = torch.Generator().manual_seed(1)
    p, y = torch.rand(50, K, generator=g).softmax(1), torch.arange(50) % K
    expected = np.stack([np.mean([p[i].numpy() for i in range(50) if y[i] == c], axis=0) for c in range(K)])
    np.testing.assert_allclose(gold_confusion(p, y).numpy(), expected, rtol=1e-5)


def test_confusion_by_anchors_is_the_answer_at_the_quantile() -> None:
    p = torch.rand(101, K, generator=torch.Generator().manual_seed(2)).softmax(1)
    found = anchor_confusion(p)
    for c in range(K):
        order = sorted(range(101), key=lambda i: float(p[i, c]))
        assert torch.equal(found[c], p[order[97]])


def test_true_confusion_counts() -> None:
    clean, given = torch.tensor([0, 0, 0, 1]), torch.tensor([0, 2, 2, 1])
    expected = [[1 / 3, 0, 2 / 3], [0, 1, 0], [0, 0, 1]]
    torch.testing.assert_close(confusion_of(clean, given, 3), torch.tensor(expected, dtype=torch.float64))


@pytest.mark.parametrize("noise", [0.3, 0.6])
@pytest.mark.slow
def test_a_known_confusion_is_recovered_on_separable_data(noise: float) -> None:
    """A classifier fitted to the noisy labels of separable points answers with C; the trusted points read it off, and the
    corrected loss then finds the right classes, which plain cross-entropy also ranks first but far less surely."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, K, 4000)
    X = torch.from_numpy(np.eye(K)[y] * 6 + rng.normal(0, 0.3, (4000, K))).float()
    C = np.full((K, K), noise / K) + (1 - noise) * np.eye(K)
    C[0, 1] += 0.2 * C[0, 0]  # not uniform: class 0 is also taken for 1
    C[0, 0] *= 0.8
    given = torch.tensor([rng.choice(K, p=C[k]) for k in y])
    gold = torch.arange(4000) < 200

    def fit(loss) -> torch.nn.Linear:  # type: ignore[no-untyped-def]
        torch.manual_seed(0)
        net = torch.nn.Linear(K, K)
        optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
        for _ in range(200):
            optimizer.zero_grad()
            loss(net(X[~gold]), given[~gold]).mean().backward()
            optimizer.step()
        return net.eval()

    first = fit(lambda z, t: F.cross_entropy(z, t, reduction="none"))
    with torch.no_grad():
        estimated = gold_confusion(first(X[gold]).softmax(1), torch.from_numpy(y)[gold])
        anchored = anchor_confusion(first(X[~gold]).softmax(1))
    np.testing.assert_allclose(estimated.numpy(), C, atol=0.05)
    np.testing.assert_allclose(anchored.numpy(), C, atol=0.08)
    second = fit(lambda z, t: corrected_cross_entropy(z, t, estimated))
    with torch.no_grad():
        sure = [float(net(X).softmax(1)[torch.arange(4000), y].mean()) for net in (first, second)]
    assert sure[1] > 0.95 > 1 - noise + noise / K + 0.05 > sure[0]
