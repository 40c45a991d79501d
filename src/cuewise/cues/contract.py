"""What every cue promises, as checks that any cue can be put through: cuewise's own, and those from outside.

A check takes a cue and raises UserError with what it found. `cuewise.cues.contract.CHECKS` lists all.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from PIL import Image as Pillow

from cuewise.cues.cue import Cue
from cuewise.cues.forms import Pixels
from cuewise.errors import UserError

SIZES = ((8, 8), (9, 31), (33, 17), (64, 64), (65, 48))


def photo(height: int, width: int, kind: str = "colour") -> Pixels:
    """A disc on waves with noise; kind: colour, grey or constant."""
    if kind == "constant":
        return np.full((height, width, 3), 77, np.uint8)
    rng = np.random.default_rng(height * 100 + width)
    y, x = np.mgrid[:height, :width]
    image = 110 + 60 * np.sin(x / 3)[..., None] * np.cos(y / 4)[..., None] * np.array([1.0, 0.6, -0.8])
    disc = (y - height / 2) ** 2 + (x - width / 2) ** 2 < (min(height, width) / 3) ** 2
    image[disc] += (70, 20, -60)
    image = np.clip(image + rng.normal(0, 6, image.shape), 0, 255)
    if kind == "grey":
        image[:] = image.mean(-1, keepdims=True)
    return image.astype(np.uint8)


def keeps_shape_and_type(cue: Cue) -> None:
    """The result is a new uint8 array of the image's shape; the image itself does not change."""
    for size in SIZES:
        image = photo(*size)
        before = image.copy()
        out = _run(cue, image)
        _need(cue, isinstance(out, np.ndarray) and out.shape == image.shape, f"shape changes at {size}")
        _need(cue, out.dtype == np.uint8 and out.flags.c_contiguous, "the result is not contiguous uint8")
        _need(cue, not np.shares_memory(out, image), "the result shares memory with the image")
        _need(cue, np.array_equal(image, before), "the image that was given is changed")


def every_form_gives_the_same_image(cue: Cue) -> None:
    """uint8 and float arrays, PIL images and tensors give the same pixels, in the form that was given."""
    for image in (photo(40, 52), photo(40, 52, "grey")[..., 0]):
        want = _run(cue, image)
        for name, (form, pixels) in _forms(image).items():
            out = _run(cue, form)
            _need(cue, type(out) is type(form), f"{name} comes out as {type(out).__name__}")
            _need(cue, getattr(out, "dtype", 0) == getattr(form, "dtype", 0), f"{name} changes its type")
            _need(cue, np.array_equal(pixels(out), want), f"{name} gives another image than uint8 H×W×C")


def same_seed_same_image(cue: Cue) -> None:
    """All random numbers come from the generator that was given."""
    image = photo(40, 40)
    np.random.seed(1)  # noqa: NPY002 — the global generator must not matter
    one = _run(cue, image, 3)
    np.random.seed(2)  # noqa: NPY002
    _need(cue, np.array_equal(one, _run(cue, image, 3)), "the same seed gives different images")


def rendering_is_drawing_free(cue: Cue) -> None:
    """`render` repeats an image from what `draw` returned, which survives JSON."""
    image = photo(36, 36)
    drawn = cue.draw(np.random.default_rng(5), 36, 36)
    try:
        again = json.loads(json.dumps(dict(drawn)))
    except TypeError as error:
        raise UserError(f"{cue.name}: what is drawn must be plain values ({error})") from error
    want = _run(cue, image, 5)
    for each in (drawn, again, drawn):
        _need(cue, np.array_equal(cue.render(image, each), want), "render does not repeat what was drawn")
    for u in (0.0, 0.5, 1 - 2**-53):
        shown = cue.render(image, cue.draw_view(u, 36, 36))
        _need(cue, shown.shape == image.shape, "what draw_view draws cannot be rendered")


def threads_do_not_disturb_each_other(cue: Cue) -> None:
    """Images rendered in threads equal those rendered one by one."""
    images = [photo(32, 32 + i) for i in range(6)]
    with ThreadPoolExecutor(3) as pool:
        together = list(pool.map(lambda image: _run(cue, image), images))
    for out, image in zip(together, images):
        _need(cue, np.array_equal(out, _run(cue, image)), "threads change the result")


def odd_images(cue: Cue) -> None:
    """Grey and constant images work, and arrays that are not contiguous."""
    for kind in ("grey", "constant"):
        image = photo(24, 31, kind)
        _need(cue, _run(cue, image).shape == image.shape, f"fails on a {kind} image")
    flipped = photo(24, 24)[:, ::-1]
    same = np.array_equal(_run(cue, flipped), _run(cue, np.ascontiguousarray(flipped)))
    _need(cue, same, "an array that is not contiguous gives another image")


def is_described(cue: Cue) -> None:
    """It has a summary of one line, and refuses options that it does not have."""
    _need(cue, bool(cue.summary) and "\n" not in cue.summary, "the summary is not one line")
    _need(cue, type(cue)() == cue, "its options have no defaults")
    try:
        cue(photo(8, 8), np.random.default_rng(0), no_such_option=1)
    except UserError:
        return
    raise UserError(f"{cue.name}: an option that it does not have is ignored")


CHECKS: tuple[Callable[[Cue], None], ...] = (
    keeps_shape_and_type,
    every_form_gives_the_same_image,
    same_seed_same_image,
    rendering_is_drawing_free,
    threads_do_not_disturb_each_other,
    odd_images,
    is_described,
)


def _run(cue: Cue, image: Any, seed: int = 0) -> Any:
    return cue(image, np.random.default_rng(seed))


def _need(cue: Cue, holds: bool, otherwise: str) -> None:
    if not holds:
        raise UserError(f"{cue.name}: {otherwise}")


def _forms(image: Pixels) -> dict[str, tuple[Any, Callable[[Any], Pixels]]]:
    """The same image in other forms, each with the way back to uint8 H×W×C (or H×W)."""
    planes = torch.from_numpy(image if image.ndim == 3 else image[..., None]).permute(2, 0, 1)

    def bytes_of(array: Any) -> Pixels:
        return np.rint(array * 255).astype(np.uint8) if array.dtype != np.uint8 else array

    def from_planes(tensor: Any) -> Pixels:
        return bytes_of(tensor.permute(1, 2, 0).numpy()).reshape(image.shape)

    return {
        "a PIL image": (Pillow.fromarray(image), np.asarray),
        "a float array": ((image / 255).astype(np.float32), bytes_of),
        "a float64 array": (image / 255, bytes_of),
        "a float tensor C×H×W": (planes / 255, from_planes),
        "a float tensor N×C×H×W": ((planes / 255)[None], lambda out: from_planes(out[0])),
        "a uint8 tensor C×H×W": (planes, from_planes),
        "a batch of arrays": (
            image.reshape(1, *image.shape[:2], -1),
            lambda out: out[0].reshape(image.shape),
        ),
    }
