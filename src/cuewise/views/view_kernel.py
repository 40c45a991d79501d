"""All operations of a view in one compiled call."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cuewise.views.blur_kernel import blur
from cuewise.views.color_kernel import color, solarize
from cuewise.views.resize_kernel import resize

Pixels = NDArray[np.uint8]


@njit(cache=True, nogil=True)
def view(
    image: Pixels,
    crop: tuple[int, int, int, int],
    flip: bool,
    order: tuple[int, int, int, int],
    factors: tuple[np.float32, np.float32, np.float32],
    shift: int,
    gray: bool,
    sigma: float,
    threshold: int,
    scratch: Pixels,
    out: Pixels,
) -> None:
    """Write the view of `image` to `out`, size×size×3; sigma 0 blurs nothing, threshold 256 inverts nothing."""
    size = out.shape[0]
    resize(image, crop, (size, size), (0, 0), flip, scratch, out)
    rows = out.reshape(size, 3 * size)
    if gray or order[0] != 0:
        color(rows, order, factors, shift, gray)
    if sigma > 0:
        blur(rows, sigma, scratch)
    if threshold < 256:
        for y in range(size):
            solarize(rows[y], threshold)
