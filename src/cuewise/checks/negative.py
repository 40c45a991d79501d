"""What every kind of negative promises."""

from __future__ import annotations

import numpy as np

from cuewise.checks.check import need
from cuewise.config import Config
from cuewise.cues.contract import photo
from cuewise.data import Sample, open_data
from cuewise.views.negatives import Negative
from cuewise.views.negatives.negative import Origin
from cuewise.views.params import Crop, ViewParams

SIZE = 48


def made(kind: type[Negative], seed: int, count: int = 2) -> list[np.ndarray]:
    """The negatives of one photograph."""
    config = Config()
    known = {**vars(config.views), **vars(config)}
    for name in kind.reads:
        need(
            name in known,
            f"`reads` names {name!r}, which is not an option of a run: "
            "an option of its own is a field Annotated[type, help]",
        )
    options = {name: known[name] for name in kind.reads}
    negative = kind.build("query", count, options, open_data("shapes?n=4&size=48"), 0)
    image = photo(SIZE, SIZE)
    origin = Origin(Sample(image, index=0), image, ViewParams(Crop(0, 0, SIZE, SIZE)))
    draws = negative.sample(np.random.default_rng(seed), SIZE)
    need(len(draws) == count, f"sample draws {len(draws)} negatives where {count} are asked for")
    return [negative.render(origin, drawn, number) for number, drawn in enumerate(draws)]


def is_described(kind: type[Negative]) -> None:
    """It says what it is, in one line."""
    need(kind.summary and "\n" not in kind.summary, "the summary is not one line")
    need(kind.__doc__, "the class has no docstring")


def is_an_image_of_the_view(kind: type[Negative]) -> None:
    """It has the size of its view, is not the view itself, and leaves the view unchanged."""
    if not kind.is_image:
        return
    before = photo(SIZE, SIZE)
    for image in made(kind, 1):
        need(
            image.dtype == np.uint8 and image.shape == before.shape,
            f"{image.dtype} {image.shape}, not uint8 {before.shape}",
        )
        need(not np.array_equal(image, before), "it is the view itself")


def same_draw_same_image(kind: type[Negative]) -> None:
    """All random numbers come from the generator that `sample` is given."""
    if not kind.is_image:
        return
    np.random.seed(1)  # noqa: NPY002 — the global generator must not matter
    first = made(kind, 3)
    np.random.seed(2)  # noqa: NPY002
    need(all(np.array_equal(a, b) for a, b in zip(first, made(kind, 3))), "the same seed gives another image")


CHECKS = (is_described, is_an_image_of_the_view, same_draw_same_image)
