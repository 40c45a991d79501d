"""The Poincaré ball: against geoopt, and by what must hold of any distance (claim 7)."""

from __future__ import annotations

import math

import pytest
import torch
from geoopt.manifolds.stereographic import math as geoopt
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from cuewise.objectives.hyperbolic import (
    BORDER,
    clip,
    distance,
    distances,
    exp0,
    log0,
    mobius_add,
    mobius_distance,
    norm0,
    project,
    riemannian,
)

CURVATURES = [0.05, 1.0, 2.5]


def points(n: int, c: float, seed: int = 0, dim: int = 6, far: float = 0.999) -> Tensor:
    """Points of all norms up to `far` of the radius, float64."""
    g = torch.Generator().manual_seed(seed)
    v = torch.nn.functional.normalize(torch.randn(n, dim, generator=g, dtype=torch.float64), dim=-1)
    return v * far * torch.rand(n, 1, generator=g, dtype=torch.float64) ** 0.25 / math.sqrt(c)


@pytest.mark.parametrize("c", CURVATURES)
def test_equals_geoopt(c: float) -> None:
    x, y, k = points(50, c), points(50, c, 1), torch.tensor(-c, dtype=torch.float64)
    u = torch.randn(50, 6, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    torch.testing.assert_close(
        exp0(u, c), geoopt.project(geoopt.expmap0(u, k=k), k=k, eps=BORDER), rtol=1e-9, atol=1e-9
    )
    torch.testing.assert_close(log0(x, c), geoopt.logmap0(x, k=k), rtol=1e-8, atol=1e-9)
    torch.testing.assert_close(mobius_add(x, y, c), geoopt.mobius_add(x, y, k=k), rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(distance(x, y, c), geoopt.dist(x, y, k=k), rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(norm0(x, c), geoopt.dist0(x, k=k), rtol=1e-6, atol=1e-6)
    all_pairs = geoopt.dist(x[:, None], y[None], k=k)
    torch.testing.assert_close(distances(x, y, c), all_pairs, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("c", CURVATURES)
def test_both_formulas_agree_up_to_the_border(c: float) -> None:
    x, y = points(200, c, 3), points(200, c, 4)
    torch.testing.assert_close(distance(x, y, c), mobius_distance(x, y, c), rtol=1e-7, atol=1e-6)
    edge = project(torch.tensor([[1e9, 0.0], [-1e9, 0.0]], dtype=torch.float64), c)
    torch.testing.assert_close(
        distance(edge[0], edge[1], c), mobius_distance(edge[0], edge[1], c), rtol=1e-7, atol=0
    )


seeds = st.integers(0, 10_000)


@settings(max_examples=60, deadline=None)
@given(seeds, st.sampled_from(CURVATURES))
def test_it_is_a_distance(seed: int, c: float) -> None:
    x, y, z = points(3, c, seed).float()
    xy, yz, xz = distance(x, y, c), distance(y, z, c), distance(x, z, c)
    assert distance(y, x, c) == xy
    assert distance(x, x, c) < 1e-4
    assert xy > 0
    assert xz <= xy + yz + 1e-4 * (1 + xz)


@settings(max_examples=60, deadline=None)
@given(seeds, st.sampled_from(CURVATURES), st.floats(1e-4, 3.7))
def test_log_undoes_exp_inside_the_clip(seed: int, c: float, norm: float) -> None:
    """tanh reaches 1 − 10⁻³ at √c‖u‖ = 3.8."""
    u = torch.randn(4, 8, generator=torch.Generator().manual_seed(seed))
    u = u / u.norm(dim=-1, keepdim=True) * norm / math.sqrt(c)
    torch.testing.assert_close(log0(exp0(u, c), c), u, rtol=2e-4, atol=1e-6)
    torch.testing.assert_close(norm0(exp0(u, c), c), 2 * u.norm(dim=-1), rtol=2e-4, atol=1e-6)


@settings(max_examples=40, deadline=None)
@given(seeds, st.sampled_from(CURVATURES))
def test_moebius_addition_cancels_from_the_left(seed: int, c: float) -> None:
    x, y = points(4, c, seed, far=0.95), points(4, c, seed + 1, far=0.95)
    torch.testing.assert_close(mobius_add(-x, mobius_add(x, y, c), c), y, rtol=1e-8, atol=1e-8)
    torch.testing.assert_close(mobius_add(torch.zeros_like(x), y, c), y)


def test_distances_grow_without_bound_towards_the_border() -> None:
    c = 0.05
    r = (1 - torch.logspace(-1, -9, 9, dtype=torch.float64)) / math.sqrt(c)
    d = norm0(torch.stack([r, torch.zeros_like(r)], -1), c)
    step = d.diff()
    assert (step > 0).all()
    torch.testing.assert_close(step[3:], step[3:].mean().expand(5), rtol=1e-3, atol=0)  # ln 10/√c each
    assert math.isclose(float(step[-1]), math.log(10) / math.sqrt(c), rel_tol=1e-3)


@pytest.mark.parametrize("c", CURVATURES)
def test_float32_at_the_border_is_as_good_as_double(c: float) -> None:
    """Points 10⁻³ apart at norm 0.999/√c: the sum of squares alone would give zero or NaN."""
    g = torch.Generator().manual_seed(0)
    x = project(100 * torch.randn(64, 32, generator=g), c)
    y = project(x + 1e-3 * torch.randn(64, 32, generator=g), c)
    want = distance(x.double(), y.double(), c)
    torch.testing.assert_close(distance(x, y, c).double(), want, rtol=1e-5, atol=0)
    torch.testing.assert_close(distances(x, y, c).diagonal().double(), want, rtol=1e-5, atol=0)
    assert distances(x, x, c).diagonal().max() < 1e-2
    assert (x.norm(dim=-1) <= (1 - BORDER) / math.sqrt(c) * (1 + 1e-6)).all()


@pytest.mark.parametrize("value", [0.0, 1e-30, 1e-6, 1.0, 1e4, 1e20])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_values_and_gradients_are_finite_everywhere(value: float, dtype: torch.dtype) -> None:
    most = float(torch.finfo(dtype).max) / 10
    u = torch.full((3, 4), min(value, most), dtype=dtype, requires_grad=True)
    x = exp0(u, 0.05)
    assert x.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    key = torch.zeros(2, 4, dtype=x.dtype)
    total = distances(x, key, 0.05).sum() + distance(x, x.detach(), 0.05).sum() + log0(x, 0.05).sum()
    total.backward()
    assert torch.isfinite(total)
    assert u.grad is not None
    assert torch.isfinite(u.grad).all()


def test_a_point_outside_the_ball_is_far_and_not_nan() -> None:
    x = torch.tensor([[10.0, 0.0]])
    assert 50 < distance(x, torch.zeros(1, 2), 0.05) < math.inf


def test_gradients_are_right() -> None:
    x, y = points(4, 0.5, 0, far=0.9), points(5, 0.5, 1, far=0.9)
    x, y = x.requires_grad_(), y.requires_grad_()
    assert torch.autograd.gradcheck(lambda a, b: distances(a, b, 0.5), (x, y))
    assert torch.autograd.gradcheck(lambda a, b: mobius_add(a, b[:4], 0.5), (x, y))
    assert torch.autograd.gradcheck(lambda a: exp0(a, 0.5), (x,))
    assert torch.autograd.gradcheck(lambda a: log0(a, 0.5), (x,))


def test_the_riemannian_gradient_is_the_euclidean_one_over_the_metric() -> None:
    c = 0.05
    x, y = points(5, c).float().requires_grad_(), points(5, c, 1).float()
    (plain,) = torch.autograd.grad(distance(x, y, c).sum(), x)
    (scaled,) = torch.autograd.grad(distance(riemannian(x, c), y, c).sum(), x)
    factor = (1 - c * x.detach().square().sum(-1, keepdim=True)).square() / 4
    torch.testing.assert_close(scaled, plain * factor, rtol=1e-4, atol=1e-7)
    torch.testing.assert_close(riemannian(x, c), x)
    k = torch.tensor(-c)
    torch.testing.assert_close(scaled, geoopt.egrad2rgrad(x.detach(), plain, k=k), rtol=1e-3, atol=1e-6)


def test_clip_cuts_long_vectors_only() -> None:
    u = torch.tensor([[3.0, 4.0], [0.3, 0.4]])
    torch.testing.assert_close(clip(u, 1.0), torch.tensor([[0.6, 0.8], [0.3, 0.4]]))


def test_all_pairs_need_no_memory_for_every_coordinate(monkeypatch: pytest.MonkeyPatch) -> None:
    """The largest tensor of N×K distances has N×K numbers."""
    largest = 0
    of_square = torch.Tensor.square

    def spy(self: Tensor, *args: object) -> Tensor:
        nonlocal largest
        largest = max(largest, self.numel())
        return of_square(self)

    monkeypatch.setattr(torch.Tensor, "square", spy)
    distances(torch.zeros(100, 64), torch.zeros(200, 64), 0.05)
    assert largest <= 200 * 64
