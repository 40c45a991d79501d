"""LooC's Eq. 2 as a loop over images and spaces in numpy, with the closed form of its gradient."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def loop_looc(
    q: Sequence[Array],
    k: Sequence[Sequence[Array]],
    queues: Sequence[Array],
    tau: float,
    equal: Sequence[NDArray[np.bool_]] | None = None,
) -> tuple[float, list[Array]]:
    """Loss and its gradient by each q[i] (B×C); k[i][j]: key j in space i, B×C; equal[i][b, j]: leave key j out."""
    n, b = len(q) - 1, len(q[0])
    loss, gradients = 0.0, [np.zeros_like(x) for x in q]
    for i in range(n + 1):
        for row in range(b):
            keys = {j: k[i][j][row] for j in (range(n + 1) if i else [0])}
            if equal is not None and i:
                keys = {j: z for j, z in keys.items() if j == i or not equal[i][row, j]}
            terms = {j: math.exp(float(q[i][row] @ z) / tau) for j, z in keys.items()}
            queue = [math.exp(float(q[i][row] @ z) / tau) for z in queues[i]]
            total = sum(terms.values()) + sum(queue)
            loss -= math.log(terms[i] / total) / (n + 1) / b
            pull = -keys[i] + sum(terms[j] / total * z for j, z in keys.items())
            pull = pull + sum(e / total * z for e, z in zip(queue, queues[i]))
            gradients[i][row] = pull / tau / (n + 1) / b
    return loss, gradients
