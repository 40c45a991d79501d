"""Regular negatives: another image of the batch, as a control."""

from __future__ import annotations

from dataclasses import dataclass

from cuewise.views.negatives.negative import Negative, Origin, Pixels


@dataclass(frozen=True)
class RegularNegative(Negative):
    """Nothing is rendered: the method takes the embedding of another image."""

    name = "regular"
    summary = "another image of the batch (a control)"
    is_image = False
    of_image = False

    def render(self, origin: Origin, drawn: None, number: int) -> Pixels:
        raise AssertionError("a regular negative is taken from the batch")
