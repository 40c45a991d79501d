"""What every clue promises, on embedded scenes as PNG files."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image as Pillow

from cuewise.checks.check import need
from cuewise.data import open_data
from cuewise.inspection.clue import Clue, Look, Numbers

SCENES = "shapes:scenes?n=4&size=48"


def looks() -> list[Look]:
    """Images with boxes, masks and the bytes of a file."""
    data = open_data(SCENES)
    samples = [data.sample(i) for i in range(len(data))]
    return [Look(s, lambda s=s: png(s.image)) for s in samples]  # type: ignore[misc]


def png(image: Numbers) -> bytes:
    out = io.BytesIO()
    Pillow.fromarray(image).save(out, "png")
    return out.getvalue()


def is_described(kind: type[Clue]) -> None:
    """It says what it is, and what begins the sentence about it."""
    need(kind.summary and "\n" not in kind.summary, "the summary is not one line")
    need(
        getattr(kind, "subject", ""),
        "it has no subject: “SUBJECT alone predicts the class of 71 % of the images”",
    )


def gives_numbers(kind: type[Clue]) -> None:
    """The same number of finite values for every image; None only where it says what a set may lack."""
    rows = [kind().numbers(look) for look in looks()]
    found = [row for row in rows if row is not None]
    need(found or kind.needs, "it has no number for any image, and no `needs`")
    for row in found:
        need(row.ndim == 1 and len(row) == len(found[0]), "the number of values differs from image to image")
        need(np.isfinite(row).all(), "a value is not a finite number")


def is_deterministic(kind: type[Clue]) -> None:
    """It looks at an image twice and sees the same, and leaves it as it was."""
    for first, second in zip(looks(), looks()):
        before = first.sample.image.copy()
        a, b = kind().numbers(first), kind().numbers(second)
        need(a is b is None or np.array_equal(a, b), "the second look at an image gives another number")  # type: ignore[arg-type]
        need(np.array_equal(before, first.sample.image), "it changes the image")


def draws_a_picture(kind: type[Clue]) -> None:
    """What is left of an image is an image, or nothing."""
    for look in looks():
        picture = kind().picture(look)
        whole = picture is None or (picture.dtype == np.uint8 and picture.ndim == 3 and picture.shape[2] == 3)
        need(whole, "the picture is not uint8 of H×W×3")


CHECKS = (is_described, gives_numbers, is_deterministic, draws_a_picture)
