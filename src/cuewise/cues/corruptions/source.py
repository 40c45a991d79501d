"""The image to corrupt, with what several corruptions need of it computed once: shared by all its variants."""

from __future__ import annotations

from functools import cached_property

import cv2
import numpy as np
from numpy.typing import NDArray

from cuewise.cues.corruptions.filters import prefix_sums
from cuewise.cues.corruptions.lanes import four_bytes, four_lanes

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]

REFERENCE_SIDE = 224  # the radii of the published constants are pixels of images of this side


class CorruptionInput:
    """An image H×W×C (uint8) and, lazily, its derived forms; `scale` multiplies radii given in pixels."""

    def __init__(
        self,
        image: Bytes,
        *,
        severities: tuple[int, ...] = (1, 2, 3, 4, 5),
        scale_to_image: bool = False,
        frost_images: str | None = None,
    ) -> None:
        self.severities = severities  # those that will be computed
        self.frost_images = frost_images
        self.zoomed: dict[int, Bytes] = {}  # results of zoom_blur that were computed ahead
        self._padded: dict[tuple[int, int], Bytes] = {}
        self._prefixed: dict[int, Floats] = {}
        self.flat = image.ndim == 2
        self.image: Bytes = np.ascontiguousarray(image[:, :, None] if self.flat else image)
        self.height, self.width, self.channels = self.image.shape
        self.scale = min(self.height, self.width) / REFERENCE_SIDE if scale_to_image else 1.0

    @property
    def is_rgb(self) -> bool:
        """Colour rules apply to three channels only; any other count is corrupted channel by channel."""
        return self.channels == 3

    @cached_property
    def means(self) -> NDArray[np.float64]:  # C
        columns = self.image.reshape(self.height, -1).sum(axis=0, dtype=np.uint32)
        return np.asarray(columns.reshape(self.width, -1).sum(axis=0) / (self.height * self.width))

    @cached_property
    def peak(self) -> float:
        """The largest value, in 0..1."""
        return float(self.image.max()) / 255.0

    @cached_property
    def four_lanes(self) -> NDArray[np.uint64]:
        return four_lanes(self.image)

    @cached_property
    def four_bytes(self) -> NDArray[np.uint32]:
        return four_bytes(self.image)

    def by_fours(self) -> list[slice]:
        """The channels in groups of four, as lanes hold them."""
        return [slice(c, min(c + 4, self.channels)) for c in range(0, self.channels, 4)]

    def padded(self, radius: int, border: int) -> Bytes:
        """(H+2r)×(W+2r)×C with a border of cv2's kind `border`."""
        if (radius, border) not in self._padded:
            out = cv2.copyMakeBorder(self.image, radius, radius, radius, radius, border)
            self._padded[radius, border] = np.asarray(out, np.uint8).reshape(*out.shape[:2], self.channels)
        return self._padded[radius, border]

    def prefixed(self, radius: int) -> Floats:
        """Sums along the rows of the mirrored image, (H+2r)×(W+2r+1)·C; exact: below 2²⁴ up to 65 793 pixels."""
        if radius not in self._prefixed:
            self._prefixed[radius] = prefix_sums(self.padded(radius, cv2.BORDER_REFLECT_101))
        return self._prefixed[radius]

    def finish(self, image: Bytes) -> Bytes:
        """The result in the shape of the image that came in."""
        return image.reshape(self.height, self.width) if self.flat else image.reshape(self.image.shape)
