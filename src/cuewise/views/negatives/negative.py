"""What a negative is: an image made of a view that keeps one cue of it and loses the meaning."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from cuewise.data import Dataset, Sample
from cuewise.errors import UserError
from cuewise.views.params import Crop, ViewParams

Pixels = NDArray[np.uint8]


@dataclass(frozen=True)
class Origin:
    """What a negative is made of: a sample, one of its views and the parameters drawn for that view."""

    sample: Sample
    view: Pixels  # S×S×3
    params: ViewParams
    memo: dict[Any, Any] = field(default_factory=dict)  # shared by all negatives of this sample


@dataclass(frozen=True)
class Negative(ABC):
    """Base of all kinds of negatives: one file each, found by being in this package.

    `sample` draws, `render` makes the pixels from what was drawn: the same draw gives the same negative. Fields with a
    help are options, set as --negatives "NAME?option=value".
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    reads: ClassVar[tuple[str, ...]] = ()  # the run's options that this kind reads
    is_image: ClassVar[bool] = True  # False: the method takes it from its own batch
    of_image: ClassVar[bool] = True  # False: it is made of the view alone
    on_device: ClassVar[bool] = (
        False  # True: `packed` and `render_packed` make it for whole batches (loop.views=device)
    )

    source: str = "query"  # role of the view it is made of
    count: int = 1  # negatives per view

    def __post_init__(self) -> None:
        if self.count < 1:
            raise UserError(f"{self.name} negatives: their number is {self.count} and must be at least 1")

    @classmethod
    def build(cls, source: str, count: int, options: Mapping[str, Any], data: Dataset, seed: int) -> Self:
        """This kind as a run configures it; `options` holds those that `cls.reads` names."""
        return cls(source, count)

    @property
    def role(self) -> str:
        """The role its images go by, e.g. "patch:query"; they are stacked to M×S×S×3."""
        return negative_role(self.name, self.source)

    def sample(self, rng: np.random.Generator, size: int) -> tuple[Any, ...]:
        """What is drawn for the `count` negatives of a size×size view."""
        return (None,) * self.count

    @abstractmethod
    def render(self, origin: Origin, drawn: Any, number: int) -> Pixels:
        """Negative `number` of the view, S×S×3."""

    def packed(self, drawn: Sequence[Any]) -> Any:
        """What was drawn for all negatives of a batch, image by image, as tensors in host memory."""
        raise NotImplementedError  # where on_device is false

    def render_packed(self, views: Tensor, packed: Any) -> Tensor:
        """N×S×S×3 of as many views, whole grey levels as float32, on the device of the views."""
        raise NotImplementedError

    def doubts(self, size: int) -> list[str]:
        """What a user should know before training with these negatives on size×size views."""
        return []

    def warm_up(self) -> None:
        """Compile what rendering needs, on noise."""
        rng = np.random.default_rng(0)
        noise = rng.integers(0, 256, (48, 48, 3), dtype=np.uint8)
        origin = Origin(Sample(noise), noise, ViewParams(Crop(0, 0, 48, 48)))
        for number, drawn in enumerate(self.sample(rng, 48)):
            self.render(origin, drawn, number)


def negative_role(kind: str, source: str) -> str:
    """The role of the `kind` negatives that are made of the view `source`."""
    return f"{kind}:{source}"
