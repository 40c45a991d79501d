"""What a method is: its views, its state, its loss; and the list of all methods."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import torch
from torch import Tensor, nn

from cuewise.encoders import Encoder
from cuewise.errors import UserError
from cuewise.objectives.nce import own_part
from cuewise.registry import Registry, subclasses_of

if TYPE_CHECKING:
    from cuewise.methods.hard import Hard


class Comm(Protocol):
    """The other processes, as far as a method needs them."""

    rank: int
    world: int

    def gather(self, x: Tensor) -> Tensor:
        """Rows of all processes in rank order; gradients flow back to the process that owns them."""
        ...


class Alone:
    """One process."""

    rank, world = 0, 1

    def gather(self, x: Tensor) -> Tensor:
        return x


@dataclass(frozen=True)
class MethodSettings:
    """Base of a method's own settings; None is "to be fitted to the run"."""

    def fitted(self, images: int, steps: int) -> Self:
        """These settings with every None replaced by what suits that many images and optimiser steps."""
        return self


@dataclass(frozen=True)
class Negatives:
    """The negatives dial: `kinds` with one weight each; count images of each kind for each query; α-mode."""

    kinds: tuple[str, ...] = ()
    alpha: tuple[float, ...] = ()
    count: int = 1
    mode: str = "in"

    @property
    def active(self) -> tuple[tuple[str, float], ...]:
        """(kind, α) of those in force: α = 0 means that the negative does not exist."""
        return tuple((k, a) for k, a in zip(self.kinds, self.alpha) if a != 0)

    @property
    def images(self) -> tuple[str, ...]:
        """The kinds that are images made by the views ("regular" is another image of the batch)."""
        return tuple(k for k, _ in self.active if k != "regular")

    @property
    def weights(self) -> tuple[float, ...]:
        """One α for each column of similarities, `count` columns a kind."""
        return tuple(a for k, a in self.active for _ in range(1 if k == "regular" else self.count))


@dataclass
class Step:
    """What one forward gives: the loss, and what the dials read (unit-norm, detached)."""

    loss: Tensor
    z: Tensor  # B×D, the embedding of the query view
    positive: Tensor | None = None  # B×D, of the other view
    negatives: Tensor | None = None  # B×M×D, of the image negatives
    extra: dict[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class Shown:
    """A positive view: its role and recipe, which augmentations it adds or drops, which it shares with the first view."""

    role: str
    recipe: str
    adds: tuple[str, ...] = ()
    drops: tuple[str, ...] = ()
    shares: tuple[str, ...] = ()


class Method(nn.Module, ABC):
    """Base of all methods: one file each, found by being in this package.

    A subclass names its views (role → recipe), its settings (a dataclass), the optimiser it was published with, and
    the cue dials that have a meaning for it. `encoder` is what the run is for; the rest is scaffolding.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    citation: ClassVar[str]
    views: ClassVar[Mapping[str, str]]  # role → name of a recipe
    negatives_from: ClassVar[tuple[str, ...]] = ()  # roles whose views negatives are cut from
    negative_kinds: ClassVar[tuple[str, ...]] = ()  # kinds of negatives that have a meaning
    alpha: ClassVar[float] = 2.0  # default weight of a negative
    takes_hard: ClassVar[bool] = False  # whether --hard has a meaning
    optim: ClassVar[Mapping[str, Any]]
    Settings: ClassVar[type[MethodSettings]]
    needs_labels: ClassVar[bool] = False
    needs_index: ClassVar[bool] = False  # whether views["index"] must tell which images they are of
    leaves_out: ClassVar[bool] = False  # whether --leave-out has a meaning

    def __init__(
        self,
        encoder: Encoder,
        settings: Any,
        negatives: Negatives | None = None,
        *,
        comm: Comm | None = None,
        seed: int = 0,
        classes: int = 0,
        leave_out: tuple[str, ...] = (),
        hard: Hard | None = None,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.leave_out = leave_out
        self.settings = settings
        self.negatives = negatives or Negatives()
        self.comm: Comm = comm or Alone()
        self.classes = classes
        self.hard = hard
        self.progress = 0.0  # of training, 0…1
        self.generator = torch.Generator().manual_seed(seed)

    @abstractmethod
    def forward(self, views: dict[str, Tensor], labels: Tensor) -> Step:
        """One batch: views are normalised images by role, B×3×H×W (negatives B×M×3×H×W)."""

    @classmethod
    def shown(cls, leave_out: Sequence[str] = ()) -> tuple[Shown, ...]:
        """The positive views, the first of them the one that others may share augmentations with."""
        return tuple(Shown(role, recipe) for role, recipe in cls.views.items())

    def begin_step(self, progress: float) -> None:
        """Before the forwards of an optimiser step; progress runs from 0 to 1 over training."""

    def after_backward(self) -> None:
        """After each backward: state that the backward pass still needed may change now."""

    @property
    def chance_loss(self) -> float | None:
        """The loss of a network that knows nothing, where the method has one."""
        return None

    def get_extra_state(self) -> Tensor:
        return self.generator.get_state()

    def set_extra_state(self, state: Tensor) -> None:
        self.generator.set_state(state.cpu())


def check_share(method: str, share: float) -> None:
    """METHOD.center, the share of the mean negative that is taken off each."""
    if not 0 <= share <= 1:
        raise UserError(f"{method}.center {share}: a share from 0 to 1")


def check_statistics(method: str, value: str, *known: str) -> None:
    """METHOD.statistics, which images share the statistics of a forward batch."""
    if value not in known:
        raise UserError(f"{method}.statistics {value!r}: {', '.join(known[:-1])} or {known[-1]}")


def embed_batches(embed: Callable[[Tensor], Tensor], images: list[Tensor], shared: bool) -> list[Tensor]:
    """Views and their negatives: in one forward where they share batch statistics, otherwise each batch by itself."""
    if shared and len(images) > 1:
        return list(embed(torch.cat(images)).split([len(x) for x in images]))
    return [embed(x) for x in images]


def centred(ns: Tensor, share: float, comm: Comm) -> Tensor:
    """Negatives B×M×C less `share` of the mean negative of the whole batch; as they are where that is 0."""
    return own_part(ns, comm.gather(ns), share) if share else ns


def negative_role(kind: str, source: str) -> str:
    """The role of the `kind` negatives that are made of the view `source`."""
    return f"{kind}:{source}"


METHODS = Registry[type[Method]]("method", "cuewise.methods", subclasses_of(Method))


def methods() -> dict[str, type[Method]]:
    """All methods by name."""
    return METHODS.all()


def method(name: str) -> type[Method]:
    """The method of that name, or of `package.module:Name`."""
    return METHODS.get(name)
