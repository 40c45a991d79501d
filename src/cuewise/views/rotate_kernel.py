"""Quarter turns of a square image."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cuewise.kernels import kernel

Pixels = NDArray[np.uint8]


@kernel
def turned(image: Pixels, quarters: int) -> Pixels:
    """A square image turned counter-clockwise by 1, 2 or 3 quarters."""
    size = image.shape[0]
    out = np.empty_like(image)
    for y in range(size):
        for x in range(size):
            if quarters == 1:
                v, u = x, size - 1 - y
            elif quarters == 2:
                v, u = size - 1 - y, size - 1 - x
            else:
                v, u = size - 1 - x, y
            for c in range(3):
                out[y, x, c] = image[v, u, c]
    return out
