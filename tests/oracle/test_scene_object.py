"""The scene–object loss against a loop in numpy, from the formulas of the ball."""

from __future__ import annotations

import numpy as np
import torch

from cuewise.objectives.scene_object import norm_only, scene_object_loss


def exp0(u: np.ndarray, c: float) -> np.ndarray:
    n = np.linalg.norm(u)
    return np.tanh(np.sqrt(c) * n) * u / (np.sqrt(c) * n)


def distance(x: np.ndarray, y: np.ndarray, c: float) -> float:
    """(1/√c)·arcosh(1 + 2c‖x−y‖² / ((1−c‖x‖²)(1−c‖y‖²)))"""
    ratio = 2 * c * np.sum((x - y) ** 2) / ((1 - c * np.sum(x**2)) * (1 - c * np.sum(y**2)))
    return float(np.arccosh(1 + ratio) / np.sqrt(c))


def test_the_loss_is_that_of_the_formula() -> None:
    rng = np.random.default_rng(0)
    for c, tau in ((0.05, 0.2), (1.0, 0.5)):
        scenes, objects = ([exp0(v, c) for v in rng.normal(size=(n, 6))] for n in (5, 9))
        total = 0.0
        for i, s in enumerate(scenes):
            d = np.array([distance(s, objects[i], c), *(distance(s, o, c) for o in objects[5:])])
            total -= np.log(np.exp(-d[0] / tau) / np.exp(-d / tau).sum())
        points = [torch.tensor(np.array(p)) for p in (scenes, objects[:5], objects[5:])]
        found = scene_object_loss(*points, c=c, tau=tau)
        np.testing.assert_allclose(float(found), total / 5, rtol=1e-9)


def test_norm_only_trains_the_length() -> None:
    u = torch.randn(4, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True)
    v = norm_only(u)
    torch.testing.assert_close(v, u)
    weights = torch.randn(4, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    (v * weights).sum().backward()
    direction = u.detach() / u.detach().norm(dim=1, keepdim=True)
    assert u.grad is not None
    along = (u.grad * direction).sum(1, keepdim=True) * direction
    torch.testing.assert_close(u.grad, along)  # nothing across
    torch.testing.assert_close(along.norm(dim=1), (weights * direction).sum(1).abs())


def test_the_length_is_kept_however_short() -> None:
    """Of B×n×D as well: a length per vector, not per column."""
    u = torch.randn(3, 4, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64) * 1e-3
    assert torch.allclose(norm_only(u), u)
    assert torch.equal(norm_only(torch.zeros(2, 3)), torch.zeros(2, 3))
