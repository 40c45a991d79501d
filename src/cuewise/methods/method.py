"""What a method is: its views, its state, its loss; and the list of all methods."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from cuewise.data import Batch, Dataset
from cuewise.encoders import Encoder
from cuewise.encoders.momentum import split_rows
from cuewise.encoders.spaces import Heads
from cuewise.errors import UserError
from cuewise.objectives.nce import own_part
from cuewise.registry import Registry, subclasses_of
from cuewise.views import NEGATIVES, Negative, negative_kind, negative_role
from cuewise.views.transform import CropLaw

if TYPE_CHECKING:
    from cuewise.methods.hard import Hard


# what a batch holds where a method needs it: "label", "labels" and "name" under these names, "boxes" and "mask" as "ROLE.boxes"
FACTS = ("label", "labels", "boxes", "mask", "name")
SPREAD, UNSPREAD = 0.1, 0.01  # least feature_std where the loss spreads embeddings, and where it does not


class Comm(Protocol):
    """The other processes, as far as a method needs them."""

    rank: int
    world: int

    def gather(self, x: Tensor) -> Tensor:
        """Rows of all processes in rank order; gradients flow back to the process that owns them."""
        ...


class SingleProcess:
    """One process."""

    rank, world = 0, 1

    def gather(self, x: Tensor) -> Tensor:
        return x


class Memory(nn.Module, ABC):
    """State that takes in what a batch held once its backward pass is done: a queue of keys, a memory bank."""

    @abstractmethod
    def push(self, comm: Comm) -> None:
        """Take in what all processes hold."""


SHORT, SMALL = 20_000, 1024  # steps and images per step, where optim's `short_lr` is taken


@dataclass(frozen=True)
class MethodSettings:
    """Base of a method's own settings; None is "fitted to the run"."""

    def fitted(self, images: int, steps: int) -> Self:
        """These settings with every None replaced by what suits that many images and optimiser steps."""
        return self


@dataclass(frozen=True)
class Negatives:
    """The negatives dial: `kinds` with one weight each; count images per kind and query; α-mode."""

    kinds: tuple[str, ...] = ()
    alpha: tuple[float, ...] = ()
    count: int = 1
    mode: str = "in"

    @cached_property
    def active(self) -> tuple[tuple[str, float], ...]:
        """(kind, α) of those in force: α = 0 means that the negative does not exist."""
        return tuple((k, a) for k, a in zip(self.kinds, self.alpha) if a != 0)

    @cached_property
    def images(self) -> tuple[str, ...]:
        """The kinds that are images made by the views (others are taken from the batch)."""
        return tuple(k for k, _ in self.active if negative_kind(k).is_image)

    @cached_property
    def weights(self) -> tuple[float, ...]:
        """One α for each column of similarities, `count` columns per kind of image."""
        images = self.images
        return tuple(a for k, a in self.active for _ in range(self.count if k in images else 1))

    def roles(self, source: str) -> list[str]:
        """The roles of the images made of the view `source`."""
        return [negative_role(negative_kind(kind).name, source) for kind in self.images]


@dataclass(frozen=True)
class Setup:
    """What a method is asked to do: its settings, the dials that affect it, the run's size and number of classes."""

    settings: Any
    negatives: Negatives = Negatives()
    leave_out: tuple[str, ...] = ()
    hard: Hard | None = None
    color_jitter: bool = True
    size: int = 224
    classes: int = 0
    suppressed: float = 0.0  # share of the views that --suppress filters
    correction: str = "none"  # of labels that may be wrong
    generator: str | None = None  # the run folder of a learned suppressor


@dataclass
class Step:
    """What one forward gives: the loss, and what the dials read (unit-norm, detached)."""

    loss: Tensor
    z: Tensor  # B×D, the embedding of the query view
    positive: Tensor | None = None  # B×D, of the other view
    negatives: Tensor | None = None  # B×M×D, of the image negatives of the query view
    extra: dict[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class ViewSpec:
    """A positive view: its role and recipe, which augmentations it adds or drops, which it shares with the first view.

    size      side in pixels; None: the run's
    suppress  share that --suppress filters; None: as the run's policy says
    """

    role: str
    recipe: str
    adds: tuple[str, ...] = ()
    drops: tuple[str, ...] = ()
    shares: tuple[str, ...] = ()
    size: int | None = None
    suppress: float | None = None


class Method(nn.Module, ABC):
    """Base of all methods: one file each, found by being in this package (or your own, as package.module:Name).

    A subclass names its views (role → recipe), its settings (a dataclass), the optimiser it was published with, and
    the cue dials that have a meaning for it. `encoder` is what the run is for; the rest is scaffolding.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    citation: ClassVar[str]
    equation: ClassVar[str] = ""  # the loss in plain text, its symbols on the lines below
    example: ClassVar[str] = ""  # further options that a command with this method needs
    views: ClassVar[Mapping[str, str]]  # role → name of a recipe
    needs: ClassVar[tuple[str, ...]] = ()  # facts that the method needs, out of FACTS
    negatives_from: ClassVar[tuple[str, ...]] = ()  # roles whose views negatives are made of
    batch_negatives: ClassVar[tuple[str, ...]] = ()  # kinds that it takes from its own batch, e.g. "regular"
    alpha: ClassVar[float] = 2.0  # default weight of a negative
    alpha_modes: ClassVar[tuple[str, ...]] = ("in", "out")  # the default first; one: no choice
    takes_hard: ClassVar[bool] = False  # whether --hard has a meaning
    leaves_out: ClassVar[bool] = False  # whether --leave-out has a meaning
    unused: ClassVar[str] = "needs two boxes per image"  # why `usable` leaves images out
    takes_crops: ClassVar[bool] = True  # whether --crops object has a meaning
    keeps_classifier: ClassVar[bool] = False  # whether the model's classifier and input size stay its own
    takes_labels: ClassVar[bool] = False  # whether labels.* has a meaning
    takes_generator: ClassVar[bool] = False  # whether --generator has a meaning
    no_suppress: ClassVar[str] = ""  # why --suppress has no meaning, where it has none
    backbone: ClassVar[str] = ""  # the only network that it trains, where there is just one
    optim: ClassVar[Mapping[str, Any]]  # may have `short_lr`: instead of lr, in a short run from scratch
    Settings: ClassVar[type[MethodSettings]]

    def __init__(self, encoder: Encoder, setup: Setup, *, comm: Comm | None = None, seed: int = 0) -> None:
        super().__init__()
        self.encoder = encoder
        self.setup = setup
        self.settings = setup.settings
        self.negatives = setup.negatives
        self.leave_out = setup.leave_out
        self.hard = setup.hard
        self.comm: Comm = comm or SingleProcess()
        self.progress = 0.0  # of training, 0…1
        self.generator = torch.Generator().manual_seed(seed)

    def similarity_networks(self) -> tuple[nn.Module | None, nn.Module | None]:
        """(head on the features, second network on images), whose outputs the similarity of pairs is measured on."""
        return getattr(self, "projector", None), getattr(self, "key_network", None)

    def own_classifier(self) -> nn.Module | None:
        """From features to the classes of the training images, where the method learns it."""
        return None

    def own_spaces(self) -> Heads | None:
        """Heads that are saved beside the encoder, each of which is an embedding space (`--space`)."""
        return None

    def take_confusion(self, confusion: Tensor) -> None:
        """C[y, ỹ], how often an image of class y is labelled ỹ, before it trains with labels.correction; it comes from the
        answers of `own_classifier` to a first training."""
        raise NotImplementedError

    @classmethod
    def model(cls, spec: str) -> str:
        """The backbone as this method trains it, from --model; e.g. with the pooling that the method needs."""
        return spec

    @classmethod
    def shown(cls, setup: Setup) -> tuple[ViewSpec, ...]:
        """The positive views, the first of them the one that others may share augmentations with."""
        return tuple(ViewSpec(role, recipe) for role, recipe in cls.views.items())

    @classmethod
    def takes_negative(cls, kind: type[Negative]) -> bool:
        """Images are made of the views in `negatives_from`, whatever their kind; others are taken from the batch."""
        return bool(cls.negatives_from) if kind.is_image else kind.name in cls.batch_negatives

    @classmethod
    def negative_kinds(cls) -> tuple[str, ...]:
        """The names of all kinds of negatives that it takes, images first."""
        known = sorted(NEGATIVES.all().values(), key=lambda kind: (not kind.is_image, kind.name))
        return tuple(kind.name for kind in known if cls.takes_negative(kind))

    @classmethod
    def compared(cls, setup: Setup) -> tuple[str, ...]:
        """Augmentations for which the fact "shared" must say which views drew what the first one did."""
        return ()

    @classmethod
    def regions(cls, setup: Setup, data: Dataset) -> CropLaw | None:
        """Where the crops of the views are taken, for methods that choose that themselves; None: anywhere."""
        return None

    @classmethod
    def usable(cls, setup: Setup, data: Dataset) -> Dataset:
        """The images that the method can learn from."""
        return data

    @classmethod
    def cues(cls, settings: Mapping[str, Any]) -> dict[str, Any]:
        """What encoder.json says of the method's own settings, beside the dials."""
        return {}

    @classmethod
    def check(cls, setup: Setup) -> None:
        """Refuse settings and dials that have no meaning together, with what to do."""

    @abstractmethod
    def forward(self, batch: Batch) -> Step:
        """One batch: views are normalised images by role, B×3×H×W (negatives B×M×3×H×W)."""

    def begin_step(self, progress: float) -> None:
        """Before the forwards of an optimiser step; progress runs from 0 to 1 over training."""
        self.progress = progress

    def apart(self) -> Mapping[str, tuple[nn.Module, Mapping[str, Any]]]:
        """Parts that optimisers of their own train at a constant rate: name → module and settings of the optimiser."""
        return {}

    def after_backward(self) -> None:
        """After each backward: state that the backward pass still needed may change now."""
        for part in self.children():
            if isinstance(part, Memory):
                part.push(self.comm)

    def made_of(self, batch: Batch, source: str) -> list[Tensor]:
        """The image negatives of the view `source`, one B·M×3×H×W per kind."""
        return [batch.views[role].flatten(0, 1) for role in self.negatives.roles(source)]

    @property
    def least_spread(self) -> float:
        """The dials/feature_std below which embeddings have collapsed. Where no term of the loss spreads them, they share a
        large common part in a healthy run as well, and only a far smaller spread is a sign of collapse."""
        return SPREAD

    @property
    def chance_loss(self) -> float | None:
        """The loss of a network that knows nothing, where the method has one."""
        return None

    def pictures(self, batch: Batch) -> dict[str, NDArray[np.uint8]]:
        """Name → N×H×W×3: what the method sees and predicts of normalised views, where that is a picture.

        A picture called "reconstruction" is also followed over training. No random numbers of the run are used.
        """
        return {}

    def get_extra_state(self) -> Tensor:
        return self.generator.get_state()

    def set_extra_state(self, state: Tensor) -> None:
        self.generator.set_state(state.cpu())


METHODS = Registry[type[Method]]("method", "cuewise.methods", subclasses_of(Method))


def methods() -> dict[str, type[Method]]:
    """All methods by name."""
    return METHODS.all()


def method(name: str) -> type[Method]:
    """The method of that name, or the one that package.module:Name imports."""
    return METHODS.get(name)


def at_least(where: str, value: float | None, least: float, most: float = float("inf")) -> None:
    """A number of a method's settings that must lie within bounds; None is fitted to the run."""
    if value is not None and not least <= value <= most:
        raise UserError(
            f"{where} {value}: must be {f'from {least} to {most}' if most < float('inf') else f'{least} or more'}"
        )


def check_statistics(method: str, value: str, *known: str) -> None:
    """METHOD.statistics, which images share the statistics of a forward batch."""
    if value not in known:
        raise UserError(f"{method}.statistics {value!r}: {', '.join(known[:-1])} or {known[-1]}")


def embed_batches(embed: Callable[[Tensor], Any], images: list[Tensor], shared: bool) -> list[Any]:
    """Views and their negatives: in one forward where they share batch statistics, otherwise each batch by itself."""
    if shared and len(images) > 1:
        return split_rows(embed(torch.cat(images)), [len(x) for x in images])
    return [embed(x) for x in images]


def by_query(ns: list[Tensor], batch: int) -> Tensor | None:
    """Negatives B·m×C of each kind → B×M×C; None without."""
    return torch.cat([n.unflatten(0, (batch, -1)) for n in ns], dim=1) if ns else None


def centred(ns: Tensor, share: float, comm: Comm) -> Tensor:
    """Negatives B×M×C less `share` of the mean negative of the whole batch; unchanged where that is 0."""
    return own_part(ns, comm.gather(ns), share) if share else ns
