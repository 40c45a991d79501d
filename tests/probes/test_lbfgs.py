"""The minimiser of the probes: torch's steps, the exact minimum, and slopes that are those of autograd."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy.optimize import minimize
from torch import Tensor

from cuewise.probes.lbfgs import CURVATURE, SUFFICIENT, Trial, minimise, search
from cuewise.probes.multilabel import known_bce, summed_bce
from cuewise.probes.solve import cross_entropy, logits, solve


def problem(seed: int, rows: int = 60, features: int = 7, classes: int = 4) -> tuple[Tensor, Tensor]:
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, features, generator=g) * torch.linspace(0.2, 3, features)
    y = (x @ torch.randn(features, classes, generator=g) + torch.randn(rows, classes, generator=g)).argmax(1)
    return x, y


def by_torch(
    x: Tensor,
    y: Tensor,
    loss: Callable[..., Tensor],
    l2: float,
    start: Tensor,
    n: int,
    tolerance: float = 1e-5,
) -> Tensor:
    w = start.clone().requires_grad_(True)
    solver = torch.optim.LBFGS(
        [w], max_iter=n, tolerance_grad=tolerance, history_size=10, line_search_fn="strong_wolfe"
    )

    def closure() -> Tensor:
        solver.zero_grad()
        value = loss(logits(x, w), y) + l2 / 2 * w[:-1].square().sum()
        value.backward()
        return value

    solver.step(closure)
    return w.detach()


@pytest.mark.parametrize("l2", [1.0, 1e-2, 1e-4])
@pytest.mark.parametrize("iterations", [1, 2, 8, 25])
@pytest.mark.parametrize("seed", range(4))
def test_the_steps_are_those_of_torch(seed: int, iterations: int, l2: float) -> None:
    x, y = problem(seed)
    start = torch.zeros(8, 4)
    found = solve(x, y, cross_entropy, l2, start, iterations)
    wanted = by_torch(x, y, F.cross_entropy, l2, start, iterations)
    # rounding grows with the steps, most where the problem is loose
    torch.testing.assert_close(found, wanted, rtol=2e-2, atol=(2e-5 if iterations < 25 else 2e-2))


@pytest.mark.parametrize("l2", [1.0, 1e-2, 1e-4])
def test_the_minimum_is_that_of_scipy(l2: float) -> None:
    x, y = problem(9)

    def value(flat: np.ndarray) -> float:
        w = torch.from_numpy(flat).view(8, 4)
        return float(F.cross_entropy(logits(x.double(), w), y) + l2 / 2 * w[:-1].square().sum())

    found = solve(x, y, cross_entropy, l2, torch.zeros(8, 4), 200, tolerance=1e-6).double().numpy().ravel()
    least = minimize(value, np.zeros(32), method="L-BFGS-B", options={"maxiter": 2000, "maxfun": 10**6}).fun
    assert value(found) == pytest.approx(least, abs=2e-6)


@pytest.mark.parametrize("seed", range(3))
def test_slopes_are_those_of_autograd(seed: int) -> None:
    _, y = problem(seed)
    z = torch.randn(60, 4, generator=torch.Generator().manual_seed(seed))
    several = torch.randint(-1, 2, (60, 4), generator=torch.Generator().manual_seed(seed), dtype=torch.int8)
    for loss, plain, targets in (
        (cross_entropy, F.cross_entropy, y),
        (summed_bce, lambda z, y: known_bce(z, y) * 4, several),
    ):
        own = z.clone().requires_grad_(True)
        plain(own, targets).backward()
        value, slope = loss(z, targets)
        torch.testing.assert_close(value, plain(z, targets))
        torch.testing.assert_close(slope, own.grad)


def rosenbrock(w: Tensor) -> tuple[float, Tensor]:
    a, b = float(w[0]), float(w[1])
    value = (1 - a) ** 2 + 100 * (b - a * a) ** 2
    return value, torch.tensor([-2 * (1 - a) - 400 * a * (b - a * a), 200 * (b - a * a)], dtype=w.dtype)


@pytest.mark.parametrize("start", [(-1.2, 1.0), (3.0, -4.0), (0.0, 0.0)])
def test_a_curved_valley(start: tuple[float, float]) -> None:
    """The search has to shorten and to lengthen steps here."""
    found = minimise(rosenbrock, torch.tensor(start, dtype=torch.float64), 200, 1e-8)
    torch.testing.assert_close(found, torch.ones(2, dtype=torch.float64), rtol=0, atol=1e-5)


@pytest.mark.parametrize("steps", [1, 2, 3, 5, 9, 14, 20])
@pytest.mark.parametrize("start", [(-1.2, 1.0), (3.0, -4.0), (0.0, 0.0), (-0.5, 30.0)])
def test_the_same_way_through_it_as_torch(start: tuple[float, float], steps: int) -> None:
    """In double precision, where rounding cannot hide another step."""
    if steps < 3 and "max_ls" not in inspect.getsource(torch.optim.LBFGS.step):
        pytest.skip("this torch searches along the last steps for longer than its evaluations allow")
    w = torch.tensor(start, dtype=torch.float64, requires_grad=True)
    solver = torch.optim.LBFGS(
        [w], max_iter=steps, tolerance_grad=1e-9, history_size=10, line_search_fn="strong_wolfe"
    )

    def closure() -> float:
        value, w.grad = rosenbrock(w.detach())
        return value

    solver.step(closure)
    found = minimise(rosenbrock, torch.tensor(start, dtype=torch.float64), steps, 1e-9)
    torch.testing.assert_close(found, w.detach(), rtol=1e-7, atol=1e-7)


def test_rounding_costs_no_evaluations() -> None:
    """Close to the minimum the values of a float32 function rise and fall by their rounding."""
    calls = {"own": 0, "torch": 0}

    def own(z: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        calls["own"] += 1
        return cross_entropy(z, y)

    def theirs(z: Tensor, y: Tensor) -> Tensor:
        calls["torch"] += 1
        return F.cross_entropy(z, y)

    for seed in range(12):
        g = torch.Generator().manual_seed(seed)
        x = torch.randn(3000, 16, generator=g)
        y = (x @ torch.randn(16, 10, generator=g) + 6 * torch.randn(3000, 10, generator=g)).argmax(1)
        for l2 in (1e-2, 1.0):
            solve(x, y, own, l2, torch.zeros(17, 10), 100)
            by_torch(x, y, theirs, l2, torch.zeros(17, 10), 100)
    assert calls["own"] <= 1.05 * calls["torch"]


@pytest.mark.parametrize("t", [1e-4, 0.01, 1.0, 50.0])
def test_a_step_satisfies_both_wolfe_conditions(t: float) -> None:
    x = torch.tensor([-1.2, 1.0], dtype=torch.float64)
    value, slope = rosenbrock(x)
    d = -slope
    start = Trial(0.0, value, slope, float(slope.dot(d)))
    found, evaluations = search(rosenbrock, x, d, t, start, 40)
    assert evaluations <= 41
    assert found.value <= value + SUFFICIENT * found.t * start.along
    assert abs(found.along) <= -CURVATURE * start.along


def test_evaluations_are_limited_and_the_best_point_is_kept() -> None:
    calls = 0

    def counted(w: Tensor) -> tuple[float, Tensor]:
        nonlocal calls
        calls += 1
        return rosenbrock(w)

    start = torch.tensor([-1.2, 1.0], dtype=torch.float64)
    found = minimise(counted, start, 8, 0.0)
    assert calls <= 8 * 5 // 4 + 1
    assert rosenbrock(found)[0] < rosenbrock(start)[0]


def test_nothing_to_do() -> None:
    flat = torch.ones(3)
    torch.testing.assert_close(minimise(lambda w: (0.0, torch.zeros(3)), flat, 10, 1e-5), flat)
