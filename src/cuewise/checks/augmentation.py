"""What every augmentation of a user's own promises."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np

from cuewise.checks.check import need
from cuewise.cues.contract import photo
from cuewise.views.augmentations import Augmentation

DRAWS = 16


def drawn(augmentation: Augmentation, seed: int = 0) -> list[Any]:
    """Values of several views; None leaves a view alone."""
    assert augmentation.draw is not None
    rng = np.random.default_rng(seed)
    return [augmentation.draw(rng) for _ in range(DRAWS)]


def is_described(augmentation: Augmentation) -> None:
    """It says what it is, in one line, and brings `draw` and `apply`."""
    need(augmentation.summary and "\n" not in augmentation.summary, "the summary is not one line")
    need(augmentation.draw and augmentation.apply, "register it with both draw and apply")


def draws_from_the_generator(augmentation: Augmentation) -> None:
    """All random numbers come from the generator that `draw` is given."""
    np.random.seed(1)  # noqa: NPY002 — the global generator must not matter
    first = drawn(augmentation)
    np.random.seed(2)  # noqa: NPY002
    need(first == drawn(augmentation), "the same seed draws another value")


def draws_plain_values(augmentation: Augmentation) -> None:
    """What is drawn can be sent to another process, and something is drawn at all."""
    values = drawn(augmentation)
    need(any(value is not None for value in values), f"none of {DRAWS} views is changed")
    need(pickle.loads(pickle.dumps(values)) == values, "a drawn value is another one after pickling")


def gives_a_view(augmentation: Augmentation) -> None:
    """It changes a view, keeps its size and type, gives the same for the same value, and leaves its input alone."""
    assert augmentation.apply is not None
    before, changes = photo(48, 48), False
    for value in drawn(augmentation):
        if value is None:
            continue
        view = before.copy()
        after = augmentation.apply(view, value)
        need(
            after.dtype == np.uint8 and after.shape == before.shape,
            f"{after.dtype} {after.shape}, not uint8 {before.shape}",
        )
        need(np.array_equal(view, before), "apply changes its input")
        need(np.array_equal(after, augmentation.apply(view, value)), "the same value gives another view")
        changes |= not np.array_equal(after, before)
    need(changes, f"none of {DRAWS} views is changed")


CHECKS = (is_described, draws_from_the_generator, draws_plain_values, gives_a_view)
