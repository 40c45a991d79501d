"""The L-BFGS of the exact probes against torch.optim.LBFGS on the same problems, by turns.

    python benchmarks/solver.py [--rounds 7]

Multinomial regression from zero to the same tolerance. The note says how far the two losses are apart.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from cuewise.probes.solve import cross_entropy, logits, solve
from row import row

SIZES = ((160, 64, 16), (800, 128, 7), (3200, 128, 16), (25_000, 512, 50))  # images, features, classes
L2, ITERATIONS = 1e-2, 100


def problem(images: int, features: int, classes: int) -> tuple[Tensor, Tensor]:
    g = torch.Generator().manual_seed(0)
    x = torch.randn(images, features, generator=g)
    noise = 3 * torch.randn(images, classes, generator=g)
    return x, (x @ torch.randn(features, classes, generator=g) + noise).argmax(1)


def by_torch(x: Tensor, y: Tensor, start: Tensor) -> Tensor:
    w = start.clone().requires_grad_(True)
    solver = torch.optim.LBFGS(
        [w], max_iter=ITERATIONS, tolerance_grad=1e-5, history_size=10, line_search_fn="strong_wolfe"
    )

    def closure() -> Tensor:
        solver.zero_grad()
        value = loss(x, y, w)
        value.backward()  # type: ignore[no-untyped-call]
        return value

    solver.step(closure)  # type: ignore[arg-type]
    return w.detach()


def loss(x: Tensor, y: Tensor, w: Tensor) -> Tensor:
    return F.cross_entropy(logits(x, w), y) + L2 / 2 * w[:-1].square().sum()


def timed(work: Callable[..., Tensor], *given: object) -> tuple[float, Tensor]:
    began = time.perf_counter()
    found = work(*given)
    return time.perf_counter() - began, found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    for size in SIZES:
        x, y = problem(*size)
        start = torch.zeros(size[1] + 1, size[2])
        ratios, apart = [], 0.0
        for k in range(given.rounds + 1):
            theirs, a = timed(by_torch, x, y, start)
            ours, b = timed(solve, x, y, cross_entropy, L2, start, ITERATIONS)
            apart = abs(float(loss(x, y, a)) - float(loss(x, y, b)))
            ratios += [theirs / ours] if k else []  # the first turn warms up
        what = "exact probe, {:,} images, {} features, {} classes".format(*size)
        row(what, "torch.optim.LBFGS", ratios, note=f"losses {apart:.0e} apart")


if __name__ == "__main__":
    main()
