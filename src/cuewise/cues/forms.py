"""The one adapter of image forms: uint8 or float arrays, PIL images and tensors go in, the same form comes out.

Operators are written for arrays H×W×3 (or H×W) in grey levels 0–255, where the published thresholds hold (κ = 20, σ = 75).
`on_pixels` brings every form to uint8 pixels and back, so that the result does not depend on the form. `any_form` lets a
function of arrays take PIL images and tensors without rounding them to bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image as Pillow
from torch import Tensor, nn

from cuewise.cues.levels import Array, from_levels, to_bytes
from cuewise.errors import UserError

Pixels = NDArray[np.uint8]  # H×W×3, or H×W where an operator takes grey images
Form = TypeVar("Form", NDArray[Any], Tensor, Pillow.Image)  # what goes in comes out
P = ParamSpec("P")
GREY_MODES = ("L", "1")
COLOUR_MODES = ("RGB", "RGBA", "RGBX", "P", "PA", "LA", "La", "CMYK", "YCbCr", "HSV", "LAB")


class AnyForm(Protocol[P]):
    """A function of an image in any form, and of its own keywords."""

    def __call__(self, image: Form, /, *args: P.args, **kwargs: P.kwargs) -> Form: ...


def any_form(*, tensors: bool = False) -> Callable[[Callable[Concatenate[Any, P], Any]], AnyForm[P]]:
    """Decorator: a function of an array H×W or H×W×C, uint8 or float in [0, 1], takes every form; batches image by image.

    tensors: the function has a way of its own for tensors and for batches of arrays.
    """

    def adapt(function: Callable[Concatenate[Any, P], Any]) -> AnyForm[P]:
        @wraps(function)
        def adapted(image: Any, /, *args: P.args, **kwargs: P.kwargs) -> Any:
            own = isinstance(image, np.ndarray) and (tensors or image.ndim < 4)
            if own or (tensors and isinstance(image, Tensor)):
                return function(image, *args, **kwargs)
            return _through_arrays(image, lambda one: function(one, *args, **kwargs))

        return adapted

    return adapt


class ImageModule(nn.Module):
    """A function of images as a module; its options are fixed when it is made."""

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        super().__init__()
        self.function, self.options = function, options

    def forward(self, batch: Tensor) -> Tensor:
        return self.function(batch, **self.options)


def on_pixels(image: Form, operate: Callable[[Pixels], Pixels], *, colour_only: bool) -> Form:
    """`operate` on the uint8 pixels of an image in any form, batches image by image; floats are rounded to 256 levels.

    image: array H×W, H×W×C or N×H×W×C or tensor H×W, C×H×W or N×C×H×W, uint8 or float in [0, 1], or a PIL image.
    colour_only: grey images are shown to `operate` as H×W×3, and the luma of its result is returned.
    """
    if isinstance(image, np.ndarray) and image.dtype == np.uint8 and image.ndim == 3 and image.shape[2] == 3:
        return operate(image)

    def one(array: Array) -> Array:
        levels = to_bytes(array)
        is_grey = levels.ndim == 2 or levels.shape[2] == 1
        out = _on_colour(levels, operate) if colour_only and is_grey else operate(_checked(levels))
        return out if array.dtype == np.uint8 else from_levels(out.astype(np.float32), array)

    return _through_arrays(image, one)


def _through_arrays(image: Any, function: Callable[[Array], Array]) -> Any:
    """The function of H×W or H×W×C arrays on every form."""
    if isinstance(image, np.ndarray):
        return np.stack([function(each) for each in image]) if image.ndim == 4 else function(image)
    if isinstance(image, Pillow.Image):
        return _through_pillow(image, function)
    if isinstance(image, Tensor):
        return _through_tensor(image, function)
    kind = type(image).__name__
    raise UserError(f"an image is an array, a PIL image or a tensor, but this is a {kind}; convert it first")


def _through_pillow(image: Pillow.Image, function: Callable[[Array], Array]) -> Pillow.Image:
    """Grey stays grey; every other mode of 8 bits becomes RGB, without its transparency."""
    if image.mode not in GREY_MODES + COLOUR_MODES:
        raise UserError(f"a PIL image of mode {image.mode!r} has no 8-bit colours; convert it to RGB first")
    return Pillow.fromarray(function(np.array(image.convert("L" if image.mode in GREY_MODES else "RGB"))))


def _through_tensor(batch: Tensor, function: Callable[[Array], Array]) -> Tensor:
    """H×W, C×H×W or N×C×H×W on any device; computed on the CPU, returned where it came from."""
    if batch.ndim not in (2, 3, 4):
        raise UserError(
            f"a tensor of images is C×H×W or N×C×H×W, but this one has shape {tuple(batch.shape)}"
        )
    plain = batch.detach().cpu()
    plain = plain.float() if plain.dtype in (torch.float16, torch.bfloat16) else plain
    if batch.ndim == 2:
        return torch.from_numpy(function(plain.numpy())).to(batch)
    stacked = plain.reshape(-1, *plain.shape[-3:]).permute(0, 2, 3, 1).contiguous().numpy()
    flat = stacked.shape[-1] == 1
    out = np.stack([function(each[..., 0] if flat else each) for each in stacked])
    planes = torch.from_numpy(out if not flat else out[..., None]).permute(0, 3, 1, 2)
    return planes.reshape(*batch.shape[:-3], *planes.shape[1:]).contiguous().to(batch)


def _on_colour(levels: Pixels, operate: Callable[[Pixels], Pixels]) -> Pixels:
    """A grey image as three equal channels, and the luma of the result in the grey image's shape."""
    plane = levels if levels.ndim == 2 else levels[..., 0]
    out = operate(np.ascontiguousarray(np.repeat(plane[..., None], 3, -1)))
    luma = np.rint(out.astype(np.float32) @ np.array([0.299, 0.587, 0.114], np.float32)).astype(np.uint8)
    return luma if levels.ndim == 2 else luma[..., None]


def _checked(levels: Pixels) -> Pixels:
    if levels.ndim == 3 and levels.shape[2] > 4 and levels.shape[0] in (1, 3):
        raise UserError(
            f"an array of shape {levels.shape} looks like C×H×W; arrays are H×W×C: transpose it, or pass a tensor"
        )
    return levels
