"""DenseCL's match and loss against loops over images and cells."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from cuewise.objectives.dense import dense_match, dense_nce


def rows(*shape: int, seed: int) -> torch.Tensor:
    return F.normalize(
        torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)), dim=1
    )


def test_the_match_is_the_nearest_cell_by_brute_force() -> None:
    f_q, f_k = rows(5, 7, 9, seed=0), rows(5, 7, 9, seed=1)
    found = dense_match(f_q, f_k)
    for b in range(5):
        for i in range(9):
            cosines = [float(f_q[b, :, i] @ f_k[b, :, j]) for j in range(9)]
            assert found[b, i] == int(np.argmax(cosines))


def test_the_match_finds_shifted_cells() -> None:
    f = rows(2, 16, 9, seed=2)
    order = torch.tensor([3, 0, 8, 1, 2, 7, 4, 6, 5])
    assert torch.equal(dense_match(f, f[:, :, order]), order.argsort().expand(2, 9))


def test_the_loss_equals_a_loop() -> None:
    q, k, queue = rows(3, 6, 4, seed=3), rows(3, 6, 4, seed=4), rows(11, 6, seed=5)
    match = torch.randint(0, 4, (3, 4), generator=torch.Generator().manual_seed(6))
    total = 0.0
    for b in range(3):
        for i in range(4):
            s_p = float(q[b, :, i] @ k[b, :, match[b, i]]) / 0.2
            others = [float(q[b, :, i] @ row) / 0.2 for row in queue]
            total += -s_p + np.log(np.exp([s_p, *others]).sum())
    assert float(dense_nce(q, k, match, queue, tau=0.2)) == pytest.approx(total / 12, rel=1e-10)
